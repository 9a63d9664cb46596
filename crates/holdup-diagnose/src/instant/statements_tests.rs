//! Signs in the statements of logs and digests, each beside one that looks like it and is sound.

use holdup_recording::plan::Node;
use holdup_recording::rows::{Event, Plan, Stage};
use holdup_recording::{Labels, Recording};

use super::Weighed;
use super::facts::Facts;
use super::statements::Statements;
use crate::case::Case;
use crate::cause::Cause;
use crate::instant::Signs;
use crate::testing::SyntheticRecording;

const SCAN: &str = "SELECT id, total FROM orders WHERE customer = ? ORDER BY id LIMIT ?";
const QUICK: &str = "SELECT name FROM customer WHERE id = ?";
const WRITE: &str = "UPDATE counter SET n = n + ? WHERE id = ?";
const GROUPED: &str = "SELECT note, SUM(total) FROM orders WHERE created > ? GROUP BY note";

/// 100 s of a quick statement, 500 times a second, and another: calls, milliseconds, rows examined and
/// sent, and calls without an index, each a second.
fn made(text: &str, each: (i64, i64, i64, i64, i64)) -> SyntheticRecording {
    let (calls, ms, examined, sent, no_index) = each;
    SyntheticRecording::new(100)
        .digest(QUICK, |s| (500 * s, 50 * s, 500 * s, 500 * s, 0))
        .digest(text, move |s| (calls * s, ms * s, examined * s, sent * s, no_index * s))
        .setting("mysql://db", "log_slow_verbosity", "query_plan")
}

fn signs(recording: &Recording, cause: Cause) -> Option<Weighed> {
    let case = Case::new(recording, None);
    let facts = Facts::read(case.view(case.whole()));
    let mut signs = Signs::default();
    cause.definition().signs.expect("a cause with signs")(&facts, &mut signs);
    signs.weigh()
}

fn chance(made: &SyntheticRecording, cause: Cause) -> f64 {
    signs(made.clone().recording(), cause).map_or(0.0, |of| of.chance)
}

#[test]
fn a_statement_that_reads_many_rows_for_few_is_named_with_its_share_and_its_plan() {
    let found = signs(made(SCAN, (10, 1_500, 2_000_000, 30, 10)).recording(), Cause::MissingIndex).expect("signs");
    assert!(found.chance > 0.8, "{}", found.chance);
    let share = found.share.expect("a share");
    assert!((share.ratio - 1_500.0 / 1_550.0).abs() < 0.01, "{share:?}");
    let texts: Vec<&str> = found.evidence.iter().map(|of| of.text.as_str()).collect();
    assert!(texts[0].contains("200,000 rows to send or change 3.0") && texts[0].contains(SCAN), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("it compares customer") && text.contains("EXPLAIN SELECT id")));
}

#[test]
fn statements_that_need_their_rows_or_are_too_short_to_be_felt_are_not_accused() {
    let accused = |text, each| chance(&made(text, each), Cause::MissingIndex);
    assert_eq!(accused(SCAN, (10, 1_500, 2_000_000, 1_000_000, 10)), 0.0, "all rows are sent");
    assert_eq!(accused(SCAN, (10, 1_500, 2_000_000, 30, 0)), 0.0, "it uses an index, by the server's own count");
    assert_eq!(accused(SCAN, (10, 1_500, 500, 30, 10)), 0.0, "few rows");
    assert_eq!(accused(SCAN, (10, 200, 200_000, 30, 10)), 0.0, "20 ms, a fifth of a session");
    assert_eq!(accused("SELECT COUNT(*) FROM orders", (10, 1_500, 2_000_000, 10, 10)), 0.0, "no index helps it");
    assert!(accused(GROUPED, (10, 1_500, 2_000_000, 10, 10)) < 0.85, "one row stands for many");
}

#[test]
fn a_log_without_flags_leaves_the_index_open_and_the_rows_speak() {
    let without = |made: SyntheticRecording| made.tables(|tables| tables.settings.rows.clear());
    let silent = without(made(SCAN, (10, 1_500, 2_000_000, 30, 0)));
    assert!(chance(&silent, Cause::MissingIndex) > 0.7);
    // Another statement of the log has the flag: then the log has it.
    let flagged = silent.digest("SELECT a FROM b", |s| (s, s, s, s, s));
    assert_eq!(chance(&flagged, Cause::MissingIndex), 0.0);
}

