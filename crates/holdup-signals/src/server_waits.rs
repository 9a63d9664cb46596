//! What the active sessions of a PostgreSQL server waited for, by the server's own wait events: for the disk, behind a session that
//! waits for it, for a lock, or for nothing. A server of processes and locks of its own is slow in ways that no count of threads in
//! uninterruptible sleep shows: of thirty sessions that commit one flushes, and the others wait for it in a queue of the server's.

use super::{Missing, View};

/// What an active session is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Reads or writes a file, or flushes one.
    Disk,
    /// Waits for what another session holds only while it reads, writes or flushes: a page that is being read, the log's turn, a
    /// table's end.
    Behind,
    /// Waits for a lock that statements ask for.
    Lock,
    /// Runs, or wants to.
    Running,
    /// Anything else: another process of the server, the client, a timer.
    Elsewhere,
}

/// Events of other types than IO that are held through a read, a write or a flush. Names of PostgreSQL 10 to 18, in small letters.
/// PostgreSQL documentation, "The Cumulative Statistics System", wait events.
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

/// What a session with wait event `state` (`TYPE:EVENT`, empty if it waits for nothing) is at.
pub fn at(state: &str) -> At {
    let state = state.to_ascii_lowercase();
    match state.split_once(':').map_or(state.as_str(), |(kind, _)| kind) {
        "" => At::Running,
        "io" => At::Disk,
        _ if BEHIND.contains(&state.as_str()) => At::Behind,
        "lock" => At::Lock,
        _ => At::Elsewhere,
    }
}

/// Sessions on average, over a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerWaits {
    /// That were active.
    pub active: f64,
    /// That read, wrote or flushed.
    pub disk: f64,
    /// That waited behind such a one.
    pub behind: f64,
    /// That ran, or wanted to.
    pub running: f64,
}

impl ServerWaits {
    /// Sessions that waited for the disk, by themselves or behind another. Who is in front of them is at the disk or on a CPU in the
    /// proportion in which sessions are.
    pub fn for_disk(&self) -> f64 {
        let holders = self.disk + self.running;
        if holders > 0.0 { self.disk + self.behind * self.disk / holders } else { 0.0 }
    }
}

impl View<'_> {
    /// Whether what the client asks for is statements of a database.
    pub fn asks_statements(&self) -> bool {
        let load = self.recording.manifest.load.as_ref();
        load.is_some_and(|load| ["mysql", "postgres"].iter().any(|protocol| load.protocol.starts_with(protocol)))
    }

    /// What active sessions of clients were at; none where no server says it (only PostgreSQL does).
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
                At::Disk => waits.disk += one,
                At::Behind => waits.behind += one,
                At::Running => waits.running += one,
                At::Lock | At::Elsewhere => {}
            }
        }
        Ok(Some(waits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_behind_a_flush_waits_for_the_disk_as_far_as_those_in_front_do() {
        let events = ["IO:WALSync", "LWLock:WALWrite", "Lock:extend", "Lock:transactionid", "", "Client:ClientRead"];
        let are = [At::Disk, At::Behind, At::Behind, At::Lock, At::Running, At::Elsewhere];
        assert_eq!(events.map(at), are);
        let waits = ServerWaits { active: 20.0, disk: 3.0, behind: 12.0, running: 1.0 };
        assert_eq!(waits.for_disk(), 12.0);
        // Behind nobody who was seen at the disk nobody waits for it.
        assert_eq!(ServerWaits { disk: 0.0, running: 0.0, ..waits }.for_disk(), 0.0);
    }
}
