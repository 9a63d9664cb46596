//! The same statements on two servers: which are slower on the new one, and the cost.
//!
//! Both have played the same log ([`holdup replay`](../../../docs/replay.md)), so each execution
//! has its twin ([`pairs`]). The change of each digest is estimated with an interval, beyond the
//! change that all statements share ([`change`]); verdicts are corrected for the number of digests.
//! The cost is calls x change, and how often a request runs the statement ([`load`]). Different
//! answers come before any comparison of times ([`answers`]). Pure.

mod answers;
mod change;
mod load;
mod next_steps;
mod pairs;
mod plans;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use holdup_recording::Recording;
use serde::Serialize;

pub use self::answers::AnswerDifferences;
pub use self::change::{Change, Common, Verdict};
pub use self::load::{Answer, Prediction, Runs};
pub use self::plans::Plans;
use crate::statements::pairs::Pairs;

/// A digest on both servers.
#[derive(Clone, Debug, Serialize)]
pub struct Statement {
    /// Its digest.
    pub digest: String,
    /// Its text without values, if it is known.
    pub text: Option<String>,
    /// Executions of the mix, in one round.
    pub calls: u64,
    /// Share (0-1) of the old server's time.
    pub share_ratio: f64,
    /// Mean time of an execution on the old server, milliseconds.
    pub old_ms: f64,
    /// The same on the new one.
    pub new_ms: f64,
    /// The change of its time.
    pub change: Change,
    /// How often a request runs it, if it does so more than once.
    pub runs: Option<Runs>,
    /// Its addition to the time of all statements, in seconds of the new server's time per second:
    /// calls x change; negative if it got faster.
    pub added_load: f64,
    /// Differences between the servers' answers; none if there are none.
    pub differs: Option<AnswerDifferences>,
    /// Its plans, if both servers' plans were recorded.
    pub plans: Option<Plans>,
}

/// The result of a comparison of statements.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name of the old server.
    pub old: String,
    /// Name of the new server.
    pub new: String,
    /// Rounds that both servers played.
    pub rounds: usize,
    /// Executions that have a twin.
    pub pairs: u64,
    /// The change that all statements share.
    pub common: Common,
    /// Statements with different answers first; then by added load, the largest first.
    pub statements: Vec<Statement>,
    /// The effect on the new server.
    pub prediction: Prediction,
    /// The limits of this test.
    pub too_little: Vec<String>,
    /// The next steps, and the way back.
    pub way: Vec<String>,
}

/// Facts besides the recordings.
#[derive(Clone, Debug, Default)]
pub struct CompareOptions {
    /// Texts of statements without their values, by digest.
    pub texts: BTreeMap<String, String>,
    /// Concurrent statements that the new server carries: its knee.
    pub carries: Option<f64>,
}

/// Compares `old` with `new`, each the recordings of one or several rounds, in the order they were
/// played.
///
/// # Errors
/// If there is nothing to compare: no executions, or none that both played.
pub fn compare(
    (old_name, old): (&str, &[Recording]),
    (new_name, new): (&str, &[Recording]),
    known: &CompareOptions,
) -> Result<Report, String> {
    let pairs = Pairs::match_executions(old, new)?;
    let common = Common::from_pairs(&pairs);
    let changes = change::all(&pairs, &common);
    let mut statements: Vec<Statement> = pairs
        .digests
        .iter()
        .zip(changes)
        .map(|(of, change)| {
            let (old_ms, new_ms) = of.means_ms;
            Statement {
                digest: of.digest.clone(),
                text: known.texts.get(&of.digest).cloned(),
                calls: of.calls,
                share_ratio: of.old_seconds() / pairs.old_seconds.max(1e-12),
                old_ms,
                new_ms,
                runs: load::runs(of),
                added_load: load::added(of, &change, &common, pairs.length_s),
                change,
                differs: answers::differences(of),
                plans: plans::compare_plans(&of.digest, old, new),
            }
        })
        .collect();
    statements.sort_by(|a, b| {
        let rank = |s: &Statement| u8::from(!s.differs.as_ref().is_some_and(AnswerDifferences::matters));
        rank(a).cmp(&rank(b)).then(b.added_load.abs().total_cmp(&a.added_load.abs())).then(a.digest.cmp(&b.digest))
    });
    let prediction = load::predict(&pairs, &statements, &common, old, known);
    let too_little = next_steps::test_limits(&pairs, &statements);
    let way = next_steps::next_steps(&statements, &prediction);
    Ok(Report {
        old: old_name.to_owned(),
        new: new_name.to_owned(),
        rounds: pairs.rounds,
        pairs: pairs.digests.iter().map(|of| of.all.len() as u64).sum(),
        common,
        statements,
        prediction,
        too_little,
        way,
    })
}
