//! The offered rate over time, its integral, and the inverse of the integral. Times are whole
//! nanoseconds and rates whole millionths of a request per second, so that sums are never rounded:
//! the millionth phase begins exactly where it should, after a day as after a second.

use std::sync::Arc;
use std::time::Duration;

/// One request in the unit of integrals, which is half a millionth of a request per second for a
/// nanosecond: with the half, the area under a ramp is whole.
pub(super) const REQUEST: u128 = 2_000_000_000_000_000;

/// Requests per second to millionths of them.
pub(super) fn millionths(rate: f64) -> u64 {
    (rate * 1e6).round() as u64
}

/// As a floating-point number. Converting two halves is several times as fast as converting all 128
/// bits. It is monotonic, too: each half's conversion is, and so is their sum.
#[inline]
fn real(area: u128) -> f64 {
    const HIGH: f64 = 18_446_744_073_709_551_616.0;
    (area >> 64) as u64 as f64 * HIGH + area as u64 as f64
}

/// A piece in which the rate changes linearly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Piece {
    /// Its start within its segment.
    pub from_ns: u64,
    pub length_ns: u64,
    /// Rates at its ends in millionths.
    pub rate_from: u64,
    pub rate_to: u64,
    /// The integral from the start of its segment to its own start.
    pub before: u128,
    /// Change of the rate, millionths per nanosecond; for a constant rate, nanoseconds per unit of
    /// the integral.
    factor: f64,
}

impl Piece {
    pub fn new(from_ns: u64, length_ns: u64, rate_from: u64, rate_to: u64, before: u128) -> Self {
        let (from, to) = (rate_from as f64, rate_to as f64);
        let factor = if rate_from == rate_to { 0.5 / from } else { (to - from) / length_ns as f64 };
        Self { from_ns, length_ns, rate_from, rate_to, before, factor }
    }

    pub fn area(&self) -> u128 {
        (u128::from(self.rate_from) + u128::from(self.rate_to)) * u128::from(self.length_ns)
    }

    /// Nanoseconds from its start until the integral from there has reached `area`, rounded down.
    /// It never decreases as `area` grows, although it is computed in floating point: each
    /// operation in it is monotonic.
    #[inline]
    pub fn moment(&self, area: u128) -> u64 {
        let (from, to) = (self.rate_from as f64, self.rate_to as f64);
        let slope = self.factor;
        let moment = if self.rate_from == self.rate_to {
            (real(area) * self.factor) as u64
        } else if slope < 0.0 {
            // Solves 2 from t + slope t² = area. The form with the root below does not cancel.
            let area = real(area);
            (area / (from + (from * from + slope * area).max(0.0).sqrt())) as u64
        } else {
            // A rise, seen from its end, is a fall.
            let rest = real(self.area().saturating_sub(area));
            let back = rest / (to + (to * to - slope * rest).max(0.0).sqrt());
            self.length_ns.saturating_sub(back.ceil() as u64)
        };
        moment.min(self.length_ns)
    }

    /// Requests per second `at_ns` from its start.
    pub fn rate(&self, at_ns: u64) -> f64 {
        let share = at_ns as f64 / self.length_ns.max(1) as f64;
        (self.rate_from as f64 * (1.0 - share) + self.rate_to as f64 * share) / 1e6
    }
}

/// A stretch of the schedule as pieces; stretches of the same shape share them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Segment {
    pub pieces: Arc<[Piece]>,
    pub start_ns: u64,
    pub length_ns: u64,
    /// The integral from the start of the schedule.
    pub before: u128,
    pub area: u128,
}

impl Segment {
    /// The piece in which the integral from the segment's start reaches `area`: at a border the
    /// later one.
    pub fn piece_of(&self, area: u128) -> usize {
        self.pieces.partition_point(|p| p.before + p.area() <= area).min(self.pieces.len().saturating_sub(1))
    }
}

/// All stretches in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Curve {
    pub segments: Vec<Segment>,
}

impl Curve {
    pub fn push(&mut self, pieces: Arc<[Piece]>) {
        let last = pieces.last();
        self.segments.push(Segment {
            start_ns: self.length_ns(),
            length_ns: last.map_or(0, |p| p.from_ns + p.length_ns),
            before: self.area(),
            area: last.map_or(0, |p| p.before + p.area()),
            pieces,
        });
    }

    pub fn length_ns(&self) -> u64 {
        self.segments.last().map_or(0, |s| s.start_ns + s.length_ns)
    }

    pub fn area(&self) -> u128 {
        self.segments.last().map_or(0, |s| s.before + s.area)
    }

    /// The segment in which the integral reaches `area`: at a border the later one, so that a phase
    /// begins with a request; none at the end or beyond.
    pub fn segment_of(&self, area: u128) -> Option<usize> {
        let index = self.segments.partition_point(|s| s.before + s.area <= area);
        (index < self.segments.len()).then_some(index)
    }

    /// Segment at a time; the last one at the end and beyond.
    pub fn segment_at(&self, at_ns: u64) -> usize {
        let index = self.segments.partition_point(|s| s.start_ns + s.length_ns <= at_ns);
        index.min(self.segments.len().saturating_sub(1))
    }

    /// Requests per second at the highest point.
    pub fn peak_rate(&self) -> f64 {
        let pieces = self.segments.iter().flat_map(|s| s.pieces.iter());
        pieces.map(|p| p.rate_from.max(p.rate_to)).max().unwrap_or(0) as f64 / 1e6
    }

    /// Requests per second at a time; 0 at the end and beyond.
    pub fn rate_at(&self, at_ns: u64) -> f64 {
        let Some(segment) = self.segments.get(self.segment_at(at_ns)) else { return 0.0 };
        let within = at_ns - segment.start_ns.min(at_ns);
        let index = segment.pieces.partition_point(|p| p.from_ns + p.length_ns <= within);
        segment.pieces.get(index).map_or(0.0, |p| p.rate(within - p.from_ns))
    }
}

/// Joins pieces of one segment: nanoseconds, and the rates at both ends in millionths.
pub(super) fn pieces(parts: impl IntoIterator<Item = (u64, u64, u64)>) -> Arc<[Piece]> {
    let (mut from_ns, mut before) = (0, 0);
    parts
        .into_iter()
        .map(|(length_ns, rate_from, rate_to)| {
            let piece = Piece::new(from_ns, length_ns, rate_from, rate_to, before);
            from_ns += length_ns;
            before += piece.area();
            piece
        })
        .collect()
}

/// One piece in which the rate, in requests per second, changes linearly.
pub(super) fn line(length: Duration, from: f64, to: f64) -> Arc<[Piece]> {
    pieces([(nanoseconds(length), millionths(from), millionths(to))])
}

pub(super) fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
