//! What strangers pasted in public threads, and the five incidents from what each article shows: each
//! case is imported and judged as a user would do it. The outcomes stand in `crates/holdup/tests/pastes.txt`,
//! wrong ones too, so that a change shows whom it serves and whom it fails.
//!
//! To accept a change: `HOLDUP_ACCEPT=1 cargo test -p holdup --bin holdup pastes_of_strangers`.
//! `HOLDUP_PASTES=DIR` judges the cases of another folder, too, and prints their outcomes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Parser;
use holdup_diagnose::diagnose;
use holdup_diagnose::verdict::{Answer, Diagnosis};
use holdup_recording::{CoverageState, Recording};

use super::{Args, run};

/// The confidence from which a wrong name does harm.
const NAMED: f64 = 0.5;

/// The cause of a case that shows a calm system, and of one that none of holdup's causes fits.
const HEALTHY: &str = "healthy";
const OTHER: &str = "other";

/// The time of pastes without a time stamp.
const AT: &str = "2026-11-26T12:00:00Z";

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// A case: the files as a user would give them, and what `case.yaml` says.
struct Case {
    name: String,
    files: Vec<PathBuf>,
    facts: BTreeMap<String, String>,
}

/// What holdup said of files.
#[derive(PartialEq)]
struct Outcome {
    /// The suspects, the likeliest first, with their confidence.
    suspects: Vec<(String, f64)>,
    verdict: String,
    /// Files without anything that holdup knows.
    unread: usize,
    /// Commands that it asks for.
    commands: Vec<String>,
    /// Tools whose outputs were pasted.
    pasted: Vec<String>,
}

impl Case {
    fn read(folder: &Path, name: String) -> Self {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> = entries.filter(|path| !path.ends_with("case.yaml")).collect();
        files.sort();
        let text = std::fs::read_to_string(folder.join("case.yaml")).unwrap();
        let fact = |line: &str| {
            let (key, value) = line.split_once(": ")?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.to_owned());
            Some((key.to_owned(), value))
        };
        Self { name, files, facts: text.lines().filter_map(fact).collect() }
    }

    fn fact(&self, key: &str) -> &str {
        self.facts.get(key).map_or("", String::as_str)
    }

    /// Whether a cause is what the thread settled on.
    fn is_right(&self, cause: &str) -> bool {
        self.fact("cause") == cause || self.fact("also").split(", ").any(|also| also == cause)
    }

    fn judge(&self, files: &[&PathBuf]) -> Outcome {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("r");
        let at = self.facts.get("at").map_or(AT, String::as_str);
        let mut words = vec!["import".to_owned(), format!("--at={at}"), "-o".to_owned(), place.display().to_string()];
        words.extend(files.iter().map(|file| file.display().to_string()));
        let imported = run(Line::try_parse_from(words).unwrap().args);
        if !place.exists() {
            assert!(imported.is_err(), "{}: no recording", self.name);
            return Outcome::unread(files.len());
        }
        let recording = Recording::open(&place).unwrap();
        let coverage = &recording.manifest.coverage;
        let is_unread = |name: &PathBuf| {
            let name = name.file_name().unwrap().to_string_lossy();
            coverage.iter().any(|part| part.state == CoverageState::Absent && part.source == name)
        };
        Outcome {
            unread: files.iter().filter(|file| is_unread(file)).count(),
            pasted: recording.manifest.pasted().map(str::to_owned).collect(),
            ..Outcome::of(&diagnose(&recording, None))
        }
    }
}

impl Outcome {
    fn unread(files: usize) -> Self {
        let (suspects, commands, pasted) = (Vec::new(), Vec::new(), Vec::new());
        Self { suspects, verdict: "not read".to_owned(), unread: files, commands, pasted }
    }

    fn of(diagnosis: &Diagnosis) -> Self {
        let suspects = diagnosis.findings.iter().take(2).map(|f| (f.cause.slug().to_owned(), f.confidence));
        let next = diagnosis.snapshot.iter().flat_map(|snapshot| &snapshot.paste_next);
        let verdict = match diagnosis.verdict {
            Answer::Found => "found",
            Answer::Undecided => "undecided",
            _ => "nothing",
        };
        Self {
            suspects: suspects.collect(),
            verdict: verdict.to_owned(),
            unread: 0,
            commands: next.map(|next| next.command.clone()).collect(),
            pasted: Vec::new(),
        }
    }

    /// The place of the right cause, or how it went wrong.
    fn score(&self, case: &Case) -> &'static str {
        let accused = self.suspects.first().is_some_and(|(_, confidence)| *confidence > NAMED);
        let place = self.suspects.iter().position(|(cause, _)| case.is_right(cause));
        match (case.fact("cause"), place) {
            _ if self.verdict == "not read" => "not read",
            (HEALTHY, _) if accused => "ACCUSED",
            (HEALTHY, _) => "calm",
            (_, Some(0)) => "first",
            (_, Some(_)) if accused => "second, WRONG",
            (_, Some(_)) => "second",
            (_, None) if accused => "WRONG",
            (OTHER, None) => "open",
            (_, None) => "missed",
        }
    }

    /// Whether it asks first for an output that was pasted: by the tool's words, in their order.
    fn asks_again(&self) -> bool {
        let words = |text: &str| {
            let lower = text.to_lowercase();
            let words = lower.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
            format!(" {} ", words.collect::<Vec<_>>().join(" "))
        };
        let asked = self.commands.first().map(|command| words(command)).unwrap_or_default();
        self.pasted.iter().any(|tool| asked.contains(&words(tool)))
    }

    fn line(&self, case: &Case, name: &str) -> String {
        let suspect = |at: usize| {
            self.suspects.get(at).map_or("-".to_owned(), |(cause, confidence)| format!("{cause} {confidence:.2}"))
        };
        let unread = if self.unread > 0 { format!(" | {} not read", self.unread) } else { String::new() };
        let again = if self.asks_again() { " | ASKS AGAIN" } else { "" };
        format!(
            "{name} | {} | {} | {} | {} | {}{unread}{again}\n",
            case.fact("cause"),
            self.score(case),
            suspect(0),
            suspect(1),
            self.verdict
        )
    }
}

