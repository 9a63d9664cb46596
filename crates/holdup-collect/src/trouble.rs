//! What is wrong with a read of a database, as far as its connection must know: whether it is lost, and
//! which parts of a sample failed. It knows no protocol.

use std::fmt::Display;
use std::time::Instant;

use crate::backoff::Backoffs;

/// An error of one of holdup's own statements.
pub(crate) trait Trouble: Display {
    /// Whether the connection is unusable. After a timeout the answer may still arrive, so the
    /// connection is out of step.
    fn is_of_connection(&self) -> bool;

    /// Whether the query itself may be the cause, and not only the connection.
    fn is_of_read(&self) -> bool;

    /// Whether nothing listens there.
    fn is_refused(&self) -> bool;

    /// A connection that is not attempted now, and why.
    fn not_tried(why: String) -> Self
    where
        Self: Sized;
}

/// The results of the parts of one sample.
#[derive(Default)]
pub(crate) struct Reads {
    /// Error messages.
    pub failures: Vec<String>,
    /// Whether the connection is lost.
    pub lost: bool,
    /// Parts that failed lately and pause for a while; they outlive the sample.
    pub backoffs: Backoffs,
}

impl Reads {
    /// Reads `part`, unless the connection is lost or the part failed lately: then it is a gap
    /// without a query.
    pub fn read<T, E: Trouble>(&mut self, part: &'static str, read: impl FnOnce() -> Result<T, E>) -> Option<T> {
        if !self.may(part) {
            return None;
        }
        let begun = Instant::now();
        let result = read();
        self.learn(part, begun, result.as_ref().err());
        self.note(part, result)
    }

    /// Whether `part` may be read; if it failed lately, it is recorded as a gap.
    pub fn may(&mut self, part: &'static str) -> bool {
        if self.lost {
            return false;
        }
        match self.backoffs.ask(part) {
            Ok(()) => true,
            Err(words) => {
                self.failures.push(format!("{part}: {words}"));
                false
            }
        }
    }

    /// Records that `part` was read, starting at `begun`.
    pub fn learn(&mut self, part: &'static str, begun: Instant, failure: Option<&impl Trouble>) {
        if failure.is_none_or(Trouble::is_of_read) {
            self.backoffs.note(part, begun.elapsed(), failure.map(ToString::to_string));
        }
    }

    /// The value of `result`; an error is noted as a failure of `part`.
    pub fn note<T>(&mut self, part: &str, result: Result<T, impl Trouble>) -> Option<T> {
        result
            .inspect_err(|failure| {
                self.lost |= failure.is_of_connection();
                self.failures.push(format!("{part}: {failure}"));
            })
            .ok()
    }
}
