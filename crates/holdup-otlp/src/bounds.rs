//! Every bound in one place: what one sender, one body and one value may cost. Whatever comes in, the receiver takes no more
//! memory than [`Bounds::body_bytes_max`] twice, [`Bounds::pending_bytes_max`], and [`Bounds::queue_bytes_max`] with one body's rows.

use std::time::Duration;

/// What is taken before it is refused.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Largest body, bytes: as it is sent, and again once it is unpacked. The stock collector's exporter sends up to 8,192 spans at
    /// once, some 5 MiB.
    pub body_bytes_max: usize,
    /// Bytes of all bodies that are being received, together.
    pub pending_bytes_max: usize,
    /// Bytes of rows of one body; what a body holds beyond that is rejected by count.
    pub rows_bytes_max: usize,
    /// Bytes of rows that wait to be recorded; a body that does not fit any more is to be sent again later.
    pub queue_bytes_max: usize,
    /// Open connections; one beyond that is closed at once.
    pub connections_max: usize,
    /// Time to send a head, or a body.
    pub patience: Duration,
    /// Time after which a connection over which nothing is sent any more is closed.
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

/// Longest text of a column but for statements, bytes: names of services, hosts and operations are shorter.
pub const TEXT_BYTES_MAX: usize = 256;

/// Longest statement that is read, bytes; the rest of a longer one is not looked at.
pub const STATEMENT_BYTES_MAX: usize = 64 << 10;

/// Longest statement without its values that is kept, bytes.
pub const DIGEST_TEXT_BYTES_MAX: usize = 4 << 10;

/// Most attributes of one data point of a metric.
pub const LABELS_MAX: usize = 32;

/// Most buckets of a histogram; the SDKs' default is 15, exponential ones have up to 160.
pub const BUCKETS_MAX: usize = 200;

/// Most series of which increments are summed up.
pub const DELTA_SERIES_MAX: usize = 50_000;

/// The first `bytes_max` bytes of `text`, or fewer, so that no character is cut.
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
