//! `--watch log:PATH`: follows the log of an app, or of a proxy in front of it, as it grows. For
//! each request with a trace id it records the request's time and, if the line has them, its waits
//! for the database, a pool and the like. It reads JSON lines and any text with `key=value` pairs,
//! such as access logs. Field names of common formats are known; others can be given in the
//! address.
//!
//! holdup reads lines and does not keep them: other content of a line appears in no table and no
//! message.

mod address;
mod fields;
pub(crate) mod follow;
mod line;

use std::io;

use holdup_recording::{Batch, Coverage, Labels, clock, metrics};

use self::address::Address;
pub(crate) use self::fields::moment;
use self::follow::{Follow, Line, LinePosition};
use self::line::Unread;
use crate::coverage::{Line as _, complete};
use crate::options::Options;
use crate::reading::{Out, event};
use crate::{Collector, ProbeError, ReadError};

/// Bytes at the end of the existing log that are read at the start, to see whether its lines are
/// usable.
const LOOKED_AT_BYTES: u64 = 256 * 1024;

/// Largest number of rows per sample; further requests are only counted.
const ROWS_MAX: usize = 20_000;

/// The hint on what a line must contain.
const HOW: &str = "log the trace id and the time of each request in one line (docs/logs.md), or name the fields: \
                   log:PATH?trace=NAME&total=NAME&db=NAME&unit=ms";

/// A log as a source.
struct Log {
    address: Address,
    source: String,
    follow: Follow,
    counts: Counts,
}

/// Lines so far.
#[derive(Clone, Copy, Default)]
struct Counts {
    read: u64,
    without_trace: u64,
    unread: u64,
    /// The first unreadable line, and why.
    example: Option<(LinePosition, &'static str)>,
}

impl Counts {
    fn count(&mut self, place: LinePosition, result: Result<(), Unread>) {
        let why = match result {
            Ok(()) => {
                self.read += 1;
                return;
            }
            Err(Unread::NoTrace) => {
                self.without_trace += 1;
                return;
            }
            Err(Unread::NoFields) => "it is neither a JSON object nor key=value pairs",
            Err(Unread::BadJson) => "it starts like JSON but is malformed",
            Err(Unread::NoTime) => "it has a trace id, but no time",
        };
        self.cannot(place, why);
    }

    fn cannot(&mut self, place: LinePosition, why: &'static str) {
        self.unread += 1;
        self.example.get_or_insert((place, why));
    }

    /// The position of the first unreadable line and why, without its text.
    fn example(&self) -> Option<String> {
        let (LinePosition { number, offset }, why) = self.example?;
        let place = number.map_or_else(|| format!("the line at byte {offset}"), |number| format!("line {number}"));
        Some(format!("{place} cannot be read: {why}"))
    }
}

/// Makes the collector for `log:PATH`.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    let address = Address::parse(rest)?;
    Ok(Box::new(Log {
        source: format!("log:{}", address.path.display()),
        follow: Follow::new(address.path.clone()),
        address,
        counts: Counts::default(),
    }))
}

impl Collector for Log {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let mut seen = Counts::default();
        let (fields, source) = (&self.address.fields, &self.source);
        let begun = self.follow.begin(LOOKED_AT_BYTES, &mut |place, line| match line {
            Line::Whole(b"") => {}
            Line::Whole(line) => seen.count(place, line::spans(line, fields, source, 0).map(|_| ())),
            Line::TooLong | Line::Piece(_) => seen.cannot(place, "it is too long"),
            Line::FileBegins | Line::Gap => {}
        });
        begun.map_err(|error| self.unusable(&error))?;
        let all = seen.read + seen.without_trace + seen.unread;
        let own = complete(&self.source);
        if seen.read > 0 || all == 0 {
            return Ok(vec![own]);
        }
        let example = seen.example().map_or_else(String::new, |example| format!("; {example}"));
        let why = format!("none of its last {all} lines has a trace id and a time{example}");
        Ok(vec![own.partial(why).enable(HOW)])
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let now = clock::now_ns();
        let (fields, source, counts) = (&self.address.fields, &self.source, &mut self.counts);
        let unread_before = counts.unread;
        let (before, mut left_out) = (batch.spans.len(), 0_u64);
        let looked = self.follow.look(&mut |place, line| match line {
            Line::Whole(b"") => {}
            Line::FileBegins | Line::Gap => {}
            Line::TooLong | Line::Piece(_) => counts.cannot(place, "it is too long"),
            Line::Whole(line) => {
                let rows = line::spans(line, fields, source, now);
                counts.count(place, rows.as_ref().map(|_| ()).map_err(|why| *why));
                match rows {
                    Ok(rows) if batch.spans.len() - before < ROWS_MAX => batch.spans.extend(rows),
                    Ok(_) => left_out += 1,
                    Err(_) => {}
                }
            }
        });
        if left_out > 0 {
            let text = format!("{left_out} requests of the log were left out: more than {ROWS_MAX} rows in one sample");
            let labels = Labels::new([("source", self.source.clone())]);
            batch.events.push(event(&self.source, now, "sampled", text, labels));
        }
        let mut out = Out::new(batch, &self.source);
        let Counts { read, without_trace, unread, .. } = self.counts;
        for (outcome, count) in [("read", read), ("without_trace", without_trace), ("unread", unread)] {
            out.put(metrics::log::LINES, Labels::new([("outcome", outcome)]), count as f64);
        }
        match looked {
            Err(error) => Err(ReadError(format!("{}: {error}", self.source))),
            Ok(skipped) if skipped > 0 => {
                Err(ReadError("the log grows faster than holdup reads it: part of it was skipped".to_owned()))
            }
            // The text stays the same, so that there is one event; the counter says how many lines.
            Ok(_) if unread > unread_before => Err(ReadError(format!(
                "some lines cannot be read (log_lines_total counts them): {}",
                self.counts.example().unwrap_or_default()
            ))),
            Ok(_) => Ok(()),
        }
    }
}

impl Log {
    fn unusable(&self, error: &io::Error) -> ProbeError {
        let path = self.address.path.display();
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                let why = format!("this user may not read the file; run: sudo setfacl -m u:\"$(id -un)\":r {path}");
                ProbeError::denied(&self.source, why)
            }
            io::ErrorKind::NotFound => {
                let why = "the file does not exist; check the path, or start the service first: some create the log with its first line";
                ProbeError::unreachable(&self.source, why)
            }
            _ => ProbeError::unreachable(&self.source, format!("the file cannot be followed: {error}")),
        }
    }
}
