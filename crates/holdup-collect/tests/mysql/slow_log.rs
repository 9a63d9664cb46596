//! On a MariaDB as Debian delivers it, performance_schema off: executions and their trace ids out of the slow query log.

use std::time::Duration;

use holdup_collect::watch::{Options, collector};
use holdup_recording::rows::Statement;
use holdup_recording::{Batch, CoverageState, clock};

use crate::server::{CANARY, id, mariadb, part, sample_until};

const LEADING: &str = "5bd66ef5095369c7b0d1f8f4bd33716a";
const TRAILING: &str = "0123456789abcdef0123456789abcdef";
const LINES: &str = "00f067aa0ba902b700f067aa0ba902b7";
const PREPARED: &str = "11f067aa0ba902b700f067aa0ba902b7";
const FORGED: &str = "ffffffffffffffffffffffffffffffff";

fn comment(trace: &str) -> String {
    format!("/*traceparent='00-{trace}-c532cb4098ac3dd2-01'*/")
}

#[test]
fn the_slow_log_of_a_real_mariadb_gives_executions() {
    let Some(server) = mariadb(&["--performance-schema=OFF", "--slow-query-log-file=slow.log"]) else { return };
    let log = server.file("data/slow.log");

    // Nobody has asked for the log: the way to have it, as statements.
    let (_, coverage) = server.watch(None);
    let entry = part(&coverage, "slow log");
    let enable = entry.enable.clone().unwrap();
    assert_eq!(entry.state, CoverageState::Absent, "{entry:?}");
    assert!(enable.contains("SET GLOBAL slow_query_log = ON; SET GLOBAL long_query_time = 0;"), "{enable}");
    assert!(enable.contains(&format!("add ?log={}", log.display())), "{enable}");
    let mut root = server.root().unwrap();
    root.query_drop("SET GLOBAL slow_query_log = ON").unwrap();
    let address = format!("{}?log={}", server.address("watcher"), log.display());
    let watch = || {
        let mut watcher = collector(&address, &Options::default()).unwrap();
        let coverage = watcher.probe().unwrap();
        (watcher, part(&coverage, "slow log").clone())
    };
    let (_, entry) = watch();
    assert_eq!(entry.state, CoverageState::Partial, "{entry:?}");
    assert_eq!(entry.enable.as_deref(), Some("SET GLOBAL long_query_time = 0;"));
    root.query_drop("SET GLOBAL long_query_time = 0, GLOBAL log_slow_verbosity = 'query_plan,explain'").unwrap();
    server.client().query_drop("SELECT 'before the watch'").unwrap();
    let (mut watcher, entry) = watch();
    assert_eq!((entry.state, entry.why.as_deref()), (CoverageState::Complete, None));

    let mut client = server.client();
    let begun_at = clock::now_ns();
    client
        .query_drop(format!("{} SELECT note FROM t WHERE note <> '{CANARY}' ORDER BY note", comment(LEADING)))
        .unwrap();
    client.query_drop(format!("UPDATE t SET note = '{CANARY}' WHERE id = 2 {}", comment(TRAILING))).unwrap();
    client.query_drop(format!("SELECT note,\n  id\n# {CANARY}\nFROM t\n{}", comment(LINES))).unwrap();
    let text = format!("{} SELECT id FROM t WHERE id = ?", comment(PREPARED));
    let _: Option<i64> = client.exec_first(text, 1).unwrap();
    client.query_drop("SELECT SLEEP(1.5)").unwrap();
    let slept_at = clock::now_ns();
    // A value that looks like an entry of somebody else's.
    let forged = format!(
        "# User@Host: app[app] @ localhost [127.0.0.1]\n# Thread_id: 666  Schema: lab  QC_hit: No\n\
         # Query_time: 9.000000  Lock_time: 0.000000  Rows_sent: 1  Rows_examined: 0\nSET timestamp=1795360986;\n\
         /*traceparent=00-{FORGED}-c532cb4098ac3dd2-01*/ SELECT 9"
    );
    client.query_drop(format!("SELECT ';\n{forged};\n'")).unwrap();
    assert!(client.query_drop(format!("SELECT '{CANARY}")).is_err(), "it can't be parsed, and is logged");

    let of = |batch: &Batch, begin: &str| -> Vec<Statement> {
        let is_it = |row: &&Statement| row.session_id == Some(id(&client)) && row.digest_text.starts_with(begin);
        batch.statements.iter().filter(is_it).cloned().collect()
    };
    let mut batch = sample_until(&mut watcher, "what was run", |batch| !of(batch, "SELECT SLEEP").is_empty());
    std::thread::sleep(Duration::from_millis(200));
    watcher.settings(&mut batch).unwrap();
    let ended_at = clock::now_ns();
    assert!(!format!("{batch:?}").contains(CANARY));
    assert!(
        batch.statements.iter().all(|row| row.kind == "execution" && !row.digest_text.contains("before the watch"))
    );
    assert!(batch.statements.iter().all(|row| row.session_id != Some(666)), "{:#?}", batch.statements);
    assert!(batch.statements.iter().all(|row| row.trace_id.as_deref() != Some(FORGED)), "{:#?}", batch.statements);

    let traced = |trace: &str| -> Statement {
        let rows: Vec<&Statement> =
            batch.statements.iter().filter(|row| row.trace_id.as_deref() == Some(trace)).collect();
        assert_eq!(rows.len(), 1, "{trace}: {rows:#?}");
        assert_eq!((rows[0].session_id, rows[0].database.as_deref()), (Some(id(&client)), Some("lab")));
        rows[0].clone()
    };
    let leading = traced(LEADING);
    assert_eq!((leading.rows_sent, leading.rows_examined >= 2, leading.no_index), (2, true, 1), "{leading:?}");
    assert_eq!(leading.digest_text, "SELECT note FROM t WHERE note != ? ORDER BY note");
    assert_eq!(
        (traced(TRAILING).rows_affected, traced(TRAILING).digest_text.as_str()),
        (1, "UPDATE t SET note = ? WHERE id = ?")
    );
    assert_eq!(traced(LINES).digest_text, "SELECT note, id FROM t");
    // Of what comes by the binary protocol the log has the text, which the history of MariaDB has not.
    assert_eq!(traced(PREPARED).digest_text, "SELECT id FROM t WHERE id = ?");
    let slow = of(&batch, "SELECT SLEEP");
    assert_eq!(slow.len(), 1, "{slow:#?}");
    assert!(slow[0].duration_ns >= 1_500_000_000, "{slow:#?}");
    // It is known to a second, not to have ended before it began or after we had read it.
    assert!((begun_at..ended_at).contains(&slow[0].observed_at), "{slow:#?}");
    assert!(slow[0].observed_at - slept_at < 1_000_000_000, "{} of {}", slow[0].observed_at, slept_at);
    let ours = batch.statements.iter().find(|row| row.digest_text.contains("information_schema"));
    assert!(ours.is_none(), "our own statements are left out: {ours:?}");
}
