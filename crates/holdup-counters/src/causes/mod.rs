//! The causes that counters alone can tell apart: a file each, and a line in [`ALL`].

mod backup_read;
mod bulk_load;
mod cpu_taken_by_others;
mod global_lock;
mod io_taken_by_others;
mod lock_contention;
mod missing_index;
mod network_delay;
pub mod quantities;
mod small_buffer_pool;
mod too_many_indexes;
mod workload_spike;

use crate::judge::Account;
use crate::view::View;

/// A cause: its name, and what it must and can't do to counters.
#[derive(Debug, Clone, Copy)]
pub struct Cause {
    /// The name, as in holdup's list of causes where it is one of them.
    pub slug: &'static str,
    /// What it is, in a line.
    pub title: &'static str,
    /// Takes the account of an episode.
    pub account: fn(&View) -> Account,
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
    too_many_indexes::CAUSE,
    small_buffer_pool::CAUSE,
    io_taken_by_others::CAUSE,
];
