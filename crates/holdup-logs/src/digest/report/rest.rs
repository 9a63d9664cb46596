//! The row of the statements that did not fit in memory.

use serde::Serialize;

use super::Order;
use holdup_recording::words::count;

use crate::digest::duration::time;
use crate::digest::shape::Shape;
use crate::digest::tally::Tally;

/// Statements that did not fit in memory. Their calls and time are in the sums of the report, their
/// other attributes are not.
#[derive(Clone, Debug, Serialize)]
pub struct RestReport {
    /// Number of statements.
    pub statements: usize,
    /// Whether there were too many to count: there are at least that many.
    pub is_at_least: bool,
    /// Their executions.
    pub calls: u64,
    /// Their time in total.
    pub total_us: u128,
    /// Upper bound on the time of each of them.
    pub at_most_us: u64,
    /// Queries at the head of the list that took at least as long as any of the rest can have
    /// taken. By total time, these are certainly the first.
    pub exact_ranks: usize,
}

impl RestReport {
    /// One line beside a list of `listed` queries.
    pub fn words(&self, listed: usize) -> String {
        let at_least = if self.is_at_least { "at least " } else { "" };
        let proof = if self.exact_ranks >= listed {
            format!("none of them took more than {}", time(self.at_most_us.into()))
        } else {
            let exact = self.exact_ranks;
            format!("one of them may belong behind rank {exact}; raise --max-memory")
        };
        let (statements, calls) = (count(self.statements as u128), count(self.calls));
        format!("{at_least}{statements} further statements, together {} in {calls} calls; {proof}", time(self.total_us))
    }
}

/// The statements that did not fit, compared with those that did.
pub fn from_tally(tally: &Tally, ranked: &[(u128, &Shape)], order: &Order) -> Option<RestReport> {
    let (rest, room) = (&tally.rest, tally.room.as_ref()?);
    let (statements, is_at_least) = room.refused();
    let at_most_us = rest.at_most_us();
    let is_by_time = matches!(order, Order::TotalTime);
    let is_first = |(time, _): &&(u128, &Shape)| is_by_time && *time >= u128::from(at_most_us);
    (rest.calls > 0).then(|| RestReport {
        statements,
        is_at_least,
        calls: rest.calls,
        total_us: rest.total_us,
        at_most_us,
        exact_ranks: ranked.iter().take_while(is_first).count(),
    })
}
