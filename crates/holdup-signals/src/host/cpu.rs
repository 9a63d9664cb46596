//! The machine's CPU time, told apart by what it went to: work of programs and of the kernel, other
//! guests of the hypervisor (steal), or nothing. Time without work has two names. In `idle` nothing
//! waited for a disk either; in `iowait` a thread that slept on this CPU had I/O in flight. A thread
//! that is woken gets such a CPU at once, so iowait does not show a shortage of CPUs; but it says what the
//! idle CPU was short of, so it is never added to `idle` without its own figure beside it.

use std::collections::BTreeMap;

use holdup_recording::metrics::host::{CPU_SOFTIRQ_TIME, CPU_TIME};

use crate::view::Index;
use crate::{Counter, Missing, View, Window};

/// What to record for it.
pub const HOST: &str = "--watch host";

/// What CPU time goes to, as `/proc/stat` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CpuMode {
    /// Programs.
    User,
    /// Programs with a nice value.
    Nice,
    /// The kernel, for programs.
    System,
    /// The kernel, for devices.
    Interrupt,
    /// The kernel, for packets and timers.
    Softirq,
    /// Other guests of the hypervisor, while a thread here wanted to run.
    Steal,
    /// Nothing, and nothing was in flight.
    Idle,
    /// Nothing, while a thread waited for its I/O.
    Iowait,
}

impl CpuMode {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::User, Self::Nice, Self::System, Self::Interrupt, Self::Softirq, Self::Steal, Self::Idle, Self::Iowait];

    /// Its value of the label `cpu_mode`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Nice => "nice",
            Self::System => "system",
            Self::Interrupt => "interrupt",
            Self::Softirq => "softirq",
            Self::Steal => "steal",
            Self::Idle => "idle",
            Self::Iowait => "iowait",
        }
    }
}

/// Seconds of CPU time by mode, of all CPUs together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuSeconds {
    /// All modes, also those that have no name here.
    pub all: f64,
    by_mode: [Option<f64>; CpuMode::ALL.len()],
}

impl CpuSeconds {
    /// Seconds in `mode`; none if it was not counted.
    pub fn counted(&self, mode: CpuMode) -> Option<f64> {
        self.by_mode[mode as usize]
    }

    /// Seconds in `mode`; 0 if it was not counted.
    pub fn of(&self, mode: CpuMode) -> f64 {
        self.counted(mode).unwrap_or(0.0)
    }

    /// Seconds in which a CPU had nothing to run: idle and iowait.
    pub fn unused(&self) -> f64 {
        self.of(CpuMode::Idle) + self.of(CpuMode::Iowait)
    }

    /// Seconds in which a thread had a CPU or lacked the one that the hypervisor took.
    pub fn used(&self) -> f64 {
        self.all - self.unused()
    }

    /// Seconds that programs had a CPU, without interrupts.
    pub fn programs(&self) -> f64 {
        self.of(CpuMode::User) + self.of(CpuMode::Nice) + self.of(CpuMode::System)
    }

    /// Seconds in which a thread had a CPU.
    pub fn worked(&self) -> f64 {
        self.used() - self.of(CpuMode::Steal)
    }

    /// `seconds` as a share of all.
    pub fn share(&self, seconds: f64) -> f64 {
        seconds / self.all.max(1e-9)
    }
}

/// CPU time in a window.
#[derive(Clone, Debug)]
pub struct CpuTime {
    /// All of it.
    pub time: Counter,
    /// By mode.
    pub seconds: CpuSeconds,
    counters: BTreeMap<CpuMode, Counter>,
}

impl CpuTime {
    /// Of the machine that `view` shows.
    ///
    /// # Errors
    /// If its CPU time was not recorded.
    pub fn measure(view: &View<'_>) -> Result<Self, Missing> {
        let time = view.counter(CPU_TIME.name, &[], HOST)?;
        let mut seconds = CpuSeconds { all: time.delta, ..CpuSeconds::default() };
        let mut counters = BTreeMap::new();
        for mode in CpuMode::ALL {
            if let Ok(counter) = view.counter(CPU_TIME.name, &[("cpu_mode", mode.label())], HOST) {
                seconds.by_mode[mode as usize] = Some(counter.delta);
                counters.insert(mode, counter);
            }
        }
        Ok(Self { time, seconds, counters })
    }

