//! Which restarts were a probe's doing. A probe's kill comes right after failures in a row; a crash, a deploy or the kernel's kill
//! comes with none before it. Kubernetes says outright why it killed.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::rows::Event;
use holdup_recording::{Labels, metrics};

use super::workers;
use crate::case::Case;
use holdup_recording::words::ms;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View, Window};

/// What would tell of probes.
pub const ENABLE: &str =
    "--watch probe:http://HOST:PORT/health with --watch server:PORT; in Kubernetes --watch kubernetes:";

/// Failures in a row that have a server killed, and how long a probe waits, seconds, where nobody says: Kubernetes' defaults.
const FAILURES: f64 = 3.0;
const TIMEOUT_S: f64 = 1.0;

/// A server is asked to end and has this long to do so before it is killed, nanoseconds: Kubernetes' default.
const GRACE_NS: i64 = 30_000_000_000;

/// Events of several sources that are one are as far apart at most, nanoseconds: each looks once a second.
const TOGETHER_NS: i64 = 1_500_000_000;

/// Nobody says when the server is back: it counts as gone until the end.
const NEVER: i64 = i64::MAX;

/// Sources that are a server's own account: they end with it.
const OWN_ACCOUNTS: &[&str] = &["puma:", "uwsgi:", "php-fpm:", "prometheus:", "pid:", "log:"];

/// Samples nearer to each other than this are of one read, nanoseconds.
const ONE_READ_NS: i64 = 100_000_000;

/// A source is silent if it says nothing for so many of its intervals.
const SILENT: f64 = 2.5;

/// Events that say that a server ended.
const STOPS: &[&str] = &["server_stopped", "container_killed", "container_restarted"];

/// What is known of probes.
pub struct Probe {
    /// When it failed, and the how manieth in a row that was, in time order.
    failed: Vec<(i64, f64)>,
    /// Most failures in a row.
    pub in_a_row_max: f64,
    /// Failures in a row that have the server killed.
    pub failures: f64,
    /// How long it waits, seconds.
    pub timeout_s: f64,
    reasons: BTreeMap<String, usize>,
    pointer: Evidence,
}

/// A server that a probe had killed.
pub struct Kill {
    /// From when nobody answered until somebody did again.
    pub hole: Window,
    /// Whether the supervisor says itself why.
    pub is_told: bool,
    stopped: Event,
    probes: Option<(i64, f64)>,
}

impl Probe {
    /// Of holdup's own, or of Kubernetes'.
    pub fn of(view: &View<'_>) -> Result<Self, Missing> {
        let needed = &["observed_at", "source", "kind", "labels"];
        let events = view.recording.tables.events.with_columns(needed);
        let events = events.map_err(|what| Missing::new(what, "record again; this recording lacks it"))?;
        let samples = view.gauge(metrics::probe::SUCCESS.name, &[], ENABLE);
        let is_kubernetes = |source: &str| source.starts_with("kubernetes:");
        let has_kubernetes = view.recording.tables.settings.rows.iter().any(|s| is_kubernetes(&s.source));
        if samples.is_err() && !has_kubernetes && !events.iter().any(|e| is_kubernetes(&e.source)) {
            return Err(Missing::new("liveness probes and what became of them", ENABLE));
        }
        let is_liveness = |e: &&Event| {
            e.kind == "probe_failed"
                && e.labels.get("probe").is_none_or(|p| p == "liveness")
                && view.window.contains(e.observed_at)
        };
        let failed: Vec<&Event> = events.iter().filter(is_liveness).collect();
        let in_a_row = |e: &Event| e.labels.get("in_a_row").and_then(|n| n.parse().ok()).unwrap_or(1.0);
        let number = |name: &str| -> Option<f64> {
            let sources = view.recording.tables.settings.rows.iter().filter(|s| s.name == name);
            sources.filter_map(|s| s.value.parse().ok()).reduce(f64::max)
        };
        let mut reasons = BTreeMap::new();
        for reason in failed.iter().filter_map(|e| e.labels.get("reason")) {
            *reasons.entry(reason.to_owned()).or_default() += 1;
        }
        let mut failed: Vec<(i64, f64)> = failed.iter().map(|e| (e.observed_at, in_a_row(e))).collect();
        failed.sort_by_key(|(at, _)| *at);
        let pointer = match samples {
            Ok(samples) => samples.evidence("", "", ""),
            Err(_) if failed.is_empty() => {
                let named = view.recording.tables.settings.rows.iter().find(|s| is_kubernetes(&s.source));
                let labels = Labels::new(named.map(|s| ("source", s.source.as_str())));
                Evidence::new("settings", "value", labels, view.window, "", "", "")
            }
            Err(_) => event_evidence(view, "probe_failed", ""),
        };
        Ok(Self {
            in_a_row_max: failed.iter().map(|(_, n)| *n).fold(0.0, f64::max),
            failures: number("probe.failures").filter(|n| *n >= 1.0).unwrap_or(FAILURES),
            timeout_s: number("probe.timeout_s").filter(|s| *s > 0.0).unwrap_or(TIMEOUT_S),
            failed,
            reasons,
            pointer,
        })
    }

