//! Clocks by packets: requests to a database that were captured on both ends of their connection. The
//! sequence number of the segment that began a request, and its length, are the same on both ends,
//! also behind an address translation. The server's end of a request lies within the client's, so each
//! request bounds the offset. The offset lies where most bounds agree. No request needs a trace id.
//!
//! Half of what the bounds leave is the error: without asymmetry, the shortest way between the hosts.

use std::collections::HashMap;

use holdup_recording::rows::Exchange;

use super::traces::{Interval, bounds, offset_within};
use super::{Offset, Shared, TRACES_MIN};

/// Rows of one side that are looked at, at most: of more a part, by sequence numbers.
const ROWS_MAX: usize = 400_000;

/// Each request that is unlike all others, by its sequence number and its bytes; none if two are alike.
type Requests = HashMap<(i64, i64), Option<Interval>>;

/// The offset by what both sides captured of requests.
pub(super) fn by_exchanges(known: &[Exchange], other: &[Exchange]) -> Option<Offset> {
    let every = (known.len().max(other.len()) / ROWS_MAX) as u64 + 1;
    let (ours, theirs) = (requests(known, every), requests(other, every));
    let both = theirs.iter().filter_map(|(key, interval)| Some(((*ours.get(key)?)?, (*interval)?)));
    let all: Vec<Interval> = both.map(|(ours, theirs)| bounds(ours, theirs)).collect();
    if all.len() < TRACES_MIN {
        return None;
    }
    let (offset_ns, error_ns) = offset_within(&all, 0)?;
    Some(Offset { offset_ns, error_ns, by: Shared::Exchanges, count: all.len() })
}

/// One of `every` requests, the same ones on both sides.
fn requests(rows: &[Exchange], every: u64) -> Requests {
    let mut all = Requests::new();
    // Times of a request that lacks packets are those of others.
    for row in rows.iter().filter(|row| row.outcome == "ok" && row.retransmits == 0) {
        let Some(seq) = row.request_seq else { continue };
        let is_kept = seq.unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        if is_kept.is_multiple_of(every) {
            let interval = (row.request_at, row.done_at);
            all.entry((seq, row.request_bytes)).and_modify(|known| *known = None).or_insert(Some(interval));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// A connection as both ends saw it: the server's clock is 3.5 s ahead, a way takes 2 to 7 ms to the
    /// server and 4 to 9 ms back.
    fn both_ends() -> (Vec<Exchange>, Vec<Exchange>) {
        let request = |n: i64, request_at, done_at| Exchange {
            request_at,
            done_at,
            outcome: "ok".to_owned(),
            request_bytes: 40,
            request_seq: Some(i64::from(u32::MAX) - 500 + 90 * n),
            ..Exchange::default()
        };
        let of = |n: i64| {
            let (sent, way) = (n * 20 * MS, n % 6 * MS);
            let near = request(n, sent, sent + 14 * MS + way);
            let far = request(n, sent + 2 * MS + way + 3_500 * MS, sent + 10 * MS + 3_500 * MS);
            (near, far)
        };
        (0..40).map(of).unzip()
    }

    #[test]
    fn requests_on_both_ends_bound_the_offset() {
        let (near, far) = both_ends();
        let found = by_exchanges(&near, &far).unwrap();
        assert_eq!((found.by, found.count, found.error_ns), (Shared::Exchanges, 40, 3 * MS));
        // Half of the difference of both ways.
        assert_eq!(found.offset_ns, -3_500 * MS + MS);
        let back = by_exchanges(&far, &near).unwrap();
        assert_eq!((back.offset_ns, back.error_ns), (-found.offset_ns, found.error_ns));
    }

    #[test]
    fn ambiguous_segments_do_not_bound_the_offset() {
        let (near, far) = both_ends();
        let changed = |change: fn(&mut Exchange)| {
            let mut far = far.clone();
            far.iter_mut().for_each(change);
            by_exchanges(&near, &far)
        };
        assert_eq!(changed(|row| row.request_seq = None), None);
        assert_eq!(changed(|row| row.request_seq = Some(7)), None);
        assert_eq!(changed(|row| row.request_bytes += 1), None);
        assert_eq!(changed(|row| row.outcome = "lost".to_owned()), None);
        assert_eq!(changed(|row| row.retransmits = 1), None);
    }

    #[test]
    fn a_few_wrong_ones_are_outvoted() {
        let (near, mut far) = both_ends();
        far.iter_mut().step_by(20).for_each(|row| (row.request_at, row.done_at) = (0, 1));
        let found = by_exchanges(&near, &far).unwrap();
        assert_eq!((found.offset_ns, found.error_ns), (-3_500 * MS + MS, 3 * MS));
    }
}
