//! Response heads: from packed block to status, length and wanted fields. A block that was seen
//! before on this connection is not parsed again, and unpacked again only if fields have to be
//! passed on: without a dynamic table the same bytes always mean the same.

use super::hpack::unpack;
use super::streams::UNKNOWN;
use super::{Error, Event};
use crate::http::WantedParts;

/// Number of remembered blocks: enough for a handful of operations.
const REMEMBERED: usize = 4;

/// Larger blocks are not remembered.
const MAX_REMEMBERED_BYTES: usize = 1024;

/// The content of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// 0 without `:status`, as in trailers.
    pub status: u16,
    /// Or [`UNKNOWN`].
    pub content_length: u64,
    /// It breaks the rules of section 8.2 or 8.3 of RFC 9113.
    pub malformed: bool,
    /// One of its fields has to be passed on.
    pub has_wanted: bool,
}

#[derive(Debug, Default)]
struct RememberedHead {
    block: Vec<u8>,
    facts: Option<Facts>,
}

#[derive(Debug)]
pub(super) struct Heads {
    wanted: WantedParts,
    remembered: [RememberedHead; REMEMBERED],
    /// The one that was recognised or stored last.
    recent: usize,
    scratch: Vec<u8>,
}

impl Heads {
    pub fn new(wanted: WantedParts) -> Self {
        Self { wanted, remembered: Default::default(), recent: 0, scratch: Vec::new() }
    }

    /// Reads a head. With a `tag` it is a response's; if it is final and valid, status and wanted
    /// fields become events. No event is sent before the whole head is known to be valid.
    #[inline]
    pub fn read(&mut self, block: &[u8], tag: Option<u32>, sink: &mut impl FnMut(Event<'_>)) -> Result<Facts, Error> {
        let facts = match self.recall(block) {
            Some(facts) => facts,
            None => self.unpack(block)?,
        };
        if let Some(tag) = tag.filter(|_| facts.status >= 200 && !facts.malformed) {
            sink(Event::Status { tag, status: facts.status });
            if facts.has_wanted {
                self.hand_on(block, tag, sink)?;
            }
        }
        Ok(facts)
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

    /// Reads a block that is not remembered yet, and remembers it.
    fn unpack(&mut self, block: &[u8]) -> Result<Facts, Error> {
        let mut facts = Facts { status: 0, content_length: UNKNOWN, malformed: false, has_wanted: false };
        let wanted = self.wanted;
        let mut fields = false;
        unpack(block, &mut self.scratch, |name, value| {
            if let [b':', pseudo @ ..] = name {
                // The only pseudo-field of a response; once, and before all others.
                facts.malformed |= fields || facts.status != 0 || pseudo != b"status";
                match status(value) {
                    Some(status) => facts.status = status,
                    None => facts.malformed = true,
                }
                return;
            }
            fields = true;
            facts.malformed |= name.is_empty() || name.iter().any(u8::is_ascii_uppercase);
            facts.has_wanted |= is_wanted(wanted, name);
            if name == b"content-length" {
                match length(value) {
                    Some(length) if matches!(facts.content_length, UNKNOWN) || facts.content_length == length => {
                        facts.content_length = length;
                    }
                    _ => facts.malformed = true,
                }
            }
        })?;
        if block.len() <= MAX_REMEMBERED_BYTES {
            self.recent = (self.recent + 1) % REMEMBERED;
            let known = &mut self.remembered[self.recent];
            known.block.clear();
            known.block.extend_from_slice(block);
            known.facts = Some(facts);
        }
        Ok(facts)
    }

    /// The wanted fields of a block that is known to be valid.
    fn hand_on(&mut self, block: &[u8], tag: u32, sink: &mut impl FnMut(Event<'_>)) -> Result<(), Error> {
        let wanted = self.wanted;
        unpack(block, &mut self.scratch, |name, value| {
            if is_wanted(wanted, name) {
                sink(Event::Header { tag, name, value });
            }
        })
    }
}

#[inline]
fn is_wanted(wanted: WantedParts, name: &[u8]) -> bool {
    match name {
        b"location" => wanted.location || wanted.head,
        b"set-cookie" => wanted.set_cookie || wanted.head,
        b"server-timing" => wanted.server_timing || wanted.head,
        _ => wanted.head && name.first() != Some(&b':'),
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
