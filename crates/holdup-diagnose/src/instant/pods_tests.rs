//! Pods at rest: a liveness probe that kills is named with what to measure; what Kubernetes says
//! outright is repeated and never made into a cause.

use crate::cause::Cause;
use crate::testing::{Judged as _, SyntheticRecording};
use crate::verdict::{Answer, Diagnosis};

const POD: &str = "kubernetes:shop/orders-0";

/// A pod of one container that was restarted 14 times.
fn restarted(reason: &str, code: &str) -> SyntheticRecording {
    let ended = [("container", "app"), ("reason", reason), ("exit_code", code)];
    SyntheticRecording::new(3)
        .setting(POD, "container.app.liveness_probe", "http-get :8080/health every=10s timeout=1s failures=3")
        .gauge(POD, "container_restarts_total", &[("container", "app")], 14.0)
        .events(&[(2, POD, "container_restarted", &ended)])
}

fn probed(made: SyntheticRecording, probe: &str, count: &str) -> SyntheticRecording {
    let labels = [("container", "app"), ("probe", probe), ("reason", "context deadline exceeded"), ("count", count)];
    made.events(&[(1, POD, "probe_failed", &labels)])
}

fn killed(made: SyntheticRecording) -> SyntheticRecording {
    let labels = [("container", "app"), ("why", "failed liveness probe"), ("count", "14")];
    made.events(&[(1, POD, "container_killed", &labels)])
}

fn diagnosed(made: &SyntheticRecording) -> Diagnosis {
    let diagnosis = made.diagnose();
    for piece in diagnosis.findings.iter().flat_map(|f| &f.evidence) {
        assert!(piece.resolves(made.recording()), "{piece:?}");
    }
    diagnosis
}

fn settled(d: &Diagnosis) -> String {
    d.snapshot.as_ref().map_or_else(String::new, |snapshot| snapshot.settles.join("; "))
}

fn commands(d: &Diagnosis) -> Vec<String> {
    d.snapshot.iter().flat_map(|snapshot| &snapshot.paste_next).map(|next| next.command.clone()).collect()
}

#[test]
fn a_liveness_probe_that_kills_on_an_idle_cpu_is_named_with_what_to_measure() {
    let made = killed(probed(restarted("Error", "137"), "liveness", "42"))
        .setting(POD, "container.app.cpu_limit_millicores", "2000")
        .gauge(POD, "container_cpu_usage_cores", &[("container", "app")], 0.12);
    let d = diagnosed(&made);
    assert_eq!((d.verdict, d.culprit), (Answer::Found, Some(Cause::LivenessProbeKill)), "{d:#?}");
    assert!(d.headline.contains("http-get :8080/health every=10s"), "{}", d.headline);
    let open = d.snapshot.as_ref().map(|snapshot| snapshot.open.as_str()).unwrap_or_default();
    assert!(open.contains("measure its queue"), "{open}");
    assert!(d.cleared.iter().any(|c| c.cause == Cause::CpuSaturated), "{:?}", d.cleared);
    assert!(settled(&d).contains("CPU limit of 2.00; whether it is throttled was not seen"), "{}", settled(&d));
    assert!(!d.cleared.iter().any(|c| c.cause == Cause::CpuThrottled));
    let next = commands(&d);
    assert_eq!(next[0], "kubectl exec -n shop orders-0 -c app -- ss -ltn");
    assert!(next[1].contains("cpu.stat") && next.len() == 3, "{next:?}");
}

/// A full accept queue, seen once.
fn queue(made: SyntheticRecording, length: f64) -> SyntheticRecording {
    let port = [("port", "8080")];
    made.gauge("host", "tcp_accept_queue_length", &port, length).gauge("host", "tcp_accept_queue_limit", &port, 1_024.0)
}

#[test]
fn workers_behind_a_full_queue_come_before_the_probe_that_waited_in_it() {
    let made = killed(probed(restarted("Error", "137"), "liveness", "9"));
    let d = diagnosed(&queue(made.clone(), 1_025.0));
    assert_eq!((d.verdict, d.culprit), (Answer::Found, Some(Cause::WorkerPoolExhausted)), "{}", d.headline);
    let probe = d.findings.iter().find(|finding| finding.cause == Cause::LivenessProbeKill);
    assert_eq!(probe.and_then(|finding| finding.follows_from), Some(Cause::WorkerPoolExhausted));
    let open = d.snapshot.as_ref().map(|snapshot| snapshot.open.clone()).unwrap_or_default();
    assert!(open.contains("liveness_probe_kill follows from it"), "{open}");
    assert!(commands(&d).iter().all(|command| !command.ends_with("-- ss -ltn")), "{:?}", commands(&d));
    // A queue with room does not hold a probe up.
    let d = diagnosed(&queue(made, 3.0));
    assert_eq!(d.culprit, Some(Cause::LivenessProbeKill), "{}", d.headline);
    // A full queue alone may be the peak of a burst.
    let d = diagnosed(&queue(SyntheticRecording::new(3), 1_025.0));
    assert_eq!((d.verdict, d.findings[0].cause), (Answer::Undecided, Cause::WorkerPoolExhausted), "{}", d.headline);
}

#[test]
fn a_kill_for_memory_is_one_whatever_the_probe_said() {
    let made = probed(restarted("OOMKilled", "137"), "liveness", "2");
    let d = diagnosed(&made);
    assert_eq!((d.verdict, d.culprit), (Answer::Found, Some(Cause::OutOfMemoryKill)), "{d:#?}");
}

#[test]
fn a_container_that_ends_by_itself_restarts_for_a_reason_in_its_log() {
    let waits = [("container", "app"), ("reason", "CrashLoopBackOff")];
    let made = restarted("Error", "1").events(&[(2, POD, "kubernetes", &waits)]);
    let d = diagnosed(&made);
    assert_eq!((d.verdict, d.culprit), (Answer::Found, Some(Cause::ServerRestart)), "{d:#?}");
    assert!(
        settled(&d).contains("does not run (CrashLoopBackOff); it ended with: Error, exit code 1"),
        "{}",
        settled(&d)
    );
    assert_eq!(commands(&d), ["kubectl logs -n shop orders-0 -c app --previous --tail=50"]);
}

#[test]
fn a_readiness_probe_kills_nothing() {
    let d = diagnosed(&probed(restarted("Completed", "0"), "readiness", "9"));
    assert_eq!(d.findings.len(), 0, "{d:#?}");
    assert!(
        settled(&d).contains("The readiness probe of container app of shop/orders-0 failed 9 times"),
        "{}",
        settled(&d)
    );
}

#[test]
fn names_that_a_shell_would_read_are_not_repeated_in_a_command() {
    let pod = "kubernetes:shop/x;reboot";
    let labels = [("container", "app"), ("why", "failed liveness probe")];
    let d = SyntheticRecording::new(3).events(&[(1, pod, "container_killed", &labels)]).diagnose();
    assert!(commands(&d)[0].starts_with("kubectl exec -n shop POD -c app -- "), "{:?}", commands(&d));
}
