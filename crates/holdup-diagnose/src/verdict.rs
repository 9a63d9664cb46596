//! The answer as data: what the terminal, the report and `--json` show (`docs/schema/verdict.schema.json`).
//! How it comes about is `judge`'s.

mod outline;

use holdup_recording::Manifest;
use holdup_recording::manifest::{Coverage, CoverageState};
use holdup_recording::objective::Stretch;
pub use holdup_recording::objective::{State, Unit};
use serde::{Deserialize, Serialize};

pub use self::outline::{AgainstReport, ChainLink, DebtReport, EpisodeReport, SplitReport, TableDebtReport};
pub use crate::counters::{CountersEpisode, CountersReport, CountersSuspect, CountersVote, Figure, FoundBy};
pub use crate::finding::Finding;
use crate::ledger::LedgerRow;
pub use crate::ledger::accounts::{AccountsReport, RequestReport, WaitReport};
pub use crate::load::{
    LoadReport, OperationReport, Percentiles, ReasonReport, SliceReport, ValidityReport, WarmUpReport,
};
pub use crate::rules::Role;
use crate::search::SearchReport;
pub(crate) use holdup_recording::words::round;
pub use holdup_signals::evidence::{Evidence, Fix, Span};
use holdup_signals::objectives::{self, Objective};

/// Holdup's answer about one recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// `found`, `healthy` or `undecided`.
    pub verdict: Answer,
    /// Slug of the root cause.
    pub culprit: Option<String>,
    /// One sentence.
    pub headline: String,
    /// When the recording began, RFC 3339: all seconds count from then.
    #[serde(default)]
    pub started_at: String,
    /// What the requests suffered, in words; none if nothing.
    pub complaint: Option<String>,
    /// The degraded stretch.
    pub episode: Option<Span>,
    /// The recording that stands for the healthy time, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<AgainstReport>,
    /// All degraded stretches, where there are several: causes are looked for in the worst, which is `episode`.
    #[serde(default)]
    pub episodes: Vec<EpisodeReport>,
    /// What a database still has to work off at the end, which a verification has to wait for; none if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debt: Option<DebtReport>,
    /// How the causes that were found hang together, contributors first, then the root, then what follows; empty if there is
    /// no more than one.
    #[serde(default)]
    pub chain: Vec<ChainLink>,
    /// Causes found, root first.
    pub findings: Vec<Finding>,
    /// Causes ruled out, with what rules them out.
    pub cleared: Vec<Cleared>,
    /// Causes that could not be judged, with what would change that.
    pub not_judged: Vec<NotJudged>,
    /// Causes that are not told apart, and the one measurement that would; none if there is nothing to split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitReport>,
    /// What makes up most of the time that is left: it will bind next. None if nothing stands out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Finding>,
    /// What is set against the vendors' advice, and whether it matters here.
    #[serde(default)]
    pub notes: Vec<Note>,
    /// The host's load average, explained; none if it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_load: Option<HostLoad>,
    /// What host and servers did meanwhile, to be compared with another run.
    #[serde(default)]
    pub indicators: Vec<Reading>,
    /// Where the milliseconds went.
    pub ledger: Vec<LedgerRow>,
    /// Both accounts of single requests, joined; none if no request can be followed by a trace id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounts: Option<AccountsReport>,
    /// What counters alone say; none without counters, or if nothing was slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_counters: Option<CountersReport>,
    /// What became of each objective, in the scenario's order.
    #[serde(default)]
    pub objectives: Vec<ObjectiveReport>,
    /// What a search for the knee found; none if the load was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchReport>,
    /// What the generator did and saw.
    pub load: LoadReport,
    /// What each source could say.
    pub coverage: Vec<CoverageEntry>,
}

/// The confidence (0-1) from which on a culprit is named as found. Below it the answer is open, and the culprit only the likeliest.
pub const NAMED: f64 = 0.5;

impl Diagnosis {
    /// Whether a culprit is named: one was found, and it is surer than not.
    pub fn is_named(&self) -> bool {
        let culprit = self.findings.iter().find(|f| Some(&f.cause) == self.culprit.as_ref());
        self.verdict == Answer::Found && culprit.is_none_or(|f| f.confidence >= NAMED)
    }

