//! One cause per file, in one explicit, ordered list. To add one: `src/rules/<cause>.rs` with a
//! `RULE`, and a line in [`ALL`].
//!
//! A rule says what it needs, what it predicts and what would clear it. It measures the cause by
//! the milliseconds of a mean slow request that it can account for: a cause that accounts for less
//! than [`MATTERS`] of the excess is cleared by that very number, whatever the utilization. If the
//! recording lacks its facts, it returns what is missing and counts as `NotJudged`.

pub(crate) mod accept_queue_overflow;
pub(crate) mod atime_updates;
pub(crate) mod autovacuum_pressure;
pub(crate) mod backup_or_bulk_load;
pub(crate) mod burst_exhausted;
pub(crate) mod commit_log_bound;
pub(crate) mod connection_limit;
pub(crate) mod connection_per_request;
pub(crate) mod connection_pool_exhausted;
pub(crate) mod connection_storm;
pub(crate) mod cpu_saturated;
pub(crate) mod cpu_throttled;
pub(crate) mod disk_full;
pub(crate) mod disk_saturated;
pub(crate) mod downstream_slow;
pub(crate) mod file_descriptor_limit;
pub(crate) mod flush_storm;
pub(crate) mod iops_ceiling;
pub(crate) mod liveness_probe_kill;
pub(crate) mod load_generator_limit;
pub(crate) mod lock_contention;
pub(crate) mod memory_pressure;
pub(crate) mod missing_index;
pub(crate) mod n_plus_one_queries;
pub(crate) mod network_bandwidth;
pub(crate) mod network_delay;
pub(crate) mod network_limit;
pub(crate) mod network_loss;
pub(crate) mod old_snapshot;
pub(crate) mod on_disk_temporary_tables;
pub(crate) mod out_of_memory_kill;
mod parts;
pub(crate) mod plan_changed;
pub(crate) mod process_stopped;
pub(crate) mod readahead_too_large;
pub(crate) mod replication_wait;
pub(crate) mod runtime_pause;
pub(crate) mod statement_mix_changed;
pub(crate) mod statement_regression;
pub(crate) mod table_cache_small;
pub(crate) mod thread_pool_queue;
pub(crate) mod throughput_ceiling;
pub(crate) mod tickets_exhausted;
pub(crate) mod toast_rewrite;
pub(crate) mod too_many_indexes;
pub(crate) mod uninterruptible_pileup;
pub(crate) mod wait_in_app;
pub(crate) mod worker_pool_exhausted;
pub(crate) mod working_set_exceeds_memory;
pub(crate) mod workload_spike;

use std::collections::BTreeMap;

use holdup_recording::Labels;

use crate::case::Case;
use crate::change::Fix;
use crate::failures::Failed;
use crate::strength::Strength;
pub(crate) use holdup_recording::words::{bytes, bytes_per_second, capital, ms, percent, thousands};
pub(crate) use holdup_signals::app::timing;
use holdup_signals::evidence::Evidence;
pub use holdup_signals::yardstick::{MATTERS, SERVICE_SLOWED};
use holdup_signals::{Missing, Window};
use serde::{Deserialize, Serialize};

/// Every rule, in the order in which a request meets the resource.
pub const ALL: &[&Rule] = &[
    &load_generator_limit::RULE,
    &workload_spike::RULE,
    &statement_mix_changed::RULE,
    &out_of_memory_kill::RULE,
    &file_descriptor_limit::RULE,
    &network_limit::RULE,
    &network_loss::RULE,
    &network_bandwidth::RULE,
    &network_delay::RULE,
    &accept_queue_overflow::RULE,
    &liveness_probe_kill::RULE,
    &worker_pool_exhausted::RULE,
    &process_stopped::RULE,
    &runtime_pause::RULE,
    &wait_in_app::RULE,
    &connection_pool_exhausted::RULE,
    &connection_per_request::RULE,
    &downstream_slow::RULE,
    &n_plus_one_queries::RULE,
    &connection_storm::RULE,
    &connection_limit::RULE,
    &thread_pool_queue::RULE,
    &tickets_exhausted::RULE,
    &replication_wait::RULE,
    &plan_changed::RULE,
    &missing_index::RULE,
    &statement_regression::RULE,
    &lock_contention::RULE,
    &old_snapshot::RULE,
    &table_cache_small::RULE,
    &on_disk_temporary_tables::RULE,
    &commit_log_bound::RULE,
    &flush_storm::RULE,
    &cpu_throttled::RULE,
    &cpu_saturated::RULE,
    &memory_pressure::RULE,
    &working_set_exceeds_memory::RULE,
    &readahead_too_large::RULE,
    &atime_updates::RULE,
    &too_many_indexes::RULE,
    &backup_or_bulk_load::RULE,
    &toast_rewrite::RULE,
    &autovacuum_pressure::RULE,
    &disk_full::RULE,
    &throughput_ceiling::RULE,
    &iops_ceiling::RULE,
    &burst_exhausted::RULE,
    &disk_saturated::RULE,
    &uninterruptible_pileup::RULE,
];

