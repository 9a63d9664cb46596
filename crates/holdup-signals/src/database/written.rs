//! Which table a statement changes and which of its columns it sets, by the statement's text:
//! enough to match statements with the tables whose counters grow. Not a parser: it ignores what it
//! does not understand.

/// What a statement does to its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Adds rows.
    Insert,
    /// Changes rows; `INSERT … ON CONFLICT DO UPDATE` as well.
    Update,
    /// Deletes rows.
    Delete,
}

/// A statement's table, without schema, quotes and capitals, and what it does to it. None if it
/// changes nothing, or if the text does not show that plainly.
pub fn changed(text: &str) -> Option<(Change, String)> {
    let spaced = text.replace('(', " ( ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let is = |at: usize, word: &str| words.get(at).is_some_and(|w| w.eq_ignore_ascii_case(word));
    let (change, mut at) = match () {
        () if is(0, "update") => (Change::Update, 1),
        () if is(0, "delete") && is(1, "from") => (Change::Delete, 2),
        () if is(0, "insert") && is(1, "into") => {
            let upserts = words
                .windows(2)
                .any(|w| w[0].eq_ignore_ascii_case("do") && w[1].eq_ignore_ascii_case("update"))
                || words.windows(2).any(|w| w[0].eq_ignore_ascii_case("key") && w[1].eq_ignore_ascii_case("update"));
            (if upserts { Change::Update } else { Change::Insert }, 2)
        }
        () => return None,
    };
    if is(at, "only") {
        at += 1;
    }
    words.get(at).map(|name| (change, bare(name)))
}

/// Whether `text` makes such a `change` to `table` (`schema.name` or `name`).
pub fn changes(text: &str, change: Change, table: &str) -> bool {
    changed(text).is_some_and(|(does, name)| does == change && name == bare(table))
}

/// A name in lower case without quotes and without anything before its last dot.
pub fn bare(name: &str) -> String {
    let name = name.rsplit('.').next().unwrap_or(name);
    name.trim_matches(|c| matches!(c, '"' | '`' | '(' | ',' | ';')).to_lowercase()
}

/// Columns that an update sets, in order.
pub fn set_columns(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let Some(from) = lower.find(" set ").map(|at| at + 5) else { return Vec::new() };
    let mut columns = Vec::new();
    let (mut depth, mut part) = (0_i32, String::new());
    let rest = &lower[from..];
    let mut ends = false;
    for (at, c) in rest.char_indices() {
        let word = |w: &str| rest[at..].starts_with(w);
        if depth == 0 && (word(" where ") || word(" from ") || word(" returning ")) {
            break;
        }
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 {
            columns.extend(left_of(&part));
            part.clear();
        } else {
            part.push(c);
        }
        ends = c == ';' && depth == 0;
        if ends {
            break;
        }
    }
    if ends {
        part.pop();
    }
    columns.extend(left_of(&part));
    columns
}

/// Names in front of the first `=`: one, or several in brackets.
fn left_of(part: &str) -> Vec<String> {
    let Some((left, _)) = part.split_once('=') else { return Vec::new() };
    let names = left.trim().trim_start_matches('(').trim_end_matches(')').split(',');
    names.map(|name| bare(name.trim())).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_what_becomes_of_them() {
        let table = |text: &str| changed(text);
        let of = |change, name: &str| Some((change, name.to_owned()));
        assert_eq!(table("UPDATE article SET body = ? WHERE id = ?"), of(Change::Update, "article"));
        assert_eq!(table("update ONLY \"public\".\"Article\" set x = $1"), of(Change::Update, "article"));
        assert_eq!(table("DELETE FROM app.queue WHERE id = ?"), of(Change::Delete, "queue"));
        assert_eq!(table("INSERT INTO t(a, b) VALUES (?, ?)"), of(Change::Insert, "t"));
        assert_eq!(table("INSERT INTO t (a) VALUES (?) ON CONFLICT (a) DO UPDATE SET a = ?"), of(Change::Update, "t"));
        assert_eq!(table("INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE a = ?"), of(Change::Update, "t"));
        assert_eq!(table("SELECT * FROM article"), None);
        assert!(changes("UPDATE article SET a = ?", Change::Update, "public.article"));
        assert!(!changes("UPDATE articles SET a = ?", Change::Update, "public.article"));
    }

    #[test]
    fn columns_that_an_update_sets() {
        let set = |text: &str| set_columns(text).join(" ");
        assert_eq!(set("UPDATE a SET body = $1, hits = hits + $2 WHERE id = $3"), "body hits");
        assert_eq!(set("UPDATE a SET (x, y) = (?, ?), z = coalesce(z, ?) FROM b"), "x y z");
        assert_eq!(set("UPDATE a SET \"Body\" = ?;"), "body");
        assert_eq!(set("SELECT 1"), "");
    }
}
