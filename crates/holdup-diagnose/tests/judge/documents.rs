//! MongoDB by a minute of its own status, a document a second of the shape that servers of 7.0 answer: faults that it shows, and
//! for each a decoy with the same symptom.

use holdup_diagnose::verdict::{Answer, Role};
use holdup_diagnose::{Diagnosis, diagnose};
use holdup_mongodb::{Document, Writer, status};
use holdup_recording::rows::Sample;
use holdup_signals::testing::SyntheticRecording;

const SECONDS: i64 = 60;
/// From then on operations are slow.
const ONSET: i64 = 30;
const RATE: f64 = 200.0;

/// What the server does from the onset on. Before it, an operation takes 2 ms, of what it always does.
#[derive(Clone, Copy)]
struct Fault {
    /// Time of an operation, milliseconds.
    took_ms: f64,
    /// Operations that wait to read, and tickets that are left to them.
    queued: i32,
    left: i32,
    /// Time of an operation in reads and in waits for the cache, milliseconds.
    reads_ms: f64,
    evicts_ms: f64,
    /// Shares of the cache in use and changed, and pages that an operation reads into it.
    used: f64,
    changed: f64,
    pages: f64,
    /// Documents examined for each that is returned.
    examined: f64,
    /// Time of an operation until the secondaries have it, milliseconds.
    acknowledged_ms: f64,
    /// Whether operations write, and how many others a write meets.
    writes: bool,
    conflicts: f64,
    /// Connections that are opened a second.
    opened: f64,
    /// An index build lasts from the first second to the second.
    build: (i64, i64),
    /// Seconds of each 20 for which a checkpoint runs, and whether operations are slow only then.
    checkpoint: i64,
    stalls: bool,
    /// Reads of the disk a second, and milliseconds of each.
    disk: (f64, f64),
}

const SLOW: Fault = Fault {
    took_ms: 102.0,
    queued: 0,
    left: 120,
    reads_ms: 0.0,
    evicts_ms: 0.0,
    used: 0.6,
    changed: 0.02,
    pages: 0.0,
    examined: 1.0,
    acknowledged_ms: 0.0,
    writes: false,
    conflicts: 0.0,
    opened: 0.0,
    build: (0, 0),
    checkpoint: 1,
    stalls: false,
    disk: (2.0, 1.0),
};

impl Fault {
    /// Whether a checkpoint runs in the second that ends then.
    fn is_checkpoint(&self, second: i64) -> bool {
        second % 20 > 0 && second % 20 <= if second > ONSET { self.checkpoint } else { 1 }
    }

    /// Microseconds that all operations took until then.
    fn took_us(&self, second: i64) -> i64 {
        let is_slow = |s: i64| s > ONSET && (!self.stalls || self.is_checkpoint(s));
        let took = (1..=second).map(|s| if is_slow(s) { self.took_ms } else { 2.0 }).sum::<f64>();
        (RATE * took * 1e3) as i64
    }
}