/// A cause and how it is judged.
pub struct Rule {
    /// Slug: the file's name.
    pub cause: &'static str,
    /// Where it occurs.
    pub occurs: Occurs,
    /// What `holdup explain` prints.
    pub doc: Doc,
    /// Judges a case.
    pub judge: Judge,
}

/// Where a cause occurs: elsewhere it is not a suspect, whatever facts are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurs {
    /// In any service.
    Anywhere,
    /// On MySQL, MariaDB and Percona Server alone.
    OnMysql,
    /// On PostgreSQL alone.
    OnPostgresql,
    /// On MongoDB alone: without one in the recording it is not a suspect.
    OnMongodb,
    /// In an app with a runtime.
    InRuntimes,
    /// Between a database and clients on other machines.
    BetweenMachines,
    /// Rarely, and one source of its own shows it: while that is missing, the cause lowers the
    /// confidence in no other.
    Rarely,
}

/// How a rule judges.
pub enum Judge {
    /// From the case and its resources.
    Alone(fn(&Case<'_>) -> Result<Outcome, Missing>),
    /// Also from the outcomes of the rules that judge alone.
    Beside(fn(&Case<'_>, &Others) -> Result<Outcome, Missing>),
}

/// The outcomes of the rules that judge alone, by cause.
pub type Others = BTreeMap<&'static str, Result<Outcome, Missing>>;

/// The outcomes of all rules, in the order of [`ALL`].
pub(crate) type Outcomes = Vec<(&'static Rule, Result<Outcome, Missing>)>;

impl Rule {
    /// This rule's outcome for `case`.
    ///
    /// # Errors
    /// The facts missing to judge it.
    pub fn judge(&self, case: &Case<'_>) -> Result<Outcome, Missing> {
        match self.judge {
            Judge::Alone(_) => self.judge_alone(case),
            Judge::Beside(judge) => judge(case, &alone(case)),
        }
    }

    /// The outcome by a cloud's figures alone if these clear it, else by everything.
    fn judge_alone(&self, case: &Case<'_>) -> Result<Outcome, Missing> {
        let Judge::Alone(judge) = self.judge else { return Err(Missing::new("the outcomes of other rules", "")) };
        parts::cloud::clear(self.cause, case).map_or_else(|| judge(case), Ok)
    }
}

/// The outcome of every rule for `case`, in the order of [`ALL`].
pub(crate) fn judge_all(case: &Case<'_>) -> Outcomes {
    let mut said = alone(case);
    let beside = ALL.iter().filter_map(|rule| match rule.judge {
        Judge::Alone(_) => None,
        Judge::Beside(judge) => Some((rule.cause, judge(case, &said))),
    });
    let beside: Vec<_> = beside.collect();
    said.extend(beside);
    ALL.iter().filter_map(|rule| Some((*rule, said.remove(rule.cause)?))).collect()
}

fn alone(case: &Case<'_>) -> Others {
    let judge = |rule: &&'static Rule| match rule.judge {
        Judge::Alone(_) => Some((rule.cause, rule.judge_alone(case))),
        Judge::Beside(_) => None,
    };
    ALL.iter().filter_map(judge).collect()
}

/// What to know about a cause. All causes have the same sections.
pub struct Doc {
    /// Name in a sentence, e.g. `The connection pool is exhausted`.
    pub title: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Why it hurts.
    pub hurts: &'static str,
    /// What is needed to judge it.
    pub needs: &'static str,
    /// What it predicts.
    pub predicts: &'static str,
    /// What clears it.
    pub clears: &'static str,
    /// What else looks like it.
    pub looks_like: &'static str,
    /// How to fix it.
    pub fix: &'static str,
    /// How to prove the fix.
    pub prove: &'static str,
    /// References.
    pub references: &'static str,
}

impl Doc {
    /// Headings and texts in order.
    pub fn sections(&self) -> [(&'static str, &'static str); 9] {
        [
            ("What it is", self.what),
            ("Why it hurts", self.hurts),
            ("What is needed", self.needs),
            ("What it predicts", self.predicts),
            ("What clears it", self.clears),
            ("What else looks like this", self.looks_like),
            ("How to fix", self.fix),
            ("How to prove", self.prove),
            ("References", self.references),
        ]
    }
}

/// A rule's outcome, if it can judge.
pub enum Outcome {
    /// The cause is present.
    Found(RuleFinding),
    /// The cause is present and makes requests fail, with its share (0-1) of the failed requests.
    /// No wait explains a refused request.
    Fails(RuleFinding, f64),
    /// The cause is present by itself, whatever requests say; no source shows what it costs them, and
    /// which would.
    Uncounted(RuleFinding, Missing),
    /// The cause is absent, with the evidence.
    Cleared(Vec<Evidence>),
}

impl Outcome {
    /// What is said of a cause that is present, by the requests that failed of it.
    fn failing(found: RuleFinding, failed: Failed) -> Self {
        match failed.uncounted {
            None => Self::Fails(found, failed.share),
            Some(missing) => Self::Uncounted(found, missing),
        }
    }
}

/// The part that a finding plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The root of the delay.
    Root,
    /// Adds to it.
    Contributor,
    /// Follows from the root.
    Symptom,
    /// The next limit once the root is fixed.
    Next,
}

/// A cause that is present.
pub struct RuleFinding {
    /// Milliseconds of a mean slow request it accounts for.
    pub explains_ms: f64,
    /// The evidence.
    pub evidence: Vec<Evidence>,
    /// The worth of each of the first pieces of evidence, in order. Pieces of one source and
    /// mechanism count once.
    pub weights: Vec<Strength>,
    /// What to do, safest first.
    pub fixes: Vec<Fix>,
    /// How to verify that it helped.
    pub prove: String,
    /// Its part, as far as the rule itself can tell; [`crate::chain`] decides.
    pub role: Role,
}

/// A rule by its slug.
pub fn by_cause(cause: &str) -> Option<&'static Rule> {
    ALL.iter().find(|rule| rule.cause == cause).copied()
}

/// The share (0-1) of the episode's failed requests that this rule explains, because they `did` so.
pub(crate) fn of_failures(case: &Case<'_>, failed: f64, did: &str) -> Evidence {
    of_failures_in(case.episode(), failed, did)
}

/// The same of those of `window`.
pub(crate) fn of_failures_in(window: Window, failed: f64, did: &str) -> Evidence {
    let expected = "failures at other times as well, if this were not the reason";
    let text = format!("{} of the failed requests {did}", percent(failed));
    Evidence::new("requests", "outcome", Labels::none(), window, percent(failed), expected, text)
}

/// Output of `cargo xtask new rule`.
#[cfg(test)]
#[path = "../../../../xtask/stubs/rule.rs"]
mod stub;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    #[test]
    fn a_rule_that_is_new_judges_nothing_yet() {
        assert!(SyntheticRecording::new(3).judge(&stub::RULE).is_err());
    }

    #[test]
    fn every_rule_is_documented_and_named_once() {
        for (i, rule) in ALL.iter().enumerate() {
            assert!(ALL[..i].iter().all(|r| r.cause != rule.cause), "{} stands twice", rule.cause);
            for (heading, text) in rule.doc.sections() {
                assert!(!text.is_empty(), "{}: {heading} is empty", rule.cause);
            }
        }
    }
}
