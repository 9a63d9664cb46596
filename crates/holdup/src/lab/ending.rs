//! How a process of a lab ended.

use std::fmt;

use super::signal::SIGNALS;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It ended by itself with this status.
    Exited(i32),
    /// This signal ended it.
    Killed(i32),
    /// Its status is gone, because another caller reaped it.
    Gone,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "ended with exit status {status}"),
            Self::Killed(signal) => match SIGNALS.iter().find(|(_, number)| number == signal) {
                Some((name, _)) => write!(f, "was ended by signal {signal} (SIG{name})"),
                None => write!(f, "was ended by signal {signal}"),
            },
            Self::Gone => write!(f, "ended"),
        }
    }
}
