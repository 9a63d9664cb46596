//! What Kubernetes says, as a person gets it: files of `kubectl` into a recording; a service that is probed while a load is on.

use crate::program::{Finished, Running, finish, holdup, manifest};
use crate::service::Service;

/// As `kubectl get pods -o json` prints them.
const PODS: &str = r#"{
    "apiVersion": "v1",
    "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "orders-1", "namespace": "shop", "uid": "u"},
        "spec": {"containers": [{"name": "app", "image": "orders:7", "env": [{"name": "PASSWORD", "value": "hunter2"}],
            "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}},
            "livenessProbe": {"httpGet": {"path": "/health", "port": 8080}, "periodSeconds": 10, "timeoutSeconds": 1, "failureThreshold": 3}}],
            "restartPolicy": "Always"},
        "status": {"containerStatuses": [{"name": "app", "ready": true, "restartCount": 4, "state": {"running": {"startedAt": "2026-11-22T10:00:32Z"}},
            "lastState": {"terminated": {"containerID": "c", "exitCode": 137, "reason": "Error", "finishedAt": "2026-11-22T10:00:31Z"}}}]}}],
    "kind": "List",
    "metadata": {"resourceVersion": ""}
}"#;

/// As `kubectl get events -o json` prints them.
const EVENTS: &str = r#"{
    "apiVersion": "v1",
    "items": [
        {"apiVersion": "v1", "kind": "Event", "count": 3, "firstTimestamp": "2026-11-22T10:00:10Z", "lastTimestamp": "2026-11-22T10:00:30Z",
            "involvedObject": {"fieldPath": "spec.containers{app}", "kind": "Pod", "name": "orders-1", "namespace": "shop"},
            "message": "Liveness probe failed: Get \"http://10.1.2.3:8080/health\": context deadline exceeded", "reason": "Unhealthy", "type": "Warning",
            "metadata": {"name": "a", "namespace": "shop", "uid": "e1"}},
        {"apiVersion": "v1", "kind": "Event", "count": 1, "firstTimestamp": "2026-11-22T10:00:30Z", "lastTimestamp": "2026-11-22T10:00:30Z",
            "involvedObject": {"fieldPath": "spec.containers{app}", "kind": "Pod", "name": "orders-1", "namespace": "shop"},
            "message": "Container app failed liveness probe, will be restarted", "reason": "Killing", "type": "Normal",
            "metadata": {"name": "b", "namespace": "shop", "uid": "e2"}}
    ],
    "kind": "List"
}"#;

