//! Clocks of two captures by the segments of the connections that both saw, e.g. on a client and on
//! the server. A sequence number names a segment on its connection, so both captures stamp the same
//! packet. It reaches the far side later than the near side left it, in both directions: the fastest
//! packet of each direction bounds the offset. What both directions have in common cancels out, and
//! half the sum of the shortest ways is the error.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::{Offset, Shared, TRACES_MIN, median};

/// Segments kept of a capture: above this every second one is left out, by a hash that is the same
/// for both captures.
const KEPT_MAX: usize = 200_000;

/// A segment of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Segment {
    /// Its sender.
    pub from: SocketAddr,
    /// Its receiver.
    pub to: SocketAddr,
    /// The number of its first byte.
    pub seq: u32,
}

impl Segment {
    /// A number that is spread evenly, and the same for each capture.
    fn hash(&self) -> u64 {
        let ports = u64::from(self.from.port()) << 48 | u64::from(self.to.port()) << 32;
        (ports | u64::from(self.seq)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// The segments of one capture.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    /// When each was seen, nanoseconds since the epoch; none if it was seen again, because then it
    /// is unknown which of them the other side saw.
    seen: BTreeMap<Segment, Option<i64>>,
    /// Only hashes that begin with this many zeros are kept.
    zeros: u32,
}

impl Segments {
    /// Takes in a segment with data, or one that opens a connection.
    pub fn add(&mut self, segment: Segment, at: i64) {
        if segment.hash().leading_zeros() < self.zeros {
            return;
        }
        self.seen.entry(segment).and_modify(|known| *known = None).or_insert(Some(at));
        if self.seen.len() > KEPT_MAX {
            self.zeros += 1;
            let zeros = self.zeros;
            self.seen.retain(|segment, _| segment.hash().leading_zeros() >= zeros);
        }
    }

    /// Moves every time stamp.
    pub fn move_times(&mut self, by_ns: i64) {
        self.seen.values_mut().flatten().for_each(|at| *at = at.saturating_add(by_ns));
    }

    /// Takes in the segments of another capture on the same clock.
    pub fn append(&mut self, other: Self) {
        for (segment, at) in other.seen {
            self.seen.entry(segment).or_insert(at);
        }
    }
}

/// The offset of the clock of `other` against that of `known`; none if they share too few segments in
/// either direction.
pub fn offset_by_segments(known: &Segments, other: &Segments) -> Option<Offset> {
    // Of each direction, how much later the other saw its segments.
    let mut later: BTreeMap<(SocketAddr, SocketAddr), Vec<i64>> = BTreeMap::new();
    for (segment, at) in &other.seen {
        let (Some(theirs), Some(Some(ours))) = (at, known.seen.get(segment)) else { continue };
        later.entry((segment.from, segment.to)).or_default().push(theirs.saturating_sub(*ours));
    }
    let (mut to_other, mut to_known) = (Vec::new(), Vec::new());
    for ((from, to), ours) in &later {
        // Each pair of directions once.
        let Some(back) = later.get(&(*to, *from)).filter(|_| from < to) else { continue };
        // Towards the other capture, the way adds to the difference of the clocks.
        let is_ahead = median(ours.clone()) >= median(back.clone());
        let (towards, away) = if is_ahead { (ours, back) } else { (back, ours) };
        to_other.extend(towards);
        to_known.extend(away);
    }
    let count = to_other.len() + to_known.len();
    if to_other.len().min(to_known.len()) < TRACES_MIN {
        return None;
    }
    let (most, least): (i64, i64) = (*to_other.iter().min()?, *to_known.iter().max()?);
    // Clocks that drift apart leave no common offset: then the middle, and how far they spread.
    let middle = i64::try_from(i128::midpoint(most.into(), least.into())).ok()?;
    let error_ns = most.saturating_sub(least).saturating_abs() / 2;
    Some(Offset { offset_ns: middle.saturating_neg(), error_ns, by: Shared::Segments, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    /// A connection as both sides saw it: the server's clock is 3.5 s ahead, a way takes 2 to 7 ms to the server and
    /// 4 to 9 ms back.
    fn both_sides() -> (Segments, Segments) {
        let (client, server) = (at("10.0.0.1:40000"), at("10.0.0.2:3306"));
        let (mut near, mut far) = (Segments::default(), Segments::default());
        for n in 0..40_u32 {
            let way = i64::from(n % 6) * MS;
            let sent = i64::from(n) * 20 * MS;
            let request = Segment { from: client, to: server, seq: 100 * n };
            let answer = Segment { from: server, to: client, seq: 900 * n };
            near.add(request, sent);
            far.add(request, sent + 2 * MS + way + 3_500 * MS);
            far.add(answer, sent + 10 * MS + 3_500 * MS);
            near.add(answer, sent + 10 * MS + 4 * MS + way);
        }
        (near, far)
    }

    #[test]
    fn ways_in_both_directions_bound_the_offset() {
        let (near, far) = both_sides();
        let found = offset_by_segments(&near, &far).unwrap();
        assert_eq!((found.by, found.count, found.error_ns), (Shared::Segments, 80, 3 * MS));
        // Half of the difference of both ways.
        assert_eq!(found.offset_ns, -3_500 * MS + MS);
        let back = offset_by_segments(&far, &near).unwrap();
        assert_eq!((back.offset_ns, back.error_ns), (-found.offset_ns, found.error_ns));
    }

    #[test]
    fn one_direction_and_repeated_segments_prove_nothing() {
        let (near, far) = both_sides();
        let only = |from: &str| {
            let mut some = far.clone();
            some.seen.retain(|segment, _| segment.from == at(from));
            some
        };
        assert_eq!(offset_by_segments(&near, &only("10.0.0.1:40000")), None);
        let mut again = far.clone();
        for segment in far.seen.keys() {
            again.add(*segment, 0);
        }
        assert_eq!(offset_by_segments(&near, &again), None);
    }

    #[test]
    fn large_captures_keep_the_same_segments() {
        let (mut near, mut far) = (Segments::default(), Segments::default());
        let (client, server) = (at("[::1]:40000"), at("[::1]:5432"));
        for n in 0..300_000_u32 {
            let way = |from, to| Segment { from, to, seq: n * 7 };
            near.add(way(client, server), i64::from(n));
            near.add(way(server, client), i64::from(n));
            far.add(way(client, server), i64::from(n) + 5);
            if n % 3 == 0 {
                far.add(way(server, client), i64::from(n) - 1);
            }
        }
        assert!(near.seen.len() <= KEPT_MAX && far.seen.len() <= KEPT_MAX && near.zeros > 0);
        let found = offset_by_segments(&near, &far).unwrap();
        assert_eq!((found.offset_ns, found.error_ns), (-2, 3));
        assert!(found.count > 10_000, "{found:?}");
    }
}