/// The server's answer at a second.
fn answer(second: i64, fault: &Fault) -> Writer {
    let is_late = second >= ONSET;
    // A counter that grows by `each` for an operation, from the onset on by `more` as well.
    let total = |each: f64, more: f64| (RATE * (each * second as f64 + more * (second - ONSET).max(0) as f64)) as i64;
    let now = |usual: f64, then: f64| if is_late { then } else { usual };
    let (queued, left) = if is_late { (fault.queued, fault.left) } else { (0, 120) };
    let pool = |left: i32| Writer::new().int("out", 128 - left).int("available", left).int("totalTickets", 128);
    let latency = |us: i64, ops: i64| Writer::new().long("latency", us).long("ops", ops);
    let cache = Writer::new()
        .long("application threads page read from disk to cache time (usecs)", total(0.0, fault.reads_ms * 1e3))
        .long("application threads page write from cache to disk time (usecs)", 0)
        .long("bytes currently in the cache", (now(0.6, fault.used) * 1e9) as i64)
        .long("bytes read into cache", total(0.0, fault.pages * 32_768.0))
        .long("maximum bytes configured", 1_000_000_000)
        .long("pages evicted by application threads", 0)
        .long("pages read into cache", total(0.0, fault.pages))
        .long("tracked dirty bytes in the cache", (now(0.02, fault.changed) * 1e9) as i64);
    let blocks = Writer::new()
        .long("blocks read", total(0.0, fault.pages))
        .long("bytes read", total(0.0, fault.pages * 8_192.0));
    let yields = Writer::new()
        .long("application thread time evicting (usecs)", total(0.0, fault.evicts_ms * 1e3))
        .long("application thread time waiting for cache (usecs)", total(0.0, fault.evicts_ms * 1e3));
    let engine = Writer::new()
        .document("block-manager", blocks)
        .document("cache", cache)
        .document("concurrentTransactions", Writer::new().document("write", pool(120)).document("read", pool(left)))
        .document("thread-yield", yields);
    let waited = Writer::new().long("num", total(0.5, 0.0)).long("totalMillis", total(0.5, fault.acknowledged_ms));
    let checkpoints_ms = 1_000 * (1..=second).filter(|s| fault.is_checkpoint(*s)).count() as i64;
    let checkpoint = Writer::new()
        .int("transaction checkpoint currently running", i32::from(fault.is_checkpoint(second)))
        .long("transaction checkpoint total time (msecs)", checkpoints_ms);
    let engine = engine.document("transaction", checkpoint);
    let metrics = Writer::new()
        .document("operation", Writer::new().long("writeConflicts", total(0.0, fault.conflicts)))
        .document("document", Writer::new().long("deleted", 0).long("returned", total(1.0, 0.0)).long("updated", 0))
        .document("getLastError", Writer::new().document("wtime", waited))
        .document(
            "queryExecutor",
            Writer::new().long("scanned", total(1.0, 0.0)).long("scannedObjects", total(1.0, fault.examined - 1.0)),
        );
    Writer::new()
        .text("host", "db1:27017")
        .text("version", "7.0.14")
        .text("process", "mongod")
        .double("uptime", 86_400.0 + second as f64)
        .document("connections", {
            let opened = (fault.opened * (second - ONSET).max(0) as f64) as i32;
            let open = Writer::new().int("current", 51 + opened).int("available", 51_149 - opened);
            open.long("totalCreated", 60 + i64::from(opened)).long("rejected", 0)
        })
        .document("flowControl", Writer::new().bool("enabled", true).long("timeAcquiringMicros", total(1.0, 0.0)))
        .document("globalLock", {
            let queue = Writer::new().int("total", queued).int("readers", queued).int("writers", 0);
            Writer::new().document("currentQueue", queue)
        })
        .document("metrics", metrics)
        .document("indexBuilds", {
            let (began, ended) = (i32::from(second >= fault.build.0), i32::from(second >= fault.build.1));
            let phases = Writer::new().int("scanCollection", 2 + began).int("commit", 1 + ended);
            Writer::new().int("total", 2 + began).document("phases", phases)
        })
        .document("opLatencies", {
            let (all, none) = (latency(fault.took_us(second), total(1.0, 0.0)), latency(0, 0));
            let (reads, writes) = if fault.writes { (none, all) } else { (all, none) };
            Writer::new().document("reads", reads).document("writes", writes)
        })
        .document("wiredTiger", engine)
        .double("ok", 1.0)
}

fn judged(fault: Fault) -> Diagnosis {
    let (reads, ms) = fault.disk;
    let made = SyntheticRecording::new(SECONDS)
        .disk("vda", (reads, 8_192.0, ms), (1.0, 8_192.0, 1.0))
        .gauge("host", "system_cpu_logical_count", &[], 8.0)
        .counter("host", "system_cpu_time_seconds_total", &[("cpu_mode", "user")], 1.0)
        .counter("host", "system_cpu_time_seconds_total", &[("cpu_mode", "idle")], 7.0)
        .tables(|tables| {
            for second in 0..=SECONDS {
                let bytes = answer(second, &fault).finish();
                let document = Document::read(&bytes).unwrap().value().unwrap();
                tables.samples.rows.extend(status(&document).figures.into_iter().map(|figure| Sample {
                    observed_at: second * 1_000_000_000,
                    source: "mongodb://diagnostic.data".into(),
                    metric: figure.metric,
                    labels: figure.labels,
                    value: figure.value,
                    ..Sample::default()
                }));
            }
        });
    let diagnosis = diagnose(made.recording(), None);
    for piece in diagnosis.findings.iter().flat_map(|finding| &finding.evidence) {
        assert!(piece.resolves(made.recording()), "{piece:?}");
    }
    diagnosis
}

/// The culprit, and the symptoms that follow from it.
fn named(fault: Fault) -> (Option<String>, Vec<String>) {
    let diagnosis = judged(fault);
    let symptoms = diagnosis.findings.iter().filter(|finding| finding.role == Role::Symptom);
    let symptoms = symptoms.map(|finding| finding.cause.slug().to_owned()).collect();
    (diagnosis.likeliest().map(|finding| finding.cause.slug().to_owned()), symptoms)
}

