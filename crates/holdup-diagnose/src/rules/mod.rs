//! One cause a file, in one explicit, ordered list. To add one: `src/rules/<cause>.rs` with a `RULE`, and a
//! line in [`ALL`].
//!
//! A rule says what it needs, what it predicts and what would clear it. It measures the cause by the
//! milliseconds of a mean slow request it can account for: a cause that accounts for less than
//! [`MATTERS`] of the excess is cleared by that very number, whatever utilisation says. Where the
//! recording lacks what it needs it says `NotJudged` by returning what is missing.

pub mod accept_queue_overflow;
pub mod atime_updates;
pub mod autovacuum_pressure;
pub mod backup_or_bulk_load;
pub mod burst_exhausted;
pub mod commit_log_bound;
pub mod connection_limit;
pub mod connection_pool_exhausted;
pub mod cpu_saturated;
pub mod cpu_throttled;
pub mod disk_saturated;
pub mod downstream_slow;
pub mod file_descriptor_limit;
pub mod flush_storm;
pub mod iops_ceiling;
pub mod liveness_probe_kill;
pub mod load_generator_limit;
pub mod lock_contention;
pub mod memory_pressure;
pub mod missing_index;
pub mod n_plus_one_queries;
pub mod network_bandwidth;
pub mod network_loss;
pub mod on_disk_temporary_tables;
pub mod out_of_memory_kill;
mod parts;
pub mod plan_changed;
pub mod readahead_too_large;
pub mod statement_mix_changed;
pub mod table_cache_small;
pub mod thread_pool_queue;
pub mod throughput_ceiling;
pub mod toast_rewrite;
pub mod too_many_indexes;
pub mod uninterruptible_pileup;
pub mod worker_pool_exhausted;
pub mod working_set_exceeds_memory;
pub mod workload_spike;

use std::collections::BTreeMap;

use holdup_recording::Labels;

use crate::case::Case;
use crate::strength::Strength;
pub(crate) use holdup_recording::words::{bytes, bytes_per_second, capital, ms, percent, thousands};
use holdup_signals::evidence::{Evidence, Fix};
pub(crate) use holdup_signals::timing;
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
    &network_loss::RULE,
    &network_bandwidth::RULE,
    &accept_queue_overflow::RULE,
    &liveness_probe_kill::RULE,
    &worker_pool_exhausted::RULE,
    &connection_pool_exhausted::RULE,
    &downstream_slow::RULE,
    &n_plus_one_queries::RULE,
    &connection_limit::RULE,
    &thread_pool_queue::RULE,
    &plan_changed::RULE,
    &missing_index::RULE,
    &lock_contention::RULE,
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
    /// What `holdup explain` prints.
    pub doc: Doc,
    /// Judges a case.
    pub judge: Judge,
}

/// How a rule judges.
pub enum Judge {
    /// By the case and its resources.
    Alone(fn(&Case<'_>) -> Result<Outcome, Missing>),
    /// By what rules that judge alone say of the case, as well.
    Beside(fn(&Case<'_>, &Others) -> Result<Outcome, Missing>),
}

/// What the rules that judge alone say of a case, by their causes.
pub type Others = BTreeMap<&'static str, Result<Outcome, Missing>>;

impl Rule {
    /// What this rule says of a case.
    ///
    /// # Errors
    /// What is missing to say it.
    pub fn judge(&self, case: &Case<'_>) -> Result<Outcome, Missing> {
        match self.judge {
            Judge::Alone(judge) => judge(case),
            Judge::Beside(judge) => judge(case, &alone(case)),
        }
    }
}

/// What every rule says of a case, in the order of [`ALL`].
pub(crate) fn judge_all(case: &Case<'_>) -> Vec<(&'static Rule, Result<Outcome, Missing>)> {
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
        Judge::Alone(judge) => Some((rule.cause, judge(case))),
        Judge::Beside(_) => None,
    };
    ALL.iter().filter_map(judge).collect()
}

/// What everybody should know about a cause. Sections are the same for all.
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

/// What a rule says if it can.
pub enum Outcome {
    /// It is so.
    Found(Found),
    /// It is so, and requests fail of it, whether they wait or not: with the share (0-1) of the failed requests that are its
    /// doing. No wait explains a request that is refused.
    Fails(Found, f64),
    /// It is not so, and this says why.
    Cleared(Vec<Evidence>),
}

/// What part a finding plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Where it begins.
    Root,
    /// Adds to it.
    Contributor,
    /// Follows from the root.
    Symptom,
    /// What will bind next once the root is fixed.
    Next,
}

/// A cause that is so.
pub struct Found {
    /// Milliseconds of a mean slow request it accounts for.
    pub explains_ms: f64,
    /// What says so.
    pub evidence: Vec<Evidence>,
    /// What each of the first pieces of evidence is worth, in their order. Those of one source and mechanism count once.
    pub weights: Vec<Strength>,
    /// What to do, safest first.
    pub fixes: Vec<Fix>,
    /// How to see that it helped.
    pub prove: String,
    /// Its part, as far as the rule itself can tell; [`crate::chain`] settles it.
    pub role: Role,
}

/// A rule by its slug.
pub fn by_cause(cause: &str) -> Option<&'static Rule> {
    ALL.iter().find(|rule| rule.cause == cause).copied()
}

/// The share (0-1) of the failed requests of `window` that this rule tells why, which `did` so.
pub(crate) fn of_failures(window: Window, failed: f64, did: &str) -> Evidence {
    let expected = "requests fail at other times as well, if this were not why";
    let text = format!("{} of the failed requests {did}", percent(failed));
    Evidence::new("requests", "outcome", Labels::none(), window, percent(failed), expected, text)
}

/// What `cargo xtask new rule` writes.
#[cfg(test)]
#[path = "../../../../xtask/stubs/rule.rs"]
mod stub;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, Made};

    #[test]
    fn a_rule_that_is_new_judges_nothing_yet() {
        assert!(Made::new(3).judge(&stub::RULE).is_err());
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
