//! On MariaDB: statements of slow requests, steps, who holds a lock and with what, InnoDB's backlog, the process list.

use std::time::Duration;

use holdup_collect::mysql::processes::Processes;
use holdup_collect::slow::SlowRequests;
use holdup_recording::{Batch, Coverage, CoverageState, clock};

use crate::server::{CANARY, Server, id, mariadb, part, sample_until, session, value};

const SLOW: &str = "5bd66ef5095369c7b0d1f8f4bd33716a";
const OTHER: &str = "0123456789abcdef0123456789abcdef";
const NOWHERE: &str = "ffffffffffffffffffffffffffffffff";

#[test]
fn a_real_mariadb_is_read_with_everything_on() {
    let settings = [
        "--performance-schema=ON",
        "--performance-schema-consumer-events-statements-current=ON",
        "--performance-schema-consumer-events-statements-history=ON",
        "--performance-schema-consumer-events-statements-history-long=ON",
    ];
    let Some(server) = mariadb(&settings) else { return };
    what_is_off_is_said_and_can_be_switched_on(&server);
    slow_requests(&server);
    prepared(&server);
    row_lock(&server);
    metadata_lock(&server);
    digests_and_backlog(&server);
    process_list(&server);
}

/// Stages and metadata locks are off by default: the coverage has the statements that change it.
fn what_is_off_is_said_and_can_be_switched_on(server: &Server) {
    let (_, coverage) = server.watch(None);
    for name in ["statement stages", "metadata locks"] {
        let entry = part(&coverage, name);
        assert_eq!(entry.state, CoverageState::Absent, "{entry:?}");
        let mut root = server.root().unwrap();
        for statement in entry.enable.as_deref().unwrap().split_inclusive(';') {
            root.query_drop(statement).unwrap();
        }
    }
    let (_, coverage) = server.watch(None);
    // Both take a right on tables.
    let is_asked_for = |part: &&Coverage| [" plans", " catalogs"].iter().all(|end| !part.source.ends_with(end));
    assert!(coverage.iter().filter(is_asked_for).all(|part| part.state == CoverageState::Complete), "{coverage:#?}");
}

