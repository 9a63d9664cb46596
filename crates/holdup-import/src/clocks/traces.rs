//! Clocks by requests that both sides saw, told by their trace ids. The server's side of a request
//! lies within the client's, so each request bounds the offset from both ends. A call of a database,
//! which both sides name by its trace and its digest, bounds it closer than the whole request does.
//!
//! The offset lies where most bounds agree (K. Marzullo, 1984): an id that was used twice, or a span
//! with a wrong time, is outvoted. Bounds that do not agree because the clocks drift leave the
//! middle, and how far they spread.

use std::collections::HashMap;

use holdup_recording::Batch;
use holdup_recording::rows::{Exchange, Request, Span, Statement};
use holdup_recording::tables::Tables;

use super::{Offset, Shared, TRACES_MIN, median};

/// Rows of one side that are looked at, at most; of more a part, by a hash of the trace id that is
/// the same for both sides.
const ROWS_MAX: usize = 400_000;

/// The share (0-1) of the bounds that agree. With less the clocks drift, and the bounds' spread is
/// part of the error.
const AGREE: f64 = 0.9;

/// What one side says of requests.
#[derive(Clone, Copy)]
pub(super) struct Seen<'r> {
    requests: &'r [Request],
    spans: &'r [Span],
    statements: &'r [Statement],
    exchanges: &'r [Exchange],
}

impl<'r> From<&'r Batch> for Seen<'r> {
    fn from(batch: &'r Batch) -> Self {
        let Batch { requests, spans, statements, exchanges, .. } = batch;
        Self { requests, spans, statements, exchanges }
    }
}

impl<'r> From<&'r Tables> for Seen<'r> {
    fn from(tables: &'r Tables) -> Self {
        let Tables { requests, spans, statements, exchanges, .. } = tables;
        let (requests, spans) = (&requests.rows[..], &spans.rows[..]);
        Self { requests, spans, statements: &statements.rows, exchanges: &exchanges.rows }
    }
}

/// From when to when something was seen.
pub(super) type Interval = (i64, i64);

/// A call by its trace and digest; none if there were several.
type Calls<'r> = HashMap<(&'r str, &'r str), Option<Interval>>;

impl<'r> Seen<'r> {
    fn rows(&self) -> usize {
        self.requests.len() + self.spans.len() + self.statements.len() + self.exchanges.len()
    }

    /// Each trace from its first moment to its last.
    fn traces(&self, is_kept: impl Fn(&str) -> bool) -> HashMap<&'r str, Interval> {
        let requests = self
            .requests
            .iter()
            .filter_map(|row| Some((row.trace_id.as_deref()?, (row.sent_at.unwrap_or(row.intended_at), row.done_at))));
        let spans = self.spans.iter().map(|row| (row.trace_id.as_str(), span(row)));
        let others = self.database_calls().map(|(id, _, interval)| (id, interval));
        let mut all: HashMap<&str, Interval> = HashMap::new();
        for (id, (from, to)) in requests.chain(spans).chain(others).filter(|(id, _)| !id.is_empty() && is_kept(id)) {
            let one = all.entry(id).or_insert((from, to));
            *one = (one.0.min(from), one.1.max(to));
        }
        all
    }

    /// Statements and packets that carry a trace id.
    fn database_calls(&self) -> impl Iterator<Item = (&'r str, &'r str, Interval)> {
        let statements = self.statements.iter().filter(|row| row.kind == "execution").filter_map(|row| {
            let interval = (row.observed_at.saturating_sub(row.duration_ns), row.observed_at);
            Some((row.trace_id.as_deref()?, row.digest.as_str(), interval))
        });
        statements.chain(self.packets())
    }

    fn packets(&self) -> impl Iterator<Item = (&'r str, &'r str, Interval)> {
        let whole = self.exchanges.iter().filter(|row| row.outcome == "ok");
        whole.filter_map(|row| Some((row.trace_id.as_deref()?, row.digest.as_deref()?, (row.request_at, row.done_at))))
    }

    /// Single calls, by their source.
    fn calls(&self, is_kept: impl Fn(&str) -> bool + Copy) -> [Calls<'r>; 2] {
        let spans = self.spans.iter().filter(|row| row.calls <= 1);
        let spans = spans.filter_map(|row| Some((row.trace_id.as_str(), row.digest.as_deref()?, span(row))));
        [collected(spans, is_kept), collected(self.database_calls(), is_kept)]
    }
}

