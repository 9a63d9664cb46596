//! The rows of one pod: settings of its containers, how often they restarted, and how each ended.

use std::collections::HashMap;

use holdup_recording::rows::Setting;
use holdup_recording::{Batch, Labels, clock, metrics};

use crate::kubernetes::objects::document::{Amounts, Container, ContainerStatus, Pod, State, Terminated};
use crate::kubernetes::objects::{ReadTime, Settings, probe, quantity, shown};
use crate::reading::{Out, event};

/// What was already reported of a pod.
#[derive(Debug, Default)]
pub(crate) struct ReportedPod {
    settings: Settings,
    containers: HashMap<String, ReportedContainer>,
}

/// What was already reported of a container.
#[derive(Debug, Default)]
struct ReportedContainer {
    restarts: Option<u64>,
    /// How it last ended.
    ended: Option<String>,
    /// Why it is waiting.
    waits_for: Option<String>,
}

/// The rows for what is new in `pod`.
pub(crate) fn rows(
    pod: &Pod,
    source: &str,
    known: &mut ReportedPod,
    since: Option<i64>,
    read: ReadTime,
    batch: &mut Batch,
) {
    let settings = settings(pod);
    for (name, value) in settings.iter().filter(|(name, value)| known.settings.get(*name) != Some(*value)) {
        batch.settings.push(Setting {
            observed_at: read.at,
            source: source.to_owned(),
            name: name.clone(),
            value: value.clone(),
        });
    }
    known.settings = settings;
    let status = &pod.status;
    let lists = [(&status.container_statuses, false), (&status.init_container_statuses, true)];
    for (status, is_init) in
        lists.into_iter().flat_map(|(list, is_init)| list.iter().flatten().map(move |s| (s, is_init)))
    {
        let is_sidecar = is_init && restarts_always(pod, &status.name);
        let mut out = Out::new(batch, source);
        out.set_window(read.at - read.window_ns / 2, read.window_ns);
        // An init container is ready once it has ended.
        let ready = status.ready.filter(|_| !is_init || is_sidecar);
        out.put_known(
            &Labels::new([("container", status.name.as_str())]),
            [
                (metrics::kubernetes::RESTARTS, status.restart_count.map(|count| count as f64)),
                (metrics::kubernetes::READY, ready.map(|is_ready| f64::from(u8::from(is_ready)))),
            ],
        );
        let past = known.containers.entry(status.name.clone()).or_default();
        let policy = if is_sidecar { "Always" } else { pod.spec.restart_policy.as_deref().unwrap_or("Always") };
        let happened = happened(status, past, policy, is_init, read.at);
        let new = happened.into_iter().filter(|(at, ..)| since.is_none_or(|since| *at >= since));
        batch.events.extend(new.map(|(at, kind, text, labels)| event(source, at, kind, text, labels)));
    }
}

/// Whether `name` is an init container that keeps running beside the others (a sidecar).
fn restarts_always(pod: &Pod, name: &str) -> bool {
    let found = pod.spec.init_containers.iter().flatten().find(|container| container.name == name);
    found.is_some_and(|container| container.restart_policy.as_deref() == Some("Always"))
}

