//! On MySQL 5.6.24, the server of the lab `uninterruptible-mysql56`, fetched as that lab does: what has other names there, or is
//! only in InnoDB's own text.

use std::time::Duration;

use holdup_collect::slow::SlowRequests;
use holdup_collect::watch::{Options, collector};
use holdup_recording::{Batch, CoverageState, clock};
use holdup_testing::MariaDb;

use crate::server::{CANARY, Server, id, part, sample_until, session, value};

const TRACE: &str = "00f067aa0ba902b700f067aa0ba902b7";

/// The server with further settings; none where it is not to be had, which without `CI` is no failure.
pub fn mysql_5_6(settings: &[&str]) -> Option<Server> {
    let own = ["--performance-schema=ON", "--innodb-log-file-size=8M"];
    Some(Server::start(MariaDb::mysql_5_6()?, &[&own, settings].concat()))
}

/// The same with all of its statement history.
fn server() -> Option<Server> {
    mysql_5_6(&[
        "--performance-schema-consumer-events-statements-history-long=ON",
        "--performance-schema-consumer-events-statements-history=ON",
        "--performance-schema-consumer-events-stages-current=ON",
        "--performance-schema-consumer-events-stages-history-long=ON",
        "--performance-schema-instrument=stage/sql/%=ON",
    ])
}

#[test]
fn a_real_mysql_5_6_is_read() {
    let Some(server) = server() else { return };

    let board = SlowRequests::new(Duration::from_millis(500));
    let (mut watcher, coverage) = server.watch(Some(board.clone()));
    assert_eq!(part(&coverage, "statement history").state, CoverageState::Complete, "{coverage:#?}");
    assert_eq!(part(&coverage, "statement stages").state, CoverageState::Complete, "{coverage:#?}");
    assert!(coverage.iter().all(|part| !part.source.ends_with("metadata locks")), "5.6 has no table of them");
    let mut batch = Batch::default();
    watcher.sample(&mut batch).unwrap();
    assert!(value(&batch, "mysql_innodb_history_list_length") >= 0.0, "of INNODB_METRICS");
    assert!(value(&batch, "mysql_innodb_checkpoint_age_bytes") >= 0.0, "of SHOW ENGINE INNODB STATUS");
    assert!((value(&batch, "mysql_innodb_log_capacity_bytes") - 16_777_216.0).abs() < 1.0, "two files");

    let mut holder = server.client();
    let begun_at = clock::now_ns();
    holder.query_drop("BEGIN").unwrap();
    let sql = format!("UPDATE t SET note = '{CANARY}' WHERE id = 1");
    holder.query_drop(format!("/*traceparent='00-{TRACE}-c532cb4098ac3dd2-01'*/ {sql}")).unwrap();
    board.put(TRACE, begun_at, clock::now_ns());
    let mut client = server.client();
    let waiter = id(&client);
    let waiting = std::thread::spawn(move || client.query_drop("UPDATE t SET note = 'y' WHERE id = 1").unwrap());
    let holder_id = id(&holder);
    batch.append(sample_until(&mut watcher, "the lock's holder and the captured statement", |batch| {
        session(batch, waiter).is_some_and(|session| session.blocked_by == Some(holder_id))
            && batch.events.iter().any(|event| event.kind == "captured")
    }));
    watcher.sample(&mut batch).unwrap();
    let row = session(&batch, holder_id).unwrap();
    assert_eq!((row.true_state.as_str(), row.trace_id.as_deref()), ("idle", Some(TRACE)), "what it ran last");
    let captured: Vec<_> = batch.statements.iter().filter(|row| row.trace_id.as_deref() == Some(TRACE)).collect();
    assert_eq!(captured.len(), 1, "{captured:#?}");
    assert_eq!((captured[0].session_id, captured[0].rows_affected), (Some(holder_id), 1));
    assert!(batch.stages.iter().any(|stage| stage.trace_id.as_deref() == Some(TRACE)), "{:?}", batch.stages);
    holder.query_drop("ROLLBACK").unwrap();
    waiting.join().unwrap();
}

/// It has no limit for the time of a statement, and of its own it lets one wait a year for the lock of a table.
#[test]
fn nothing_of_holdup_waits_for_a_locked_table() {
    let Some(server) = server() else { return };
    let mut root = server.root().unwrap();
    root.query_drop("GRANT SELECT ON lab.* TO 'watcher'@'127.0.0.1'").unwrap();
    let mut holder = server.client();
    holder.query_drop("LOCK TABLES t WRITE").unwrap();
    let mut client = server.client();
    let waiting = std::thread::spawn(move || client.query_drop("SELECT note FROM t WHERE id = 1"));
    let address = format!("{}?plans=explain", server.address("watcher"));
    let mut watcher = collector(&address, &Options::default()).unwrap();
    watcher.probe().unwrap();
    let sessions = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'watcher'";
    let mut most = 0;
    for _ in 0..6 {
        let mut batch = Batch::default();
        let _ = watcher.sample(&mut batch);
        assert!(value(&batch, "mysql_global_status_uptime") >= 0.0, "the rest goes on");
        most = most.max(root.query_first::<usize>(sessions).unwrap().unwrap());
    }
    assert_eq!(most, 1, "sessions of holdup that the server has");
    holder.query_drop("UNLOCK TABLES").unwrap();
    waiting.join().unwrap().unwrap();
}