fn collected<'r>(
    calls: impl Iterator<Item = (&'r str, &'r str, Interval)>,
    is_kept: impl Fn(&str) -> bool,
) -> Calls<'r> {
    let mut all = Calls::new();
    for (id, digest, interval) in calls.filter(|(id, ..)| !id.is_empty() && is_kept(id)) {
        all.entry((id, digest)).and_modify(|known| *known = None).or_insert(Some(interval));
    }
    all
}

fn span(row: &Span) -> Interval {
    (row.started_at, row.started_at.saturating_add(row.duration_ns))
}

/// The least and the most that is to be added to the times of `other`, if one of both lies within
/// the other.
pub(super) fn bounds(known: Interval, other: Interval) -> Interval {
    let (a, b) = (known.0.saturating_sub(other.0), known.1.saturating_sub(other.1));
    (a.min(b), a.max(b))
}

/// The offset by what both sides saw of requests.
pub(super) fn by_traces(known: Seen<'_>, other: Seen<'_>) -> Option<Offset> {
    let zeros = (known.rows().max(other.rows()) / ROWS_MAX).next_power_of_two().ilog2();
    let is_kept = |id: &str| hash(id).leading_zeros() >= zeros;
    let ours = known.traces(is_kept);
    let theirs = other.traces(is_kept);
    let mut all: Vec<Interval> = Vec::new();
    all.extend(theirs.iter().filter_map(|(id, interval)| Some(bounds(*ours.get(id)?, *interval))));
    let count = all.len();
    let (ours, theirs) = (known.calls(is_kept), other.calls(is_kept));
    for (ours, theirs) in ours.iter().flat_map(|ours| theirs.iter().map(move |theirs| (ours, theirs))) {
        let both = theirs.iter().filter_map(|(key, interval)| Some(((*ours.get(key)?)?, (*interval)?)));
        all.extend(both.map(|(ours, theirs)| bounds(ours, theirs)));
    }
    if count < TRACES_MIN {
        return None;
    }
    offset_within(&all, softness(&all)).map(|(offset_ns, error_ns)| Offset {
        offset_ns,
        error_ns,
        by: Shared::Traces,
        count,
    })
}

/// The offset that most of `bounds` allow, and its error, which is at least `error_min_ns`.
pub(super) fn offset_within(bounds: &[Interval], error_min_ns: i64) -> Option<(i64, i64)> {
    let (low, high, agree) = most_agreed(bounds)?;
    let half = high.saturating_sub(low) / 2;
    let (offset_ns, error_ns) = (low.saturating_add(half), half.max(error_min_ns));
    if agree as f64 >= AGREE * bounds.len() as f64 {
        return Some((offset_ns, error_ns));
    }
    let middle = median(bounds.iter().map(|(low, high)| low.saturating_add(high.saturating_sub(*low) / 2)).collect())?;
    let off = |(low, high): &Interval| low.saturating_sub(middle).max(middle.saturating_sub(*high)).saturating_abs();
    let spread = median(bounds.iter().map(off).collect())?;
    Some((middle, spread.max(error_ns)))
}

/// How far the ends of bounds may be off, nanoseconds: a server may end a span only after its client
/// has the answer. The offset then lies outside of every bound, by as much as the other end is away.
/// So the error is never less than the width of a usual bound, however many there are.
fn softness(bounds: &[Interval]) -> i64 {
    median(bounds.iter().map(|(low, high)| high.saturating_sub(*low)).collect()).unwrap_or(0)
}

/// The interval that most of `bounds` contain, and how many do.
fn most_agreed(bounds: &[Interval]) -> Option<(i64, i64, usize)> {
    // At one time those that begin come before those that end, because ends belong to them.
    let mut edges: Vec<(i64, bool)> = bounds.iter().flat_map(|(low, high)| [(*low, false), (*high, true)]).collect();
    edges.sort_unstable();
    let (mut inside, mut best): (usize, Option<(i64, i64, usize)>) = (0, None);
    for (i, (at, is_end)) in edges.iter().enumerate() {
        if *is_end {
            inside -= 1;
            continue;
        }
        inside += 1;
        if best.is_none_or(|(.., most)| inside > most) {
            best = Some((*at, edges.get(i + 1).map_or(*at, |(next, _)| *next), inside));
        }
    }
    best
}

/// A hash (FNV-1a) that is the same on every machine, its bits mixed once more.
fn hash(id: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    id.bytes().fold(0xcbf2_9ce4_8422_2325, step).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
#[path = "traces/tests.rs"]
mod tests;
