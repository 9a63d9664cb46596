//! Access logs -> arrivals: when users came, and what they asked for. Reads the common and the
//! combined format and JSON lines. It does not guess at unreadable lines: it counts them and shows
//! the first one, and refuses a file in which they are many.

mod distinct;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use distinct::Distinct;
use holdup_access::lines::{Line, Lines, MAX_LINE};
use holdup_access::{Arrival, combined, json_arrival};
use holdup_recording::files;

use crate::schedule::Replay;

/// Most lines that may be unreadable, as a share: above it, the file is in another format.
const UNREADABLE_RATIO_MAX: f64 = 0.1;

/// Most arrivals that are kept, 12 bytes each.
const MAX_ARRIVALS: usize = 100_000_000;

/// Longest replay: a year, as for any load.
const MAX_LENGTH_NS: u64 = 31_536_000_000_000_000;

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Decide line by line: a line that begins with `{` is JSON.
    #[default]
    Auto,
    /// The common or the combined log format.
    Common,
    /// JSON lines.
    Json,
}

impl Format {
    /// Reads `auto`, `common`, `combined` or `json`.
    ///
    /// # Errors
    /// A message that lists the accepted names.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "common" | "combined" => Ok(Self::Common),
            "json" => Ok(Self::Json),
            _ => Err(format!("\"{text}\" is not a log format; use auto, common, combined or json")),
        }
    }
}

/// How to read a log, and how to replay it.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How its lines are written.
    pub format: Format,
    /// The replay is this many times as fast as the log.
    pub speed: f64,
    /// Requests with these methods are sent as logged; none if only the timing is replayed.
    pub methods: Option<Vec<&'static str>>,
    /// Replay only this much.
    pub length: Option<Duration>,
}

/// A log, ready to be replayed.
#[derive(Debug)]
pub struct Log {
    /// Its arrivals.
    pub replay: Replay,
    /// From the first arrival to the end of the last one's second (or millisecond), at the
    /// requested speed.
    pub length: Duration,
    /// The groups of its requests, the most frequent first; empty if only the timing is replayed.
    pub operations: Vec<LoggedOperation>,
}

/// Requests of a log that differ only in which row they are about.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedOperation {
    /// Their name.
    pub name: String,
    /// Their method.
    pub method: &'static str,
    /// Path and query of one of them.
    pub path: String,
    /// How many they are, within the range of an operation's weight.
    pub weight: u32,
}

/// Why a log can't be replayed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It can't be opened or read.
    #[error("{file}: {why}")]
    Io {
        /// Its name as given.
        file: String,
        /// The kernel's message.
        why: io::Error,
    },
    /// It cannot be used as an access log.
    #[error("{file}: {why}")]
    Unusable {
        /// Its name as given.
        file: String,
        /// What is wrong, and what to do instead.
        why: String,
    },
    /// Too many lines can't be read.
    #[error(
        "{file}: {unreadable} of {lines} lines can't be read; the first is line {line}: {why}. A line should look like `1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] \"GET /path HTTP/1.1\" 200 512` or {{\"time\": \"2000-10-10T13:55:36Z\", \"method\": \"GET\", \"path\": \"/path\"}}"
    )]
    Unreadable {
        /// Its name as given.
        file: String,
        /// Lines that can't be read.
        unreadable: u64,
        /// Lines that are not empty.
        lines: u64,
        /// The first line that can't be read.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// None of its requests may be sent.
    #[error("{file}: none of its {lines} requests can be sent: {left_out}")]
    NothingToSend {
        /// Its name as given.
        file: String,
        /// Readable lines.
        lines: u64,
        /// What they are, and what to do.
        left_out: String,
    },
}

