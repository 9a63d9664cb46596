//! What lists of sessions, status outputs, pools and plans show at one instant: each leads to its cause, and the same
//! shape at rest to none.

use holdup_recording::plan::Node;
use holdup_recording::rows::{Plan, Session};

use super::facts::Facts;
use super::{Signs, Weighed};
use crate::cause::Cause;
use crate::strength::{CERTAIN, FAIR, STRONG};
use crate::testing::{Judged as _, SyntheticRecording};

const MYSQL: &str = "mysql://pasted";
const POSTGRESQL: &str = "postgresql://pasted";

/// A chance that names a cause.
const NAMED: f64 = 0.5;

/// The signs of a cause, whose evidence must resolve.
fn signs(made: &SyntheticRecording, cause: Cause) -> Option<Weighed> {
    let weighed = made.with(|case| {
        let facts = Facts::read(case.view(case.whole()));
        let mut signs = Signs::default();
        cause.definition().signs.unwrap()(&facts, &mut signs);
        signs.weigh()
    });
    for piece in weighed.iter().flat_map(|weighed| &weighed.evidence) {
        assert!(piece.resolves(made.recording()), "{piece:?}");
    }
    weighed
}

fn chance(made: &SyntheticRecording, cause: Cause) -> f64 {
    signs(made, cause).map_or(0.0, |weighed| weighed.chance)
}

/// A session of one instant: its state, and for how many seconds.
fn session(source: &str, id: i64, true_state: &str, state: &str, seconds: i64) -> Session {
    Session {
        observed_at: 1_000_000_000,
        source: source.into(),
        session_id: id,
        true_state: true_state.into(),
        command: if true_state == "idle" { "Sleep".into() } else { "Query".into() },
        state: (!state.is_empty()).then(|| state.into()),
        age_ns: Some(seconds * 1_000_000_000),
        digest_text: (true_state != "idle").then(|| "UPDATE stock SET n = ?".into()),
        ..Session::default()
    }
}

fn of(rows: Vec<Session>) -> SyntheticRecording {
    SyntheticRecording::new(2).session_rows(rows)
}

/// So many sessions in a state, and two that work.
fn in_state(source: &str, count: i64, state: &str) -> SyntheticRecording {
    let those = (0..count).map(|n| session(source, 100 + n, "executing", state, 2));
    of(those.chain((0..2).map(|n| session(source, 10 + n, "executing", "init", 0))).collect())
}

#[test]
fn the_session_that_others_wait_for_is_named() {
    let waiter = |n: i64| Session {
        blocked_by: Some(7),
        ..session(MYSQL, 100 + n, "lock_wait", "Waiting for table metadata lock", 40 + n)
    };
    let waiters: Vec<Session> = (0..8).map(waiter).chain([session(MYSQL, 7, "idle", "", 300)]).collect();
    let found = signs(&of(waiters), Cause::LockContention).unwrap();
    assert!(found.chance >= STRONG.chance(), "{found:?}");
    assert!(found.evidence.iter().any(|piece| piece.text.contains("session 7 blocked 8")), "{found:?}");
    assert!(found.share.is_some_and(|share| (share.ratio - 1.0).abs() < 1e-9 && share.of.ends_with("active sessions")));
    // One session that waits for a moment beside twenty that work.
    let work = (0..20).map(|n| session(MYSQL, 200 + n, "executing", "Sending data", 0));
    let moment = Session { blocked_by: Some(200), ..session(MYSQL, 100, "lock_wait", "", 0) };
    assert!(chance(&of(work.chain([moment]).collect()), Cause::LockContention) < NAMED);
    let none = (0..20).map(|n| session(MYSQL, 200 + n, "executing", "Sending data", 0)).collect();
    assert_eq!(signs(&of(none), Cause::LockContention), None);
}

#[test]
fn locks_that_are_only_counted_are_a_sign() {
    let pending = |count: f64| {
        SyntheticRecording::new(2).gauge(MYSQL, "mysql_metadata_locks", &[("status", "PENDING"), ("mode", "S")], count)
    };
    assert!(chance(&pending(12.0), Cause::LockContention) >= NAMED);
    assert!(chance(&pending(1.0), Cause::LockContention) < NAMED);
    assert_eq!(signs(&pending(0.0), Cause::LockContention), None);
}

