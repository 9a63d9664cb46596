//! What is expected of the server next, and how much of it is needed.

use super::{FULL_PAYLOAD, MAX_PACKET_BYTES, head};
use crate::database::answer::{MAX_KEPT_BYTES, StatementAnswer};

/// An EOF packet is shorter than any row that begins with the same byte.
pub(super) const EOF_BELOW_BYTES: usize = 9;

/// A prepared statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle {
    pub(super) id: u32,
    pub(super) parameters: u16,
}

/// What is expected next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// OK, an error, or the number of columns.
    Answer {
        is_binary: bool,
    },
    /// Definitions of columns, and the EOF after them.
    Columns {
        left: u64,
        is_binary: bool,
    },
    Rows {
        is_binary: bool,
    },
    /// The reply to a statement to prepare.
    Prepare,
    /// Its descriptions of parameters and columns: so many packets, which are ignored.
    Definitions {
        left: u32,
        handle: Handle,
    },
}

impl Phase {
    /// How many bytes are needed of a packet with this length and first byte.
    pub(super) fn keep(self, length: usize, first: u8, answer: &StatementAnswer) -> usize {
        match self {
            Self::Rows { .. } if first == head::EOF && length < EOF_BELOW_BYTES => length,
            Self::Rows { .. } if first == head::ERROR => length.min(MAX_PACKET_BYTES),
            Self::Rows { .. } if answer.wants_every_row() => length,
            Self::Rows { .. } if answer.looks_at_rows() && length <= MAX_KEPT_BYTES => length,
            // A row that is too large: it is skipped, and the next one is not wanted either.
            Self::Rows { .. } => usize::from(length < FULL_PAYLOAD),
            Self::Columns { left: 1.., .. } if !answer.wants_row() && first != head::ERROR => 1,
            Self::Definitions { .. } if first != head::ERROR => 1,
            _ => length.min(MAX_PACKET_BYTES),
        }
    }
}
