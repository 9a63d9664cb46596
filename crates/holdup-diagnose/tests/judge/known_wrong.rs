//! What is known to be wrong, by recording: it stands in `fixtures/known_wrong.txt`, and nothing else may be.

use std::collections::BTreeSet;

const LIST: &str = include_str!("../../../../fixtures/known_wrong.txt");

/// Lines of a check: a recording, and what is wrong with it.
fn known(check: &str) -> BTreeSet<(String, String)> {
    let lines = LIST.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .filter_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            [of, recording, what] => (of == check).then(|| (recording.to_owned(), what.to_owned())),
            _ => panic!("known_wrong.txt: \"{line}\" is not CHECK RECORDING WHAT"),
        })
        .collect()
}

/// Whether a check is known to see something wrong with a recording.
pub fn has(check: &str, recording: &str) -> bool {
    known(check).iter().any(|(of, _)| of == recording)
}

/// Of what a check saw go wrong, as pairs of a recording and what is wrong with it, all that is not known; and what is known and went
/// right.
pub fn changed(check: &str, wrong: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
    let known = known(check);
    let wrong: BTreeSet<_> = wrong.into_iter().collect();
    let new = wrong.difference(&known).map(|(recording, what)| format!("{recording}: {what}"));
    let right = known.difference(&wrong);
    new.chain(
        right.map(|(recording, what)| format!("known_wrong.txt: {check} {recording} {what} is right now: delete it")),
    )
    .collect()
}
