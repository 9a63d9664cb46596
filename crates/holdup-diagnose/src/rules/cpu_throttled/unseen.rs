//! Limits that no setting shows: one that was set between two reads, and one of a database whose
//! group is not watched.

use holdup_recording::metrics;
use holdup_recording::quota::CpuQuota;
use holdup_signals::{Counter, Missing, View};

use super::ENABLE;
use crate::case::Case;
use crate::resources::cpu::CpuUse;
use crate::resources::share;
use crate::rules::MATTERS;

/// Names of databases' processes (15 bytes at most).
const DATABASES: &[&str] = &["postgres", "mysqld", "mariadbd"];

/// Stopped in a smaller share (0-1) of its periods than this, a group hardly feels its quota.
const AT_ALL: f64 = 0.05;

/// Length of a quota's period unless set, microseconds (Documentation/scheduler/sched-bwc.rst).
const PERIOD_MICROS: f64 = 100_000.0;

/// Most that a quota can be that was not recorded, or was set only after settings were read: in each
/// of its `periods` in which a group was stopped it used all of its quota, so the quota is at most
/// its total use divided by their share. What follows from a smaller quota is then a lower bound.
/// None for a group that was hardly ever stopped.
pub(super) fn quota_by_use(used: f64, periods: &Counter, stopped: &Counter) -> Option<CpuQuota> {
    let share = stopped.delta / periods.delta.max(1.0);
    let cpus = used / periods.seconds.max(1e-9) / share;
    (share >= AT_ALL && cpus > 0.0).then_some(CpuQuota { us: cpus * PERIOD_MICROS, period_us: PERIOD_MICROS })
}

/// Missing if none of the database's processes is watched, and more of its sessions ran or could run
/// than the host's CPUs did: a quota, or anything else that keeps it from running, does that.
pub(super) fn database(case: &Case<'_>, view: &View<'_>) -> Option<Missing> {
    let waits = view.server_waits().ok().flatten()?;
    let watched = view.processes_with(metrics::process::CPU_TIME.name);
    if watched.iter().any(|process| DATABASES.iter().any(|name| process.name.starts_with(name))) {
        return None;
    }
    let seconds = view.window.seconds();
    let used = CpuUse::measure(view).map_or(0.0, |cpus| cpus.seconds / seconds.max(1e-9));
    let kept = (waits.running - used).max(0.0);
    let request_ms = kept * seconds / case.completed_in(view.window).ok()?.max(1.0) * 1e3;
    (share(case, request_ms) >= MATTERS).then(|| {
        Missing::new(
            format!(
                "the CPU limit of the database's cgroup: {:.1} of its sessions ran or could run on average, and the host's CPUs used {used:.1}",
                waits.running
            ),
            ENABLE,
        )
    })
}

/// Whether `source` was stopped at its limit. Settings are read at the start and at the end: a limit
/// in between shows in the counters.
pub(super) fn was_throttled(view: &View<'_>, source: &str) -> bool {
    let stopped = metrics::cgroup::CPU_THROTTLED_PERIODS.name;
    view.counter_where(|s| s == source, stopped, &[], ENABLE).is_ok_and(|stopped| stopped.delta > 0.0)
}
