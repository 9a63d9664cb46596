//! Updates that write large values anew on a disk at its limit, with vacuum behind them: what each is in the chain, and what clears it.

use super::*;
use crate::cause::Cause;
use crate::causes::{autovacuum_pressure, throughput_ceiling};
use crate::testing::{Judged as _, SyntheticRecording};

const DB: &str = "postgresql://db";
const READ: &str = "io_schedule < __iomap_dio_rw < vfs_read";

fn metric(column: &str) -> String {
    format!("postgresql_stat_tables_{column}")
}

/// 250 updates a second of a row each, of which each writes `chunks` rows of TOAST, on a disk of 12 MB/s with 20 in the queue. Of
/// the bytes vacuum does `vacuum` a second, by pg_stat_io.
pub(super) fn server(chunks: f64, vacuum: f64) -> SyntheticRecording {
    let owner = [("database", "app"), ("table", "public.article")];
    let toast = [("database", "app"), ("table", "pg_toast.pg_toast_7"), ("toast_of", "public.article")];
    let worker = [("backend_type", "autovacuum worker"), ("object", "relation"), ("context", "vacuum")];
    let mut made = SyntheticRecording::new(30)
        .requests(250, 400)
        .asleep(100, "io_schedule", READ, None)
        .counter(DB, &metric("n_tup_upd"), &owner, 250.0)
        .counter(DB, &metric("n_tup_hot_upd"), &owner, 240.0)
        .gauge(DB, &metric("n_live_tup"), &owner, 50_000.0)
        .counter(DB, &metric("n_tup_upd"), &toast, 0.0)
        .counter(DB, &metric("n_tup_ins"), &toast, 250.0 * chunks)
        .counter(DB, &metric("n_tup_del"), &toast, 250.0 * chunks)
        .gauge(DB, &metric("n_live_tup"), &toast, 300_000.0)
        .gauge(DB, &metric("n_dead_tup"), &toast, 90_000.0)
        .gauge(DB, "postgresql_activity_sessions", &[("backend_type", "client backend")], 30.0)
        .digest("UPDATE article SET body = $1, hits = hits + $2 WHERE id = $3", |s| (250 * s, 90_000 * s, 0, 0, 0));
    for (column, rate) in [("reads", 0.6), ("writes", 0.4)] {
        made = made.counter(DB, &format!("postgresql_stat_io_{column}"), &worker, rate * vacuum / 8_192.0);
    }
    if vacuum > 0.0 {
        let run = [
            ("pid", "99"),
            ("table", "pg_toast.pg_toast_7"),
            ("toast_of", "public.article"),
            ("phase", "scanning heap"),
            ("worker", "autovacuum"),
        ];
        made = made.gauge(DB, "postgresql_progress_vacuum_heap_blks_total", &run, 90_000.0).counter(
            DB,
            "postgresql_progress_vacuum_heap_blks_scanned",
            &run,
            300.0,
        );
    }
    for (direction, share) in [("read", 0.4), ("write", 0.6)] {
        let labels = [("device", "vda"), ("direction", direction)];
        made = made
            .counter("host", "system_disk_io_bytes_total", &labels, share * 12e6)
            .counter("host", "system_disk_operations_total", &labels, share * 120.0)
            .counter("host", "system_disk_operation_time_seconds_total", &labels, share * 20.0);
    }
    let labels = [("device", "vda")];
    made.counter("host", "system_disk_io_time_seconds_total", &labels, 1.0).counter(
        "host",
        "system_disk_weighted_io_time_seconds_total",
        &labels,
        20.0,
    )
}

#[test]
fn the_limit_is_the_root_and_what_asks_more_of_it_contributes() {
    let diagnosis = server(6.0, 3e6).setting(DB, "autovacuum_vacuum_scale_factor", "0.2").diagnose();
    assert_eq!(diagnosis.culprit, Some(throughput_ceiling::DEFINITION.cause), "{:#?}", diagnosis.findings);
    let of = |cause: Cause| {
        diagnosis.findings.iter().find(|f| f.cause == cause).unwrap_or_else(|| panic!("{cause} is not there"))
    };
    let (rewrite, vacuum) = (of(DEFINITION.cause), of(autovacuum_pressure::DEFINITION.cause));
    assert_eq!((rewrite.role, vacuum.role), (Role::Contributor, Role::Contributor));
    assert_eq!(rewrite.adds_to, Some(Cause::AutovacuumPressure));
    assert_eq!(vacuum.adds_to, Some(Cause::ThroughputCeiling));
    let chain: Vec<(Cause, &str)> = diagnosis.chain.iter().map(|l| (l.cause, l.leads_to.as_str())).collect();
    let expected = [
        (Cause::ToastRewrite, Cause::AutovacuumPressure.slug()),
        (Cause::AutovacuumPressure, Cause::ThroughputCeiling.slug()),
        (Cause::ThroughputCeiling, Cause::DiskSaturated.slug()),
    ];
    assert_eq!(chain[..3], expected[..], "{:#?}", diagnosis.chain);
    // 6.1 of 12 MB/s are the values', 3 are vacuum's, which has nothing else to do.
    assert!(
        diagnosis.chain[0].without.contains("2.9 MB/s instead of 12 MB/s")
            && diagnosis.chain[0].without.contains("suffice"),
        "{:#?}",
        diagnosis.chain
    );
    let text = rewrite.evidence.iter().map(|e| e.text.as_str()).collect::<Vec<_>>().join("\n");
    assert!(text.contains("6.0 per update") && text.contains("it sets body, hits (100 % of the updates)"), "{text}");
    assert!(
        rewrite
            .fixes
            .iter()
            .any(|f| f.command.as_deref().is_some_and(|c| c.contains("toast.autovacuum_vacuum_scale_factor = 0.01"))),
        "{:#?}",
        rewrite.fixes
    );
}

#[test]
fn values_that_are_left_alone_and_a_small_share_clear_it() {
    assert_eq!(server(0.0, 0.0).explains(&DEFINITION), Some(0.0));
    assert_eq!(server(0.1, 0.0).explains(&DEFINITION), Some(0.0), "a few new values");
    assert_eq!(server(1.0, 0.0).explains(&DEFINITION), Some(0.0), "a twelfth of the bytes");
    assert!((server(6.0, 0.0).explains(&DEFINITION).unwrap() - 400.0 * 6.144 / 12.0).abs() < 5.0);
    // Values that are only added leave nothing dead.
    let added = server(6.0, 0.0).without(&metric("n_tup_del"));
    assert_eq!(added.explains(&DEFINITION), Some(0.0));
}

#[test]
fn a_disk_without_waiting_threads_clears_it() {
    let idle = server(6.0, 0.0).tables(|tables| tables.threads.rows.clear()).without("process_threads").gauge(
        "pid:7",
        "process_threads",
        &[("state", "D")],
        0.0,
    );
    assert_eq!(idle.explains(&DEFINITION), Some(0.0));
}

#[test]
fn without_a_fact_it_is_not_judged() {
    assert_eq!(server(6.0, 0.0).without(&metric("n_tup_upd")).explains(&DEFINITION), None);
    assert_eq!(server(6.0, 0.0).without("system_disk_io_bytes_total").explains(&DEFINITION), None);
    assert_eq!(server(6.0, 0.0).without("process_threads").explains(&DEFINITION), None);
}
