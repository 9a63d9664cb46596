//! What changes cost: calls x change, loops of requests, and whether the new server carries it.

use std::collections::BTreeMap;

use holdup_recording::{Recording, metrics};
use serde::Serialize;

use super::change::{Change, Common, Verdict};
use super::pairs::{Digest, Pairs};
use super::{Known, Statement};

/// A request that runs a statement so many times runs it in a loop.
const LOOP: f64 = 3.0;

/// A server whose CPUs are busier than this answers later the more is asked of it (J. Little; R. Jain, "The Art of Computer Systems
/// Performance Analysis", 1991: at four fifths a queue is four long).
const BUSY: f64 = 0.8;

/// How often a request runs a statement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Runs {
    /// Times, in the mean of those that run it.
    pub per_request: f64,
    /// Requests that were seen.
    pub requests: u64,
    /// Whether requests are known by their trace ids; else a request is what a session runs of it without anything between.
    pub by_trace: bool,
}

/// What the changes mean for the new server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Statements at once under way on the old server, in the mean (their time / the log's length).
    pub old_at_once: f64,
    /// The same on the new one, with the same mix at the same rate.
    pub new_at_once: f64,
    /// Share by which the time of all statements grows; what falls is negative.
    pub growth_ratio: f64,
    /// CPUs of the old server's machine, and the share of them that was busy, where they were watched.
    pub cpus_busy: Option<(f64, f64)>,
    /// What will be of it: whether it is carried.
    pub answer: Answer,
    /// The same in a sentence.
    pub text: String,
}

/// See [`Prediction::answer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It is carried.
    Carried,
    /// It is more than the new server carries.
    Overload,
    /// Nobody knows what it carries.
    Unknown,
}

/// How often a request runs `of`, if it does so in a loop.
pub(super) fn runs(of: &Digest) -> Option<Runs> {
    let mut by_trace: BTreeMap<&str, u64> = BTreeMap::new();
    for trace in of.all.iter().filter(|pair| pair.round == 0).filter_map(|pair| pair.trace.as_deref()) {
        *by_trace.entry(trace).or_default() += 1;
    }
    let is_traced = !by_trace.is_empty();
    let (executions, requests) =
        if is_traced { (by_trace.values().sum::<u64>(), by_trace.len() as u64) } else { (of.calls, of.in_a_row) };
    let per_request = executions as f64 / requests.max(1) as f64;
    (per_request >= LOOP).then_some(Runs { per_request, requests, by_trace: is_traced })
}

/// Seconds of the new server's time a second that a digest adds, all it has in common with others included.
pub(super) fn added(of: &Digest, change: &Change, common: &Common, length_s: f64) -> f64 {
    let own = match change.verdict {
        Verdict::Slower | Verdict::Faster => change.ratio,
        Verdict::Same | Verdict::Unknown => 1.0,
    };
    of.old_seconds() / length_s * (own * common.ratio - 1.0)
}

/// What all of it means.
pub(super) fn predict(
    pairs: &Pairs,
    statements: &[Statement],
    common: &Common,
    old: &[Recording],
    known: &Known,
) -> Prediction {
    let old_at_once = pairs.old_seconds / pairs.length_s;
    let new_at_once = old_at_once + statements.iter().map(|s| s.added_load).sum::<f64>();
    let growth_ratio = new_at_once / old_at_once.max(1e-12) - 1.0;
    let cpus_busy = old.iter().find_map(cpus_busy);
    let own: f64 = statements.iter().filter(|s| s.change.verdict == Verdict::Slower).map(|s| s.added_load).sum();
    let grows = format!(
        "the time of all statements {} by {:.1} %: {:.2} at once under way instead of {:.2} ({:+.2} by those that are slower, the rest {:+.1} % in common)",
        if growth_ratio < 0.0 { "falls" } else { "grows" },
        growth_ratio.abs() * 100.0,
        new_at_once,
        old_at_once,
        own,
        (common.ratio - 1.0) * 100.0
    );
    let (answer, text) = match (known.carries, cpus_busy) {
        (Some(carries), _) if new_at_once > carries => {
            (Answer::Overload, format!("{grows}. The new server carries {carries:.2}: it is overloaded by this mix"))
        }
        (Some(carries), _) => (Answer::Carried, format!("{grows}. The new server carries {carries:.2}")),
        (None, Some((cpus, busy))) => {
            let then = busy * (1.0 + growth_ratio);
            let of = format!(
                "{:.0} % of {cpus:.0} CPUs were busy on the old one, {:.0} % would be",
                busy * 100.0,
                then * 100.0
            );
            if then > 1.0 {
                (Answer::Overload, format!("{grows}. {of}: more than there is"))
            } else if then > BUSY {
                (Answer::Overload, format!("{grows}. {of}: beyond {:.0} % requests queue for a CPU", BUSY * 100.0))
            } else {
                (Answer::Carried, format!("{grows}. {of}, if they have as many"))
            }
        }
        (None, None) => (
            Answer::Unknown,
            format!(
                "{grows}. What the new server carries is not known: --carries N, or --watch host beside the replay on the server's machine"
            ),
        ),
    };
    Prediction { old_at_once, new_at_once, growth_ratio, cpus_busy, answer, text }
}

/// CPUs of the machine that was watched, and the share of them that was busy.
fn cpus_busy(recording: &Recording) -> Option<(f64, f64)> {
    let of_host = |s: &&holdup_recording::rows::Sample| s.metric == metrics::host::CPU_TIME.name && s.source == "host";
    let mut ends: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for sample in recording.tables.samples.rows.iter().filter(of_host) {
        let entry = ends.entry(sample.labels.to_string()).or_insert((sample.value, sample.value));
        entry.1 = sample.value;
    }
    let grown = |wanted: fn(&str) -> bool| -> f64 {
        ends.iter()
            .filter(|(labels, _)| holdup_recording::Labels::from(labels.as_str()).get("cpu_mode").is_some_and(wanted))
            .map(|(_, (first, last))| last - first)
            .sum()
    };
    let all = grown(|_| true);
    let idle = grown(|mode| matches!(mode, "idle" | "iowait"));
    let cpus = f64::from(recording.manifest.host.cpus);
    (all > 0.0 && cpus > 0.0).then(|| (cpus, 1.0 - idle / all))
}
