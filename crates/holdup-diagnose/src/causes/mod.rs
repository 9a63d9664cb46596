//! One folder a cause, which says all that holdup knows of it. To add one: `src/causes/<cause>/` with
//! a [`Definition`], its `mod` here, and its line in [`crate::cause`]. Whatever lists causes is derived
//! from these.
//!
//! A cause says what it needs, what it predicts and what would clear it. It is measured by the
//! milliseconds of a mean slow request that it can account for: a cause that accounts for less
//! than [`MATTERS`] of the excess is cleared by that very number, whatever the utilization. If the
//! recording lacks its facts, it returns what is missing and counts as `NotJudged`.

pub(crate) mod accept_queue_overflow;
pub(crate) mod atime_updates;
pub(crate) mod autovacuum_pressure;
pub(crate) mod backup_or_bulk_load;
mod bound;
pub(crate) mod burst_exhausted;
pub(crate) mod cache_misses;
pub(crate) mod commit_log_bound;
pub(crate) mod connection_limit;
pub(crate) mod connection_per_request;
pub(crate) mod connection_pool_exhausted;
pub(crate) mod connection_storm;
pub(crate) mod cpu_saturated;
pub(crate) mod cpu_throttled;
mod definition;
pub(crate) mod disk_errors;
pub(crate) mod disk_full;
pub(crate) mod disk_saturated;
pub(crate) mod downstream_slow;
mod edges;
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
pub(crate) mod output_buffer_limit;
mod parts;
pub(crate) mod persistence_pause;
pub(crate) mod pipeline_stage_lag;
pub(crate) mod plan_changed;
pub(crate) mod process_stopped;
pub(crate) mod readahead_too_large;
pub(crate) mod replica_lag;
pub(crate) mod replication_slot_keeps_log;
pub(crate) mod replication_wait;
pub(crate) mod runtime_pause;
pub(crate) mod search_rejections;
pub(crate) mod server_restart;
pub(crate) mod service_fails;
pub(crate) mod slow_command;
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
use serde::{Deserialize, Serialize};

pub use self::definition::{Definition, Doc, Judge, Occurs, Trait};
pub use self::edges::{Contribution, Edge, Magnitude, Source, Tier};
use crate::case::Case;
pub use crate::cause::Cause;
use crate::cause::each_cause;
use crate::change::Fix;
use crate::failures::Failed;
use crate::strength::Strength;
pub(crate) use holdup_recording::words::{bytes, bytes_per_second, capital, ms, percent, thousands};
pub(crate) use holdup_signals::app::timing;
use holdup_signals::evidence::Evidence;
pub use holdup_signals::yardstick::{MATTERS, SERVICE_SLOWED};
use holdup_signals::{Missing, Window};

macro_rules! defined {
    ($($slug:ident $variant:ident,)*) => {
        impl Cause {
            /// All that holdup knows of it.
            #[must_use]
            pub const fn definition(self) -> &'static Definition {
                match self {
                    $(Self::$variant => &$slug::DEFINITION,)*
                }
            }
        }
    };
}
each_cause!(defined);

impl Cause {
    /// Its name in a sentence, e.g. `The connection pool is exhausted`.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.definition().doc.title
    }

    /// Whether it has this trait.
    #[must_use]
    pub fn is(self, of: Trait) -> bool {
        self.definition().traits.contains(&of)
    }

    /// What may lead to it, nearest first, each once; empty if only what is behind the app may, whatever
    /// that is.
    pub(crate) fn may_follow_from(self) -> Vec<Self> {
        Self::distinct(self.definition().follows_from.iter().flat_map(Edge::causes))
    }

    /// Whether it raises the demand on a disk.
    pub(crate) fn is_disk_demand(self) -> bool {
        let mut to = self.definition().adds_to.iter().flat_map(|of| of.to).copied().flatten();
        let adds = to.any(|of| *of == Source::With(Trait::DiskLimit)) && !self.is(Trait::DiskBurst);
        self.is(Trait::DiskDemand) || self.is(Trait::Load) || adds
    }

    /// Whether it can make a disk's operations take longer: a limit of the disk, or demand on it.
    pub(crate) fn acts_on_disks(self) -> bool {
        self.is(Trait::FullDisk) || self.is(Trait::DiskBurst) || self.is_disk_demand()
    }

    /// This cause's outcome for `case`.
    ///
    /// # Errors
    /// The facts missing to judge it.
    pub fn judge(self, case: &Case<'_>) -> Result<Outcome, Missing> {
        match self.definition().judge {
            Judge::Alone(judge) => bound::hold(case, self.definition(), judge(case)),
            Judge::Beside(judge) => bound::hold(case, self.definition(), judge(case, &alone(case))),
        }
    }
}

