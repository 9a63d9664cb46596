//! Thread groups: the steps of a session, and the load. A session is one iteration. If something
//! has to happen once per thread, the session is the thread's whole life.

use std::time::Duration;

use super::Plan;
use super::element::Element;
use super::threads::{MOST_USERS, Threads, UNBOUNDED};
use super::timer::{self, Pacer};
use super::walk::{Round, Steps, Surroundings};
use crate::error::ImportError;
use crate::load::{LONGEST, length, seconds};
use crate::scenario::{Load, Phase, Session, Step};
use crate::template::label;

/// A thread group as a session and a load.
pub(super) struct Shape {
    title: String,
    line: usize,
    name: String,
    steps: Vec<Step>,
    load: Load,
}

/// Whether a class is a thread group that runs the load.
pub(super) fn is_group(class: &str) -> bool {
    class.ends_with("ThreadGroup") || class == "ConcurrencyThreadGroup"
}

impl Plan<'_> {
    /// Steps of a thread group that runs once, before or after the load.
    pub(super) fn once<'e>(&mut self, top: &'e Element<'e>, at: &'e Element<'e>) -> Steps {
        if at.filled("ThreadGroup.num_threads").and_then(|t| self.names.number(t)).is_some_and(|n| n > 1.0) {
            self.changed(at, "it runs once, not in several threads", "");
        }
        let mut around = Surroundings { scope: vec![top, at], rounds: vec![Round::Single], on_failure: None };
        self.steps(&mut around)
    }

    /// A thread group.
    pub(super) fn group<'e>(&mut self, top: &'e Element<'e>, at: &'e Element<'e>) -> Result<Shape, ImportError> {
        let threads = self.threads(at)?;
        let pacers: Vec<Pacer> = top
            .children
            .iter()
            .chain(&at.children)
            .filter(|e| timer::is_pacer(&e.class))
            .filter_map(|e| self.pacer(e))
            .collect();
        let goes_round = threads.arrivals.is_none() && threads.loops != Some(1);
        let is_life = goes_round && at.children.iter().any(has_once_only);
        let on_failure = self.on_failure(at, is_life);
        let mut steps: Vec<Step> = Vec::new();
        for child in top.children.iter().filter(|c| c.class == "RandomVariableConfig") {
            let mut around = Surroundings { scope: vec![top], rounds: vec![Round::Single], on_failure };
            steps.extend(self.steps_of(std::iter::once(child), &mut around)?);
        }
        let duration = threads.duration.unwrap_or(LONGEST);
        if is_life {
            // Steps that come first and run once need no condition.
            let first = at.children.iter().take_while(|c| !is_step(c) || c.class == "OnceOnlyController").count();
            let mut around = Surroundings { scope: vec![top, at], rounds: vec![Round::Single], on_failure };
            steps.extend(self.steps_of(at.children[..first].iter(), &mut around)?);
            let round = if threads.loops.is_some() { Round::Counted(None) } else { Round::Uncounted };
            around.rounds = vec![round];
            let feeds: Vec<Step> = self.feeders(top, at).into_iter().map(Step::Feed).collect();
            let mut inner = self.steps_of(at.children[first..].iter(), &mut around)?;
            // JMeter draws the first row when it is first used, which may be before the rounds.
            let is_drawn = crate::scenario::count(&steps) > 0;
            match around.rounds.last_mut() {
                _ if feeds.is_empty() => {}
                Some(Round::Counted(counter)) if is_drawn => {
                    let name = counter.get_or_insert_with(|| self.names.used_names.name("round"));
                    let condition = format!("${{{name}}} > 0");
                    inner.insert(0, Step::If { condition, steps: feeds, otherwise: Vec::new() });
                }
                _ if is_drawn => inner.extend(feeds),
                _ => inner = feeds.into_iter().chain(inner).collect(),
            }
            let counter = if let Some(Round::Counted(counter)) = around.rounds.pop() { counter } else { None };
            steps.push(match threads.loops {
                Some(count) => Step::Repeat { count: count.to_string(), counter, steps: inner },
                None => Step::During { length: length(duration), steps: inner },
            });
        } else {
            let mut around = Surroundings { scope: vec![top, at], rounds: vec![Round::Single], on_failure };
            steps.extend(self.steps(&mut around)?);
            let keeps = top
                .children
                .iter()
                .chain(&at.children)
                .any(|e| e.class == "CookieManager" && !e.flag("CookieManager.clearEachIteration"));
            if goes_round && keeps {
                self.changed(
                    at,
                    "each iteration is a new session, which begins without cookies and variables",
                    "put the steps into repeat: if a user is to keep them",
                );
            }
        }
        let load = self.load(at, &threads, pacers, is_life, &steps);
        let name = label(&at.name);
        Ok(Shape {
            title: at.title(),
            line: at.line,
            name: if name.is_empty() { "users".to_owned() } else { name },
            steps,
            load,
        })
    }

    /// What a session does after a failed request.
    fn on_failure(&mut self, at: &Element<'_>, is_life: bool) -> Option<&'static str> {
        let then = match at.filled("ThreadGroup.on_sample_error").unwrap_or("continue") {
            "startnextloop" if is_life => {
                let why = "after a failed request a session goes on with the next step, not with the next iteration";
                self.changed(at, why, "write on_failure: end_session where it should end");
                None
            }
            "startnextloop" | "stopthread" => Some("end_session"),
            "stoptest" | "stoptestnow" => Some("stop"),
            _ => None,
        };
        if at.filled("ThreadGroup.on_sample_error") == Some("stopthread") {
            self.changed(at, "a user whose request fails begins another session; in JMeter the thread would end", "");
        }
        then
    }

    /// Feeders from which each iteration takes the next row.
    fn feeders(&self, top: &Element<'_>, at: &Element<'_>) -> Vec<String> {
        fn all(at: &Element<'_>, into: &mut Vec<usize>) {
            if at.class == "CSVDataSet" {
                into.push(at.line);
            }
            at.children.iter().for_each(|child| all(child, into));
        }
        let mut lines: Vec<usize> = top.children.iter().filter(|c| c.class == "CSVDataSet").map(|c| c.line).collect();
        all(at, &mut lines);
        lines.iter().filter_map(|line| self.names.feeder_at(*line)).map(str::to_owned).collect()
    }

    fn load(&mut self, at: &Element<'_>, threads: &Threads, pacers: Vec<Pacer>, is_life: bool, steps: &[Step]) -> Load {
        let timeout = self.timeout_ms.and_then(|ms| seconds(ms / 1e3)).filter(|d| !d.is_zero());
        let connections = (threads.users > 0).then_some(threads.users);
        let comment = format!("{}: ", at.title());
        if let Some((phases, is_poisson)) = &threads.arrivals {
            if !pacers.is_empty() {
                self.changed(at, "its rate timers are ignored, because arrivals are the load", "");
            }
            let (phases, is_poisson) = (phases.clone(), *is_poisson);
            return Load::Open {
                phases,
                of_sessions: true,
                is_poisson,
                connections,
                timeout,
                comment: format!("{comment}arrivals of sessions"),
            };
        }
        if pacers.len() > 1 {
            self.changed(at, "it has several rate timers; the last one counts", "");
        }
        match pacers.into_iter().next_back() {
            Some(Pacer::Shape(phases)) => {
                let comment =
                    format!("{comment}requests at the rates of a shaping timer, by at most {} threads", threads.users);
                return Load::Open { phases, of_sessions: false, is_poisson: false, connections, timeout, comment };
            }
            Some(Pacer::Rate { per_second, of_each_thread, is_poisson, length_s }) => {
                let rate = if of_each_thread { per_second * f64::from(threads.users) } else { per_second };
                let sent = threads
                    .loops
                    .map(|loops| if is_life { 1.0 } else { loops as f64 } * requests(steps) * f64::from(threads.users));
                let by_count = sent.and_then(|n| seconds((n / rate).max(1.0)));
                let duration = length_s.and_then(seconds).or(match (threads.duration, by_count) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                });
                let duration = duration.unwrap_or_else(|| self.unbounded(at));
                let comment = format!("{comment}requests at the rate of a timer, by at most {} threads", threads.users);
                let phases = vec![Phase::Rate(rate.min(1e7), duration)];
                return Load::Open { phases, of_sessions: false, is_poisson, connections, timeout, comment };
            }
            None => {}
        }
        let users = threads.users;
        let per_user = if is_life && threads.loops.is_some() { Some(1) } else { threads.loops };
        let iterations = per_user
            .and_then(|n| n.checked_mul(u64::from(threads.users)))
            .filter(|n| *n > 0)
            .map(|n| n.min(u64::from(u32::MAX)));
        let stages = threads.stages.clone();
        let duration = if !stages.is_empty() {
            None
        } else if iterations.is_none() && threads.duration.is_none() {
            Some(self.unbounded(at))
        } else {
            threads.duration
        };
        let comment = format!("{comment}threads that wait for responses");
        Load::Closed { users, stages, ramp_up: threads.ramp_up, iterations, duration, timeout, comment }
    }

    fn unbounded(&mut self, at: &Element<'_>) -> Duration {
        self.changed(
            at,
            format!("in JMeter it runs until it is stopped; in the scenario it ends after {}", length(UNBOUNDED)),
            "change it under load",
        );
        UNBOUNDED
    }

    /// One load for all thread groups, if possible; else the first one's, and the others are
    /// listed.
    pub(super) fn join(&mut self, shapes: Vec<Shape>) -> (Load, Vec<Session>) {
        let are_closed = shapes.iter().all(|s| matches!(&s.load, Load::Closed { stages, .. } if stages.is_empty()));
        let mut shapes = shapes.into_iter().filter(|s| crate::scenario::count(&s.steps) > 0 || !s.steps.is_empty());
        let Some(first) = shapes.next() else { return (Load::default(), Vec::new()) };
        let rest: Vec<Shape> = shapes.collect();
        if rest.is_empty() || !are_closed {
            for other in rest {
                let why = format!("a scenario has one load, and it is that of \"{}\"", first.name);
                let advice = format!("import it as a separate scenario with --thread-group \"{}\"", other.name);
                self.notes.add(crate::note::Kind::LeftOut, other.title, other.line, why, advice);
            }
            return (first.load, vec![Session { name: first.name, weight: 1, steps: first.steps }]);
        }
        let all: Vec<Shape> = std::iter::once(first).chain(rest).collect();
        self.notes.add(
            crate::note::Kind::Changed,
            "thread groups",
            all[0].line,
            "they become one load: users go through sessions of each kind, by weight",
            "import each one separately with --thread-group NAME",
        );
        let mut sum = (0_u32, None::<Duration>, Some(0_u64), None::<Duration>, None::<Duration>);
        let mut weights = Vec::new();
        for shape in &all {
            let Load::Closed { users, ramp_up, iterations, duration, timeout, .. } = &shape.load else {
                continue;
            };
            sum.0 = sum.0.saturating_add(*users).min(MOST_USERS as u32);
            sum.1 = sum.1.max(*ramp_up);
            sum.2 = sum.2.zip(*iterations).map(|(a, b)| a.saturating_add(b));
            sum.3 = sum.3.max(*duration);
            sum.4 = sum.4.max(*timeout);
            weights.push((u64::from(*users), *iterations));
        }
        let by_count = sum.2.is_some();
        let weights: Vec<u64> =
            weights.iter().map(|(users, iterations)| if by_count { iterations.unwrap_or(1) } else { *users }).collect();
        let common = weights.iter().copied().fold(0, gcd).max(1);
        let duration = if by_count { sum.3 } else { sum.3.or(Some(UNBOUNDED)) };
        let load = Load::Closed {
            users: sum.0,
            stages: Vec::new(),
            ramp_up: sum.1,
            iterations: sum.2.map(|n| n.min(u64::from(u32::MAX))),
            duration,
            timeout: sum.4,
            comment: "all thread groups together: threads that wait for responses".to_owned(),
        };
        let mut names = std::collections::HashSet::new();
        let sessions = all.into_iter().zip(weights).map(|(shape, weight)| {
            let mut name = shape.name;
            while !names.insert(name.clone()) {
                name.push('+');
            }
            Session { name, weight: (weight / common).clamp(1, 1_000_000) as u32, steps: shape.steps }
        });
        (load, sessions.collect())
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn is_step(at: &Element<'_>) -> bool {
    at.class.ends_with("Controller")
        || at.class.starts_with("HTTPSampler")
        || at.class.ends_with("Sampler")
        || matches!(at.class.as_str(), "TestAction" | "InterleaveControl" | "RunTime")
}

/// Whether a Once Only controller counts the rounds of the thread group, rather than those of an
/// inner loop.
fn has_once_only(at: &Element<'_>) -> bool {
    match at.class.as_str() {
        "OnceOnlyController" => true,
        "LoopController" | "WhileController" | "ForeachController" | "RunTime" => false,
        _ => at.children.iter().any(has_once_only),
    }
}

/// Requests of one session, as far as its loops give the number of rounds.
fn requests(steps: &[Step]) -> f64 {
    steps
        .iter()
        .map(|step| match step {
            Step::Request(_) => 1.0,
            Step::Repeat { count, steps, .. } => count.parse().unwrap_or(1.0) * requests(steps),
            Step::If { steps, .. } => requests(steps),
            Step::Choose(branches) | Step::InTurn(branches) => {
                branches.iter().map(|b| requests(b)).sum::<f64>() / branches.len().max(1) as f64
            }
            other => other.inner().into_iter().map(|inner| requests(inner)).sum(),
        })
        .sum()
}