/// Reads the log at `path`.
///
/// # Errors
/// If it can't be read or is not a log.
pub fn read(path: &Path, options: &Options) -> Result<Log, LogError> {
    let file = path.display().to_string();
    let unusable = |why: &str| LogError::Unusable { file: file.clone(), why: why.to_owned() };
    let failed = |why| LogError::Io { file: file.clone(), why };
    let opened = files::open(path).map_err(failed)?;
    if opened.metadata().map_err(failed)?.is_dir() {
        return Err(unusable("it is not a file"));
    }
    let mut reader = BufReader::with_capacity(1 << 16, opened);
    let start = reader.fill_buf().map_err(failed)?;
    if start.starts_with(&[0x1f, 0x8b]) || start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || start.starts_with(b"BZh") {
        return Err(unusable("it is compressed; unpack it, or give it as <(zcat FILE)"));
    }
    read_from(reader, &file, options)
}

/// State while reading.
#[derive(Default)]
struct Reading {
    times: Vec<i64>,
    which: Vec<u32>,
    distinct: Distinct,
    /// Lines that are not empty.
    lines: u64,
    unreadable: u64,
    first_unreadable: Option<(u64, String)>,
    /// Requests that are not sent, by method; under "" those that can't be sent at all.
    left_out: BTreeMap<&'static str, u64>,
}

impl Reading {
    fn line(&mut self, line: Line<'_>, number: u64, options: &Options) {
        let parsed = match line {
            Line::TooLong => Err(format!("it is longer than {} KiB", MAX_LINE / 1024)),
            Line::Whole(line) => {
                let trimmed = line.trim_ascii();
                if trimmed.is_empty() {
                    return;
                }
                let is_json = match options.format {
                    Format::Auto => trimmed.starts_with(b"{"),
                    Format::Common => false,
                    Format::Json => true,
                };
                if is_json { json_arrival(trimmed) } else { combined::arrival(trimmed) }.map_err(str::to_owned)
            }
        };
        self.lines += 1;
        match parsed {
            Ok(entry) => self.entry(&entry, options),
            Err(why) => {
                self.unreadable += 1;
                self.first_unreadable.get_or_insert((number, why));
            }
        }
    }

    fn entry(&mut self, entry: &Arrival<'_>, options: &Options) {
        if let Some(methods) = &options.methods {
            match &entry.request {
                Some(request) if methods.contains(&request.method) => self.which.push(self.distinct.number(request)),
                other => {
                    *self.left_out.entry(other.as_ref().map_or("", |r| r.method)).or_default() += 1;
                    return;
                }
            }
        }
        self.times.push(entry.at);
    }

    /// The requests that are left out, in words, and what to do about them.
    fn left_out(&self, options: &Options) -> Option<String> {
        let known = self.left_out.iter().filter(|(method, _)| !method.is_empty());
        let mut parts: Vec<String> = known.map(|(method, n)| format!("{n} {method}")).collect();
        let sent = options.methods.iter().flatten();
        let all: Vec<&str> = sent.chain(self.left_out.keys().filter(|m| !m.is_empty())).copied().collect();
        let way_out = if parts.is_empty() {
            String::new()
        } else {
            format!(" (to send these too, without the bodies that no log has: methods {})", all.join(", "))
        };
        parts.extend(self.left_out.get("").map(|n| format!("{n} without a valid request")));
        (!parts.is_empty()).then(|| parts.join(", ") + &way_out)
    }

