//! `latency.hlog`: an HdrHistogram interval log with a line per second and series, so that
//! percentiles stay exact when request rows are sampled down. HdrHistogram's own tools
//! (HistogramLogAnalyzer and others) read it.
//!
//! Values are nanoseconds. Tags are `<operation>.response`, `<operation>.service`,
//! `<operation>.send_lag`, with the operation's name cleaned by [`clean`]. A value belongs to the
//! interval in which its request ended.
//!
//! Lines stay encoded until they are needed: a decoded histogram takes a hundred times as much
//! memory.

mod retrying;
mod sparse;

use std::io::{LineWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};

use self::retrying::RetryingWriter;
use self::sparse::Reader;
use crate::files;

/// File name in a recording.
pub const HLOG: &str = "latency.hlog";

/// Largest file that is read: some 100 series, a line a second, for a day.
const HLOG_BYTES_MAX: u64 = 1 << 30;

/// One histogram of one interval.
pub struct Interval {
    /// Series, e.g. `search.response`. No commas, no white space.
    pub tag: String,
    /// Start, relative to the start of the load.
    pub from: Duration,
    /// Length.
    pub length: Duration,
    /// Values in nanoseconds.
    pub histogram: Histogram<u64>,
}

/// Writes intervals of a recording that started at `start` as they come. Each is in the file at
/// once, or as soon as a full disk has room again.
///
/// # Errors
/// Those of the file system, or a tag with a comma, space or line break.
pub fn write(dir: &Path, start: SystemTime, intervals: impl IntoIterator<Item = Interval>) -> std::io::Result<()> {
    let mut file = LineWriter::new(RetryingWriter::new(files::create(&dir.join(HLOG))?));
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("values are nanoseconds")
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(1_000_000.0)
        .begin_log_with(&mut file, &mut serializer)?;
    for interval in intervals {
        let tag = Tag::new(&interval.tag).ok_or_else(|| std::io::Error::other(format!("bad tag {}", interval.tag)))?;
        log.write_histogram(&interval.histogram, interval.from, interval.length, Some(tag))
            .map_err(|e| std::io::Error::other(format!("{e:?}")))?;
    }
    file.flush()
}

/// An operation's name for use in tags: no commas, no white space.
pub fn clean(name: &str) -> String {
    name.replace(|c: char| c == ',' || c.is_whitespace() || c.is_control(), "_")
}

/// One histogram of one interval, as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Series, e.g. `search.response`.
    pub tag: String,
    /// Start, nanoseconds since the Unix epoch.
    pub from: i64,
    /// End, nanoseconds since the Unix epoch.
    pub to: i64,
    /// Start as written, relative to the start of the load.
    pub since_start: Duration,
    encoded: Vec<u8>,
}

/// Reads the intervals of the recording in `dir`, in the order they were written. A missing,
/// unreadable or oversized file yields none, because rows hold the same times; a line that was cut
/// off is skipped.
pub fn read(dir: &Path) -> Vec<Slice> {
    let text = files::read(&dir.join(HLOG), HLOG_BYTES_MAX).unwrap_or_default();
    let ns = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    let mut base = 0;
    let mut slices = Vec::new();
    for entry in IntervalLogIterator::new(&text).map_while(Result::ok) {
        match entry {
            LogEntry::BaseTime(time) => base = ns(time),
            LogEntry::StartTime(_) => {}
            LogEntry::Interval(interval) => {
                let Ok(encoded) = STANDARD.decode(interval.encoded_histogram()) else { continue };
                let from = base.saturating_add(ns(interval.start_timestamp()));
                slices.push(Slice {
                    tag: interval.tag().map_or_else(String::new, |tag| tag.as_str().to_owned()),
                    from,
                    to: from.saturating_add(ns(interval.duration())),
                    since_start: interval.start_timestamp(),
                    encoded,
                });
            }
        }
    }
    slices
}

/// The sum of `slices`; none if there are none, or one cannot be decoded, because a partial sum
/// would be another distribution.
pub fn merged<'s>(slices: impl IntoIterator<Item = &'s Slice, IntoIter: Clone>) -> Option<Histogram<u64>> {
    let slices = slices.into_iter();
    merged_values(slices.clone()).or_else(|| merged_histograms(slices))
}

/// The values of one slice and their counts, in ascending order; none if it cannot be decoded.
pub fn values(slice: &Slice) -> Option<Vec<(u64, u64)>> {
    match Reader::new().read(&slice.encoded) {
        Some(sparse) => Some(sparse.counts.into_iter().map(|(_, value, count)| (value, count)).collect()),
        None => Some(crate::objective::times(&merged_histograms([slice])?)),
    }
}

