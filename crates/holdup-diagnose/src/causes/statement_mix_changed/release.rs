//! A statement that took the place of another: what a release does to the text of an operation.

use std::collections::BTreeSet;

use holdup_recording::words::ms;
use holdup_signals::database::mix::{Mix, Statement};

use crate::change::Fix;

/// A statement that is called this share (0-1) as often as before is gone: other instances of the app may still be of the
/// release before.
const GONE: f64 = 0.1;

/// The statement in its place is called as often within this factor: the operation has the same requests.
const AS_OFTEN: f64 = 1.5;

/// Share (0-1) of the words of both that they have in common: tables, columns and keywords.
const ALIKE: f64 = 0.4;

/// The statement that `new` took the place of, if it ran `times_as_many` requests ago as often; the most alike.
pub(super) fn replaced<'a>(mix: &'a Mix, new: &Statement, times_as_many: f64) -> Option<&'a Statement> {
    let now = mix.rates(new).0 / times_as_many;
    let is_in_place = |old: &Statement| {
        let (rest, before) = mix.rates(old);
        rest <= GONE * before && now <= AS_OFTEN * before && before <= AS_OFTEN * now
    };
    let candidates = mix.statements.iter().filter(|old| is_in_place(old));
    let alike = candidates.map(|old| (alike(&old.text, &new.text), old)).filter(|(share, _)| *share >= ALIKE);
    alike.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, old)| old)
}

/// Share (0-1) of the words of either that are in both.
fn alike(one: &str, other: &str) -> f64 {
    let words = |text: &str| -> BTreeSet<String> {
        let all = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        all.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    };
    let (one, other) = (words(one), words(other));
    one.intersection(&other).count() as f64 / one.union(&other).count().max(1) as f64
}

/// What was there before it, for the evidence.
pub(super) fn told(old: &Statement) -> String {
    format!("; in place of one of {}: {}", ms(old.seconds.1 / old.calls.1.max(1.0) * 1e3), old.text)
}

/// How it is taken back.
pub(super) fn fix(old: &Statement) -> Fix {
    Fix::advice(
        format!(
            "A release changed the statement of an operation: go back to the one before, or make it as cheap as what it replaced: {}",
            old.text
        ),
        None,
    )
}
