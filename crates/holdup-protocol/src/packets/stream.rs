//! One direction of one connection: segments in any order, repeated or overlapping -> its bytes in
//! order. Missing bytes become a gap of known length. Memory is bounded by [`HELD_BYTES_MAX`] and
//! [`HELD_SEGMENTS_MAX`]. It knows no protocol.

/// Most bytes that one direction may hold back while it waits for earlier ones.
const HELD_BYTES_MAX: usize = 256 << 10;
/// Most segments that it may hold back.
const HELD_SEGMENTS_MAX: usize = 128;
/// A segment that fills a hole later than this was retransmitted, not overtaken, nanoseconds.
const REORDER_NS: i64 = 3_000_000;

/// The next part in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamPart<'a> {
    /// Bytes, and the number of further ones that were not stored.
    Bytes(i64, &'a [u8], u32),
    /// This many bytes were never captured; known at that time.
    Gap(i64, u32),
}

#[derive(Debug)]
struct HeldSegment {
    seq: u32,
    at: i64,
    bytes: Vec<u8>,
    cut: u32,
}

impl HeldSegment {
    fn length(&self) -> u32 {
        length(&self.bytes, self.cut)
    }
}

/// The kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    /// New.
    New,
    /// Seen before: retransmitted.
    Again,
    /// The same packet, captured twice, or a probe of an idle connection.
    Copy,
}

/// One direction.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    next: Option<u32>,
    held: Vec<HeldSegment>,
    held_bytes: usize,
    /// Sequence number and identification of the last segment with payload, and its time.
    last: (u32, u16, i64),
}

fn length(bytes: &[u8], cut: u32) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).saturating_add(cut)
}

