//! Whether the load generator was fit to measure: each slice of the load, about a second long (from one of its own
//! samples to the next), is valid, capped (its limit of requests in flight bound) or generator-limited (it could not
//! keep up itself). What was measured in the last two is no limit of the service. A slice without the samples that
//! would tell is not judged, which is not valid either. How a verdict takes this into account is `judge`'s.
//!
//! A generator that is late by ten milliseconds is limited, whatever the service takes; but a service that takes seconds
//! is not measured wrongly for it. So a limit is held against its size as any cause is: [`Slice::spoils`].

mod judging;
mod reading;
mod words;

use holdup_recording::manifest::Model;
use holdup_recording::rows::Request;
use holdup_recording::{Manifest, metrics};
use serde::{Deserialize, Serialize};

use super::Window;
use super::client;
use super::disturbance;
use super::view::Index;
use judging::Judging;
use reading::{Loop, Reading};
pub use words::seconds;

/// Share (0-1) of the requests due in a slice that found every connection busy, from which on the slice is capped: a
/// hundredth is what a 99th percentile begins to show.
const CAPPED: f64 = 0.01;

/// Share (0-1) of a slice that a loop did not sleep, from which on it has no room for what comes unevenly. By itself
/// this limits a closed model, whose users wait for the loop; an open one only if it falls behind as well.
const BUSY: f64 = 0.95;

/// An open model falls behind if fewer than this share (0-1) of the requests due in a slice ended in it.
const KEPT_UP: f64 = 0.98;

/// Send lag (99th percentile of a slice, milliseconds) up to which a generator keeps its schedule: what a healthy
/// process on a shared machine is woken late by now and then. A loop that sleeps longer on purpose has [`LAG_QUANTA`].
const LAG_MS: f64 = 5.0;

/// Wake quanta of the loop that its send lag may take: arrivals within one quantum wait for its end, a tail some more.
const LAG_QUANTA: f64 = 20.0;

/// Requests of a slice that are late at least for its lag to count: of a hundred a second the 99th percentile is the
/// latest one, and one late wake-up is chance.
const LATE: u64 = 3;

/// Share (0-1) of a slice that a loop could run and waited for a CPU, from which on others on this machine decide when it sends.
const RUN_QUEUE: f64 = 0.15;

/// Share (0-1) of a slice that the generator's CPU cgroup was out of quota. CFS takes the CPU away for the rest of a
/// period of 100 ms: one throttled period in a few seconds is already a tail of tens of milliseconds.
const THROTTLED: f64 = 0.02;

/// Share (0-1) of CPU time that a hypervisor took, from which on it explains a generator that can't keep up.
const STOLEN: f64 = 0.05;

/// Share (0-1) of the requests due in a slice that found no local port, from which on the machine's ports are a limit.
const PORTS: f64 = 0.01;

/// A loop that wakes at most this often (nanoseconds) sends each request when it is due.
const PRECISE_NS: i64 = 50_000;

/// A request that waited no longer than this (milliseconds) for a connection found one: for recordings in which the generator did not count.
const FOUND_FREE_MS: f64 = 1.0;

/// Outcome of a request for which the generator's machine had no port left.
const NO_LOCAL_PORT: &str = "no_local_port";

/// How far a slice may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// The generator did what it was asked to.
    Valid,
    /// Its limit of requests in flight bound.
    Capped,
    /// The samples that would tell are missing.
    NotJudged,
    /// It could not keep up.
    GeneratorLimited,
}

/// In what a slice is not valid; reasons before what follows from them.
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
    /// Whether it is the generator's own. The limit of requests in flight is what it was asked for.
    pub fn is_generators(self) -> bool {
        self != Self::InFlight
    }
}

/// One limit in one slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// What.
    pub limit: Limit,
    /// How much: milliseconds of send lag, else a share (0-1).
    pub value: f64,
    /// The loop it was, as its label; empty where it is all of the process.
    pub in_loop: String,
}

