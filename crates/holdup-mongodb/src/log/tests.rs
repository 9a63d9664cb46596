//! Lines as releases from 3.2 to 8.0 write them, with values that must not come through.

use super::*;

const JSON: &str = r#"{"t":{"$date":"2026-11-26T10:05:23.411+00:00"},"s":"I",  "c":"COMMAND",  "id":51803,   "ctx":"conn53","msg":"Slow query","attr":{"type":"command","ns":"shop.orders","appName":"web","command":{"find":"orders","filter":{"status":"canary","total":{"$gt":{"$numberLong":"5"}},"_id":{"$oid":"canary"}},"sort":{"at":-1},"comment":"traceparent='00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01'","lsid":{"id":{"$uuid":"canary"}},"$db":"shop"},"planSummary":"IXSCAN { status: 1, at: -1 }","keysExamined":900,"docsExamined":800,"hasSortStage":true,"usedDisk":true,"writeConflicts":3,"numYields":7,"nreturned":101,"reslen":17738,"locks":{"Global":{"acquireCount":{"r":8}},"Collection":{"acquireCount":{"r":8},"acquireWaitCount":{"r":1},"timeAcquiringMicros":{"r":1500,"w":500}}},"flowControl":{"acquireCount":1,"timeAcquiringMicros":2},"storage":{"data":{"bytesRead":232899899,"timeReadingMicros":186017},"timeWaitingMicros":{"cache":849}},"cpuNanos":41000,"remote":"10.0.0.9:41352","protocol":"op_msg","queues":{"execution":{"admissions":8,"totalTimeQueuedMicros":77}},"durationMillis":345}}"#;

const TEXT: &str = r#"2020-08-07T10:59:24.224+0800 I  COMMAND  [conn1730] command shop.orders appName: "MongoDB Shell" command: find { find: "orders", filter: { status: "canary", at: { $gte: new Date(1596769058) }, id: UUID("canary") }, limit: 5.0, $db: "shop" } planSummary: IXSCAN { status: 1 }, IXSCAN { at: -1 } keysExamined:254713 docsExamined:2547 fromMultiPlanner:1 cursorExhausted:1 numYields:2213 nreturned:75 reslen:289780 locks:{ Global: { acquireCount: { r: 2214 } }, Collection: { acquireCount: { r: 2214 }, timeAcquiringMicros: { r: 900 } } } storage:{ data: { bytesRead: 15335932371, timeReadingMicros: 10566758 }, timeWaitingMicros: { cache: 56 } } protocol:op_msg 11597ms"#;

fn slow(line: &str) -> (Logged, SlowOperation) {
    let logged = logged(line).unwrap();
    let LogLine::Slow(slow) = logged.line.clone() else { panic!("{logged:?}") };
    assert!(!format!("{slow:?}").contains("canary"), "{slow:?}");
    (logged, *slow)
}

#[test]
fn json_of_a_slow_find() {
    let (logged, slow) = slow(JSON);
    assert_eq!((logged.at, logged.connection, logged.zone_seconds), (1_795_687_523_411_000_000, Some(53), 0));
    assert_eq!(slow.shape, "find shop.orders filter { status: ?, total: { $gt: ? }, _id: ? } sort { at: ? }");
    assert_eq!((slow.duration_ns, slow.database.as_str(), slow.error), (345_000_000, "shop", None));
    assert_eq!(slow.plan.as_deref(), Some("IXSCAN { status: 1, at: -1 }"));
    assert_eq!((slow.is_scan, slow.has_sort, slow.used_disk), (false, true, true));
    let counts = ["documents_examined", "keys_examined", "returned", "write_conflicts"].map(|name| slow.count(name));
    assert_eq!(counts, [Some(800), Some(900), Some(101), Some(3)]);
    let times = ["storage_read", "cache_wait", "lock_wait", "ticket_wait", "cpu"].map(|name| slow.time_ns(name));
    assert_eq!(times, [Some(186_017_000), Some(849_000), Some(2_000_000), Some(77_000), Some(41_000)]);
    assert_eq!((slow.client.as_deref(), slow.application.as_deref()), (Some("10.0.0.9:41352"), Some("web")));
    assert_eq!(slow.trace_id.as_deref(), Some("5bd66ef5095369c7b0d1f8f4bd33716a"));
}

#[test]
fn text_of_a_slow_find() {
    let (logged, slow) = slow(TEXT);
    assert_eq!((logged.at, logged.connection), (1_596_769_164_224_000_000, Some(1730)));
    assert_eq!(logged.zone_seconds, 8 * 3_600);
    assert_eq!(slow.shape, "find shop.orders filter { status: ?, at: { $gte: ? }, id: ? }");
    assert_eq!(slow.plan.as_deref(), Some("IXSCAN { status: 1 }, IXSCAN { at: -1 }"));
    assert_eq!((slow.duration_ns, slow.count("documents_examined")), (11_597_000_000, Some(2547)));
    assert_eq!((slow.time_ns("storage_read"), slow.time_ns("lock_wait")), (Some(10_566_758_000), Some(900_000)));
}

