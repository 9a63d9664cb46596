//! What Kubernetes says of pods: who killed a container and why, which probes fail, what it waits
//! for. Each is named as what it is. That a probe failed does not say why the server did not
//! answer it: that is to be measured. A CPU limit whose throttling was not seen clears nothing.

use crate::cause::Cause;
use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::metrics::Metric;
use holdup_recording::rows::Event;
use holdup_recording::words::percent;
use holdup_recording::{Labels, metrics};
use holdup_signals::evidence::Evidence;
use holdup_signals::{View, Window};

use super::Signs;
use crate::next_command::PasteNextReport;
use crate::strength::{CERTAIN, FAIR, STRONG, WEAK};

/// Beginning of the sources of pods.
const SOURCE: &str = "kubernetes:";

/// Kubernetes' word for a kill for lack of memory.
const FOR_MEMORY: &str = "OOMKilled";

/// Exit codes of a process that was asked to end, or killed: 128 plus the signal.
const SIGNALLED: [&str; 2] = ["137", "143"];

/// CPUs with at least this share (0-1) of room are idle.
const IDLE: f64 = 0.3;

/// Most containers that are named.
const SHOWN: usize = 2;

/// One container, or a whole pod if its containers are not told apart.
#[derive(Default)]
struct Container {
    liveness_failures: u64,
    readiness_failures: u64,
    startup_failures: u64,
    /// Why the liveness probe failed, in kubelet's words.
    why: String,
    /// Kills for the liveness probe.
    kills: u64,
    /// Kills for which kubelet gave no reason.
    unexplained: u64,
    /// Restarts in all, as the pod counts them.
    restarts: f64,
    /// How it ended last.
    ended: Option<(String, String)>,
    /// When that was, nanoseconds.
    ended_at: i64,
    out_of_memory: u64,
    /// Why it is not running.
    waits: Option<String>,
    liveness_probe: Option<String>,
    cpu_limit: Option<f64>,
    cpu_used: Option<f64>,
}

impl Container {
    /// Whether it ended by SIGKILL.
    fn is_killed(&self) -> bool {
        self.ended.as_ref().is_some_and(|(reason, code)| reason != FOR_MEMORY && code == "137")
    }
}

/// The pods of a recording.
pub(crate) struct Pods<'c> {
    view: View<'c>,
    all: BTreeMap<(String, String), Container>,
    /// The busiest node: its name, and the share (0-1) of its CPUs in use.
    node: Option<(String, f64)>,
}

impl<'c> Pods<'c> {
    pub fn read(view: &View<'c>) -> Self {
        let mut pods = Self { view: *view, all: BTreeMap::new(), node: None };
        let tables = &view.recording.tables;
        for event in tables.events.rows.iter().filter(|event| event.source.starts_with(SOURCE)) {
            pods.event(event);
        }
        for row in tables.settings.rows.iter().filter(|row| row.source.starts_with(SOURCE)) {
            let Some((container, name)) = row.name.strip_prefix("container.").and_then(|rest| rest.rsplit_once('.'))
            else {
                continue;
            };
            match name {
                "liveness_probe" => pods.at(&row.source, container).liveness_probe = Some(row.value.clone()),
                "cpu_limit_millicores" => {
                    pods.at(&row.source, container).cpu_limit = row.value.parse().ok().map(|limit: f64| limit / 1e3);
                }
                _ => {}
            }
        }
        // The last value of each series: a recording on disk is judged without rows of samples.
        let last = |metric: Metric| {
            let series = view.index.series(metric.name, &[]);
            series.filter_map(|((source, labels), points)| {
                let container = labels.get("container").unwrap_or_default();
                Some((source.as_str(), container, points.last()?.1))
            })
        };
        for (source, container, restarts) in last(metrics::kubernetes::RESTARTS) {
            pods.at(source, container).restarts = restarts;
        }
        for (source, container, cpus) in last(metrics::kubernetes::CPU_USAGE_CORES) {
            pods.at(source, container).cpu_used = Some(cpus);
        }
        let nodes = last(metrics::kubernetes_node::CPU_UTILIZATION_RATIO);
        let busiest = nodes.max_by(|(.., a), (.., b)| a.total_cmp(b));
        pods.node = busiest.map(|(source, _, used)| (source.split_once(':').map_or("", |(_, it)| it).to_owned(), used));
        pods.share_whole_pods();
        pods
    }

