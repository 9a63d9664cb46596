//! Whether this machine had its CPUs. A hypervisor that gives a virtual machine's CPUs to another
//! one stops the service and the generator alike, and the measurements of that time blame nothing
//! here.

use super::cpu::{self, CpuMode, CpuSeconds};
use crate::view::Index;
use crate::{View, Window};

/// From this share (0-1) of an interval's CPU time, stolen time is a disturbance: the CPUs were
/// away for half of the time, which alone can build a queue. On shared machines a tenth to a
/// quarter is common.
const STOLEN: f64 = 0.5;

/// A window disturbed for more than this share (0-1) of its time says nothing reliable about a
/// service …
const DISTURBED: f64 = 0.25;

/// … nor does one in which this share (0-1) of all CPU time was stolen, however it was spread: a
/// queue from one moment lasts beyond it …
const STOLEN_IN_ALL: f64 = 0.25;

/// … and this share (0-1) of the time for which something wanted to run: it took twice as long.
const OF_DEMAND: f64 = 0.5;

/// CPU time between two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    window: Window,
    cpu: CpuSeconds,
}

impl Interval {
    fn stolen(&self) -> f64 {
        self.cpu.of(CpuMode::Steal)
    }

    /// Share (0-1) of its time that was stolen.
    fn share(&self) -> f64 {
        self.stolen() / self.cpu.all
    }

    /// Share (0-1) of it that lies in `window`.
    fn within(&self, window: Window) -> f64 {
        let Window { from, to } = self.window;
        (to.min(window.to) - from.max(window.from)).max(0) as f64 / (to - from) as f64
    }
}

/// Whether and when the hypervisor gave the CPUs to others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disturbance {
    intervals: Vec<Interval>,
}

impl Disturbance {
    /// Finds it in `view`; none if CPU time was not recorded.
    pub fn find(view: &View<'_>) -> Self {
        Self { intervals: intervals(view.index, view.window) }
    }

    /// The intervals in which they were away for most of the time.
    fn away(&self) -> impl Iterator<Item = &Interval> {
        self.intervals.iter().filter(|i| i.share() >= STOLEN)
    }

    /// Whether it makes `window` worthless: measurements of it do not show the service.
    pub fn spoils(&self, window: Window) -> bool {
        let disturbed: f64 = self.away().map(|i| i.within(window) * i.window.seconds()).sum();
        let stolen = self.sum(window, Interval::stolen);
        let is_slowed = stolen >= OF_DEMAND * self.sum(window, |i| i.cpu.used());
        let is_most = stolen >= STOLEN_IN_ALL * self.sum(window, |i| i.cpu.all);
        disturbed > DISTURBED * window.seconds() || stolen > 0.0 && is_slowed && is_most
    }

    fn sum(&self, window: Window, of: fn(&Interval) -> f64) -> f64 {
        self.intervals.iter().map(|i| i.within(window) * of(i)).sum()
    }

    /// Seconds for which the CPUs were away for most of the time, and the greatest share (0-1) that was
    /// stolen; none without such a time.
    pub fn away_s(&self) -> Option<(f64, f64)> {
        let worst = self.away().map(Interval::share).reduce(f64::max)?;
        Some((self.away().map(|i| i.window.seconds()).sum(), worst))
    }

    /// Share (0-1) of the CPU time in `window` that was stolen.
    pub fn stolen_ratio(&self, window: Window) -> f64 {
        self.sum(window, Interval::stolen) / self.sum(window, |i| i.cpu.all)
    }
}

/// This machine's CPU time in each interval in which steal was counted.
fn intervals(index: &Index, window: Window) -> Vec<Interval> {
    let all = cpu::intervals(index, window, |_| true).into_iter().map(|(window, cpu)| Interval { window, cpu });
    all.filter(|i| i.cpu.all > 0.0 && i.cpu.counted(CpuMode::Steal).is_some()).collect()
}

/// Greatest share (0-1) of this machine's CPU time that was stolen in any of `windows`; none if not
/// recorded.
pub fn stolen(index: &Index, windows: impl IntoIterator<Item = Window>) -> Option<f64> {
    let intervals = intervals(index, Window { from: 0, to: i64::MAX });
    let share_in = |window: Window| {
        let parts = intervals.iter().map(|i| {
            let seconds = i.within(window) * i.window.seconds();
            (i.share() * seconds, seconds)
        });
        let (stolen, time) = parts.fold((0.0, 0.0), |(s, t), (stolen, time)| (s + stolen, t + time));
        (time > 0.0).then(|| stolen / time)
    };
    windows.into_iter().filter_map(share_in).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use holdup_recording::manifest::Host;
    use holdup_recording::rows::Sample;
    use holdup_recording::{Labels, Manifest, Recorder, Recording, RunState};

    use super::*;
    use crate::view::{Index, View};

    /// Ten seconds of two CPUs that are idle but for what is stolen, and for `busy` of both in each second: in all until a second, `stolen`.
    fn made(busy: f64, stolen: fn(i64) -> f64) -> Disturbance {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("r");
        let manifest = Manifest::starting("t", 0, Host::default());
        let recorder = Recorder::create(&dir, &manifest).unwrap();
        let mut samples = Vec::new();
        for second in 0..=10_i64 {
            let (stolen, user) = (stolen(second), busy * second as f64);
            for (mode, value) in [("steal", stolen), ("user", user), ("idle", 2.0 * second as f64 - stolen - user)] {
                samples.push(Sample {
                    observed_at: second * 1_000_000_000,
                    source: "host".into(),
                    metric: "system_cpu_time_seconds_total".into(),
                    labels: Labels::new([("cpu_mode", mode)]),
                    value,
                    ..Sample::default()
                });
            }
        }
        recorder.sink().push(holdup_recording::Batch { samples, ..Default::default() });
        recorder.finish(manifest, RunState::Complete).unwrap();
        let recording = Recording::open(&dir).unwrap();
        let (index, window) = (Index::new(&recording.tables), Window { from: 0, to: i64::MAX });
        Disturbance::find(&View { recording: &recording, index: &index, window })
    }

    fn until(second: i64) -> Window {
        Window { from: 0, to: second * 1_000_000_000 }
    }

    #[test]
    fn stolen_seconds_are_found_and_weighed() {
        // From 4 s to 7 s nine tenths of their time is stolen.
        let found = made(0.0, |second| 1.8 * (second.clamp(4, 7) - 4) as f64);
        assert_eq!(found.away().count(), 3);
        assert_eq!([5, 6, 10].map(|second| found.spoils(until(second))), [false, true, true]);
        assert_eq!(found.away_s().map(|(seconds, _)| seconds), Some(3.0));
        assert!(!made(0.0, |_| 0.0).spoils(until(10)), "nothing was stolen");
    }

    #[test]
    fn time_stolen_all_along_counts_against_what_wanted_to_run() {
        let third = |second: i64| 0.66 * second as f64;
        let found = made(0.4, third);
        assert!(found.spoils(until(10)), "what ran took 2.6 times as long");
        assert_eq!(found.away_s(), None);
        assert!((found.stolen_ratio(until(10)) - 0.33).abs() < 1e-9, "{}", found.stolen_ratio(until(10)));
        assert!(!made(1.3, third).spoils(until(10)), "what ran took 1.5 times as long");
        assert!(!made(0.1, |second| 0.4 * second as f64).spoils(until(10)), "a fifth is common");
    }
}
