//! What goes around the load of a scenario with sessions: its set-up before, which is measured by nobody, and its end.

use std::sync::atomic::{AtomicBool, Ordering};

use holdup_load::engine::Engine;
use holdup_load::scenario::{Over, Scenario};

use crate::failure::Failure;
use crate::progress::Progress;

/// Goes through the scenario's `setup`. What it captured is known to all sessions afterwards.
///
/// # Errors
/// If a step of it fails: nothing has been measured then.
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
    let values = values.map_err(|e| Failure::Unusable(format!("setup: {e}; no load was put on")))?;
    // It is set once: a scenario is read anew for every run.
    let _ = sessions.script.initial.set(values);
    match sessions.script.take_over() {
        Some(over) => Err(Failure::Unusable(format!("setup: {}; no load was put on", over.text))),
        None => Ok(()),
    }
}

/// What ended the load before its time, if a session did.
pub fn ended_early(scenario: &Scenario) -> Option<Over> {
    scenario.sessions.as_ref()?.script.take_over()
}

/// Goes through the scenario's `teardown`, also after a stop: what was set up is taken away. What went wrong with it.
pub fn tear_down(scenario: &Scenario, engine: &Engine<'_>, progress: &mut Progress) -> Option<String> {
    let flow = scenario.sessions.as_ref()?.teardown?;
    progress.say("teardown");
    engine
        .once(flow, &AtomicBool::new(false))
        .err()
        .map(|e| format!("teardown: {e}; what setup made may still be there"))
}
