//! Bytes to be sent, in the frames of either protocol.

/// Capacity that is kept for the next statements.
const SPARE_BYTES: usize = 64 << 10;

/// Bytes that wait to be sent.
#[derive(Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
}

impl Outbox {
    /// The bytes still to be sent.
    pub(crate) fn waiting(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// This many of them were sent.
    pub(crate) fn consumed(&mut self, count: usize) {
        self.sent = (self.sent + count).min(self.bytes.len());
        if self.sent == self.bytes.len() {
            self.sent = 0;
            self.bytes.clear();
            self.bytes.shrink_to(SPARE_BYTES);
        }
    }

    /// A packet of MySQL. The caller ensures that it is below 16 MB.
    pub(crate) fn mysql(&mut self, sequence: u8, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0, 0, 0, sequence]);
        write(&mut self.bytes);
        let length = self.bytes.len() - start - 4;
        debug_assert!(length < 0xff_ffff, "a statement is too large for a packet");
        self.bytes[start..start + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
    }

    /// A message of PostgreSQL; those before the login have no kind.
    pub(crate) fn postgres(&mut self, kind: Option<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.extend(kind);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        write(&mut self.bytes);
        let length = self.bytes.len() - start;
        self.bytes[start..start + 4].copy_from_slice(&(length as u32).to_be_bytes());
    }
}

/// A text, cut at its first NUL, and its terminating NUL.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(text.iter().take_while(|&&byte| byte != 0));
    out.push(0);
}
