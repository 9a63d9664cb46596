//! Trace ids: every request carries its own `traceparent` (W3C Trace Context, level 1), so that the
//! app's and the database's records of it can be found. Requests are laid out beforehand with a
//! field of fixed width, which is filled in as they are sent. So no request is laid out again, and
//! no random number is drawn per request.

use std::hash::{BuildHasher as _, Hasher as _};

use crate::schedule::Share;

/// The header field.
pub const FIELD: &str = "traceparent";

/// Bytes of its value: version, trace id, span id and flags.
pub const LENGTH: usize = 55;

/// Placeholder until it is sent. An all-zero id is invalid, so no other client can have sent this
/// one.
pub const PLACE: &str = "00-00000000000000000000000000000000-0000000000000000-01";

/// The text around it in a statement's comment.
const COMMENT: [&[u8]; 2] = [b"/*traceparent='", b"'*/ "];

/// Bytes before and after the comment's own text: `/*` and `*/ `.
const COMMENT_FRAME: usize = 2;
const COMMENT_FRAME_END: usize = 3;

/// Bytes of that text: `traceparent='…'`.
const KEY_AND_TEXT_LENGTH: usize = COMMENT_LENGTH - COMMENT_FRAME - COMMENT_FRAME_END;

/// Bytes of a statement's comment.
const COMMENT_LENGTH: usize = LENGTH + COMMENT[0].len() + COMMENT[1].len();

/// Where a request's trace id comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceSource {
    /// It carries none.
    No,
    /// It goes to this place in the request's bytes, or in the frames of its head.
    At(usize),
    /// It leads the text of its statements.
    InStatements,
    /// The scenario gave it: this one, or 0 if that is not a valid id.
    Given(u128),
}

impl TraceSource {
    /// Reads a header field of the scenario.
    pub fn from_header(value: &str) -> Self {
        let mut parts = value.trim().split('-');
        let id = parts.nth(1).filter(|id| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()));
        Self::Given(id.and_then(|id| u128::from_str_radix(id, 16).ok()).unwrap_or(0))
    }
}

/// Gives each request of one loop an id that no other has.
pub struct TraceIds {
    high: u64,
    next: u64,
    step: u64,
}

impl TraceIds {
    /// For the loop with this share of the load. `high` is the run's, from [`run_id`].
    pub fn new(high: u64, share: Share) -> Self {
        // From 1 on, because mixing maps 0 to 0.
        Self { high, next: u64::from(share.index) + 1, step: u64::from(share.of) }
    }

    /// The next one.
    pub fn next(&mut self) -> u128 {
        let number = self.next;
        self.next = self.next.wrapping_add(self.step);
        // Samplers treat the low half as random: plain numbers would all be kept, or none.
        u128::from(self.high) << 64 | u128::from(mix(number))
    }
}

/// The high half of all trace ids of a run. Each process has another, so that shards never collide.
/// The seed of the standard library's hash comes from the kernel's randomness.
pub fn run_id() -> u64 {
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.write_i64(holdup_recording::clock::now_ns());
    hasher.finish().max(1)
}

/// A one-to-one mapping of 64 bits that hides their order (the finalizer of SplitMix64; Steele, Lea
/// and Flood 2014).
fn mix(number: u64) -> u64 {
    let x = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

/// Its text in tables; none for 0.
pub fn text(id: u128) -> Option<String> {
    (id != 0).then(|| format!("{id:032x}"))
}

/// The trace id to put into a request as it is sent.
pub struct Mark {
    /// Its place in the bytes.
    pub at: usize,
    text: [u8; LENGTH],
}

impl Mark {
    /// For the `sending`-th time that a request is sent with this id: a resent or redirected request
    /// is another span of the same trace.
    pub fn new(traced: TraceSource, id: u128, sending: u32) -> Option<Self> {
        let at = match traced {
            TraceSource::No | TraceSource::Given(_) => return None,
            TraceSource::At(at) => at,
            TraceSource::InStatements => 0,
        };
        let span = mix((id as u64).wrapping_add(u64::from(sending).wrapping_mul(0x9E37_79B9_7F4A_7C15))).max(1);
        let mut text = [0; LENGTH];
        text.copy_from_slice(PLACE.as_bytes());
        put_hex(&mut text[3..19], (id >> 64) as u64);
        put_hex(&mut text[19..35], id as u64);
        put_hex(&mut text[36..52], span);
        Some(Self { at, text })
    }

    /// The value of the header field.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The comment of a command of MongoDB: the statement's, without its frame.
    pub fn key_and_text(&self) -> [u8; KEY_AND_TEXT_LENGTH] {
        let mut text = [0; KEY_AND_TEXT_LENGTH];
        text.copy_from_slice(&self.comment()[COMMENT_FRAME..][..KEY_AND_TEXT_LENGTH]);
        text
    }

    /// The comment before a statement.
    pub fn comment(&self) -> [u8; COMMENT_LENGTH] {
        let mut comment = [0; COMMENT_LENGTH];
        let (begin, end) = (COMMENT[0].len(), COMMENT[0].len() + LENGTH);
        comment[..begin].copy_from_slice(COMMENT[0]);
        comment[begin..end].copy_from_slice(&self.text);
        comment[end..].copy_from_slice(COMMENT[1]);
        comment
    }

    /// The part of `bytes` to send from `from` on: the rest, or if the mark lies in it a piece of
    /// it, copied to `scratch`.
    pub fn piece<'a>(mark: Option<&Self>, bytes: &'a [u8], from: usize, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let Some(mark) = mark.filter(|mark| from < mark.at + LENGTH) else { return &bytes[from.min(bytes.len())..] };
        let (begin, end) = (mark.at.max(from), mark.at + LENGTH);
        scratch.clear();
        scratch.extend_from_slice(&bytes[from..bytes.len().min(end.max(from + PIECE))]);
        if let Some(place) = scratch.get_mut(begin - from..end - from) {
            place.copy_from_slice(&mark.text[begin - mark.at..]);
        }
        scratch
    }
}

