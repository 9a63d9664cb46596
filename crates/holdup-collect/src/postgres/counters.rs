//! What the server counts, whole: every numeric column of its views of statistics is a sample named after view and column.
//! Which of it matters is for those who read the recording. And what is set.

use holdup_recording::rows::{Event, Setting};
use holdup_recording::{Batch, Labels, clock};

use super::Read;
use super::server::{Failure, Server};

/// A view: from which major version, its name in metrics, the columns that are labels, where it comes from. Columns come and go
/// with versions, and are taken as they are.
type View = (i64, &'static str, &'static [&'static str], &'static str);

#[rustfmt::skip]
const VIEWS: &[View] = &[
    (10, "database", &["datname"], "pg_stat_database WHERE datname IS NOT NULL"),
    (10, "bgwriter", &[], "pg_stat_bgwriter"),
    (17, "checkpointer", &[], "pg_stat_checkpointer"),
    (14, "wal", &[], "pg_stat_wal"),
    (10, "archiver", &[], "pg_stat_archiver"),
    (13, "slru", &["name"], "pg_stat_slru"),
    (16, "io", &["backend_type", "object", "context"], "pg_stat_io WHERE reads > 0 OR writes > 0 OR extends > 0 OR fsyncs > 0"),
    (10, "replication", &["application_name", "client_addr"], "(SELECT application_name, client_addr, \
         extract(epoch FROM write_lag) AS write_lag_seconds, extract(epoch FROM flush_lag) AS flush_lag_seconds, \
         extract(epoch FROM replay_lag) AS replay_lag_seconds FROM pg_stat_replication) AS holdup_r"),
];

/// Columns that are numbers and count nothing.
const IDENTITIES: &[&str] = &["datid", "pid", "usesysid"];

/// Parts of names of settings that may hold a secret or a command with one.
const SECRET: &[&str] =
    &["password", "passphrase", "secret", "token", "conninfo", "_command", "private_key", "access_key"];

/// Settings with a dot in their name that are extensions' own; others are whatever an application has put there.
const EXTENSIONS: &[&str] = &["auto_explain.", "pg_stat_statements.", "pg_prewarm.", "plpgsql."];

/// What is remembered between reads.
#[derive(Default)]
pub(super) struct Counters {
    started_at: Option<String>,
}

impl Counters {
    /// All numeric columns of all views the server has, and an event if it has restarted.
    pub(super) fn sample(&mut self, server: &Server, source: &str, batch: &mut Batch) -> Result<(), Failure> {
        let mut failed = None;
        for (_, view, labels, from) in VIEWS.iter().filter(|(since, ..)| server.major() >= *since) {
            let mut read = Read::begin(source);
            let answer = match server.rows(&format!("SELECT * FROM {from}")) {
                // One view less is no reason to go without the others.
                Err(failure @ Failure::Server(..)) => {
                    failed.get_or_insert(failure);
                    continue;
                }
                other => other?,
            };
            read.end();
            let place = |column: &&str| answer.columns.iter().position(|name| name == column);
            for row in &answer.rows {
                let pairs = labels.iter().filter_map(|label| {
                    let value = row.text(place(label)?)?;
                    Some((if *label == "datname" { "database" } else { *label }, value))
                });
                let of_row = Labels::of(pairs);
                for (index, column) in answer.columns.iter().enumerate() {
                    let name = column.as_str();
                    if labels.contains(&name) || IDENTITIES.contains(&name) {
                        continue;
                    }
                    if let Some(value) = row.float(index) {
                        batch.samples.push(read.sample(
                            &format!("postgresql_stat_{view}_{name}"),
                            of_row.clone(),
                            value,
                        ));
                    }
                }
            }
        }
        self.uptime(server, source, batch)?;
        failed.map_or(Ok(()), Err)
    }

    fn uptime(&mut self, server: &Server, source: &str, batch: &mut Batch) -> Result<(), Failure> {
        let mut read = Read::begin(source);
        let started_at = server.value("SELECT pg_postmaster_start_time()")?;
        read.end();
        if let (Some(before), Some(now)) = (&self.started_at, &started_at)
            && before != now
        {
            batch.events.push(Event {
                observed_at: read.at(),
                source: source.to_owned(),
                kind: "restart".to_owned(),
                text: format!("the server restarted at {now}"),
                labels: Labels::none(),
            });
        }
        self.started_at = started_at.or(self.started_at.take());
        Ok(())
    }
}

/// All settings in the server's own words (`128MB`), those left out that may hold a secret.
pub(super) fn settings(server: &Server, source: &str, batch: &mut Batch) -> Result<(), Failure> {
    let at = clock::now_ns();
    let answer = server.rows("SELECT name, current_setting(name, true) FROM pg_settings")?;
    for row in &answer.rows {
        let (Some(name), Some(value)) = (row.text(0), row.text(1)) else { continue };
        // Ours are not the server's.
        let is_ours =
            matches!(name, "statement_timeout" | "lock_timeout" | "search_path" | "default_transaction_read_only")
                || name.starts_with("application_name")
                || matches!(name, "transaction_read_only" | "client_encoding");
        if !is_ours && !may_be_secret(name) {
            let (name, value) = (name.to_owned(), value.to_owned());
            batch.settings.push(Setting { observed_at: at, source: source.to_owned(), name, value });
        }
    }
    Ok(())
}

fn may_be_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let foreign = name.contains('.') && !EXTENSIONS.iter().any(|prefix| name.starts_with(prefix));
    foreign || name != "password_encryption" && SECRET.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out_and_the_rest_is_not() {
        for name in
            ["primary_conninfo", "ssl_passphrase_command", "archive_command", "app.jwt", "my.setting", "x.token"]
        {
            assert!(may_be_secret(name), "{name}");
        }
        for name in ["shared_buffers", "password_encryption", "auto_explain.log_min_duration", "log_line_prefix"] {
            assert!(!may_be_secret(name), "{name}");
        }
    }
}
