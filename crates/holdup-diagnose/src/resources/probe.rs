//! Which restarts a probe caused. A probe's kill follows failures in a row; a crash, a deploy or
//! the kernel's kill has none before it. Kubernetes says outright why it killed.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::rows::Event;
use holdup_recording::{Labels, metrics};

use super::workers;
use crate::case::Case;
use holdup_recording::words::ms;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View, Window};

/// What to record for probes.
pub const ENABLE: &str =
    "--watch probe:http://HOST:PORT/health with --watch server:PORT; in Kubernetes --watch kubernetes:";

/// Failures in a row before a kill, and a probe's timeout in seconds, unless stated: Kubernetes'
/// defaults.
const FAILURES: f64 = 3.0;
const TIMEOUT_S: f64 = 1.0;

/// Time that a server has to end before it is killed, nanoseconds: Kubernetes' default.
const GRACE_NS: i64 = 30_000_000_000;

/// Events of several sources that are the same one are at most this far apart, nanoseconds: each
/// looks once a second.
const TOGETHER_NS: i64 = 1_500_000_000;

/// No source reports the server's return: it counts as gone until the end.
const NEVER: i64 = i64::MAX;

/// Sources inside the server: they end with it.
const OWN_ACCOUNTS: &[&str] = &["puma:", "uwsgi:", "php-fpm:", "prometheus:", "pid:", "log:"];

/// Samples closer than this belong to one read, nanoseconds.
const ONE_READ_NS: i64 = 100_000_000;

/// A source is silent if it reports nothing for this many of its intervals.
const SILENT: f64 = 2.5;

/// Events that report a server's end.
const STOPS: &[&str] = &["server_stopped", "container_killed", "container_restarted"];

/// What is known about probes.
pub struct Probe {
    /// When it failed, and the position of the failure in its row, in time order.
    failed: Vec<(i64, f64)>,
    /// Most failures in a row.
    pub in_a_row_max: f64,
    /// Failures in a row before a kill.
    pub failures: f64,
    /// Its timeout, seconds.
    pub timeout_s: f64,
    reasons: BTreeMap<String, usize>,
    pointer: Evidence,
}

/// A kill of the server caused by a probe.
pub struct Kill {
    /// From when the server stopped answering until it answered again.
    pub hole: Window,
    /// Whether the supervisor itself names the probe as the reason.
    pub is_explicit: bool,
    stopped: Event,
    probes: Option<(i64, f64)>,
}

