//! The answer as data: what the terminal, the report and `--json` show
//! (`docs/schema/verdict.schema.json`). `judge` computes it.

mod fleet;
mod outline;

use crate::cause::Cause;
use crate::change::Fix;
use holdup_recording::Manifest;
use holdup_recording::manifest::{Coverage, CoverageState};
use holdup_recording::objective::Stretch;
pub use holdup_recording::objective::{State, Unit};
use serde::{Deserialize, Serialize};

pub use self::fleet::{ClockReport, FleetReport, HostReport, ShardsReport};
pub use self::outline::{
    AgainstReport, ChainLink, DearReport, DebtReport, EpisodeReport, LevelReport, ReadReport, SnapshotReport,
    SplitReport, TableDebtReport,
};
pub use crate::causes::Role;
pub use crate::counters::{CountersEpisode, CountersReport, CountersSuspect, CountersVote, Figure, FoundBy};
pub use crate::finding::{Finding, HarmShare};
pub use crate::gains::{CriticalPathReport, PathPartReport};
use crate::ledger::LedgerRow;
pub use crate::ledger::accounts::{AccountsReport, RequestReport, WaitReport};
pub use crate::load::{
    LoadReport, OperationReport, Percentiles, ReasonReport, SliceReport, ValidityReport, WarmUpReport,
};
pub use crate::next_command::PasteNextReport;
use crate::search::SearchReport;
pub use crate::services::ServiceRow;
pub use crate::stages::StageRow;
pub(crate) use holdup_recording::words::round;
use holdup_signals::client::objectives::{self, Objective};
pub use holdup_signals::evidence::{Evidence, Span};

/// holdup's answer about one recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// `found`, `healthy` or `undecided`.
    pub verdict: Answer,
    /// Slug of the root cause, if it is named: with a confidence of at least 0.5. Of an undecided verdict the
    /// first root in `findings` is the likeliest.
    pub culprit: Option<Cause>,
    /// Slug of what slowed requests down although every objective was met.
    pub minor: Option<Cause>,
    /// One sentence.
    pub headline: String,
    /// When the recording began, RFC 3339: the origin of all seconds.
    #[serde(default)]
    pub started_at: String,
    /// The symptom in words; none if there is none.
    #[serde(alias = "complaint")]
    pub symptom: Option<String>,
    /// The episode that is judged.
    pub episode: Option<Span>,
    /// The baseline recording, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<AgainstReport>,
    /// All episodes, if there are several: causes are judged in the worst, which is `episode`.
    #[serde(default)]
    pub episodes: Vec<EpisodeReport>,
    /// Work that a database still has to do at the end, which a verification has to wait for; none
    /// without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debt: Option<DebtReport>,
    /// The links between the causes found: contributors first, then the root, then its
    /// consequences; empty for a single cause.
    #[serde(default)]
    pub chain: Vec<ChainLink>,
    /// Causes found, root first.
    pub findings: Vec<Finding>,
    /// Causes ruled out, with the evidence.
    pub cleared: Vec<Cleared>,
    /// Causes that could not be judged, with what to record for them.
    pub not_judged: Vec<NotJudged>,
    /// Causes that the recording cannot tell apart, and the one measurement that could; none if
    /// there is nothing to split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitReport>,
    /// What the outputs of one instant settle, and what to paste next; none if a source measured
    /// response time, or nothing stands out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotReport>,
    /// The level of response time, if nothing says whether it is good: no change, no baseline recording
    /// and no objective; none otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<LevelReport>,
    /// What makes up most of the remaining time and will bind next. None if nothing stands out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Finding>,
    /// Settings that deviate from the vendors' advice, and whether they matter here.
    #[serde(default)]
    pub notes: Vec<Note>,
    /// The host's load average, explained; none if it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_load: Option<HostLoad>,
    /// What host and servers did meanwhile, for comparison with another run.
    #[serde(default)]
    pub indicators: Vec<Reading>,
    /// Where the milliseconds went.
    pub ledger: Vec<LedgerRow>,
    /// Single requests with both sides joined; none if no request can be followed by a trace id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounts: Option<AccountsReport>,
    /// The services of traced requests, those whose own time grew most first; empty without spans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceRow>,
    /// The stages of the pipeline in the last minute; empty without figures of any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageRow>,
    /// The critical paths of traced requests, and what a fix of each part gives back; empty without
    /// spans of requests that wait for something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub critical_path: Vec<CriticalPathReport>,
    /// What counters alone show; none without counters, or if nothing was slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_counters: Option<CountersReport>,
    /// The outcome of each objective, in the scenario's order.
    #[serde(default)]
    pub objectives: Vec<ObjectiveReport>,
    /// The result of a search for the knee; none if the load was not a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchReport>,
    /// What the generator did and saw.
    pub load: LoadReport,
    /// What each source could provide.
    pub coverage: Vec<CoverageEntry>,
    /// The hosts, if several were recorded; none for a recording of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetReport>,
    /// The stretch that was read in full; none if that is all of the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<ReadReport>,
}

