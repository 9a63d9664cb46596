//! What the active sessions of a PostgreSQL server waited for, by its wait events: for the disk,
//! behind a session that waits for it, for a lock, or for nothing. A server of processes with its
//! own locks is slow in ways that threads in uninterruptible sleep do not show: of thirty sessions
//! that commit, one flushes, and the others wait for it in a queue of the server's.

use crate::{Missing, View};

/// The state of an active session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionWait {
    /// Reads or writes a file, or flushes one.
    Disk,
    /// Waits for what another session holds only while it reads, writes or flushes: a page being
    /// read, its turn at the log, the end of a table.
    Behind,
    /// Waits for a lock that statements ask for.
    Lock,
    /// Runs, or could run.
    Running,
    /// Anything else: another process of the server, the client, a timer.
    Elsewhere,
}

/// Events of types other than IO that last through a read, a write or a flush. Names of PostgreSQL
/// 10 to 18, in lower case. PostgreSQL documentation, "The Cumulative Statistics System", wait
/// events.
const BEHIND: &[&str] = &[
    "ipc:bufferio",
    "lwlock:bufferio",
    "lwlock:buffer_io",
    "lwlock:walwrite",
    "lwlock:walwritelock",
    "lwlock:walinsert",
    "lwlock:wal_insert",
    "lwlock:walbufmapping",
    "lwlock:walbufmappinglock",
    "lwlock:buffercontent",
    "lwlock:buffer_content",
    "lwlock:buffermapping",
    "lwlock:buffer_mapping",
    "lock:extend",
    "ipc:checkpointdone",
    "ipc:checkpointstart",
];

/// The state behind wait event `state` (`TYPE:EVENT`, empty if it waits for nothing).
pub fn at(state: &str) -> SessionWait {
    let state = state.to_ascii_lowercase();
    match state.split_once(':').map_or(state.as_str(), |(kind, _)| kind) {
        "" => SessionWait::Running,
        "io" => SessionWait::Disk,
        _ if BEHIND.contains(&state.as_str()) => SessionWait::Behind,
        "lock" => SessionWait::Lock,
        _ => SessionWait::Elsewhere,
    }
}

/// Mean numbers of sessions over a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerWaits {
    /// Active ones.
    pub active: f64,
    /// Those that read, wrote or flushed.
    pub disk: f64,
    /// Those that waited behind such a session.
    pub behind: f64,
    /// Those that ran, or could run.
    pub running: f64,
}

impl ServerWaits {
    /// Sessions that waited for the disk, by themselves or behind another. The sessions in front of
    /// them are at the disk or on a CPU in the same proportion as all sessions.
    pub fn for_disk(&self) -> f64 {
        let holders = self.disk + self.running;
        if holders > 0.0 { self.disk + self.behind * self.disk / holders } else { 0.0 }
    }
}

impl View<'_> {
    /// Whether the client's requests are statements of a database.
    pub fn asks_statements(&self) -> bool {
        let load = self.recording.manifest.load.as_ref();
        load.is_some_and(|load| {
            ["mysql", "postgres", "mongodb"].iter().any(|protocol| load.protocol.starts_with(protocol))
        })
    }

    /// States of active client sessions; none if no server reports them (only PostgreSQL does).
    ///
    /// # Errors
    /// If sessions were not recorded.
    pub fn server_waits(&self) -> Result<Option<ServerWaits>, Missing> {
        let rows = self.sessions(&["source", "command", "state"])?;
        let mut rows = rows.into_iter().filter(|row| row.source.starts_with("postgres")).peekable();
        if rows.peek().is_none() {
            return Ok(None);
        }
        let one = 1.0 / (self.session_instants().max(1) as f64);
        let mut waits = ServerWaits::default();
        for row in rows.filter(|row| row.command == "active") {
            waits.active += one;
            match at(row.state.as_deref().unwrap_or_default()) {
                SessionWait::Disk => waits.disk += one,
                SessionWait::Behind => waits.behind += one,
                SessionWait::Running => waits.running += one,
                SessionWait::Lock | SessionWait::Elsewhere => {}
            }
        }
        Ok(Some(waits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_behind_a_flush_wait_for_the_disk_in_proportion() {
        let events = ["IO:WALSync", "LWLock:WALWrite", "Lock:extend", "Lock:transactionid", "", "Client:ClientRead"];
        let are = [
            SessionWait::Disk,
            SessionWait::Behind,
            SessionWait::Behind,
            SessionWait::Lock,
            SessionWait::Running,
            SessionWait::Elsewhere,
        ];
        assert_eq!(events.map(at), are);
        let waits = ServerWaits { active: 20.0, disk: 3.0, behind: 12.0, running: 1.0 };
        assert_eq!(waits.for_disk(), 12.0);
        // Behind nobody who was seen at the disk nobody waits for it.
        assert_eq!(ServerWaits { disk: 0.0, running: 0.0, ..waits }.for_disk(), 0.0);
    }
}
