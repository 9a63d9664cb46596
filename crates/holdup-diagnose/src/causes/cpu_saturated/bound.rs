//! The most that waiting for a CPU can have cost a request, by the account of its own spans.

use holdup_recording::Labels;

use crate::case::Case;
use crate::causes::ms;
use holdup_signals::app::accounts::Owner;
use holdup_signals::evidence::Evidence;

/// Waits for what another request holds, without running.
const HELD: [Owner; 2] = [Owner::PoolWait, Owner::LockWait];

/// The most milliseconds of a mean request that waiting for a CPU can account for, from its
/// accounts: a process's threads also wait for other things than requests. For held resources, at
/// most the waiting that requests of this length cause each other over a single one (M/M/1: ρ/(1-ρ)
/// times as long). None without accounts.
pub(super) fn at_most(case: &Case<'_>, completed: f64) -> Option<(f64, Evidence)> {
    let view = case.slow();
    let of = |owner: Owner| case.accounts().mean_ms_of_app(owner);
    let of_generator = |owner: &Owner| *owner as usize <= Owner::SendLag as usize;
    let runs = Owner::ALL.into_iter().filter(|owner| !HELD.contains(owner) && !of_generator(owner));
    let runs_ms: f64 = runs.map(of).sum::<Option<f64>>()?;
    let busy = completed / view.window.seconds() * runs_ms / 1e3;
    let behind_ms = if busy < 1.0 { runs_ms * busy / (1.0 - busy) } else { f64::INFINITY };
    let held_ms: f64 = HELD.into_iter().map(|owner| of(owner).map(|ms| ms.min(behind_ms))).sum::<Option<f64>>()?;
    let most = runs_ms + held_ms;
    let text = format!(
        "by its own spans a request was running, or could wait for a CPU, for {}: with the waits that causes, at most {}",
        ms(runs_ms),
        ms(most)
    );
    let labels = Labels::new([("resource", "request")]);
    Some((most, Evidence::new("spans", "duration_ns", labels, view.window, ms(most), "most of the delay", text)))
}
