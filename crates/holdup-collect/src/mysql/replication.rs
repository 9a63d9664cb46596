//! How far a replica lags behind, and whether its threads run; one row per channel. A server that
//! is not a replica yields nothing. It cannot see the lag of other servers that replicate from this
//! one.

use holdup_recording::{Labels, events, metrics};

use super::failure::Failure;
use super::server::Server;
use super::versions::Topic;
use crate::reading::Out;

/// State between reads.
#[derive(Default)]
pub(super) struct Replication {
    /// The last reported error.
    said: Option<String>,
}

impl Replication {
    /// Adds lag and state of every channel.
    pub(super) fn sample(&mut self, server: &Server, out: &mut Out) -> Result<(), Failure> {
        let table = out.read(|| server.table(server.release.has(Topic::ReplicaStatus)))?;
        for row in table.named() {
            // The first of these columns that exists and is not NULL.
            let column = |names: &[&str]| names.iter().find_map(|name| row.text(name));
            let channel = column(&["Connection_name", "Channel_Name"]).unwrap_or_default();
            let labels = Labels::new([("channel", channel)]);
            let lag = column(&["Seconds_Behind_Source", "Seconds_Behind_Master"]).and_then(|lag| lag.parse().ok());
            let runs = |names: &[&str]| column(names).map(|state| f64::from(u8::from(state == "Yes")));
            let values = [
                (metrics::mysql::REPLICA_LAG, lag),
                (metrics::mysql::REPLICA_DELAY, column(&["SQL_Delay"]).and_then(|delay| delay.parse().ok())),
                (metrics::mysql::REPLICA_IO_RUNNING, runs(&["Replica_IO_Running", "Slave_IO_Running"])),
                (metrics::mysql::REPLICA_SQL_RUNNING, runs(&["Replica_SQL_Running", "Slave_SQL_Running"])),
            ];
            out.put_known(&labels, values);
            let state = column(&["Replica_SQL_Running_State", "Slave_SQL_Running_State"]).unwrap_or_default();
            // Only the number: the message may contain the values of a row.
            let error = column(&["Last_SQL_Errno"]).filter(|number| *number != "0");
            let text =
                error.map(|number| format!("replication of channel {channel:?} stopped with error {number} ({state})"));
            if let Some((text, number)) = text.clone().zip(error).filter(|(text, _)| self.said.as_ref() != Some(text)) {
                let labels = labels.with("error", events::REPLICATION_STOPPED).with("thread", "sql");
                out.say(events::ERROR, text, labels.with("errno", number));
            }
            self.said = text;
        }
        Ok(())
    }
}