impl Probe {
    /// The probe of holdup, or of Kubernetes.
    pub fn find(view: &View<'_>) -> Result<Self, Missing> {
        let needed = &["observed_at", "source", "kind", "labels"];
        let events = view.recording.tables.events.with_columns(needed);
        let events = events.map_err(|what| Missing::new(what, "record again; this recording lacks it"))?;
        let samples = view.gauge(metrics::probe::SUCCESS.name, &[], ENABLE);
        let is_kubernetes = |source: &str| source.starts_with("kubernetes:");
        let has_kubernetes = view.recording.tables.settings.rows.iter().any(|s| is_kubernetes(&s.source));
        if samples.is_err() && !has_kubernetes && !events.iter().any(|e| is_kubernetes(&e.source)) {
            return Err(Missing::new("liveness probes and their results", ENABLE));
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

    /// Its results.
    pub fn evidence(&self) -> Vec<Evidence> {
        let reasons: Vec<String> = self.reasons.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
        let why = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
        let text = match self.in_a_row_max {
            0.0 => "the liveness probe did not fail".to_owned(),
            n => format!(
                "the liveness probe failed {} time{}{why}, at most {n:.0} in a row of the {:.0} that lead to a kill",
                self.failed.len(),
                if self.failed.len() > 1 { "s" } else { "" },
                self.failures
            ),
        };
        let mut evidence = self.pointer.clone().saying("no failure", text);
        evidence.observed = format!("{:.0} in a row at most", self.in_a_row_max);
        vec![evidence]
    }

    /// The restarts that it caused.
    pub fn kills(&self, view: &View<'_>) -> Vec<Kill> {
        let events = &view.recording.tables.events.rows;
        let mut stops: Vec<&Event> =
            events.iter().filter(|e| STOPS.contains(&e.kind.as_str()) && view.window.contains(e.observed_at)).collect();
        stops.sort_by_key(|e| e.observed_at);
        let mut kills: Vec<Kill> = Vec::new();
        for stop in stops {
            let says = |text: &str| text.to_lowercase().contains("liveness");
            let is_explicit =
                stop.kind == "container_killed" && (says(&stop.text) || stop.labels.get("why").is_some_and(says));
            if !is_explicit && is_anothers(view, stop) {
                continue;
            }
            let probes = self.before(stop.observed_at);
            if !is_explicit && probes.is_none() {
                continue;
            }
            let hole = self.hole(events, stop);
            match kills.last_mut() {
                // Several sources saw the same one.
                Some(last) if hole.from < last.hole.to => {
                    last.is_explicit |= is_explicit;
                    last.hole.to = last.hole.to.min(hole.to);
                }
                _ => kills.push(Kill { hole, is_explicit, stopped: stop.clone(), probes }),
            }
        }
        kills
    }

    /// From the end of its first process until it listened again: a server that is asked to end
    /// stops accepting first.
    fn hole(&self, events: &[Event], stop: &Event) -> Window {
        let leaves = |e: &&Event| {
            e.kind == "worker_exited" && (stop.observed_at - GRACE_NS..stop.observed_at).contains(&e.observed_at)
        };
        let back = |e: &&Event| {
            matches!(e.kind.as_str(), "server_started" | "container_started") && e.observed_at >= stop.observed_at
        };
        let comes = |e: &&Event| e.kind == "worker_started" && e.observed_at < stop.observed_at;
        // The end of an earlier restart.
        let came = events.iter().filter(comes).map(|e| e.observed_at).max().unwrap_or(i64::MIN);
        let left = events.iter().filter(leaves).map(|e| e.observed_at).filter(|at| *at > came).min();
        let to = events.iter().filter(back).map(|e| e.observed_at).min().unwrap_or(NEVER);
        Window { from: left.unwrap_or(stop.observed_at) - TOGETHER_NS, to }
    }

    /// The failures in a row that led to a stop at `at`: enough of them (one fewer is allowed,
    /// because the supervisor probes at other instants than holdup), beginning before the stop.
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

/// Whether the restart was due to lack of memory.
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
    /// Evidence of the kill and its time.
    pub fn evidence(&self, view: &View<'_>) -> Vec<Evidence> {
        let second = |at: i64| (at - view.recording.manifest.started_at) as f64 / 1e9;
        let mut evidence = Vec::new();
        if let Some((at, in_a_row)) = self.probes {
            let text =
                format!("the probe failed {in_a_row:.0} times in a row, the last time at second {:.0}", second(at));
            evidence.push(event_evidence(view, "probe_failed", &text));
        }
        let back = match self.hole.to {
            NEVER => "and never listened again".to_owned(),
            to if to == self.stopped.observed_at => "and its successor listened at once".to_owned(),
            to => format!("and it listened again {} later", ms((to - self.stopped.observed_at) as f64 / 1e6)),
        };
        let text = format!(
            "at second {:.0} the server was killed ({}), {back}",
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

/// Sources that were silent while the server was gone, though not before and after: they died with
/// it. This is not a gap of holdup's.
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
        // Reading many values takes some time itself.
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
            let text =
                format!("{source} was silent for {seconds:.1} s then: it is a part of the server, and ended with it");
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

/// What a cause must explain to be why probes failed, milliseconds: nothing more if requests wait
/// in the shared queue for at least half the timeout; else as long as the timeout. None without a
/// probe.
pub fn timeout_ms(case: &Case<'_>) -> Option<f64> {
    let probe = Probe::find(&case.view(case.whole())).ok()?;
    let timeout_ms = (probe.timeout_s * 1e3).min(case.excess_ms());
    let in_front_ms = workers::in_front_ms(case).unwrap_or(0.0);
    Some(if in_front_ms >= timeout_ms / 2.0 { 0.0 } else { timeout_ms })
}
