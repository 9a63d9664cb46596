//! The true process list of a database: sessions with what they really do, now, and what they wait for. For looking at; nothing is
//! recorded, and nothing is read that costs the server more than a process list does. How it is read is each collector's.

use std::collections::HashMap;

use holdup_recording::rows::{Sample, Session};
use holdup_recording::{Batch, Coverage, clock};

use crate::{ProbeError, ReadError};

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

/// What cannot be shown, and how to enable it: of the source itself and of its parts `named` so.
#[cfg(any(feature = "mysql", feature = "postgresql"))]
pub(crate) fn notes(coverage: Vec<Coverage>, sees: bool, named: &[&str]) -> Result<Vec<String>, ProbeError> {
    let source = coverage.first().map(|own| own.source.clone()).unwrap_or_default();
    if !sees {
        let own = coverage.into_iter().next();
        let (why, grant) = own.map(|own| (own.why, own.enable)).unwrap_or_default();
        let why = format!("{}; run: {}", why.unwrap_or_default(), grant.unwrap_or_default());
        return Err(ProbeError::denied(source, why));
    }
    let name = |part: &str| part.strip_prefix(&source).map(str::trim_start).map(str::to_owned);
    let matters = |part: &Coverage| name(&part.source).is_some_and(|name| name.is_empty() || named.contains(&&*name));
    let notes = coverage.into_iter().filter(matters).filter_map(|part| {
        let enable = part.enable.map(|enable| format!("; {enable}"));
        Some(format!("{}{}", part.why?, enable.unwrap_or_default()))
    });
    Ok(notes.collect())
}

/// What was read at once: the sessions in `batch`, with their `statements`; none if they could not be
/// read, because something `failed`.
#[cfg(any(feature = "mysql", feature = "postgresql"))]
pub(crate) fn look(
    batch: Batch,
    statements: Option<HashMap<i64, String>>,
    failed: Result<(), ReadError>,
) -> Result<Look, ReadError> {
    let Some(mut statements) = statements else {
        let why = "the sessions could not be read: holdup reconnects and tries again";
        return Err(failed.err().unwrap_or_else(|| ReadError(why.to_owned())));
    };
    let processes = batch.sessions.into_iter().map(|session| {
        let statement = statements.remove(&session.session_id);
        Process { session, statement }
    });
    Ok(Look { at: clock::now_ns(), processes: processes.collect(), samples: batch.samples })
}
