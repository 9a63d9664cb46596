//! Signs in what people paste, each with a look-alike that is sound.

use holdup_recording::rows::{Session, Thread};

use super::Signs;
use super::facts::Facts;
use crate::cause::Cause;
use crate::strength::{CERTAIN, FAIR, STRONG, WEAK};
use crate::testing::{Judged as _, SyntheticRecording};

const DB: &str = "postgresql://pasted";
const GIB: f64 = 1_073_741_824.0;

/// The chance of a cause's signs. Their rows exist.
fn chance(made: &SyntheticRecording, cause: Cause) -> f64 {
    made.with(|case| {
        let mut signs = Signs::default();
        cause.definition().signs.expect("signs")(&Facts::read(case.view(case.whole())), &mut signs);
        let Some(weighed) = signs.weigh() else { return 0.0 };
        for piece in &weighed.evidence {
            assert!(piece.resolves(made.recording()), "{piece:?}");
        }
        (weighed.chance * 1e6).round() / 1e6
    })
}

fn made() -> SyntheticRecording {
    SyntheticRecording::new(3)
}

/// A session that has this state for so many seconds.
fn session(id: i64, true_state: &str, state: Option<&str>, seconds: i64) -> Session {
    Session {
        observed_at: 1_000_000_000,
        source: "mysql://pasted".into(),
        session_id: id,
        command: "Query".into(),
        true_state: true_state.into(),
        state: state.map(Into::into),
        age_ns: Some(seconds * 1_000_000_000),
        ..Session::default()
    }
}

fn sessions(rows: &[Session]) -> SyntheticRecording {
    let counted = made().gauge("mysql://pasted", "mysql_sessions", &[("command", "Query")], rows.len() as f64);
    counted.tables(|tables| {
        tables.sessions.present = true;
        tables.sessions.rows = rows.to_vec();
        tables.samples.rows.retain(|row| row.metric != "mysql_sessions" || row.observed_at == 1_000_000_000);
    })
}

#[test]
fn a_slot_without_a_reader_is_a_sign_even_if_nothing_says_how_much_it_keeps() {
    let slot = |active: f64| made().gauge(DB, "postgresql_replication_slot_active", &[("slot", "ledger")], active);
    assert_eq!(chance(&slot(0.0), Cause::ReplicationSlotKeepsLog), FAIR.chance());
    assert_eq!(chance(&slot(1.0), Cause::ReplicationSlotKeepsLog), 0.0);
    // What it keeps is known, and little.
    let little =
        slot(0.0).gauge(DB, "postgresql_replication_slot_retained_bytes", &[("slot", "ledger"), ("active", "0")], 1e6);
    assert_eq!(chance(&little, Cause::ReplicationSlotKeepsLog), 0.0);
}

#[test]
fn a_folder_of_log_that_is_larger_than_the_data_is_a_sign() {
    let folders = |log: f64, data: f64| {
        made().gauge("host", "system_folder_bytes", &[("path", "crm-3/pg_wal")], log).gauge(
            "host",
            "system_folder_bytes",
            &[("path", "crm-3/base")],
            data,
        )
    };
    assert_eq!(chance(&folders(25.0 * GIB, 0.07 * GIB), Cause::ReplicationSlotKeepsLog), FAIR.chance());
    assert_eq!(chance(&folders(3.0 * GIB, 0.07 * GIB), Cause::ReplicationSlotKeepsLog), FAIR.chance());
    assert_eq!(chance(&folders(3.0 * GIB, 60.0 * GIB), Cause::ReplicationSlotKeepsLog), 0.0);
}

#[test]
fn dead_rows_right_after_a_vacuum_are_those_of_an_old_snapshot() {
    let tables = |dead: f64, age: f64, names: &[&str]| {
        names.iter().fold(made(), |made, name| {
            let table = [("table", *name)];
            made.gauge(DB, "postgresql_stat_tables_n_dead_tup", &table, dead)
                .gauge(DB, "postgresql_stat_tables_n_live_tup", &table, 2_000.0)
                .gauge(DB, "postgresql_table_vacuumed_age_seconds", &table, age)
        })
    };
    let both = ["public.jobs", "public.parts"];
    assert_eq!(chance(&tables(400_000.0, 4.0, &both), Cause::OldSnapshot), FAIR.chance());
    assert_eq!(chance(&tables(400_000.0, 86_400.0, &both), Cause::OldSnapshot), 0.0, "not vacuumed for a day");
    assert_eq!(chance(&tables(800.0, 4.0, &both), Cause::OldSnapshot), 0.0, "few");
    assert_eq!(chance(&tables(400_000.0, 4.0, &both[..1]), Cause::OldSnapshot), 0.0, "a table that changes fast");
}

#[test]
fn connections_that_sleep_for_hours_prove_little_without_a_limit() {
    let sleeping = |count: i64, seconds: i64| {
        sessions(&(0..count).map(|id| session(id, "idle", None, seconds)).collect::<Vec<_>>())
    };
    assert_eq!(chance(&sleeping(46, 21_000), Cause::ConnectionLimit), WEAK.chance());
    let near = sleeping(46, 21_000).setting("pasted", "max_connections", "50");
    assert_eq!(chance(&near, Cause::ConnectionLimit), FAIR.chance());
    assert_eq!(chance(&sleeping(46, 90), Cause::ConnectionLimit), 0.0, "a pool in use");
    assert_eq!(chance(&sleeping(12, 21_000), Cause::ConnectionLimit), 0.0, "a small pool");
}