    /// The counter of `mode`; none if it was not counted.
    pub fn counter(&self, mode: CpuMode) -> Option<&Counter> {
        self.counters.get(&mode)
    }

    /// CPUs in `mode` on average.
    pub fn cpus(&self, mode: CpuMode) -> f64 {
        self.counter(mode).map_or(0.0, Counter::rate)
    }

    /// `mode` as a share (0-1) of all CPU time.
    pub fn ratio(&self, mode: CpuMode) -> f64 {
        self.seconds.share(self.seconds.of(mode))
    }

    /// Share (0-1) in which a CPU had nothing to run; none if idle time was not counted.
    pub fn unused_ratio(&self) -> Option<f64> {
        self.seconds.counted(CpuMode::Idle).map(|_| self.seconds.share(self.seconds.unused()))
    }
}

/// CPU time from sample to sample within `window`, of sources that `is_source` accepts.
pub fn intervals(index: &Index, window: Window, is_source: impl Fn(&str) -> bool) -> Vec<(Window, CpuSeconds)> {
    let all = index.growths(window, &is_source, CPU_TIME.name, &[]);
    let mut found: Vec<(Window, CpuSeconds)> =
        all.iter().map(|grown| (grown.window, CpuSeconds { all: grown.delta, ..CpuSeconds::default() })).collect();
    for mode in CpuMode::ALL {
        for grown in index.growths(window, &is_source, CPU_TIME.name, &[("cpu_mode", mode.label())]) {
            let first = found.partition_point(|(window, _)| window.from < grown.window.from);
            let of_interval = found[first..].iter_mut().take_while(|(window, _)| window.from == grown.window.from);
            if let Some((_, seconds)) = of_interval.into_iter().find(|(window, _)| *window == grown.window) {
                *seconds.by_mode[mode as usize].get_or_insert(0.0) += grown.delta;
            }
        }
    }
    found
}

/// Time that each CPU spent in soft interrupts, by its number.
pub fn softirq_by_cpu(view: &View<'_>) -> Vec<(String, Counter)> {
    const CPU: &str = "cpu_logical_number";
    let cpus = view.label_values(CPU_SOFTIRQ_TIME.name, CPU).into_iter();
    cpus.filter_map(|cpu| Some((cpu.clone(), view.counter(CPU_SOFTIRQ_TIME.name, &[(CPU, &cpu)], HOST).ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    #[test]
    fn time_without_work_has_two_names_and_neither_is_work() {
        let modes = [("user", 0.5), ("softirq", 0.25), ("steal", 0.25), ("idle", 0.6), ("iowait", 0.4)];
        let made = modes.iter().fold(SyntheticRecording::new(10), |made, (mode, rate)| {
            made.counter("host", CPU_TIME.name, &[("cpu_mode", mode)], *rate)
        });
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} instead of {b}");
        made.seen(|view| {
            let cpu = CpuTime::measure(view).expect("CPU time");
            near(cpu.unused_ratio().expect("idle time"), 0.5);
            near(cpu.seconds.share(cpu.seconds.used()), 0.5);
            near(cpu.seconds.share(cpu.seconds.worked()), 0.375);
            near(cpu.ratio(CpuMode::Iowait), 0.2);
            near(cpu.cpus(CpuMode::Idle), 0.6);
            assert_eq!(cpu.seconds.counted(CpuMode::Nice), None);
            for (window, seconds) in intervals(view.index, view.window, |source| source == "host") {
                near(seconds.all, 2.0 * window.seconds());
                near(seconds.unused(), window.seconds());
            }
            assert!(intervals(view.index, view.window, |source| source == "other").is_empty());
        });
    }
}
