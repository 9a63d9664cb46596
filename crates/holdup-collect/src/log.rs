//! `--watch log:PATH`: the log of an app or of a proxy in front of it, followed as it grows: for each request that has a
//! trace id its time, and how long it waited for the database, a pool and the like, as far as its line says so. JSON lines, and
//! any text with `key=value` pairs, as an access log can have them. What fields are called is known for common formats, and can
//! be said in the address.
//!
//! Lines are read, not kept: whatever else stands in them is in no table and in no message.

mod address;
mod fields;
pub(crate) mod follow;
mod line;

use std::io;

use holdup_recording::rows::Event;
use holdup_recording::{Batch, Coverage, CoverageState, Labels, clock, metrics};

use self::address::Address;
pub(crate) use self::fields::moment;
use self::follow::{Follow, Line, Place};
use self::line::Unread;
use crate::reading::Out;
use crate::watch::Options;
use crate::{Collector, ProbeError, ReadError};

/// Of what is there at the beginning, so many bytes are looked at to see what can be read of it.
const LOOKED_AT_BYTES: u64 = 256 * 1024;

/// Most rows of one look; requests beyond that are counted.
const ROWS_MAX: usize = 20_000;

/// Where it is described what a line has to have.
const HOW: &str = "have each request's line hold its trace id and its time (docs/logs.md), or name the fields: \
                   log:PATH?trace=NAME&total=NAME&db=NAME&unit=ms";

/// A log as a source.
pub struct Log {
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
    /// The first that could not be read, and why.
    example: Option<(Place, &'static str)>,
}

impl Counts {
    fn count(&mut self, place: Place, result: Result<(), Unread>) {
        let why = match result {
            Ok(()) => {
                self.read += 1;
                return;
            }
            Err(Unread::NoTrace) => {
                self.without_trace += 1;
                return;
            }
            Err(Unread::NoFields) => "neither a JSON object nor key=value pairs",
            Err(Unread::BadJson) => "it begins as JSON and is none",
            Err(Unread::NoTime) => "a trace id, but no time",
        };
        self.cannot(place, why);
    }

    fn cannot(&mut self, place: Place, why: &'static str) {
        self.unread += 1;
        self.example.get_or_insert((place, why));
    }

    /// The first line that can't be read, in words; never its text.
    fn example(&self) -> Option<String> {
        let (Place { number, offset }, why) = self.example?;
        let place = number.map_or_else(|| format!("the line at byte {offset}"), |number| format!("line {number}"));
        Some(format!("{place} can't be read: {why}"))
    }
}

/// Makes the collector for `log:PATH`; [`watch::SCHEMES`](crate::watch::SCHEMES) lists it.
///
/// # Errors
/// If the address is not understood.
pub fn make(address: &str, _options: &Options) -> Result<Box<dyn Collector>, ProbeError> {
    let rest = address.strip_prefix("log:").unwrap_or(address);
    let address = Address::parse(rest).map_err(|why| ProbeError::BadAddress(format!("--watch log:…: {why}")))?;
    Ok(Box::new(Log {
        source: format!("log:{}", address.path.display()),
        follow: Follow::new(address.path.clone()),
        address,
        counts: Counts::default(),
    }))
}

/// For the fuzzer: any bytes as lines of a log; how many rows they make.
pub fn rows_of(bytes: &[u8]) -> usize {
    let fields = fields::Fields::default();
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.filter_map(|line| line::spans(line, &fields, "log:", 0).ok()).map(|rows| rows.len()).sum()
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
        let (state, why) = match (seen.read, all) {
            (_, 0) => (CoverageState::Complete, None),
            (0, _) => {
                let example = seen.example().map_or_else(String::new, |example| format!("; {example}"));
                let why = format!("of its last {all} lines none has a trace id and a time{example}");
                (CoverageState::Partial, Some(why))
            }
            _ => (CoverageState::Complete, None),
        };
        let enable = why.as_ref().map(|_| HOW.to_owned());
        let source = self.source.clone();
        Ok(vec![Coverage { source, state, why, enable, cpu_ratio: None, reads_total: 0, gaps_total: 0 }])
    }

    fn settings(&mut self, _batch: &mut Batch) -> Result<(), ReadError> {
        Ok(())
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
            batch.events.push(Event {
                observed_at: now,
                source: self.source.clone(),
                kind: "sampled".to_owned(),
                text: format!("{left_out} requests of the log were left out: more rows than {ROWS_MAX} at once"),
                labels: Labels::new([("source", self.source.clone())]),
            });
        }
        let mut out = Out::new(batch, &self.source);
        let Counts { read, without_trace, unread, .. } = self.counts;
        for (outcome, count) in [("read", read), ("without_trace", without_trace), ("unread", unread)] {
            out.put(metrics::log::LINES, Labels::new([("outcome", outcome)]), count as f64);
        }
        match looked {
            Err(error) => Err(ReadError(format!("{}: {error}", self.source))),
            Ok(skipped) if skipped > 0 => {
                Err(ReadError("it grows faster than it is read: a part of it was passed over".to_owned()))
            }
            // The same words each time: one event tells of it, the counter of how many there are.
            Ok(_) if unread > unread_before => Err(ReadError(format!(
                "lines that can't be read, counted in log_lines_total: {}",
                self.counts.example().unwrap_or_default()
            ))),
            Ok(_) => Ok(()),
        }
    }
}

impl Log {
    fn unusable(&self, error: &io::Error) -> ProbeError {
        let (source_name, path) = (self.source.clone(), self.address.path.display());
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                let why = format!("this user may not read it; run: sudo setfacl -m u:\"$(id -un)\":r {path}");
                ProbeError::Denied { source_name, why }
            }
            io::ErrorKind::NotFound => {
                let why = "there is no such file; logs of a service that has just started appear with its first line";
                ProbeError::Unreachable { source_name, why: why.to_owned() }
            }
            _ => ProbeError::Unreachable { source_name, why: format!("it can't be followed: {error}") },
        }
    }
}
