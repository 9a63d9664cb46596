//! Documents in the form of the API's reference, written here: what `kubectl get … -o json` prints, and what the API answers.

use holdup_recording::rows::Event;
use holdup_recording::{Batch, clock};

use super::*;

/// Two containers, of which one was killed for its memory and one keeps failing; one that prepared; one without limits.
const PODS: &str = r#"{
    "apiVersion": "v1",
    "items": [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "annotations": {"secret": "hunter2"},
                "creationTimestamp": "2026-11-22T09:00:00Z",
                "name": "orders-7d9c", "namespace": "shop", "uid": "u-1"
            },
            "spec": {
                "containers": [
                    {
                        "name": "app", "image": "example/orders:7",
                        "args": ["--password", "hunter2"],
                        "env": [{"name": "DB_PASSWORD", "value": "hunter2"}],
                        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                        "resources": {"limits": {"cpu": "1500m", "memory": "512Mi"}, "requests": {"cpu": "0.25", "memory": "256M"}},
                        "livenessProbe": {"failureThreshold": 3, "httpGet": {"path": "/health?token=hunter2", "port": "http", "scheme": "HTTP",
                            "httpHeaders": [{"name": "Authorization", "value": "hunter2"}]}, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1},
                        "readinessProbe": {"exec": {"command": ["/usr/bin/redis-cli", "-a", "hunter2", "ping"]}, "initialDelaySeconds": 15,
                            "periodSeconds": 5, "successThreshold": 2, "timeoutSeconds": 3, "failureThreshold": 6}
                    },
                    {"name": "proxy", "image": "example/proxy:1", "resources": {},
                        "livenessProbe": {"tcpSocket": {"port": 9000}}, "startupProbe": {"grpc": {"port": 9001, "service": "ready"}}}
                ],
                "initContainers": [{"name": "migrate", "image": "example/orders:7", "resources": {"limits": {"cpu": "2"}}},
                    {"name": "mesh", "restartPolicy": "Always", "resources": {}}],
                "nodeName": "node-3", "restartPolicy": "Always", "terminationGracePeriodSeconds": 30
            },
            "status": {
                "phase": "Running", "qosClass": "Burstable",
                "containerStatuses": [
                    {
                        "name": "app", "ready": true, "restartCount": 3, "image": "example/orders:7",
                        "lastState": {"terminated": {"containerID": "containerd://aaa", "exitCode": 137, "finishedAt": "2026-11-22T10:00:30Z",
                            "reason": "OOMKilled", "startedAt": "2026-11-22T09:30:00Z"}},
                        "state": {"running": {"startedAt": "2026-11-22T10:00:32Z"}}
                    },
                    {
                        "name": "proxy", "ready": false, "restartCount": 7,
                        "lastState": {"terminated": {"containerID": "containerd://bbb", "exitCode": 1, "finishedAt": "2026-11-22T10:05:00Z", "reason": "Error"}},
                        "state": {"waiting": {"message": "back-off 5m0s restarting failed container=proxy", "reason": "CrashLoopBackOff"}}
                    }
                ],
                "initContainerStatuses": [
                    {"name": "migrate", "ready": true, "restartCount": 0, "lastState": {},
                        "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-11-22T09:00:10Z", "reason": "Completed"}}},
                    {"name": "mesh", "ready": true, "restartCount": 0, "lastState": {}, "state": {"running": {"startedAt": "2026-11-22T09:00:11Z"}}}
                ]
            }
        },
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"status": "x"}, "status": "odd", "spec": [1]}
    ],
    "kind": "List",
    "metadata": {"resourceVersion": ""}
}"#;

/// A probe that failed five times and then had the container killed, and what comes with it: as `kubectl get events -o json`.
const EVENTS: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [
    {"apiVersion": "v1", "kind": "Event", "count": 5, "eventTime": null, "firstTimestamp": "2026-11-22T10:00:00Z", "lastTimestamp": "2026-11-22T10:00:40Z",
        "involvedObject": {"apiVersion": "v1", "fieldPath": "spec.containers{app}", "kind": "Pod", "name": "orders-7d9c", "namespace": "shop", "uid": "u-1"},
        "message": "Liveness probe failed: Get \"http://10.1.2.3:8080/health?token=hunter2\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
        "metadata": {"name": "orders-7d9c.17", "namespace": "shop", "uid": "e-1", "creationTimestamp": "2026-11-22T10:00:00Z"},
        "reason": "Unhealthy", "source": {"component": "kubelet", "host": "node-3"}, "type": "Warning"},
    {"apiVersion": "v1", "kind": "Event", "count": 1, "firstTimestamp": "2026-11-22T10:00:40Z", "lastTimestamp": "2026-11-22T10:00:40Z",
        "involvedObject": {"fieldPath": "spec.containers{app}", "kind": "Pod", "name": "orders-7d9c", "namespace": "shop"},
        "message": "Container app failed liveness probe, will be restarted", "metadata": {"name": "k", "namespace": "shop", "uid": "e-2"},
        "reason": "Killing", "type": "Normal"},
    {"apiVersion": "v1", "kind": "Event", "count": 1, "firstTimestamp": "2026-11-22T10:01:00Z", "lastTimestamp": "2026-11-22T10:01:00Z",
        "involvedObject": {"kind": "ReplicaSet", "name": "orders-7d", "namespace": "shop"}, "message": "Created pod: orders-7d9c",
        "metadata": {"name": "r", "namespace": "shop", "uid": "e-3"}, "reason": "SuccessfulCreate", "type": "Normal"}
]}"#;

