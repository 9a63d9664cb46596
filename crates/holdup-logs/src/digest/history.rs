//! Compares earlier runs' figures of statements with this run: which statements are new, which got
//! slower, when each was first and last seen. Does not store them.

use std::collections::BTreeMap;

use crate::digest::report::{EarlierFigures, HistoryReport, Report};
use crate::digest::time::written;

/// A mean that grew by this factor is worth a look.
const SLOWER: f64 = 1.2;
/// Number of calls on both sides below which a mean says little.
const CALLS: u64 = 10;

/// Earlier figures of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlierCalls {
    /// Runs that contain it.
    pub runs: u64,
    /// Executions in all of them.
    pub calls: u64,
    /// Their time, microseconds.
    pub total_us: u128,
    /// First and last time it was seen, microseconds.
    pub seen_us: Option<(i64, i64)>,
}

impl Report {
    /// Adds to each statement what `known` has of it. `last` has the statements of the last run;
    /// the report has all of this one.
    pub fn compare(&mut self, known: &BTreeMap<String, EarlierCalls>, runs: u64, last: &[String]) {
        let mut compared = HistoryReport { runs, new: Vec::new(), slower: Vec::new(), gone: 0 };
        for query in &mut self.queries {
            let before = known.get(&query.id).copied().unwrap_or_default();
            #[expect(clippy::cast_precision_loss, reason = "a mean")]
            let avg_us = (before.calls > 0).then(|| before.total_us as f64 / before.calls as f64);
            let change = avg_us.filter(|avg| *avg > 0.0).map(|avg| (query.avg_us / avg * 1e3).round() / 1e3);
            let is_new = before.runs == 0;
            if is_new && runs > 0 {
                compared.new.push(query.id.clone());
            }
            if before.calls >= CALLS && query.calls >= CALLS && change.is_some_and(|change| change >= SLOWER) {
                compared.slower.push(query.id.clone());
            }
            query.before = Some(EarlierFigures {
                is_new,
                runs: before.runs,
                calls: before.calls,
                avg_us: avg_us.map(|avg| (avg * 1e3).round() / 1e3),
                change_ratio: change,
                first_seen: before.seen_us.map(|(first, _)| written(first)),
                last_seen: before.seen_us.map(|(_, last)| written(last)),
            });
        }
        let is_here = |id: &String| self.queries.iter().any(|query| query.id == *id);
        compared.gone = last.iter().filter(|id| !is_here(id)).count() as u64;
        self.history = Some(compared);
    }

    /// Keeps the first `limit` statements in the list; 0 keeps all.
    pub fn shorten(&mut self, limit: usize) {
        if limit > 0 && limit < self.queries.len() {
            self.not_listed += self.queries.len() - limit;
            self.queries.truncate(limit);
        }
    }
}
