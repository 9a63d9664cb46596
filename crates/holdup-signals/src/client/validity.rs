//! Whether the load generator was fit to measure. Each slice of the load, about a second long (from
//! one of its samples to the next), is valid, capped (its limit of requests in flight bound) or
//! generator-limited (it could not keep up itself). Measurements from the latter two never show a
//! limit of the service. A slice without the needed samples is not judged, so not valid either.
//! `judge` decides what a verdict makes of this.
//!
//! A generator that is ten milliseconds late is limited, however long the service takes; but that
//! does not spoil the measurement of a service that takes seconds. So a limit is weighed by its
//! size, like any cause: [`Slice::spoils`].

mod judging;
mod reading;

use holdup_recording::manifest::Model;
use holdup_recording::rows::Request;
use holdup_recording::{Manifest, metrics};
use serde::{Deserialize, Serialize};

use crate::Window;
use crate::host::disturbance;
use crate::time::requests;
use crate::view::Index;
use judging::SliceJudge;
use reading::{Loop, LoopSeries};

/// A slice is capped if this share (0-1) of the requests due in it found every connection busy: one
/// in a hundred is where a 99th percentile starts to show it.
const CAPPED: f64 = 0.01;

/// From this share (0-1) of busy time, a loop has no room for uneven arrivals. By itself this
/// limits a closed model, whose users wait for the loop; an open model must also fall behind.
pub const BUSY: f64 = 0.95;

/// An open model falls behind if fewer than this share (0-1) of the requests due in a slice ended
/// in it.
const KEPT_UP: f64 = 0.98;

/// Send lag (99th percentile of a slice, milliseconds) of a generator that keeps its schedule: a
/// healthy process on a shared machine is now and then woken this late. A loop that sleeps longer
/// on purpose has [`LAG_QUANTA`].
pub const LAG_MS: f64 = 5.0;

/// Wake quanta that a loop's send lag may take: arrivals within a quantum wait for its end, the
/// tail somewhat longer.
const LAG_QUANTA: f64 = 20.0;

/// Least number of late requests in a slice for its lag to count: at a hundred a second the 99th
/// percentile is the latest one, and one late wake-up is chance.
const LATE: u64 = 3;

/// Share (0-1) of a slice that a loop waited for a CPU, from which other processes of this machine
/// decide when it sends.
pub const RUN_QUEUE: f64 = 0.15;

/// Share (0-1) of a slice that the generator's CPU cgroup was out of quota. CFS takes the CPU away
/// for the rest of a period of 100 ms: one throttled period in a few seconds already makes a tail
/// of tens of milliseconds.
pub const THROTTLED: f64 = 0.02;

/// Share (0-1) of CPU time taken by a hypervisor that explains a generator that can't keep up.
const STOLEN: f64 = 0.05;

/// Share (0-1) of the requests due in a slice that found no local port, from which the machine's
/// ports are a limit.
const PORTS: f64 = 0.01;

/// A loop that wakes at least this often (nanoseconds) sends each request when it is due.
const PRECISE_NS: i64 = 50_000;

/// A request that waited no longer than this (milliseconds) found a free connection; for recordings
/// in which the generator did not count.
const FOUND_FREE_MS: f64 = 1.0;

/// Outcome of a request for which the generator's machine had no local port left.
const NO_LOCAL_PORT: &str = "no_local_port";

/// How far a slice may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// The generator kept its schedule.
    Valid,
    /// Its limit of requests in flight bound.
    Capped,
    /// The samples needed are missing.
    NotJudged,
    /// It could not keep up.
    GeneratorLimited,
}

/// Why a slice is not valid; causes before their consequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The CPU cgroup is out of quota.
    Throttled,
    /// A loop waits for a CPU.
    RunQueue,
    /// A loop never sleeps and falls behind.
    Busy,
    /// Connections find no local port.
    LocalPorts,
    /// Requests are sent late.
    SendLag,
    /// Requests find every connection busy.
    InFlight,
}

impl Limit {
    /// Whether the generator itself is the limit. The limit of requests in flight was asked for.
    pub fn is_generators(self) -> bool {
        self != Self::InFlight
    }
}

/// One limit in one slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// Which limit.
    pub limit: Limit,
    /// Its size: milliseconds of send lag, else a share (0-1).
    pub value: f64,
    /// The label of its loop; empty for the whole process.
    pub in_loop: String,
}

/// A stretch of the load and how far it may be trusted.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// Its time.
    pub window: Window,
    /// Its label.
    pub label: Label,
    /// The reasons: the greatest value of each limit.
    pub reasons: Vec<Reason>,
    /// Whether the generator's part changed the measurement: its own delay is a large part of
    /// response time, or it did not generate the load it should. Only then the slice says nothing
    /// about the service.
    pub spoils: bool,
}