fn is_found(diagnosis: &Diagnosis, cause: &str) -> bool {
    diagnosis.findings.iter().any(|finding| finding.cause.slug() == cause)
}

#[test]
fn data_that_do_not_fit_keep_tickets_and_the_queue_is_a_symptom() {
    let fault = Fault { queued: 12, left: 0, reads_ms: 38.0, used: 0.81, pages: 2.0, disk: (400.0, 19.0), ..SLOW };
    let (culprit, symptoms) = named(fault);
    assert_eq!(culprit.as_deref(), Some("working_set_exceeds_memory"));
    assert!(symptoms.contains(&"tickets_exhausted".to_owned()), "{symptoms:?}");
    // The same reads past a cache with room are the first after a restart.
    assert!(!is_found(&judged(Fault { used: 0.3, ..fault }), "working_set_exceeds_memory"));
}

#[test]
fn tickets_that_are_gone_are_the_root_if_nothing_below_keeps_them() {
    let fault = Fault { queued: 20, left: 0, ..SLOW };
    assert_eq!(named(fault).0.as_deref(), Some("tickets_exhausted"));
    // A lock on everything makes the same queue, and leaves tickets.
    assert!(!is_found(&judged(Fault { left: 100, ..fault }), "tickets_exhausted"));
}

#[test]
fn operations_that_evict_wait_for_changed_pages() {
    let fault = Fault { evicts_ms: 95.0, used: 0.9, changed: 0.21, ..SLOW };
    assert_eq!(named(fault).0.as_deref(), Some("flush_storm"));
    assert!(!is_found(&judged(Fault { changed: 0.03, ..fault }), "flush_storm"));
}

#[test]
fn documents_that_are_read_for_few_lack_an_index() {
    let fault = Fault { examined: 60_000.0, ..SLOW };
    assert_eq!(named(fault).0.as_deref(), Some("missing_index"));
    assert!(!is_found(&judged(Fault { examined: 8.0, ..fault }), "missing_index"));
}

#[test]
fn writes_that_wait_for_secondaries_are_named() {
    let fault = Fault { acknowledged_ms: 95.0, ..SLOW };
    assert_eq!(named(fault).0.as_deref(), Some("replication_wait"));
    assert!(!is_found(&judged(Fault { acknowledged_ms: 3.0, ..fault }), "replication_wait"));
}

#[test]
fn writes_that_meet_each_other_are_made_again() {
    let fault = Fault { writes: true, conflicts: 4.0, ..SLOW };
    assert_eq!(named(fault).0.as_deref(), Some("lock_contention"));
    // A slow disk makes each try longer, and not more of them.
    assert!(!is_found(&judged(Fault { conflicts: 0.02, ..fault }), "lock_contention"));
}

#[test]
fn operations_that_are_slow_while_a_checkpoint_runs_wait_for_it() {
    let fault = Fault { checkpoint: 9, stalls: true, changed: 0.08, ..SLOW };
    assert_eq!(named(fault).0.as_deref(), Some("flush_storm"));
    assert!(!is_found(&judged(Fault { stalls: false, ..fault }), "flush_storm"), "as slow between");
}

#[test]
fn an_index_build_that_began_with_the_delay_is_the_reason() {
    let fault = Fault { build: (ONSET, SECONDS + 1), pages: 2.0, ..SLOW };
    assert_eq!(named(fault).0.as_deref(), Some("backup_or_bulk_load"));
    assert!(!is_found(&judged(Fault { build: (4, 26), ..fault }), "backup_or_bulk_load"), "it had ended");
}

#[test]
fn many_connections_at_once_are_the_reason_unless_operations_are_slow_for_another() {
    let fault = Fault { opened: 90.0, ..SLOW };
    assert_eq!(named(fault).0.as_deref(), Some("connection_storm"));
    assert!(!is_found(&judged(Fault { opened: 0.0, ..fault }), "connection_storm"), "a steady pool");
    // Pools grow because their connections are used longer.
    let (culprit, symptoms) = named(Fault { reads_ms: 90.0, used: 0.81, pages: 2.0, disk: (400.0, 45.0), ..fault });
    assert_eq!(culprit.as_deref(), Some("working_set_exceeds_memory"));
    assert!(symptoms.contains(&"connection_storm".to_owned()), "{symptoms:?}");
}

#[test]
fn a_server_as_quick_as_ever_has_no_culprit() {
    let quiet = judged(Fault { took_ms: 2.0, ..SLOW });
    assert!(quiet.culprit.is_none() && quiet.verdict != Answer::Found, "{}", quiet.headline);
}