fn import(dir: &std::path::Path, arguments: &[&str]) -> Finished {
    for (name, text) in [
        ("pods.json", PODS),
        ("events.json", EVENTS),
        (
            "deployments.json",
            "{\n    \"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{\"kind\": \"Deployment\"}]}",
        ),
        ("cut.json", PODS.split_at(PODS.len() / 2).0),
        ("aws.json", r#"{"MetricDataResults": []}"#),
    ] {
        std::fs::write(dir.join(name), text).unwrap();
    }
    finish(holdup(["import"]).args(arguments).current_dir(dir), 60)
}

#[test]
fn files_of_kubectl_are_one_recording() {
    let dir = tempfile::tempdir().unwrap();
    let done = import(dir.path(), &["pods.json", "events.json", "-o", "shop"]);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert!(done.stdout.contains("1 pods, 2 events from 2026-11-22T10:00:10.000Z"), "{}", done.stdout);
    assert!(done.stdout.contains("container_killed  failed liveness probe"), "{}", done.stdout);
    let recording = holdup_recording::Recording::open(&dir.path().join("shop")).unwrap();
    let events: Vec<_> =
        recording.tables.events.rows.iter().map(|row| (row.observed_at / 1_000_000_000, row.kind.as_str())).collect();
    let ten = 1_795_341_600;
    let of_probes = [(ten + 10, "probe_failed"), (ten + 30, "probe_failed"), (ten + 30, "container_killed")];
    assert_eq!(events, [&of_probes[..], &[(ten + 31, "container_restarted")]].concat());
    let settings = &recording.tables.settings.rows;
    let probe = settings.iter().find(|row| row.name == "container.app.liveness_probe").unwrap();
    assert_eq!(
        (probe.source.as_str(), probe.value.as_str()),
        ("kubernetes:shop/orders-1", "http-get :8080/health every=10s timeout=1s failures=3")
    );
    let restarts = recording.tables.samples.rows.iter().find(|row| row.metric == "container_restarts_total");
    assert_eq!(restarts.map(|row| row.value), Some(4.0));
    for file in std::fs::read_dir(dir.path().join("shop")).unwrap().flatten().filter(|file| file.path().is_file()) {
        assert!(
            !String::from_utf8_lossy(&std::fs::read(file.path()).unwrap()).contains("hunter2"),
            "{:?}",
            file.path()
        );
    }
    // Judged: there is nothing that measured response time, and that is said.
    let done = finish(holdup(["diagnose", "shop"]).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let pipe = std::fs::File::open(dir.path().join("pods.json")).unwrap();
    let done = finish(holdup(["import", "-", "--json", "-o", "pipe"]).stdin(pipe).current_dir(dir.path()), 60);
    assert_eq!(
        (done.json()["pods"].as_u64(), done.json()["sources"][0].as_str()),
        (Some(1), Some("kubernetes:shop/orders-1"))
    );
}

#[test]
fn files_that_are_not_understood_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    for (files, hint) in [
        (&["deployments.json"][..], "deployments.json: no pod and no event in it (it holds Deployment)"),
        (&["cut.json"], "cut.json:6: EOF while parsing"),
    ] {
        let done = import(dir.path(), &[files, &["-o", "out"]].concat());
        assert_eq!(done.code(), Some(2), "{files:?}: {}", done.stdout);
        assert!(done.stderr.contains(hint), "{files:?}: {}", done.stderr);
        assert!(!dir.path().join("out").exists());
    }
}

#[test]
fn a_file_of_another_kind_that_holds_nothing_does_not_lose_the_pods() {
    let dir = tempfile::tempdir().unwrap();
    let done = import(dir.path(), &["pods.json", "aws.json", "-o", "out"]);
    assert_eq!(done.code(), Some(2), "{}", done.stdout);
    assert!(done.stderr.contains("aws.json") && done.stderr.contains("the rest is kept in out"), "{}", done.stderr);
    let recording = holdup_recording::Recording::open(&dir.path().join("out")).unwrap();
    assert!(recording.tables.samples.rows.iter().any(|row| row.metric == "container_restarts_total"));
}

/// A scenario's probe is watched beside the load, and is none of it.
#[test]
fn a_probe_is_watched_and_is_no_load() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let target = service.url().trim_end_matches('/').to_owned();
    let scenario = dir.path().join("probed.yaml");
    let text = format!(
        "target: {target}\nload: {{rate: 10, duration: 3s}}\noperations: [{{name: page, get: /}}]\nprobe: {{get: /, every: 100ms, timeout: 1s}}\n"
    );
    std::fs::write(&scenario, &text).unwrap();
    let done = finish(holdup(["run"]).arg(&scenario).arg("-o").arg(dir.path().join("probed")), 120);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let recording = holdup_recording::Recording::open(&dir.path().join("probed")).unwrap();
    let samples = &recording.tables.samples.rows;
    let of = |metric: &str| {
        samples.iter().filter(|row| row.metric == metric && row.source == format!("probe:{target}/")).count()
    };
    assert!(
        of("probe_success") >= 10 && of("probe_success") == of("probe_duration_seconds"),
        "{}",
        of("probe_success")
    );
    // The host is watched as without a probe, and requests are those of the schedule alone.
    assert!(samples.iter().any(|row| row.source == "host"));
    let load = recording.manifest.load.as_ref().unwrap();
    assert_eq!((load.operations.len(), load.totals[0].offered), (1, 30));
    let coverage = &manifest(&dir.path().join("probed"))["coverage"];
    assert!(
        coverage.as_array().unwrap().iter().any(|it| it["source"] == format!("probe:{target}/").as_str()),
        "{coverage}"
    );
    let done = finish(holdup(["run", "--no-collect"]).arg(&scenario).arg("-o").arg(dir.path().join("bare")), 120);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert_eq!(manifest(&dir.path().join("bare"))["coverage"].as_array().map(Vec::len), Some(0));
    let done = finish(holdup(["run", "--check"]).arg(&scenario), 60);
    assert!(done.stdout.contains(&format!("health probe, not part of the load: probe:{target}/")), "{}", done.stdout);
    // A mistake is found before anything is sent, with its line.
    std::fs::write(&scenario, text.replace("every: 100ms", "evry: 100ms")).unwrap();
    let done = finish(holdup(["run", "--check"]).arg(&scenario), 60);
    assert_eq!(done.code(), Some(2));
    assert!(done.stderr.contains("probed.yaml:4: unknown key \"evry\" in probe"), "{}", done.stderr);
}

/// Ctrl-C ends a run at once, whatever a probe waits for.
#[test]
fn a_probe_that_hangs_does_not_hold_up_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("probe:http://{}/?every=1s&timeout=1h", listener.local_addr().unwrap());
    let out = dir.path().join("out");
    let run = Running::start(holdup(["watch", "--watch", &address, "--interval", "200ms", "-o"]).arg(&out));
    // It has been asked twice: before the recording, and in it.
    let streams: Vec<_> = listener.incoming().take(2).collect();
    run.signal(libc::SIGINT);
    let done = run.finish(std::time::Duration::from_secs(60));
    assert_eq!((done.code(), streams.len()), (Some(0), 2), "{}", done.stderr);
    assert_ne!(manifest(&out)["state"], "running");
}
