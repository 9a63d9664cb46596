//! Which recordings each rule is tested on: `fixtures/by_rule.txt`. A rule needs two recordings of which it is the root, and one
//! of another root with which it could be confused. The list is made of what is so of each fixture and of the rules' accepted
//! words (`fixtures/verdicts.txt`). To accept a change:
//! `HOLDUP_ACCEPT=1 cargo xtask test -p holdup-diagnose each_rule_has_its_recordings_listed`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use holdup_diagnose::Cause;

use crate::fixtures;
use crate::truth::Truth;

const VERDICTS: &str = include_str!("../../../../fixtures/verdicts.txt");

/// Recordings of which a rule should be the root.
const ROOTS: usize = 2;

/// The head of the list; the figures follow.
const HEAD: &str = "\
# Which recordings each rule is tested on. A test writes this list (crates/holdup-diagnose/tests/judge/by_rule.rs).
#
# roots: recordings of which the rule is the root. beside: recordings with another root in which it is found. cleared: recordings
# with another root in which it is cleared. A rule should have two roots or more, and at least one of the others.
";

/// By fixture: the word of each rule.
type Words = BTreeMap<&'static str, BTreeMap<&'static str, &'static str>>;

fn words() -> Words {
    let (mut all, mut of) = (BTreeMap::new(), "");
    for line in VERDICTS.lines() {
        if !line.starts_with(' ') {
            of = line.split_once(':').expect("a fixture has a colon").0;
        } else if let Some((rule, word)) = line.strip_prefix("    ").and_then(|line| line.split_once(' ')) {
            all.entry(of).or_insert_with(BTreeMap::new).insert(rule, word.trim());
        }
    }
    all
}

/// The recordings of one rule.
struct Recordings {
    roots: Vec<String>,
    beside: usize,
    cleared: usize,
}

fn recordings(cause: &str, truths: &[(String, Truth)], words: &Words) -> Recordings {
    let mut of = Recordings { roots: Vec::new(), beside: 0, cleared: 0 };
    for (name, truth) in truths {
        match truth {
            Truth::Broken(root) if root == cause => of.roots.push(name.clone()),
            Truth::Broken(_) => match words.get(name.as_str()).and_then(|of| of.get(cause)) {
                Some(&"Found") => of.beside += 1,
                Some(&"Cleared") => of.cleared += 1,
                _ => {}
            },
            Truth::Healthy | Truth::Unknown => {}
        }
    }
    of
}

#[test]
fn each_rule_has_its_recordings_listed() {
    let (truths, words) = (fixtures::truths(), words());
    let of = |cause| (cause, recordings(cause, &truths, &words));
    let all: Vec<(&str, Recordings)> = Cause::ALL.iter().map(|cause| of(cause.slug())).collect();
    let have = |roots: usize| all.iter().filter(|(_, of)| of.roots.len().min(ROOTS) == roots).count();
    let confusable = all.iter().filter(|(_, of)| of.beside + of.cleared > 0).count();
    let mut list = HEAD.to_owned();
    let _ = writeln!(
        list,
        "# {} rules: {} have two roots or more, {} have one, {} have none; {confusable} have a recording of another root.\n",
        all.len(),
        have(2),
        have(1),
        have(0)
    );
    let _ = writeln!(list, "{:<28}{:>5} {:>7} {:>8}  of which it is the root", "rule", "roots", "beside", "cleared");
    for (cause, of) in &all {
        let line =
            format!("{cause:<28}{:>5} {:>7} {:>8}  {}", of.roots.len(), of.beside, of.cleared, of.roots.join(", "));
        let _ = writeln!(list, "{}", line.trim_end());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/by_rule.txt");
    if std::env::var_os("HOLDUP_ACCEPT").is_some() {
        std::fs::write(&path, &list).expect("the list can be written");
    }
    let accepted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(list == accepted, "fixtures/by_rule.txt should be:\n{list}");
}
