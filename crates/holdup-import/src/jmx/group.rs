//! Thread groups: what one visit is, and how much load they are. A visit is one iteration; where something is to be done
//! once per thread, it is the thread's whole life.

use std::time::Duration;

use super::Plan;
use super::element::{self, Element};
use super::schedule::{self, stretch};
use super::timer::{self, Pacer, number_of};
use super::walk::{Around, Round};
use crate::error::ImportError;
use crate::load::{LONGEST, length, seconds};
use crate::scenario::{Load, Phase, Session, Step};
use crate::template::label;

/// What is taken where a plan runs until somebody stops it.
const UNBOUNDED: Duration = Duration::from_secs(600);

/// Most users or connections of a scenario.
const MOST_USERS: f64 = 60_000.0;

/// A thread group as a visit and a load.
pub(super) struct Shape {
    title: String,
    line: usize,
    name: String,
    steps: Vec<Step>,
    load: Load,
}

/// What a thread group says of its threads.
#[derive(Default)]
struct Threads {
    users: u32,
    ramp_up: Option<Duration>,
    /// Iterations of each; nothing if they go on.
    loops: Option<u64>,
    duration: Option<Duration>,
    /// From so many threads to so many in so long.
    stages: Vec<(u32, u32, Duration)>,
    /// Arrivals of threads instead of a number of them.
    arrivals: Option<(Vec<Phase>, bool)>,
}

/// Whether a class is a thread group's that runs the load.
pub(super) fn is_group(class: &str) -> bool {
    class.ends_with("ThreadGroup") || class == "ConcurrencyThreadGroup"
}

