//! One line of progress on a terminal, which is drawn again and again. Nothing elsewhere.

use std::time::{Duration, Instant};

use crate::terminal;
use crate::terminal::outlet::{self, Stream};

/// Shortest time between two redraws.
const REDRAW: Duration = Duration::from_millis(100);

/// Goes to the start of the line and empties it.
const CLEAR: &str = "\r\x1b[K";

/// One line of progress.
pub struct Line {
    is_live: bool,
    drawn: Option<Instant>,
}

impl Line {
    /// A line; silent if `quiet`.
    pub fn new(quiet: bool) -> Self {
        Self { is_live: !quiet && terminal::can_redraw(), drawn: None }
    }

    /// Shows how far it is.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW);
        if self.is_live && is_due && outlet::is_idle(Stream::Err) {
            outlet::send(Stream::Err, format!("{CLEAR}{}", text()));
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
