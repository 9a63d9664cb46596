//! Response heads: from packed block to status, length and wanted fields. A block that came before on this
//! connection isn't unpacked again: with no dynamic table the same bytes always mean the same.

use super::hpack::unpack;
use super::streams::UNKNOWN;
use super::{Error, Event};
use crate::Wanted;

/// How many blocks are remembered: an operation each, for a handful of them.
const REMEMBERED: usize = 4;

/// Larger blocks aren't remembered.
const MAX_REMEMBERED_BYTES: usize = 1024;

/// What a head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// 0 without `:status`, as in trailers.
    pub status: u16,
    /// Or [`UNKNOWN`].
    pub content_length: u64,
    /// It breaks the rules of section 8.2 or 8.3 of RFC 9113.
    pub malformed: bool,
}

#[derive(Debug, Default)]
struct Remembered {
    block: Vec<u8>,
    facts: Option<Facts>,
}

#[derive(Debug)]
pub(super) struct Heads {
    wanted: Wanted,
    remembered: [Remembered; REMEMBERED],
    /// The one that was recognised last, or written last.
    recent: usize,
    scratch: Vec<u8>,
}

impl Heads {
    pub fn new(wanted: Wanted) -> Self {
        Self { wanted, remembered: Default::default(), recent: 0, scratch: Vec::new() }
    }

    /// Reads a head. With a `tag` it is a response's, and status and wanted fields become events if it is final.
    #[inline]
    pub fn read(&mut self, block: &[u8], tag: Option<u32>, sink: &mut impl FnMut(Event<'_>)) -> Result<Facts, Error> {
        if let Some(facts) = self.recall(block) {
            if let Some(tag) = tag.filter(|_| facts.status >= 200 && !facts.malformed) {
                sink(Event::Status { tag, status: facts.status });
            }
            return Ok(facts);
        }
        self.unpack(block, tag, sink)
    }

    #[inline]
    fn recall(&mut self, block: &[u8]) -> Option<Facts> {
        if self.remembered[self.recent].block == block {
            return self.remembered[self.recent].facts;
        }
        let at = self.remembered.iter().position(|known| known.block == block)?;
        self.recent = at;
        self.remembered[at].facts
    }

    fn unpack(&mut self, block: &[u8], tag: Option<u32>, sink: &mut impl FnMut(Event<'_>)) -> Result<Facts, Error> {
        let mut facts = Facts { status: 0, content_length: UNKNOWN, malformed: false };
        let wanted = self.wanted;
        let mut has_wanted = false;
        let mut announced = false;
        let mut fields = false;
        // Whom to tell, as far as the head is right and is a final one.
        let final_tag = |facts: &Facts| tag.filter(|_| facts.status >= 200 && !facts.malformed);
        unpack(block, &mut self.scratch, |name, value| {
            if let [b':', pseudo @ ..] = name {
                // The only one of a response; once, and before all others.
                facts.malformed |= fields || facts.status != 0 || pseudo != b"status";
                match status(value) {
                    Some(status) => facts.status = status,
                    None => facts.malformed = true,
                }
                return;
            }
            fields = true;
            facts.malformed |= name.is_empty() || name.iter().any(u8::is_ascii_uppercase);
            let mut is_wanted = wanted.head;
            match name {
                b"content-length" => match length(value) {
                    Some(length) if matches!(facts.content_length, UNKNOWN) || facts.content_length == length => {
                        facts.content_length = length;
                    }
                    _ => facts.malformed = true,
                },
                b"location" => is_wanted |= wanted.location,
                b"set-cookie" => is_wanted |= wanted.set_cookie,
                _ => {}
            }
            if !is_wanted {
                return;
            }
            has_wanted = true;
            if let Some(tag) = final_tag(&facts) {
                if !announced {
                    sink(Event::Status { tag, status: facts.status });
                    announced = true;
                }
                sink(Event::Header { tag, name, value });
            }
        })?;
        if let (false, Some(tag)) = (announced, final_tag(&facts)) {
            sink(Event::Status { tag, status: facts.status });
        }
        // What becomes events has to be unpacked each time.
        if !has_wanted && block.len() <= MAX_REMEMBERED_BYTES {
            self.recent = (self.recent + 1) % REMEMBERED;
            let known = &mut self.remembered[self.recent];
            known.block.clear();
            known.block.extend_from_slice(block);
            known.facts = Some(facts);
        }
        Ok(facts)
    }
}

/// Three digits, from 100 on.
fn status(value: &[u8]) -> Option<u16> {
    let digits: &[u8; 3] = value.try_into().ok()?;
    let number =
        digits.iter().try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + u16::from(digit - b'0')))?;
    (number >= 100).then_some(number)
}

fn length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    let length = value.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })?;
    (length != UNKNOWN).then_some(length)
}
