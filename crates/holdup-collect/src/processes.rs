//! The true process list of a database: sessions with what they really do, now, and what they wait for. For looking at; nothing is
//! recorded, and nothing is read that costs the server more than a process list does. How it is read is each collector's.

use holdup_recording::rows::{Sample, Session};

/// One session.
#[derive(Clone, Debug)]
pub struct Process {
    /// As it would be recorded: without literals.
    pub session: Session,
    /// What it runs as it was sent, literals and all; of one that only holds a lock, what it ran last.
    pub statement: Option<String>,
}

/// What was so at one moment.
#[derive(Clone, Debug)]
pub struct Look {
    /// When, nanoseconds since 1970.
    pub at: i64,
    /// All sessions that do something or are in somebody's way, and some of the idle ones.
    pub processes: Vec<Process>,
    /// Sessions by true state, the server's counters, and of MySQL the thread pool and replication.
    pub samples: Vec<Sample>,
}
