//! What stands out where no source measured response time: the load average, the disk and the
//! sessions, by the mean number of threads, operations or sessions that wait. It names no cause.

use std::collections::BTreeMap;

use crate::case::Case;
use crate::host_load;
use crate::resources::disk::what_it_does;

/// A disk stands out if it was busy for this share (0-1) of the time …
const BUSY: f64 = 0.9;

/// … or with this many operations queued or in service on average.
const QUEUED: f64 = 4.0;

/// The load average stands out from this value for each CPU.
const LOAD: f64 = 2.0;

/// A state of sessions stands out from this many on average.
const SESSIONS: f64 = 2.0;

/// States in which a session waits, in words.
const STATES: [(&str, &str); 2] = [("queued", "for a thread of the pool"), ("lock_wait", "for a lock")];

/// In sentences, the largest queue first; none if nothing stands out.
pub(super) fn text(case: &Case<'_>) -> Option<String> {
    let mut all: Vec<(f64, String)> = [load(case), disk(case)].into_iter().flatten().collect();
    all.extend(sessions(case));
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let texts: Vec<String> = all.into_iter().map(|(_, text)| text).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

fn load(case: &Case<'_>) -> Option<(f64, String)> {
    let load = host_load::explain(case).filter(|load| load.per_cpu_max >= LOAD)?;
    Some((load.load_1m_max, load.text))
}

fn disk(case: &Case<'_>) -> Option<(f64, String)> {
    let disks = case.view(case.whole()).disks().ok()?;
    let busiest = disks.tops().max_by(|a, b| a.queue.total_cmp(&b.queue))?;
    let stands_out = busiest.utilization >= BUSY || busiest.queue >= QUEUED;
    stands_out.then(|| (busiest.queue, what_it_does(busiest)))
}

fn sessions(case: &Case<'_>) -> Vec<(f64, String)> {
    let view = case.view(case.whole());
    let instants = view.session_instants().max(1) as f64;
    let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
    for session in view.sessions(&["true_state"]).unwrap_or_default() {
        *counts.entry(session.true_state.as_str()).or_default() += 1.0 / instants;
    }
    let waiting = STATES.iter().filter_map(|(state, what)| {
        let mean = counts.get(state).copied().filter(|mean| *mean >= SESSIONS)?;
        Some((mean, format!("{mean:.0} sessions waited {what}")))
    });
    waiting.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// A host with four CPUs whose load average is `load`, and a disk with 100 reads a second of `read_ms`.
    fn host(load: f64, read_ms: f64) -> SyntheticRecording {
        SyntheticRecording::new(10)
            .gauge("host", "system_load_average_1m", &[], load)
            .gauge("host", "system_load_average_5m", &[], load)
            .gauge("host", "system_load_average_15m", &[], load)
            .gauge("host", "system_cpu_logical_count", &[], 4.0)
            .gauge("host", "system_threads", &[("state", "D")], load)
            .disk("vda", (100.0, 4_096.0, read_ms), (0.0, 0.0, 0.0))
    }

    #[test]
    fn the_largest_queue_comes_first_and_a_quiet_host_has_none() {
        let busy = host(40.0, 10.0).with(text).expect("stands out");
        let (load, disk) = (busy.find("load average").expect("load"), busy.find("vda").expect("disk"));
        assert!(load < disk, "{busy}");
        assert_eq!(host(1.0, 0.1).with(text), None);
    }
}
