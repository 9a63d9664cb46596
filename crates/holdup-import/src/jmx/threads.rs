//! The threads of each kind of thread group: how many, from when, how long, how often.

use std::time::Duration;

use super::Plan;
use super::element::{self, Element};
use super::schedule::{self, stretch};
use super::timer::number_of;
use crate::error::ImportError;
use crate::load::seconds;
use crate::scenario::Phase;

/// Duration for a plan that runs until the user stops it.
pub(super) const UNBOUNDED: Duration = Duration::from_secs(600);

/// Most users or connections of a scenario.
pub(super) const MOST_USERS: f64 = 60_000.0;

/// The threads of a thread group.
#[derive(Default)]
pub(super) struct Threads {
    pub users: u32,
    pub ramp_up: Option<Duration>,
    /// Iterations of each; none if they continue.
    pub loops: Option<u64>,
    pub duration: Option<Duration>,
    /// Stages: from a number of threads to a number of threads in a time.
    pub stages: Vec<(u32, u32, Duration)>,
    /// Arrivals of threads instead of a number of them.
    pub arrivals: Option<(Vec<Phase>, bool)>,
}

impl Plan<'_> {
    /// Reads them.
    pub(super) fn threads(&mut self, at: &Element<'_>) -> Result<Threads, ImportError> {
        self.note_computed(at);
        let mut threads = match at.class.as_str() {
            "OpenModelThreadGroup" => self.open_model(at)?,
            "ConcurrencyThreadGroup" | "ArrivalsThreadGroup" => self.target_level(at),
            "FreeFormArrivalsThreadGroup" => self.free_form(at)?,
            "UltimateThreadGroup" => self.ultimate(at)?,
            class => {
                if class != "ThreadGroup" {
                    self.changed(
                        at,
                        "this kind of thread group is unknown: only its number of threads is carried over",
                        "write the load under load",
                    );
                }
                self.plain_group(at)
            }
        };
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
                return Err(self.wrong(at.line, format!("a load cannot have the rates of {}", at.title())));
            }
        }
        Ok(threads)
    }

    /// Notes the figures that the plan computes: by a property with a default, or while it runs.
    fn note_computed(&mut self, at: &Element<'_>) {
        for key in [
            "ThreadGroup.num_threads",
            "ThreadGroup.ramp_time",
            "ThreadGroup.duration",
            "TargetLevel",
            "RampUp",
            "Hold",
        ] {
            let Some(text) = at.filled(key).filter(|text| text.contains("${")) else { continue };
            let why = match self.names.fixed(text) {
                Some(value) => {
                    let short: String = value.chars().take(60).collect();
                    format!("{} is {short}, the default of {text}", key.trim_start_matches("ThreadGroup."))
                }
                None => format!("{key} ({text}) is computed while the plan runs"),
            };
            self.changed(at, why, "change it under load");
        }
    }

    /// A schedule as text.
    fn open_model(&mut self, at: &Element<'_>) -> Result<Threads, ImportError> {
        let text = at.text("OpenModelThreadGroup.schedule").unwrap_or_default();
        let text = self.names.fixed(text).unwrap_or_else(|| text.to_owned());
        let schedule = schedule::schedule(&text)
            .map_err(|why| self.wrong(at.line, format!("the schedule of {}: {why}", at.title())))?;
        if schedule.is_random && schedule.is_even {
            self.changed(at, "some of its arrivals are even; in the scenario all are random", "");
        }
        Ok(Threads { arrivals: Some((schedule.phases, schedule.is_random)), ..Threads::default() })
    }

    /// A number of threads, or of arrivals, that rises and is held.
    fn target_level(&mut self, at: &Element<'_>) -> Threads {
        let number = |key: &str| number_of(self, at, key);
        let unit = unit_s(at);
        let level = number("TargetLevel").unwrap_or(1.0).max(0.0);
        let ramp = number("RampUp").and_then(|n| seconds(n * unit)).unwrap_or_default();
        let hold = number("Hold").and_then(|n| seconds(n * unit)).unwrap_or(UNBOUNDED);
        let steps = number("Steps").filter(|n| (2.0..=1_000.0).contains(n) && !ramp.is_zero());
        if at.class == "ArrivalsThreadGroup" {
            let rate = level / unit;
            let phases = vec![stretch(0.0, rate, ramp), stretch(rate, rate, hold)];
            let users = count(number("ConcurrencyLimit"));
            if steps.is_some() {
                self.changed(at, "it rises evenly, not in steps", "write the steps under load");
            }
            return Threads { users, arrivals: Some((phases, true)), ..Threads::default() };
        }
        let mut threads = Threads {
            users: count(Some(level)),
            ramp_up: Some(ramp).filter(|r| !r.is_zero()),
            duration: Some(ramp + hold),
            loops: number("Iterations").filter(|n| *n >= 1.0).map(|n| n as u64),
            ..Threads::default()
        };
        if let Some(steps) = steps {
            // The first step begins at once, and the last one is held.
            let users = |step: f64| count(Some((level * step / steps).ceil()));
            let each = ramp.div_f64(steps);
            let rise = (1..=steps as u32).map(|step| (users(f64::from(step)), each));
            threads.stages = rise.chain([(users(steps), hold)]).map(|(n, d)| (n, n, d)).collect();
            threads.ramp_up = None;
        }
        threads
    }

    /// Arrivals as rows of rates.
    fn free_form(&mut self, at: &Element<'_>) -> Result<Threads, ImportError> {
        let unit = unit_s(at);
        let phase = |row: &Vec<f64>| match row[..] {
            [from, to, for_units, ..] => {
                Some(stretch((from / unit).max(0.0), (to / unit).max(0.0), seconds(for_units * unit)?))
            }
            _ => None,
        };
        let phases = self.rows(at, "Schedule").iter().map(phase).collect::<Option<Vec<_>>>();
        let phases =
            phases.ok_or_else(|| self.wrong(at.line, format!("the schedule of {} can't be read", at.title())))?;
        let users = count(number_of(self, at, "ConcurrencyLimit"));
        Ok(Threads { users, arrivals: Some((phases, true)), ..Threads::default() })
    }

    /// Threads as rows, each with its own rise and fall.
    fn ultimate(&mut self, at: &Element<'_>) -> Result<Threads, ImportError> {
        let stages = stages(&self.rows(at, "ultimatethreadgroupdata"));
        let most = stages.iter().map(|s| s.0.max(s.1)).max().filter(|most| *most > 0);
        let users = most.ok_or_else(|| self.wrong(at.line, format!("{} has no rows of numbers", at.title())))?;
        let duration = Some(stages.iter().map(|s| s.2).sum());
        Ok(Threads { users, duration, stages, ..Threads::default() })
    }

    /// JMeter's own thread group: a number of threads and of loops.
    fn plain_group(&mut self, at: &Element<'_>) -> Threads {
        let number = |plan: &Self, key: &str| number_of(plan, at, key);
        let users = count(number(self, "ThreadGroup.num_threads"));
        let ramp_up = number(self, "ThreadGroup.ramp_time").and_then(seconds);
        let mut duration = None;
        if at.flag("ThreadGroup.scheduler") {
            duration = number(self, "ThreadGroup.duration").and_then(seconds).filter(|d| !d.is_zero());
            if number(self, "ThreadGroup.delay").is_some_and(|d| d > 0.0) {
                self.changed(at, "it begins at once instead of after its delay", "");
            }
        }
        let main = at.part("ThreadGroup.main_controller");
        let loops = main.and_then(|m| element::text(m, "LoopController.loops"));
        let loops = loops.and_then(|t| self.names.number(t.trim())).filter(|n| *n >= 0.0).map(|n| n as u64);
        Threads { users, ramp_up: ramp_up.filter(|r| !r.is_zero() && users > 1), duration, loops, ..Threads::default() }
    }
}

/// A number of threads, from 1 on.
fn count(number: Option<f64>) -> u32 {
    number.filter(|n| *n >= 1.0).map_or(1, |n| n.min(MOST_USERS) as u32)
}

/// The unit of a group's times, in seconds.
fn unit_s(at: &Element<'_>) -> f64 {
    if at.filled("Unit") == Some("S") { 1.0 } else { 60.0 }
}

/// Rows of threads, delay, start-up, hold, shut-down (seconds) as stages of users. Between two
/// moments at which any row changes its slope, the sum changes evenly.
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
