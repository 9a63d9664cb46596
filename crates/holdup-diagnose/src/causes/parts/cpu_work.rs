//! Work of database sessions that keeps CPUs busy, as a part of what requests wait for a CPU.

use crate::cause::Cause;
use holdup_recording::Labels;
use holdup_recording::rows::Session;
use holdup_recording::words::percent;
use holdup_signals::database::server_waits::{SessionWait, at};
use holdup_signals::evidence::Evidence;
use holdup_signals::host::cpu::CpuTime;
use holdup_signals::{Counter, View};

use crate::case::Case;
use crate::causes::{Others, Outcome};
use crate::resources::is_felt;

/// Least number of CPUs that the work keeps busy.
const A_CPU: f64 = 0.5;

/// Least share (0-1) of the CPU time in use since the baseline window.
const MOST: f64 = 0.5;

/// Work of sessions on CPUs.
pub(crate) struct CpuWork {
    /// Milliseconds of a mean slow request.
    pub explains_ms: f64,
    /// What runs, and how many CPUs are in use.
    pub evidence: Vec<Evidence>,
    /// The statement.
    pub text: String,
}

/// The work of the sessions that `is_theirs`, if requests wait for CPUs and it began with the
/// episode and uses most of the CPU time in use since.
pub(crate) fn of_sessions(case: &Case<'_>, others: &Others, is_theirs: impl Fn(&Session) -> bool) -> Option<CpuWork> {
    let Some(Ok(Outcome::Found(cpu))) = others.get(&Cause::CpuSaturated) else { return None };
    let (slow, baseline) = (case.slow(), case.baseline()?);
    let (now, before) = (running(&slow, &is_theirs)?, running(&baseline, &is_theirs)?);
    let more = now.cpus - before.cpus;
    if more < A_CPU {
        return None;
    }
    let (used, used_before) = (used(&slow)?, used(&baseline)?);
    let share = (more / (used.0 - used_before.0).max(more)).min(1.0);
    let explains_ms = cpu.explains_ms * share;
    if share < MOST || !is_felt(case, explains_ms).ok()? {
        return None;
    }
    let text = format!(
        "{:.1} sessions on average ran this without waiting, {:.1} in the baseline window, which is {} of the CPU time in use since: {}",
        now.cpus,
        before.cpus,
        percent(share),
        now.text
    );
    let labels = Labels::new([("true_state", "executing")]);
    let seen = Evidence::new("sessions", "digest_text", labels, slow.window, format!("{:.1}", now.cpus), "none", text);
    let text = format!("{:.1} CPUs were in use, {:.1} in the baseline window", used.0, used_before.0);
    let busy = used.1.evidence(format!("{:.1} CPUs", used.0), format!("{:.1} CPUs", used_before.0), text);
    Some(CpuWork { explains_ms, evidence: vec![seen, busy], text: now.text })
}

/// Sessions that waited for nothing.
struct Running {
    cpus: f64,
    text: String,
}

fn running(view: &View<'_>, is_theirs: &impl Fn(&Session) -> bool) -> Option<Running> {
    let rows = view.sessions(&["observed_at", "true_state", "state", "digest_text"]).ok()?;
    let instants = view.session_instants().max(1) as f64;
    // MySQL reports stages of work in this column, not waits.
    let runs = |row: &&&Session| {
        let waits = at(row.state.as_deref().unwrap_or_default());
        row.true_state == "executing" && (!row.source.starts_with("postgres") || waits == SessionWait::Running)
    };
    let theirs: Vec<&&Session> = rows.iter().filter(runs).filter(|row| is_theirs(row)).collect();
    let text = theirs.iter().find_map(|row| row.digest_text.as_deref()).unwrap_or_default();
    Some(Running { cpus: theirs.len() as f64 / instants, text: text.chars().take(TEXT).collect() })
}

/// Longest text of a statement to show.
const TEXT: usize = 90;

/// CPUs in use on average.
fn used(view: &View<'_>) -> Option<(f64, Counter)> {
    let CpuTime { time, seconds, .. } = CpuTime::measure(view).ok()?;
    Some((seconds.used().max(0.0) / time.seconds.max(1e-9), time))
}
