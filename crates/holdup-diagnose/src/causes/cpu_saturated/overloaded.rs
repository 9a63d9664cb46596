//! Demand that exceeds the CPUs: requests wait in front of the service, wherever that is.

use holdup_recording::manifest::Model;
use holdup_recording::{Labels, metrics};

use crate::case::Case;
use crate::causes::{ms, percent};
use crate::resources::cpu::{self, CpuUse, HOST};
use crate::resources::other_users::OtherUsers;
use holdup_signals::evidence::Evidence;
use holdup_signals::time::requests::{mean_over, service_ms};
use holdup_signals::{Missing, View};

/// CPUs count as fully used from this share (0-1) of their time: between two requests there is
/// always a moment …
const ALL_BUSY: f64 = 0.95;

/// … or if they are full in this share (0-1) of the samples: an episode may begin before they are.
const MOSTLY_FULL: f64 = 0.75;

/// Fewer requests end than are due below this share (0-1): some are in flight at the end.
const KEEPS_UP: f64 = 0.95;

/// Whether the demand exceeds the CPUs: all are busy, mostly with the service, and fewer requests
/// end than are due, or users queue. A service completes at most CPUs over CPU time per request
/// (utilization law), whatever waits in front. If others' statements fill the CPUs and the rest
/// would do for all requests that are due, requests wait beside them for what the run queue shows.
///
/// # Errors
/// If it is unknown which processes used the CPU time.
pub(super) fn find(case: &Case<'_>) -> Result<Option<[Evidence; 2]>, Missing> {
    let Some(window) = case.degradation.as_ref().filter(|c| c.is_slow).map(|c| c.slow) else { return Ok(None) };
    // While requests are due: what is still answered later leaves CPUs idle.
    let view = case.view(window);
    let cpus = CpuUse::measure(&view)?;
    let own = [metrics::process::CPU_TIME.name, metrics::server::THREAD_CPU_TIME.name];
    let own = own.into_iter().find_map(|metric| view.counter(metric, &[], "").ok());
    let own = own.ok_or_else(|| Missing::new("CPU time of the service's processes", "--watch pid:N for each of them"));
    // Niced time may be the service's own, which does not make way for it.
    let whose = own.as_ref().err().filter(|_| cpus.gives_way > 0.0 && cpus.may_be_short());
    if let Some(missing) = whose {
        return Err(missing.clone());
    }
    if cpus.busy < ALL_BUSY && cpus.full < MOSTLY_FULL {
        return Ok(None);
    }
    let Ok(requests) = case.requests_in(view.window) else { return Ok(None) };
    let answered = requests.iter().filter(|r| r.outcome == "ok" && window.contains(r.done_at));
    let answered = answered.map(|r| r.count()).sum::<u64>() as f64 / window.seconds();
    let queue = match case.recording.manifest.load.as_ref().map(|load| load.model) {
        Some(Model::Closed) => queue_of_users(case, answered),
        _ => {
            let due = case.due_per_second(window)?;
            let text = format!("{due:.0} requests/s were due, and with all CPUs busy {answered:.0} were answered");
            (answered < KEEPS_UP * due).then(|| (format!("{due:.0}/s"), text))
        }
    };
    let Some((expected, text)) = queue.filter(|_| answered > 0.0) else { return Ok(None) };
    let own = own?;
    if own.delta < cpu::OWN * cpus.seconds {
        return Ok(None);
    }
    if fits_beside_others(case, own.delta, answered)? {
        return Ok(None);
    }
    let each_ms = own.delta / view.window.seconds() / answered * 1e3;
    let used = format!(
        "{} of the CPU time in use was the service's: {} per answered request",
        percent(own.delta / cpus.seconds),
        ms(each_ms)
    );
    let used = own.evidence(ms(each_ms), "less", used);
    let observed = format!("{answered:.0}/s");
    let kept_up = Evidence::new("requests", "done_at", Labels::none(), window, observed, expected, text);
    Ok(Some([used, kept_up]))
}

/// Whether all requests that are due would leave CPUs idle without the statements of users who came
/// with the episode. `used` is the CPU time of the service's processes, of which theirs is a part.
fn fits_beside_others(case: &Case<'_>, used: f64, answered: f64) -> Result<bool, Missing> {
    let Some(window) = case.degradation.as_ref().map(|c| c.slow) else { return Ok(false) };
    let view = case.view(window);
    let others = OtherUsers::for_case(case).ok().filter(|others| !others.is_empty());
    let Some(theirs) = others.and_then(|others| others.cpu_seconds(&view)) else { return Ok(false) };
    let cpus = view.gauge(metrics::host::CPU_LOGICAL_COUNT.name, &[], HOST)?.mean.max(1.0);
    let each = (used - theirs) / window.seconds() / answered;
    Ok(each * case.due_per_second(window)? < ALL_BUSY * cpus)
}

/// Users queue for CPUs with this many requests in flight per CPU.
const QUEUED: f64 = 2.0;

/// Whether users who each wait for their response queue: a new request starts only when one ends,
/// so all due requests are answered, later. Returns the expectation and the observation.
fn queue_of_users(case: &Case<'_>, answered: f64) -> Option<(String, String)> {
    let view = case.slow();
    let cpus = view.gauge(metrics::host::CPU_LOGICAL_COUNT.name, &[], HOST).ok()?.mean.max(1.0);
    let requests = case.requests_in(view.window).ok()?;
    let service_s = mean_over(requests, |r| Some(service_ms(r)? / 1e3))?;
    let under_way = answered * service_s;
    let text = format!(
        "{under_way:.0} requests were in flight at a time, and with all CPUs busy {answered:.0}/s were answered: more users only wait longer"
    );
    (under_way >= QUEUED * cpus).then(|| (format!("up to {cpus:.0} in flight"), text))
}

/// The load average of each CPU.
pub(super) fn load_average(view: &View<'_>) -> Option<Evidence> {
    let load = view.gauge(metrics::host::LOAD_AVERAGE_1M.name, &[], HOST).ok()?;
    let cpus = view.gauge(metrics::host::CPU_LOGICAL_COUNT.name, &[], HOST).ok()?;
    let normalised = load.max / cpus.mean.max(1.0);
    let text = format!("load average was up to {normalised:.1} per CPU");
    Some(load.evidence(format!("{normalised:.1} a CPU"), "below 1", text))
}