    fn at(&mut self, source: &str, container: &str) -> &mut Container {
        self.all.entry((source.to_owned(), container.to_owned())).or_default()
    }

    fn event(&mut self, event: &Event) {
        let label = |name: &str| event.labels.get(name).unwrap_or_default();
        let count = label("count").parse().unwrap_or(1);
        let one = self.at(&event.source, label("container"));
        match (event.kind.as_str(), label("probe"), label("reason")) {
            ("probe_failed", "liveness", why) => {
                one.liveness_failures += count;
                why.clone_into(&mut one.why);
            }
            ("probe_failed", "readiness", _) => one.readiness_failures += count,
            ("probe_failed", "startup", _) => one.startup_failures += count,
            ("container_killed", ..) if label("why").to_lowercase().contains("liveness") => one.kills += count,
            // Stopped on request, or for another probe.
            ("container_killed", ..) if ["stop", "startup"].iter().any(|of| label("why").contains(of)) => {}
            ("container_killed", ..) => one.unexplained += count,
            ("container_restarted", _, reason) => {
                one.out_of_memory += u64::from(reason == FOR_MEMORY);
                one.ended = Some((reason.to_owned(), label("exit_code").to_owned()));
                one.ended_at = event.observed_at;
            }
            ("kubernetes", _, reason) if event.labels.get("object").is_none() => match reason {
                FOR_MEMORY | "OOMKilling" => one.out_of_memory += count,
                "CrashLoopBackOff"
                | "Error"
                | "RunContainerError"
                | "StartError"
                | "ImagePullBackOff"
                | "ErrImagePull"
                | "CreateContainerConfigError"
                | "Evicted"
                | "Pending"
                | "FailedScheduling" => {
                    one.waits = Some(reason.to_owned());
                }
                "BackOff" if one.waits.is_none() => one.waits = Some(reason.to_owned()),
                _ => {}
            },
            _ => {}
        }
    }

    /// Gives what is known of a pod as a whole to its only container.
    fn share_whole_pods(&mut self) {
        let sources: BTreeSet<String> = self.all.keys().map(|(source, _)| source.clone()).collect();
        for source in sources {
            let names: Vec<String> = self
                .all
                .keys()
                .filter(|(of, name)| *of == source && !name.is_empty())
                .map(|(_, n)| n.clone())
                .collect();
            let [only] = names.as_slice() else { continue };
            let Some(whole) = self.all.remove(&(source.clone(), String::new())) else { continue };
            let one = self.at(&source, only);
            one.liveness_failures += whole.liveness_failures;
            one.readiness_failures += whole.readiness_failures;
            one.startup_failures += whole.startup_failures;
            one.kills += whole.kills;
            one.unexplained += whole.unexplained;
            one.out_of_memory += whole.out_of_memory;
            one.restarts = one.restarts.max(whole.restarts);
            one.cpu_used = one.cpu_used.or(whole.cpu_used);
            one.waits = one.waits.take().or(whole.waits);
            one.ended = one.ended.take().or(whole.ended);
            one.ended_at = one.ended_at.max(whole.ended_at);
            if one.why.is_empty() {
                one.why = whole.why;
            }
        }
    }

    /// Containers that a liveness probe killed or is about to, the most often killed first.
    fn probed(&self) -> Vec<(&(String, String), &Container)> {
        let mut all: Vec<_> = self.all.iter().filter(|(_, one)| one.kills + one.liveness_failures > 0).collect();
        all.sort_by_key(|(_, one)| std::cmp::Reverse((one.kills, one.liveness_failures)));
        all
    }

