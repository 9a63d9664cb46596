//! The ordinary service: a shop in Flask on PostgreSQL that tells nothing of itself, with faults that are there from the
//! first second. Each is recorded twice: while holdup makes the load, and while it only watches another tool's. Host,
//! ports, processes and PostgreSQL are watched, nothing else.

mod cases;
mod client;
mod stage;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use holdup_diagnose::verdict::Answer as Verdict;
use holdup_recording::Recording;
use serde::{Deserialize, Serialize};

use crate::judge;
use cases::{CASES, Case};
use stage::Stage;

/// Where the load of a case comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// `holdup run`.
    Own,
    /// Another tool, while `holdup watch` records.
    Foreign,
}

impl Source {
    const ALL: [Self; 2] = [Self::Own, Self::Foreign];

    fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Foreign => "watched",
        }
    }
}

/// Name of the file that says what clients felt, beside the recording.
const FELT: &str = "felt.json";

/// What the client of a case measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Felt {
    /// Median response time, milliseconds.
    pub p50_ms: f64,
}

/// How a verdict stands beside the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Right,
    Wrong,
    Undecided,
    Healthy,
}

/// Plays what is missing of the cases, all or the one that is named, and prints how holdup judges them.
pub fn run(root: &Path, holdup: &Path, dir: &Path, only: Option<&str>) -> Result<()> {
    let chosen: Vec<&Case> = CASES.iter().filter(|case| only.is_none_or(|name| name == case.name)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        bail!("no case is called so; the cases are: {}", names.join(", "));
    }
    let mut stage = None;
    let mut lines = Vec::new();
    for case in chosen {
        for source in Source::ALL {
            let place = dir.join(case.name).join(source.name());
            if !place.join(FELT).is_file() {
                let stage = match &mut stage {
                    Some(stage) => stage,
                    none => none.insert(Stage::start(root, holdup)?),
                };
                stage.play(case, source, &place).with_context(|| format!("{}, {}", case.name, source.name()))?;
            }
            if source == Source::ALL[0] {
                println!("{}: {}", case.name, case.mechanism);
            }
            let line = Line::read(case, source, &place)?;
            print!("{}", line.text());
            lines.push(line);
        }
    }
    print!("{}", sum(&lines));
    Ok(())
}

/// A case as it was judged.
struct Line {
    is_fault: bool,
    source: Source,
    felt: Felt,
    mark: Mark,
    named: Option<String>,
    headline: String,
    place: PathBuf,
}

impl Line {
    fn read(case: &Case, source: Source, place: &Path) -> Result<Self> {
        let text = fs::read_to_string(place.join(FELT)).context("the case has no measurement of its client")?;
        let recording = Recording::open(place).with_context(|| format!("failed to open {}", place.display()))?;
        let diagnosis = holdup_diagnose::diagnose(&recording, None);
        let answer = judge::answer(&diagnosis);
        let named = answer.culprit().map(str::to_owned);
        Ok(Self {
            is_fault: !case.right.is_empty(),
            source,
            felt: serde_json::from_str(&text).context("the case's measurement is not one of this bench")?,
            mark: mark(case.right, named.as_deref(), answer.verdict),
            named,
            headline: diagnosis.headline.lines().next().unwrap_or_default().to_owned(),
            place: place.to_owned(),
        })
    }

    fn text(&self) -> String {
        let mark = format!("{:?}", self.mark).to_lowercase();
        let mut text = format!("  {:<8} {:<10} p50 {:.1} ms", self.source.name(), mark, self.felt.p50_ms);
        if let Some(named) = &self.named {
            let _ = write!(text, "  {named}");
        }
        let _ = writeln!(text, "\n    {}\n    {}", self.headline, self.place.display());
        text
    }
}

fn mark(right: &[&str], named: Option<&str>, verdict: Verdict) -> Mark {
    match (named, verdict) {
        (Some(named), _) if right.contains(&named) => Mark::Right,
        (Some(_), _) => Mark::Wrong,
        (None, _) if right.is_empty() => Mark::Right,
        (None, Verdict::Healthy) => Mark::Healthy,
        (None, _) => Mark::Undecided,
    }
}

/// How many of the faults were named, and what became of the others.
fn sum(lines: &[Line]) -> String {
    let count = |mark: Mark| lines.iter().filter(|line| line.is_fault && line.mark == mark).count();
    let faults = lines.iter().filter(|line| line.is_fault).count();
    let accused = lines.iter().filter(|line| !line.is_fault && line.mark == Mark::Wrong).count();
    format!(
        "{} of {faults} right, {} wrong, {} undecided, {} healthy; {accused} of {} accused without a fault\n",
        count(Mark::Right),
        count(Mark::Wrong),
        count(Mark::Undecided),
        count(Mark::Healthy),
        lines.len() - faults
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_healthy_service_is_right_until_something_is_named() {
        assert_eq!(mark(&[], None, Verdict::Healthy), Mark::Right);
        assert_eq!(mark(&[], Some("lock_contention"), Verdict::Found), Mark::Wrong);
        assert_eq!(mark(&["missing_index"], None, Verdict::Healthy), Mark::Healthy);
        assert_eq!(mark(&["missing_index"], None, Verdict::Undecided), Mark::Undecided);
        assert_eq!(mark(&["missing_index"], Some("missing_index"), Verdict::Found), Mark::Right);
        assert_eq!(mark(&["missing_index"], Some("cpu_saturated"), Verdict::Found), Mark::Wrong);
    }

    #[test]
    fn only_faults_count_in_the_sum() {
        let line = |is_fault, mark| Line {
            is_fault,
            source: Source::Own,
            felt: Felt { p50_ms: 1.0 },
            mark,
            named: None,
            headline: String::new(),
            place: PathBuf::new(),
        };
        let lines = [line(true, Mark::Right), line(true, Mark::Wrong), line(false, Mark::Right)];
        assert_eq!(sum(&lines), "1 of 2 right, 1 wrong, 0 undecided, 0 healthy; 0 of 1 accused without a fault\n");
    }

    #[test]
    fn cases_are_named_once_and_by_causes_that_holdup_explains() {
        let slugs: Vec<&str> = holdup_diagnose::explain::pages().iter().map(|page| page.cause.slug()).collect();
        for (place, case) in CASES.iter().enumerate() {
            assert!(CASES[..place].iter().all(|other| other.name != case.name), "{}", case.name);
            assert!(case.right.iter().all(|cause| slugs.contains(cause)), "{}", case.name);
            assert!(case.mechanism.ends_with('.') && case.rate > 0.0 && !case.mix.is_empty(), "{}", case.name);
        }
        assert_eq!(CASES.iter().filter(|case| !case.right.is_empty()).count(), 8);
    }
}
