//! The causes that counters alone can tell apart: a file each, and a line in [`ALL`].

mod cpu_taken_by_others;
pub mod quantities;

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

/// Every cause.
pub const ALL: &[Cause] = &[cpu_taken_by_others::CAUSE];
