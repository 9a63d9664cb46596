//! Cuts a fixture from a recording: `cargo run -p holdup-recording --example cut -- RECORDING
//! FIXTURE`. It keeps the data that rules read, so that a fixture is small, and drops everything
//! that names its machine.

use std::path::Path;
use std::process::ExitCode;

use holdup_recording::hlog::HLOG;
use holdup_recording::metrics::DICTIONARY;
use holdup_recording::{Batch, Recorder, Recording};

/// Prefixes of the metrics that are kept.
const METRICS: &[&str] = &[
    "cgroup_",
    "db_client_",
    "dotnet_",
    "go_",
    "haproxy_",
    "holdup_",
    "http_",
    "jvm_",
    "mysql_global_status_aborted_connects",
    "mysql_global_status_connection_errors",
    "mysql_global_status_created_tmp",
    "mysql_global_status_innodb_buffer_pool_pages",
    "mysql_global_status_innodb_buffer_pool_read",
    "mysql_global_status_innodb_row_lock",
    "mysql_global_status_open",
    "mysql_global_status_questions",
    "mysql_global_status_table_open_cache",
    "mysql_global_status_threads",
    "mysql_sessions",
    "mysql_statement",
    "mysql_thread_pool_queue",
    "nginx_",
    "nodejs_",
    "pgbouncer_",
    "postgresql_",
    "probe_",
    "process_",
    "proxysql_",
    "puma_",
    "python_gc_",
    "server_",
    "system_cpu",
    "system_disk",
    "system_file_handles",
    "system_load",
    "system_memory",
    "system_network",
    "system_out_of_memory",
    "system_paging",
    "system_pressure",
    "system_threads",
    "tcp_",
    "wire_",
];

/// Prefixes of the settings that are kept.
const SETTINGS: &[&str] = &[
    "autovacuum",
    "block_size",
    "checkpoint_",
    "fsync",
    "max_wal_size",
    "reloptions:",
    "shared_buffers",
    "synchronous_commit",
    "thread_handling",
    "thread_pool_",
    "cgroup.",
    "probe.",
    "server.",
    "limit.",
    "comm",
    "vm.",
    "transparent_hugepage",
    "memory_total_bytes",
    "clock_source",
    "innodb_buffer_pool_size",
    "innodb_lock_wait_timeout",
    "block.",
    "max_connections",
    "max_heap_table_size",
    "mount[",
    "open_files_limit",
    "table_",
    "tmp",
    "version",
];

/// Kernel functions in which a thread sleeps for a time that it chose itself.
const TIMERS: &[&str] = &["hrtimer_nanosleep", "do_nanosleep"];

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

/// The lab's part of a cgroup's path; the levels above belong to the machine.
fn lab_part(path: &str) -> String {
    let name = path.rsplit('/').next().filter(|name| name.starts_with("holdup"));
    format!("/{}", name.unwrap_or_default())
}

/// Whether a setting belongs to a mount that is neither the root nor a lab's.
fn is_machines_own(name: &str) -> bool {
    let path = name.strip_prefix("mount[").and_then(|rest| rest.split_once(']')).map(|(path, _)| path);
    path.is_some_and(|path| path != "/" && !path.contains("holdup"))
}

fn cut(from: &Path, to: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let Recording { manifest, tables, .. } = Recording::open(from)?;
    let begins = |name: &str, list: &[&str]| list.iter().any(|prefix| name.starts_with(prefix));
    // Buckets are most of a scrape, but means need only sums and counts.
    let kept = |metric: &str| begins(metric, METRICS) && !metric.ends_with("_bucket");
    let mut samples = tables.samples.rows;
    samples.retain(|s| kept(&s.metric));
    for sample in &mut samples {
        if let Some(path) = sample.labels.get("cgroup").map(lab_part) {
            sample.labels = sample.labels.clone().with("cgroup", path);
        }
    }
    let mut settings = tables.settings.rows;
    settings.retain(|s| begins(&s.name, SETTINGS) && !is_machines_own(&s.name));
    for setting in settings.iter_mut().filter(|s| s.name == "cgroup.path") {
        setting.value = lab_part(&setting.value);
    }
    let mut threads = tables.threads.rows;
    threads.retain(|t| t.state == "D" || t.wchan.as_deref().is_some_and(|wchan| TIMERS.contains(&wchan)));
    for thread in &mut threads {
        // Files of a lab's server lie in a folder that holdup named; holdup's own files do not matter.
        thread.path = thread.path.take().filter(|path| path.contains("holdup-"));
    }
    let batch = Batch {
        requests: tables.requests.rows,
        samples,
        threads,
        sessions: tables.sessions.rows.into_iter().filter(|s| s.true_state != "idle").collect(),
        statements: tables.statements.rows,
        stages: tables.stages.rows,
        spans: tables.spans.rows,
        exchanges: tables.exchanges.rows,
        plans: tables.plans.rows,
        executions: tables.executions.rows,
        settings,
        events: tables.events.rows,
    };
    let recorder = Recorder::create(to, &manifest)?;
    recorder.sink().push(batch);
    let (state, ended_at) = (manifest.state, manifest.ended_at);
    let mut written = recorder.finish(manifest, state)?;
    written.ended_at = ended_at;
    // What metrics mean stands in the code.
    std::fs::remove_file(to.join(DICTIONARY))?;
    let histograms = from.join(HLOG);
    if histograms.exists() {
        std::fs::copy(histograms, to.join(HLOG))?;
    }
    Ok(written.write(to)?)
}
