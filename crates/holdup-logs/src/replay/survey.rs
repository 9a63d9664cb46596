//! Goes through a whole mix once and sends nothing: how long it is, how many sessions run at once,
//! which statements it has. Memory grows with the number of sessions, and up to a limit with that of
//! different statements, not with the log.

use std::collections::HashMap;
use std::sync::Arc;

use crate::digest::problem::Problems;
use crate::digest::room::Room;

use crate::replay::mix::{Action, LeftOut, Mix, Rules};
use crate::replay::order::{Corrections, HELD_BACK_BYTES, Order};
use crate::replay::shapes::Shapes;
use crate::replay::source::Logs;

/// Longest mix, seconds: ten years of a log.
const MOST_SECONDS: usize = 315_360_000;

/// The content of a mix.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Statements of the logs, including those left out.
    pub statements: u64,
    /// Statements that are sent.
    pub sent: u64,
    /// Sessions.
    pub sessions: u64,
    /// Sessions at once.
    pub most_sessions: u32,
    /// Time of the first action, microseconds of the log.
    pub first_us: i64,
    /// End of the last one.
    pub last_us: i64,
    /// Statements that begin in each second of the replay.
    pub per_second: Vec<u32>,
    /// The different statements.
    pub shapes: Shapes,
    /// Number of the last statement of each session.
    pub lasts: Arc<Vec<u64>>,
    /// The database in which sessions executed most statements, as far as the log shows it.
    pub database: Option<Arc<str>>,
    /// What was left out.
    pub left_out: LeftOut,
    /// Corrections to times.
    pub corrections: Corrections,
    /// Problems.
    pub problems: Problems,
    /// Whether a limit ended it.
    pub is_limited: bool,
}

/// A session: its start, its end, and its last statement.
#[derive(Clone, Copy, Debug)]
struct Span {
    from_us: i64,
    to_us: i64,
    last: u64,
}

impl Survey {
    /// Surveys `logs` under `rules`; seconds are counted at this multiple of the logs' speed. The
    /// different statements take about `most_bytes`: if they need more, the logs are read again, and
    /// those that took the most time are kept.
    pub fn read(logs: &Logs, rules: &Rules, speed: f64, most_bytes: u64) -> Self {
        let first = Self::pass(logs, rules, speed, Shapes::room(most_bytes));
        match first.shapes.room_for_heaviest() {
            None => first,
            Some(room) => {
                drop(first);
                Self::pass(logs, rules, speed, room)
            }
        }
    }

    fn pass(logs: &Logs, rules: &Rules, speed: f64, room: Arc<Room>) -> Self {
        let mut mix = Mix::new(Order::new(logs.read(), HELD_BACK_BYTES), rules.clone(), None);
        mix.shapes = Shapes::within(rules.dialect, room);
        let mut spans: Vec<Span> = Vec::new();
        let mut databases: HashMap<Arc<str>, u64> = HashMap::new();
        let (mut first_us, mut last_us, mut sent) = (None, i64::MIN, 0_u64);
        let mut per_second: Vec<u32> = Vec::new();
        for item in mix.by_ref() {
            let first_us = *first_us.get_or_insert(item.begin_us);
            let index = usize::try_from(item.session).unwrap_or(usize::MAX);
            if index == spans.len() {
                spans.push(Span { from_us: item.begin_us, to_us: item.begin_us, last: u64::MAX });
            }
            let Some(span) = spans.get_mut(index) else { continue };
            span.to_us = span.to_us.max(item.begin_us);
            if let Action::Execute(execution) = item.action {
                sent += 1;
                span.last = execution.number;
                let took_us = execution.took_us.and_then(|took| i64::try_from(took).ok()).unwrap_or(0);
                span.to_us = span.to_us.max(item.begin_us.saturating_add(took_us));
                let second = ((item.begin_us - first_us) as f64 / 1e6 / speed) as usize;
                if second < MOST_SECONDS {
                    per_second.resize(per_second.len().max(second + 1), 0);
                    if let Some(count) = per_second.get_mut(second) {
                        *count += 1;
                    }
                }
                if let Some(entry) = execution.entry {
                    *databases.entry(entry).or_default() += 1;
                }
            }
            last_us = last_us.max(span.to_us);
        }
        let first_us = first_us.unwrap_or(0);
        let database = databases.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
        Self {
            statements: mix.statements(),
            sent,
            sessions: spans.len() as u64,
            most_sessions: most_at_once(&spans),
            first_us,
            last_us: last_us.max(first_us),
            per_second,
            lasts: Arc::new(spans.iter().map(|span| span.last).collect()),
            database: database.map(|(name, _)| name),
            left_out: mix.left_out.clone(),
            corrections: mix.order().corrections,
            problems: mix.order().source().problems(),
            is_limited: mix.is_limited,
            shapes: mix.shapes,
        }
    }
}

/// Most sessions at the same time.
fn most_at_once(spans: &[Span]) -> u32 {
    let ends = spans.iter().flat_map(|span| [(span.from_us, 0, 1_i64), (span.to_us, 1, -1)]);
    let mut ends: Vec<(i64, i32, i64)> = ends.collect();
    ends.sort_unstable();
    let (mut now, mut most) = (0_i64, 0_i64);
    for (_, _, change) in ends {
        now += change;
        most = most.max(now);
    }
    u32::try_from(most).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_at_once_are_counted() {
        let span = |from_us, to_us| Span { from_us, to_us, last: 0 };
        assert_eq!(most_at_once(&[span(0, 10), span(2, 4), span(5, 7), span(7, 9), span(20, 20)]), 3);
        assert_eq!(most_at_once(&[]), 0);
    }
}