/// All slices of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Validity {
    /// In order of time, without gaps.
    pub slices: Vec<Slice>,
    /// Most requests in flight.
    pub connections: u32,
    /// Connections that would have sufficed, by Little's law: the rate offered in capped slices
    /// times their 99th percentile of response time. None without capped slices.
    pub connections_wanted: Option<f64>,
    /// Loops that generate the load.
    pub loops: usize,
    /// Whether they wake as often as they can.
    pub is_precise: bool,
    /// Send lag that a slice may have, milliseconds.
    pub lag_ms: f64,
    /// CPUs that the generator used and CPUs that its cgroup's quota denied, on average over
    /// throttled slices.
    pub quota: Option<(f64, f64)>,
    /// Share (0-1) of this machine's CPU time that a hypervisor took in generator-limited slices,
    /// if it matters.
    pub stolen: Option<f64>,
    /// Whether the load was generated in full: an open model of which nearly all requests ended
    /// within its schedule.
    pub is_put_on: bool,
}

impl Validity {
    /// Judges the load of `manifest` within `whole`; empty without a load.
    pub fn judge(manifest: &Manifest, index: &Index, requests: &[&Request], whole: Window) -> Self {
        let Some(load) = &manifest.load else { return Self::default() };
        let Some(span) = span(manifest, requests, whole) else { return Self::default() };
        let begun = manifest.phases.first().map_or(span.from, |p| p.from);
        let loops = Loop::all(index, begun);
        let process = LoopSeries::of_process(index, metrics::load::THROTTLED.name);
        let mut rows: Vec<&Request> = requests.to_vec();
        rows.sort_unstable_by_key(|r| r.intended_at);
        let quantum_ms = load.wake_quantum_ns as f64 / 1e6;
        let judging = SliceJudge {
            loops: &loops,
            throttled: process.as_ref(),
            rows: &rows,
            users: (load.model == Model::Closed).then_some(f64::from(load.connections)),
            lag_ms: LAG_MS.max(LAG_QUANTA * quantum_ms),
            unloaded_ms: requests::unloaded_ms(requests.iter().copied()),
        };
        let slices = judging.slices(span);
        let mut validity = Self {
            slices,
            connections: load.connections,
            loops: loops.len(),
            is_precise: (1..=PRECISE_NS).contains(&load.wake_quantum_ns),
            lag_ms: judging.lag_ms,
            ..Self::default()
        };
        validity.is_put_on = judging.users.is_none() && !judging.is_behind(span);
        validity.connections_wanted = judging.wanted(&validity);
        validity.quota = judging.quota(&validity);
        let limited: Vec<Window> = validity.windows(Label::GeneratorLimited).collect();
        let stolen = if limited.is_empty() { None } else { disturbance::stolen(index, limited) };
        validity.stolen = stolen.filter(|share| *share >= STOLEN);
        validity
    }

    /// Seconds with `label`.
    pub fn seconds(&self, label: Label) -> f64 {
        total(self.slices.iter().filter(|s| s.label == label))
    }

    /// Total seconds.
    pub fn length(&self) -> f64 {
        total(&self.slices)
    }

    /// Stretches with `label`.
    pub fn windows(&self, label: Label) -> impl Iterator<Item = Window> {
        self.slices.iter().filter(move |s| s.label == label).map(|s| s.window)
    }

    /// Stretches that say nothing about the service.
    pub fn spoiled(&self) -> impl Iterator<Item = Window> {
        self.slices.iter().filter(|s| s.spoils).map(|s| s.window)
    }

    /// Share (0-1) of the loaded part of `window` that says nothing about the service.
    pub fn spoiled_ratio(&self, window: Window) -> f64 {
        let overlap = |w: Window| (w.to.min(window.to) - w.from.max(window.from)).max(0) as f64;
        let all: f64 = self.slices.iter().map(|s| overlap(s.window)).sum();
        (self.spoiled().map(overlap).sum::<f64>() + 0.0) / all.max(1.0)
    }

    /// Limits that bound anywhere, with the seconds in which they did and the greatest reason.
    /// Connections that the generator frees too late do not count as a separate limit.
    pub fn limits(&self) -> Vec<(f64, Reason)> {
        let mut all: Vec<(f64, Reason)> = Vec::new();
        for slice in &self.slices {
            for reason in slice.reasons.iter().filter(|r| r.limit.is_generators() || !slice.spoils) {
                match all.iter_mut().find(|(_, r)| r.limit == reason.limit) {
                    Some((seconds, greatest)) => {
                        *seconds += slice.window.seconds();
                        if reason.value > greatest.value {
                            *greatest = reason.clone();
                        }
                    }
                    None => all.push((slice.window.seconds(), reason.clone())),
                }
            }
        }
        all.sort_by_key(|(_, reason)| reason.limit);
        all
    }
}

fn total<'s>(slices: impl IntoIterator<Item = &'s Slice>) -> f64 {
    slices.into_iter().fold(0.0, |sum, slice| sum + slice.window.seconds())
}

/// The part of `whole` in which requests were due.
fn span(manifest: &Manifest, requests: &[&Request], whole: Window) -> Option<Window> {
    let planned = Window { from: manifest.phases.first()?.from, to: manifest.phases.last()?.to };
    let stopped = requests.iter().map(|r| r.intended_at).max().map_or(planned.to, |last| {
        // A stopped run ended with its last request, a complete one with its schedule.
        if manifest.state == holdup_recording::RunState::Complete { planned.to } else { last }
    });
    let span = Window { from: planned.from.max(whole.from), to: planned.to.min(whole.to).min(stopped) };
    (span.to > span.from).then_some(span)
}

#[cfg(test)]
mod tests;
