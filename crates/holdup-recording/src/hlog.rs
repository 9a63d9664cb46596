//! `latency.hlog`: HdrHistogram interval log, a line a second and series, so that percentiles stay exact
//! when request rows are sampled down. HdrHistogram's own tools (HistogramLogAnalyzer and others) read it.
//!
//! Values are nanoseconds. Tags are `<operation>.response`, `<operation>.service`, `<operation>.send_lag`.

use std::fs::File;
use std::io::{LineWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

/// File name in a recording.
pub const HLOG: &str = "latency.hlog";

/// One histogram of one interval.
pub struct Interval {
    /// Series, e.g. `search.response`. No commas, no white space.
    pub tag: String,
    /// Start, from the beginning of the recording.
    pub from: Duration,
    /// Length.
    pub length: Duration,
    /// Values in nanoseconds.
    pub histogram: Histogram<u64>,
}

/// Writes intervals of a recording that started at `start` as they come; each is in the file at once.
///
/// # Errors
/// Those of the file system, or a tag with a comma, space or line break in it.
pub fn write(dir: &Path, start: SystemTime, intervals: impl IntoIterator<Item = Interval>) -> std::io::Result<()> {
    let mut file = LineWriter::new(File::create(dir.join(HLOG))?);
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