    /// What it found.
    pub fn evidence(&self) -> Vec<Evidence> {
        let reasons: Vec<String> = self.reasons.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
        let why = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
        let text = match self.in_a_row_max {
            0.0 => "the liveness probe did not fail".to_owned(),
            n => format!(
                "the liveness probe failed {} time{}{why}, {n:.0} in a row at most of the {:.0} that have a server killed",
                self.failed.len(),
                if self.failed.len() > 1 { "s" } else { "" },
                self.failures
            ),
        };
        let mut evidence = self.pointer.clone().saying("no failure", text);
        evidence.observed = format!("{:.0} in a row at most", self.in_a_row_max);
        vec![evidence]
    }

    /// The restarts that were its doing.
    pub fn kills(&self, view: &View<'_>) -> Vec<Kill> {
        let events = &view.recording.tables.events.rows;
        let mut stops: Vec<&Event> =
            events.iter().filter(|e| STOPS.contains(&e.kind.as_str()) && view.window.contains(e.observed_at)).collect();
        stops.sort_by_key(|e| e.observed_at);
        let mut kills: Vec<Kill> = Vec::new();
        for stop in stops {
            let says = |text: &str| text.to_lowercase().contains("liveness");
            let is_told =
                stop.kind == "container_killed" && (says(&stop.text) || stop.labels.get("why").is_some_and(says));
            if !is_told && is_anothers(view, stop) {
                continue;
            }
            let probes = self.before(stop.observed_at);
            if !is_told && probes.is_none() {
                continue;
            }
            let hole = self.hole(events, stop);
            match kills.last_mut() {
                // Several sources saw the same one.
                Some(last) if hole.from < last.hole.to => {
                    last.is_told |= is_told;
                    last.hole.to = last.hole.to.min(hole.to);
                }
                _ => kills.push(Kill { hole, is_told, stopped: stop.clone(), probes }),
            }
        }
        kills
    }

    /// From when the first of its processes ended until somebody listened again: one that is asked to end stops accepting first.
    fn hole(&self, events: &[Event], stop: &Event) -> Window {
        let leaves = |e: &&Event| {
            e.kind == "worker_exited" && (stop.observed_at - GRACE_NS..stop.observed_at).contains(&e.observed_at)
        };
        let back = |e: &&Event| {
            matches!(e.kind.as_str(), "server_started" | "container_started") && e.observed_at >= stop.observed_at
        };
        let comes = |e: &&Event| e.kind == "worker_started" && e.observed_at < stop.observed_at;
        // Of an earlier restart.
        let came = events.iter().filter(comes).map(|e| e.observed_at).max().unwrap_or(i64::MIN);
        let left = events.iter().filter(leaves).map(|e| e.observed_at).filter(|at| *at > came).min();
        let to = events.iter().filter(back).map(|e| e.observed_at).min().unwrap_or(NEVER);
        Window { from: left.unwrap_or(stop.observed_at) - TOGETHER_NS, to }
    }

    /// The failures in a row that a server which stopped at `at` was killed for: enough of them, one short at most as the supervisor
    /// asks at other instants than holdup does, and begun before it stopped.
    fn before(&self, at: i64) -> Option<(i64, f64)> {
        let enough = (self.failures - 1.0).max(1.0);
        let until = self.failed.partition_point(|(failed, _)| *failed <= at + TOGETHER_NS);
        let last = *self.failed[..until].last()?;
        let mut row = self.failed[..until].windows(2).rev().take_while(|pair| pair[0].1 < pair[1].1);
        let first = row.by_ref().last().map_or(last, |pair| pair[0]);
        let is_before = first.0 < at - TOGETHER_NS;
        (last.1 >= enough && is_before && at - last.0 <= GRACE_NS).then_some(last)
    }
}