/// Time, kind, text and facts.
type Happened = (i64, &'static str, String, Labels);

fn happened(
    status: &ContainerStatus,
    past: &mut ReportedContainer,
    policy: &str,
    is_init: bool,
    now: i64,
) -> Vec<Happened> {
    let mut all = Vec::new();
    let name = &*shown(&status.name);
    let restarts = status.restart_count.unwrap_or_default();
    let more = restarts.saturating_sub(past.restarts.unwrap_or_default());
    let is_first = past.restarts.is_none();
    past.restarts = status.restart_count.or(past.restarts);
    // The restarts before the first look are unknown, so only the last one is reported.
    let count = if is_first { 1 } else { more.max(1) };
    let terminated = |state: &Option<State>| state.as_ref().and_then(|state| state.terminated.as_ref()).map(id);
    match (terminated(&status.last_state), status.last_state.as_ref().and_then(|it| it.terminated.as_ref())) {
        (Some(id), Some(ended)) if past.ended.as_ref() != Some(&id) => {
            past.ended = Some(id);
            let labels = facts(name, ended).with("restarts", count.to_string());
            let text = format!("container {name} ended and was restarted: {}", words(ended));
            all.push((moment(ended.finished_at.as_deref()).unwrap_or(now), "container_restarted", text, labels));
        }
        _ if !is_first && more > 0 => {
            let labels =
                Labels::new([("container", name)]).with("reason", "unknown").with("restarts", more.to_string());
            let text = format!("container {name} was restarted; Kubernetes does not say how it ended");
            all.push((now, "container_restarted", text, labels));
        }
        _ => {}
    }
    // A container that is not restarted; for the others the end is reported with the restart.
    if let Some(ended) = status.state.as_ref().and_then(|state| state.terminated.as_ref()) {
        let failed = ended.exit_code != Some(0);
        let stays = policy == "Never" || (policy == "OnFailure" && !failed);
        if stays && (failed || !is_init) && past.ended.as_ref() != Some(&id(ended)) {
            past.ended = Some(id(ended));
            let text = format!("container {name} ended: {}", words(ended));
            let at = moment(ended.finished_at.as_deref()).unwrap_or(now);
            all.push((at, "kubernetes", text, facts(name, ended)));
        }
    }
    let waiting = status.state.as_ref().and_then(|state| state.waiting.as_ref());
    let reason = waiting.and_then(|it| it.reason.as_deref()).map(shown);
    // Every container is created once: that is not worth an event.
    let is_news = reason.as_deref().is_some_and(|it| !matches!(it, "ContainerCreating" | "PodInitializing"));
    if is_news && reason != past.waits_for {
        let why = reason.clone().unwrap_or_default();
        let message = waiting.and_then(|it| it.message.as_deref()).map(shown).filter(|text| !text.is_empty());
        let message = message.map_or_else(String::new, |text| format!(": {text}"));
        let labels = Labels::new([("container", name)]).with("reason", &*why);
        all.push((now, "kubernetes", format!("container {name} waits: {why}{message}"), labels));
    }
    past.waits_for = reason;
    all
}

/// Distinguishes one end of a container from the next.
fn id(ended: &Terminated) -> String {
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{} {}", part(&ended.container_id), part(&ended.finished_at))
}

fn facts(container: &str, ended: &Terminated) -> Labels {
    let mut labels =
        Labels::new([("container", container)]).with("reason", reason(ended).unwrap_or_else(|| "unknown".to_owned()));
    if let Some(code) = ended.exit_code {
        labels = labels.with("exit_code", code.to_string());
    }
    // Runtimes seldom report the signal, but they and shells exit with 128 plus its number.
    let of_code = ended.exit_code.filter(|code| (129..=192).contains(code)).map(|code| code - 128);
    match ended.signal.filter(|signal| *signal > 0).or(of_code) {
        Some(signal) => labels.with("signal", signal.to_string()),
        None => labels,
    }
}

fn words(ended: &Terminated) -> String {
    let reason = reason(ended).unwrap_or_else(|| "for an unknown reason".to_owned());
    ended.exit_code.map_or_else(|| reason.clone(), |code| format!("{reason}, exit code {code}"))
}

fn reason(ended: &Terminated) -> Option<String> {
    ended.reason.as_deref().map(shown).filter(|reason| !reason.is_empty())
}

fn moment(text: Option<&str>) -> Option<i64> {
    clock::parse_rfc3339(text?)
}

/// All times in it, nanoseconds since 1970.
pub(crate) fn moments(pod: &Pod) -> Vec<i64> {
    let statuses = [&pod.status.container_statuses, &pod.status.init_container_statuses];
    let states = statuses.into_iter().flatten().flatten().flat_map(|it| [&it.state, &it.last_state]).flatten();
    let texts = states.flat_map(|state| {
        let ended = state.terminated.as_ref().and_then(|it| it.finished_at.as_deref());
        [ended, state.running.as_ref().and_then(|it| it.started_at.as_deref())]
    });
    let created = pod.metadata.creation_timestamp.as_deref();
    texts.chain([created]).filter_map(moment).collect()
}

/// Settings of a pod and its containers. A missing limit yields no setting.
fn settings(pod: &Pod) -> Settings {
    let mut found = Settings::new();
    let mut put = |name: String, value: Option<String>| {
        if let Some(value) = value {
            found.insert(name, value);
        }
    };
    put("pod.node".to_owned(), pod.spec.node_name.clone());
    put("pod.qos_class".to_owned(), pod.status.qos_class.clone());
    put("pod.restart_policy".to_owned(), pod.spec.restart_policy.clone());
    let grace = pod.spec.termination_grace_period_seconds;
    put("pod.termination_grace_s".to_owned(), grace.map(|seconds| seconds.to_string()));
    let containers = [&pod.spec.containers, &pod.spec.init_containers];
    for container in containers.into_iter().flatten().flatten() {
        let mut put = |what: &str, value: Option<String>| put(format!("container.{}.{what}", container.name), value);
        put("image", container.image.clone());
        let (limits, requests) =
            container.resources.as_ref().map_or((None, None), |it| (it.limits.as_ref(), it.requests.as_ref()));
        put("cpu_limit_millicores", cores(limits));
        put("cpu_request_millicores", cores(requests));
        put("memory_limit_bytes", bytes(limits));
        put("memory_request_bytes", bytes(requests));
        let Container { liveness_probe, readiness_probe, startup_probe, .. } = container;
        for (what, probe) in
            [("liveness_probe", liveness_probe), ("readiness_probe", readiness_probe), ("startup_probe", startup_probe)]
        {
            put(what, probe.as_ref().and_then(|probe| probe::text(probe, container)));
        }
    }
    found
}

fn cores(amounts: Option<&Amounts>) -> Option<String> {
    let cores = quantity::number(amounts?.cpu.as_ref()?)?;
    // To a millionth of a core: the rest is a rounding error.
    Some(((cores * 1e6).round() / 1e3).to_string())
}

fn bytes(amounts: Option<&Amounts>) -> Option<String> {
    let bytes = quantity::number(amounts?.memory.as_ref()?)?;
    Some((bytes.round() as u64).to_string())
}