/// How far `a` is behind `b` (RFC 9293, section 3.4: sequence numbers wrap).
fn distance(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

impl Stream {
    /// Sets the number of the next byte.
    pub fn begin(&mut self, seq: u32) {
        self.next = Some(seq);
        self.held.clear();
        self.held_bytes = 0;
    }

    /// The next expected byte.
    pub fn next(&self) -> Option<u32> {
        self.next
    }

    /// Bytes held back.
    pub fn memory(&self) -> usize {
        self.held_bytes
    }

    /// Takes a segment with payload.
    pub fn take(
        &mut self,
        seq: u32,
        bytes: &[u8],
        cut: u32,
        id: u16,
        at: i64,
        part: &mut dyn FnMut(StreamPart<'_>),
    ) -> SegmentKind {
        let next = *self.next.get_or_insert(seq);
        let length = length(bytes, cut);
        let last = std::mem::replace(&mut self.last, (seq, id, at));
        let ahead = distance(seq, next);
        let old = u32::try_from(-i64::from(ahead)).unwrap_or(0);
        if ahead < 0 && old >= length {
            // One byte before what is expected asks whether the other side is still there.
            let is_probe = length == 1 && old == 1;
            let is_copy = last.0 == seq && if id != 0 { last.1 == id } else { at - last.2 < REORDER_NS / 3 };
            return if is_copy || is_probe { SegmentKind::Copy } else { SegmentKind::Again };
        }
        if ahead > 0 {
            let is_copy = last.0 == seq && last.1 == id && id != 0;
            if !is_copy {
                self.hold(seq, bytes, cut, at, part);
            }
            return SegmentKind::New;
        }
        let was = match self.held.first() {
            Some(first) if at - first.at > REORDER_NS => SegmentKind::Again,
            _ => SegmentKind::New,
        };
        self.deliver(old, bytes, cut, length, at, part);
        self.release(at, part);
        was
    }

    /// The other side has acknowledged everything before `ack`: bytes of it that were not seen
    /// never will be.
    pub fn acknowledged(&mut self, ack: u32, at: i64, part: &mut dyn FnMut(StreamPart<'_>)) {
        let Some(next) = self.next else {
            self.next = Some(ack);
            return;
        };
        let missing = distance(ack, next);
        if missing <= 0 {
            return;
        }
        // An end of stream counts as a byte, and its segment may have been lost.
        if missing == 1 && self.held.is_empty() {
            self.next = Some(ack);
            return;
        }
        let end = match self.held.first() {
            Some(first) if distance(first.seq, ack) < 0 => first.seq,
            _ => ack,
        };
        self.skip_to(end, at, part);
        self.release(at, part);
        if self.next.is_some_and(|next| distance(ack, next) > 1) {
            self.acknowledged(ack, at, part);
        }
    }

    /// Gives up missing bytes, and delivers those held back.
    pub fn flush(&mut self, at: i64, part: &mut dyn FnMut(StreamPart<'_>)) {
        while let Some(first) = self.held.first() {
            self.skip_to(first.seq, at, part);
            self.release(at, part);
        }
    }

    fn hold(&mut self, seq: u32, bytes: &[u8], cut: u32, at: i64, part: &mut dyn FnMut(StreamPart<'_>)) {
        let place = self.held.partition_point(|held| distance(held.seq, seq) <= 0);
        self.held_bytes += bytes.len();
        self.held.insert(place, HeldSegment { seq, at, bytes: bytes.to_vec(), cut });
        while self.held_bytes > HELD_BYTES_MAX || self.held.len() > HELD_SEGMENTS_MAX {
            let Some(first) = self.held.first() else { break };
            self.skip_to(first.seq, at, part);
            self.release(at, part);
        }
    }

    fn skip_to(&mut self, seq: u32, at: i64, part: &mut dyn FnMut(StreamPart<'_>)) {
        if let Some(next) = self.next {
            let missing = distance(seq, next);
            if missing > 0 {
                part(StreamPart::Gap(at, missing.unsigned_abs()));
                self.next = Some(seq);
            }
        }
    }

    /// Delivers the bytes held back that follow now.
    fn release(&mut self, at: i64, part: &mut dyn FnMut(StreamPart<'_>)) {
        let due = |first: &HeldSegment, next: u32| distance(first.seq, next) <= 0;
        while let Some(next) = self.next
            && self.held.first().is_some_and(|first| due(first, next))
        {
            let first = self.held.remove(0);
            self.held_bytes -= first.bytes.len();
            let old = u32::try_from(-i64::from(distance(first.seq, next))).unwrap_or(0);
            let length = first.length();
            if old < length {
                self.deliver(old, &first.bytes, first.cut, length, at, part);
            }
        }
    }

    /// Delivers all but the first `old` bytes.
    fn deliver(
        &mut self,
        old: u32,
        bytes: &[u8],
        cut: u32,
        length: u32,
        at: i64,
        part: &mut dyn FnMut(StreamPart<'_>),
    ) {
        let stored = length.saturating_sub(cut);
        let (bytes, cut) = match bytes.get(old as usize..) {
            Some(rest) => (rest, cut),
            None => (&[][..], cut.saturating_sub(old - stored.min(old))),
        };
        part(StreamPart::Bytes(at, bytes, cut));
        self.next = self.next.map(|next| next.wrapping_add(length - old));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes in order, `_` for one of a gap and `.` for one that was not stored.
    fn seen(stream: &mut Stream, steps: &[(u32, &str)]) -> (String, Vec<SegmentKind>) {
        let mut text = String::new();
        let mut put = |part: StreamPart<'_>| match part {
            StreamPart::Bytes(_, bytes, cut) => {
                text += std::str::from_utf8(bytes).unwrap();
                text += &".".repeat(cut as usize);
            }
            StreamPart::Gap(_, length) => text += &"_".repeat(length as usize),
        };
        let mut was = Vec::new();
        for (n, (seq, bytes)) in steps.iter().enumerate() {
            match bytes.strip_prefix("ack") {
                Some(_) => stream.acknowledged(*seq, 0, &mut put),
                None => was.push(stream.take(*seq, bytes.as_bytes(), 0, n as u16 + 1, 0, &mut put)),
            }
        }
        stream.flush(0, &mut put);
        (text, was)
    }

    #[test]
    fn any_order_repeated_and_overlapping() {
        for begin in [100, u32::MAX - 3] {
            let at = |offset: u32| u32::wrapping_add(begin, offset);
            let mut stream = Stream::default();
            stream.begin(begin);
            let steps =
                [(at(3), "def"), (at(0), "abc"), (at(0), "abc"), (at(5), "fgh"), (at(12), "mn"), (at(7), "hijklmn")];
            let (text, was) = seen(&mut stream, &steps);
            assert_eq!(text, "abcdefghijklmn");
            assert_eq!(was[2], SegmentKind::Again);
            assert_eq!(stream.memory(), 0);
        }
    }

    #[test]
    fn bytes_acknowledged_but_unseen_are_a_gap() {
        let mut stream = Stream::default();
        stream.begin(0);
        let (text, _) = seen(&mut stream, &[(0, "ab"), (5, "fg"), (7, "ack"), (7, "h"), (10, "ack"), (10, "k")]);
        assert_eq!(text, "ab___fgh__k");
    }

    #[test]
    fn held_segments_are_bounded() {
        let mut stream = Stream::default();
        stream.begin(0);
        let big = [b'x'; 1000];
        let mut gaps = 0;
        for n in 0..10_000_u32 {
            stream
                .take(10 + n * 1001, &big, 0, 0, 0, &mut |part| gaps += u32::from(matches!(part, StreamPart::Gap(..))));
            assert!(stream.memory() <= HELD_BYTES_MAX && stream.held.len() <= HELD_SEGMENTS_MAX);
        }
        assert!(gaps > 9000);
    }

    #[test]
    fn the_same_packet_twice_and_probes_are_not_sent_again() {
        let mut stream = Stream::default();
        stream.begin(0);
        let mut take = |seq, bytes: &[u8], id| stream.take(seq, bytes, 0, id, 0, &mut |_| ());
        assert_eq!(take(0, b"abc", 5), SegmentKind::New);
        assert_eq!(take(0, b"abc", 5), SegmentKind::Copy);
        assert_eq!(take(2, b"c", 6), SegmentKind::Copy);
        assert_eq!(take(0, b"abc", 7), SegmentKind::Again);
    }

    #[test]
    fn overlaps_of_what_was_not_stored() {
        let mut stream = Stream::default();
        stream.begin(0);
        let mut parts = Vec::new();
        stream.take(0, b"ab", 8, 1, 0, &mut |part| parts.push(format!("{part:?}")));
        stream.take(6, b"gh", 8, 2, 0, &mut |part| parts.push(format!("{part:?}")));
        assert_eq!(parts, ["Bytes(0, [97, 98], 8)", "Bytes(0, [], 6)"]);
        assert_eq!(stream.next(), Some(16));
    }
}