/// Whether the restart was for want of memory.
fn is_anothers(view: &View<'_>, stop: &Event) -> bool {
    let reason = stop.labels.get("reason").unwrap_or_default();
    let near = |at: i64| (at - stop.observed_at).abs() <= 2 * TOGETHER_NS;
    let killed = |metric: &str| {
        view.index
            .series(metric, &[])
            .any(|(_, series)| series.windows(2).any(|pair| pair[1].1 > pair[0].1 && near(pair[1].0)))
    };
    reason.eq_ignore_ascii_case("OOMKilled")
        || killed(metrics::cgroup::OUT_OF_MEMORY_KILLS.name)
        || killed(metrics::host::OUT_OF_MEMORY_KILLS.name)
}

impl Kill {
    /// What says that it was one, and when.
    pub fn evidence(&self, view: &View<'_>) -> Vec<Evidence> {
        let second = |at: i64| (at - view.recording.manifest.started_at) as f64 / 1e9;
        let mut evidence = Vec::new();
        if let Some((at, in_a_row)) = self.probes {
            let text =
                format!("the probe failed {in_a_row:.0} times in a row, the last time at second {:.0}", second(at));
            evidence.push(event_evidence(view, "probe_failed", &text));
        }
        let back = match self.hole.to {
            NEVER => "and nobody listened again".to_owned(),
            to if to == self.stopped.observed_at => "and another one listened at once".to_owned(),
            to => format!("and somebody listened again {} later", ms((to - self.stopped.observed_at) as f64 / 1e6)),
        };
        let text = format!(
            "at second {:.0} the server was ended ({}), {back}",
            second(self.stopped.observed_at),
            self.stopped.text
        );
        evidence.push(event_evidence(view, &self.stopped.kind, &text));
        evidence
    }
}

fn event_evidence(view: &View<'_>, kind: &str, text: &str) -> Evidence {
    Evidence::new("events", "kind", Labels::new([("kind", kind)]), view.window, kind, "no such event", text)
}

/// Sources that said nothing while the server was gone, though they did before and after: they died with it. Not a gap of holdup's.
pub fn silences(view: &View<'_>, holes: &[Window]) -> Vec<Evidence> {
    let samples = &view.index.condensed.series;
    let own = samples.sources.iter().filter(|(source, _)| OWN_ACCOUNTS.iter().any(|scheme| source.starts_with(scheme)));
    let mut instants: BTreeMap<&str, (BTreeSet<i64>, &str)> =
        own.map(|(source, metric)| (source.as_str(), (BTreeSet::new(), metric.as_str()))).collect();
    for ((source, _), series) in samples.by_metric.values().flatten() {
        if let Some((times, _)) = instants.get_mut(source.as_str()) {
            times.extend(series.iter().map(|(at, _)| *at));
        }
    }
    let mut evidence = Vec::new();
    for (source, (instants, metric)) in instants {
        // A read of many values takes some time itself.
        let mut reads: Vec<i64> = Vec::new();
        instants.into_iter().for_each(|at| {
            if reads.last().is_none_or(|last| at - last >= ONE_READ_NS) {
                reads.push(at);
            }
        });
        let mut steps: Vec<i64> = reads.windows(2).map(|pair| pair[1] - pair[0]).collect();
        steps.sort_unstable();
        let Some(usual) = steps.get(steps.len() / 2).copied() else { continue };
        let is_long = |pair: &&[i64]| (pair[1] - pair[0]) as f64 > SILENT * usual as f64;
        let is_in_hole = |pair: &&[i64]| holes.iter().any(|hole| pair[0] < hole.to && hole.from < pair[1]);
        let pauses = reads.windows(2).filter(is_long).filter(is_in_hole);
        let seconds: f64 = pauses.map(|pair| (pair[1] - pair[0]) as f64 / 1e9).sum();
        if seconds > 0.0 {
            let text = format!(
                "{source} said nothing for {seconds:.1} s then: it is the server's own account, and ended with it"
            );
            let labels = Labels::new([("metric", metric)]);
            let observed = format!("{seconds:.1} s");
            evidence.push(Evidence::new(
                "samples",
                "observed_at",
                labels,
                view.window,
                observed,
                "samples all along",
                text,
            ));
        }
    }
    evidence
}

/// What a cause has to make up for it to be why probes failed, milliseconds: nothing more where requests wait in the queue that the
/// probe comes through for as long as half of what it waits; else as long as it waits. None where no probe was seen.
pub fn timeout_ms(case: &Case<'_>) -> Option<f64> {
    let probe = Probe::of(&case.view(case.whole())).ok()?;
    let timeout_ms = (probe.timeout_s * 1e3).min(case.excess_ms());
    let in_front_ms = workers::in_front_ms(case).unwrap_or(0.0);
    Some(if in_front_ms >= timeout_ms / 2.0 { 0.0 } else { timeout_ms })
}
