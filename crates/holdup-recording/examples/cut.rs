//! Cuts a fixture out of a recording: `cargo run -p holdup-recording --example cut -- RECORDING FIXTURE`.
//! Keeps what rules look at, so that a fixture is small, and nothing that names the machine it was made on.

use std::path::Path;
use std::process::ExitCode;

use holdup_recording::hlog::HLOG;
use holdup_recording::{Batch, Recorder, Recording};

/// Samples by the beginning of their metric.
const METRICS: &[&str] = &[
    "db_client_",
    "holdup_",
    "http_",
    "mysql_global_status_innodb_row_lock",
    "mysql_global_status_questions",
    "mysql_global_status_threads",
    "mysql_sessions",
    "mysql_thread_pool_queue",
    "process_",
    "system_cpu",
    "system_disk",
    "system_load",
    "system_pressure",
    "system_threads",
    "tcp_server",
];

/// Settings by the beginning of their name.
const SETTINGS: &[&str] =
    &["thread_handling", "thread_pool_", "innodb_lock_wait_timeout", "max_connections", "version"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = arguments.as_slice() else {
        eprintln!("usage: cut RECORDING FIXTURE");
        return ExitCode::from(2);
    };
    match cut(Path::new(from), Path::new(to)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn cut(from: &Path, to: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let Recording { manifest, tables, .. } = Recording::open(from)?;
    let begins = |name: &str, list: &[&str]| list.iter().any(|prefix| name.starts_with(prefix));
    // Buckets are most of a scrape; sums and counts are what means are made of.
    let kept = |metric: &str| begins(metric, METRICS) && !metric.ends_with("_bucket");
    let batch = Batch {
        requests: tables.requests.rows,
        samples: tables.samples.rows.into_iter().filter(|s| kept(&s.metric)).collect(),
        threads: tables.threads.rows.into_iter().filter(|t| t.state == "D").collect(),
        sessions: tables.sessions.rows.into_iter().filter(|s| s.true_state != "idle").collect(),
        statements: tables.statements.rows.into_iter().filter(|s| s.kind == "execution").collect(),
        settings: tables.settings.rows.into_iter().filter(|s| begins(&s.name, SETTINGS)).collect(),
        events: tables.events.rows,
    };
    let recorder = Recorder::create(to, &manifest)?;
    recorder.sink().push(batch);
    let (state, ended_at) = (manifest.state, manifest.ended_at);
    let mut written = recorder.finish(manifest, state)?;
    written.ended_at = ended_at;
    let histograms = from.join(HLOG);
    if histograms.exists() {
        std::fs::copy(histograms, to.join(HLOG))?;
    }
    Ok(written.write(to)?)
}