/// The confidence (0-1) from which a culprit is named as found. Below it the verdict is undecided,
/// and the first root is only the likeliest.
pub const NAMED: f64 = 0.5;

impl Diagnosis {
    /// Without a culprit that is not sure enough to be named: then the verdict is undecided.
    pub(crate) fn named(mut self) -> Self {
        if self.verdict == Answer::Found && self.likeliest().is_some_and(|culprit| culprit.confidence < NAMED) {
            (self.verdict, self.culprit) = (Answer::Undecided, None);
        }
        self
    }

    /// Whether a culprit is named.
    pub fn is_named(&self) -> bool {
        self.verdict == Answer::Found
    }

    /// The likeliest cause, named or not; none of a healthy service.
    pub fn likeliest(&self) -> Option<&Finding> {
        let is_root = |f: &&Finding| match self.culprit {
            Some(culprit) => f.cause == culprit,
            None => f.role == Role::Root,
        };
        self.findings.iter().find(is_root).filter(|_| self.verdict != Answer::Healthy)
    }

    /// What kept this run from measuring the service: a machine without its CPUs, or a generator
    /// that could not keep up. None if nothing did.
    pub fn spoiled(&self) -> Option<String> {
        let limited = self.load.generator_limited.then(|| {
            let reason = self.load.validity.reasons.first().map(|r| r.text.clone());
            reason.unwrap_or_else(|| "the load generator was the limit".to_owned())
        });
        self.load.disturbed.clone().or(limited)
    }
}

/// The kind of answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// A culprit is named.
    Found,
    /// No symptom.
    Healthy,
    /// Something is wrong, but the evidence does not suffice for a name.
    Undecided,
}

/// A setting that deviates from a vendor's advice. By itself it does not count as a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// The check, e.g. `readahead`, `transparent_hugepage`.
    pub check: String,
    /// The vendor, e.g. `MongoDB`.
    pub vendor: String,
    /// Its subject, e.g. a device, a mount, a process.
    pub subject: String,
    /// The present setting.
    pub observed: String,
    /// The vendor's advice.
    pub advised: String,
    /// One sentence: why, and whether the measurements show that it matters here.
    pub text: String,
    /// The finding that shows that it matters; none without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Cause>,
    /// How to change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// Where the vendor says so: document and section.
    pub reference: String,
}

/// The load average, explained by what was running, runnable or in uninterruptible sleep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostLoad {
    /// In words: how high per CPU, rising or falling, from which threads.
    pub text: String,
    /// The kernel's figures at the end: over 1, 5 and 15 minutes.
    pub load_average: [f64; 3],
    /// The 1-minute figure at the start.
    pub load_1m_start: f64,
    /// Its greatest value in the recording.
    pub load_1m_max: f64,
    /// Number of CPUs.
    pub cpus: f64,
    /// The greatest value per CPU.
    pub per_cpu_max: f64,
    /// `rising`, `falling` or `steady`.
    pub trend: String,
    /// Share (0-1) of CPU time that was idle, without waiting for I/O; none if it was not recorded.
    pub idle_ratio: Option<f64>,
    /// Share (0-1) of CPU time that was idle while a read or write was in flight; none if it was not
    /// recorded.
    pub iowait_ratio: Option<f64>,
    /// Threads running or runnable, on average.
    pub runnable: f64,
    /// Threads in uninterruptible sleep, on average.
    pub uninterruptible: f64,
    /// The 1-minute figure at the end, recomputed from these samples, to compare with the kernel's.
    pub reconstructed_1m: f64,
    /// Its parts, most first.
    pub parts: Vec<HostLoadPart>,
}

