//! The cost of changes: calls x change, loops in requests, and whether the new server carries the
//! load.

use std::collections::BTreeMap;

use holdup_recording::Recording;
use holdup_signals::Window;
use holdup_signals::host::cpu;
use holdup_signals::view::Index;
use serde::Serialize;

use super::change::{Change, Common, Verdict};
use super::pairs::{Digest, Pairs};
use super::{CompareOptions, Statement};

/// A request that runs a statement this many times runs it in a loop.
const LOOP: f64 = 3.0;

/// A server whose CPUs are busier than this gets slower with more load (J. Little; R. Jain, "The
/// Art of Computer Systems Performance Analysis", 1991: at four fifths a queue is four long).
const BUSY: f64 = 0.8;

/// How often a request runs a statement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Runs {
    /// The mean number among requests that run it.
    pub per_request: f64,
    /// Number of requests seen.
    pub requests: u64,
    /// Whether requests are known by their trace ids; otherwise a request is an uninterrupted
    /// series of one statement in a session.
    pub by_trace: bool,
}

/// The effect of the changes on the new server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Mean concurrent statements on the old server (their time / the log's length).
    pub old_at_once: f64,
    /// The same on the new one, for the same mix at the same rate.
    pub new_at_once: f64,
    /// Growth of the time of all statements, as a share; negative if it falls.
    pub growth_ratio: f64,
    /// CPUs of the old server's machine, and their busy share, if they were watched.
    pub cpus_busy: Option<(f64, f64)>,
    /// Whether the new server carries the load.
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
    /// Its capacity is unknown.
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

/// Seconds of the new server's time per second that a digest adds, including the common change.
pub(super) fn added(of: &Digest, change: &Change, common: &Common, length_s: f64) -> f64 {
    let own = match change.verdict {
        Verdict::Slower | Verdict::Faster => change.ratio,
        Verdict::Same | Verdict::Unknown => 1.0,
    };
    of.old_seconds() / length_s * (own * common.ratio - 1.0)
}

/// The effect of all changes.
pub(super) fn predict(
    pairs: &Pairs,
    statements: &[Statement],
    common: &Common,
    old: &[Recording],
    known: &CompareOptions,
) -> Prediction {
    let old_at_once = pairs.old_seconds / pairs.length_s;
    let new_at_once = old_at_once + statements.iter().map(|s| s.added_load).sum::<f64>();
    let growth_ratio = new_at_once / old_at_once.max(1e-12) - 1.0;
    let cpus_busy = old.iter().find_map(cpus_busy);
    let own: f64 = statements.iter().filter(|s| s.change.verdict == Verdict::Slower).map(|s| s.added_load).sum();
    let grows = format!(
        "the time of all statements {} by {:.1} %: {:.2} run concurrently instead of {:.2} ({:+.2} from slower ones; the common change is {:+.1} %)",
        if growth_ratio < 0.0 { "falls" } else { "grows" },
        growth_ratio.abs() * 100.0,
        new_at_once,
        old_at_once,
        own,
        (common.ratio - 1.0) * 100.0
    );
    let (answer, text) = match (known.carries, cpus_busy) {
        (Some(carries), _) if new_at_once > carries => {
            (Answer::Overload, format!("{grows}. The new server carries {carries:.2}: this mix overloads it"))
        }
        (Some(carries), _) => (Answer::Carried, format!("{grows}. The new server carries {carries:.2}")),
        (None, Some((cpus, busy))) => {
            let then = busy * (1.0 + growth_ratio);
            let of = format!(
                "{:.0} % of {cpus:.0} CPUs were busy on the old server, {:.0} % would be on the new one",
                busy * 100.0,
                then * 100.0
            );
            if then > 1.0 {
                (Answer::Overload, format!("{grows}. {of}: more than it has"))
            } else if then > BUSY {
                (Answer::Overload, format!("{grows}. {of}: beyond {:.0} % requests queue for a CPU", BUSY * 100.0))
            } else {
                (Answer::Carried, format!("{grows}. {of}, with as many CPUs"))
            }
        }
        (None, None) => (
            Answer::Unknown,
            format!(
                "{grows}. The new server's capacity is unknown: add --carries N, or --watch host if the replay runs on the server's machine"
            ),
        ),
    };
    Prediction { old_at_once, new_at_once, growth_ratio, cpus_busy, answer, text }
}

/// CPUs of the watched machine, and their busy share.
fn cpus_busy(recording: &Recording) -> Option<(f64, f64)> {
    let whole = Window { from: 0, to: i64::MAX };
    let intervals = cpu::intervals(&Index::new(&recording.tables), whole, |source| source == "host");
    let (all, used) = intervals.iter().fold((0.0, 0.0), |(all, used), (_, cpu)| (all + cpu.all, used + cpu.used()));
    let cpus = f64::from(recording.manifest.host.cpus);
    (all > 0.0 && cpus > 0.0).then(|| (cpus, used / all))
}
