//! A statement's tables, and the columns that its conditions compare: what an index would be for.

/// Its tables, without their schema.
pub(super) fn tables(text: &str) -> Vec<String> {
    let words = words(text);
    let is_before = |w: &str| matches!(w.to_uppercase().as_str(), "FROM" | "JOIN" | "UPDATE" | "INTO");
    let pairs = words.windows(2).filter(|pair| is_before(&pair[0]) && pair[1] != "(");
    pairs.map(|pair| pair[1].rsplit('.').next().unwrap_or_default().to_owned()).collect()
}

/// At most three columns that its first condition compares with a value, those compared for equality
/// first, because an index serves only one range; joined ones if qualified.
pub(super) fn columns(text: &str) -> Vec<String> {
    let words = words(text);
    let Some(at) = words.iter().position(|w| w.eq_ignore_ascii_case("where")) else { return Vec::new() };
    let mut found: Vec<(bool, String)> = Vec::new();
    for three in words[at + 1..].windows(3) {
        if ["GROUP", "ORDER", "LIMIT", "HAVING", "UNION"].iter().any(|w| three[0].eq_ignore_ascii_case(w)) {
            break;
        }
        let comparison = three[1].to_uppercase();
        let compares = matches!(comparison.as_str(), "=" | "<" | ">" | "IN" | "BETWEEN" | "LIKE");
        // The value may come first.
        let side = if three[0] == "?" { &three[2] } else { &three[0] };
        let name = side.rsplit('.').next().unwrap_or_default();
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_') && !name.eq_ignore_ascii_case("not");
        if compares && is_name && !found.iter().any(|(_, known)| known == name) && found.len() < 3 {
            found.push((matches!(comparison.as_str(), "=" | "IN"), name.to_owned()));
        }
    }
    found.sort_by_key(|(is_equal, _)| !is_equal);
    found.into_iter().map(|(_, name)| name).collect()
}

/// Words of a statement without punctuation, and without quotes around names.
fn words(text: &str) -> Vec<String> {
    let apart: String =
        text.chars().map(|c| if "(),=<>!;".contains(c) { format!(" {c} ") } else { c.to_string() }).collect();
    apart.split_whitespace().map(|w| w.replace(['`', '"'], "")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_and_columns() {
        assert_eq!(tables("SELECT a FROM `s` . `t`"), ["s"]);
        assert_eq!(tables("UPDATE t SET a = ? WHERE b = ?"), ["t"]);
        assert_eq!(
            columns("UPDATE t SET a = ? WHERE b = ? AND NOT c >= ? OR t.d LIKE ? GROUP BY e = ?"),
            ["b", "c", "d"]
        );
        assert_eq!(columns("SELECT a FROM t LIMIT ?"), [""; 0]);
        assert_eq!(columns("SELECT a FROM t WHERE ? = t.b"), ["b"]);
        assert_eq!(
            columns(r#"SELECT o.a FROM "Order" o WHERE o."placedAt" > ? AND o."customerId" = ?"#),
            ["customerId", "placedAt"]
        );
    }
}
