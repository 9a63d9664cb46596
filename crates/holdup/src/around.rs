//! Runs the setup before a scenario's load and the teardown after it. Neither is measured.

use std::sync::atomic::{AtomicBool, Ordering};

use holdup_load::engine::Engine;
use holdup_load::scenario::{EndReason, Scenario};

use crate::failure::Failure;
use crate::progress::Progress;

/// Runs the scenario's `setup`. All sessions then know the values it captured.
///
/// # Errors
/// If a step fails; no load has been sent then.
pub fn set_up(
    scenario: &Scenario,
    engine: &Engine<'_>,
    progress: &mut Progress,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let Some((sessions, flow)) = scenario.sessions.as_ref().and_then(|s| Some((s, s.setup?))) else { return Ok(()) };
    progress.say("setup");
    let values = engine.once(flow, stop);
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    let values = values.map_err(|e| Failure::Unusable(format!("setup: {e}; no load was sent")))?;
    // The cell is empty here, because a scenario is read anew for every run.
    let _ = sessions.script.initial.set(values);
    match sessions.script.take_end_reason() {
        Some(over) => Err(Failure::Unusable(format!("setup: {}; no load was sent", over.text))),
        None => Ok(()),
    }
}

/// The outcome that made a session end the load early, if one did.
pub fn ended_early(scenario: &Scenario) -> Option<EndReason> {
    scenario.sessions.as_ref()?.script.take_end_reason()
}

/// Runs the scenario's `teardown`, also after a stop. Returns what went wrong.
pub fn tear_down(scenario: &Scenario, engine: &Engine<'_>, progress: &mut Progress) -> Option<String> {
    let flow = scenario.sessions.as_ref()?.teardown?;
    progress.say("teardown");
    engine
        .once(flow, &AtomicBool::new(false))
        .err()
        .map(|e| format!("teardown: {e}; what setup created may still exist"))
}
