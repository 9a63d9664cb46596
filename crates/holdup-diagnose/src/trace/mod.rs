//! What a cause leaves in counters: patterns of the figures of hosts and databases, each with votes
//! for and against it. A cause may leave several, such as a backup that reads and a load that writes;
//! they stand in its folder.

pub mod quantities;
pub mod view;
pub mod votes;

use crate::trace::view::{Normal, Observation, View, all};
use crate::trace::votes::{Part, Votes};
use holdup_signals::time::counters::frame::Frame;
use holdup_signals::time::counters::jitter::Jitter;

/// A pattern: what a cause must and cannot do to counters.
#[derive(Debug, Clone, Copy)]
pub struct Pattern {
    /// Its own name.
    pub name: &'static str,
    /// The pattern in one line.
    pub title: &'static str,
    /// What to do, if that is more than the cause's texts say.
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

/// There are more transactions, each lighter: the new ones are smaller than the old ones. This is
/// an event, so it is judged within the run's own time: other runs may just do other work.
pub(crate) fn lighter(seen: &View) -> Option<Observation> {
    all([seen.began(&quantities::COMMITS, 0.0, 0.5), seen.began(&quantities::COMMITS_PER_REQUEST, 0.0, 0.5)])
}

/// Sessions wait for row locks more than before: their share of the running sessions has doubled
/// and is not small. Their work then does not reflect the demand.
pub(crate) fn piled_up_at_rows(seen: &View) -> Option<Observation> {
    let share = &quantities::WAITING_OF_RUNNING;
    all([seen.up(share, 1.0), seen.level_from_to(share, 0.25, 0.75)])
}