/// A stretch of the load and how far it may be trusted.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// When.
    pub window: Window,
    /// How far.
    pub label: Label,
    /// Why not further: the greatest value of each limit.
    pub reasons: Vec<Reason>,
    /// Whether the generator's part is large enough to change what was measured: its own delay is no small part of
    /// response time, or it did not put on what it should. Only then the slice says nothing about the service.
    pub spoils: bool,
}

/// All slices of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Validity {
    /// In order of time, without gaps.
    pub slices: Vec<Slice>,
    /// Most requests in flight.
    pub connections: u32,
    /// Connections that would have done, by Little's law: the rate that was offered in capped slices times the 99th
    /// percentile of response time there. None without capped slices.
    pub connections_wanted: Option<f64>,
    /// Loops that put the load on.
    pub loops: usize,
    /// Whether they wake as often as they can.
    pub is_precise: bool,
    /// Send lag that a slice may have, milliseconds.
    pub lag_ms: f64,
    /// CPUs the generator used and CPUs it was kept from by its cgroup's quota, on average over throttled slices.
    pub quota: Option<(f64, f64)>,
    /// Share (0-1) of this machine's CPU time that a hypervisor took in generator-limited slices, where it matters.
    pub stolen: Option<f64>,
    /// Whether what should have been put on was: an open model of which nearly all ended within its schedule.
    pub is_put_on: bool,
}

impl Validity {
    /// Judges the load of `manifest` within `whole`; nothing without a load.
    pub fn of(manifest: &Manifest, index: &Index, requests: &[&Request], whole: Window) -> Self {
        let Some(load) = &manifest.load else { return Self::default() };
        let Some(span) = span(manifest, requests, whole) else { return Self::default() };
        let begun = manifest.phases.first().map_or(span.from, |p| p.from);
        let loops = Loop::all(index, begun);
        let process = Reading::of(index, metrics::load::THROTTLED.name);
        let mut rows: Vec<&Request> = requests.to_vec();
        rows.sort_unstable_by_key(|r| r.intended_at);
        let quantum_ms = load.wake_quantum_ns as f64 / 1e6;
        let judging = Judging {
            loops: &loops,
            throttled: process.as_ref(),
            rows: &rows,
            users: (load.model == Model::Closed).then_some(f64::from(load.connections)),
            lag_ms: LAG_MS.max(LAG_QUANTA * quantum_ms),
            unloaded_ms: client::unloaded_ms(requests.iter().copied()),
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

    /// Seconds of all of it.
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

    /// Share (0-1) of `window`, as far as the load was on in it, that says nothing about the service.
    pub fn spoiled_ratio(&self, window: Window) -> f64 {
        let overlap = |w: Window| (w.to.min(window.to) - w.from.max(window.from)).max(0) as f64;
        let all: f64 = self.slices.iter().map(|s| overlap(s.window)).sum();
        (self.spoiled().map(overlap).sum::<f64>() + 0.0) / all.max(1.0)
    }

    /// Limits that bound anywhere, with the seconds in which they did and the greatest reason. Connections that a
    /// generator frees too late are no limit of their own.
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

/// The stretch in which requests were due, as far as it is looked at.
fn span(manifest: &Manifest, requests: &[&Request], whole: Window) -> Option<Window> {
    let planned = Window { from: manifest.phases.first()?.from, to: manifest.phases.last()?.to };
    let stopped = requests.iter().map(|r| r.intended_at).max().map_or(planned.to, |last| {
        // A run that was stopped ended with its last request; one that was not, with its schedule.
        if manifest.state == holdup_recording::RunState::Complete { planned.to } else { last }
    });
    let span = Window { from: planned.from.max(whole.from), to: planned.to.min(whole.to).min(stopped) };
    (span.to > span.from).then_some(span)
}

#[cfg(test)]
mod tests;
