//! The server's counters, by the table of readings per version ([`readings`](super::readings)), and
//! its settings, for the server and for single tables. Readers of the recording pick the relevant
//! ones.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use holdup_recording::metrics::Member;
use holdup_recording::{Labels, events};

use super::probe::Rights;
use super::readings::{self, Cadence, Reading};
use super::server::{Failure, Row, Rows, Server};
use crate::backoff::Backoffs;
use crate::pace::{Pace, Turn};
use crate::reading::{Out, tell};

/// Shortest pause between two reads of slow readings.
const SLOW: Duration = Duration::from_secs(10);

/// Largest number of tables whose options are recorded.
const OPTIONS: usize = 2_000;

/// Not permitted; no such function, table or column; not supported. Some cloud servers answer so
/// whatever their version.
const REFUSALS: &[&str] = &["42501", "42883", "42P01", "42703", "0A000"];

/// State between reads.
#[derive(Default)]
pub(super) struct Counters {
    started_at: Option<String>,
    /// When each slow reading is due.
    paces: HashMap<&'static str, Pace>,
    /// Readings that the server has refused: each is one gap and is not retried.
    refused: HashSet<&'static str>,
    /// Readings of every sample that failed lately.
    failing: Backoffs,
}

impl Counters {
    /// Reads everything that is due, exists in this version and is permitted; adds an event if the
    /// server has restarted.
    pub(super) fn sample(
        &mut self,
        server: &Server,
        rights: Rights,
        turn: &mut Turn,
        out: &mut Out,
    ) -> Result<(), Failure> {
        let mut failed = None;
        for reading in readings::for_version(server.major()).filter(|reading| rights.allow(reading.needs)) {
            if self.refused.contains(reading.from) {
                continue;
            }
            let result = match reading.cadence {
                Cadence::Sample => match self.failing.ask(reading.from) {
                    Ok(()) => {
                        let begun = Instant::now();
                        let result = read(server, reading, out);
                        let failure = result.as_ref().err().map(ToString::to_string);
                        self.failing.note(reading.from, begun.elapsed(), failure);
                        result
                    }
                    Err(words) => Err(Failure::Server("holdup".to_owned(), words.to_owned())),
                },
                Cadence::Slow => {
                    let pace = self.paces.entry(reading.from).or_insert_with(|| Pace::at_least(SLOW));
                    let Some(begun) = pace.due(turn) else { continue };
                    pace.read(turn, begun, read(server, reading, out))
                }
            };
            match result {
                // A missing view must not stop the others.
                Err(failure @ Failure::Server(..)) => {
                    if matches!(&failure, Failure::Server(code, _) if REFUSALS.contains(&code.as_str())) {
                        self.refused.insert(reading.from);
                    }
                    failed.get_or_insert(failure);
                }
                other => other?,
            }
        }
        self.uptime(server, out)?;
        failed.map_or(Ok(()), Err)
    }

    fn uptime(&mut self, server: &Server, out: &mut Out) -> Result<(), Failure> {
        let answer = out.read(|| server.rows_again("SELECT pg_postmaster_start_time()"))?;
        let started_at = answer.rows.first().and_then(|row| row.text(0)).map(str::to_owned);
        if let (Some(before), Some(now)) = (&self.started_at, &started_at)
            && before != now
        {
            out.say(events::RESTART, format!("the server restarted at {now}"), Labels::none());
        }
        self.started_at = started_at.or(self.started_at.take());
        Ok(())
    }
}

/// Every number of every row.
fn read(server: &Server, reading: &Reading, out: &mut Out) -> Result<(), Failure> {
    let sql = format!("SELECT * FROM {}", reading.from);
    let answer = out.read(|| match reading.cadence {
        Cadence::Sample => server.rows_again(&sql),
        Cadence::Slow => server.rows(&sql),
    })?;
    put(&answer, reading.name, reading.labels, out, |_| Labels::none());
    Ok(())
}

/// Every number of every row as a sample, with the row's labels and those that `more` adds.
pub(super) fn put(answer: &Rows, name: &str, labels: &[&str], out: &mut Out, more: impl Fn(&Row) -> Labels) {
    let columns: Vec<Option<Member>> =
        answer.columns.iter().map(|column| readings::metric(name, labels, column)).collect();
    let places: Vec<(&str, usize)> = labels
        .iter()
        .filter_map(|label| Some((readings::label(label), answer.columns.iter().position(|name| name == label)?)))
        .collect();
    for row in &answer.rows {
        let of_row = places.iter().filter_map(|(label, place)| Some((*label, row.text(*place)?)));
        let of_row = of_row.fold(more(row), |all, (label, value)| all.with(label, value));
        let known = columns.iter().zip(0..).filter_map(|(metric, place)| Some((metric.as_ref()?, row.float(place))));
        out.put_known(&of_row, known);
    }
}

/// Options of single tables in the connected database, including TOAST tables, whose options are
/// set with the prefix `toast.`.
pub(super) fn options(server: &Server, out: &mut Out) -> Result<(), Failure> {
    let answer = server.rows(&format!(
        "SELECT holdup_n.nspname || '.' || holdup_c.relname, array_to_string(holdup_c.reloptions, ',') \
         FROM pg_class AS holdup_c JOIN pg_namespace AS holdup_n ON holdup_n.oid = holdup_c.relnamespace \
         WHERE holdup_c.reloptions IS NOT NULL AND holdup_c.relkind IN ('r', 'm', 'p', 't') ORDER BY holdup_c.relpages DESC LIMIT {OPTIONS}"
    ))?;
    let all =
        answer.rows.iter().filter_map(|row| Some((format!("reloptions:{}", row.text(0)?), row.text(1)?.to_owned())));
    tell(out.batch, out.source(), all);
    Ok(())
}
