//! A place on the curve of a schedule.

use super::Schedule;
use super::curve::Piece;

/// A place on the curve: a piece, and the integral from the start of the schedule to its ends.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub segment: usize,
    piece: usize,
    /// The piece itself, to save a look-up for each arrival.
    pub now: Piece,
    pub start_ns: u64,
    pub before: u128,
    end: u128,
}

impl Place {
    /// Before the first piece.
    pub fn new() -> Self {
        let now = Piece::new(0, 0, 0, 0, 0);
        Self { segment: 0, piece: 0, now, start_ns: 0, before: 0, end: 0 }
    }

    /// Advances to the piece in which the integral reaches `area`; none at the end of the schedule.
    #[inline]
    pub fn advance(&mut self, schedule: &Schedule, area: u128) -> Option<bool> {
        if area < self.end {
            return Some(false);
        }
        self.search(schedule, area).map(|()| true)
    }

    #[cold]
    fn search(&mut self, schedule: &Schedule, area: u128) -> Option<()> {
        let curve = &schedule.inner.curve;
        self.segment = curve.segment_of(area)?;
        let segment = &curve.segments[self.segment];
        self.piece = segment.piece_of(area - segment.before);
        self.now = *segment.pieces.get(self.piece)?;
        self.start_ns = segment.start_ns + self.now.from_ns;
        self.before = segment.before + self.now.before;
        self.end = self.before + self.now.area();
        Some(())
    }
}