/// A request is reported as slow: its statements are read at once, with what its connection ran besides, each once.
fn slow_requests(server: &Server) {
    let board = SlowRequests::new(Duration::from_millis(500));
    let (mut watcher, _) = server.watch(Some(board.clone()));
    let mut batch = Batch::default();
    watcher.sample(&mut batch).unwrap();
    let mut client = server.client();
    let mut bystander = server.client();
    let tagged = |trace: &str, sql: &str| format!("/*traceparent='00-{trace}-c532cb4098ac3dd2-01'*/ {sql}");
    // What the driver asks as it connects is before the request, by more than clocks may differ.
    std::thread::sleep(Duration::from_millis(300));
    let begun_at = clock::now_ns();
    client.query_drop(tagged(SLOW, &format!("SELECT note FROM t WHERE note <> '{CANARY}' ORDER BY note"))).unwrap();
    client.query_drop("BEGIN").unwrap();
    client.query_drop(tagged(SLOW, "UPDATE t SET note = 'q' WHERE id = 2")).unwrap();
    client.query_drop("COMMIT").unwrap();
    bystander.query_drop(tagged(OTHER, "SELECT 1")).unwrap();
    board.put(SLOW, begun_at, clock::now_ns());
    board.put(NOWHERE, begun_at, clock::now_ns());
    let is_captured = |batch: &Batch, trace: &str| {
        batch.events.iter().any(|e| e.kind == "captured" && e.labels.contains(&[("trace_id", trace)]))
    };
    batch.append(sample_until(&mut watcher, "both requests are looked for", |batch| {
        is_captured(batch, SLOW) && is_captured(batch, NOWHERE)
    }));
    watcher.sample(&mut batch).unwrap();
    let event = |trace: &str| {
        let is_it =
            |e: &&holdup_recording::rows::Event| e.kind == "captured" && e.labels.contains(&[("trace_id", trace)]);
        batch.events.iter().find(is_it).unwrap()
    };
    // Both statements of its own, and the BEGIN and COMMIT that carry no id.
    assert!(event(SLOW).labels.contains(&[("statements", "4")]), "{:?}", event(SLOW));
    assert!(event(NOWHERE).labels.contains(&[("statements", "0")]), "{:?}", event(NOWHERE));

    let of =
        |trace: &str| batch.statements.iter().filter(|row| row.trace_id.as_deref() == Some(trace)).collect::<Vec<_>>();
    let rows = of(SLOW);
    assert_eq!(rows.len(), 2, "each execution is one row, whoever read it: {rows:#?}");
    assert!(rows.iter().all(|row| row.kind == "execution" && row.session_id == Some(id(&client))), "{rows:#?}");
    assert!(rows.iter().all(|row| row.observed_at >= begun_at - 50_000_000), "{rows:#?}");
    let select = rows.iter().find(|row| row.digest_text.starts_with("SELECT")).unwrap();
    assert_eq!((select.rows_sent, select.no_index), (2, 1), "{select:?}");
    let update = rows.iter().find(|row| row.digest_text.starts_with("UPDATE")).unwrap();
    assert_eq!(update.rows_affected, 1, "{update:?}");
    for text in ["BEGIN", "COMMIT"] {
        let of_client = |row: &&holdup_recording::rows::Statement| {
            row.kind == "execution" && row.session_id == Some(id(&client)) && row.digest_text == text
        };
        assert_eq!(batch.statements.iter().filter(of_client).count(), 1, "{text}");
    }
    assert_eq!(of(OTHER).len(), 1);
    let steps: Vec<_> = batch.stages.iter().filter(|stage| stage.trace_id.as_deref() == Some(SLOW)).collect();
    assert!(
        steps.iter().any(|stage| stage.stage == "stage/sql/Sending data" && stage.digest == select.digest),
        "{steps:#?}"
    );
    let in_steps: i64 = steps.iter().filter(|stage| stage.digest == select.digest).map(|stage| stage.duration_ns).sum();
    assert!(in_steps <= select.duration_ns, "its steps take no longer than it: {in_steps} > {}", select.duration_ns);
    let is_read = |text: &str| text.starts_with("SELECT") && text.contains("performance_schema");
    let ours = batch.statements.iter().find(|row| is_read(&row.digest_text));
    assert!(ours.is_none(), "our own statements are left out, on every connection: {ours:?}");
}

/// Of what is executed by the binary protocol MariaDB has no text, but its time: it is not left out.
fn prepared(server: &Server) {
    let (mut watcher, _) = server.watch(None);
    watcher.sample(&mut Batch::default()).unwrap();
    let mut client = server.client();
    let _: Option<String> = client.exec_first("SELECT note FROM t WHERE id = ?", 1).unwrap();
    let of_client = |row: &&holdup_recording::rows::Statement| {
        // It asks for its own id, too, when it connects.
        let is_text = row.digest_text.starts_with("SELECT");
        row.kind == "execution" && row.session_id == Some(id(&client)) && row.rows_sent == 1 && !is_text
    };
    let batch = sample_until(&mut watcher, "the execution", |batch| batch.statements.iter().any(|row| of_client(&row)));
    assert_eq!(batch.statements.iter().filter(of_client).count(), 1, "{:#?}", batch.statements);
}

/// A session that holds a row lock and does nothing is shown with what it ran last; it is in the way of all who wait.
fn row_lock(server: &Server) {
    let (mut watcher, _) = server.watch(None);
    let mut holder = server.client();
    holder.query_drop("BEGIN").unwrap();
    holder.query_drop(format!("UPDATE t SET note = '{CANARY}' WHERE id = 1")).unwrap();
    let waiters: Vec<_> = ["y", "z"]
        .into_iter()
        .map(|note| {
            let mut client = server.client();
            let waiter = id(&client);
            let sql = format!("UPDATE t SET note = '{note}' WHERE id = 1");
            (waiter, std::thread::spawn(move || client.query_drop(sql).unwrap()))
        })
        .collect();
    let holder_id = id(&holder);
    let batch = sample_until(&mut watcher, "both wait for the holder", |batch| {
        waiters.iter().all(|(waiter, _)| session(batch, *waiter).is_some_and(|s| s.blocked_by == Some(holder_id)))
    });
    let row = session(&batch, holder_id).expect("the holder has a row");
    assert_eq!((row.true_state.as_str(), row.command.as_str()), ("idle", "Sleep"));
    assert_eq!(row.digest_text.as_deref(), Some("UPDATE t SET note = ? WHERE id = ?"));
    holder.query_drop("ROLLBACK").unwrap();
    waiters.into_iter().for_each(|(_, waiter)| waiter.join().unwrap());
}

