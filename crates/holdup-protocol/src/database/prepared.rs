//! The statements that the server keeps prepared for this connection, by text. Their number is
//! limited: the least recently used one makes room.

use std::collections::HashMap;

/// Most prepared statements of a connection. MySQL's default limit for the whole server is 16,382:
/// this many on each of 255 connections.
pub const MAX_PREPARED: usize = 64;

/// A longer text is prepared anew each time.
pub(crate) const MAX_TEXT_BYTES: usize = 64 << 10;

/// Texts and the server's handles.
#[derive(Debug)]
pub(crate) struct Prepared<H> {
    entries: HashMap<Box<[u8]>, (H, u64)>,
    uses: u64,
}

impl<H> Default for Prepared<H> {
    fn default() -> Self {
        Self { entries: HashMap::new(), uses: 0 }
    }
}

impl<H: Copy> Prepared<H> {
    /// The handle of a text, if it is kept; it then counts as used.
    pub(crate) fn find(&mut self, text: &[u8]) -> Option<H> {
        let (handle, used) = self.entries.get_mut(text)?;
        self.uses += 1;
        *used = self.uses;
        Some(*handle)
    }

    /// Forgets the least recently used one, if another would not fit.
    pub(crate) fn make_room(&mut self) -> Option<H> {
        if self.entries.len() < MAX_PREPARED {
            return None;
        }
        let oldest = self.entries.iter().min_by_key(|(_, (_, used))| used).map(|(text, _)| text.clone())?;
        self.forget(&oldest)
    }

    /// Keeps it.
    pub(crate) fn keep(&mut self, text: &[u8], handle: H) {
        self.uses += 1;
        self.entries.insert(text.into(), (handle, self.uses));
    }

    /// Forgets it.
    pub(crate) fn forget(&mut self, text: &[u8]) -> Option<H> {
        self.entries.remove(text).map(|(handle, _)| handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_out_of_use_for_longest_goes() {
        let mut prepared = Prepared::default();
        for number in 0..MAX_PREPARED {
            assert_eq!(prepared.make_room(), None);
            prepared.keep(number.to_string().as_bytes(), number);
        }
        assert_eq!(prepared.find(b"0"), Some(0));
        assert_eq!(prepared.make_room(), Some(1));
        assert_eq!((prepared.find(b"1"), prepared.find(b"0")), (None, Some(0)));
        assert_eq!(prepared.make_room(), None);
    }
}