/// The same kind of thing of the newer API, as the API itself answers: items without a kind.
const NEWER: &str = r#"{"kind":"EventList","apiVersion":"events.k8s.io/v1","metadata":{"resourceVersion":"9","continue":"abc=="},"items":[
    {"metadata":{"name":"n","namespace":"shop","uid":"e-9","creationTimestamp":"2026-11-22T10:00:05Z"},"eventTime":"2026-11-22T10:00:05.250000Z",
     "series":{"count":4,"lastObservedTime":"2026-11-22T10:00:35.750000Z"},"reportingController":"kubelet","reason":"Unhealthy",
     "regarding":{"kind":"Pod","namespace":"shop","name":"orders-7d9c","fieldPath":"spec.containers{app}"},
     "note":"Readiness probe failed: HTTP probe failed with statuscode: 503","type":"Warning"},
    {"metadata":{"name":"m","namespace":"shop","uid":"e-8"},"deprecatedFirstTimestamp":"2026-11-22T10:00:06Z","deprecatedLastTimestamp":"2026-11-22T10:00:06Z",
     "deprecatedCount":1,"eventTime":null,"reason":"BackOff","regarding":{"kind":"Pod","namespace":"shop","name":"orders-7d9c","fieldPath":"spec.initContainers{migrate}"},
     "note":"Back-off restarting failed container","type":"Warning"}]}"#;

fn at(text: &str) -> i64 {
    clock::parse_rfc3339(text).unwrap()
}

fn now() -> ReadTime {
    ReadTime { at: at("2026-11-22T10:10:00Z"), window_ns: 1_000 }
}

fn of(text: &str) -> Document {
    read(text.as_bytes()).unwrap()
}

fn all(text: &str) -> Batch {
    ObjectTracker::for_everything().take(&[of(text)], now())
}

fn setting<'a>(batch: &'a Batch, name: &str) -> Option<&'a str> {
    batch.settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
}

fn value(batch: &Batch, metric: &str, container: &str) -> Option<f64> {
    let found = batch.samples.iter().find(|s| s.metric == metric && s.labels.get("container") == Some(container));
    found.map(|sample| sample.value)
}

fn label<'a>(event: &'a Event, name: &str) -> &'a str {
    event.labels.get(name).unwrap_or_default()
}

fn kinds(batch: &Batch) -> Vec<(&str, &str)> {
    batch.events.iter().map(|event| (event.kind.as_str(), label(event, "reason"))).collect()
}

#[test]
fn limits_requests_and_probes_are_settings() {
    let batch = all(PODS);
    assert!(batch.settings.iter().all(|setting| setting.source == "kubernetes:shop/orders-7d9c"));
    for (name, expected) in [
        ("container.app.image", "example/orders:7"),
        ("container.app.cpu_limit_millicores", "1500"),
        ("container.app.cpu_request_millicores", "250"),
        ("container.app.memory_limit_bytes", "536870912"),
        ("container.app.memory_request_bytes", "256000000"),
        ("container.app.liveness_probe", "http-get :8080/health?… every=10s timeout=1s failures=3"),
        ("container.app.readiness_probe", "exec redis-cli … every=5s timeout=3s failures=6 delay=15s successes=2"),
        ("container.proxy.liveness_probe", "tcp :9000 every=10s timeout=1s failures=3"),
        ("container.proxy.startup_probe", "grpc :9001 ready every=10s timeout=1s failures=3"),
        ("container.migrate.cpu_limit_millicores", "2000"),
        ("pod.node", "node-3"),
        ("pod.qos_class", "Burstable"),
        ("pod.restart_policy", "Always"),
        ("pod.termination_grace_s", "30"),
    ] {
        assert_eq!(setting(&batch, name), Some(expected), "{name}");
    }
    // What has no limit has no setting of it.
    assert_eq!(setting(&batch, "container.proxy.cpu_limit_millicores"), None);
    assert_eq!(setting(&batch, "container.proxy.memory_limit_bytes"), None);
    assert_eq!(of(PODS).others, ["ConfigMap"]);
}

