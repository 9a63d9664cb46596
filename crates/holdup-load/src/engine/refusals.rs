//! Keeps the database's first refusal of each operation and outcome. A count of `statement_failed`
//! does not explain itself; the server's message does. But messages quote values, so only the text
//! before the first quotation is kept, without its numbers.

use std::collections::BTreeMap;

use super::outcome::Outcome;

/// The first refusal of each operation (its index) and outcome.
pub type Refusals = BTreeMap<(u32, Outcome), String>;

/// Most characters of a message.
const LONGEST: usize = 200;

/// Codes for an application's own messages: `SIGNAL` of MySQL, `RAISE` of PostgreSQL. Those may
/// contain anything.
const OWN_WORDS: [&str; 2] = ["1644", "P0001"];

/// Keeps a refusal, if it is the first of its kind. `statement` is its number within a transaction,
/// from 0.
pub fn note(refusals: &mut Refusals, kind: (u32, Outcome), statement: usize, code: &str, message: &str) {
    refusals.entry(kind).or_insert_with(|| {
        let place = if statement > 0 { format!("statement {statement}: ") } else { String::new() };
        format!("{place}{code} {}", without_values(code, message)).trim_end().to_owned()
    });
}

/// The server's message without values.
fn without_values(code: &str, message: &str) -> String {
    if OWN_WORDS.contains(&code) {
        return String::new();
    }
    let end = message.find(['\'', '"', '`', '«', '„', '“', '{', '\n']).unwrap_or(message.len());
    let (words, rest) = message.split_at(end);
    let mut out = String::new();
    for c in words.chars().filter(|c| !c.is_control()).take(LONGEST) {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('?') {
            out.push('?');
        }
    }
    if !rest.is_empty() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_left_out() {
        for (code, message, expected) in [
            ("1062", "Duplicate entry 'it's a canary' for key 'PRIMARY'", "1062 Duplicate entry …"),
            (
                "22P02",
                "invalid input syntax for type integer: \"canary\"",
                "22P02 invalid input syntax for type integer: …",
            ),
            (
                "11000",
                "E11000 duplicate key error collection: shop.t index: _id_ dup key: { _id: true }",
                "11000 E? duplicate key error collection: shop.t index: _id_ dup key: …",
            ),
            ("22003", "value 4711 is out of range", "22003 value ? is out of range"),
            ("P0001", "canary", "P0001"),
            ("1644", "canary", "1644"),
        ] {
            let mut refusals = Refusals::new();
            note(&mut refusals, (0, Outcome::StatementFailed), 0, code, message);
            assert_eq!(refusals[&(0, Outcome::StatementFailed)], expected);
        }
    }

    #[test]
    fn the_first_of_a_kind_is_kept() {
        let mut refusals = Refusals::new();
        for (operation, statement, code) in [(0, 2, "a"), (0, 0, "b"), (1, 0, "c")] {
            note(&mut refusals, (operation, Outcome::StatementFailed), statement, code, "no");
        }
        assert_eq!(refusals.into_values().collect::<Vec<_>>(), ["statement 2: a no", "c no"]);
    }
}
