//! The names that a scenario under construction uses, as it would be written: which of its texts a
//! template needs, and which variables steps must set.

use std::collections::HashSet;

use crate::scenario::{Body, Scenario, Step, Var};
use crate::template::words;
use crate::write::body;

/// Drops texts that no template uses, because they only served the target or the load.
pub fn keep_vars(scenario: &mut Scenario) {
    let vars = std::mem::take(&mut scenario.vars);
    let mut used = words(&body(scenario));
    loop {
        let before = used.len();
        let known: Vec<&Var> = vars.iter().filter(|var| used.contains(&var.name)).collect();
        let more: Vec<String> = known.iter().flat_map(|var| words(&var.value)).collect();
        used.extend(more);
        if used.len() == before {
            break;
        }
    }
    scenario.vars = vars.into_iter().filter(|var| used.contains(&var.name)).collect();
}

/// Words that its templates use, and variables that its steps set.
pub fn names(scenario: &Scenario) -> (HashSet<String>, HashSet<String>) {
    let mut used = words(&body(scenario));
    let mut set = HashSet::new();
    if let Body::Sessions(all) = &scenario.body {
        all.iter().for_each(|session| names_of_steps(&session.steps, &mut used, &mut set));
    }
    names_of_steps(&scenario.setup, &mut used, &mut set);
    names_of_steps(&scenario.teardown, &mut used, &mut set);
    (used, set)
}

fn names_of_steps(steps: &[Step], used: &mut HashSet<String>, set: &mut HashSet<String>) {
    for step in steps {
        match step {
            Step::Request(request) => set.extend(request.captures.iter().map(|(name, _)| name.clone())),
            Step::Set(values) => set.extend(values.iter().map(|(name, _)| name.clone())),
            Step::Repeat { counter, .. } => set.extend(counter.clone()),
            Step::ForEach { list, item, .. } => {
                used.insert(list.clone());
                set.insert(item.clone());
            }
            _ => {}
        }
        step.inner().into_iter().for_each(|inner| names_of_steps(inner, used, set));
    }
}
