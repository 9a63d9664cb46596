//! What a pass takes: the time until it is over, the CPU time of its programs, and how much of the machine other
//! programs had meanwhile. CPU time says the same on a machine that is shared; the time until it is over also counts
//! tests that sleep, and says something only where others had little.

use std::fs;
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// The kernel's unit in these files, the same on every Linux that holdup runs on (proc(5): `sysconf(_SC_CLK_TCK)`).
const TICKS: f64 = 100.0;

/// What a pass took.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Cost {
    /// From the first test's start to the last one's end.
    pub seconds: f64,
    /// CPU time of all its programs.
    #[serde(default)]
    pub cpu_seconds: f64,
    /// Share (0-1) of the machine's CPU time that other programs and other machines had.
    #[serde(default)]
    pub others_ratio: f64,
}

/// A moment from which a cost is counted.
pub struct Begun {
    at: Instant,
    ticks: Option<Ticks>,
}

/// CPU time so far.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    /// Of the children that ended.
    own: f64,
    /// Of everything, with what the host gave to others.
    busy: f64,
    /// What there was.
    all: f64,
}

impl Begun {
    pub fn now() -> Self {
        Self { at: Instant::now(), ticks: Ticks::read() }
    }

    pub fn cost(&self) -> Cost {
        let seconds = self.at.elapsed().as_secs_f64();
        let of = |(then, now): (Ticks, Ticks)| Cost { seconds, ..then.until(now) };
        self.ticks.zip(Ticks::read()).map_or(Cost { seconds, ..Cost::default() }, of)
    }
}

impl Ticks {
    fn read() -> Option<Self> {
        let read = |path: &str| fs::read_to_string(path).ok();
        Self::parse(&read("/proc/self/stat")?, &read("/proc/stat")?)
    }

    /// proc(5): fields 16 and 17 of a process are the user and system time of its children that it waited for. The
    /// machine's line has user, nice, system, idle, iowait, irq, softirq and steal.
    fn parse(process: &str, machine: &str) -> Option<Self> {
        let fields: Vec<&str> = process.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
        let line = machine.lines().next()?.strip_prefix("cpu ")?;
        let times: Vec<f64> = line.split_whitespace().map_while(|word| word.parse().ok()).take(8).collect();
        let [.., idle, iowait, _, _, _] = times[..] else { return None };
        let all = times.iter().sum::<f64>();
        Some(Self { own: ticks(16)? + ticks(17)?, busy: all - idle - iowait, all })
    }

    fn until(self, now: Self) -> Cost {
        let own = now.own - self.own;
        let others = (now.busy - self.busy - own).max(0.0) / (now.all - self.all).max(1.0);
        Cost { seconds: 0.0, cpu_seconds: own / TICKS, others_ratio: others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_time_is_told_from_that_of_others() {
        let process = |user: u32| format!("7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 1 1 {user} 100 20 0 1 0 5");
        let machine = |user: u32, idle: u32| format!("cpu  {user} 0 100 {idle} 50 0 0 100 0 0\ncpu0 1 2 3\n");
        let then = Ticks::parse(&process(1_000), &machine(5_000, 1_000)).unwrap();
        assert_eq!(then, Ticks { own: 1_100.0, busy: 5_200.0, all: 6_250.0 });
        let now = Ticks::parse(&process(2_000), &machine(6_500, 1_500)).unwrap();
        assert_eq!(then.until(now), Cost { seconds: 0.0, cpu_seconds: 10.0, others_ratio: 0.25 });
        assert_eq!(Ticks::parse("7", "cpu  1 2"), None);
        assert!(Ticks::read().is_some());
    }
}