    fn event_evidence(&self, kind: &str, observed: String, text: String) -> Evidence {
        Evidence::new(
            "events",
            "kind",
            Labels::new([("kind", kind)]),
            self.view.window,
            observed,
            "no such event",
            text,
        )
    }

    /// Containers that a liveness probe kills, or is about to.
    pub fn probes(&self, signs: &mut Signs) {
        for (key, one) in self.probed().into_iter().take(SHOWN) {
            self.probe(key, one, signs);
        }
        let unprobed = self.all.iter().filter(|(_, one)| one.kills + one.liveness_failures == 0);
        for (key, one) in unprobed.take(SHOWN) {
            self.unexplained(key, one, signs);
        }
    }

    /// A container that was killed from outside again and again, or not for lack of memory: mostly kubelet does
    /// so, after a liveness probe that failed.
    fn unexplained(&self, key: &(String, String), one: &Container, signs: &mut Signs) {
        if one.unexplained >= 2 {
            let text = format!("kubelet killed {} {} and gave no reason", shown(key), times(one.unexplained));
            let observed = format!("{} kills", one.unexplained);
            signs.add(FAIR, self.event_evidence("container_killed", observed, text));
        }
        if one.out_of_memory == 0 && one.is_killed() {
            let text = format!("{} was killed from outside (exit code 137), not for lack of memory", shown(key));
            signs.add(FAIR, self.event_evidence("container_restarted", "exit code 137".to_owned(), text));
        }
    }

    /// A liveness probe that got no answer in time: the server was there, and did not get to it.
    pub fn unanswered(&self) -> Option<Evidence> {
        const LATE: [&str; 2] = ["deadline exceeded", "timeout"];
        let probed = self.probed();
        let (key, one) = probed.iter().find(|(_, one)| LATE.iter().any(|word| one.why.contains(word)))?;
        let text = format!("the liveness probe of {} timed out behind the same queue", shown(key));
        Some(self.event_evidence("probe_failed", format!("{} failures", one.liveness_failures), text))
    }

    /// Containers that were killed for lack of memory.
    pub fn memory_kills(&self, signs: &mut Signs) {
        for (key, one) in self.all.iter().filter(|(_, one)| one.out_of_memory > 0).take(SHOWN) {
            let kind = if one.ended.is_some() { "container_restarted" } else { "kubernetes" };
            let text = format!("{} was killed because it reached its memory limit ({FOR_MEMORY})", shown(key));
            signs.add(CERTAIN, self.event_evidence(kind, FOR_MEMORY.to_owned(), text));
        }
    }

    /// Containers that ended in `window` by themselves or from outside, and were restarted: neither
    /// for lack of memory nor by a probe. One that had done its work did not fail.
    pub fn restarts(&self, window: Window, signs: &mut Signs) {
        let is_other = |one: &Container| one.out_of_memory == 0 && one.kills + one.liveness_failures == 0;
        let failed = |reason: &str, code: &str| !matches!(reason, FOR_MEMORY | "Completed" | "unknown") && code != "0";
        for (key, one) in self.all.iter().filter(|(_, one)| is_other(one) && window.contains(one.ended_at)) {
            let Some((reason, code)) = one.ended.as_ref().filter(|(reason, code)| failed(reason, code)) else {
                continue;
            };
            let code = if code.is_empty() { String::new() } else { format!(", exit code {code}") };
            let often = times(one.restarts.max(1.0) as u64);
            let text = format!("{} was restarted {often}, the last time after: {reason}{code}", shown(key));
            let observed = format!("{:.0} restarts", one.restarts);
            // Who killed it is the cause, and not known.
            let strength = if one.is_killed() { WEAK } else { STRONG };
            signs.add(strength, self.event_evidence("container_restarted", observed, text));
        }
    }

