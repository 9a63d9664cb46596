//! What a set of runs leaves behind: `results.json`, from which the report can be made again, and raw texts cut to
//! size. It holds no path, host or person's name of the machine.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::lateness::Arrivals;
use crate::responder::Seen;
use crate::tools::Reported;

/// A set of runs.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Results {
    /// Day of the first.
    pub date: String,
    /// The machine.
    pub host: Host,
    /// What makes these figures no measurement, if something does.
    pub caveats: Vec<String>,
    /// Versions of tools and servers.
    pub versions: BTreeMap<String, String>,
    /// Tools that are not here, and why.
    pub absent: BTreeMap<String, String>,
    /// Scenarios in their order, with what they are about.
    pub scenarios: Vec<About>,
    /// Every run, repeated ones too.
    pub runs: Vec<Run>,
}

/// A scenario as reports need it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// One line.
    pub about: String,
    /// Label that ratios are held against.
    pub base: String,
    /// Length of a run.
    pub seconds: u32,
    /// Requests a second, if there is a rate.
    pub rate: Option<u32>,
    /// Connections.
    pub connections: u32,
    /// How long the server stops, if it does.
    pub stop_seconds: Option<f64>,
}

/// One run of one tool.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Run {
    /// The scenario's name.
    pub scenario: String,
    /// The entrant's label.
    pub entrant: String,
    /// Round, from 1.
    pub round: u32,
    /// Its place in the round's order, from 1.
    pub place: u32,
    /// Repetition, from 1: more than 1 after runs that were disturbed.
    pub attempt: u32,
    /// Share of the machine's CPU time that was stolen meanwhile.
    pub stolen_ratio: f64,
    /// Whether that was too much.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disturbed: bool,
    /// The command, as run from the root of the checkout.
    pub command: String,
    /// The server's; empty after the entrant's first run, whose command it repeats.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server_command: String,
    /// Why there are no figures, if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// From the tool's start to its end.
    pub wall_seconds: f64,
    /// Completed requests a second: of the load's length in the closed model, which ends when it is over, else of the
    /// time from the tool's start to its end, because a tool that can't keep a rate goes on for longer.
    pub answers_per_second: f64,
    /// CPU time of the tool's process tree.
    pub user_seconds: f64,
    /// The same in the kernel.
    pub system_seconds: f64,
    /// Most resident memory.
    pub resident_most_bytes: u64,
    /// Resident memory 10 s after the start, if it ran so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_10s_bytes: Option<u64>,
    /// Resident memory when last seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_last_bytes: Option<u64>,
    /// What the tool says.
    pub reported: Reported,
    /// What the responder saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// CPU time of the server.
    pub server_cpu_seconds: f64,
    /// Arrivals held against the schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
}

impl Run {
    /// CPU time of the client for each completed request, microseconds.
    pub fn cpu_us(&self) -> Option<f64> {
        self.each(self.user_seconds + self.system_seconds)
    }

    /// The same of the server.
    pub fn server_cpu_us(&self) -> Option<f64> {
        self.each(self.server_cpu_seconds)
    }

    /// Requests that the responder saw over those that the tool says of (answered, failed), less one. Both stop counting
    /// within a request a connection of each other; more than that is somebody's error.
    pub fn unsaid_ratio(&self) -> Option<f64> {
        let said = self.reported.completed + self.reported.errors;
        let seen = self.seen.as_ref()?.requests;
        (self.failed.is_none() && said > 0).then(|| seen as f64 / said as f64 - 1.0)
    }

    fn each(&self, seconds: f64) -> Option<f64> {
        (self.failed.is_none() && self.reported.completed > 0).then(|| seconds * 1e6 / self.reported.completed as f64)
    }
}

impl Results {
    /// Runs of an entrant that count: of each round the last attempt, unless it failed.
    pub fn of(&self, scenario: &str, entrant: &str) -> Vec<&Run> {
        let mut rounds: BTreeMap<u32, &Run> = BTreeMap::new();
        let ours = self.runs.iter().filter(|run| run.scenario == scenario && run.entrant == entrant);
        for run in ours.filter(|run| run.failed.is_none()) {
            rounds.insert(run.round, run);
        }
        rounds.into_values().collect()
    }

    /// Entrants of a scenario, in the order of its first round.
    pub fn entrants(&self, scenario: &str) -> Vec<&str> {
        let mut labels = Vec::new();
        for run in self.runs.iter().filter(|run| run.scenario == scenario) {
            if !labels.contains(&run.entrant.as_str()) {
                labels.push(run.entrant.as_str());
            }
        }
        labels
    }

