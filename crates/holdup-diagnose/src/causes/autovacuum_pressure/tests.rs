//! Vacuum on a disk that requests wait for: by counters, by the log, by its progress, by its workers' waits; and what clears it.

use holdup_recording::Labels;
use holdup_recording::rows::{Event, Session};

use super::*;
use crate::testing::{Judged as _, SyntheticRecording};

const DB: &str = "postgresql://db";
const READ: &str = "io_schedule < __iomap_dio_rw < vfs_read";
const TABLE: [(&str, &str); 2] = [("database", "app"), ("table", "public.article")];

/// 100 requests a second of 400 ms that wait for a disk of 10 MB/s.
fn disk() -> SyntheticRecording {
    SyntheticRecording::new(30)
        .requests(100, 400)
        .asleep(40, "io_schedule", READ, None)
        .disk("vda", (60.0, 100e3, 100.0), (40.0, 100e3, 100.0))
        .gauge(DB, "postgresql_activity_sessions", &[("backend_type", "client backend")], 40.0)
        .counter(DB, "postgresql_stat_tables_n_tup_upd", &TABLE, 500.0)
        .gauge(DB, "postgresql_stat_tables_n_live_tup", &TABLE, 1e6)
        .gauge(DB, "postgresql_stat_tables_n_dead_tup", &TABLE, 250_000.0)
}

/// With a run of autovacuum that goes through `pages` a second.
fn running(pages: f64) -> SyntheticRecording {
    let run = [("pid", "99"), ("table", "public.article"), ("phase", "scanning heap"), ("worker", "autovacuum")];
    disk().gauge(DB, "postgresql_progress_vacuum_heap_blks_total", &run, 100_000.0).counter(
        DB,
        "postgresql_progress_vacuum_heap_blks_scanned",
        &run,
        pages,
    )
}

fn counted(bytes: f64) -> SyntheticRecording {
    let worker = [("backend_type", "autovacuum worker"), ("object", "relation"), ("context", "vacuum")];
    running(0.0).counter(DB, "postgresql_stat_io_read_bytes", &worker, bytes)
}

fn text(made: &SyntheticRecording) -> String {
    let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
    found.evidence.iter().map(|e| e.text.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_table_of_another_database_is_none_of_the_known_ones() {
    let run = [("pid", "98"), ("database", "other"), ("phase", "scanning heap"), ("worker", "autovacuum")];
    let elsewhere = counted(4e6)
        .without("postgresql_progress_vacuum_heap_blks_total")
        .without("postgresql_progress_vacuum_heap_blks_scanned")
        .gauge(DB, "postgresql_progress_vacuum_heap_blks_total", &run, 100_000.0);
    let said = text(&elsewhere);
    assert!(said.contains("autovacuum of a table of database other ran for"), "{said}");
    assert!(!said.contains("dead rows"), "those are of another table: {said}");
}

#[test]
fn its_share_of_the_disk_is_by_the_best_account() {
    let by_counters = counted(4e6);
    assert!((by_counters.explains(&DEFINITION).unwrap() - 0.4 * 400.0).abs() < 8.0);
    let said = text(&by_counters);
    assert!(said.contains("autovacuum of public.article ran for 100 %"), "{said}");
    assert!(said.contains("by pg_stat_io") && said.contains("40 % of the 10 MB/s"), "{said}");
    // No more than was read of it past the cache.
    let cached = running(610.0).counter(DB, "postgresql_statio_tables_heap_blks_read", &TABLE, 305.0);
    assert!((cached.explains(&DEFINITION).unwrap() - 0.25 * 400.0).abs() < 8.0, "{:?}", cached.explains(&DEFINITION));
    let by_progress = running(610.0);
    assert!((by_progress.explains(&DEFINITION).unwrap() - 0.5 * 400.0).abs() < 10.0);
    assert!(text(&by_progress).contains("by the pages that it passed"));
}

#[test]
fn the_log_tells_of_runs_that_ended() {
    let labels = [
        ("table", "public.article"),
        ("elapsed_ms", "20000"),
        ("buffers_missed", "6000"),
        ("buffers_dirtied", "4000"),
        ("wal_bytes", "20000000"),
    ];
    let event = Event {
        observed_at: 25_000_000_000,
        source: DB.into(),
        kind: "autovacuum".into(),
        text: "automatic vacuum".into(),
        labels: Labels::new(labels),
    };
    let made = disk().tables(|tables| {
        tables.events.present = true;
        tables.events.rows.push(event);
    });
    // 102 MB in 30 s of 10 MB/s.
    assert!((made.explains(&DEFINITION).unwrap() - 0.34 * 400.0).abs() < 10.0, "{:?}", made.explains(&DEFINITION));
    assert!(text(&made).contains("by the server's log"));
    // Another run that is under way comes on top.
    let run = [("pid", "99"), ("table", "public.other"), ("phase", "scanning heap"), ("worker", "autovacuum")];
    let both = made.gauge(DB, "postgresql_progress_vacuum_heap_blks_total", &run, 100_000.0).counter(
        DB,
        "postgresql_progress_vacuum_heap_blks_scanned",
        &run,
        244.0,
    );
    assert!((both.explains(&DEFINITION).unwrap() - 0.54 * 400.0).abs() < 10.0, "{:?}", both.explains(&DEFINITION));
}

#[test]
fn where_nothing_counts_bytes_its_workers_waits_are_its_share() {
    let row = |second: i64, id: i64| Session {
        observed_at: second * 1_000_000_000,
        source: DB.into(),
        session_id: id,
        command: "active".into(),
        state: Some("IO:DataFileRead".into()),
        true_state: "executing".into(),
        ..Session::default()
    };
    let worker = [("backend_type", "autovacuum worker"), ("wait_event_type", "IO"), ("wait_event", "DataFileRead")];
    let rows = (0..=30).flat_map(|s| [row(s, 1), row(s, 2)]);
    let made = running(0.0).session_rows(rows.collect()).gauge(DB, "postgresql_activity_sessions", &worker, 1.0).gauge(
        DB,
        "postgresql_sessions",
        &[("true_state", "executing")],
        2.0,
    );
    let share = made.explains(&DEFINITION).unwrap() / 400.0;
    assert!((share - 1.0 / 3.0).abs() < 0.05, "{share}");
}

#[test]
fn no_run_and_a_small_one_clear_it() {
    assert_eq!(disk().explains(&DEFINITION), Some(0.0));
    assert_eq!(counted(0.5e6).explains(&DEFINITION), Some(0.0), "a twentieth of the bytes");
}

#[test]
fn without_a_fact_it_is_not_judged() {
    let nobody = disk().without("postgresql_activity_sessions");
    assert_eq!(nobody.explains(&DEFINITION), None);
    assert_eq!(running(0.0).explains(&DEFINITION), None, "nothing tells how much it did");
    assert_eq!(counted(4e6).without("system_disk_io_bytes_total").explains(&DEFINITION), None);
    assert_eq!(counted(4e6).without("process_threads").explains(&DEFINITION), None);
}
