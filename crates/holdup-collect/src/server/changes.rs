//! Changes since the last sample: the server stopped or started, or one of several workers did.
//! Only certain ones: a process that is gone, a port without a listener.

use std::collections::{BTreeMap, BTreeSet};

/// The server in one sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerState {
    /// Its listening sockets.
    pub(super) listening: BTreeSet<u64>,
    /// Processes that hold them, and whether each is a parent.
    pub(super) processes: BTreeMap<u32, bool>,
    /// The time, in ns since 1970.
    pub(super) at: i64,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Stopped { pids: Vec<u32> },
    Started { pids: Vec<u32>, absent_ms: i64 },
    Exited { pid: u32, role: &'static str },
    Came { pid: u32, role: &'static str },
}

/// The state for comparisons.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The last sample in which it listened.
    up: Option<ServerState>,
    is_down: bool,
}

pub(super) fn role(is_parent: bool) -> &'static str {
    if is_parent { "parent" } else { "worker" }
}

impl Changes {
    /// Takes the present sample; returns the changes.
    pub(super) fn take(&mut self, now: ServerState) -> Vec<Change> {
        let mut changes = Vec::new();
        if now.listening.is_empty() {
            if let Some(up) = &self.up
                && !self.is_down
            {
                changes.push(Change::Stopped { pids: up.processes.keys().copied().collect() });
            }
            self.is_down = true;
            return changes;
        }
        if let Some(up) = &self.up {
            let pids = || now.processes.keys().copied().collect();
            let absent_ms = (now.at - up.at) / 1_000_000;
            // Invisible processes may have come and gone.
            let stayed = up.processes.is_empty() || up.processes.keys().any(|pid| now.processes.contains_key(pid));
            let others = up.listening.is_disjoint(&now.listening) && !stayed;
            if self.is_down {
                changes.push(Change::Started { pids: pids(), absent_ms });
            } else if others {
                // It stopped and started between two samples.
                changes.push(Change::Stopped { pids: up.processes.keys().copied().collect() });
                changes.push(Change::Started { pids: pids(), absent_ms });
            } else {
                let gone = up.processes.iter().filter(|(pid, _)| !now.processes.contains_key(pid));
                changes.extend(gone.map(|(pid, parent)| Change::Exited { pid: *pid, role: role(*parent) }));
                let came = now.processes.iter().filter(|(pid, _)| !up.processes.contains_key(pid));
                changes.extend(came.map(|(pid, parent)| Change::Came { pid: *pid, role: role(*parent) }));
            }
        }
        self.is_down = false;
        self.up = Some(now);
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(at_ms: i64, listening: &[u64], processes: &[u32]) -> ServerState {
        let processes = processes.iter().map(|pid| (*pid, *pid == 1)).collect();
        ServerState { listening: listening.iter().copied().collect(), processes, at: at_ms * 1_000_000 }
    }

    #[test]
    fn stops_starts_and_workers() {
        let mut changes = Changes::default();
        assert_eq!(changes.take(standing(0, &[7], &[1, 2, 3])), []);
        assert_eq!(
            changes.take(standing(1_000, &[7], &[1, 2, 4])),
            [Change::Exited { pid: 3, role: "worker" }, Change::Came { pid: 4, role: "worker" }]
        );
        assert_eq!(changes.take(standing(2_000, &[], &[])), [Change::Stopped { pids: vec![1, 2, 4] }]);
        assert_eq!(changes.take(standing(3_000, &[], &[])), []);
        assert_eq!(changes.take(standing(6_000, &[8], &[5])), [Change::Started { pids: vec![5], absent_ms: 5_000 }]);
        // Within one interval.
        assert_eq!(
            changes.take(standing(7_000, &[9], &[6])),
            [Change::Stopped { pids: vec![5] }, Change::Started { pids: vec![6], absent_ms: 1_000 }]
        );
        // The same process listens anew: no restart.
        assert_eq!(changes.take(standing(8_000, &[10], &[6])), []);
    }

    #[test]
    fn processes_that_can_not_be_seen_do_not_come_and_go() {
        let mut changes = Changes::default();
        assert_eq!(changes.take(standing(0, &[7], &[])), []);
        assert_eq!(changes.take(standing(1_000, &[8], &[])), []);
        assert_eq!(changes.take(standing(2_000, &[], &[])), [Change::Stopped { pids: vec![] }]);
    }
}
