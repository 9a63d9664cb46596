//! The few words whose meaning the digest depends on. It takes every other word for a name.

/// The meaning of a bare word to the digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A name, or a keyword that makes no difference here.
    Name,
    /// A word that an operand must follow.
    BeforeOperand,
    /// `IN`.
    In,
    /// `IS` or `NOT`: a `NULL` behind it is not a value.
    Test,
    /// `VALUES` or `VALUE`.
    Values,
    /// `NULL`, `TRUE`, `FALSE`.
    Constant,
}

/// The words with a meaning, in order. Behind a word that wants an operand, a sign belongs to the
/// number, and a parenthesis does not begin a call.
const WORDS: &[(&str, Meaning)] = &[
    ("all", Meaning::BeforeOperand),
    ("and", Meaning::BeforeOperand),
    ("any", Meaning::BeforeOperand),
    ("as", Meaning::BeforeOperand),
    ("between", Meaning::BeforeOperand),
    ("binary", Meaning::BeforeOperand),
    ("by", Meaning::BeforeOperand),
    ("case", Meaning::BeforeOperand),
    ("distinct", Meaning::BeforeOperand),
    ("div", Meaning::BeforeOperand),
    ("else", Meaning::BeforeOperand),
    ("escape", Meaning::BeforeOperand),
    ("except", Meaning::BeforeOperand),
    ("exists", Meaning::BeforeOperand),
    ("false", Meaning::Constant),
    ("from", Meaning::BeforeOperand),
    ("having", Meaning::BeforeOperand),
    ("ilike", Meaning::BeforeOperand),
    ("in", Meaning::In),
    ("intersect", Meaning::BeforeOperand),
    ("interval", Meaning::BeforeOperand),
    ("into", Meaning::BeforeOperand),
    ("is", Meaning::Test),
    ("join", Meaning::BeforeOperand),
    ("lateral", Meaning::BeforeOperand),
    ("like", Meaning::BeforeOperand),
    ("limit", Meaning::BeforeOperand),
    ("mod", Meaning::BeforeOperand),
    ("not", Meaning::Test),
    ("null", Meaning::Constant),
    ("offset", Meaning::BeforeOperand),
    ("on", Meaning::BeforeOperand),
    ("or", Meaning::BeforeOperand),
    ("over", Meaning::BeforeOperand),
    ("regexp", Meaning::BeforeOperand),
    ("return", Meaning::BeforeOperand),
    ("returning", Meaning::BeforeOperand),
    ("rlike", Meaning::BeforeOperand),
    ("select", Meaning::BeforeOperand),
    ("set", Meaning::BeforeOperand),
    ("some", Meaning::BeforeOperand),
    ("straight_join", Meaning::BeforeOperand),
    ("then", Meaning::BeforeOperand),
    ("true", Meaning::Constant),
    ("union", Meaning::BeforeOperand),
    ("using", Meaning::BeforeOperand),
    ("value", Meaning::Values),
    ("values", Meaning::Values),
    ("when", Meaning::BeforeOperand),
    ("where", Meaning::BeforeOperand),
    ("with", Meaning::BeforeOperand),
    ("xor", Meaning::BeforeOperand),
];

/// Start of the words of each letter in [`WORDS`]; the last entry is the end.
const BY_LETTER: [usize; 27] = {
    let mut begins = [0; 27];
    let mut word = 0;
    while word < WORDS.len() {
        let mut later = (WORDS[word].0.as_bytes()[0] - b'a') as usize + 1;
        while later < begins.len() {
            begins[later] += 1;
            later += 1;
        }
        word += 1;
    }
    begins
};

/// The meaning of `word`, in any case. Called for every word of every statement.
pub(crate) fn meaning(word: &[u8]) -> Meaning {
    let letter = word.first().map_or(0, |first| usize::from(first.to_ascii_lowercase().wrapping_sub(b'a')));
    let (Some(from), Some(to)) = (BY_LETTER.get(letter), BY_LETTER.get(letter + 1)) else { return Meaning::Name };
    let of_letter = WORDS.get(*from..*to).unwrap_or_default();
    let found = of_letter.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(word));
    found.map_or(Meaning::Name, |(_, meaning)| *meaning)
}

/// Words that a server takes for the same, in order, each with the one that replaces it. A server's
/// digest text may have any of them, whichever the statement had. Found by asking MariaDB 10.11 for
/// the digest texts of all its keywords.
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

/// The word that replaces `word` and all its synonyms.
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
    fn the_list_is_sorted_and_every_word_is_found() {
        assert!(WORDS.is_sorted_by_key(|(word, _)| word));
        assert!(WORDS.iter().all(|(word, known)| meaning(word.to_ascii_uppercase().as_bytes()) == *known));
        assert_eq!([meaning(b""), meaning(b"_is"), meaning(b"{"), meaning(b"z")], [Meaning::Name; 4]);
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
