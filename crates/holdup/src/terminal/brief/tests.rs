//! The verdict on one screen: what fits, what is cut, and what stands first.

use std::fs;
use std::path::PathBuf;

use holdup_recording::Recording;

use super::*;
use crate::terminal::WIDTH;
use crate::terminal::visible::sent;

/// Lines of a verdict at most: a terminal of 48 lines keeps the command above it and the prompt below it.
const LINES: usize = 40;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whole screens as a person accepted them: together they have every part that a screen can have. The outcomes of all other
/// recordings stand in `fixtures/verdicts.txt`. `HOLDUP_ACCEPT=1` writes the screens again, for review.
const SCREENS: [&str; 8] = [
    "accounts-calm",
    "demo-disturbed",
    "demo-faulty",
    "hidden-queue-accounts",
    "limits-memory",
    "overload-workers",
    "throughput-ceiling-faulty",
    "throughput-ceiling-fixed",
];

/// The recording whose whole verdict is accepted as well.
const VERBOSE: &str = "demo-faulty";

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(&sent(text)).to_string()
}

/// `text` without the causes that it lists and counts: a new cause changes them on every screen.
fn without_lists(text: &str) -> String {
    let mut out = String::new();
    let mut list: Option<&str> = None;
    for line in text.lines() {
        let is_heading = |lead: &&&str| line.starts_with(**lead);
        if list.is_some_and(|lead| !line.is_empty() && line.starts_with(&" ".repeat(lead.len()))) {
            continue;
        }
        list = ["Cleared: ", "Not checked: "].iter().find(is_heading).copied();
        // In the whole verdict each cause has lines of its own, below the heading.
        list = list.or_else(|| matches!(line, "Cleared" | "Not checked").then_some("  "));
        out.push_str(
            &list.map_or_else(|| line.to_owned(), |_| line.split(':').next().unwrap_or("").to_owned() + ": …"),
        );
        out.push('\n');
    }
    out
}

#[test]
fn every_verdict_fits_on_one_screen_and_some_are_accepted_as_a_whole() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verdicts");
    let accept = std::env::var_os("HOLDUP_ACCEPT").is_some();
    let mut wrong = Vec::new();
    let mut compare = |name: &str, text: &str| {
        let (file, text) = (golden.join(name), without_lists(text));
        if accept {
            fs::write(&file, &text).unwrap();
        } else if fs::read_to_string(&file).unwrap_or_default() != text {
            wrong.push(format!("{name}:\n{text}"));
        }
    };
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for entry in fs::read_dir(root().join("fixtures")).unwrap() {
        let dir = entry.unwrap().path();
        if !dir.is_dir() {
            continue;
        }
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        let recording = Recording::open_condensed(&dir).unwrap();
        let diagnosis = holdup_diagnose::diagnose(&recording, None);
        let text = plain(&brief(&diagnosis, Some(&Path::new("fixtures").join(&name))));
        fits(&name, &text, &diagnosis);
        if SCREENS.contains(&name.as_str()) {
            compare(&format!("{name}.txt"), &text);
        }
        if name == VERBOSE {
            compare(&format!("{name}.verbose.txt"), &plain(&crate::terminal::verbose(&diagnosis, false)));
            let shown = without_lists(&text);
            let is_shown = without_lists(&readme).contains(&shown);
            assert!(is_shown, "README.md shows another verdict of fixtures/{name} than\n{shown}");
        }
    }
    assert!(wrong.is_empty(), "not as in {}; HOLDUP_ACCEPT=1 accepts:\n{}", golden.display(), wrong.join("\n"));
    assert_eq!(fs::read_dir(&golden).unwrap().count(), SCREENS.len() + 1, "{} has others", golden.display());
}

#[test]
fn lists_of_causes_count_all_of_them() {
    let recording = Recording::open_condensed(&root().join("fixtures/demo-faulty")).unwrap();
    let d = holdup_diagnose::diagnose(&recording, None);
    let (mut clear, mut open) = (String::new(), String::new());
    cleared(&mut clear, &d);
    not_checked(&mut open, &d);
    assert!(clear.starts_with("Cleared: ") && clear.lines().count() <= SHOWN, "{clear}");
    let words = clear.split_whitespace().collect::<Vec<_>>().join(" ");
    let (listed, more) = words.rsplit_once(" and ").unwrap();
    let more: usize = more.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(listed.split(", ").count() + more, d.cleared.len(), "{clear}");
    let start = format!("Not checked: {} causes, which would need ", d.not_judged.len());
    assert!(open.starts_with(&start) && open.lines().count() <= LINES_EACH, "{open}");
}

#[test]
fn an_objective_that_was_not_judged_is_not_met() {
    let recording = Recording::open_condensed(&root().join("fixtures/accounts-calm")).unwrap();
    let mut diagnosis = holdup_diagnose::diagnose(&recording, None);
    assert!(brief(&diagnosis, None).contains("Objectives met: p75 < 15ms"));
    diagnosis.objectives[0].state = State::NotJudged;
    let open = brief(&diagnosis, None);
    assert!(open.contains("Objectives not judged: p75 < 15ms") && !open.contains("met:"), "{open}");
    diagnosis.objectives.clear();
    assert!(brief(&diagnosis, None).contains("No objective was given"));
}

#[test]
fn a_day_after_the_start_the_date_is_said() {
    let recording = Recording::open_condensed(&root().join("fixtures/demo-faulty")).unwrap();
    let mut diagnosis = holdup_diagnose::diagnose(&recording, None);
    assert!(brief(&diagnosis, None).contains("From 23:13:27 to 23:13:33 UTC"));
    diagnosis.episode = Some(Span { from_s: DAY_S, to_s: DAY_S + 5.0 });
    assert!(brief(&diagnosis, None).contains("From 2026-11-22 23:13:18 to 2026-11-22 23:13:23 UTC"));
}

#[test]
fn a_likeliest_cause_is_not_found_in_either_view() {
    let recording = Recording::open_condensed(&root().join("fixtures/overload-workers")).unwrap();
    let mut diagnosis = holdup_diagnose::diagnose(&recording, None);
    for text in [brief(&diagnosis, None), crate::terminal::verbose(&diagnosis, false)] {
        assert!(plain(&text).starts_with("UNDECIDED"), "{text}");
    }
    // Of two tied causes neither has a confidence.
    diagnosis.culprit = None;
    let tied = plain(&brief(&diagnosis, None));
    assert!(tied.lines().all(|line| line == line.trim_end()), "{tied}");
}

/// One screen, and all that matters in its first half.
fn fits(name: &str, text: &str, d: &Diagnosis) {
    let all: Vec<&str> = text.lines().collect();
    assert!(all.len() <= LINES, "{name}: {} lines\n{text}", all.len());
    let commands: Vec<&str> = d.findings.iter().flat_map(|f| &f.fixes).filter_map(|f| f.command.as_deref()).collect();
    let is_command = |line: &&str| commands.iter().any(|command| line.trim() == one_line(command));
    assert!(all.iter().all(|line| line.chars().count() <= WIDTH || is_command(line)), "{name}: too wide\n{text}");
    let Some(culprit) = d.culprit.filter(|_| d.is_named()) else { return };
    let half = all[..all.len().min(LINES / 2)].join("\n");
    assert!(
        half.starts_with("FOUND") && half.contains(culprit.slug()) && half.contains("What to do"),
        "{name}\n{text}"
    );
    let first = d.findings.iter().find(|f| f.cause == culprit).and_then(|f| f.fixes.first()?.command.as_deref());
    assert!(first.is_none_or(|command| half.contains(&*one_line(command))), "{name}\n{text}");
}