/// Threads at one place in the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostLoadPart {
    /// Process name.
    pub process: String,
    /// `R` or `D`.
    pub state: String,
    /// Kernel function they sleep in; none if unknown.
    pub wchan: Option<String>,
    /// Threads on average.
    pub threads: f64,
}

/// What host or server did on average over the judged stretch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Name, e.g. `load average (1 minute, maximum)`.
    pub indicator: String,
    /// Unit.
    pub unit: String,
    /// Value.
    pub value: f64,
    /// Whether more of it is better; none if neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_is_better: Option<bool>,
}

/// A cause that was ruled out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cleared {
    /// Slug.
    pub cause: Cause,
    /// In words.
    pub title: String,
    /// The evidence.
    pub evidence: Vec<Evidence>,
}

/// A cause that could not be judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotJudged {
    /// Slug.
    pub cause: Cause,
    /// In words.
    pub title: String,
    /// What is missing.
    pub missing: String,
    /// What to record to have it.
    pub enable: String,
}

/// The outcome of an objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectiveReport {
    /// In the user's words.
    pub text: String,
    /// `met`, `missed` or `not_judged`.
    pub state: State,
    /// Its value over the whole run, or in its worst window; none if it was not judged.
    pub value: Option<f64>,
    /// The bound: the value must stay below it, or for a rate above.
    pub limit: f64,
    /// The unit of both: `ms`, `ratio` or `per_second`.
    pub unit: Unit,
    /// The first window in which it was missed.
    pub first_window: Option<Span>,
    /// The window of the value; none if it covers the whole run.
    pub worst_window: Option<Span>,
    /// Windows that could be judged; 0 if it is for the whole run.
    pub windows: u64,
    /// Windows in which it was missed.
    pub windows_missed: u64,
    /// Whether it ended the run early.
    pub aborted: bool,
    /// How it was missed, or why it was not judged, in words; none if it was met.
    pub why: Option<String>,
}

impl ObjectiveReport {
    pub(crate) fn new(objective: &Objective, manifest: &Manifest) -> Self {
        let judgement = &objective.judgement;
        let span = |stretch: Option<Stretch>| {
            stretch.map(|s| {
                let (from_s, to_s) = objectives::span(manifest, s);
                Span { from_s: round(from_s, 3), to_s: round(to_s, 3) }
            })
        };
        Self {
            text: judgement.text.clone(),
            state: judgement.state,
            value: judgement.value.map(|value| round(value, 6)),
            limit: judgement.limit,
            unit: judgement.unit,
            first_window: span(judgement.first_window),
            worst_window: span(judgement.worst_window),
            windows: judgement.windows,
            windows_missed: judgement.windows_missed,
            aborted: objective.aborted,
            why: objective.missed.clone().or_else(|| judgement.why.clone()),
        }
    }
}

/// What a source could provide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoverageEntry {
    /// Source or part of one.
    pub source: String,
    /// How much.
    pub state: CoverageState,
    /// Why not more.
    pub why: Option<String>,
    /// How to change that.
    pub enable: Option<String>,
    /// Cost of reading it as a share of one core.
    pub cpu_ratio: Option<f64>,
    /// The host that it was read on, of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

impl From<&Coverage> for CoverageEntry {
    fn from(c: &Coverage) -> Self {
        Self {
            source: c.source.clone(),
            state: c.state,
            why: c.why.clone(),
            enable: c.enable.clone(),
            cpu_ratio: c.cpu_ratio,
            host: None,
        }
    }
}