#[test]
fn temporary_tables_on_disk_are_the_reason_where_most_calls_make_one() {
    let spilling = |of: i64| {
        made(GROUPED, (2, 4_000, 400_000, 20, 2)).tables(move |tables| {
            for row in tables.statements.rows.iter_mut().filter(|row| row.digest == GROUPED) {
                row.temporary_disk_tables = row.calls * of / 10;
            }
        })
    };
    let (index, disk) = (Cause::MissingIndex, Cause::OnDiskTemporaryTables);
    assert!(chance(&spilling(10), disk) > 0.7 && chance(&spilling(10), index) < 0.4);
    assert_eq!(chance(&spilling(2), disk), 0.0, "one call in five");
}

fn lock_wait(second: i64, waited_ms: i64, digest: &str) -> Event {
    let labels = [("state", "acquired"), ("waited_ms", &waited_ms.to_string()), ("digest", digest)];
    let (kind, source) = ("lock_wait".to_owned(), "mysql://db".to_owned());
    Event { observed_at: second * 1_000_000_000, source, kind, text: String::new(), labels: Labels::new(labels) }
}

#[test]
fn locks_count_by_the_servers_sum_and_by_its_messages() {
    let slow = || made(WRITE, (4, 2_000, 4, 4, 0));
    let cause = Cause::LockContention;
    let counted = slow().tables(|tables| {
        tables.statements.rows.iter_mut().for_each(|row| row.lock_ns = row.duration_ns / 10 * 9);
    });
    let found = signs(counted.recording(), cause).expect("signs");
    assert!(found.chance > 0.7 && found.evidence[0].text.contains("90 % of that in locks"), "{found:?}");
    let logged = slow().tables(|tables| {
        tables.events.present = true;
        tables.events.rows = (1..99).map(|second| lock_wait(second, 1_900, WRITE)).collect();
    });
    let found = signs(logged.recording(), cause).expect("signs");
    assert!(found.chance > 0.8 && found.share.is_some_and(|share| share.ratio > 0.8), "{:?}", found.evidence);
    let rare = slow().tables(|tables| {
        tables.events.present = true;
        tables.events.rows = vec![lock_wait(50, 1_500, "other")];
    });
    assert!(chance(&rare, cause) < 0.5, "one wait in 100 s");
}

#[test]
fn a_write_by_a_key_that_takes_long_waits_for_a_lock_only_if_commits_are_quick() {
    let with = |commit_ms: i64| {
        made(WRITE, (4, 2_000, 4, 4, 0)).digest("COMMIT", move |s| (4 * s, commit_ms * 4 * s, 0, 0, 0))
    };
    assert!(chance(&with(1), Cause::LockContention) > 0.7);
    assert_eq!(chance(&with(400), Cause::LockContention), 0.0, "the log's disk may be what it waits for");
    assert_eq!(chance(&made(WRITE, (4, 2_000, 4, 4, 0)), Cause::LockContention), 0.0, "nothing tells");
}

fn stages(name: &'static str, seconds: i64) -> impl Fn(SyntheticRecording) -> SyntheticRecording {
    move |made| {
        made.tables(|tables| {
            tables.stages.present = true;
            tables.stages.rows = (1..=100)
                .map(|second| Stage {
                    observed_at: second * 1_000_000_000,
                    source: "mysql://db".to_owned(),
                    digest: SCAN.to_owned(),
                    stage: name.to_owned(),
                    duration_ns: seconds * 1_000_000,
                    ..Stage::default()
                })
                .collect();
        })
    }
}

#[test]
fn time_in_storage_and_for_tickets_has_its_own_causes() {
    let few_rows = || made(SCAN, (10, 1_500, 100, 30, 0));
    let read = stages("storage_read", 1_400)(few_rows());
    assert!(chance(&read, Cause::WorkingSetExceedsMemory) > 0.7);
    assert_eq!(chance(&stages("storage_read", 100)(few_rows()), Cause::WorkingSetExceedsMemory), 0.0);
    let queued = stages("ticket_wait", 1_400)(few_rows());
    assert!(chance(&queued, Cause::TicketsExhausted) > 0.7);
    assert_eq!(chance(&queued, Cause::WorkingSetExceedsMemory), 0.0);
}

