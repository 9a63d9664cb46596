//! Kills for lack of memory: how many the kernel and Kubernetes count, when they were, and what
//! ended then.

use holdup_recording::rows::Event;
use holdup_recording::{Labels, events, metrics};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, Missing, View, Window, host::processes};

use super::{HOST, SERVICE};

/// Events that mean that a process or a server has ended or been replaced.
const ENDS: &[&str] =
    &["process_gone", events::RESTART, "server_stopped", "worker_exited", events::CONTAINER_RESTARTED];

/// Kubernetes' word for it.
const TOLD: &str = "OOMKilled";

/// Largest time between counter and event, nanoseconds: each is read once a second.
const TOGETHER_NS: i64 = 3_000_000_000;

/// How many processes were killed, by each source.
pub(super) struct Kills {
    pub(super) of_host: Result<Counter, Missing>,
    pub(super) of_cgroup: Result<Counter, Missing>,
    /// When Kubernetes reported restarting a container for it.
    told: Vec<i64>,
}

impl Kills {
    pub(super) fn count(view: &View<'_>) -> Self {
        let of_host = view.counter(metrics::host::OUT_OF_MEMORY_KILLS.name, &[], HOST);
        Self { of_host, of_cgroup: of_cgroup(view), told: told(view) }
    }

    pub(super) fn are_any(&self) -> bool {
        self.of_host.as_ref().is_ok_and(|count| count.delta > 0.0) || self.are_of_cgroup() || !self.told.is_empty()
    }

    /// Whether the service's own cgroup counts any.
    pub(super) fn are_of_cgroup(&self) -> bool {
        self.of_cgroup.as_ref().is_ok_and(|count| count.delta > 0.0)
    }

    /// When they were: between two samples, or at a moment.
    pub(super) fn times(&self, view: &View<'_>) -> Vec<Window> {
        let mut times = kill_times(view);
        times.extend(self.told.iter().map(|at| Window { from: *at, to: *at }));
        times
    }

    /// Counters that grew.
    pub(super) fn counted(&self) -> Vec<Evidence> {
        let grown = self.of_host.iter().chain(&self.of_cgroup).filter(|count| count.delta > 0.0);
        let evidence = |count: &Counter| {
            let processes = if count.delta > 1.0 { "processes" } else { "process" };
            let text = format!("the kernel killed {:.0} {processes} for lack of memory", count.delta);
            count.evidence(format!("{:.0} kills", count.delta), "0", text)
        };
        grown.map(evidence).collect()
    }

    pub(super) fn evidence(&self, view: &View<'_>) -> Vec<Evidence> {
        let mut evidence = self.counted();
        if !self.told.is_empty() {
            let text = format!(
                "according to Kubernetes, {} restart{} for lack of memory",
                self.told.len(),
                if self.told.len() > 1 { "s were" } else { " was" }
            );
            let labels = Labels::new([("kind", "container_restarted")]);
            evidence.push(Evidence::new("events", "labels", labels, view.window, TOLD, "no such event", text));
        }
        evidence
    }
}

/// Processes and servers that ended or restarted at one of `times`.
///
/// # Errors
/// If events were not recorded.
pub(super) fn ended<'v>(view: &View<'v>, times: &[Window]) -> Result<Vec<&'v Event>, Missing> {
    let events = view.recording.tables.events.with_columns(&["observed_at", "source", "kind"]);
    let events = events.map_err(|what| Missing::new(what, "record again; this recording lacks it"))?;
    let is_then = |event: &Event| times.iter().any(|w| near(w, event.observed_at));
    Ok(events.iter().filter(|e| ENDS.contains(&e.kind.as_str()) && is_then(e)).collect())
}

/// The count of the service's cgroup: the largest of the watched ones, which may be one.
fn of_cgroup(view: &View<'_>) -> Result<Counter, Missing> {
    const KILLS: &str = metrics::cgroup::OUT_OF_MEMORY_KILLS.name;
    let sources = view.sources_of(KILLS).into_iter().filter(|source| processes::is_service(source));
    let counted = sources.filter_map(|source| view.counter_where(|s| s == source, KILLS, &[], SERVICE).ok());
    let most = counted.max_by(|a, b| a.delta.total_cmp(&b.delta));
    most.ok_or_else(|| Missing::new(format!("samples of {KILLS}"), SERVICE))
}

/// When Kubernetes reported restarting a container killed for lack of memory.
fn told(view: &View<'_>) -> Vec<i64> {
    let rows = view.recording.tables.events.with_columns(&["observed_at", "kind", "labels"]).unwrap_or_default();
    let is_one = |e: &&Event| e.kind == "container_restarted" && e.labels.get("reason") == Some(TOLD);
    rows.iter().filter(is_one).map(|e| e.observed_at).filter(|at| view.window.contains(*at)).collect()
}

fn near(window: &Window, at: i64) -> bool {
    window.from - TOGETHER_NS <= at && at <= window.to + TOGETHER_NS
}

/// Between which samples a count grew: the host's, or that of a watched process's cgroup.
fn kill_times(view: &View<'_>) -> Vec<Window> {
    [metrics::host::OUT_OF_MEMORY_KILLS.name, metrics::cgroup::OUT_OF_MEMORY_KILLS.name]
        .iter()
        .flat_map(|metric| view.index.series(metric, &[]))
        .filter(|((source, _), _)| source == "host" || processes::is_service(source))
        .flat_map(|(_, samples)| samples.windows(2))
        .filter(|pair| pair[1].1 > pair[0].1 && view.window.contains(pair[1].0))
        .map(|pair| Window { from: pair[0].0, to: pair[1].0 })
        .collect()
}
