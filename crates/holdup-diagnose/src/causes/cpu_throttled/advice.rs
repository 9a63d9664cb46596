//! What to do about a CPU limit: how much the load needs, and where the limit is raised.

use crate::case::Case;
use crate::causes::timing;
use crate::change::host::Place;
use crate::change::{Bounds, Direction, Fix, SettingChange, Unit, host};
use crate::resources::cpu_quotas::ThrottledSource;
use holdup_recording::metrics;
use holdup_signals::View;

/// CPUs at most where the recording does not say how many the machine has.
const MOST_CPUS: f64 = 1_024.0;

/// Good utilization (0-1) of a quota: the rest is room for bursts.
const WELL_USED: f64 = 0.7;

/// The quota that the load would use to [`WELL_USED`]: CPU time per request times due requests.
pub(super) fn fixes(case: &Case<'_>, view: &View<'_>, one: &ThrottledSource<'_>, completed: f64) -> Vec<Fix> {
    let used = one.used.unwrap_or(one.quota.cpus() * one.periods.seconds);
    // Given-up requests were processed as well: the app's own count is better.
    let served = view.counter(&format!("{}_count", timing::HTTP_SERVER), &[], timing::APP_METRICS);
    let served = served.map_or(completed, |c| c.delta.max(completed));
    let needed = used / served * case.peak_offered_per_second();
    // In steps of 5 % of a CPU, and more than now.
    let now = one.quota.cpus();
    let cpus = ((needed / WELL_USED).max(1.25 * now) * 20.0).ceil() / 20.0;
    let what = if needed > now { "needs" } else { "uses" };
    let raise = raise(view, one, cpus, &format!("this load {what} {needed:.2}"));
    let less = "Or reduce the CPU time of a request: profile it (perf top), and run at most as many threads as the quota has CPUs.";
    vec![raise, Fix { text: less.to_owned(), command: None, keep: None, risk: None }]
}

/// A higher limit, within the machine's CPUs and where the limit is made.
fn raise(view: &View<'_>, one: &ThrottledSource<'_>, cpus: f64, why: &str) -> Fix {
    let now = one.quota.cpus();
    let bounds = Bounds { least: 0.01, most: host::cpus(view).unwrap_or(MOST_CPUS) };
    let change = match SettingChange::new(Direction::Raise, "the CPU limit", Unit::Fraction, Some(now), cpus, bounds) {
        Ok(change) => change,
        Err(stay) => return stay.fix("The machine has no more CPUs to give."),
    };
    let (path, period) = (view.cgroup_of(one.process.source, metrics::cgroup::CPU_PERIODS.name), one.quota.period_us);
    let micros = (change.to * period).round();
    let write = if view.setting_of(one.process.source, "cgroup.version") == Some("2") {
        format!("echo '{micros:.0} {period:.0}' > /sys/fs/cgroup{path}/cpu.max")
    } else {
        format!("echo {micros:.0} > /sys/fs/cgroup/cpu{path}/cpu.cfs_quota_us")
    };
    let container = view.container_with("cpu_limit_millicores", now * 1e3);
    let place = Place::find(view, one.process.source);
    let place = if container.is_some() { Place::Kubernetes } else { place };
    let steps = place.cpus(change.to, write, container);
    let text = format!("Raise the CPU limit from {now:.2} to {:.2} CPUs: {why}.{}", change.to, steps.note());
    let risk = "Other services on the host get less CPU.".to_owned();
    Fix { text, command: steps.command, keep: steps.keep, risk: Some(risk) }
}
