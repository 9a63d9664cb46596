//! What `--check` prints for a valid scenario: what it will send, then every setting that is not a
//! default.

use holdup_load::model::Load;
use holdup_load::scenario::{RateOf, Scenario, WarmUp};
use holdup_load::schedule::Share;
use holdup_recording::clock;

use super::load_args::as_yaml;

/// Poisson arrivals are counted exactly up to this many; counting more takes too long.
const COUNTED: f64 = 2e8;

/// One string per line of output.
pub fn describe(scenario: &Scenario) -> Vec<String> {
    let names: Vec<&str> = scenario.operations.iter().map(|o| o.name.as_str()).collect();
    let names = first_of(&names, 10);
    let seconds = scenario.load.length().as_secs_f64();
    let mut lines = Vec::new();
    let total = match &scenario.load {
        Load::Closed(closed) => {
            let think = as_yaml(closed.think);
            lines.push(format!("fine: {} users, who think for {think}, over {seconds} s ({names})", closed.users));
            lines.push("closed model: a slow service gets fewer requests, so a stall shows in few of them".to_owned());
            u64::from(closed.users)
        }
        Load::Open(_) if scenario.search.is_some() => {
            let (from, most) = scenario.search.as_ref().map_or((0.0, 0.0), |config| (config.from, config.most));
            lines.push(format!("fine: a search for the knee, from {from} up to {most} requests per second, within {seconds} s ({names})"));
            0
        }
        Load::Open(schedule) => {
            let stretches = schedule.stretches();
            let mean: f64 = stretches.iter().map(|s| (s.rate_from + s.rate_to) / 2.0 * s.length.as_secs_f64()).sum();
            let is_counted = schedule.seed().is_none() || mean < COUNTED;
            let total = if is_counted { schedule.total() } else { mean as u64 };
            let about = if is_counted { "" } else { "about " };
            let what = if scenario.rate_of == RateOf::Sessions { "sessions" } else { "requests" };
            lines.push(format!("fine: {about}{total} {what} over {seconds} s ({names})"));
            if stretches.len() > 1 {
                let phases: Vec<&str> = stretches.iter().map(|s| s.name.as_str()).collect();
                lines.push(format!("phases: {}", first_of(&phases, 10)));
            }
            lines.extend(schedule.seed().map(|seed| format!("arrivals: Poisson, seed {seed}")));
            if schedule.group() > 1 {
                lines.push(format!("arrivals: in groups of {}, each at one instant", schedule.group()));
            }
            lines.extend(schedule.replay().into_iter().flat_map(|replay| replay.notes.iter().cloned()));
            total
        }
    };
    lines.extend(scenario.sessions.as_ref().map(|sessions| {
        let flows: Vec<String> = sessions.script.flows.iter().map(|f| format!("{} ({})", f.name, f.weight)).collect();
        let flows: Vec<&str> = flows.iter().take(sessions.flows as usize).map(String::as_str).collect();
        format!("sessions, by weight: {}", first_of(&flows, 10))
    }));
    lines.extend(mixes(scenario).into_iter().take(10));
    lines.extend(scenario.sessions.iter().flat_map(|s| &s.script.sources).map(|source| {
        format!("feeder {}: {} rows ({})", source.name, source.feeder.len(), source.feeder.columns().join(", "))
    }));
    lines.push(match scenario.warm_up {
        WarmUp::Detect => "warm-up: excluded if response times show one".to_owned(),
        WarmUp::None => "warm-up: nothing is excluded".to_owned(),
        WarmUp::For(length) => format!("warm-up: the first {} are excluded", as_yaml(length)),
    });
    if !scenario.http.keep_alive {
        lines.push("connections: a new one for each request".to_owned());
    }
    let share = scenario.shard;
    if share != Share::WHOLE {
        lines.push(format!("shard {}/{}: {} of them", share.index + 1, share.of, share.count(total)));
    }
    lines.extend(scenario.start_at.map(|start| format!("start: {}", clock::rfc3339(start))));
    lines
}

/// One line for each phase with its own mix.
fn mixes(scenario: &Scenario) -> Vec<String> {
    let names: Vec<&str> = match &scenario.sessions {
        Some(sessions) => sessions.script.flows.iter().map(|flow| flow.name.as_str()).collect(),
        None => scenario.operations.iter().map(|operation| operation.name.as_str()).collect(),
    };
    let line = |(phase, mix): (String, &Option<Vec<u64>>)| {
        let mix = mix.as_ref()?;
        let sum = mix.iter().sum::<u64>().max(1) as f64;
        let parts = names.iter().zip(mix).map(|(name, weight)| format!("{name} {:.1} %", *weight as f64 / sum * 100.0));
        let parts: Vec<String> = parts.collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        Some(format!("mix of {phase}: {}", first_of(&parts, 10)))
    };
    scenario.load.phase_names().into_iter().zip(&scenario.mixes).filter_map(line).collect()
}

fn first_of(names: &[&str], most: usize) -> String {
    let shown = names[..names.len().min(most)].join(", ");
    if names.len() > most { format!("{shown}, and {} more", names.len() - most) } else { shown }
}
