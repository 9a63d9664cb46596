//! The frame of a message, `OP_MSG`: a head of four numbers, flags, sections, and a checksum if the
//! sender wants one. The length in the head is held against a limit, and memory is taken only for
//! bytes that have arrived.

use holdup_mongodb::Document;

use crate::database::event::Error;

/// Largest message that a server accepts or sends, bytes.
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;

/// Length, number, number of the request that it answers, and kind.
const HEAD_BYTES: usize = 16;

/// The kind of message that this side speaks.
const OP_MSG: i32 = 2013;

/// The flags that a reader must understand.
mod flag {
    /// A CRC-32C of all before it ends the message.
    pub(super) const CHECKSUM: u32 = 1;
    /// Another message follows without a request.
    pub(super) const MORE: u32 = 1 << 1;
    /// Unknown flags among these make a message unreadable.
    pub(super) const REQUIRED: u32 = 0xffff;
}

/// Kinds of sections.
mod section {
    /// One document: the command or the answer.
    pub(super) const BODY: u8 = 0;
    /// A list of documents under a name, with its length.
    pub(super) const SEQUENCE: u8 = 1;
}

/// Adds a message with one document to `out`.
pub(super) fn put(request: i32, document: &[u8], out: &mut Vec<u8>) {
    let length = HEAD_BYTES + 4 + 1 + document.len();
    for number in [length as i32, request, 0, OP_MSG, 0] {
        out.extend(number.to_le_bytes());
    }
    out.push(section::BODY);
    out.extend(document);
}

/// Received bytes of one message.
pub(super) struct Inbox {
    bytes: Vec<u8>,
    limit: usize,
}

impl Inbox {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    /// Moves bytes of one message in; returns the message once it is whole. It has to answer
    /// `request`.
    pub(super) fn take(&mut self, bytes: &mut &[u8], request: i32) -> Result<Option<Vec<u8>>, Error> {
        self.fill(bytes, HEAD_BYTES);
        let Some(head) = self.bytes.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let [length, _, answers, kind] = numbers(head);
        let length = usize::try_from(length).ok().filter(|length| *length > HEAD_BYTES);
        let length = length.ok_or(Error::Protocol("a message has an impossible length (is it MongoDB?)"))?;
        if kind != OP_MSG {
            return Err(Error::Protocol("a message that is not OP_MSG (is it MongoDB 3.6 or later?)"));
        }
        if length > self.limit {
            return Err(Error::TooLarge("an answer"));
        }
        if answers != request {
            return Err(Error::Protocol("an answer to another request"));
        }
        self.fill(bytes, length);
        Ok((self.bytes.len() == length).then(|| std::mem::take(&mut self.bytes)))
    }

    /// Moves bytes in until there are `count`.
    fn fill(&mut self, bytes: &mut &[u8], count: usize) {
        let missing = count.saturating_sub(self.bytes.len()).min(bytes.len());
        let (own, rest) = bytes.split_at(missing);
        self.bytes.extend(own);
        *bytes = rest;
    }
}

fn numbers(head: &[u8; HEAD_BYTES]) -> [i32; 4] {
    let mut numbers = [0; 4];
    for (number, bytes) in numbers.iter_mut().zip(head.as_chunks::<4>().0) {
        *number = i32::from_le_bytes(*bytes);
    }
    numbers
}

/// The document of a whole message.
pub(super) fn body(message: &[u8]) -> Result<Document<'_>, Error> {
    const SHORT: Error = Error::Protocol("a message ends too early");
    let (_, rest) = message.split_at_checked(HEAD_BYTES).ok_or(SHORT)?;
    let (flags, mut rest) = rest.split_first_chunk::<4>().ok_or(SHORT)?;
    let flags = u32::from_le_bytes(*flags);
    if flags & flag::REQUIRED & !flag::CHECKSUM != 0 {
        let is_more = flags & flag::MORE != 0;
        return Err(Error::Protocol(if is_more {
            "more than one answer to a command"
        } else {
            "a message with flags that are not known"
        }));
    }
    if flags & flag::CHECKSUM != 0 {
        let (sections, sum) = rest.split_last_chunk::<4>().ok_or(SHORT)?;
        let before = message.len() - sum.len();
        if crc32c(message.get(..before).unwrap_or_default()) != u32::from_le_bytes(*sum) {
            return Err(Error::Protocol("a message whose checksum is wrong"));
        }
        rest = sections;
    }
    let mut body = None;
    while let [kind, after @ ..] = rest {
        rest = match *kind {
            section::BODY if body.is_none() => {
                let (document, after) = Document::split(after).map_err(|_| SHORT)?;
                body = Some(document);
                after
            }
            section::SEQUENCE => {
                let length = after.first_chunk().map(|length| u32::from_le_bytes(*length) as usize).ok_or(SHORT)?;
                after.get(length..).ok_or(SHORT)?
            }
            _ => return Err(Error::Protocol("a message with sections that are not known")),
        };
    }
    body.ok_or(Error::Protocol("a message without a document"))
}

/// The remainders of the polynomial of CRC-32C (Castagnoli), by byte.
const REMAINDERS: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            rest = (rest >> 1) ^ (0x82f6_3b78 & (rest & 1).wrapping_neg());
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
};

/// CRC-32C of `bytes`.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |rest, byte| {
        let index = ((rest ^ u32::from(*byte)) & 0xff) as usize;
        (rest >> 8) ^ REMAINDERS.get(index).copied().unwrap_or(0)
    })
}
