//! A flow that stays at a level, of a disk or of a cloud's volume: how long requests wait for it,
//! and what queues.

use std::borrow::Cow;

use holdup_recording::words::{bytes_per_second, thousands};
use holdup_signals::client::latency::Origin;
use holdup_signals::host::flows::{Binding, Flow, FlowSource, Slowed};
use holdup_signals::host::limits::Documented;
use holdup_signals::host::throttle::Unit;
use holdup_signals::time::plateau::{Ceiling, Fall, Freer, falls};
use holdup_signals::{Missing, Window};

use crate::case::Case;
use crate::resources::disk::is_of_service;

/// What to record for the disks of a cloud's database.
pub const CLOUD: &str = "figures of CloudWatch (read and write throughput, IOPS, queue depth) imported";

/// Least number of samples in the episode to show a level.
const LEAST_SAMPLES: usize = 8;

/// `213 MB/s` , `12,000 operations/s`.
pub fn rate(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Operations => format!("{} operations/s", thousands(value)),
        Unit::Bytes => bytes_per_second(value),
    }
}

/// A flow that stays at a level.
pub struct AtCeiling {
    /// The flow.
    pub flow: Flow,
    /// The level, and how it binds.
    pub binding: Binding,
}

impl AtCeiling {
    /// The ends of bursts that led to the episode's level.
    pub fn falls(&self) -> Vec<Fall> {
        let here = |f: &Fall| (f.to - self.binding.ceiling.level).abs() < 1e-9 * f.to.max(1.0);
        falls(&self.binding.all).into_iter().filter(here).collect()
    }

    /// The higher rate before the level, if the burst has no level of its own: the demand was below
    /// what the burst would have allowed.
    pub fn freer(&self) -> Option<Freer> {
        let freer = self.flow.freer_before(self.binding.unit, &self.binding.ceiling);
        freer.filter(|_| self.burst().is_none())
    }

    /// The higher level before, if the level is one after a burst.
    pub fn burst(&self) -> Option<&Ceiling> {
        let from = self.falls().last()?.from;
        self.binding.all.iter().find(|c| (c.level - from).abs() < 1e-9 * from)
    }
}

/// A disk of this host that got slow since the baseline window, under no more demand; the one whose
/// operations take longest in all.
pub fn slowed(case: &Case<'_>) -> Option<(Flow, Slowed)> {
    let baseline = case.baseline().filter(|baseline| !case.is_of_other(baseline.window))?;
    let flows = case.view(case.whole()).flows().ok()?.into_iter();
    let of_disks = flows.filter(|flow| flow.counted == FlowSource::Host && !flow.is_of_several());
    let slowed = of_disks.filter_map(|flow| Some((flow.slowed(baseline.window, case.slow().window)?, flow)));
    slowed.max_by(|(a, _), (b, _)| a.queued.total_cmp(&b.queued)).map(|(slowed, flow)| (flow, slowed))
}

/// The flows of that kind of source, and those that stay at a level in the episode, the longest
/// queue first. All disks together count only if none of them is at a level: otherwise their sum is
/// that one's plus what others add to it. A disk that got slow itself is at no limit: no more is
/// demanded than before.
///
/// # Errors
/// If nothing of it was recorded, or too little to show a level.
pub fn at_ceiling(case: &Case<'_>, counted: FlowSource) -> Result<(Vec<Flow>, Vec<AtCeiling>), Missing> {
    let slow = case.slow().window;
    let flows: Vec<Flow> = case.view(case.whole()).flows()?.into_iter().filter(|f| f.counted == counted).collect();
    let samples = |f: &Flow| f.bytes.iter().filter(|i| i.window.to > slow.from && i.window.from < slow.to).count();
    if flows.is_empty() {
        return Err(Missing::new("throughput of a database's volume", CLOUD));
    }
    if flows.iter().map(samples).max() < Some(LEAST_SAMPLES) {
        let what = "at least ten samples of the disk while requests were slow";
        return Err(Missing::new(what, "a longer run, or a shorter --interval"));
    }
    let mut found: Vec<AtCeiling> = Vec::new();
    for flow in &flows {
        if let Some(binding) = flow.binding(slow) {
            found.push(AtCeiling { flow: flow.clone(), binding });
        }
    }
    let baseline = case.baseline().filter(|baseline| !case.is_of_other(baseline.window));
    if let Some(baseline) = baseline.filter(|_| counted == FlowSource::Host) {
        found.retain(|at| at.flow.slowed(baseline.window, slow).is_none());
    }
    // Without a level: the same demand as before that waits is a limit that came down.
    if let Some(baseline) = baseline.filter(|_| found.is_empty()) {
        let lowered =
            |flow: &Flow| Some(AtCeiling { binding: flow.lowered(baseline.window, slow)?, flow: flow.clone() });
        found.extend(flows.iter().filter(|flow| !flow.is_of_several()).filter_map(lowered));
    }
    if found.iter().any(|at| !at.flow.is_of_several()) {
        found.retain(|at| !at.flow.is_of_several());
    }
    // The limit of a disk that the service does not use holds up others.
    let is_its = |flow: &Flow| flow.is_of_several() || counted != FlowSource::Host || is_of_service(case, &flow.name);
    found.retain(|at| is_its(&at.flow));
    let queued = |a: &AtCeiling| a.flow.queued(slow).unwrap_or(0.0);
    found.sort_by(|a, b| queued(b).total_cmp(&queued(a)));
    Ok((flows, found))
}

