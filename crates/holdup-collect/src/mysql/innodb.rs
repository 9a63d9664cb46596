//! InnoDB's backlog: what it has yet to purge and to write, and how much room is left. A figure
//! with a status variable is already among the counters and only gets its common name here; the
//! others are queried.

use std::collections::HashMap;

use holdup_recording::{Labels, metrics};

use super::failure::Failure;
use super::server::Server;
use super::versions::Topic;
use crate::reading::Out;

/// `SHOW ENGINE INNODB STATUS` lists all transactions, so it is read once in this many samples.
const SPARSE: u64 = 5;

/// State between reads.
#[derive(Default)]
pub(super) struct Backlog {
    reads: u64,
    /// Size of the redo log, bytes. None before the first query; it can change while the server
    /// runs, but rarely does.
    capacity: Option<f64>,
}

impl Backlog {
    /// Adds history list length, checkpoint age and log capacity. `status` holds the server's
    /// counters by lower-case name; `has_process` says whether the account has PROCESS.
    pub(super) fn sample(
        &mut self,
        server: &Server,
        status: &HashMap<String, f64>,
        has_process: bool,
        out: &mut Out,
    ) -> Result<(), Failure> {
        self.reads += 1;
        out.begin();
        let (mut history, mut age) = (status.get("innodb_history_list_length").copied(), age(server, status));
        let statement = server.release.has(Topic::HistoryList);
        if history.is_none() && !statement.is_empty() && has_process {
            history = server.rows(statement)?.first().and_then(|row| row.float(0));
        }
        if age.is_none()
            && server.release.has(Topic::CheckpointAge).is_empty()
            && has_process
            && self.reads % SPARSE == 1
        {
            let rows = server.rows("SHOW ENGINE INNODB STATUS")?;
            age = rows.first().and_then(|row| row.text(2)).and_then(age_of_text);
        }
        if self.capacity.is_none() || self.reads % SPARSE == 1 {
            let rows = server.rows(&format!("SELECT {}", server.release.has(Topic::LogCapacity)))?;
            self.capacity = rows.first().and_then(|row| row.float(0));
        }
        let values = [
            (metrics::mysql::INNODB_HISTORY_LIST_LENGTH, history),
            (metrics::mysql::INNODB_CHECKPOINT_AGE_BYTES, age),
            (metrics::mysql::INNODB_LOG_CAPACITY_BYTES, self.capacity),
        ];
        out.put_known(&Labels::none(), values);
        Ok(())
    }
}

/// The distance between the newest change and the checkpoint, from status variables.
fn age(server: &Server, status: &HashMap<String, f64>) -> Option<f64> {
    let value = |name: &str| status.get(&format!("innodb_{name}")).copied();
    match server.release.has(Topic::CheckpointAge).split_once('-') {
        Some((newest, checkpoint)) => Some((value(newest)? - value(checkpoint)?).max(0.0)),
        None => value(server.release.has(Topic::CheckpointAge)),
    }
}

/// The same from `SHOW ENGINE INNODB STATUS`.
fn age_of_text(text: &str) -> Option<f64> {
    let after = |label: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(label))?;
        // Old servers write two halves of 32 bits.
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        let first = numbers.next()?.ok()?;
        Some(numbers.next().and_then(Result::ok).map_or(first, |low| (first << 32) | low))
    };
    let newest = after("Log sequence number")?;
    let checkpoint = after("Last checkpoint at")?;
    Some(newest.saturating_sub(checkpoint) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_is_found_in_the_text_of_old_servers() {
        let text = "---\nLOG\n---\nLog sequence number 1626007\nLog flushed up to   1626007\n\
                    Pages flushed up to 1626007\nLast checkpoint at  1600000\n0 pending log writes\n";
        assert_eq!(age_of_text(text), Some(26007.0));
        let eight = "Log sequence number          19611482\nLog buffer assigned up to    19611482\n\
                     Last checkpoint at           19611482\n";
        assert_eq!(age_of_text(eight), Some(0.0));
        assert_eq!(age_of_text("LOG\nnothing of that"), None);
    }
}
