//! Names of tables, columns and indexes for use in commands. A name may contain any character: a
//! copied command must mean exactly that table.

/// Words that PostgreSQL reserves (its manual, appendix "SQL Key Words": reserved). MySQL reserves
/// most of them, and accepts any name in its quotes.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "authorization", "between", "binary", "both",
    "by", "case", "cast", "change", "check", "collate", "collation", "column", "concurrently", "condition", "constraint", "create",
    "cross", "current_catalog", "current_date", "current_role", "current_schema", "current_time", "current_timestamp", "current_user",
    "database", "default", "deferrable", "delete", "desc", "distinct", "do", "else", "end", "except", "exists", "explain", "false",
    "fetch", "for", "foreign", "freeze", "from", "full", "grant", "group", "groups", "having", "ilike", "in", "index", "initially",
    "inner", "insert", "intersect", "interval", "into", "is", "isnull", "join", "key", "keys", "lateral", "leading", "left", "like",
    "limit", "localtime", "localtimestamp", "lock", "match", "natural", "not", "notnull", "null", "offset", "on", "only", "option",
    "or", "order", "outer", "overlaps", "partition", "placing", "primary", "range", "rank", "references", "returning", "right", "row",
    "rows", "select", "session_user", "set", "show", "similar", "some", "symmetric", "system", "system_user", "table", "tablesample",
    "then", "to", "trailing", "true", "union", "unique", "update", "usage", "user", "using", "values", "variadic", "verbose", "when",
    "where", "window", "with", "write",
];

/// A name, in `quote` (PostgreSQL's `"`, MySQL's `` ` ``) if it needs that.
pub(crate) fn quoted(name: &str, quote: char) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_')
        && !RESERVED.contains(&name);
    if is_plain {
        return name.to_owned();
    }
    let doubled = name.replace(quote, &format!("{quote}{quote}"));
    format!("{quote}{doubled}{quote}")
}

/// `schema.name` from PostgreSQL's collector, for a command: the schema ends at the first dot.
pub(crate) fn table(name: &str) -> String {
    match name.split_once('.') {
        Some((schema, name)) => format!("{}.{}", quoted(schema, '"'), quoted(name, '"')),
        None => quoted(name, '"'),
    }
}

/// A name as a string literal for `::regclass`.
pub(crate) fn string(name: &str) -> String {
    format!("'{}'", name.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_name() {
        assert_eq!(table("public.article"), "public.article");
        assert_eq!(table("public.Order"), "public.\"Order\"");
        assert_eq!(table("shop.order"), "shop.\"order\"");
        assert_eq!(table("public.x\"; DROP TABLE y; --"), "public.\"x\"\"; DROP TABLE y; --\"");
        assert_eq!(quoted("a`; DROP", '`'), "`a``; DROP`");
        assert_eq!(quoted("2023_orders", '"'), "\"2023_orders\"");
        assert_eq!(string(&table("public.it's")), "'public.\"it''s\"'");
    }
}
