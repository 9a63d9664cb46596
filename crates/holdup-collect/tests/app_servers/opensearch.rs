//! `--watch opensearch:` on a real node: figures of known truth, rights, and a node that dies. It is one test,
//! because the node takes longer to start than all of it.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use holdup_collect::Collector;
use holdup_recording::{Batch, CoverageState};
use holdup_testing::PASSWORD;
use holdup_testing::opensearch::{ACCOUNT, HALF, OpenSearch};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{probed, refused, sum, until, watch};

/// One thread writes, and two tasks may wait for it.
const SETTINGS: [&str; 2] = ["node.name=search-1", "thread_pool.write.queue_size=2"];

const WRITE: [(&str, &str); 2] = [("node", "search-1"), ("pool", "write")];

fn sampled(source: &mut dyn Collector) -> Batch {
    let mut batch = Batch::default();
    source.sample(&mut batch).unwrap();
    batch
}

#[test]
fn work_rejections_rights_and_a_dead_node_are_read_as_they_are() {
    let Some(mut node) = OpenSearch::start(&SETTINGS) else { return };
    let address = |user: &str, password: &str| format!("opensearch://{user}:{password}@127.0.0.1:{}", node.port);
    let own = address(ACCOUNT, PASSWORD);
    accounts_and_what_each_may_not(&address, node.port);
    work_is_counted(&node, &own);
    rejected_writes_are_counted(&node, &own);
    a_killed_node_is_a_gap_until_it_is_back(&mut node, &own);
}

fn accounts_and_what_each_may_not(address: &dyn Fn(&str, &str) -> String, port: u16) {
    let whole = watch(&address(ACCOUNT, PASSWORD)).probe().unwrap();
    assert!(whole.iter().all(|line| line.state == CoverageState::Complete && line.why.is_none()), "{whole:?}");
    let half = watch(&address(HALF, PASSWORD)).probe().unwrap();
    let lacking = half.iter().find(|line| line.source.ends_with("index settings")).unwrap();
    assert!(lacking.enable.as_ref().unwrap().contains("indices:monitor/settings/get"), "{lacking:?}");
    assert!(probed(&address(HALF, PASSWORD)).settings(&mut Batch::default()).is_ok(), "what it may not read is no gap");
    let wrong = refused(&address(ACCOUNT, "wr0ng")).to_string();
    assert!(wrong.contains("HOLDUP_ELASTICSEARCH_PASSWORD") && !wrong.contains("wr0ng"), "{wrong}");
    let none = refused(&format!("opensearch://127.0.0.1:{port}")).to_string();
    assert!(none.contains(&format!("opensearch://USER@127.0.0.1:{port}")), "{none}");
    let key = refused(&format!("opensearch://127.0.0.1:{port}?api_key=canary")).to_string();
    assert!(key.contains("API key") && !key.contains("canary"), "{key}");
}

fn bulk(documents: usize) -> String {
    (0..documents).map(|n| format!("{{\"index\":{{}}}}\n{{\"n\":{n}}}\n")).collect()
}

fn work_is_counted(node: &OpenSearch, own: &str) {
    let index = "{\"settings\":{\"index\":{\"refresh_interval\":\"30s\",\"number_of_shards\":1,\"number_of_replicas\":0}},\
        \"mappings\":{\"properties\":{\"n\":{\"type\":\"integer\"}}}}";
    assert!(node.say("PUT", "/orders", index).unwrap().contains("200 OK"));
    let mut source = probed(own);
    let before = sampled(&mut *source);
    (0..3).for_each(|_| assert!(node.say("POST", "/orders/_bulk", &bulk(100)).unwrap().contains("\"errors\":false")));
    node.say("POST", "/orders/_refresh", "").unwrap();
    (0..5).for_each(|_| assert!(node.say("GET", "/orders/_search?q=n:7", "").unwrap().contains("\"value\":3")));
    let after = sampled(&mut *source);
    let grown = |metric: &str, labels: &[(&str, &str)]| {
        sum(&after, metric, labels).unwrap() - sum(&before, metric, labels).unwrap()
    };
    let done = |operation| grown("elasticsearch_operations_total", &[("node", "search-1"), ("operation", operation)]);
    assert_eq!((done("indexing"), done("query"), done("fetch")), (300.0, 5.0, 5.0));
    assert!(done("refresh") >= 1.0);
    assert_eq!(grown("elasticsearch_pool_completed_total", &WRITE), 3.0);
    let taken = grown("elasticsearch_operation_time_seconds_total", &[("operation", "indexing")]);
    assert!(taken > 0.0 && taken < 30.0, "{taken}");
    for (metric, labels, truth) in [
        ("elasticsearch_pool_size", &WRITE[..], 1.0),
        ("elasticsearch_pool_queue_limit", &WRITE, 2.0),
        ("elasticsearch_pool_queue", &WRITE, 0.0),
        ("elasticsearch_pool_rejected_total", &WRITE, 0.0),
        ("elasticsearch_breaker_trips_total", &[("breaker", "parent")], 0.0),
        ("elasticsearch_indexing_pressure_rejections_total", &[("stage", "primary")], 0.0),
        ("elasticsearch_status", &[], 0.0),
        ("elasticsearch_nodes", &[], 1.0),
        ("elasticsearch_unassigned_shards", &[], 0.0),
    ] {
        assert_eq!(sum(&after, metric, labels), Some(truth), "{metric}");
    }
    let share = sum(&after, "elasticsearch_heap_used_bytes", &[]).unwrap()
        / sum(&after, "elasticsearch_heap_max_bytes", &[]).unwrap();
    assert!(share > 0.01 && share < 1.0, "{share}");
    let mut settings = Batch::default();
    source.settings(&mut settings).unwrap();
    let rows: Vec<(&str, &str)> = settings.settings.iter().map(|row| (row.name.as_str(), row.value.as_str())).collect();
    assert!(
        rows.contains(&("version", "2.19.1")) && rows.contains(&("index.refresh_interval of orders", "30s")),
        "{rows:?}"
    );
    assert!(!format!("{after:?}{settings:?}").contains(PASSWORD));
}

