//! The causes that counters alone can tell apart: a file each, and a line in [`ALL`].

mod backup_read;
mod bulk_load;
mod cpu_taken_by_others;
mod global_lock;
mod io_taken_by_others;
mod lock_contention;
mod many_small_commits;
mod missing_index;
mod network_delay;
pub mod quantities;
mod small_buffer_pool;
mod too_many_indexes;
mod workload_spike;

use crate::counters::frame::Frame;
use crate::counters::jitter::Jitter;
use crate::counters::judge::{Account, Part};
use crate::counters::view::{Normal, Reading, View, all};

/// A cause: its name, and what it must and can't do to counters.
#[derive(Debug, Clone, Copy)]
pub struct Cause {
    /// The name, as in holdup's list of causes where it is one of them.
    pub slug: &'static str,
    /// What it is, in a line.
    pub title: &'static str,
    /// What to know of it; none of one that holdup also measures in milliseconds: its rule tells.
    pub doc: Option<Doc>,
    /// Takes the account of an episode.
    pub account: fn(&View) -> Account,
}

/// What everybody should know of a cause. What is looked for in counters stands in its account.
#[derive(Debug, Clone, Copy)]
pub struct Doc {
    /// What it is.
    pub what: &'static str,
    /// Why it hurts.
    pub hurts: &'static str,
    /// What else looks like it, and how that differs.
    pub looks_like: &'static str,
    /// What to do.
    pub fix: &'static str,
    /// References.
    pub references: &'static str,
}

impl Cause {
    /// What is looked for in counters: the parts that a mechanism has, and each in words.
    #[must_use]
    pub fn looks_for(&self) -> Vec<(Part, &'static str)> {
        let nothing = Frame::new(0, 1.0);
        let (none, normal) = (nothing.range(0..0), Normal::default());
        let account = (self.account)(&View::new(&none, &normal, Jitter::NONE, self.slug));
        account.votes().map(|vote| (vote.part, vote.what)).collect()
    }
}

/// Every cause, in the order in which a request meets the resource.
pub const ALL: &[Cause] = &[
    network_delay::CAUSE,
    workload_spike::CAUSE,
    cpu_taken_by_others::CAUSE,
    missing_index::CAUSE,
    global_lock::CAUSE,
    lock_contention::CAUSE,
    backup_read::CAUSE,
    bulk_load::CAUSE,
    many_small_commits::CAUSE,
    too_many_indexes::CAUSE,
    small_buffer_pool::CAUSE,
    io_taken_by_others::CAUSE,
];

/// Transactions have become more, and each lighter: those that came are smaller than those that were there. An event, so it is
/// asked of the run's own time alone: other runs may just do other work.
fn lighter(seen: &View) -> Option<Reading> {
    all([seen.began(&quantities::COMMITS, 0.0, 0.5), seen.began(&quantities::COMMITS_PER_REQUEST, 0.0, 0.5)])
}

/// Sessions wait for row locks as they did not before: their share of those that run has doubled and is not small. What
/// they do then is not what they ask for.
fn piled_up_at_rows(seen: &View) -> Option<Reading> {
    let share = &quantities::WAITING_OF_RUNNING;
    all([seen.up(share, 1.0), seen.level_from_to(share, 0.25, 0.75)])
}
