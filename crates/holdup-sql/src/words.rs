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
    "in",
    "intersect",
    "interval",
    "into",
    "is",
    "join",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_fits() {
        assert!(BEFORE_OPERAND.is_sorted());
        assert_eq!(BEFORE_OPERAND.iter().map(|word| word.len()).max(), Some(LONGEST));
        assert!(BEFORE_OPERAND.iter().all(|word| meaning(word.to_ascii_uppercase().as_bytes()) != Meaning::Name));
        assert_eq!(meaning(b"customer"), Meaning::Name);
    }
}