    fn probe(&self, key: &(String, String), one: &Container, signs: &mut Signs) {
        let name = shown(key);
        let probe = one.liveness_probe.as_ref().map_or_else(String::new, |probe| format!(" ({probe})"));
        if one.kills > 0 {
            let text = format!("kubelet killed {name} {} because its liveness probe failed{probe}", times(one.kills));
            let observed = format!("{} kills", one.kills);
            signs.add(CERTAIN, self.event_evidence("container_killed", observed, text));
        }
        if one.liveness_failures > 0 {
            let why = if one.why.is_empty() { String::new() } else { format!(": {}", one.why) };
            let probe = if one.kills > 0 { "" } else { probe.as_str() };
            let text = format!("the liveness probe of {name}{probe} failed {}{why}", times(one.liveness_failures));
            let observed = format!("{} failures", one.liveness_failures);
            signs.add(FAIR, self.event_evidence("probe_failed", observed, text));
        }
        if let Some((reason, code)) = one.ended.as_ref().filter(|(reason, _)| reason != FOR_MEMORY) {
            let code = if code.is_empty() { String::new() } else { format!(", exit code {code}") };
            let text =
                format!("{name} was restarted {}, the last time after: {reason}{code}", times(one.restarts as u64));
            let is_killed = SIGNALLED.iter().any(|known| code.ends_with(known));
            let strength = if is_killed && one.liveness_failures > 0 { STRONG } else { FAIR };
            let observed = format!("{:.0} restarts", one.restarts);
            signs.add(strength, self.event_evidence("container_restarted", observed, text));
        }
    }

    /// The room that CPUs had, in words and as evidence; none if it was not seen or if there was
    /// none.
    pub fn idle(&self) -> Option<Evidence> {
        let at = |metric: &str, observed: String, text: String| {
            let labels = Labels::new([("metric", metric)]);
            Evidence::new(
                "samples",
                "value",
                labels,
                self.view.window,
                observed,
                "near 100 %, if CPU were the cause",
                text,
            )
        };
        if let Some((node, used)) = self.node.as_ref().filter(|(_, used)| *used <= 1.0 - IDLE) {
            let text = format!("{} of the CPUs of node {node} were in use", percent(*used));
            return Some(at(metrics::kubernetes_node::CPU_UTILIZATION_RATIO.name, percent(*used), text));
        }
        let (key, one) = *self.probed().first()?;
        let (used, limit) = one.cpu_used.zip(one.cpu_limit).filter(|(used, limit)| *used <= (1.0 - IDLE) * limit)?;
        let text = format!("{} used {used:.2} of the {limit:.2} CPUs that its limit allows", shown(key));
        Some(at(metrics::kubernetes::CPU_USAGE_CORES.name, format!("{used:.2} CPUs"), text))
    }

    /// What Kubernetes says outright, as sentences.
    pub fn says(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (key, one) in &self.all {
            let name = shown(key);
            let is_explained = one.kills > 0 || one.out_of_memory > 0;
            if let Some(waits) = one.waits.as_deref().filter(|_| !is_explained) {
                let ended = one.ended.as_ref().filter(|(reason, _)| reason != "unknown");
                let ended = ended.map_or_else(String::new, |(reason, code)| {
                    let code = if code.is_empty() { String::new() } else { format!(", exit code {code}") };
                    format!("; it ended with: {reason}{code}")
                });
                all.push(format!("{name} does not run ({waits}){ended}"));
            }
            if one.readiness_failures > 0 {
                let count = times(one.readiness_failures);
                all.push(format!("The readiness probe of {name} failed {count}: it got no traffic meanwhile, and is not killed for it"));
            }
            if one.startup_failures > 0 {
                let count = times(one.startup_failures);
                all.push(format!(
                    "The startup probe of {name} failed {count}: it took longer to start than the probe allows"
                ));
            }
            let is_suspect = one.kills + one.liveness_failures > 0;
            if let Some(limit) = one.cpu_limit.filter(|_| is_suspect) {
                all.push(format!("{name} has a CPU limit of {limit:.2}; whether it is throttled was not seen"));
            }
        }
        all.truncate(2 * SHOWN);
        all
    }