impl Plan<'_> {
    /// Steps of a thread group that runs once, before or after.
    pub(super) fn once<'e, 'a>(&mut self, top: &'e Element<'a>, at: &'e Element<'a>) -> Result<Vec<Step>, ImportError> {
        if at.filled("ThreadGroup.num_threads").and_then(|t| self.names.number(t)).is_some_and(|n| n > 1.0) {
            self.changed(at, "it is done once, not by several threads", "");
        }
        let mut around = Around { scope: vec![top, at], rounds: vec![Round::Single], on_failure: None };
        self.steps(&mut around)
    }

    /// A thread group.
    pub(super) fn group<'e, 'a>(&mut self, top: &'e Element<'a>, at: &'e Element<'a>) -> Result<Shape, ImportError> {
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
        let on_failure = match at.filled("ThreadGroup.on_sample_error").unwrap_or("continue") {
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
            self.changed(at, "a user whose request fails begins another session, a thread would end", "");
        }
        let mut steps: Vec<Step> = Vec::new();
        for child in top.children.iter().filter(|c| c.class == "RandomVariableConfig") {
            let mut around = Around { scope: vec![top], rounds: vec![Round::Single], on_failure };
            steps.extend(self.steps_of(std::iter::once(child), &mut around)?);
        }
        let duration = threads.duration.unwrap_or(LONGEST);
        if is_life {
            // What is first and once needs no condition.
            let first = at.children.iter().take_while(|c| !is_step(c) || c.class == "OnceOnlyController").count();
            let mut around = Around { scope: vec![top, at], rounds: vec![Round::Single], on_failure };
            steps.extend(self.steps_of(at.children[..first].iter(), &mut around)?);
            let round = if threads.loops.is_some() { Round::Counted(None) } else { Round::Uncounted };
            around.rounds = vec![round];
            let feeds: Vec<Step> = self.feeders(top, at).into_iter().map(Step::Feed).collect();
            let mut inner = self.steps_of(at.children[first..].iter(), &mut around)?;
            // The first row is drawn when it is first used, which may be before the rounds.
            let is_drawn = crate::scenario::count(&steps) > 0;
            match around.rounds.last_mut() {
                _ if feeds.is_empty() => {}
                Some(Round::Counted(counter)) if is_drawn => {
                    let name = counter.get_or_insert_with(|| self.names.taken.name("round"));
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
            let mut around = Around { scope: vec![top, at], rounds: vec![Round::Single], on_failure };
            steps.extend(self.steps(&mut around)?);
            let keeps = top
                .children
                .iter()
                .chain(&at.children)
                .any(|e| e.class == "CookieManager" && !e.flag("CookieManager.clearEachIteration"));
            if goes_round && keeps {
                self.changed(
                    at,
                    "each iteration is a session of its own, which begins without cookies and variables",
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

    /// Feeders whose next row each iteration takes.
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

    fn threads(&mut self, at: &Element<'_>) -> Result<Threads, ImportError> {
        let mut threads = Threads::default();
        let number = |plan: &Self, key: &str| number_of(plan, at, key);
        let count = |n: Option<f64>| n.filter(|n| *n >= 1.0).map_or(1, |n| n.min(MOST_USERS) as u32);
        for key in [
            "ThreadGroup.num_threads",
            "ThreadGroup.ramp_time",
            "ThreadGroup.duration",
            "TargetLevel",
            "RampUp",
            "Hold",
        ] {
            if let Some(text) = at.filled(key).filter(|text| text.contains("${")) {
                match self.names.fixed(text) {
                    Some(value) => {
                        let short: String = value.chars().take(60).collect();
                        let why = format!(
                            "{} is {short} here, the default of {text}",
                            key.trim_start_matches("ThreadGroup.")
                        );
                        self.changed(at, why, "change it under load");
                    }
                    None => self.changed(
                        at,
                        format!("{key} ({text}) is known only while the plan runs"),
                        "change it under load",
                    ),
                }
            }
        }
        match at.class.as_str() {
            "OpenModelThreadGroup" => {
                let text = at.text("OpenModelThreadGroup.schedule").unwrap_or_default();
                let text = self.names.fixed(text).unwrap_or_else(|| text.to_owned());
                let schedule = schedule::schedule(&text)
                    .map_err(|why| self.wrong(at.line, format!("the schedule of {}: {why}", at.title())))?;
                if schedule.is_random && schedule.is_even {
                    self.changed(at, "some of its arrivals are even, here all are random", "");
                }
                threads.arrivals = Some((schedule.phases, schedule.is_random));
            }
            "ConcurrencyThreadGroup" | "ArrivalsThreadGroup" => {
                let unit = if at.filled("Unit") == Some("S") { 1.0 } else { 60.0 };
                let level = number(self, "TargetLevel").unwrap_or(1.0).max(0.0);
                let ramp = number(self, "RampUp").and_then(|n| seconds(n * unit)).unwrap_or_default();
                let hold = number(self, "Hold").and_then(|n| seconds(n * unit)).unwrap_or(UNBOUNDED);
                let steps = number(self, "Steps").filter(|n| (2.0..=1_000.0).contains(n) && !ramp.is_zero());
                threads.users = count(Some(level));
                if at.class == "ArrivalsThreadGroup" {
                    let rate = level / unit;
                    let phases = vec![stretch(0.0, rate, ramp), stretch(rate, rate, hold)];
                    threads.users = count(number(self, "ConcurrencyLimit"));
                    threads.arrivals = Some((phases, true));
                    if steps.is_some() {
                        self.changed(at, "it rises evenly, not in steps", "say the steps under load");
                    }
                } else {
                    threads.ramp_up = Some(ramp).filter(|r| !r.is_zero());
                    threads.duration = Some(ramp + hold);
                    if let Some(steps) = steps {
                        // The first step begins at once, the last is held.
                        let users = |step: f64| count(Some((level * step / steps).ceil()));
                        let each = ramp.div_f64(steps);
                        let rise = (1..=steps as u32).map(|step| (users(f64::from(step)), each));
                        threads.stages = rise.chain([(users(steps), hold)]).map(|(n, d)| (n, n, d)).collect();
                        threads.ramp_up = None;
                    }
                    threads.loops = number(self, "Iterations").filter(|n| *n >= 1.0).map(|n| n as u64);
                }
            }
            "FreeFormArrivalsThreadGroup" => {
                let unit = if at.filled("Unit") == Some("S") { 1.0 } else { 60.0 };
                let rows = self.rows(at, "Schedule");
                let phase = |row: &Vec<f64>| match row[..] {
                    [from, to, for_units, ..] => {
                        Some(stretch((from / unit).max(0.0), (to / unit).max(0.0), seconds(for_units * unit)?))
                    }
                    _ => None,
                };
                let phases = rows
                    .iter()
                    .map(phase)
                    .collect::<Option<Vec<_>>>()
                    .ok_or_else(|| self.wrong(at.line, format!("the schedule of {} can't be read", at.title())))?;
                threads.users = count(number(self, "ConcurrencyLimit"));
                threads.arrivals = Some((phases, true));
            }
            "UltimateThreadGroup" => {
                threads.stages = stages(&self.rows(at, "ultimatethreadgroupdata"));
                let most = threads.stages.iter().map(|s| s.0.max(s.1)).max().filter(|most| *most > 0);
                threads.users =
                    most.ok_or_else(|| self.wrong(at.line, format!("{} has no rows of numbers", at.title())))?;
                threads.duration = Some(threads.stages.iter().map(|s| s.2).sum());
            }
            class => {
                if class != "ThreadGroup" {
                    self.changed(
                        at,
                        "this kind of thread group is not known: only its number of threads is taken",
                        "say the load under load",
                    );
                }
                threads.users = count(number(self, "ThreadGroup.num_threads"));
                threads.ramp_up = number(self, "ThreadGroup.ramp_time")
                    .and_then(seconds)
                    .filter(|r| !r.is_zero() && threads.users > 1);
                if at.flag("ThreadGroup.scheduler") {
                    threads.duration = number(self, "ThreadGroup.duration").and_then(seconds).filter(|d| !d.is_zero());
                    if number(self, "ThreadGroup.delay").is_some_and(|d| d > 0.0) {
                        self.changed(at, "it begins at once, without its delay", "");
                    }
                }
                let main = at.part("ThreadGroup.main_controller");
                let loops = main
                    .and_then(|m| element::text(m, "LoopController.loops"))
                    .and_then(|t| self.names.number(t.trim()));
                threads.loops = loops.filter(|n| *n >= 0.0).map(|n| n as u64);
                if main.is_none() {
                    threads.loops = None;
                }
            }
        }
        threads.stages.retain(|stage| !stage.2.is_zero());
        if let Some((phases, _)) = &mut threads.arrivals {
            phases.retain(|phase| !phase.length().is_zero());
            let too_much = |r: f64| !(0.0..=1e7).contains(&r);
            if phases.is_empty()
                || phases.iter().any(|p| {
                    matches!(p, Phase::Rate(r, _) if too_much(*r))
                        || matches!(p, Phase::Ramp(a, b, _) if too_much(*a) || too_much(*b))
                })
            {
                return Err(self.wrong(at.line, format!("the rates of {} are none that a load can have", at.title())));
            }
        }
        Ok(threads)
    }

    fn load(&mut self, at: &Element<'_>, threads: &Threads, pacers: Vec<Pacer>, is_life: bool, steps: &[Step]) -> Load {
        let timeout = self.timeout_ms.and_then(|ms| seconds(ms / 1e3)).filter(|d| !d.is_zero());
        let connections = (threads.users > 0).then_some(threads.users);
        let comment = format!("{}: ", at.title());
        if let Some((phases, is_poisson)) = &threads.arrivals {
            if !pacers.is_empty() {
                self.changed(at, "a timer that holds a rate is not heeded, since arrivals are the load", "");
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
            self.changed(at, "of several timers that hold a rate the last one is taken", "");
        }
        match pacers.into_iter().next_back() {
            Some(Pacer::Shape(phases)) => {
                let comment =
                    format!("{comment}requests as a shaping timer has them, by at most {} threads", threads.users);
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
                let comment =
                    format!("{comment}requests at the rate that a timer holds, by at most {} threads", threads.users);
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
            format!("it goes on until it is stopped; here it ends after {}", length(UNBOUNDED)),
            "change it under load",
        );
        UNBOUNDED
    }

    /// One load of all thread groups, if there can be one; else the first one's, the others are listed.
    pub(super) fn join(&mut self, shapes: Vec<Shape>) -> (Load, Vec<Session>) {
        let are_closed = shapes.iter().all(|s| matches!(&s.load, Load::Closed { stages, .. } if stages.is_empty()));
        let mut shapes = shapes.into_iter().filter(|s| crate::scenario::count(&s.steps) > 0 || !s.steps.is_empty());
        let Some(first) = shapes.next() else { return (Load::default(), Vec::new()) };
        let rest: Vec<Shape> = shapes.collect();
        if rest.is_empty() || !are_closed {
            for other in rest {
                let why = format!("a scenario has one load, and it is that of \"{}\"", first.name);
                let advice = format!("make a scenario of its own with --thread-group \"{}\"", other.name);
                self.notes.add(crate::note::Kind::LeftOut, other.title, other.line, why, advice);
            }
            return (first.load, vec![Session { name: first.name, weight: 1, steps: first.steps }]);
        }
        let all: Vec<Shape> = std::iter::once(first).chain(rest).collect();
        self.notes.add(
            crate::note::Kind::Changed,
            "thread groups",
            all[0].line,
            "they are one load here: users go through sessions of each kind, by weight",
            "import each by itself with --thread-group NAME",
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

/// Whether a Once Only controller counts the rounds of the thread group: not one within a loop of its own.
fn has_once_only(at: &Element<'_>) -> bool {
    match at.class.as_str() {
        "OnceOnlyController" => true,
        "LoopController" | "WhileController" | "ForeachController" | "RunTime" => false,
        _ => at.children.iter().any(has_once_only),
    }
}

/// Requests of one visit, as far as its loops say how often they go round.
fn requests(steps: &[Step]) -> f64 {
    steps
        .iter()
        .map(|step| match step {
            Step::Request(_) => 1.0,
            Step::Repeat { count, steps, .. } => count.parse().unwrap_or(1.0) * requests(steps),
            Step::While { steps, .. }
            | Step::During { steps, .. }
            | Step::ForEach { steps, .. }
            | Step::Group { steps, .. } => requests(steps),
            Step::If { steps, .. } => requests(steps),
            Step::Choose(branches) | Step::InTurn(branches) => {
                branches.iter().map(|b| requests(b)).sum::<f64>() / branches.len().max(1) as f64
            }
            _ => 0.0,
        })
        .sum()
}

/// Rows of threads, delay, start-up, hold, shut-down (seconds) as stages of users: between two moments at which any row
/// changes its slope, the sum changes evenly.
fn stages(rows: &[Vec<f64>]) -> Vec<(u32, u32, Duration)> {
    let mut corners = vec![0.0];
    let mut good = Vec::new();
    for row in rows.iter().take(1_000) {
        let [threads, delay, up, hold, down] = row[..] else { continue };
        if ![threads, delay, up, hold, down].iter().all(|n| (0.0..=1e7).contains(n)) {
            continue;
        }
        good.push((threads, delay, up, hold, down));
        corners.extend([delay, delay + up, delay + up + hold, delay + up + hold + down]);
    }
    corners.sort_by(f64::total_cmp);
    corners.dedup_by(|a, b| (*a - *b).abs() < 1e-3);
    // Just before and just after a corner differ where a row starts or stops at once.
    let at = |t: f64| -> f64 {
        good.iter()
            .map(|(threads, delay, up, hold, down)| {
                let t = t - delay;
                if t < 0.0 || t > up + hold + down {
                    0.0
                } else if t < *up {
                    threads * t / up
                } else if t <= up + hold {
                    *threads
                } else {
                    threads * (up + hold + down - t) / down
                }
            })
            .sum()
    };
    let users = |n: f64| n.round().clamp(0.0, MOST_USERS) as u32;
    let stage = |pair: &[f64]| {
        let edge = (pair[1] - pair[0]) * 1e-6;
        Some((users(at(pair[0] + edge)), users(at(pair[1] - edge)), seconds(pair[1] - pair[0])?))
    };
    if good.is_empty() { Vec::new() } else { corners.windows(2).filter_map(stage).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_users_add_up() {
        let rows = vec![vec![10.0, 0.0, 10.0, 20.0, 10.0], vec![5.0, 10.0, 0.0, 10.0, 0.0]];
        let s = Duration::from_secs;
        assert_eq!(stages(&rows), [(0, 10, s(10)), (15, 15, s(10)), (10, 10, s(10)), (10, 0, s(10))]);
        assert!(stages(&[vec![f64::NAN; 5]]).is_empty());
    }
}