    /// What kept this run from measuring the service: a machine that was not there, or a generator that could not keep
    /// up. None if nothing did.
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
    /// Nothing to complain about.
    Healthy,
    /// Something is wrong and the evidence does not carry a name.
    Undecided,
}

/// A setting that is not as a vendor advises. By itself it is no finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// The check, e.g. `readahead`, `transparent_hugepage`.
    pub check: String,
    /// Whose advice it is, e.g. `MongoDB`.
    pub vendor: String,
    /// What it is of, e.g. a device, a mount, a process.
    pub subject: String,
    /// What is set.
    pub observed: String,
    /// What the vendor advises.
    pub advised: String,
    /// One sentence: why, and whether the measurements show that it matters here.
    pub text: String,
    /// The finding that shows that it matters; none if nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// What would change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// Where the vendor says so: document and section.
    pub reference: String,
}

/// The load average, explained by what was running, runnable or in uninterruptible sleep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostLoad {
    /// In words: how high a CPU, rising or falling, of what.
    pub text: String,
    /// The kernel's figures at the end: over 1, 5 and 15 minutes.
    pub load_average: [f64; 3],
    /// The first of them at the start, and its greatest.
    pub load_1m_start: f64,
    /// Its greatest value in the recording.
    pub load_1m_max: f64,
    /// CPUs.
    pub cpus: f64,
    /// The greatest value a CPU.
    pub per_cpu_max: f64,
    /// `rising`, `falling` or `steady`.
    pub trend: String,
    /// Share (0-1) of CPU time that was idle, without waiting for I/O.
    pub idle_ratio: f64,
    /// Share (0-1) of CPU time that was idle while a read or write was under way.
    pub iowait_ratio: f64,
    /// Threads that ran or could, on average.
    pub runnable: f64,
    /// Threads in uninterruptible sleep, on average.
    pub uninterruptible: f64,
    /// The 1-minute figure at the end as these samples make it, beside the kernel's own.
    pub reconstructed_1m: f64,
    /// What they were, most first.
    pub parts: Vec<HostLoadPart>,
}

/// Threads at one place in the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostLoadPart {
    /// Process name.
    pub process: String,
    /// `R` or `D`.
    pub state: String,
    /// Kernel function they sleep in; none where unknown.
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
    pub cause: String,
    /// In words.
    pub title: String,
    /// What rules it out.
    pub evidence: Vec<Evidence>,
}

/// A cause that could not be judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotJudged {
    /// Slug.
    pub cause: String,
    /// In words.
    pub title: String,
    /// What is missing.
    pub missing: String,
    /// What would bring it.
    pub enable: String,
}

/// What became of an objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectiveReport {
    /// In the user's words.
    pub text: String,
    /// `met`, `missed` or `not_judged`.
    pub state: State,
    /// Its value over the whole run, or in its worst window; none if it was not judged.
    pub value: Option<f64>,
    /// What the value had to stay below, or of a rate above.
    pub limit: f64,
    /// What both are in: `ms`, `ratio` or `per_second`.
    pub unit: Unit,
    /// The first window in which it was missed.
    pub first_window: Option<Span>,
    /// The window that the value is of; none if it is of the whole run.
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
    pub(crate) fn of(objective: &Objective, manifest: &Manifest) -> Self {
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

/// What a source could say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoverageEntry {
    /// Source or part of one.
    pub source: String,
    /// How much.
    pub state: CoverageState,
    /// Why not more.
    pub why: Option<String>,
    /// What would change that.
    pub enable: Option<String>,
    /// Cost of reading it as a share of one core.
    pub cpu_ratio: Option<f64>,
}

impl From<&Coverage> for CoverageEntry {
    fn from(c: &Coverage) -> Self {
        Self {
            source: c.source.clone(),
            state: c.state,
            why: c.why.clone(),
            enable: c.enable.clone(),
            cpu_ratio: c.cpu_ratio,
        }
    }
}