/// The outcomes of the causes that are judged alone.
pub type Others = BTreeMap<Cause, Result<Outcome, Missing>>;

/// The outcomes of all causes, in their order.
pub(crate) type Outcomes = Vec<(Cause, Result<Outcome, Missing>)>;

/// The outcome of every cause for `case`, in their order; each is judged once.
pub(crate) fn judge_all(case: &Case<'_>) -> Outcomes {
    let mut said = alone(case);
    let beside = Cause::ALL.iter().filter_map(|cause| match cause.definition().judge {
        Judge::Alone(_) => None,
        Judge::Beside(judge) => Some((*cause, bound::hold(case, cause.definition(), judge(case, &said)))),
    });
    let beside: Vec<_> = beside.collect();
    said.extend(beside);
    said.into_iter().collect()
}

fn alone(case: &Case<'_>) -> Others {
    let judged = Cause::ALL.iter().filter_map(|cause| match cause.definition().judge {
        Judge::Alone(judge) => Some((*cause, bound::hold(case, cause.definition(), judge(case)))),
        Judge::Beside(_) => None,
    });
    judged.collect()
}

/// A cause's outcome, if it can be judged.
pub enum Outcome {
    /// The cause is present.
    Found(CauseFinding),
    /// The cause is present and makes requests fail, with its share (0-1) of the failed requests.
    /// No wait explains a refused request.
    Fails(CauseFinding, f64),
    /// The cause is present by itself, whatever requests say; no source shows what it costs them, and
    /// which would.
    Uncounted(CauseFinding, Missing),
    /// The cause is absent, with the evidence.
    Cleared(Vec<Evidence>),
}

impl Outcome {
    /// What is said of a cause that is present, by the requests that failed of it.
    fn failing(found: CauseFinding, failed: Failed) -> Self {
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
pub struct CauseFinding {
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
    /// Its part, as far as the cause itself can tell; [`crate::link`] decides.
    pub role: Role,
}

/// The share (0-1) of the episode's failed requests that this cause explains, because they `did` so.
pub(crate) fn of_failures(case: &Case<'_>, failed: f64, did: &str) -> Evidence {
    of_failures_in(case.episode(), failed, did)
}

/// The same of those of `window`.
pub(crate) fn of_failures_in(window: Window, failed: f64, did: &str) -> Evidence {
    let expected = "failures at other times as well, if this were not the reason";
    let text = format!("{} of the failed requests {did}", percent(failed));
    Evidence::new("requests", "outcome", Labels::none(), window, percent(failed), expected, text)
}

/// Output of `cargo xtask new cause`.
#[cfg(test)]
#[path = "../../../../xtask/stubs/cause.rs"]
mod stub;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Cause;
    use crate::testing::{Judged as _, SyntheticRecording};

    #[test]
    fn a_new_cause_judges_nothing_yet() {
        let Judge::Alone(judge) = stub::DEFINITION.judge else { panic!("it needs no other cause") };
        assert!(SyntheticRecording::new(3).with(|case| judge(case).is_err()));
    }

    #[test]
    fn every_cause_is_documented_and_defines_itself() {
        for cause in Cause::ALL {
            assert_eq!(cause.definition().cause, *cause);
            assert_eq!(cause.slug().parse(), Ok(*cause));
            for (heading, text) in cause.definition().doc.sections() {
                assert!(!text.is_empty(), "{cause}: {heading} is empty");
            }
        }
    }
}