/// The cases of a folder, by name.
fn cases(folder: &Path) -> Vec<Case> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut places: Vec<PathBuf> = entries.filter(|path| path.join("case.yaml").exists()).collect();
    places.sort();
    let named = |place: PathBuf| Case::read(&place, place.file_name().unwrap().to_string_lossy().into_owned());
    places.into_iter().map(named).collect()
}

/// The outcomes of the cases of a folder, a line each, and a summary.
fn outcomes(folder: &Path, title: &str) -> String {
    let cases = cases(folder);
    let judged: Vec<(&Case, Outcome)> =
        cases.iter().map(|case| (case, case.judge(&case.files.iter().collect::<Vec<_>>()))).collect();
    let mut text = String::new();
    let mut scores: BTreeMap<&str, usize> = BTreeMap::new();
    for (case, outcome) in &judged {
        text += &outcome.line(case, &format!("{title}/{}", case.name));
        *scores.entry(outcome.score(case)).or_default() += 1;
    }
    let scores: Vec<String> = scores.iter().map(|(score, count)| format!("{count} {score}")).collect();
    let _ = writeln!(text, "{title}: {} cases: {}\n", judged.len(), scores.join(", "));
    text
}

/// The outcomes of an incident: of all its evidence, and of any two pieces of it. A pair names the cause
/// first or second, unless `case.yaml` says why it shows nothing of it: then it accuses no other.
fn incident(case: &Case) -> String {
    let all: Vec<&PathBuf> = case.files.iter().collect();
    let mut text = case.judge(&all).line(case, &format!("incidents/{}", case.name));
    let stem = |file: &PathBuf| file.file_stem().unwrap().to_string_lossy().into_owned();
    let (mut pairs, mut named, mut empty, mut again) = (0, 0, 0, 0);
    for (at, one) in all.iter().enumerate() {
        for other in &all[at + 1..] {
            let outcome = case.judge(&[one, other]);
            let reverse = case.judge(&[other, one]);
            let name = format!("incidents/{}: {} + {}", case.name, stem(one), stem(other));
            assert_eq!(outcome.line(case, &name), reverse.line(case, &name), "the order of files matters");
            again += usize::from(outcome.asks_again());
            text += &outcome.line(case, &name);
            let is_named = outcome.suspects.iter().any(|(cause, _)| case.is_right(cause));
            let why_not = case.fact(&format!("nothing of it in {} + {}", stem(one), stem(other)));
            if is_named || why_not.is_empty() {
                pairs += 1;
                named += usize::from(is_named);
                continue;
            }
            empty += 1;
            let _ = writeln!(text, "  nothing of it: {why_not}");
            let accused = outcome.suspects.first().filter(|(_, confidence)| *confidence > NAMED);
            assert!(accused.is_none(), "{name}: {accused:?} without evidence");
        }
    }
    assert_eq!(
        (named, again),
        (pairs, 0),
        "a pair that shows something of it does not name it, or asks again:\n{text}"
    );
    let _ = writeln!(
        text,
        "incidents/{}: named in {named} of {pairs} pairs that show something of it ({empty} show nothing), asked again in {again}\n",
        case.name
    );
    text
}

/// Lines of `accepted` that name the right cause, and that `found` does not have so any more.
fn lost<'a>(accepted: &'a str, found: &str) -> Vec<&'a str> {
    let is_named = |line: &str| line.contains(" | first | ") || line.contains(" | second");
    let key = |line: &str| line.split(" | ").next().map(str::to_owned);
    let named: Vec<Option<String>> = found.lines().filter(|line| is_named(line)).map(key).collect();
    accepted.lines().filter(|line| is_named(line) && !named.contains(&key(line))).collect()
}

#[test]
fn pastes_of_strangers_are_judged_as_accepted() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut found = outcomes(&tests.join("pastes/learning"), "learning");
    if tests.join("pastes/judged").exists() {
        found += &outcomes(&tests.join("pastes/judged"), "judged");
    }
    found.extend(cases(&tests.join("pastes/incidents")).iter().map(incident));
    if let Some(more) = std::env::var_os("HOLDUP_PASTES") {
        println!("{}", outcomes(Path::new(&more), "more"));
    }
    let accepted_file = tests.join("pastes.txt");
    let accepted = std::fs::read_to_string(&accepted_file).unwrap_or_default();
    assert!(!found.contains("ACCUSED"), "a healthy system is accused:\n{found}");
    if std::env::var_os("HOLDUP_ACCEPT").is_some() {
        std::fs::write(&accepted_file, found).unwrap();
        return;
    }
    let lost = lost(&accepted, &found);
    assert!(lost.is_empty(), "named before, and not now:\n{}", lost.join("\n"));
    let other: Vec<&str> = found.lines().filter(|line| !accepted.lines().any(|known| known == *line)).collect();
    assert!(other.is_empty() && found == accepted, "not as accepted; HOLDUP_ACCEPT=1 accepts:\n{}", other.join("\n"));
}
