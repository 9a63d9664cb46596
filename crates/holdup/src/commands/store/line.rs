//! One line of progress on a terminal: which table, how many of its rows. Nothing elsewhere.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use holdup_store::push::Progress;

use crate::terminal;
use crate::terminal::outlet::{self, Stream};

/// Shortest time between two redraws.
const REDRAW: Duration = Duration::from_millis(100);

/// Goes to the start of the line and empties it.
const CLEAR: &str = "\r\x1b[K";

/// One line of progress.
pub struct Line {
    /// What happened to the rows: `sent`, `fetched`.
    done: &'static str,
    is_live: bool,
    drawn: Option<Instant>,
}

impl Line {
    /// For rows that are `done`; silent if `quiet`.
    pub fn new(done: &'static str, quiet: bool) -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let is_live = std::io::stderr().is_terminal() && !quiet && !is_dumb && !terminal::is_taken();
        Self { done, is_live, drawn: None }
    }

    /// Shows how far it is.
    pub fn show(&mut self, progress: Progress) {
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW);
        if self.is_live && is_due && outlet::is_idle(Stream::Err) {
            let Progress { table, rows, rows_total } = progress;
            outlet::send(Stream::Err, format!("{CLEAR}{table}: {rows} of {rows_total} rows {}", self.done));
            self.drawn = Some(Instant::now());
        }
    }

    /// Removes it.
    pub fn clear(&mut self) {
        if self.drawn.take().is_some() {
            outlet::send(Stream::Err, CLEAR.to_owned());
        }
    }
}
