//! Passes over a scenario under construction: they count, drop, and merge what many requests
//! repeat.

use std::collections::HashSet;
use std::time::Duration;

use super::{Body, Request, Scenario, Step};
use crate::template;

impl Scenario {
    /// Places that send a request.
    pub fn requests(&self) -> usize {
        let body = match &self.body {
            Body::Operations(all) => all.len(),
            Body::Sessions(all) => all.iter().map(|s| count(&s.steps)).sum(),
        };
        body + count(&self.setup) + count(&self.teardown)
    }

    /// Turns objectives of single requests into objectives of the run.
    pub fn slowest_to_thresholds(&mut self) {
        let mut found = Vec::new();
        let Body::Sessions(all) = &self.body else { return };
        all.iter().for_each(|session| slowest(&session.steps, "", &mut found));
        for (name, limit) in found {
            let objective = format!("{name} max < {}", crate::load::length(limit)).trim_start().to_owned();
            if !self.thresholds.contains(&objective) {
                self.thresholds.push(objective);
            }
        }
    }

    /// Every request, mutable.
    pub fn each_request(&mut self, change: &mut dyn FnMut(&mut Request)) {
        match &mut self.body {
            Body::Operations(all) => all.iter_mut().for_each(&mut *change),
            Body::Sessions(all) => all.iter_mut().for_each(|s| each(&mut s.steps, change)),
        }
        each(&mut self.setup, change);
        each(&mut self.teardown, change);
    }

    /// Moves a header field that all requests have, most of them with the same value, to the
    /// scenario. `known` holds the names that have a value before any request.
    pub fn hoist_headers(&mut self, known: &HashSet<String>) {
        let total = self.requests();
        if total < 2 {
            return;
        }
        // Name, number of requests that have it, and how often each value occurs.
        let mut fields: Vec<(String, usize, Counts)> = Vec::new();
        self.each_request(&mut |request| {
            for (name, value) in &request.headers {
                let at = fields.iter().position(|(n, ..)| n == name).unwrap_or_else(|| {
                    fields.push((name.clone(), 0, Vec::new()));
                    fields.len() - 1
                });
                let (_, count, values) = &mut fields[at];
                *count += 1;
                let is_room = values.len() < 16;
                match values.iter_mut().find(|(v, _)| v == value) {
                    Some((_, count)) => *count += 1,
                    // A value that differs from request to request is rarely the most common one.
                    None if is_room => values.push((value.clone(), 1)),
                    None => {}
                }
            }
        });
        let is_known = |value: &str| {
            template::words(value)
                .iter()
                .all(|word| KNOWN.contains(&word.as_str()) || known.contains(word) || self.secrets.contains(word))
        };
        let mut shared: Vec<(String, String)> = Vec::new();
        for (name, count, values) in fields {
            let best = values
                .into_iter()
                .rev()
                .max_by_key(|(_, count)| *count)
                .filter(|(_, count)| *count * 2 >= total && *count > 1);
            if let Some((value, _)) = best.filter(|(value, _)| count == total && is_known(value)) {
                shared.push((name, value));
            }
        }
        self.each_request(&mut |request| request.headers.retain(|field| !shared.contains(field)));
        self.headers.extend(shared);
    }
}

/// How often each of some texts occurred.
type Counts = Vec<(String, usize)>;

/// Words of a header's template that need no value of a session.
const KNOWN: [&str; 2] = ["secret", "base64"];

/// Number of requests in `steps`.
pub fn count(steps: &[Step]) -> usize {
    let own = |step: &Step| usize::from(matches!(step, Step::Request(_)));
    steps.iter().map(|step| own(step) + step.inner().into_iter().map(|inner| count(inner)).sum::<usize>()).sum()
}

/// Every request in `steps`, mutable.
pub fn each(steps: &mut [Step], change: &mut dyn FnMut(&mut Request)) {
    for step in steps {
        match step {
            Step::Request(request) => change(request),
            other => other.inner_mut().into_iter().for_each(|inner| each(inner, change)),
        }
    }
}

/// Removes the requests that `keep` refuses, with the think time before them, and steps that are
/// then empty.
pub fn keep_requests(steps: &mut Vec<Step>, keep: &mut dyn FnMut(&mut Request) -> bool) {
    for mut step in std::mem::take(steps) {
        step.inner_mut().into_iter().for_each(|inner| keep_requests(inner, keep));
        let stays = match &mut step {
            Step::Request(request) => {
                let stays = keep(request);
                if !stays && matches!(steps.last(), Some(Step::Think(_))) {
                    steps.pop();
                }
                stays
            }
            Step::Choose(branches) | Step::InTurn(branches) => {
                branches.retain(|branch| !branch.is_empty());
                !branches.is_empty()
            }
            other => other.inner().first().is_none_or(|first| !first.is_empty()),
        };
        if stays {
            steps.push(step);
        }
    }
}

/// Requests with a longest response time, by their names with their groups.
fn slowest(steps: &[Step], group: &str, found: &mut Vec<(String, Duration)>) {
    for step in steps {
        match step {
            Step::Request(request) => {
                let name = if request.name.is_empty() { String::new() } else { format!("{group}{}", request.name) };
                found.extend(request.slowest.map(|limit| (name, limit)));
            }
            Step::Group { name, steps } => slowest(steps, &format!("{group}{name}/"), found),
            other => other.inner().into_iter().for_each(|inner| slowest(inner, group, found)),
        }
    }
}
