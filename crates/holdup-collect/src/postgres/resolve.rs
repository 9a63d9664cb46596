//! Resolves the names in a statement to tables: searched in the catalog along an explicit search
//! path, never by setting one. Users choose their paths, and a foreign path in our session would
//! choose which functions and operators our own statements find.

use super::server::{Failure, Server};

/// Separates names, which contain no control characters.
pub(super) const BETWEEN: &str = "\u{1f}";

/// A table in the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResolvedTable {
    pub(super) oid: i64,
    pub(super) schema: String,
    pub(super) name: String,
}

/// For each wanted name the first table along the path, which is how the server resolves it.
const SEARCH: &str = "SELECT holdup_w.place, holdup_f.oid, holdup_f.nspname, holdup_f.relname \
     FROM unnest(string_to_array($1, chr(31)), string_to_array($2, chr(31))) WITH ORDINALITY AS holdup_w(nsp, rel, place) \
     CROSS JOIN LATERAL (SELECT holdup_c.oid, holdup_n.nspname, holdup_c.relname, holdup_c.relkind \
       FROM pg_class AS holdup_c JOIN pg_namespace AS holdup_n ON holdup_n.oid = holdup_c.relnamespace \
       LEFT JOIN unnest(string_to_array($3, chr(31))) WITH ORDINALITY AS holdup_p(nsp, place) ON holdup_p.nsp::name = holdup_n.nspname \
       WHERE holdup_c.relname = holdup_w.rel::name \
       AND CASE coalesce(holdup_w.nsp, '') WHEN '' THEN holdup_p.place IS NOT NULL ELSE holdup_n.nspname = holdup_w.nsp::name END \
       AND has_schema_privilege(holdup_n.oid, 'USAGE') ORDER BY holdup_p.place LIMIT 1) AS holdup_f \
     WHERE holdup_f.relkind IN ('r', 'p', 'm') ORDER BY holdup_w.place";

/// The table, partitioned table or materialized view of each name, with its schema if given.
pub(super) fn resolve(
    server: &Server,
    path: &[String],
    names: &[(Option<String>, String)],
) -> Result<Vec<Option<ResolvedTable>>, Failure> {
    let mut found = vec![None; names.len()];
    let is_none = |text: &String| text.len() > 63 || text.chars().any(char::is_control);
    if names.is_empty() || names.iter().any(|(schema, name)| schema.iter().chain([name]).any(is_none)) {
        return Ok(found);
    }
    let schemas: Vec<&str> = names.iter().map(|(schema, _)| schema.as_deref().unwrap_or_default()).collect();
    let tables: Vec<&str> = names.iter().map(|(_, name)| name.as_str()).collect();
    let values = [schemas.join(BETWEEN), tables.join(BETWEEN), path.join(BETWEEN)];
    for row in &server.rows_with(SEARCH, &values.each_ref().map(String::as_str))?.rows {
        let text = |at: usize| row.text(at).unwrap_or_default().to_owned();
        let place = row.int(0).and_then(|place| usize::try_from(place - 1).ok());
        if let (Some(slot), Some(oid)) = (place.and_then(|place| found.get_mut(place)), row.int(1)) {
            *slot = Some(ResolvedTable { oid, schema: text(2), name: text(3) });
        }
    }
    Ok(found)
}

/// The schemas of a `search_path` setting for an account; the server's own catalog comes first
/// unless the setting names it.
pub(super) fn path(setting: &str, user: &str) -> Vec<String> {
    let (mut schemas, mut schema, mut quoted, mut was_quoted) = (Vec::new(), String::new(), false, false);
    let mut letters = setting.chars().chain([',']).peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                schema.push('"');
            }
            '"' => (quoted, was_quoted) = (!quoted, true),
            ',' if !quoted => {
                let whole = std::mem::take(&mut schema);
                let name = if std::mem::take(&mut was_quoted) { whole } else { whole.trim().to_ascii_lowercase() };
                schemas.push(if name == "$user" { user.to_owned() } else { name });
            }
            blank if !quoted && blank.is_ascii_whitespace() => {}
            letter => schema.push(letter),
        }
    }
    schemas.retain(|name| !name.is_empty() && !name.chars().any(char::is_control));
    if !schemas.iter().any(|name| name == "pg_catalog") {
        schemas.insert(0, "pg_catalog".to_owned());
    }
    schemas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_the_server_reads_it() {
        for (setting, expected) in [
            ("\"$user\", public", "pg_catalog|joe|public"),
            ("$user,Shop , \"My \"\"Own\"\", x\"", "pg_catalog|joe|shop|My \"Own\", x"),
            ("public, pg_catalog", "public|pg_catalog"),
            ("", "pg_catalog"),
            ("\"\"", "pg_catalog"),
        ] {
            assert_eq!(path(setting, "joe").join("|"), expected, "{setting}");
        }
    }
}