#[test]
fn full_cpus_beside_a_high_load_average_are_a_sign_without_a_list_of_threads() {
    let host = |idle: f64, load: f64| {
        let cpu = |made: SyntheticRecording, mode: &str, share: f64| {
            made.counter("host", "system_cpu_time_seconds_total", &[("cpu_mode", mode)], 2.0 * share)
        };
        let made = cpu(cpu(made(), "idle", idle), "user", 1.0 - idle);
        made.gauge("host", "system_cpu_logical_count", &[], 2.0).gauge("host", "system_load_average_1m", &[], load)
    };
    assert_eq!(chance(&host(0.0, 3.9), Cause::CpuSaturated), FAIR.chance());
    assert_eq!(chance(&host(0.0, 1.9), Cause::CpuSaturated), WEAK.chance());
    assert_eq!(chance(&host(0.4, 3.9), Cause::CpuSaturated), 0.0);
}

#[test]
fn many_closed_connections_for_each_open_one_are_a_weak_sign() {
    let sockets = |closed: f64, open: f64| {
        made().gauge("host", "tcp_sockets", &[("state", "TIME-WAIT")], closed).gauge(
            "host",
            "tcp_sockets",
            &[("state", "ESTAB")],
            open,
        )
    };
    assert_eq!(chance(&sockets(4_711.0, 118.0), Cause::ConnectionPerRequest), WEAK.chance());
    assert_eq!(chance(&sockets(230.0, 12.0), Cause::ConnectionPerRequest), 0.0);
    assert_eq!(chance(&sockets(4_711.0, 2_000.0), Cause::ConnectionPerRequest), 0.0);
}

#[test]
fn a_container_that_is_killed_without_a_reason_may_have_a_probe_that_fails() {
    let pod = "kubernetes:shop/web-0";
    let killed = |why: &str, count: &str| {
        made().events(&[(1, pod, "container_killed", &[("container", "web"), ("why", why), ("count", count)])])
    };
    assert_eq!(chance(&killed("Killing 52aa8c1f", "2"), Cause::LivenessProbeKill), FAIR.chance());
    assert_eq!(chance(&killed("Killing 52aa8c1f", "1"), Cause::LivenessProbeKill), 0.0, "one deployment");
    assert_eq!(chance(&killed("stopped", "9"), Cause::LivenessProbeKill), 0.0);
    let ended = |reason: &str, code: &str| {
        let labels = [("container", "web"), ("reason", reason), ("exit_code", code)];
        made().events(&[(1, pod, "container_restarted", &labels)])
    };
    assert_eq!(chance(&ended("Error", "137"), Cause::LivenessProbeKill), FAIR.chance());
    assert_eq!(chance(&ended("Error", "1"), Cause::LivenessProbeKill), 0.0);
    assert_eq!(chance(&ended("OOMKilled", "137"), Cause::LivenessProbeKill), 0.0);
}

#[test]
fn operations_that_go_through_an_index_to_sort_lack_one_to_find() {
    let operations = |state: &str| {
        let rows: Vec<Session> = (0..5).map(|id| session(id, "executing", Some(state), 2)).collect();
        sessions(&rows)
    };
    assert!(chance(&operations("IXSCAN without a condition on the index"), Cause::MissingIndex) >= FAIR.chance());
    assert_eq!(chance(&operations("IXSCAN"), Cause::MissingIndex), 0.0);
}

#[test]
fn stacks_count_once_many_threads_stand_at_one_place() {
    let stacks = |wait: &str, threads: f64| made().gauge("host", "process_waiting_stacks", &[("wait", wait)], threads);
    for (wait, cause, strength) in [
        ("pool", Cause::ConnectionPoolExhausted, STRONG),
        ("metadata_lock", Cause::LockContention, STRONG),
        ("flush", Cause::FlushStorm, STRONG),
        ("log", Cause::CommitLogBound, FAIR),
        ("http", Cause::DownstreamSlow, FAIR),
        ("page", Cause::WorkingSetExceedsMemory, WEAK),
    ] {
        assert_eq!(chance(&stacks(wait, 9.0), cause), strength.chance(), "{wait}");
        assert_eq!(chance(&stacks(wait, 2.0), cause), 0.0, "{wait}");
    }
}

#[test]
fn a_table_of_connections_that_dropped_packets_is_the_limit() {
    let said = |kind: &'static str| made().events(&[(1, "host", kind, &[])]);
    assert_eq!(chance(&said("conntrack_full"), Cause::NetworkLimit), CERTAIN.chance());
    assert_eq!(chance(&said("restart"), Cause::NetworkLimit), 0.0);
}

#[test]
fn waits_that_a_log_reports_are_a_sign() {
    let logged = |state: &str, times: i64| {
        let labels = [("state", state), ("waited_ms", "1000.1")];
        let rows: Vec<_> = (0..times).map(|_| (1, DB, "lock_wait", &labels[..])).collect();
        made().events(&rows)
    };
    assert_eq!(chance(&logged("waiting", 1), Cause::LockContention), FAIR.chance());
    assert_eq!(chance(&logged("waiting", 9), Cause::LockContention), STRONG.chance());
    assert_eq!(chance(&logged("", 9), Cause::LockContention), 0.0);
}

#[test]
fn a_program_that_reads_all_there_is_is_a_weak_sign() {
    let program = |name: &str| {
        let row = Thread {
            observed_at: 1_000_000_000,
            source: "host".into(),
            pid: 7,
            tid: 7,
            process: name.into(),
            state: "D".into(),
            count: 1,
            ..Thread::default()
        };
        made().tables(|tables| {
            tables.threads.present = true;
            tables.threads.rows = vec![row.clone()];
        })
    };
    assert_eq!(chance(&program("pg_dump"), Cause::BackupOrBulkLoad), WEAK.chance());
    assert_eq!(chance(&program("nginx"), Cause::BackupOrBulkLoad), 0.0);
}
