//! A log of three releases, read as one.

use super::*;
use crate::digest::format::Format;
use crate::digest::select::Select;
use crate::digest::shape::Shape;
use crate::digest::tally::Identity;

const LOG: &str = r#"mongo-1  | {"t":{"$date":"2026-11-26T12:00:01.000+02:00"},"s":"I",  "c":"COMMAND",  "id":51803,   "ctx":"conn53","msg":"Slow query","attr":{"type":"command","ns":"shop.orders","appName":"web","command":{"find":"orders","filter":{"status":"canary"},"$db":"shop"},"planSummary":"COLLSCAN","keysExamined":0,"docsExamined":800,"nreturned":3,"storage":{"data":{"timeReadingMicros":7000}},"remote":"10.0.0.9:41352","durationMillis":300}}
{"t":{"$date":"2026-11-26T12:00:02.000+02:00"},"s":"I",  "c":"COMMAND",  "id":51803,   "ctx":"conn54","msg":"Slow query","attr":{"type":"command","ns":"shop.orders","command":{"find":"orders","filter":{"status":"canary too"},"$db":"shop"},"planSummary":"IXSCAN { status: 1 }","keysExamined":4,"docsExamined":4,"nreturned":4,"durationMillis":100}}
{"t":{"$date":"2026-11-26T12:00:02.000+02:00"},"s":"I",  "c":"COMMAND",  "id":51803,   "ctx":"conn9","msg":"Slow query","attr":{"type":"command","ns":"admin.$cmd","appName":"holdup","command":{"serverStatus":1,"$db":"admin"},"durationMillis":100}}
2020-08-07T10:59:24.224+0800 I  COMMAND  [conn1730] command shop.orders command: find { find: "orders", filter: { status: "canary" }, $db: "shop" } planSummary: COLLSCAN keysExamined:0 docsExamined:10 numYields:1 nreturned:5 locks:{} protocol:op_msg 200ms
{"t":{"$date":"2026-11-26T12:00:03.000+02:00"},"s":"I",  "c":"INDEX",    "id":20345,   "ctx":"conn2","msg":"Index build: done building","attr":{"namespace":"shop.orders","index":"status_1"}}
{"t":{"$date":"2026-11-26T12:00:04.000+02:00"},"s":"I",  "c":"COMMAND",  "id":51803,   "ctx":"conn1","msg":"Slow qu
nonsense
"#;

fn read(log: &str) -> Tally {
    let mut tally = Tally::new(holdup_sql::Dialect::MySql, Identity::Holdup, Select::default());
    Mongod.read(&Block { data: log.as_bytes().to_vec(), ..Block::default() }, &mut tally);
    tally
}

#[test]
fn operations_of_all_releases_are_one_statement() {
    assert_eq!(Format::detect(LOG.as_bytes()), Some(Format::Mongod));
    let old = LOG.lines().find(|line| line.starts_with("2020-")).unwrap();
    assert_eq!(Format::detect(format!("{old}\n{old}\n").as_bytes()), Some(Format::Mongod));
    let tally = read(LOG);
    let [shape] = tally.shapes.as_slice() else { panic!("{:?}", tally.shapes) };
    assert_eq!((shape.text.as_str(), shape.calls), ("find shop.orders filter { status: ? }", 3));
    assert_eq!(shape.id, holdup_sql::digest_of_text(&shape.text));
    let sum = |shape: &Shape, number: u16| shape.measure(number).map(|measure| measure.sum);
    assert_eq!(
        (sum(shape, QUERY_TIME), sum(shape, ROWS_EXAMINED), sum(shape, ROWS_SENT)),
        (Some(600_000), Some(814), Some(12))
    );
    let read_time = tally.attributes.all().iter().position(|it| it.name == "Storage_read_time").unwrap();
    assert_eq!(sum(shape, read_time as u16), Some(7_000));
    let slowest = shape.slowest.as_ref().unwrap();
    // The start, by the log's own clock.
    assert_eq!((slowest.time_us, slowest.at_us), (300_000, Some(1_795_694_400_700_000)));
    assert_eq!(slowest.who, ["", "10.0.0.9", "shop", "web"]);
    let plans: Vec<(&str, u64)> = shape.plans.reported().map(|(steps, plan)| (steps, plan.times.count)).collect();
    assert_eq!(plans, [("COLLSCAN", 2), ("IXSCAN { status: 1 }", 1)]);
    assert_eq!(tally.server.counts, [("index_builds_done", 1), ("operations_of_holdup", 1)].into());
    let problems: Vec<_> = tally.problems.all().map(|(problem, count, _)| (problem, count)).collect();
    assert_eq!(problems, [(Problem::Malformed, 2)]);
    assert!(!format!("{tally:?}").contains("canary"));
}

/// A line of component `c`, with its words and attributes.
fn line(c: &str, words: &str, attributes: &str) -> String {
    format!(
        r#"{{"t":{{"$date":"2026-11-26T10:00:01.000+00:00"}},"s":"I","c":"{c}","id":1,"ctx":"conn53","msg":"{words}","attr":{attributes}}}"#
    )
}

#[test]
fn figures_of_an_operation_have_their_attributes() {
    let write = r#"{"type":"update","ns":"shop.a","user":"app@admin","command":{"q":{"_id":"canary"},"u":{"$set":{"b":1}}},"keysExamined":4,"nModified":2,"ninserted":1,"writeConflicts":3,"usedDisk":true,"errCode":112,"locks":{"Global":{"timeAcquiringMicros":{"w":900}}},"durationMillis":300}"#;
    let read_all = r#"{"type":"command","ns":"shop.a","command":{"find":"a","sort":{"b":1},"$db":"shop"},"planSummary":"COLLSCAN","hasSortStage":true,"durationMillis":100}"#;
    // A collector may leave empty lines.
    let tally = read(&[line("WRITE", "Slow query", write), line("COMMAND", "Slow query", read_all)].join("\n\n"));
    assert_eq!(tally.problems.all().count(), 0);
    let [write, read] = tally.shapes.as_slice() else { panic!("{:?}", tally.shapes) };
    let number = |name: &str| tally.attributes.all().iter().position(|it| it.name == name).unwrap() as u16;
    let sum = |number: u16| write.measure(number).map(|measure| measure.sum);
    assert_eq!((sum(ERRORS), sum(LOCK_TIME), sum(number("Rows_affected"))), (Some(1), Some(900), Some(3)));
    assert_eq!((sum(number("Keys_examined")), sum(number("Write_conflicts"))), (Some(4), Some(3)));
    assert_eq!(write.slowest.as_ref().unwrap().who[0], "app@admin");
    // How often it was not so, and was so.
    let flag = |shape: &Shape, name: &str| shape.flags.iter().find(|it| it.0 == number(name)).map(|it| it.1);
    let flags = |shape: &Shape| ["Filesort", "Filesort_on_disk", "Full_scan"].map(|name| flag(shape, name));
    assert_eq!(flags(write), [Some([1, 0]), Some([0, 1]), None], "there was no plan to tell");
    assert_eq!(flags(read), [Some([0, 1]), Some([1, 0]), Some([0, 1])]);
}

#[test]
fn the_servers_own_work_is_counted_in_its_units() {
    let checkpoint = |words: &str| {
        let words = format!("Checkpoint {words} for 25 seconds and wrote: 9000 pages (310 MB)");
        line("WTCHKPT", "WiredTiger message", &format!(r#"{{"message":{{"msg":"{words}"}}}}"#))
    };
    let log = [
        line("INDEX", "Index build: collection scan done", r#"{"totalRecords":9,"durationMillis":87000}"#),
        checkpoint("has been running"),
        checkpoint("ran"),
        line("NETWORK", "Connection accepted", "{}"),
    ];
    let server = read(&log.join("\n")).server;
    let figures: Vec<(&str, u128)> = server.figures.iter().map(|(name, figure)| (*name, figure.sum)).collect();
    let expected =
        [("index_build_scan_us", 87_000_000), ("long_checkpoint_megabytes", 310), ("long_checkpoint_us", 25_000_000)];
    assert_eq!(figures, expected);
    assert_eq!(server.counts, [("connections_accepted", 1)].into());
}

#[test]
fn only_the_end_of_a_cut_block_is_too_long() {
    let mut tally = Tally::new(holdup_sql::Dialect::MySql, Identity::Holdup, Select::default());
    let block = Block { data: b"nonsense\n{\"t\":{".to_vec(), offset: 100, cut: true, ..Block::default() };
    Mongod.read(&block, &mut tally);
    let told: Vec<_> = tally.problems.all().map(|(problem, count, at)| (problem, count, at[0].offset)).collect();
    assert_eq!(told, [(Problem::Malformed, 1, 100), (Problem::TooLong, 1, 109)]);
}
