//! Logs of databases as recordings: what is read of each kind, and what is left open.

use std::io::Cursor;

use holdup_recording::Recording;
use holdup_recording::rows::Statement;

use super::*;

fn file(name: &str, text: &str) -> InputFile {
    InputFile {
        name: name.to_owned(),
        shown: name.to_owned(),
        head: text.as_bytes().to_vec(),
        rest: Box::new(Cursor::new(Vec::new())),
        is_listed: false,
        modified_at: None,
        pasted_at: None,
    }
}

/// The recording of these logs.
fn recorded(files: &[(&str, &str)]) -> Recording {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("r");
    import(files.iter().map(|(name, text)| file(name, text)).collect(), &place).unwrap();
    Recording::open(&place).unwrap()
}

/// The rows of the statement that begins like this, in order of time.
fn rows<'r>(recording: &'r Recording, begin: &str) -> Vec<&'r Statement> {
    let rows = recording.tables.statements.rows.iter();
    let mut rows: Vec<&Statement> = rows.filter(|row| row.digest_text.starts_with(begin)).collect();
    rows.sort_by_key(|row| (row.observed_at, row.calls));
    rows
}

fn slow(second: i64, took: &str, examined: u64, sql: &str) -> String {
    format!(
        "# User@Host: app[app] @  [10.0.0.7]\n# Thread_id: 9  Schema: shop  QC_hit: No\n# Query_time: {took}  Lock_time: 0.100000  Rows_sent: 2  Rows_examined: {examined}\n# Rows_affected: 0  Bytes_sent: 70\n# Tmp_tables: 1  Tmp_disk_tables: 1  Tmp_table_sizes: 100\n# Pages_accessed: 3  Pages_read: 2  Pages_prefetched: 0  Pages_updated: 0  Old_rows_read: 0\n# Pages_read_time: 250.5000  Engine_time: 400.0000\n# Full_scan: Yes  Full_join: No  Tmp_table: Yes  Tmp_table_on_disk: Yes\n# Filesort: Yes  Filesort_on_disk: Yes  Merge_passes: 3  Priority_queue: No\nSET timestamp={second};\n{sql};\n"
    )
}

