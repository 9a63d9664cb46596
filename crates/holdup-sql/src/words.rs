//! The few words whose meaning the digest depends on. Everything else is just a name to it.

/// Words behind which an operand must follow, in order: a sign behind one belongs to the number, and a parenthesis
/// behind one is no call.
const BEFORE_OPERAND: &[&str] = &[
    "all",
    "and",
    "any",
    "as",
    "between",
    "binary",
    "by",
    "case",
    "distinct",
    "div",
    "else",
    "escape",
    "except",
    "exists",
    "from",
    "having",
    "ilike",
    "in",
    "intersect",
    "interval",
    "into",
    "is",
    "join",
    "lateral",
    "like",
    "limit",
    "mod",
    "not",
    "offset",
    "on",
    "or",
    "over",
    "regexp",
    "return",
    "returning",
    "rlike",
    "select",
    "set",
    "some",
    "straight_join",
    "then",
    "union",
    "using",
    "value",
    "values",
    "when",
    "where",
    "with",
    "xor",
];

/// Longest of them, in bytes.
const LONGEST: usize = 13;

/// What a bare word means to the digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A name, or a keyword that makes no difference here.
    Name,
    /// A word behind which an operand must follow.
    BeforeOperand,
    /// `IN`.
    In,
    /// `IS` or `NOT`: `NULL` behind it is no value.
    Test,
    /// `VALUES` or `VALUE`.
    Values,
    /// `NULL`, `TRUE`, `FALSE`.
    Constant,
}

/// The meaning of `word`, in any case.
pub(crate) fn meaning(word: &[u8]) -> Meaning {
    let mut lower = [0; LONGEST];
    let Some(lower) = lower.get_mut(..word.len()) else { return Meaning::Name };
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    match &*lower {
        b"in" => Meaning::In,
        b"is" | b"not" => Meaning::Test,
        b"values" | b"value" => Meaning::Values,
        b"null" | b"true" | b"false" => Meaning::Constant,
        lower if BEFORE_OPERAND.binary_search_by(|known| known.as_bytes().cmp(lower)).is_ok() => Meaning::BeforeOperand,
        _ => Meaning::Name,
    }
}

/// Words that a server takes for one and the same, in order, with the one that stands for them. A server's digest text may
/// have any of them, whichever the statement had. Found out by asking MariaDB 10.11 for the digest texts of all its keywords.
const SYNONYMS: &[(&str, &str)] = &[
    ("character", "CHAR"),
    ("current_date", "CURDATE"),
    ("current_time", "CURTIME"),
    ("current_timestamp", "NOW"),
    ("database", "SCHEMA"),
    ("databases", "SCHEMAS"),
    ("dec", "DECIMAL"),
    ("describe", "EXPLAIN"),
    ("distinctrow", "DISTINCT"),
    ("fields", "COLUMNS"),
    ("float4", "FLOAT"),
    ("float8", "DOUBLE"),
    ("int4", "INT"),
    ("int8", "BIGINT"),
    ("integer", "INT"),
    ("localtime", "NOW"),
    ("localtimestamp", "NOW"),
    ("mid", "SUBSTRING"),
    ("regexp", "RLIKE"),
    ("session_user", "USER"),
    ("slave", "REPLICA"),
    ("slaves", "REPLICAS"),
    ("some", "ANY"),
    ("std", "STDDEV_POP"),
    ("stddev", "STDDEV_POP"),
    ("substr", "SUBSTRING"),
    ("system_user", "USER"),
    ("varcharacter", "VARCHAR"),
    ("variance", "VAR_POP"),
];

/// The word that stands for `word` and all that mean the same to a server.
pub(crate) fn synonym(word: &[u8]) -> &[u8] {
    const INTERVAL: &[u8] = b"SQL_TSI_";
    if let Some((head, unit)) = word.split_at_checked(INTERVAL.len())
        && head.eq_ignore_ascii_case(INTERVAL)
        && !unit.is_empty()
    {
        return unit;
    }
    let folded = |known: &str| known.bytes().cmp(word.iter().map(u8::to_ascii_lowercase));
    let found = SYNONYMS.binary_search_by(|(known, _)| folded(known)).ok().and_then(|index| SYNONYMS.get(index));
    found.map_or(word, |(_, one)| one.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_fits() {
        assert!(BEFORE_OPERAND.is_sorted());
        assert_eq!(BEFORE_OPERAND.iter().map(|word| word.len()).max(), Some(LONGEST));
        assert!(BEFORE_OPERAND.iter().all(|word| meaning(word.to_ascii_uppercase().as_bytes()) != Meaning::Name));
        assert_eq!(meaning(b"customer"), Meaning::Name);
        assert!(SYNONYMS.is_sorted());
        assert!(
            SYNONYMS
                .iter()
                .all(|(word, one)| synonym(word.as_bytes()) == one.as_bytes()
                    && synonym(one.as_bytes()) == one.as_bytes())
        );
        assert_eq!(
            (synonym(b"sql_tsi_day"), synonym(b"Session_User"), synonym(b"id")),
            (&b"day"[..], &b"USER"[..], &b"id"[..])
        );
    }
}