#[test]
fn idle_sessions_alone_are_a_pool_at_rest() {
    let sleeping = |seconds: fn(i64) -> i64| {
        let idle = (0..40).map(move |n| session(MYSQL, 100 + n, "idle", "", seconds(n)));
        of(idle.chain([session(MYSQL, 7, "executing", "Sending data", 0)]).collect())
    };
    let at_rest = sleeping(|n| 30 * n);
    for cause in [Cause::ThreadPoolQueue, Cause::ConnectionPoolExhausted] {
        assert_eq!(signs(&at_rest, cause), None, "{cause:?}");
    }
    // All were used within seconds: they may wait, and nothing says so.
    let lately = sleeping(|n| n % 4);
    let suspected = chance(&lately, Cause::ThreadPoolQueue);
    assert!(suspected > 0.0 && suspected < NAMED, "{suspected}");
    // The same on a server with a pool of threads, and on one that is known to have none.
    let pool = lately.clone().setting(MYSQL, "thread_handling", "pool-of-threads");
    assert!((chance(&pool, Cause::ThreadPoolQueue) - FAIR.chance()).abs() < 1e-9);
    let none = lately.setting(MYSQL, "thread_handling", "one-thread-per-connection");
    assert_eq!(signs(&none, Cause::ThreadPoolQueue), None);
    // A pool's connections that nothing used for minutes do not wait for a thread.
    let old = sleeping(|n| 100 + 30 * n).setting(MYSQL, "thread_handling", "pool-of-threads");
    assert_eq!(signs(&old, Cause::ThreadPoolQueue), None);
}

#[test]
fn clients_wait_in_a_pooler() {
    let pool = |waiting: f64, longest_s: f64, idle: f64| {
        let labels = [("database", "shop"), ("user", "app")];
        SyntheticRecording::new(2)
            .gauge("pgbouncer://pasted", "pgbouncer_waiting_clients", &labels, waiting)
            .gauge("pgbouncer://pasted", "pgbouncer_longest_wait_seconds", &labels, longest_s)
            .gauge("pgbouncer://pasted", "pgbouncer_idle_servers", &labels, idle)
    };
    let chance = |made: &SyntheticRecording| chance(made, Cause::ConnectionPoolExhausted);
    assert!((chance(&pool(57.0, 7.5, 0.0)) - CERTAIN.chance()).abs() < 1e-9);
    assert!(chance(&pool(57.0, 0.0, 0.0)) < NAMED, "they came this moment");
    assert!(chance(&pool(3.0, 7.0, 12.0)) < NAMED, "connections are free");
    assert!(chance(&pool(0.0, 0.0, 0.0)) < 1e-9);
}

#[test]
fn states_of_sessions_lead_to_their_cause() {
    for (source, state, cause, least) in [
        (MYSQL, "waiting for handler commit", Cause::CommitLogBound, 0.49),
        (MYSQL, "query end", Cause::CommitLogBound, 0.49),
        (MYSQL, "Waiting for semi-sync ACK from slave", Cause::ReplicationWait, 0.75),
        (MYSQL, "Copying to tmp table on disk", Cause::OnDiskTemporaryTables, 0.75),
        (MYSQL, "removing tmp table", Cause::OnDiskTemporaryTables, 0.5),
        (MYSQL, "Opening tables", Cause::TableCacheSmall, 0.5),
        (POSTGRESQL, "IPC:SyncRep", Cause::ReplicationWait, 0.75),
        (POSTGRESQL, "IO:DataFileRead", Cause::WorkingSetExceedsMemory, 0.3),
        (POSTGRESQL, "LWLock:BufferMapping", Cause::WorkingSetExceedsMemory, 0.3),
    ] {
        let made = in_state(source, 14, state);
        let found = signs(&made, cause).unwrap_or_else(|| panic!("{state}"));
        assert!(found.chance >= least, "{state}: {found:?}");
        assert!(found.share.is_some_and(|share| (share.ratio - 14.0 / 16.0).abs() < 1e-9), "{state}");
        // One session in it is usual.
        assert!(chance(&in_state(source, 1, state), cause) < NAMED, "{state}");
    }
}

/// Sessions that wait for pages while PostgreSQL counts these reads a second, and these of them by vacuum.
fn reading(all: f64, by_vacuum: f64) -> SyntheticRecording {
    let reads = |made: SyntheticRecording, context: &str, of: f64| {
        made.counter(POSTGRESQL, "postgresql_stat_io_reads", &[("context", context)], of)
    };
    reads(reads(in_state(POSTGRESQL, 14, "IO:DataFileRead"), "vacuum", by_vacuum), "normal", all - by_vacuum)
}

#[test]
fn reads_that_vacuum_made_by_its_own_count_are_not_those_of_a_working_set() {
    let of = |by_vacuum: f64| chance(&reading(1_000.0, by_vacuum), Cause::WorkingSetExceedsMemory);
    let unknown = chance(&in_state(POSTGRESQL, 14, "IO:DataFileRead"), Cause::WorkingSetExceedsMemory);
    assert!((of(0.0) - unknown).abs() < 1e-9 && of(1_000.0) < 1e-9, "{unknown} {} {}", of(0.0), of(1_000.0));
    assert!((of(250.0) - 0.75 * unknown).abs() < 0.01, "{}", of(250.0));
}

