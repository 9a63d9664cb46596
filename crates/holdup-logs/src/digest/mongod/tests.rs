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