#[test]
fn restarts_are_counted_and_how_a_container_ended_is_an_event() {
    let batch = all(PODS);
    assert_eq!(value(&batch, "container_restarts_total", "app"), Some(3.0));
    assert_eq!(value(&batch, "container_ready", "app"), Some(1.0));
    assert_eq!(
        (value(&batch, "container_ready", "proxy"), value(&batch, "container_ready", "mesh")),
        (Some(0.0), Some(1.0))
    );
    assert_eq!(value(&batch, "container_ready", "migrate"), None, "it only prepares");
    assert_eq!((batch.samples[0].observed_at, batch.samples[0].window_ns), (now().at, 1_000));
    let crash = ("kubernetes", "CrashLoopBackOff");
    assert_eq!(kinds(&batch), [("container_restarted", "OOMKilled"), ("container_restarted", "Error"), crash]);
    let killed = &batch.events[0];
    assert_eq!(killed.observed_at, at("2026-11-22T10:00:30Z"));
    assert_eq!((label(killed, "container"), label(killed, "exit_code"), label(killed, "signal")), ("app", "137", "9"));
    assert_eq!(killed.text, "container app ended and was restarted: OOMKilled, exit code 137");
    assert_eq!((label(&batch.events[1], "exit_code"), label(&batch.events[1], "signal")), ("1", ""));
    assert!(batch.events[2].text.contains("back-off 5m0s"), "{}", batch.events[2].text);
}

#[test]
fn of_the_same_pods_read_again_only_what_is_new_is_told() {
    let mut account = ObjectTracker::since(at("2026-11-22T10:04:00Z"), false);
    let first = account.take(&[of(PODS)], now());
    // What was before is known, and not told.
    assert_eq!(kinds(&first), [("container_restarted", "Error"), ("kubernetes", "CrashLoopBackOff")]);
    let again = account.take(&[of(PODS)], now());
    assert_eq!((again.events.len(), again.settings.len(), again.samples.len()), (0, 0, first.samples.len()));
    let later = PODS
        .replace("\"restartCount\": 3", "\"restartCount\": 5")
        .replace("containerd://aaa", "containerd://ccc")
        .replace("10:00:30Z", "10:11:00Z")
        .replace("512Mi", "1Gi");
    let later = account.take(&[of(&later)], now());
    assert_eq!(kinds(&later), [("container_restarted", "OOMKilled")]);
    assert_eq!((label(&later.events[0], "restarts"), later.events[0].observed_at), ("2", at("2026-11-22T10:11:00Z")));
    assert_eq!(setting(&later, "container.app.memory_limit_bytes"), Some("1073741824"));
    assert_eq!(later.settings.len(), 1);
    // The count alone says that it was restarted, too.
    let unknown = PODS.replace("\"restartCount\": 7", "\"restartCount\": 8");
    assert!(kinds(&account.take(&[of(&unknown)], now())).contains(&("container_restarted", "unknown")));
}

#[test]
fn a_job_that_ends_is_not_restarted() {
    let job = r#"{"kind": "Pod", "metadata": {"name": "j"}, "spec": {"restartPolicy": "Never", "containers": [{"name": "a"}], "initContainers": null},
        "status": {"containerStatuses": [{"name": "a", "ready": false, "restartCount": 0, "lastState": {},
        "state": {"terminated": {"exitCode": 143, "signal": 15, "reason": "Error", "finishedAt": "2026-11-22T10:00:00Z"}}}]}}"#;
    let batch = all(job);
    assert_eq!(kinds(&batch), [("kubernetes", "Error")]);
    assert_eq!((batch.events[0].source.as_str(), label(&batch.events[0], "signal")), ("kubernetes:default/j", "15"));
    // One that is to be restarted is told when it is.
    assert_eq!(all(&job.replace("Never", "Always")).events.len(), 0);
}

