//! `--watch kubernetes:`, against an API of this test that speaks TLS and answers as the reference says: there is no cluster here.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use holdup_collect::kubernetes::{Address, Kubernetes, PodEnvironment};
use holdup_collect::{Collector, ProbeError};
use holdup_recording::{Batch, CoverageState, clock};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// How long is waited for what must happen at some time.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the API answers, and what it was asked.
#[derive(Default)]
struct Cluster {
    /// Restarts of the container, and how often its probe has failed.
    restarts: u32,
    failures: u32,
    /// What may not be listed.
    forbidden: &'static str,
    token: String,
    asked: Vec<String>,
    /// Whether it accepts and never answers.
    hangs: bool,
}

/// An API, and a service account for it.
struct Api {
    cluster: Arc<Mutex<Cluster>>,
    inside: PodEnvironment,
    account: tempfile::TempDir,
}

impl Api {
    fn start() -> Self {
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let account = tempfile::tempdir().unwrap();
        for (file, text) in [("ca.crt", authority_pem.as_str()), ("token", "first\n"), ("namespace", "shop")] {
            std::fs::write(account.path().join(file), text).unwrap();
        }
        let cluster = Arc::new(Mutex::new(Cluster { token: "first".to_owned(), ..Cluster::default() }));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        std::thread::spawn({
            let (cluster, config) = (Arc::clone(&cluster), Arc::new(config));
            move || {
                for stream in listener.incoming().flatten() {
                    answer(stream, &config, &cluster);
                }
            }
        });
        let inside = PodEnvironment { account: account.path().to_owned(), api: Some(("127.0.0.1".to_owned(), port)) };
        Self { cluster, inside, account }
    }

    fn change(&self, change: impl FnOnce(&mut Cluster)) {
        change(&mut self.cluster.lock().unwrap());
    }

    fn watch(&self, text: &str) -> Kubernetes {
        Kubernetes::new(Address::parse(text, &self.inside).unwrap(), Duration::from_millis(20))
    }
}

fn answer(stream: TcpStream, config: &Arc<ServerConfig>, cluster: &Mutex<Cluster>) {
    let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(config)).unwrap(), stream);
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(length) if length > 0 => request.extend_from_slice(&buffer[..length]),
            _ => return,
        }
    }
    let request = String::from_utf8(request).unwrap();
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut cluster = cluster.lock().unwrap();
    cluster.asked.push(path.clone());
    if cluster.hangs {
        std::mem::forget(stream);
        return;
    }
    let what = path.split(['/', '?']).nth(5).unwrap_or_default();
    let is_known = request.to_ascii_lowercase().contains(&format!("authorization: bearer {}\r\n", cluster.token));
    let (status, body) = match what {
        _ if !is_known => {
            (401, r#"{"kind":"Status","status":"Failure","message":"Unauthorized","code":401}"#.to_owned())
        }
        "pods" | "events" if cluster.forbidden == what => (
            403,
            format!(
                r#"{{"kind":"Status","status":"Failure","message":"{what} is forbidden: User \"x\" cannot list","code":403}}"#
            ),
        ),
        "pods" if path.contains("nobody") => (200, r#"{"kind":"PodList","apiVersion":"v1","items":[]}"#.to_owned()),
        "pods" => (200, pods(cluster.restarts)),
        "events" => (200, events(cluster.failures, path.contains("continue="))),
        _ => (404, "{}".to_owned()),
    };
    let head = format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    let _ = write!(stream, "{head}Connection: close\r\n\r\n{body}");
    stream.conn.send_close_notify();
    let _ = stream.flush();
}

fn now() -> String {
    clock::rfc3339(clock::now_ns()).split('.').next().unwrap().to_owned() + "Z"
}

fn pods(restarts: u32) -> String {
    let ended = match restarts {
        0 => String::new(),
        n => format!(
            r#""terminated":{{"containerID":"c{n}","exitCode":137,"reason":"OOMKilled","finishedAt":"{}"}}"#,
            now()
        ),
    };
    format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"1"}},"items":[{{"metadata":{{"name":"orders-1","namespace":"shop","uid":"u"}},
        "spec":{{"containers":[{{"name":"app","image":"orders:1","resources":{{"limits":{{"cpu":"1","memory":"64Mi"}}}},
        "livenessProbe":{{"httpGet":{{"path":"/health","port":8080}},"periodSeconds":10}}}}],"restartPolicy":"Always"}},
        "status":{{"containerStatuses":[{{"name":"app","ready":true,"restartCount":{restarts},"state":{{"running":{{"startedAt":"{}"}}}},"lastState":{{{ended}}}}}]}}}}]}}"#,
        now()
    )
}

