//! The patterns that causes leave in counters: a file each, and a line in [`ALL`]. One cause may
//! leave several, such as a backup that reads and a load that writes.

mod backup_read;
mod bulk_load;
mod cpu_taken_by_others;
mod global_lock;
mod io_taken_by_others;
mod lock_contention;
mod many_small_commits;
mod missing_index;
mod network_delay;
mod small_buffer_pool;
mod too_many_indexes;
mod workload_spike;

use crate::counters::quantities;
use crate::counters::view::{Normal, Observation, View, all};
use crate::counters::votes::{Part, Votes};
use holdup_signals::time::counters::frame::Frame;
use holdup_signals::time::counters::jitter::Jitter;

/// A pattern: what a cause must and cannot do to counters.
#[derive(Debug, Clone, Copy)]
pub struct Pattern {
    /// Its own name.
    pub name: &'static str,
    /// The cause that leaves it, which a rule documents.
    pub cause: &'static str,
    /// The pattern in one line.
    pub title: &'static str,
    /// What to do, if that is more than the rule of the cause says.
    pub fix: Option<&'static str>,
    /// Votes on an episode.
    pub account: fn(&View) -> Votes,
}

impl Pattern {
    /// What counters must show: the parts of a mechanism, each in words.
    #[must_use]
    pub fn looks_for(&self) -> Vec<(Part, &'static str)> {
        let nothing = Frame::new(0, 1.0);
        let (none, normal) = (nothing.range(0..0), Normal::default());
        let account = (self.account)(&View::new(&none, &normal, Jitter::NONE, self.name));
        account.votes().map(|vote| (vote.part, vote.what)).collect()
    }
}

/// Every pattern, in the order in which a request meets the resource.
pub const ALL: &[Pattern] = &[
    network_delay::PATTERN,
    workload_spike::PATTERN,
    cpu_taken_by_others::PATTERN,
    missing_index::PATTERN,
    global_lock::PATTERN,
    lock_contention::PATTERN,
    backup_read::PATTERN,
    bulk_load::PATTERN,
    many_small_commits::PATTERN,
    too_many_indexes::PATTERN,
    small_buffer_pool::PATTERN,
    io_taken_by_others::PATTERN,
];

/// There are more transactions, each lighter: the new ones are smaller than the old ones. This is
/// an event, so it is judged within the run's own time: other runs may just do other work.
fn lighter(seen: &View) -> Option<Observation> {
    all([seen.began(&quantities::COMMITS, 0.0, 0.5), seen.began(&quantities::COMMITS_PER_REQUEST, 0.0, 0.5)])
}

/// Sessions wait for row locks more than before: their share of the running sessions has doubled
/// and is not small. Their work then does not reflect the demand.
fn piled_up_at_rows(seen: &View) -> Option<Observation> {
    let share = &quantities::WAITING_OF_RUNNING;
    all([seen.up(share, 1.0), seen.level_from_to(share, 0.25, 0.75)])
}