#[test]
fn probes_that_failed_and_what_was_killed() {
    let batch = all(EVENTS);
    let reason = "Get \"http://10.1.2.3:8080/health?…\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
    let (probe, killed) = (("probe_failed", reason), ("container_killed", ""));
    assert_eq!(kinds(&batch), [probe, probe, killed, ("kubernetes", "SuccessfulCreate")]);
    let (first, last) = (&batch.events[0], &batch.events[1]);
    assert_eq!((label(first, "container"), label(first, "probe"), label(first, "count")), ("app", "liveness", "1"));
    assert_eq!((first.observed_at, first.source.as_str()), (at("2026-11-22T10:00:00Z"), "kubernetes:shop/orders-7d9c"));
    assert_eq!((label(last, "count"), last.observed_at), ("4", at("2026-11-22T10:00:40Z")));
    assert_eq!(label(&batch.events[2], "why"), "failed liveness probe");
    let other = &batch.events[3];
    assert_eq!((other.source.as_str(), label(other, "object")), ("kubernetes:shop", "ReplicaSet/orders-7d"));
    let whys = ["Stopping container app", "Container app definition changed, will be restarted", "odd"]
        .map(|text| all(&EVENTS.replace("Container app failed liveness probe, will be restarted", text)));
    assert_eq!(whys.each_ref().map(|batch| label(&batch.events[2], "why")), ["stopped", "definition changed", "odd"]);
}

#[test]
fn events_of_the_newer_api() {
    let document = of(NEWER);
    assert_eq!(document.next.as_deref(), Some("abc=="));
    let batch = all(NEWER);
    let failed = ("probe_failed", "HTTP probe failed with statuscode: 503");
    assert_eq!(kinds(&batch), [failed, failed, ("kubernetes", "BackOff")]);
    assert_eq!(
        (batch.events[0].observed_at, batch.events[1].observed_at),
        (at("2026-11-22T10:00:05.25Z"), at("2026-11-22T10:00:35.75Z"))
    );
    assert_eq!((label(&batch.events[1], "count"), label(&batch.events[0], "probe")), ("3", "readiness"));
    assert_eq!((label(&batch.events[2], "container"), label(&batch.events[2], "type")), ("migrate", "Warning"));
    assert_eq!(latest(&[document]), Some(at("2026-11-22T10:00:35.75Z")));
}

#[test]
fn events_read_again_tell_how_often_since() {
    let mut account = ObjectTracker::since(at("2026-11-22T10:00:30Z"), true);
    assert!(account.take(&[of(EVENTS)], now()).events.is_empty(), "of pods that were not seen");
    let first = account.take(&[of(PODS), of(EVENTS)], now());
    let told = first.events.iter().filter(|event| event.kind == "probe_failed").map(|event| label(event, "count"));
    assert_eq!(told.collect::<Vec<_>>(), ["4"], "the first of them is older");
    assert!(first.events.iter().all(|event| event.source == "kubernetes:shop/orders-7d9c"));
    assert!(account.take(&[of(PODS), of(EVENTS)], now()).events.is_empty());
    // Once the events could not be listed: they are not new when they can.
    account.take(&[of(PODS)], now());
    assert!(account.take(&[of(PODS), of(EVENTS)], now()).events.is_empty());
    let more = EVENTS
        .replace("\"count\": 5", "\"count\": 8")
        .replace("10:00:40Z\",\n        \"involved", "10:01:10Z\",\n        \"involved");
    let more = account.take(&[of(PODS), of(&more)], now());
    assert_eq!((more.events.len(), label(&more.events[0], "count")), (1, "3"));
}

#[test]
fn nothing_that_may_be_secret_is_kept() {
    for text in [PODS, EVENTS, NEWER] {
        let batch = all(text);
        let rows = format!("{:?} {:?} {:?}", batch.settings, batch.samples, batch.events);
        assert!(!rows.contains("hunter2") && !rows.contains("DB_PASSWORD"), "{rows}");
    }
    assert_eq!(shown("a\nb \"https://h/p?x=1&y=2\" why? /q?z=1 end"), "a b \"https://h/p?…\" why? /q?… end");
    assert_eq!(shown(&"x".repeat(999)).len(), TEXT_LETTERS);
}

#[test]
fn lists_that_are_empty_and_what_is_no_list() {
    for empty in
        [r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}"#, r#"{"kind":"List","items":[]}"#, ""]
    {
        let document = of(empty);
        assert_eq!((document.pods(), document.events(), document.others.len()), (0, 0, 0), "{empty}");
    }
    // One after the other, as --watch prints them.
    let two = format!("{NEWER}\n{EVENTS}\n");
    assert_eq!(of(&two).events(), 5);
    for (text, line, hint) in [
        ("{\"kind\": \"Pod\",\n\"spec\": 7}", 2, "the spec of pod without a name"),
        ("{\"kind\": \"List\",\n\"items\": [\n{]}", 3, "key must be a string"),
        ("[1]", 1, "invalid type"),
        ("NAME READY\n", 1, "expected"),
    ] {
        let error = read(text.as_bytes()).unwrap_err();
        assert!(error.line == line && error.text.contains(hint), "{text}: {error:?}");
    }
}