/// The same of a table that somebody has read from in an open transaction.
fn metadata_lock(server: &Server) {
    let (mut watcher, _) = server.watch(None);
    let mut holder = server.client();
    holder.query_drop("BEGIN").unwrap();
    holder.query_drop("SELECT note FROM t WHERE id = 1").unwrap();
    let mut client = server.client();
    let waiter = id(&client);
    let alter = std::thread::spawn(move || client.query_drop("ALTER TABLE t COMMENT 'c'").unwrap());
    let holder_id = id(&holder);
    let batch = sample_until(&mut watcher, "who holds the metadata lock", |batch| {
        session(batch, waiter).is_some_and(|session| session.blocked_by == Some(holder_id))
    });
    assert_eq!(session(&batch, waiter).unwrap().true_state, "lock_wait");
    assert_eq!(session(&batch, holder_id).unwrap().digest_text.as_deref(), Some("SELECT note FROM t WHERE id = ?"));
    holder.query_drop("COMMIT").unwrap();
    alter.join().unwrap();
}

fn digests_and_backlog(server: &Server) {
    let mut client = server.client();
    for _ in 0..3 {
        client.query_drop(format!("SELECT note, COUNT(*) FROM t WHERE note <> '{CANARY}' GROUP BY note")).unwrap();
    }
    let (mut watcher, _) = server.watch(None);
    let total = "SELECT note , COUNT ( * ) FROM t WHERE note <> ? GROUP BY note";
    let digest = holdup_sql::digest(total, holdup_sql::Dialect::MySql);
    let batch = sample_until(&mut watcher, "the digest is counted", |batch| {
        batch.statements.iter().any(|row| row.kind == "digest_total" && row.digest == digest && row.calls == 3)
    });
    let row = batch.statements.iter().find(|row| row.kind == "digest_total" && row.digest == digest).unwrap();
    assert_eq!((row.no_index, row.temporary_tables, row.temporary_disk_tables), (3, 3, 0), "{row:?}");
    for metric in [
        "mysql_innodb_history_list_length",
        "mysql_innodb_checkpoint_age_bytes",
        "mysql_global_status_innodb_log_waits",
        "mysql_global_status_max_used_connections",
        "mysql_global_status_connection_errors_max_connections",
        "mysql_global_status_table_open_cache_misses",
        "mysql_global_status_handler_read_rnd_next",
    ] {
        assert!(value(&batch, metric) >= 0.0, "{metric}");
    }
    assert!(value(&batch, "mysql_innodb_log_capacity_bytes") >= 1_048_576.0);
}

/// The process list has literals beside the rows, never in them; it needs PROCESS and nothing else.
fn process_list(server: &Server) {
    let refused = Processes::open(&server.address("poor")).err().unwrap().to_string();
    assert!(refused.contains("GRANT PROCESS ON *.* TO 'poor'@'127.0.0.1';"), "{refused}");
    let (mut processes, notes) = Processes::open(&server.address("watcher")).unwrap();
    assert_eq!(processes.release().split('.').next(), Some("MariaDB 10").filter(|_| notes.len() == 1), "{notes:?}");
    let mut client = server.client();
    let executing = id(&client);
    let mut root = server.root().unwrap();
    let runner = std::thread::spawn(move || {
        let _ = client.query_drop(format!("SELECT SLEEP(60), '{CANARY}'"));
    });
    let mut found = None;
    for _ in 0..1_000 {
        let look = processes.look().unwrap();
        assert!(look.samples.iter().any(|sample| sample.metric == "mysql_global_status_questions"));
        // What it sent before, such as the driver's own questions, may be seen as well.
        let is_it = |statement: &String| statement.contains(CANARY);
        let mut all = look.processes.into_iter();
        found = all.find(|p| p.session.session_id == executing && p.statement.as_ref().is_some_and(is_it));
        if found.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let found = found.expect("it is in the list");
    assert_eq!(found.session.true_state, "executing");
    assert!(!format!("{:?}", found.session).contains(CANARY));
    root.query_drop(format!("KILL {executing}")).unwrap();
    runner.join().unwrap();
}