/// Bytes that are copied to put a mark in; those after them are sent from where they lie.
const PIECE: usize = 16 * 1024;

/// Sixteen hex digits, eight at a time: one nibble per byte, and each byte to its letter.
fn put_hex(place: &mut [u8], number: u64) {
    for (place, half) in place.chunks_exact_mut(8).zip([number >> 32, number & 0xFFFF_FFFF]) {
        let spread = (half | half << 16) & 0x0000_FFFF_0000_FFFF;
        let spread = (spread | spread << 8) & 0x00FF_00FF_00FF_00FF;
        let nibbles = (spread | spread << 4) & 0x0F0F_0F0F_0F0F_0F0F;
        let is_letter = (nibbles + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
        let text = nibbles + 0x3030_3030_3030_3030 + is_letter * u64::from(b'a' - b'9' - 1);
        place.copy_from_slice(&text.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_of_all_loops_and_sendings_differ() {
        let (mut ids, mut spans) = (BTreeSet::new(), BTreeSet::new());
        let high = run_id();
        for index in 0..3 {
            let mut own = TraceIds::new(high, Share { index, of: 3 });
            for _ in 0..1_000 {
                let id = own.next();
                assert!((id >> 64) as u64 == high && id as u64 != 0);
                assert!(ids.insert(id));
                for sending in 0..3 {
                    let mark = Mark::new(TraceSource::At(0), id, sending).unwrap();
                    let text = std::str::from_utf8(mark.text()).unwrap().to_owned();
                    let parts: Vec<&str> = text.split('-').collect();
                    assert_eq!((parts[0], parts[1].len(), parts[2].len(), parts[3]), ("00", 32, 16, "01"));
                    assert_eq!(Some(parts[1]), super::text(id).as_deref());
                    assert_eq!(TraceSource::from_header(&text), TraceSource::Given(id));
                    assert!(spans.insert(parts[2].to_owned()));
                }
            }
        }
        assert_ne!(run_id(), run_id());
        // A sampler that keeps half would keep about half of them.
        let kept = ids.iter().filter(|id| **id as u64 >> 63 == 0).count();
        assert!((1_200..1_800).contains(&kept), "{kept}");
    }

    #[test]
    fn digits_are_those_of_the_number() {
        for number in [0, 1, 0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, u64::MAX, 0x9a9a_9a9a_a9a9_a9a9] {
            let mut place = [0; 16];
            put_hex(&mut place, number);
            assert_eq!(std::str::from_utf8(&place), Ok(format!("{number:016x}").as_str()));
        }
    }

    #[test]
    fn invalid_ids_are_left_out() {
        for text in ["", "00", "00-abc-1-01", "00-+0000000000000000000000000000001-1-01", PLACE] {
            assert_eq!(TraceSource::from_header(text), TraceSource::Given(0), "{text}");
        }
        assert_eq!(text(0), None);
    }

    /// However the socket cuts it, the same bytes go out, and what was laid out stays as it is.
    #[test]
    fn a_mark_is_put_into_every_piece() {
        for rest in [0, 10, 3 * PIECE] {
            let laid_out = [b"GET / x: ", PLACE.as_bytes(), &vec![b'z'; rest]].concat();
            let mark = Mark::new(TraceSource::At(9), 0xabc, 0).unwrap();
            let whole = [b"GET / x: ", mark.text(), &vec![b'z'; rest]].concat();
            for step in [1, 7, 64, usize::MAX] {
                let (mut sent, mut scratch) = (Vec::new(), Vec::new());
                while sent.len() < laid_out.len() {
                    let piece = Mark::piece(Some(&mark), &laid_out, sent.len(), &mut scratch);
                    let took = piece.len().min(if sent.len() < 200 { step } else { usize::MAX });
                    assert!(took > 0);
                    let piece = piece[..took].to_vec();
                    sent.extend(piece);
                }
                assert_eq!(sent, whole, "{rest} by {step}");
            }
        }
        assert!(Mark::new(TraceSource::No, 1, 0).is_none());
        assert!(Mark::new(TraceSource::Given(5), 1, 0).is_none());
        let comment = Mark::new(TraceSource::InStatements, 0xabc, 0).unwrap().comment();
        let comment = String::from_utf8_lossy(&comment).into_owned();
        assert_eq!(
            holdup_sql::trace_id(&comment, holdup_sql::Dialect::MySql).as_deref(),
            super::text(0xabc).as_deref(),
            "{comment}"
        );
        let bare = Mark::new(TraceSource::InStatements, 0xabc, 0).unwrap().key_and_text();
        assert_eq!(format!("/*{}*/ ", String::from_utf8_lossy(&bare)), comment);
    }
}
