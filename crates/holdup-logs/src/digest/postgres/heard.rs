//! A PostgreSQL server's messages, whole: an entry with the detail and the statement that follow it.
//! Who listens keeps no value of them. Executions are not passed on: the tally counts those.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::digest::postgres::entry::Entry;

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

impl fmt::Debug for Listener {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("Listener")
    }
}

/// Joins entries to messages.
#[derive(Debug, Default)]
pub(super) struct Joined(Option<Message>);

/// Whether an entry reports an execution, without its plan.
fn is_execution(text: &[u8]) -> bool {
    let behind = text.strip_prefix(b"duration: ").and_then(|rest| rest.get(..rest.len().min(64)));
    behind.is_some_and(|rest| memchr::memmem::find(rest, b" plan:").is_none())
        || [&b"statement:"[..], b"execute "].iter().any(|begin| text.starts_with(begin))
}

impl Joined {
    /// Takes the next entry.
    pub(super) fn take(&mut self, entry: &Entry, listener: &Listener) {
        // The server begins each further line of a text with a tab.
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\n\t", "\n");
        if super::continues(entry.severity) {
            if let Some(open) = self.0.as_mut().filter(|open| open.pid == entry.fields.pid) {
                match entry.severity {
                    b"DETAIL" => open.detail = text(entry.message),
                    b"STATEMENT" => open.statement = text(entry.message),
                    _ => {}
                }
            }
            return;
        }
        self.end(listener);
        if is_execution(entry.message) {
            return;
        }
        self.0 = Some(Message {
            at_us: entry.fields.at_us,
            pid: entry.fields.pid,
            database: text(entry.fields.database),
            severity: text(entry.severity),
            text: text(entry.message),
            detail: text(entry.detail),
            statement: text(entry.statement),
        });
    }

    /// No part of the last message is to come.
    pub(super) fn end(&mut self, listener: &Listener) {
        if let Some(message) = self.0.take() {
            listener.0.lock().unwrap_or_else(PoisonError::into_inner)(&message);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::digest::block::Block;
    use crate::digest::postgres::stderr::Stderr;
    use crate::digest::select::Select;
    use crate::digest::tally::{Identity, Tally};

    #[test]
    fn messages_come_with_their_detail_and_statement_and_without_executions() {
        let log = "2026-11-28 10:00:00 UTC [7] a@b LOG:  duration: 1.000 ms  statement: SELECT 1;
2026-11-28 10:00:01 UTC [7] a@b LOG:  process 7 still waiting for ShareLock on transaction 5 after 50.1 ms
2026-11-28 10:00:01 UTC [7] a@b DETAIL:  Process holding the lock: 8.
2026-11-28 10:00:01 UTC [9] a@b STATEMENT:  of another process
2026-11-28 10:00:01 UTC [7] a@b STATEMENT:  UPDATE t
\tSET a = 1;
2026-11-28 10:00:02 UTC [4] LOG:  checkpoint starting: wal
";
        let all = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&all);
        let mut tally = Tally::new(holdup_sql::Dialect::PostgreSql, Identity::Holdup, Select::default());
        tally.listener = Some(Listener::new(move |message| heard.lock().unwrap().push(message.clone())));
        Stderr::new(log.as_bytes(), None).read(&Block { data: log.into(), ..Block::default() }, &mut tally);
        let all = all.lock().unwrap();
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!((all[0].pid, all[0].database.as_str()), (7, "b"));
        assert_eq!(
            (all[0].detail.as_str(), all[0].statement.as_str()),
            ("Process holding the lock: 8.", "UPDATE t\nSET a = 1;")
        );
        // A process of the server has no account in its prefix.
        assert_eq!((all[1].pid, all[1].at_us.is_some()), (4, true));
        assert_eq!(tally.events, 1);
    }
}
