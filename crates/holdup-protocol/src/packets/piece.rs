//! Captured bytes on their way to a protocol, and where its results go.

use crate::packets::statement::Statements;
use crate::packets::turn::Turn;

/// Bytes of one side, in order.
#[derive(Debug)]
pub(crate) struct Piece<'a> {
    pub at: i64,
    pub bytes: &'a [u8],
    /// Further bytes that were not stored.
    pub cut: u32,
}

impl Piece<'_> {
    pub fn length(&self) -> u64 {
        self.bytes.len() as u64 + u64::from(self.cut)
    }
}

/// Where results go.
pub(crate) struct Sinks<'a> {
    pub statements: &'a mut Statements,
    pub turns: &'a mut Vec<Turn>,
}
