//! Translates loads of JMeter's open thread groups and timers into phases: the schedule language of
//! the Open Model Thread Group, and rows of rates.

use std::time::Duration;

use crate::load::seconds;
use crate::scenario::Phase;

/// Phases of a schedule such as `rate(1/s) random_arrivals(5 min) rate(10/s)`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    pub phases: Vec<Phase>,
    /// Some of its arrivals are random.
    pub is_random: bool,
    /// Some are even.
    pub is_even: bool,
}

/// Most steps of a schedule; a scenario has the same limit on phases.
const MOST_STEPS: usize = 10_000;

enum Item {
    Rate(f64),
    Arrivals(Duration, bool),
    Pause(Duration),
}

/// Reads the schedule language.
///
/// # Errors
///
/// Names the part that cannot be read.
pub fn schedule(text: &str) -> Result<Schedule, String> {
    let mut items = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            break;
        }
        if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").ok_or("a comment is not closed")?.1;
            continue;
        }
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after);
            continue;
        }
        let (name, after) = rest.split_once('(').ok_or_else(|| format!("\"{}\" is not a step", crop(rest)))?;
        let (argument, after) = after.split_once(')').ok_or_else(|| format!("\"{}\" is not closed", crop(rest)))?;
        items.push(match name.trim() {
            "rate" => Item::Rate(rate(argument)?),
            "random_arrivals" => Item::Arrivals(duration(argument)?, true),
            "even_arrivals" => Item::Arrivals(duration(argument)?, false),
            "pause" => Item::Pause(duration(argument)?),
            other => return Err(format!("\"{}\" is an unknown step", crop(other))),
        });
        if items.len() > MOST_STEPS {
            return Err(format!("it has more than {MOST_STEPS} steps"));
        }
        rest = after;
    }
    let mut all = Schedule::default();
    let mut current = 0.0;
    for (at, item) in items.iter().enumerate() {
        match item {
            Item::Rate(rate) => current = *rate,
            Item::Pause(length) => all.phases.push(Phase::Pause(*length)),
            Item::Arrivals(length, is_random) => {
                all.is_random |= is_random;
                all.is_even |= !is_random;
                // A rate right behind arrivals is the one that they change to.
                let end = if let Some(Item::Rate(next)) = items.get(at + 1) { *next } else { current };
                all.phases.push(stretch(current, end, *length));
                current = end;
            }
        }
    }
    all.phases.retain(|phase| !phase.length().is_zero());
    if all.phases.iter().all(|phase| matches!(phase, Phase::Pause(_))) {
        return Err("it has no arrivals".to_owned());
    }
    Ok(all)
}

/// A stretch from one rate to another.
pub fn stretch(from: f64, to: f64, length: Duration) -> Phase {
    // One per thousand seconds is the lowest rate that a scenario can have.
    if from.max(to) < 0.001 {
        Phase::Pause(length)
    } else if from == to {
        Phase::Rate(from, length)
    } else {
        Phase::Ramp(from, to, length)
    }
}

fn crop(text: &str) -> String {
    text.chars().take(30).collect()
}

fn rate(text: &str) -> Result<f64, String> {
    let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
    let per = unit_seconds(unit.trim()).ok_or_else(|| format!("\"{}\" is not a rate", crop(text)))?;
    let number: f64 = number.trim().parse().map_err(|_| format!("\"{}\" is not a rate", crop(text)))?;
    if (0.0..=1e7).contains(&(number / per)) {
        Ok(number / per)
    } else {
        Err(format!("{} is out of range", crop(text)))
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("\"{}\" is not a duration", crop(text));
    let mut rest = text.trim();
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().map_err(|_| bad())?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        total += number * unit_seconds(&rest[..letters]).ok_or_else(bad)?;
        rest = rest[letters..].trim_start();
    }
    seconds(total).ok_or_else(bad)
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "ms" | "millis" => 0.001,
        "" | "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn constant_changing_and_paused() {
        let text = "rate(60/min) random_arrivals(1 min) rate(10/s) even_arrivals(30 s) /* rest */ pause(2 min) // end\n rate(5/sec)\n random_arrivals(90)";
        let schedule = schedule(text).unwrap();
        let expected =
            [Phase::Ramp(1.0, 10.0, s(60)), Phase::Rate(10.0, s(30)), Phase::Pause(s(120)), Phase::Rate(5.0, s(90))];
        assert_eq!(schedule.phases, expected);
        assert!(schedule.is_random && schedule.is_even);
    }

    #[test]
    fn a_jump_is_two_rates() {
        let schedule = schedule("rate(50/s) even_arrivals(10 s) rate(50/s) rate(100/s) even_arrivals(10 s)").unwrap();
        assert_eq!(schedule.phases, [Phase::Rate(50.0, s(10)), Phase::Rate(100.0, s(10))]);
    }

    #[test]
    fn mistakes_are_said() {
        for wrong in [
            "",
            "rate(x)",
            "rate(1/fortnight) pause(1)",
            "rate(1",
            "jump(3)",
            "/* x",
            "rate(1/s)",
            "pause(5 s)",
            "rate(5) even_arrivals(5 q)",
        ] {
            assert!(schedule(wrong).is_err(), "{wrong}");
        }
    }
}