/// The documented limit that the level is, if the instance or volume is known. A number alone
/// matches many limits; the user has to name the type of a host's disk.
pub fn documented(case: &Case<'_>, at: &AtCeiling) -> Option<Documented> {
    let known = case.slow().known_limits();
    let is_known = at.flow.counted == FlowSource::Cloud || known.is_from_user;
    known.matching(at.binding.unit, at.binding.ceiling.level).filter(|_| is_known).cloned()
}

/// Whether a cloud's volume stays at a documented limit, or at one that the provider reports as
/// reached.
pub fn is_at_documented(case: &Case<'_>) -> bool {
    !super::stated::stated(case).is_empty()
        || at_ceiling(case, FlowSource::Cloud).is_ok_and(|(_, all)| all.iter().any(|at| documented(case, at).is_some()))
}

/// Milliseconds that a mean request of the episode waits longer for the volume than one of the
/// baseline window: Little's law over the operations in flight.
///
/// # Errors
/// If no source counted requests.
pub fn waited_ms(case: &Case<'_>, flow: &Flow) -> Result<f64, Missing> {
    if case.origin == Origin::Volume {
        // The excess is this volume's own wait.
        return Ok(case.excess_ms());
    }
    let each = |window: Window| -> Result<f64, Missing> {
        let completed = case.completed_in(window)?.max(1.0);
        let queued = in_recording_of(case, flow, window).and_then(|flow| flow.queued(window));
        Ok(queued.unwrap_or(0.0) * window.seconds() / completed * 1e3)
    };
    let baseline = case.baseline().map(|view| each(view.window)).transpose()?;
    Ok((each(case.slow().window)? - baseline.unwrap_or(0.0)).max(0.0))
}

/// The same place in the recording that `window` belongs to; none if it is not there.
fn in_recording_of<'f>(case: &Case<'_>, flow: &'f Flow, window: Window) -> Option<Cow<'f, Flow>> {
    if !case.is_of_other(window) {
        return Some(Cow::Borrowed(flow));
    }
    let flows = case.view(case.at(window).whole()).flows().ok()?;
    flows.into_iter().find(|f| f.counted == flow.counted && f.name == flow.name).map(Cow::Owned)
}

/// The same from the best source: for a cloud's volume the operations in flight; for a host's disk
/// the threads and sessions that wait for it.
///
/// # Errors
/// If no source shows waits.
pub fn disk_ms(case: &Case<'_>, flow: &Flow) -> Result<f64, Missing> {
    if flow.counted == FlowSource::Cloud {
        return waited_ms(case, flow);
    }
    let view = case.slow();
    let disks = view.disks()?;
    let waits = view.disk_waits(&disks, case.completed_in(view.window)?)?;
    let busy = disks.named(&flow.name).map_or(waits.busiest, |d| d.utilization);
    super::of_requests(&waits, case, waits.disks_ms(busy))
}

/// Due requests per served one, at least 1: the queued requests would have had the same demand.
pub fn backlog(case: &Case<'_>, slow: Window) -> f64 {
    if case.origin == Origin::Volume {
        return 1.0;
    }
    let due: u64 = case.client.seconds.iter().filter(|s| slow.contains(s.window.from)).map(|s| s.offered).sum();
    let served = case.completed_in(slow).unwrap_or(0.0);
    let due_in = case.degradation.as_ref().map_or(slow, |c| c.slow).seconds().max(1e-9);
    let (due, served) = (due as f64 / due_in, served / slow.seconds().max(1e-9));
    if served > 0.0 { (due / served).max(1.0) } else { 1.0 }
}
