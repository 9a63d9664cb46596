//! Documents of the shapes that servers of four versions have, by their manuals.

use holdup_recording::metrics::{Metric, mongodb as metric};

use super::*;
use crate::bson::Document;
use crate::versions::missing_sections;
use crate::writer::Writer;

/// The parts that all versions share.
fn head(version: &str) -> Writer {
    let counts = Writer::new().long("insert", 40).long("query", 30).long("update", 20).long("command", 90);
    let queue = Writer::new().int("total", 9).int("readers", 5).int("writers", 4);
    let clients = Writer::new().int("total", 14).int("readers", 8).int("writers", 6);
    let latency = |us: i64, ops: i64| Writer::new().long("latency", us).long("ops", ops);
    let waits = Writer::new().document("acquireWaitCount", Writer::new().long("W", 3));
    Writer::new()
        .text("host", "db1:27017")
        .text("version", version)
        .text("process", "mongod")
        .long("pid", 4_711)
        .double("uptime", 600.0)
        .time("localTime", 1_795_000_000_000)
        .document("connections", Writer::new().int("current", 51).int("available", 800).long("totalCreated", 77))
        .document("opcounters", counts)
        .document("opLatencies", Writer::new().document("reads", latency(2_500_000, 30)))
        .document("globalLock", Writer::new().document("currentQueue", queue).document("activeClients", clients))
        .document("locks", Writer::new().document("Global", waits))
        .document("network", Writer::new().long("bytesIn", 1_000).long("bytesOut", 2_000))
        .document("mem", Writer::new().int("bits", 64).int("resident", 3))
        .document("extra_info", Writer::new().long("page_faults", 12))
        .document("flowControl", Writer::new().bool("enabled", true).long("timeAcquiringMicros", 8))
        .document("metrics", {
            Writer::new().document("operation", Writer::new().long("scanAndOrder", 1).long("writeConflicts", 19))
        })
        .document("storageEngine", Writer::new().text("name", "wiredTiger"))
}

fn tickets() -> Writer {
    let pool = |out: i32| Writer::new().int("out", out).int("available", 128 - out).int("totalTickets", 128);
    Writer::new().document("write", pool(128)).document("read", pool(7))
}

fn cache() -> Writer {
    Writer::new()
        .long("bytes currently in the cache", 900)
        .long("maximum bytes configured", 1_000)
        .long("tracked dirty bytes in the cache", 200)
        .long("pages evicted by application threads", 6)
}

/// A status as a server of this version answers.
fn status_of(version: &str) -> Value {
    let mut cache = cache();
    let mut engine = Writer::new();
    let evicting = "application thread time evicting (usecs)";
    let mut whole = head(version);
    // `currentOp` alone shows builds of older servers.
    if ["7", "8"].iter().any(|major| version.starts_with(major)) {
        let phases = Writer::new().int("scanCollection", 3).int("commit", 2);
        whole = whole.document("indexBuilds", Writer::new().int("total", 4).document("phases", phases));
    }
    if version.starts_with('8') {
        cache = cache.long(evicting, 70);
        let checkpoint = Writer::new().long("most recent time (msecs)", 31).long("total time (msecs)", 700);
        engine = engine.document("checkpoint", checkpoint.int("progress state", 5));
        let execution = tickets().document("monitor", Writer::new().long("timesDecreased", 0));
        whole = whole.document("queues", Writer::new().document("execution", execution));
    } else {
        engine = engine
            .document("thread-yield", Writer::new().long(evicting, 70))
            .document("transaction", {
                let checkpoint = Writer::new().long("transaction checkpoint most recent time (msecs)", 31);
                let checkpoint = checkpoint.long("transaction checkpoint total time (msecs)", 700);
                checkpoint.int("transaction checkpoint currently running", 1)
            })
            .document("concurrentTransactions", tickets());
    }
    let bytes = whole.document("wiredTiger", engine.document("cache", cache)).double("ok", 1.0).finish();
    Document::read(&bytes).unwrap().value().unwrap()
}

fn value(found: &Status, metric: Metric) -> Option<f64> {
    found.figures.iter().find(|figure| figure.metric == metric.name).map(|figure| figure.value)
}

