//! The load generators: one file each says how it is asked for a load and how its report is read. A tool is one file
//! and one line in [`ALL`]. Nothing here judges: what a tool says is taken as it says it.

mod ab;
mod floor;
mod h2load;
mod hey;
pub mod holdup;
pub mod install;
mod k6;
mod oha;
mod text;
mod vegeta;
mod wrk;

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};

/// What is kept of a tool's report, where that is not simply all that it printed.
pub const REPORT: &str = "report";

/// A load generator.
#[derive(Debug)]
pub struct Tool {
    /// Its name on command lines and in reports.
    pub name: &'static str,
    /// Where it comes from.
    pub source: install::Source,
    /// Whether it can keep a rate; one that can't gets the closed model in its place.
    pub paces: bool,
    /// Its arguments for a load. May write files into `ask.scratch`.
    pub arguments: fn(&Ask) -> Result<Vec<String>>,
    /// Reads its report.
    pub read: fn(&Output) -> Result<Reported>,
}

/// All of them, in the order in which reports list them.
pub const ALL: [&Tool; 9] = [
    &floor::TOOL,
    &holdup::TOOL,
    &wrk::TOOL,
    &ab::TOOL,
    &oha::TOOL,
    &hey::TOOL,
    &vegeta::TOOL,
    &k6::TOOL,
    &h2load::TOOL,
];

/// The tool of that name.
pub fn named(name: &str) -> Option<&'static Tool> {
    ALL.into_iter().find(|tool| tool.name == name)
}

/// What load is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// Requests a second; None for the closed model (each connection sends when its answer has come).
    pub rate: Option<u32>,
    /// Connections.
    pub connections: u32,
    /// Length of the run.
    pub seconds: u32,
}

/// What a tool's command line is made from.
#[derive(Debug)]
pub struct Ask<'a> {
    /// The load.
    pub demand: Demand,
    /// Where to.
    pub url: &'a str,
    /// The port in `url`.
    pub port: u16,
    /// What this entrant is given beside that.
    pub flags: &'a [String],
    /// A folder for its files, empty when it starts.
    pub scratch: &'a Path,
}

impl Ask<'_> {
    /// A file in `scratch`, as a word of a command line.
    pub fn file(&self, name: &str) -> String {
        self.scratch.join(name).display().to_string()
    }

    /// These words and then the entrant's flags.
    pub fn with_flags<S: Into<String>>(&self, words: impl IntoIterator<Item = S>) -> Vec<String> {
        words.into_iter().map(Into::into).chain(self.flags.iter().cloned()).collect()
    }
}

/// What a tool left behind.
#[derive(Debug)]
pub struct Output {
    /// Its standard output.
    pub stdout: String,
    /// Its folder. A file [`REPORT`] that is written there is kept in place of what it printed.
    pub scratch: PathBuf,
    /// The program, for tools that make their report in a second step.
    pub program: String,
}

/// What a tool says. Times in milliseconds; None where it doesn't say.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Reported {
    /// Requests that were answered well.
    pub completed: u64,
    /// Requests that failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// Requests that were due and never sent.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// Median of what it calls latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<f64>,
    /// 99th percentile of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ms: Option<f64>,
    /// 99.9th percentile of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p999_ms: Option<f64>,
    /// Greatest of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<f64>,
    /// 99th percentile of its own delay, if it reports that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_lag_p99_ms: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
fn tests_output() -> Output {
    Output { stdout: String::new(), scratch: PathBuf::new(), program: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for tool in ALL {
            assert_eq!(ALL.iter().filter(|other| other.name == tool.name).count(), 1, "{}", tool.name);
            assert!(named(tool.name).is_some());
        }
        assert!(named("wrk2").is_none());
    }
}
