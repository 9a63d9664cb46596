//! The source `mongodb:` on FerretDB, a real server of MongoDB's protocol with an account: what it
//! shows is recorded, and what it lacks is in the coverage. Where it cannot be built the tests say so and
//! pass, unless `CI` is set.

use std::time::{Duration, Instant};

use holdup_collect::watch::{Options, collector};
use holdup_collect::{Collector, ProbeError};
use holdup_mongodb::Writer;
use holdup_recording::metrics::{Metric, mongodb as metric};
use holdup_recording::{Batch, Coverage, CoverageState};

use holdup_testing::ferretdb::{CANARY, Server};

/// For whatever only has to happen at some time.
const PATIENCE: Duration = Duration::from_secs(60);

fn watch(address: &str) -> Box<dyn Collector> {
    collector(address, &Options::default()).unwrap()
}

fn value(batch: &Batch, metric: Metric, labels: &[(&str, &str)]) -> Option<f64> {
    batch.samples.iter().find(|s| s.metric == metric.name && s.labels.contains(labels)).map(|s| s.value)
}

fn part<'c>(coverage: &'c [Coverage], name: &str) -> &'c Coverage {
    let found = coverage.iter().find(|entry| entry.source.ends_with(name));
    found.unwrap_or_else(|| panic!("no {name} in {coverage:#?}"))
}

/// Three documents in `shop.orders`.
fn fill(server: &Server) {
    let mut client = server.client();
    let documents = (0..3).fold(Writer::new(), |list, n| {
        list.document(&n.to_string(), Writer::new().int("_id", n).text("email", CANARY))
    });
    client.run("shop", Writer::new().text("insert", "orders").list_of("documents", documents));
}

#[test]
fn the_coverage_names_the_parts_that_ferretdb_lacks() {
    let Some(server) = Server::start() else { return };
    fill(&server);
    let mut source = watch(&server.address("holdup"));
    let coverage = source.probe().unwrap();

    let status = part(&coverage, " serverStatus");
    let why = status.why.as_deref().unwrap();
    assert_eq!(status.state, CoverageState::Partial);
    assert!(why.contains("operation counters (opcounters)") && why.contains("wiredTiger.cache"), "{why}");
    for lacking in [" use of collections", " indexes", " replica set"] {
        let entry = part(&coverage, lacking);
        assert_eq!(entry.state, CoverageState::Absent, "{entry:?}");
        assert!(entry.why.as_deref().unwrap().starts_with("the server does not have it"), "{entry:?}");
        assert_eq!(entry.enable, None, "no grant would help");
    }
    let complete = [" operations", " collections", " parameters", " options"];
    let is_one = |entry: &&Coverage| complete.iter().any(|part| entry.source == format!("{}{part}", server.source()));
    assert_eq!(coverage.iter().find(is_one), None, "what can be read has no line of its own");

    let mut batch = Batch::default();
    source.settings(&mut batch).unwrap();
    assert!(batch.settings.iter().any(|it| it.name == "version" && it.value.starts_with("7.0")), "{batch:?}");
    assert!(batch.settings.iter().any(|it| it.name == "process" && it.value == "ferretdb"), "{batch:?}");
    source.sample(&mut batch).unwrap();
    assert!(value(&batch, metric::UPTIME, &[]).unwrap() >= 0.0);
    let orders = [("database", "shop"), ("collection", "orders")];
    assert_eq!(value(&batch, metric::COLLECTION_OBJECTS, &orders), Some(3.0));
    assert!(value(&batch, metric::COLLECTION_DATA_BYTES, &orders).unwrap() > 0.0);
    assert!(value(&batch, metric::INDEX_BYTES, &[("index", "_id_")]).is_some());
    let inserts = batch.samples.iter().find(|s| s.metric.ends_with("metrics_commands_insert_total"));
    assert!(inserts.is_some_and(|sample| sample.value >= 1.0));
    assert!(batch.samples.iter().all(|sample| sample.source == server.source()));
    assert!(!format!("{batch:?} {coverage:?}").contains(CANARY));

    // What it lacks is not asked again: its own count of commands tells.
    let before = unknown_commands(&batch);
    for _ in 0..3 {
        batch = Batch::default();
        source.sample(&mut batch).unwrap();
    }
    assert_eq!(unknown_commands(&batch), before, "no sample asked for what the server does not know");
}

/// Commands that FerretDB counted as failed.
fn unknown_commands(batch: &Batch) -> f64 {
    let failed = |name: &str| name.contains("metrics_commands_") && name.ends_with("_failed");
    batch.samples.iter().filter(|sample| failed(&sample.metric)).map(|sample| sample.value).sum()
}

#[test]
fn accounts_that_are_wrong_or_missing() {
    let Some(server) = Server::start() else { return };
    let wrong = watch(&format!("mongodb://holdup:{CANARY}x@127.0.0.1:{}/?authSource=accounts", server.port));
    let denied = { wrong }.probe().unwrap_err();
    assert!(matches!(denied, ProbeError::Denied { .. }), "{denied:?}");
    assert!(!denied.to_string().contains(CANARY) && denied.to_string().contains("User holdup"), "{denied}");
    let none = watch(&format!("mongodb://127.0.0.1:{}", server.port)).probe().unwrap_err();
    assert!(none.to_string().contains("USER@"), "{none}");
    // With --partial the rest is read, and the coverage names the grant.
    let partial = Options { partial: true, ..Options::default() };
    let mut some = collector(&format!("mongodb://127.0.0.1:{}", server.port), &partial).unwrap();
    let coverage = some.probe().unwrap();
    for lacking in [" serverStatus", " operations", " parameters"] {
        let enable = part(&coverage, lacking).enable.as_deref();
        assert!(enable.is_some_and(|grant| grant.contains("clusterMonitor")), "{coverage:?}");
    }
    some.settings(&mut Batch::default()).unwrap();
    let nothing = watch(&format!("mongodb://127.0.0.1:{}", holdup_testing::free_port())).probe().unwrap_err();
    assert!(matches!(nothing, ProbeError::Unreachable { .. }), "{nothing:?}");
}

#[test]
fn a_server_that_hangs_is_a_gap_and_comes_back() {
    let Some(server) = Server::start() else { return };
    let mut source = watch(&format!("{}&log=/nonexistent/mongod.log", server.address("holdup")));
    let coverage = source.probe().unwrap();
    assert_eq!(part(&coverage, " log").state, CoverageState::Absent);
    // The first collection came after the probe. The log is not asked for again.
    fill(&server);
    let mut batch = Batch::default();
    source.sample(&mut batch).unwrap();
    assert_eq!(value(&batch, metric::COLLECTION_OBJECTS, &[("collection", "orders")]), Some(3.0));
    server.stop();
    for _ in 0..3 {
        let begun = Instant::now();
        assert!(source.sample(&mut Batch::default()).is_err());
        assert!(begun.elapsed() < PATIENCE / 2, "a sample waits for a limited time");
    }
    server.signal(libc::SIGCONT);
    let deadline = Instant::now() + PATIENCE;
    while source.sample(&mut Batch::default()).is_err() {
        assert!(Instant::now() < deadline, "it answers again");
        std::thread::sleep(Duration::from_millis(200));
    }
}