#[test]
fn a_logged_plan_says_more_than_rows() {
    let with = |came: f64, removed: f64| {
        made(SCAN, (10, 1_500, 0, 0, 0)).tables(|tables| {
            let tree = Node {
                kind: "Seq Scan".to_owned(),
                relation: Some("orders".to_owned()),
                filter: Some("(customer = ?)".to_owned()),
                rows_actual: Some(came),
                rows_removed: Some(removed),
                ..Node::default()
            };
            tables.plans.present = true;
            tables.plans.rows = vec![Plan {
                source: "mysql://db".to_owned(),
                digest: SCAN.to_owned(),
                plan: tree.to_json(),
                ..Plan::default()
            }];
        })
    };
    let found = signs(with(2.0, 199_998.0).recording(), Cause::MissingIndex).expect("signs");
    assert!(found.chance > 0.85 && found.evidence[0].text.contains("Seq Scan orders read 200,000 rows"), "{found:?}");
    assert_eq!(chance(&with(150_000.0, 50_000.0), Cause::MissingIndex), 0.0, "most are kept");
}

#[test]
fn counters_that_were_read_once_are_all_that_ran() {
    let once = made(SCAN, (10, 1_500, 2_000_000, 30, 10)).tables(|tables| {
        tables.statements.rows.retain(|row| row.observed_at == 50_000_000_000);
    });
    assert!(chance(&once, Cause::MissingIndex) > 0.8);
}

#[test]
fn the_command_fits_the_server() {
    let explained = |source: &str, text: &str| {
        let recording = made(text, (10, 15_000, 10, 10, 0)).tables(|tables| {
            tables.statements.rows.iter_mut().for_each(|row| row.source = source.to_owned());
        });
        let recording = recording.recording();
        let case = Case::new(recording, None);
        Statements::read(&case.view(case.whole())).heavy[0].explain()
    };
    assert_eq!(explained("mysql://x", SCAN), format!("EXPLAIN {SCAN};"));
    assert_eq!(explained("postgresql://x", SCAN), format!("EXPLAIN {SCAN};"));
    assert_eq!(explained("postgresql://x", WRITE), format!("EXPLAIN {WRITE};"), "it would be executed");
    assert_eq!(
        explained("mongodb://x", "find shop.orders filter { a: { $in: [?] }, b: ? } sort { c: ? }"),
        "db.getSiblingDB(\"shop\").orders.find({ a: { $in: [?] }, b: ? }).sort({ c: ? }).explain(\"executionStats\")"
    );
    assert_eq!(
        explained("mongodb://x", "aggregate shop.orders pipeline [{ $match: { a: ? } }]"),
        "db.getSiblingDB(\"shop\").orders.explain(\"executionStats\").aggregate([{ $match: { a: ? } }])"
    );
}

/// A mongod's own data: collection scans and reads a second, seconds of all reads, documents examined
/// and returned.
fn mongod(scans: f64, reads: f64, seconds: f64, examined: f64, returned: f64) -> SyntheticRecording {
    const DB: &str = "mongodb://diagnostic.data";
    let status = |name: &str| format!("mongodb_server_status_{name}");
    SyntheticRecording::new(100)
        .gauge(DB, &status("connections_current"), &[], 9.0)
        .counter(DB, &status("metrics_query_executor_collection_scans_total"), &[], scans)
        .counter(DB, &status("metrics_query_executor_scanned_objects"), &[], examined)
        .counter(DB, &status("metrics_document_returned"), &[], returned)
        .counter(DB, "mongodb_operations_total", &[("kind", "reads")], reads)
        .counter(DB, "mongodb_operation_time_seconds_total", &[("kind", "reads")], seconds)
}

#[test]
fn a_mongods_own_data_names_collection_scans_by_its_own_timing() {
    let found = signs(mongod(0.4, 0.4, 2.2, 200_000.0, 4.0).recording(), Cause::MissingIndex).expect("signs");
    assert!(found.chance > 0.8 && found.share.is_some_and(|share| share.ratio > 0.8), "{:?}", found.evidence);
    assert!(found.evidence[0].text.contains("5,500 ms"), "{}", found.evidence[0].text);
    assert!(found.evidence.iter().any(|of| of.text.contains("db.currentOp")), "{:?}", found.evidence);
    let accused = |made| chance(&made, Cause::MissingIndex);
    assert_eq!(accused(mongod(0.4, 400.0, 2.0, 200_000.0, 400.0)), 0.0, "a read takes 5 ms");
    assert_eq!(accused(mongod(0.4, 0.4, 2.2, 40.0, 4.0)), 0.0, "small collections");
    assert_eq!(accused(mongod(0.0, 0.4, 2.2, 200_000.0, 4.0)), 0.0, "no scan of a collection");
}