    /// Reads `results.json` of a folder.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("results.json");
        let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is not what this version writes", path.display()))
    }

    /// Writes it: what is said once with line breaks, each run on a line of its own.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let mut text = Vec::new();
        let runs = &self.runs;
        let head = serde_json::to_value(Self {
            date: self.date.clone(),
            host: self.host.clone(),
            caveats: self.caveats.clone(),
            versions: self.versions.clone(),
            absent: self.absent.clone(),
            scenarios: self.scenarios.clone(),
            runs: Vec::new(),
        })?;
        let head = serde_json::to_string_pretty(&head)?;
        // The empty list of runs is the last thing in it.
        let head = head.trim_end().trim_end_matches('}').trim_end().trim_end_matches("[]");
        writeln!(text, "{head}[")?;
        for (run, n) in runs.iter().zip(1..) {
            writeln!(text, "{}{}", serde_json::to_string(run)?, if n < runs.len() { "," } else { "" })?;
        }
        writeln!(text, "]}}")?;
        let path = folder.join("results.json");
        fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
    }
}

/// Takes what belongs to this machine out of texts.
#[derive(Clone, Debug)]
pub struct Cleaner {
    root: String,
    home: Option<String>,
}

impl Cleaner {
    /// For a checkout in `root`.
    pub fn new(root: &Path) -> Self {
        let home = std::env::var("HOME").ok().filter(|home| home.len() > 1);
        Self { root: root.display().to_string(), home }
    }

    /// The text without this machine's paths.
    pub fn clean(&self, text: &str) -> String {
        let text = text.replace(&format!("{}/", self.root), "").replace(&self.root, ".");
        self.home.as_ref().map_or(text.clone(), |home| text.replace(home, "~"))
    }
}

/// Cuts a text to `most` bytes: its beginning and its end are kept. JSON loses its indentation; carriage returns, which
/// draw progress, end lines.
pub fn cut(text: &str, most: usize) -> String {
    let json = serde_json::from_str::<serde_json::Value>(text).map(|value| value.to_string());
    let text = json.as_deref().unwrap_or(text);
    let lines: Vec<&str> = text.split(['\n', '\r']).map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let text = lines.join("\n");
    if text.len() <= most {
        return text;
    }
    let floor = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (head, tail) = (floor(most * 2 / 3), floor(text.len() - most / 3));
    format!("{}\n[{} bytes left out]\n{}", &text[..head], tail - head, &text[tail..])
}

/// Where the raw text of an entrant goes: all its rounds in one file.
pub fn raw_file(folder: &Path, scenario: &str, label: &str) -> PathBuf {
    let name: String = label.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let name = name.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    folder.join("raw").join(format!("{scenario}-{name}.txt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(round: u32, attempt: u32, completed: u64) -> Run {
        let reported = Reported { completed, ..Reported::default() };
        Run { scenario: "s".into(), entrant: "e".into(), round, attempt, reported, user_seconds: 1.0, ..Run::default() }
    }

    #[test]
    fn written_and_read_again() {
        let dir = tempfile::tempdir().unwrap();
        for runs in [vec![], vec![run(1, 1, 10)], vec![run(1, 1, 10), run(1, 2, 20), run(2, 1, 30)]] {
            let count = runs.len();
            let results = Results { date: "2026-01-31".into(), runs, ..Results::default() };
            results.write(dir.path()).unwrap();
            let again = Results::read(dir.path()).unwrap();
            assert_eq!((again.date.as_str(), again.runs.len()), ("2026-01-31", count));
        }
    }

    #[test]
    fn the_last_attempt_of_a_round_counts() {
        let failed = Run { failed: Some("ended".into()), ..run(2, 2, 0) };
        let results = Results { runs: vec![run(1, 1, 10), run(1, 2, 20), run(2, 1, 30), failed], ..Results::default() };
        let completed: Vec<u64> = results.of("s", "e").iter().map(|run| run.reported.completed).collect();
        assert_eq!(completed, [20, 30]);
        assert_eq!(results.runs[0].cpu_us(), Some(100_000.0));
        assert_eq!(results.entrants("s"), ["e"]);
    }

    #[test]
    fn texts_are_cut_and_clean() {
        assert_eq!(cut("a\r\n\nb  \n", 100), "a\nb");
        assert_eq!(cut("{\n  \"b\": 1,\n  \"a\": 2\n}\n", 100), "{\"b\":1,\"a\":2}");
        let short = cut(&"é".repeat(1000), 90);
        assert!(short.contains("bytes left out") && short.len() < 130, "{short}");
        let cleaner = Cleaner { root: "/r/main".into(), home: Some("/h/x".into()) };
        assert_eq!(cleaner.clean("/r/main/target/a in /r/main, /h/x/b"), "target/a in ., ~/b");
        assert!(
            raw_file(Path::new("d"), "freeze", "oha --latency-correction")
                .ends_with("freeze-oha-latency-correction.txt")
        );
    }
}
