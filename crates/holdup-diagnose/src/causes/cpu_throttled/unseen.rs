//! A limit that no setting shows: that of a database whose group is not watched.

use holdup_recording::metrics;
use holdup_signals::{Missing, View};

use crate::case::Case;
use crate::causes::MATTERS;
use crate::resources::cpu::CpuUse;
use crate::resources::cpu_quotas::ENABLE;
use crate::resources::share;

/// Names of databases' processes (15 bytes at most).
const DATABASES: &[&str] = &["postgres", "mysqld", "mariadbd"];

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
