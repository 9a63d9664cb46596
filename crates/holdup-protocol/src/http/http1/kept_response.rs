//! The kept parts of a response: the bytes of its head, and the first ones of its body. The buffers
//! are reused from the response before, so that a warm connection allocates nothing. It does not
//! validate: heads that come here have been parsed.

use crate::http::WantedParts;

/// Up to this size, an unused buffer is kept: the next request may need it.
const KEPT_BYTES: usize = 64 * 1024;

/// A head's buffer is kept up to this size.
const KEPT_HEAD_BYTES: usize = 4 * 1024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct KeptResponse {
    head: Vec<u8>,
    body: Vec<u8>,
}

impl KeptResponse {
    /// Forgets the last response, and prepares for one of which `next` is wanted.
    pub fn clear(&mut self, next: WantedParts) {
        self.head.clear();
        self.body.clear();
        if self.head.capacity() > KEPT_HEAD_BYTES {
            self.head = Vec::new();
        }
        if self.body.capacity() > KEPT_BYTES.max(next.body_bytes as usize) {
            self.body = Vec::new();
        }
    }

    /// Keeps a complete head, in place of an interim one.
    pub fn head(&mut self, head: &[u8]) {
        self.head.clear();
        self.head.extend_from_slice(head);
    }

    /// Appends as much of `piece` as fits into `limit` bytes in total.
    pub fn body(&mut self, piece: &[u8], limit: usize) {
        let had = self.body.len();
        let more = piece.len().min(limit - had.min(limit));
        if self.body.capacity() < had + more {
            // Double the capacity each time, as usual, but never beyond the limit.
            self.body.reserve_exact((had * 2).min(limit).max(had + more) - had);
        }
        self.body.extend_from_slice(&piece[..more]);
    }

    /// The kept part of the body.
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// Capacity of both buffers, bytes.
    #[cfg(test)]
    pub fn capacities(&self) -> (usize, usize) {
        (self.head.capacity(), self.body.capacity())
    }

    /// The fields of the kept head; none if it is not `whole`.
    pub fn fields(&self, whole: bool) -> Fields<'_> {
        fields_of(if whole { &self.head } else { &[] })
    }
}

/// The fields of a complete head.
pub(super) fn fields_of(head: &[u8]) -> Fields<'_> {
    let mut fields = Fields { rest: head };
    fields.line();
    fields
}

/// Name and value of each field of a head; see [`Parser::fields`](super::Parser::fields).
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The next line without its end.
    fn line(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|&byte| byte == b'\n')?;
        let line = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.line()?;
        // The blank line at the end has no colon.
        let colon = line.iter().position(|&byte| byte == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    }
}
