//! The loose ends of a block of PostgreSQL's log: a statement and its duration that are separate
//! entries, of which the block has one.

use crate::digest::event::Position;

/// A statement that waits for its duration, which is a separate entry.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Its text.
    pub sql: Vec<u8>,
    /// User, host, database and application.
    pub who: [Vec<u8>; 4],
    /// Its process.
    pub pid: u64,
    /// When it was logged, if that is known.
    pub at_us: Option<i64>,
    /// Its place.
    pub position: Position,
}

/// A loose end of a block that fits one of another block.
#[derive(Clone, Debug)]
pub enum LooseEnd {
    /// A statement without its duration yet.
    Statement(Waiting),
    /// The first duration of a process without a statement before it in the block, microseconds.
    Duration(u64),
}