/// Two pages.
fn events(failures: u32, is_second: bool) -> String {
    if !is_second {
        return r#"{"kind":"EventList","apiVersion":"v1","metadata":{"continue":"next/page=="},"items":[
            {"metadata":{"name":"o","namespace":"shop","uid":"e0"},"involvedObject":{"kind":"Pod","name":"other-1","namespace":"shop"},"reason":"BackOff",
             "message":"of another pod","type":"Warning","count":1,"lastTimestamp":"2099-01-01T00:00:00Z"}]}"#
            .to_owned();
    }
    let at = now();
    let failed = format!(
        r#"{{"metadata":{{"name":"p","namespace":"shop","uid":"e1"}},"involvedObject":{{"kind":"Pod","name":"orders-1","namespace":"shop",
        "fieldPath":"spec.containers{{app}}"}},"reason":"Unhealthy","message":"Liveness probe failed: timeout","type":"Warning","count":{failures},
        "firstTimestamp":"{at}","lastTimestamp":"{at}"}}"#
    );
    let items = if failures > 0 { failed } else { String::new() };
    format!(r#"{{"kind":"EventList","apiVersion":"v1","metadata":{{}},"items":[{items}]}}"#)
}

/// Samples until `enough` is there; gaps are let pass.
fn until(kubernetes: &mut Kubernetes, batch: &mut Batch, enough: impl Fn(&Batch) -> bool) {
    let begun = Instant::now();
    let mut last = String::new();
    while !enough(batch) {
        assert!(begun.elapsed() < PATIENCE, "{last}: {:?}", batch.events);
        if let Err(error) = kubernetes.sample(batch) {
            last = error.to_string();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn told<'a>(batch: &'a Batch, kind: &str, label: &str) -> Vec<&'a str> {
    let events = batch.events.iter().filter(|event| event.kind == kind);
    events.map(|event| event.labels.get(label).unwrap_or_default()).collect()
}

#[test]
fn pods_are_followed_over_tls_by_the_service_account() {
    let api = Api::start();
    let mut kubernetes = api.watch("?selector=app%3Dorders");
    assert_eq!(kubernetes.source(), "kubernetes:shop");
    assert_eq!(kubernetes.probe().unwrap()[0].state, CoverageState::Complete);
    let mut batch = Batch::default();
    kubernetes.settings(&mut batch).unwrap();
    until(&mut kubernetes, &mut batch, |batch| !batch.samples.is_empty());
    assert!(batch.samples.iter().all(|sample| sample.source == "kubernetes:shop/orders-1"));
    let limit = batch.settings.iter().find(|setting| setting.name == "container.app.memory_limit_bytes");
    assert_eq!(limit.map(|limit| limit.value.as_str()), Some("67108864"));
    assert!(batch.events.is_empty(), "{:?}", batch.events);
    // The cluster gives accounts new tokens, and the old ones end.
    std::fs::write(api.account.path().join("token"), "second").unwrap();
    api.change(|cluster| {
        cluster.token = "second".to_owned();
        (cluster.restarts, cluster.failures) = (1, 2);
    });
    let are_both_told = |batch: &Batch| {
        ["container_restarted", "probe_failed"].iter().all(|kind| batch.events.iter().any(|event| event.kind == *kind))
    };
    until(&mut kubernetes, &mut batch, are_both_told);
    assert_eq!(told(&batch, "container_restarted", "reason"), ["OOMKilled"]);
    let counts: u32 = told(&batch, "probe_failed", "count").iter().map(|count| count.parse::<u32>().unwrap()).sum();
    assert_eq!((counts, told(&batch, "probe_failed", "probe")[0]), (2, "liveness"));
    assert!(batch.events.iter().all(|event| event.source == "kubernetes:shop/orders-1"), "of another pod");
    // What happens just before the end is seen by a last look.
    api.change(|cluster| cluster.failures = 7);
    kubernetes.settings(&mut batch).unwrap();
    let counts: u32 = told(&batch, "probe_failed", "count").iter().map(|count| count.parse::<u32>().unwrap()).sum();
    assert_eq!(counts, 7);
    let asked = &api.cluster.lock().unwrap().asked;
    assert!(asked.iter().any(|path| path == "/api/v1/namespaces/shop/pods?limit=500&labelSelector=app%3Dorders"));
    assert!(asked.iter().any(|path| path == "/api/v1/namespaces/shop/events?limit=500&continue=next%2Fpage%3D%3D"));
}

#[test]
fn a_denied_request_names_the_missing_right() {
    let api = Api::start();
    api.change(|cluster| cluster.forbidden = "pods");
    let denied = api.watch("").probe().unwrap_err();
    let text = denied.to_string();
    assert!(matches!(denied, ProbeError::Denied { .. }) && text.contains("pods is forbidden"), "{text}");
    assert!(text.contains("kubectl create role holdup -n shop --verb=list --resource=pods,events"), "{text}");
    // Without events the rest is worth something.
    api.change(|cluster| cluster.forbidden = "events");
    let mut kubernetes = api.watch("");
    let coverage = kubernetes.probe().unwrap();
    assert_eq!((coverage[0].state, coverage[1].state), (CoverageState::Partial, CoverageState::Absent));
    assert!(coverage[1].enable.as_ref().is_some_and(|enable| enable.contains("create role")), "{coverage:?}");
    let mut batch = Batch::default();
    until(&mut kubernetes, &mut batch, |batch| !batch.samples.is_empty());
    assert!(kubernetes.sample(&mut batch).is_ok());
    let coverage = api.watch("?pod=nobody").probe().unwrap();
    assert!(
        coverage.iter().any(|it| it.why.as_ref().is_some_and(|why| why.contains("no matching pod"))),
        "{coverage:?}"
    );
}

#[test]
fn a_token_that_ends_is_a_gap_and_is_shown_nowhere() {
    let api = Api::start();
    let mut kubernetes = api.watch("?pod=orders-1");
    assert_eq!(kubernetes.source(), "kubernetes:shop/orders-1");
    let mut batch = Batch::default();
    until(&mut kubernetes, &mut batch, |batch| !batch.samples.is_empty());
    std::fs::write(api.account.path().join("token"), "hunter2").unwrap();
    let begun = Instant::now();
    let error = loop {
        assert!(begun.elapsed() < PATIENCE, "no gap");
        match kubernetes.sample(&mut Batch::default()) {
            Ok(()) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("the API rejected the token (401)") && !error.contains("hunter2"), "{error}");
    // An authority that did not sign the API's certificate, and one that is none.
    let stranger = Api::start();
    let mut address = Address::parse("", &api.inside).unwrap();
    address.ca_file = Some(stranger.account.path().join("ca.crt"));
    let refused =
        |address: &Address| Kubernetes::new(address.clone(), Duration::from_secs(1)).probe().unwrap_err().to_string();
    let other = refused(&address);
    assert!(other.contains("certificate"), "{other}");
    address.ca_file = Some(stranger.account.path().join("token"));
    let other = refused(&address);
    assert!(other.contains("contains no certificate"), "{other}");
    address.token_file = Some(PathBuf::from("/nowhere/token"));
    address.ca_file = Some(api.account.path().join("ca.crt"));
    let other = refused(&address);
    assert!(other.contains("/nowhere/token"), "{other}");
}

/// kubelet checks no certificate, and so does a probe: what this server says is 401, to somebody it doesn't know.
#[test]
fn a_probe_over_tls_checks_no_certificate() {
    let api = Api::start();
    let port = api.inside.api.as_ref().unwrap().1.clone();
    let address = format!("probe:https://127.0.0.1:{port}/api?every=20ms&timeout=60s");
    let options = holdup_collect::watch::Options::default();
    let mut probe = holdup_collect::watch::collector(&address, &options).unwrap_or_else(|error| panic!("{error}"));
    let (begun, mut batch) = (Instant::now(), Batch::default());
    while batch.events.is_empty() {
        assert!(begun.elapsed() < PATIENCE);
        probe.sample(&mut batch).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(told(&batch, "probe_failed", "status")[0], "401", "{}", batch.events[0].text);
}

/// An API that hangs holds up neither samples nor the end.
#[test]
fn a_hanging_api_does_not_delay_samples() {
    let api = Api::start();
    let mut kubernetes = api.watch("");
    let mut batch = Batch::default();
    kubernetes.settings(&mut batch).unwrap();
    until(&mut kubernetes, &mut batch, |batch| !batch.samples.is_empty());
    api.change(|cluster| cluster.hangs = true);
    let begun = Instant::now();
    for _ in 0..20 {
        let _ = kubernetes.sample(&mut batch);
    }
    let (samples, before) = (batch.samples.len(), begun.elapsed());
    let error = kubernetes.settings(&mut batch).unwrap_err().to_string();
    assert!(error.contains("did not answer the last poll"), "{error}");
    drop(kubernetes);
    // Each would wait 10 s for one request.
    assert!(begun.elapsed() < Duration::from_secs(60), "{before:?} {:?}", begun.elapsed());
    assert!(batch.samples.len() >= samples);
}
