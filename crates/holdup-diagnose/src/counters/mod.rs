//! What counters alone show, in a table of the host's and the database's samples: the stretches that
//! stand out, and the causes whose patterns they show, ranked.
//!
//! If response time was measured, milliseconds decide and this stands beside the verdict. If not,
//! this is the answer, provided that it is strong enough.

pub mod judge;
mod report;
#[cfg(test)]
mod tests;

pub use self::judge::{Ranking, Suspect, judge};
pub(crate) use self::report::Named;
pub use self::report::{CountersEpisode, CountersReport, CountersSuspect, CountersVote, Figure, FoundBy};
use crate::case::Case;
use crate::cause::Cause;
use crate::trace::view::Normal;
use holdup_signals::Window;
use holdup_signals::time::counters::jitter::Jitter;
use holdup_signals::time::counters::{Rows, Signal, Table, detect};

/// Steps right after an episode that count neither as episode nor as normal: its queue drains in
/// them.
const APART: usize = 1;

/// Least number of normal steps.
const LEAST_NORMAL: usize = 5;

/// The counters' judgement of a case.
pub(crate) struct CounterJudgement {
    /// The table judged.
    pub table: Table,
    /// Judged stretches, the most conspicuous first.
    pub episodes: Vec<JudgedEpisode>,
    /// How they were found.
    pub found_by: FoundBy,
}

/// One stretch.
pub(crate) struct JudgedEpisode {
    /// When.
    pub window: Window,
    /// The causes, the likeliest first.
    pub ranking: Ranking,
}

impl CounterJudgement {
    /// Judges `case`; none without counters, or if response time was measured and shows no symptom.
    pub fn judge(case: &Case<'_>) -> Option<Self> {
        let is_measured = !case.client.seconds.is_empty();
        if is_measured && case.degradation.is_none() {
            return None;
        }
        let mut table = Table::new(&case.view(case.whole()))?;
        if is_measured {
            table.frame.set(Signal::Latency, latencies(case, &table));
        }
        let other = case.against.as_ref().and_then(|against| {
            Some((Table::new(&against.healthy.view(against.healthy.whole()))?, against.baseline.window))
        });
        let other = other.as_ref().map(|(of, baseline)| of.frame.pick(of.rows(*baseline)));
        let all = 0..table.frame.rows();
        let (ranges, found_by): (Vec<Vec<usize>>, FoundBy) = match (&case.degradation, &other) {
            (Some(_), _) => (vec![table.rows(case.slow().window)], FoundBy::ResponseTime),
            (None, Some(_)) => {
                let slow = case.reported().map_or_else(|| all.clone().collect(), |slow| table.rows(slow));
                (vec![slow], FoundBy::Recording)
            }
            (None, None) if case.reported().is_some() => {
                (case.reported().map(|slow| table.rows(slow)).into_iter().collect(), FoundBy::Report)
            }
            (None, None) => {
                (detect(&table.frame, Jitter::NONE).into_iter().map(Iterator::collect).collect(), FoundBy::Counters)
            }
        };
        let inside: Vec<usize> = ranges.iter().flatten().copied().collect();
        let is_apart = |row: &usize| inside.iter().all(|i| i.abs_diff(*row) > APART);
        let own = || -> Rows<'_> {
            let baseline = case.baseline().map(|baseline| table.rows(baseline.window));
            let rows = baseline.unwrap_or_else(|| all.clone().filter(is_apart).collect());
            table.frame.pick(rows)
        };
        let normal = other.unwrap_or_else(own);
        if normal.numbers().len() < LEAST_NORMAL {
            return None;
        }
        let normal = Normal::own(normal);
        let mut episodes: Vec<JudgedEpisode> = ranges
            .into_iter()
            .filter(|rows| !rows.is_empty())
            .map(|rows| {
                let window = Window { from: table.steps[rows[0]].from, to: table.steps[rows[rows.len() - 1]].to };
                JudgedEpisode { window, ranking: judge(&table.frame.pick(rows), &normal) }
            })
            .collect();
        episodes.sort_by(|a, b| score(b.first()).total_cmp(&score(a.first())));
        Some(Self { table, episodes, found_by })
    }
}

impl CounterJudgement {
    /// Its likeliest causes; none if nothing stands out.
    pub fn rivals(&self) -> Option<Vec<Cause>> {
        let likely =
            self.episodes.first()?.ranking.suspects.iter().filter(|s| s.score.is_some_and(|score| score > 0.0));
        let likely: Vec<Cause> = causes(likely).into_iter().take(2).collect();
        (!likely.is_empty()).then_some(likely)
    }

    /// The most conspicuous stretch, if no source measured response time.
    pub fn alone(&self, case: &Case<'_>) -> Option<Window> {
        self.episodes.first().filter(|_| case.client.seconds.is_empty()).map(|e| e.window)
    }
}

impl JudgedEpisode {
    /// The likeliest cause, named or not.
    pub fn first(&self) -> Option<&Suspect> {
        self.ranking.first()
    }

    /// Named causes, likeliest first.
    pub fn named(&self) -> Vec<&Suspect> {
        self.ranking.named().collect()
    }
}

/// The causes of patterns, each once, in order.
fn causes<'s>(suspects: impl Iterator<Item = &'s Suspect>) -> Vec<Cause> {
    Cause::distinct(suspects.map(|suspect| suspect.cause))
}

/// A suspect's score; 0 without one.
fn score(of: Option<&Suspect>) -> f64 {
    of.and_then(|s| s.score).unwrap_or(0.0)
}

/// Mean response time in each step, seconds; a gap where none ended.
fn latencies(case: &Case<'_>, table: &Table) -> Vec<f64> {
    let mean = |step: &Window| {
        let within = case.client.seconds.iter().filter(|s| s.window.from < step.to && step.from < s.window.to);
        let (ms, n) = within.filter_map(|s| s.response_ms.mean()).fold((0.0, 0.0), |(ms, n), m| (ms + m, n + 1.0));
        if n > 0.0 { ms / n / 1e3 } else { f64::NAN }
    };
    table.steps.iter().map(mean).collect()
}
