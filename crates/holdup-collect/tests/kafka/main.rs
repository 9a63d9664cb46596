//! `--watch kafka:` on a real broker: lag of known truth, groups, rights, and a broker that dies. It is one
//! test, because the broker takes longer to start than all of it.

mod client;

use std::time::{Duration, Instant};

use holdup_collect::Collector;
use holdup_collect::watch::{Options, collector};
use holdup_recording::{Batch, CoverageState, clock};
use holdup_testing::kafka::{ACCOUNT, Broker};
use holdup_testing::{PASSWORD, PATIENCE};

use self::client::Client;

const TOPIC: &str = "orders";
const GROUP: &str = "index";

fn watch(address: &str) -> Box<dyn Collector> {
    collector(address, &Options::default()).expect("an address")
}

fn sampled(source: &mut dyn Collector) -> Batch {
    let mut batch = Batch::default();
    source.sample(&mut batch).unwrap();
    batch
}

/// Samples until `enough` says so.
fn until(source: &mut dyn Collector, what: &str, enough: impl Fn(&Batch) -> bool) -> Batch {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut batch = Batch::default();
        let result = source.sample(&mut batch);
        if enough(&batch) {
            return batch;
        }
        assert!(Instant::now() < deadline, "no {what}: {result:?} {:?}", batch.samples);
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn value(batch: &Batch, metric: &str) -> Option<f64> {
    batch.samples.iter().find(|sample| sample.metric == metric).map(|sample| sample.value)
}

#[track_caller]
fn assert_near(batch: &Batch, seconds: f64) {
    let lag = value(batch, "kafka_lag_seconds").expect("a lag");
    assert!((lag - seconds).abs() <= 0.05 * seconds, "{lag} s for {seconds} s");
}

#[test]
fn lag_groups_and_a_dead_broker_are_read_as_they_are() {
    let Some(mut broker) = Broker::start() else { return };
    let address = format!("kafka://127.0.0.1:{}", broker.port);
    let mut client = Client::new(broker.port);
    client.create(TOPIC, 3);
    lags_of_known_truth(&mut client, &address);
    a_member_that_joins_is_a_rebalance(&mut client, &address);
    accounts_and_what_each_may_not(&broker, &mut client);
    a_killed_broker_is_a_gap_until_it_is_back(&mut broker, &address);
}

/// One record a second in each partition for the last 10 minutes.
fn lags_of_known_truth(client: &mut Client, address: &str) {
    let now = clock::now_ns() / 1_000_000;
    let times: Vec<i64> = (1..=600).rev().map(|age| now - age * 1_000).collect();
    (0..3).for_each(|partition| client.produce(TOPIC, partition, &times));
    client.commit(GROUP, TOPIC, &[(0, 300), (1, 580), (2, 600)]);
    let mut source = watch(address);
    let coverage = source.probe().unwrap();
    assert!(coverage.iter().all(|line| line.state == CoverageState::Complete), "{coverage:?}");
    let since = |age: f64| age + (clock::now_ns() / 1_000_000 - now) as f64 / 1e3;
    let first = sampled(&mut *source);
    assert_near(&first, since(300.0));
    for (metric, truth) in [
        ("kafka_end_offset", 1_800.0),
        ("kafka_committed_offset", 1_480.0),
        ("kafka_backlog", 320.0),
        ("kafka_worst_partition", 0.0),
        ("kafka_worst_partition_backlog", 300.0),
    ] {
        assert_eq!(value(&first, metric), Some(truth), "{metric}");
    }
    // The next committed offset is one that no question was about.
    client.commit(GROUP, TOPIC, &[(0, 450), (1, 590)]);
    let next = until(&mut *source, "lag", |batch| value(batch, "kafka_lag_seconds").is_some_and(|lag| lag < 250.0));
    assert_near(&next, since(150.0));
    // Records that came while holdup watched are dated by its own samples.
    client.commit(GROUP, TOPIC, &[(0, 600), (1, 600), (2, 600)]);
    assert_eq!(value(&sampled(&mut *source), "kafka_lag_seconds"), Some(0.0));
    let came = Instant::now();
    client.produce(TOPIC, 2, &[now - 3_600_000]);
    sampled(&mut *source);
    std::thread::sleep(Duration::from_millis(1_500));
    let lag = value(&sampled(&mut *source), "kafka_lag_seconds").unwrap();
    assert!((lag - came.elapsed().as_secs_f64()).abs() < 1.0, "{lag} s for {:?}", came.elapsed());
    client.commit(GROUP, TOPIC, &[(2, 601)]);
}

fn a_member_that_joins_is_a_rebalance(client: &mut Client, address: &str) {
    let mut source = watch(address);
    source.probe().unwrap();
    let before = until(&mut *source, "members", |batch| value(batch, "kafka_group_members").is_some());
    assert_eq!(value(&before, "kafka_group_members"), Some(0.0));
    client.join(GROUP, TOPIC);
    let after = until(&mut *source, "rebalance", |batch| !batch.events.is_empty());
    assert_eq!(value(&after, "kafka_group_members"), Some(1.0));
    assert_eq!(value(&after, "kafka_group_rebalances_total"), Some(1.0));
    assert_eq!(after.events[0].kind, "rebalance");
    assert_eq!(value(&sampled(&mut *source), "kafka_group_members"), None, "members are not read again at once");
}

fn accounts_and_what_each_may_not(broker: &Broker, client: &mut Client) {
    let address =
        |password: &str, port: u16, options: &str| format!("kafka://{ACCOUNT}:{password}@127.0.0.1:{port}?{options}");
    let shy = watch(&address(PASSWORD, broker.sasl, "")).probe().unwrap();
    assert!(
        shy.iter().any(|line| line.enable.as_ref().is_some_and(|how| how.contains("--operation Describe"))),
        "{shy:?}"
    );
    client.allow_to_describe(ACCOUNT);
    let ca = format!("tls_ca={}", broker.certificate().display());
    for (port, options, said) in [
        (broker.sasl, "", Some("the login is not encrypted")),
        (broker.sasl, "sasl=PLAIN", Some("the password goes over the network unencrypted")),
        (broker.tls, &ca, None),
        (broker.tls, &format!("{ca}&sasl=PLAIN"), None),
    ] {
        let mut source = watch(&address(PASSWORD, port, options));
        let coverage = until_complete(&mut *source);
        match said {
            Some(said) => assert!(coverage.contains(said), "{coverage}"),
            None => assert!(!coverage.contains("use TLS"), "{coverage}"),
        }
        assert_eq!(value(&sampled(&mut *source), "kafka_backlog"), Some(0.0), "{options}");
    }
    let wrong = watch(&address("wr0ng", broker.sasl, "")).probe().unwrap_err().to_string();
    assert!(wrong.contains("HOLDUP_KAFKA_PASSWORD") && !wrong.contains("wr0ng"), "{wrong}");
    let none = watch(&format!("kafka://127.0.0.1:{}", broker.sasl)).probe().unwrap_err().to_string();
    assert!(none.contains("without an account"), "{none}");
    let untrusted = watch(&address(PASSWORD, broker.tls, "tls=verify")).probe().unwrap_err().to_string();
    assert!(untrusted.contains("TLS") || untrusted.contains("certificate"), "{untrusted}");
}

/// Asks until the rights that were just given are known; the coverage as a text.
fn until_complete(source: &mut dyn Collector) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let lines = source.probe().unwrap();
        if lines.iter().all(|line| line.state == CoverageState::Complete) {
            return format!("{lines:?}");
        }
        assert!(Instant::now() < deadline, "{lines:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn a_killed_broker_is_a_gap_until_it_is_back(broker: &mut Broker, address: &str) {
    let mut source = watch(address);
    source.probe().unwrap();
    sampled(&mut *source);
    broker.kill();
    for _ in 0..2 {
        let mut gap = Batch::default();
        let error = source.sample(&mut gap).unwrap_err().to_string();
        assert!(gap.samples.is_empty() && error.contains("broker 127.0.0.1"), "{error} {:?}", gap.samples);
    }
    broker.start_again();
    let back = until(&mut *source, "answer", |batch| value(batch, "kafka_backlog").is_some());
    assert_eq!(value(&back, "kafka_backlog"), Some(0.0));
    assert_eq!(value(&back, "kafka_end_offset"), Some(1_801.0));
}
