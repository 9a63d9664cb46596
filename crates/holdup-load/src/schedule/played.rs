//! A recorded mix as a schedule: which session asked what, and when. Its arrivals are not a function of their number but are
//! read while they are played, so that a log may be larger than memory; what is known ahead is how many there are each second.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use holdup_protocol::database::{Rows, Statement};

/// One thing that a session did.
#[derive(Debug)]
pub struct Play {
    /// Which session; each has its own connection from its first to its last.
    pub session: u64,
    /// When, nanoseconds from the start. It never decreases.
    pub due_ns: i64,
    /// What.
    pub what: What,
}

/// What a session did.
#[derive(Debug)]
pub enum What {
    /// It connected.
    Open(Entry),
    /// It executed something; it connects first if it has not.
    Ask(Box<Ask>, Entry),
    /// It left.
    Close,
}

/// Where a session connects to: a database, or where the target's address says.
pub type Entry = Option<Arc<str>>;

/// An execution.
#[derive(Debug)]
pub struct Ask {
    /// Index of the scenario's operation that it counts as.
    pub operation: u32,
    /// Its number in the log, from 0, which is the same in each replay.
    pub number: u64,
    /// What is sent: perhaps what changes the database, and then the statement.
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
pub struct Manner {
    /// What each executes when it was let in.
    pub opening: Vec<Statement>,
    /// Settings that PostgreSQL's sessions begin with.
    pub settings: Vec<(String, String)>,
    /// What becomes of rows.
    pub rows: Rows,
}

/// How far the log's own order held its statements back: of those that were due while the one before them in their session was
/// still under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// How many.
    pub statements: u64,
    /// How long they waited in all, nanoseconds.
    pub waited_ns: u64,
    /// The longest wait, nanoseconds.
    pub longest_ns: u64,
    /// Sessions that found as many connected as there may be.
    pub unseated: u64,
}

/// What is played, in order.
pub type Feed = Box<dyn Iterator<Item = Play> + Send>;

/// See the module. A clone is the same one, not a copy.
#[derive(Clone)]
pub struct Played(Arc<Inner>);

struct Inner {
    per_second: Vec<u32>,
    length: Duration,
    manner: Manner,
    feed: Mutex<Option<Feed>>,
}

impl fmt::Debug for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Played").field("length", &self.0.length).finish_non_exhaustive()
    }
}

impl Played {
    /// A mix of `length` with so many executions in each second from the start. It can be played once.
    pub fn new(per_second: Vec<u32>, length: Duration, manner: Manner, feed: Feed) -> Self {
        Self(Arc::new(Inner { per_second, length, manner, feed: Mutex::new(Some(feed)) }))
    }

    /// How its sessions behave.
    pub fn manner(&self) -> &Manner {
        &self.0.manner
    }

    /// What is to be played; none if it was taken before.
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
