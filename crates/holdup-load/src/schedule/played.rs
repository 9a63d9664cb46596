//! A recorded mix as a schedule: which session sent what, and when. Its arrivals are not functions
//! of their numbers; they are read while they are played, so that a log may be larger than memory.
//! Only the number of arrivals in each second is known beforehand.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use holdup_protocol::database::{Rows, Statement};

/// One action of a session.
#[derive(Debug)]
pub struct Play {
    /// The session; each has its own connection from its first action to its last.
    pub session: u64,
    /// When, nanoseconds from the start. It never decreases.
    pub due_ns: i64,
    /// The action.
    pub action: Action,
}

/// What a session did.
#[derive(Debug)]
pub enum Action {
    /// It connected.
    Open(DatabaseName),
    /// It executed a statement; it connects first if it has not.
    Execute(Box<PlannedExecution>, DatabaseName),
    /// It left.
    Close,
}

/// The database a session connects to; none for the one in the target's address.
pub type DatabaseName = Option<Arc<str>>;

/// An execution.
#[derive(Debug)]
pub struct PlannedExecution {
    /// Index of the scenario's operation that it counts as.
    pub operation: u32,
    /// Its number in the log, from 0, which is the same in each replay.
    pub number: u64,
    /// The statements to send: possibly a change of database, and then the logged one.
    pub statements: Vec<Statement>,
    /// Digest of the statement.
    pub digest: Arc<str>,
    /// How long it took when it was logged, nanoseconds.
    pub logged_ns: Option<i64>,
    /// Trace id in its comment.
    pub trace_id: Option<Box<str>>,
}

/// How sessions of a mix behave.
#[derive(Clone, Debug, Default)]
pub struct MixSettings {
    /// Statements that each executes after its login.
    pub opening: Vec<Statement>,
    /// Settings that PostgreSQL's sessions begin with.
    pub settings: Vec<(String, String)>,
    /// How to handle rows.
    pub rows: Rows,
}

/// How far the log's own order delayed its statements: those that became due while the one before
/// in their session was still running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderDelay {
    /// Number of delayed statements.
    pub statements: u64,
    /// How long they waited in total, nanoseconds.
    pub waited_ns: u64,
    /// The longest wait, nanoseconds.
    pub longest_ns: u64,
    /// Sessions that had to wait because the most allowed were connected.
    pub unseated: u64,
}

/// The plays, in order.
pub type Feed = Box<dyn Iterator<Item = Play> + Send>;

/// See the module. A clone shares its state.
#[derive(Clone)]
pub struct RecordedMix(Arc<Inner>);

struct Inner {
    per_second: Vec<u32>,
    length: Duration,
    manner: MixSettings,
    feed: Mutex<Option<Feed>>,
}

impl fmt::Debug for RecordedMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedMix").field("length", &self.0.length).finish_non_exhaustive()
    }
}

impl RecordedMix {
    /// A mix of `length` with so many executions in each second from the start. It can be played
    /// once.
    pub fn new(per_second: Vec<u32>, length: Duration, manner: MixSettings, feed: Feed) -> Self {
        Self(Arc::new(Inner { per_second, length, manner, feed: Mutex::new(Some(feed)) }))
    }

    /// How its sessions behave.
    pub fn manner(&self) -> &MixSettings {
        &self.0.manner
    }

    /// Takes the plays; none if they were taken before.
    pub(crate) fn take(&self) -> Option<Feed> {
        self.0.feed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn length(&self) -> Duration {
        self.0.length
    }

    pub(super) fn total(&self) -> u64 {
        self.0.per_second.iter().map(|count| u64::from(*count)).sum()
    }

    pub(super) fn peak_rate(&self) -> f64 {
        self.0.per_second.iter().max().map_or(0.0, |count| f64::from(*count))
    }

    pub(super) fn rate_at(&self, at: Duration) -> f64 {
        let second = usize::try_from(at.as_secs()).ok();
        second.and_then(|second| self.0.per_second.get(second)).map_or(0.0, |count| f64::from(*count))
    }
}