    /// What decides why a probe was not answered, or why a container ends. `has_queue` tells whether the
    /// accept queue was seen.
    pub fn next(&self, has_queue: bool) -> Vec<PasteNextReport> {
        let report = |causes: &[Cause], command: String, seconds, shows: &str| PasteNextReport {
            causes: causes.to_vec(),
            command,
            seconds,
            shows: shows.to_owned(),
        };
        let mut all = Vec::new();
        if let Some((key, one)) = self.probed().first() {
            let (namespace, pod, container) = place(key);
            let exec = format!("kubectl exec -n {namespace} {pod}{container} --");
            let shows = "whether connections wait for the app to accept them (Recv-Q near Send-Q): then all its workers are busy, and the probe waits behind them";
            if !has_queue {
                let causes = [Cause::WorkerPoolExhausted, Cause::AcceptQueueOverflow];
                all.push(report(&causes, format!("{exec} ss -ltn"), 1, shows));
            }
            if one.cpu_limit.is_some() {
                let command =
                    format!("{exec} cat /sys/fs/cgroup/cpu.stat; sleep 10; {exec} cat /sys/fs/cgroup/cpu.stat");
                all.push(report(
                    &[Cause::CpuThrottled],
                    command,
                    10,
                    "whether its CPU limit stops it (nr_throttled grows)",
                ));
            }
            if one.cpu_used.is_none() {
                let command = format!("kubectl top pod -n {namespace} {pod} --containers");
                all.push(report(&[Cause::CpuSaturated], command, 1, "whether it uses the CPUs that it may use"));
            } else {
                let command = format!("kubectl logs -n {namespace} {pod}{container} --previous --tail=50");
                all.push(report(
                    &[Cause::DownstreamSlow],
                    command,
                    1,
                    "what it did before it was killed, and what it waited for",
                ));
            }
        }
        if let Some((key, _)) = self.all.iter().find(|(_, one)| one.out_of_memory > 0) {
            let (namespace, pod, _) = place(key);
            let command = format!("kubectl top pod -n {namespace} {pod} --containers");
            all.push(report(&[Cause::OutOfMemoryKill], command, 1, "how near it is to its memory limit now"));
        }
        let ends =
            |one: &Container| one.waits.as_ref().is_some_and(|waits| waits.contains("BackOff") || waits == "Error");
        if let Some((key, _)) = self.all.iter().find(|(_, one)| one.kills == 0 && one.out_of_memory == 0 && ends(one)) {
            let (namespace, pod, container) = place(key);
            let command = format!("kubectl logs -n {namespace} {pod}{container} --previous --tail=50");
            all.push(report(&[], command, 1, "why it ends"));
        }
        all
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// `container app of shop/orders-0`.
fn shown((source, container): &(String, String)) -> String {
    let pod = source.strip_prefix(SOURCE).unwrap_or(source);
    if container.is_empty() { format!("pod {pod}") } else { format!("container {container} of {pod}") }
}

/// Namespace, pod and the flag of the container, for a command. Names that a shell might read
/// otherwise are left to the reader.
fn place((source, container): &(String, String)) -> (String, String, String) {
    let is_plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b))
    };
    let or = |text: &str, other: &str| if is_plain(text) { text.to_owned() } else { other.to_owned() };
    let (namespace, pod) = source.strip_prefix(SOURCE).and_then(|rest| rest.split_once('/')).unwrap_or_default();
    let container = if is_plain(container) { format!(" -c {container}") } else { String::new() };
    (or(namespace, "NAMESPACE"), or(pod, "POD"), container)
}