#[test]
fn one_name_for_what_moved_between_versions() {
    for version in ["4.4.29", "6.0.19", "7.0.15", "8.0.4"] {
        let document = status_of(version);
        let found = status(&document);
        let is = |metric, expected| assert_eq!(value(&found, metric), Some(expected), "{version}: {}", metric.name);
        is(metric::SERVER_STATUS_WIRED_TIGER_CONCURRENT_TRANSACTIONS_WRITE_OUT, 128.0);
        is(metric::SERVER_STATUS_WIRED_TIGER_CONCURRENT_TRANSACTIONS_WRITE_AVAILABLE, 0.0);
        is(metric::SERVER_STATUS_WIRED_TIGER_CONCURRENT_TRANSACTIONS_READ_OUT, 7.0);
        is(metric::SERVER_STATUS_WIRED_TIGER_CACHE_BYTES_CURRENTLY_IN_THE_CACHE, 900.0);
        is(metric::SERVER_STATUS_WIRED_TIGER_CACHE_PAGES_EVICTED_BY_APPLICATION_THREADS, 6.0);
        is(metric::SERVER_STATUS_WIRED_TIGER_THREAD_YIELD_APPLICATION_THREAD_TIME_EVICTING_USECS, 70.0);
        is(metric::SERVER_STATUS_GLOBAL_LOCK_CURRENT_QUEUE_WRITERS, 4.0);
        is(metric::SERVER_STATUS_EXTRA_INFO_PAGE_FAULTS, 12.0);
        is(metric::SERVER_STATUS_OPCOUNTERS_INSERT, 40.0);
        is(metric::SERVER_STATUS_WIRED_TIGER_TRANSACTION_TRANSACTION_CHECKPOINT_MOST_RECENT_TIME_MSECS, 31.0);
        is(metric::SERVER_STATUS_WIRED_TIGER_TRANSACTION_TRANSACTION_CHECKPOINT_TOTAL_TIME_MSECS, 700.0);
        let running = metric::SERVER_STATUS_WIRED_TIGER_TRANSACTION_TRANSACTION_CHECKPOINT_CURRENTLY_RUNNING;
        assert!(value(&found, running).is_some_and(|running| running > 0.0), "{version}");
        is(metric::SERVER_STATUS_METRICS_OPERATION_WRITE_CONFLICTS, 19.0);
        let builds = [metric::SERVER_STATUS_INDEX_BUILDS, metric::SERVER_STATUS_INDEX_BUILDS_PHASES_COMMIT];
        let counted = (!version.starts_with(['4', '6'])).then_some([4.0, 2.0]);
        assert_eq!([value(&found, builds[0]), value(&found, builds[1])], counted.map_or([None; 2], |it| it.map(Some)));
        is(metric::OPERATION_TIME, 2.5);
        is(metric::MEMORY_RESIDENT_BYTES, 3_145_728.0);
        assert_eq!(missing_sections(&document), [], "{version}");
        assert!(found.settings.contains(&("version", version.to_owned())));
        assert!(!found.figures.iter().any(|figure| figure.metric.contains("queues_execution")), "{version}");
    }
}

#[test]
fn missing_sections_are_named_by_version() {
    let bytes = Writer::new().text("version", "7.0.42").document("metrics", Writer::new().long("x", 1)).finish();
    let document = Document::read(&bytes).unwrap().value().unwrap();
    let missing = missing_sections(&document);
    assert_eq!(missing.len(), SECTIONS.len());
    assert!(missing.contains(&("tickets", "wiredTiger.concurrentTransactions".to_owned())), "{missing:?}");
    let newer = Value::Map(vec![("version".to_owned(), Value::Text("8.0.1".to_owned()))]);
    assert!(missing_sections(&newer).contains(&("tickets", "queues.execution".to_owned())));
}

#[test]
fn a_status_without_end_is_bounded() {
    let many = (0..2 * FIGURES_MAX).fold(Writer::new(), |all, n| all.int(&format!("n{n}"), 1));
    let bytes = Writer::new().document("metrics", many).finish();
    assert_eq!(status(&Document::read(&bytes).unwrap().value().unwrap()).figures.len(), FIGURES_MAX);
}
