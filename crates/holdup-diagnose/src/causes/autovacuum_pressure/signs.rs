//! Workers of autovacuum beside sessions that wait for the disk.

use holdup_recording::metrics;

use crate::instant::facts::Facts;
use crate::instant::{MOST, Signs, is_read_wait};
use crate::strength::{FAIR, WEAK};

const SESSIONS: &str = metrics::postgresql::ACTIVITY_SESSIONS.name;

/// Worth (0-1) of a vacuum that was seen to wait for the disk: others may do most of it.
const SEEN: f64 = 0.6;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let (Some(vacuums), Some(sessions)) = (&facts.vacuums, &facts.sessions) else { return };
    if sessions.count(|_, state| is_read_wait(state)) >= MOST * sessions.active() {
        let text = format!("{:.0} workers of autovacuum ran, beside sessions that wait for the disk", vacuums.max);
        // One that waits for the disk itself was seen to take part in what the sessions wait for.
        let reads = facts.view.gauge(SESSIONS, &[("backend_type", "autovacuum worker"), ("wait_event_type", "IO")], "");
        let strength = if reads.is_ok_and(|reads| reads.max >= 1.0) { FAIR * SEEN } else { WEAK };
        signs.add(strength, vacuums.evidence(format!("{:.0}", vacuums.max), "0", text));
    }
}