#[test]
fn the_pools_queue_shows_by_its_groups_or_by_its_connections() {
    let queue = |metric: &str, length: f64| SyntheticRecording::new(2).gauge(MYSQL, metric, &[], length);
    for metric in ["mysql_thread_pool_queue_length", "mysql_thread_pool_queued_connections"] {
        let found = signs(&queue(metric, 24.0), Cause::ThreadPoolQueue).unwrap();
        assert!((found.chance - CERTAIN.chance()).abs() < 1e-9, "{metric}: {found:?}");
        assert_eq!(signs(&queue(metric, 0.0), Cause::ThreadPoolQueue), None, "{metric}");
    }
}

#[test]
fn undo_logs_pile_up_behind_an_open_transaction() {
    let made = |undo: f64, open_s: f64| {
        SyntheticRecording::new(2).gauge(MYSQL, "mysql_innodb_history_list_length", &[], undo).gauge(
            MYSQL,
            "mysql_innodb_oldest_transaction_seconds",
            &[],
            open_s,
        )
    };
    assert!(chance(&made(2.1e6, 7_200.0), Cause::OldSnapshot) >= STRONG.chance());
    assert!(chance(&made(2.1e6, 1.0), Cause::OldSnapshot) >= NAMED);
    // A report that runs for a while, and a busy server.
    assert!(chance(&made(5_000.0, 7_200.0), Cause::OldSnapshot) < NAMED);
    assert_eq!(signs(&made(60_000.0, 5.0), Cause::OldSnapshot), None);
}

/// The plan of a scan that keeps `kept` of `read` rows in `ms`, below a step that takes 10 ms more.
fn plan(kind: &str, (read, kept): (f64, f64), ms: f64, spilled: Option<f64>) -> SyntheticRecording {
    let scan = Node {
        kind: kind.to_owned(),
        relation: Some("orders".to_owned()),
        filter: Some("(note = ?)".to_owned()),
        rows_actual: Some(kept),
        rows_removed: Some(read - kept),
        loops: Some(1.0),
        time_ms: Some(ms),
        ..Node::default()
    };
    let tree = Node {
        kind: "Sort".to_owned(),
        time_ms: Some(ms + 10.0),
        loops: Some(1.0),
        spilled_bytes: spilled,
        children: vec![scan],
        ..Node::default()
    };
    let row = Plan {
        observed_at: 1_000_000_000,
        source: POSTGRESQL.to_owned(),
        kind: "analyze".to_owned(),
        digest: "d".to_owned(),
        digest_text: "SELECT id FROM orders WHERE note = ?".to_owned(),
        shape: "s".to_owned(),
        plan: tree.to_json(),
        duration_ns: Some(((ms + 10.0) * 1e6) as i64),
        ..Plan::default()
    };
    SyntheticRecording::new(2).gauge(POSTGRESQL, "postgresql_sessions", &[], 1.0).tables(|tables| {
        tables.plans.present = true;
        tables.plans.rows = vec![row];
    })
}

#[test]
fn the_step_of_a_plan_that_took_the_time_is_named() {
    for kind in ["Seq Scan", "Parallel Seq Scan", "ALL", "COLLSCAN"] {
        let found = signs(&plan(kind, (1e6, 9.0), 1_500.0, None), Cause::MissingIndex).unwrap();
        assert!(found.chance >= 0.7 && found.share.is_some_and(|share| share.ratio > 0.99), "{kind}");
        let text = &found.evidence[0].text;
        assert!(text.contains("orders read 1,000,000 rows") && text.contains("kept 9"), "{text}");
    }
    assert_eq!(signs(&plan("Index Scan", (1e6, 9.0), 1_500.0, None), Cause::MissingIndex), None);
    assert_eq!(signs(&plan("Seq Scan", (1e6, 5e5), 1_500.0, None), Cause::MissingIndex), None, "most are kept");
    assert!(chance(&plan("Seq Scan", (5_000.0, 9.0), 2.0, None), Cause::MissingIndex) < NAMED, "it took 2 ms");
}

#[test]
fn a_step_that_wrote_to_disk_counts_as_far_as_it_took_time() {
    let quick = plan("Index Scan", (9.0, 9.0), 1_500.0, Some(2e6));
    assert!(chance(&quick, Cause::OnDiskTemporaryTables) < 0.1, "the sort took 10 of 1,510 ms");
    let slow = plan("Index Scan", (9.0, 9.0), 1.0, Some(2e9));
    let found = signs(&slow, Cause::OnDiskTemporaryTables).unwrap();
    assert!(found.chance >= 0.49 && found.evidence[0].text.contains("wrote"), "{found:?}");
}