#[test]
fn a_slow_log_becomes_counters_of_its_statements_over_time() {
    let mut log = String::new();
    for second in 0..100 {
        log +=
            &slow(1_795_860_000 + second, "0.500000", 40_000, &format!("SELECT a FROM t WHERE b = '{second} secret'"));
    }
    let recording = recorded(&[("slow.log", &log)]);
    let rows = rows(&recording, "SELECT a");
    assert!(rows.len() > 40 && rows.len() <= 2 * 64, "{}", rows.len());
    let (first, last) = (rows[0], rows[rows.len() - 1]);
    assert_eq!((first.calls, first.duration_ns, first.source.as_str()), (0, 0, "mysql://slow.log"));
    assert_eq!((last.calls, last.duration_ns, last.lock_ns), (100, 50_000_000_000, 10_000_000_000));
    assert_eq!((last.rows_examined, last.rows_sent, last.no_index), (4_000_000, 200, 100));
    assert_eq!((last.temporary_disk_tables, last.database.as_deref()), (100, Some("shop")));
    assert!(rows.windows(2).all(|pair| pair[0].calls <= pair[1].calls && pair[0].kind == "digest_total"));
    let read: i64 = recording.tables.stages.rows.iter().map(|row| row.duration_ns).sum();
    assert_eq!(read, 100 * 250_500_000, "the server logs it in milliseconds");
    let spills = recording.tables.events.rows.iter().filter(|event| event.kind == "temporary_file");
    let spills: u64 = spills.map(|event| event.labels.get("count").unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(spills, 100);
    assert!(recording.manifest.reported.is_some());
    assert!(!format!("{:?}", recording.tables.statements.rows).contains("secret"));
}

const STDERR: &str = "2026-11-28 10:21:58.200 UTC [47] app@shop LOG:  duration: 30.387 ms  statement: SELECT a FROM t WHERE b = 'secret';
2026-11-28 10:21:58.300 UTC [47] app@shop LOG:  duration: 28.054 ms  plan:
\tQuery Text: SELECT a FROM t WHERE b = 'secret';
\tSeq Scan on t  (cost=0.00..4660.00 rows=1 width=8) (actual time=14.908..14.909 rows=1 loops=1)
\t  Filter: (b = 'secret'::text)
\t  Rows Removed by Filter: 66667
2026-11-28 10:22:14.112 UTC [48] app@shop LOG:  process 48 still waiting for ShareLock on transaction 7472 after 50.118 ms
2026-11-28 10:22:14.112 UTC [48] app@shop DETAIL:  Process holding the lock: 49. Wait queue: 48.
2026-11-28 10:22:14.112 UTC [48] app@shop CONTEXT:  while updating tuple (0,256) in relation \"counter\"
2026-11-28 10:22:14.112 UTC [48] app@shop STATEMENT:  UPDATE counter SET n = 7 WHERE id = 1;
2026-11-28 10:22:15.112 UTC [48] app@shop LOG:  process 48 acquired ShareLock on transaction 7472 after 1050.500 ms
2026-11-28 10:22:15.112 UTC [48] app@shop STATEMENT:  UPDATE counter SET n = 7 WHERE id = 1;
2026-11-28 10:22:15.113 UTC [48] app@shop LOG:  duration: 1051.000 ms  statement: UPDATE counter SET n = 7 WHERE id = 1;
2026-11-28 10:22:16.000 UTC [50] LOG:  temporary file: path \"base/pgsql_tmp/pgsql_tmp50.0\", size 7536640
2026-11-28 10:22:16.000 UTC [50] STATEMENT:  SELECT a FROM t WHERE b = 'secret'
2026-11-28 10:22:17.000 UTC [51] app@shop FATAL:  sorry, too many clients already
";

#[test]
fn a_postgresql_log_has_statements_plans_and_messages_with_their_statement() {
    let recording = recorded(&[("postgresql.log", STDERR)]);
    let update = rows(&recording, "UPDATE counter");
    let last = update[update.len() - 1];
    assert_eq!((last.calls, last.duration_ns, last.source.as_str()), (1, 1_051_000_000, "postgresql://postgresql.log"));
    let events = &recording.tables.events.rows;
    let of = |kind: &str, state: Option<&str>| {
        let found =
            events.iter().find(|event| event.kind == kind && (state.is_none() || event.labels.get("state") == state));
        found.unwrap_or_else(|| panic!("{kind}: {events:?}"))
    };
    let acquired = of("lock_wait", Some("acquired"));
    assert_eq!(acquired.labels.get("waited_ms"), Some("1050.500"));
    assert_eq!(acquired.labels.get("digest"), Some(last.digest.as_str()));
    assert_eq!(of("lock_wait", Some("waiting")).labels.get("blocked_by"), Some("49"));
    let select = rows(&recording, "SELECT a")[0];
    // A process without an account has a shorter prefix.
    assert_eq!(of("temporary_file", None).labels.get("digest"), Some(select.digest.as_str()));
    assert_eq!(of("error", None).labels.get("error"), Some("too many connections"));
    let plan = &recording.tables.plans.rows[0];
    assert!(plan.digest == select.digest && plan.plan.contains("66667"), "{plan:?}");
    let all = format!("{:?}{events:?}{:?}", recording.tables.statements.rows, recording.tables.plans.rows);
    assert!(!all.contains("secret"), "{all}");
}

const MONGOD: &str = r#"{"t":{"$date":"2026-11-28T09:00:00.000+02:00"},"s":"I","c":"COMMAND","id":51803,"ctx":"conn9","msg":"Slow query","attr":{"type":"command","ns":"shop.orders","command":{"find":"orders","filter":{"email":"secret"},"$db":"shop"},"planSummary":"COLLSCAN","keysExamined":0,"docsExamined":500000,"nreturned":1,"locks":{"Collection":{"acquireCount":{"r":1},"timeAcquiringMicros":{"r":40000}}},"storage":{"data":{"bytesRead":9000,"timeReadingMicros":210000}},"durationMillis":512}}
"#;

#[test]
fn a_mongod_log_has_scans_locks_and_reads_in_universal_time() {
    let recording = recorded(&[("mongod.log", MONGOD)]);
    let rows = rows(&recording, "find shop.orders filter { email: ? }");
    let last = rows[rows.len() - 1];
    assert_eq!((last.rows_examined, last.no_index, last.lock_ns), (500_000, 1, 40_000_000));
    let stage = &recording.tables.stages.rows[0];
    assert_eq!((stage.stage.as_str(), stage.duration_ns), ("storage_read", 210_000_000));
    assert!((1_795_849_199..=1_795_849_201).contains(&(last.observed_at / 1_000_000_000)), "{}", last.observed_at);
}

#[test]
fn logs_of_several_servers_are_read_side_by_side() {
    let log = slow(1_795_860_000, "0.500000", 40, "SELECT a FROM t");
    let recording = recorded(&[("slow.log", &log), ("postgresql.log", STDERR), ("mongod.log", MONGOD)]);
    let sources: std::collections::BTreeSet<&str> =
        recording.tables.statements.rows.iter().map(|row| row.source.as_str()).collect();
    assert_eq!(
        sources.into_iter().collect::<Vec<_>>(),
        ["mongodb://mongod.log", "mysql://slow.log", "postgresql://postgresql.log"]
    );
}

#[test]
fn logs_of_others_are_not_taken_for_a_servers() {
    assert!(is_one(STDERR.as_bytes()) && is_one(MONGOD.as_bytes()));
    for other in [
        "2026-11-28 10:21:58 ERROR: payment failed for order 7\n2026-11-28 10:21:59 INFO: retry\n",
        "10.0.0.7 - - [28/Nov/2026:10:21:58 +0000] \"GET / HTTP/1.1\" 200 12 \"-\" \"curl\" 0.010\n",
        " 10:11:12 up 3 days,  2 users,  load average: 1.00, 2.00, 3.00\n",
        "{\"t\":1,\"msg\":\"hello\"}\n",
        "kernel: Out of memory: Killed process 7 (postgres)\n",
        "",
    ] {
        assert!(!is_one(other.as_bytes()), "{other}");
    }
}