    /// When each request is due, nanoseconds from the first, and the length of all: at the wanted speed,
    /// and cut to the wanted length. `unit` is the resolution of the times.
    fn schedule(&mut self, unit: u64, options: &Options) -> (Vec<u64>, u64) {
        let mut times = offsets(&self.times, unit);
        let mut length_ns = self.times.last().map_or(0, |last| last.abs_diff(self.times[0])) + unit;
        if options.speed != 1.0 {
            let scaled = |ns: u64| (ns as f64 / options.speed) as u64;
            times.iter_mut().for_each(|t| *t = scaled(*t));
            length_ns = scaled(length_ns);
        }
        if let Some(length) = options.length {
            length_ns = length_ns.min(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
            let kept = times.partition_point(|&t| t < length_ns);
            times.truncate(kept);
            self.which.truncate(kept);
        }
        (times, length_ns)
    }

    /// Sorts `times` by time if they are out of order; lines of the same time keep their order.
    /// True if anything moved.
    fn sort(&mut self) -> bool {
        if self.times.is_sorted() {
            return false;
        }
        if self.which.is_empty() {
            self.times.sort_unstable();
            return true;
        }
        let mut order: Vec<u32> = (0..self.times.len() as u32).collect();
        order.sort_by_key(|&i| self.times[i as usize]);
        self.times = order.iter().map(|&i| self.times[i as usize]).collect();
        self.which = order.iter().map(|&i| self.which[i as usize]).collect();
        true
    }
}

/// The coarsest of second, millisecond and microsecond that divides all times, in nanoseconds.
fn resolution(times: &[i64]) -> u64 {
    let units = [1_000_000_000, 1_000_000, 1_000];
    units.into_iter().find(|unit| times.iter().all(|t| t % unit == 0)).unwrap_or(1) as u64
}

/// Nanoseconds from the first. Arrivals with the same time are spread evenly over `unit`: in a log
/// that counts seconds, they did not all come at the start of the second.
fn offsets(times: &[i64], unit: u64) -> Vec<u64> {
    let first = times.first().copied().unwrap_or(0);
    let mut offsets = Vec::with_capacity(times.len());
    for group in times.chunk_by(|a, b| a == b) {
        let from = group[0].abs_diff(first);
        let n = group.len() as u128;
        offsets.extend((0..n).map(|i| from + (u128::from(unit) * i / n) as u64));
    }
    offsets
}

fn read_from(reader: impl BufRead, file: &str, options: &Options) -> Result<Log, LogError> {
    let unusable = |why: String| LogError::Unusable { file: file.to_owned(), why };
    let mut lines = Lines::new(reader);
    let mut reading = Reading::default();
    loop {
        let number = lines.number + 1;
        match lines.next_line() {
            Ok(Some(line)) => reading.line(line, number, options),
            Ok(None) => break,
            Err(why) => return Err(LogError::Io { file: file.to_owned(), why }),
        }
        if reading.times.len() > MAX_ARRIVALS {
            return Err(unusable(format!("it has more than {MAX_ARRIVALS} requests; cut a part out of it")));
        }
    }
    let Reading { lines, unreadable, .. } = reading;
    if lines == 0 {
        return Err(unusable("it is empty".to_owned()));
    }
    if let Some((line, why)) = &reading.first_unreadable
        && unreadable as f64 > UNREADABLE_RATIO_MAX * lines as f64
    {
        return Err(LogError::Unreadable { file: file.to_owned(), unreadable, lines, line: *line, why: why.clone() });
    }
    let left_out = reading.left_out(options);
    if reading.times.is_empty() {
        return Err(LogError::NothingToSend { file: file.to_owned(), lines, left_out: left_out.unwrap_or_default() });
    }
    let mut notes = Vec::new();
    if let Some((line, why)) = &reading.first_unreadable {
        notes.push(format!("{file}: {unreadable} of {lines} lines can't be read; the first is line {line}: {why}"));
    }
    notes.extend(left_out.map(|what| format!("{file}: not sent: {what}")));
    if reading.sort() {
        notes.push(format!("{file}: its lines were sorted by time"));
    }
    let unit = resolution(&reading.times);
    if unit >= 1_000_000_000 {
        notes.push(format!(
            "{file}: its times are whole seconds; requests of the same second are spread evenly over it"
        ));
    }
    let (times, length_ns) = reading.schedule(unit, options);
    if length_ns > MAX_LENGTH_NS {
        return Err(unusable(
            "its first and last request are more than a year apart; does a line have a wrong date?".to_owned(),
        ));
    }
    let replaced = reading.distinct.replaced;
    let (requests, operations) = reading.distinct.finish(&reading.which);
    if replaced > 0 {
        notes.push(format!(
            "{file}: it has more than {} distinct requests; {replaced} further requests are replaced by another of their group",
            requests.len()
        ));
    }
    let names = operations.iter().map(|o| o.name.clone()).collect();
    let replay = Replay::new(times, reading.which, requests, names, notes);
    // A single arrival has no length.
    Ok(Log { replay, length: Duration::from_nanos(length_ns.max(1_000_000)), operations })
}