/// More writers than one thread and two places can take: what the node told them is what holdup reads.
fn rejected_writes_are_counted(node: &OpenSearch, own: &str) {
    let mut source = probed(own);
    let body = bulk(200);
    let rejected: usize = std::thread::scope(|scope| {
        let write = || {
            (0..6).filter(|_| node.say("POST", "/orders/_bulk", &body).unwrap().contains("rejected_execution")).count()
        };
        let writers: Vec<_> = (0..12).map(|_| scope.spawn(write)).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    assert!(rejected > 0, "all were taken");
    let after = sampled(&mut *source);
    assert_eq!(sum(&after, "elasticsearch_pool_rejected_total", &WRITE), Some(rejected as f64));
    // Three before, and those that were taken.
    assert_eq!(sum(&after, "elasticsearch_pool_completed_total", &WRITE), Some((3 + 72 - rejected) as f64));
}

fn a_killed_node_is_a_gap_until_it_is_back(node: &mut OpenSearch, own: &str) {
    let mut source = probed(own);
    let before = sampled(&mut *source);
    node.kill();
    for _ in 0..2 {
        let mut gap = Batch::default();
        let error = source.sample(&mut gap).unwrap_err().to_string();
        assert!(gap.samples.is_empty() && error.contains("nodes: "), "{error} {:?}", gap.samples);
    }
    node.start_again(&SETTINGS);
    let back = until(&mut *source, "answer", |batch| sum(batch, "elasticsearch_status", &[]) == Some(0.0));
    let uptime = |batch: &Batch| sum(batch, "elasticsearch_uptime_seconds", &[]).unwrap();
    assert!(uptime(&back) < uptime(&before), "{} {}", uptime(&back), uptime(&before));
    assert_eq!(sum(&back, "elasticsearch_pool_rejected_total", &WRITE), Some(0.0));
}

/// Something that answers each connection with `body`, over TLS if it has a certificate.
fn other(body: &'static str, tls: Option<Arc<ServerConfig>>) -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut line in listener.incoming().flatten() {
            let _ = line.set_read_timeout(Some(Duration::from_secs(1)));
            match &tls {
                None => answer(&mut line, body),
                Some(tls) => {
                    let server = ServerConnection::new(Arc::clone(tls)).unwrap();
                    answer(&mut StreamOwned::new(server, line), body);
                }
            }
        }
    });
    port
}

fn answer(line: &mut (impl Read + Write), body: &str) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    if line.read(&mut [0; 2_048]).is_ok() {
        let _ = line.write_all(head.as_bytes()).and_then(|()| line.write_all(body.as_bytes()));
        let _ = line.flush();
    }
}

#[test]
fn certificates_are_checked_unless_the_address_says_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = holdup_testing::certificate(folder.path());
    let key = std::fs::read(folder.path().join("key.pem")).unwrap();
    let tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::from_pem_slice(&key).unwrap())
        .unwrap();
    let port = other(r#"{"nodes":{"a":{"name":"n","jvm":{"uptime_in_millis":2000}}}}"#, Some(Arc::new(tls)));
    let address = |options: &str| format!("elasticsearch://u:canary@localhost:{port}?{options}");
    let ca = format!("tls_ca={}", folder.path().join("cert.pem").display());
    for options in [&ca, "tls=require"] {
        let sampled = sampled(&mut *probed(&address(options)));
        assert_eq!(sum(&sampled, "elasticsearch_uptime_seconds", &[("node", "n")]), Some(2.0));
    }
    for (options, said) in [("tls=verify", "?tls_ca=PATH"), ("tls=off", "?tls=verify")] {
        let error = refused(&address(options)).to_string();
        assert!(error.contains(said) && !error.contains("canary"), "{error}");
    }
}

#[test]
fn another_server_is_named_as_such() {
    for (body, said) in [("{}", "not with the statistics"), ("<html>", "HTML"), ("[[[[", "not with JSON")] {
        let error = refused(&format!("elasticsearch://127.0.0.1:{}", other(body, None))).to_string();
        assert!(error.contains(said), "{error}");
    }
    let port = holdup_testing::free_port();
    assert!(refused(&format!("elasticsearch://127.0.0.1:{port}")).to_string().contains("?tls=verify"));
    assert!(refused(&format!("elasticsearch://127.0.0.1:{port}?tls=require")).to_string().contains("?tls_ca=PATH"));
}