#[test]
fn writes_cursors_and_failures() {
    let json = |attr: &str| {
        let head = r#"{"t":{"$date":"2026-11-26T10:05:23.411Z"},"s":"I","c":"WRITE","id":51803,"ctx":"conn1","msg":"Slow query","attr":"#;
        slow(&format!("{head}{attr}}}")).1
    };
    let update = json(
        r#"{"type":"update","ns":"shop.item","command":{"q":{"a":"canary"},"u":{"$set":{"b":"canary"}},"multi":true,"upsert":false},"planSummary":"COLLSCAN","nMatched":9,"nModified":4,"durationMillis":1100}"#,
    );
    assert_eq!((update.shape.as_str(), update.is_scan), ("update shop.item q { a: ? } u { $set: { b: ? } }", true));
    assert_eq!(update.changed(), 4);
    let batch = json(
        r#"{"type":"command","ns":"shop.$cmd","command":{"delete":"item","ordered":true,"$db":"shop"},"numYields":0,"durationMillis":120}"#,
    );
    assert_eq!(batch.shape, "delete shop.item");
    let more = json(
        r#"{"type":"command","ns":"shop.item","command":{"getMore":71,"collection":"item","$db":"shop"},"originatingCommand":{"aggregate":"item","pipeline":[{"$match":{"a":"canary"}}],"$db":"shop"},"planSummary":"COLLSCAN","nreturned":5,"durationMillis":101}"#,
    );
    assert_eq!(more.shape, "aggregate shop.item pipeline [{ $match: { a: ? } }]");
    let failed = json(
        r#"{"type":"command","ns":"shop.item","command":{"find":"item","filter":{}},"ok":0,"errMsg":"canary","errName":"MaxTimeMSExpired","errCode":50,"durationMillis":2000}"#,
    );
    assert_eq!(failed.error, Some(50));
    let head = "2016-09-14T23:36:36.793+0000 I WRITE    [conn61] ";
    let remove = slow(&format!(
        "{head}remove shop.item query: {{ name: \"canary\" }} planSummary: COLLSCAN keysExamined:0 docsExamined:4 ndeleted:2 numYields:0 locks:{{}} 50413ms"
    ));
    assert_eq!(remove.1.shape, "delete shop.item query { name: ? }");
    assert_eq!((remove.1.changed(), remove.1.is_scan), (2, true));
    // A long line has a hole; a literal of it looks like a figure.
    let cut = slow(&format!(
        "{head}command shop.item command: insert {{ insert: \"item\", documents: [ {{ a: \"planSummary: canary docsExamined:9 .......... numYields:3 nreturned:1 reslen:44 locks:{{}} protocol:op_msg 150ms"
    ));
    assert_eq!((cut.1.shape.as_str(), cut.1.count("yields")), ("command shop.item", Some(3)));
    assert_eq!((cut.1.count("documents_examined"), cut.1.plan), (None, None));
}

#[test]
fn the_servers_own_work_is_read() {
    let json = |component: &str, words: &str, attr: &str| {
        let line = format!(
            r#"{{"t":{{"$date":"2026-11-26T10:00:00.000+00:00"}},"s":"I","c":"{component}","id":1,"ctx":"conn2","msg":"{words}","attr":{attr}}}"#
        );
        logged(&line).unwrap().line
    };
    let message = LogLine::Message;
    let built = json("INDEX", "Index build: done building", r#"{"namespace":"shop.item","index":"a_1"}"#);
    assert_eq!(built, message(Message::IndexDone("shop.item".to_owned())));
    let scanned = json("INDEX", "Index build: collection scan done", r#"{"totalRecords":9,"durationMillis":87000}"#);
    assert_eq!(scanned, message(Message::IndexScanned(87_000_000_000)));
    let checkpoint = |is_over| Message::Checkpoint { seconds: 25, megabytes: 310, is_over };
    let words = "Checkpoint ran for 25 seconds and wrote: 9000 pages (310 MB)";
    let new = json("WTCHKPT", "WiredTiger message", &format!(r#"{{"message":{{"ts_sec":1,"msg":"{words}"}}}}"#));
    assert_eq!(new, message(checkpoint(true)));
    let old = json(
        "STORAGE",
        "WiredTiger message",
        &format!(r#"{{"message":"[1:2][1:0x7f], WT_SESSION.checkpoint: {words}"}}"#),
    );
    assert_eq!(old, message(checkpoint(true)));
    assert_eq!(json("NETWORK", "Connection accepted", r#"{"remote":"canary"}"#), message(Message::Connected));
    assert_eq!(json("CONTROL", "MongoDB starting", "{}"), LogLine::Other);
    let text = |words: &str| logged(&format!("2020-08-07T10:59:24.224+0800 I  INDEX    [conn9] {words}")).unwrap().line;
    let begun =
        "index build: starting on shop.item properties: { v: 2, key: { a: 1.0 }, name: \"a_1\" } using method: Hybrid";
    assert_eq!(text(begun), message(Message::IndexBegun("shop.item".to_owned())));
    let scanned = "index build: collection scan done. scanned 10442730 total records in 87 seconds";
    assert_eq!(text(scanned), message(Message::IndexScanned(87_000_000_000)));
    let running = "WiredTiger message [1:2][3:4], WT_SESSION.checkpoint: Checkpoint has been running for 25 seconds and wrote: 9 pages (310 MB)";
    assert_eq!(text(running), message(checkpoint(false)));
}

#[test]
fn cut_and_hostile_lines_are_survived() {
    for line in [JSON, TEXT] {
        for end in (0..line.len()).filter(|end| line.is_char_boundary(*end)) {
            if let Some(Logged { line: LogLine::Slow(slow), .. }) = logged(&line[..end]) {
                assert!(!format!("{slow:?}").contains("canary"), "{end}");
            }
        }
    }
    for line in ["", "{", "{\"t\":{\"$date\":\"x\"}}", "2026-11-26T10:00:00Z I", "hello world 5ms", "{\"a\":1}"] {
        assert_eq!(logged(line), None, "{line}");
    }
}
