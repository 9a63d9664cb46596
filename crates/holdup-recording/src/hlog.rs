//! `latency.hlog`: HdrHistogram interval log, a line a second and series, so that percentiles stay exact
//! when request rows are sampled down. HdrHistogram's own tools (HistogramLogAnalyzer and others) read it.
//!
//! Values are nanoseconds. Tags are `<operation>.response`, `<operation>.service`, `<operation>.send_lag`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

/// File name in a recording.
pub const HLOG: &str = "latency.hlog";

/// One histogram of one interval.
pub struct Interval<'a> {
    /// Series, e.g. `search.response`.
    pub tag: &'a str,
    /// Start, from the beginning of the recording.
    pub from: Duration,
    /// Length.
    pub length: Duration,
    /// Values in nanoseconds.
    pub histogram: &'a Histogram<u64>,
}

/// Writes all intervals of a recording that started at `start`.
///
/// # Errors
/// Those of the file system, or a tag with a comma, space or line break in it.
pub fn write<'a>(
    dir: &Path,
    start: SystemTime,
    intervals: impl IntoIterator<Item = Interval<'a>>,
) -> std::io::Result<()> {
    let path = dir.join(HLOG);
    let mut file = BufWriter::new(File::create(path)?);
    let mut serializer = V2DeflateSerializer::new();
    let other = |e: &dyn std::fmt::Debug| std::io::Error::other(format!("{e:?}"));
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("values are nanoseconds")
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(1_000_000.0)
        .begin_log_with(&mut file, &mut serializer)?;
    for interval in intervals {
        let tag = Tag::new(interval.tag).ok_or_else(|| std::io::Error::other(format!("bad tag {}", interval.tag)))?;
        log.write_histogram(interval.histogram, interval.from, interval.length, Some(tag)).map_err(|e| other(&e))?;
    }
    file.flush()
}