/// The sum of the values that occurred; none if one of the slices cannot be decoded.
fn merged_values<'s>(slices: impl Iterator<Item = &'s Slice>) -> Option<Histogram<u64>> {
    let mut reader = Reader::new();
    let mut sum: Option<(Histogram<u64>, (u64, u8))> = None;
    for slice in slices {
        let sparse = reader.read(&slice.encoded)?;
        let (least, greatest, digits) = sparse.bounds;
        if sum.is_none() {
            let mut first = Histogram::new_with_bounds(least, greatest, digits).ok()?;
            // A wider one may follow, so the histogram must be able to grow.
            first.auto(true);
            sum = Some((first, (least, digits)));
        }
        let (sum, _) = sum.as_mut().filter(|(_, bounds)| *bounds == (least, digits))?;
        for (value, _, count) in sparse.counts {
            sum.record_n(value, count).ok()?;
        }
    }
    sum.map(|(sum, _)| sum)
}

/// The sum, by HdrHistogram's own reader.
fn merged_histograms<'s>(slices: impl IntoIterator<Item = &'s Slice>) -> Option<Histogram<u64>> {
    let mut deserializer = Deserializer::new();
    let mut sum: Option<Histogram<u64>> = None;
    for slice in slices {
        let next = deserializer.deserialize(&mut slice.encoded.as_slice()).ok()?;
        match &mut sum {
            None => {
                let mut first = next;
                first.auto(true);
                sum = Some(first);
            }
            Some(sum) => sum.add(next).ok()?,
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_terabyte_costs_no_memory() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), SystemTime::UNIX_EPOCH, [interval("op.response", 0, &[5_000])]).unwrap();
        assert_eq!(read(dir.path()).len(), 1);
        // Sparse: it takes no room on the disk either.
        std::fs::File::options().write(true).open(dir.path().join(HLOG)).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(dir.path()), []);
    }

    #[test]
    fn a_wider_slice_may_follow() {
        let dir = tempfile::tempdir().unwrap();
        let slice = |second: u64, value: u64| {
            let mut histogram = Histogram::new_with_bounds(64, 4_096, 3).unwrap();
            histogram.auto(true);
            histogram.record(value).unwrap();
            let (from, length) = (Duration::from_secs(second), Duration::from_secs(1));
            Interval { tag: "op.response".to_owned(), from, length, histogram }
        };
        write(dir.path(), SystemTime::UNIX_EPOCH, [slice(0, 1_000), slice(1, 9_000_000_000)]).unwrap();
        let sum = merged(&read(dir.path())).unwrap();
        assert_eq!((sum.len(), sum.max() / 1_000_000_000), (2, 9));
        let slices = read(dir.path());
        let of_histograms = merged_histograms(&slices).unwrap();
        assert_eq!((&sum, sum.max(), sum.min()), (&of_histograms, of_histograms.max(), of_histograms.min()));
        let own = crate::objective::times(&merged_histograms([&slices[1]]).unwrap());
        assert_eq!(values(&slices[1]), Some(own));
    }

    fn interval(tag: &str, second: u64, values: &[u64]) -> Interval {
        let mut histogram = Histogram::new_with_bounds(1_000, 3_600_000_000_000, 3).unwrap();
        for value in values {
            histogram.record(*value).unwrap();
        }
        let (from, length) = (Duration::from_secs(second), Duration::from_secs(1));
        Interval { tag: tag.to_owned(), from, length, histogram }
    }

    fn written() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let start = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_250);
        let intervals = [
            interval("a_b.response", 0, &[1_000_000, 2_000_000]),
            interval("c.response", 0, &[5_000_000]),
            interval("a_b.response", 1, &[3_000_000]),
        ];
        write(dir.path(), start, intervals).unwrap();
        dir
    }

    #[test]
    fn written_histograms_are_read_and_added_up() {
        let dir = written();
        let slices = read(dir.path());
        let mine: Vec<&Slice> = slices.iter().filter(|s| s.tag == format!("{}.response", clean("a b"))).collect();
        assert_eq!((slices.len(), mine.len()), (3, 2));
        assert_eq!((mine[1].from, mine[1].to), (1_700_000_001_250_000_000, 1_700_000_002_250_000_000));
        let sum = merged(mine).unwrap();
        assert_eq!((sum.len(), sum.value_at_quantile(0.5) / 10_000, sum.max() / 10_000), (3, 200, 300));
    }

    #[test]
    fn a_line_that_was_cut_off_is_left_out() {
        let dir = written();
        let path = dir.path().join(HLOG);
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 20]).unwrap();
        assert_eq!(read(dir.path()).len(), 2);
        assert_eq!(read(&dir.path().join("nothing")), []);
    }

    #[test]
    fn a_damaged_histogram_makes_no_sum() {
        let dir = written();
        let mut slices = read(dir.path());
        slices[0].encoded.truncate(12);
        assert_eq!(merged(&slices), None);
    }
}
