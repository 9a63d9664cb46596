//! Every limit in one place: the cost of one sender, one body and one value. Whatever arrives, the
//! receiver's memory stays below twice [`Bounds::body_bytes_max`], plus
//! [`Bounds::pending_bytes_max`], plus [`Bounds::queue_bytes_max`] with one body's rows.

use std::time::Duration;

/// The limits beyond which data is refused.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Largest body, bytes: as sent, and again after decompression. The stock collector's exporter
    /// sends up to 8,192 spans at once, some 5 MiB.
    pub body_bytes_max: usize,
    /// Total bytes of all bodies being received.
    pub pending_bytes_max: usize,
    /// Bytes of rows from one body; further items of the body are rejected and counted.
    pub rows_bytes_max: usize,
    /// Bytes of rows waiting to be recorded; a body that no longer fits must be sent again later.
    pub queue_bytes_max: usize,
    /// Open connections; any further one is closed at once.
    pub connections_max: usize,
    /// Time limit for sending a head, or a body.
    pub patience: Duration,
    /// Idle time after which a connection is closed.
    pub idle: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            body_bytes_max: 16 << 20,
            pending_bytes_max: 48 << 20,
            rows_bytes_max: 32 << 20,
            queue_bytes_max: 96 << 20,
            connections_max: 128,
            patience: Duration::from_secs(10),
            idle: Duration::from_secs(120),
        }
    }
}

/// Longest text of a column except statements, bytes: names of services, hosts and operations are
/// shorter.
pub const TEXT_BYTES_MAX: usize = 256;

/// Longest statement parsed, bytes; the rest of a longer one is ignored.
pub const STATEMENT_BYTES_MAX: usize = 64 << 10;

/// Longest statement kept after its values are removed, bytes.
pub const DIGEST_TEXT_BYTES_MAX: usize = 4 << 10;

/// Largest number of attributes of one data point.
pub const LABELS_MAX: usize = 32;

/// Largest number of buckets of a histogram; the SDKs' default is 15, exponential ones have up to
/// 160.
pub const BUCKETS_MAX: usize = 200;

/// Largest number of series whose increments are summed.
pub const DELTA_SERIES_MAX: usize = 50_000;

/// At most the first `bytes_max` bytes of `text`, ending at a character boundary.
pub fn cut(text: &str, bytes_max: usize) -> &str {
    if text.len() <= bytes_max {
        return text;
    }
    let end = (0..=bytes_max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_cut() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("ab\u{e9}", 3), "ab");
        assert_eq!(cut("\u{1f600}", 3), "");
    }
}
