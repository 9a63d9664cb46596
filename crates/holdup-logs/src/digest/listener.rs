//! Who listens to a server's messages, and a message, whole: with the detail and the statement that follow it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Microseconds since 1970, in the log's own time zone.
    pub at_us: Option<i64>,
    /// Process; 0 if unknown.
    pub pid: u64,
    /// Database; empty if unknown.
    pub database: String,
    /// `LOG`, `ERROR`, …
    pub severity: String,
    /// Its text. It may hold values.
    pub text: String,
    /// Its detail. It may hold values.
    pub detail: String,
    /// The statement that it is about. It holds values.
    pub statement: String,
}

/// A function that gets each message.
#[derive(Clone)]
pub struct Listener(Arc<Mutex<Hear>>);

/// What is called with each message.
type Hear = dyn FnMut(&Message) + Send;

impl Listener {
    /// Of this function.
    pub fn new(hear: impl FnMut(&Message) + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(hear)))
    }
}

impl Listener {
    /// Passes a message on.
    pub(crate) fn hear(&self, message: &Message) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)(message);
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("Listener")
    }
}
