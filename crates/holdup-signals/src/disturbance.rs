//! Whether this machine had its CPUs. A hypervisor that gives a virtual machine's CPUs to another
//! one stops the service and the generator alike, and the measurements of that time blame nothing
//! here.

use std::collections::BTreeMap;

use holdup_recording::metrics;

use super::view::Index;
use super::{View, Window};

/// From this share (0-1) of an interval's CPU time, stolen time is a disturbance: the CPUs were
/// away for half of the time, which alone can build a queue. On shared machines a tenth to a
/// quarter is common.
const STOLEN: f64 = 0.5;

/// A window disturbed for more than this share (0-1) of its time says nothing reliable about a
/// service.
pub const DISTURBED: f64 = 0.25;

/// Intervals in which the hypervisor gave the CPUs to others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disturbance {
    /// The intervals between samples, with the share (0-1) of CPU time that was stolen.
    pub intervals: Vec<(Window, f64)>,
}

impl Disturbance {
    /// Finds them in `view`; none if CPU time was not recorded.
    pub fn find(view: &View<'_>) -> Self {
        let taken = taken(view.index).into_iter();
        let intervals =
            taken.filter(|(w, share)| *share >= STOLEN && view.window.contains(w.from + (w.to - w.from) / 2));
        Self { intervals: intervals.collect() }
    }

    /// The share (0-1) of `window` that was disturbed.
    pub fn share_of(&self, window: Window) -> f64 {
        let overlap = |w: &Window| (w.to.min(window.to) - w.from.max(window.from)).max(0) as f64;
        let disturbed: f64 = self.intervals.iter().map(|(w, _)| overlap(w)).sum();
        disturbed / ((window.to - window.from) as f64).max(1.0)
    }

    /// In words; none if there was no disturbance.
    pub fn text(&self) -> Option<String> {
        let worst = self.intervals.iter().map(|(_, share)| *share).fold(0.0, f64::max);
        let seconds: f64 = self.intervals.iter().map(|(w, _)| w.seconds()).sum();
        (!self.intervals.is_empty()).then(|| {
            format!(
                "for {seconds:.1} s the hypervisor gave this machine's CPUs to others (up to {:.0} % of their time stolen)",
                worst * 100.0
            )
        })
    }
}

/// Share (0-1) of this machine's CPU time that was stolen in each interval between samples.
fn taken(index: &Index) -> Vec<(Window, f64)> {
    let mut all: BTreeMap<i64, f64> = BTreeMap::new();
    let mut stolen: BTreeMap<i64, f64> = BTreeMap::new();
    for ((_, labels), series) in index.series(metrics::host::CPU_TIME.name, &[]) {
        for &(at, value) in series {
            *all.entry(at).or_default() += value;
            if labels.get("cpu_mode") == Some("steal") {
                *stolen.entry(at).or_default() += value;
            }
        }
    }
    let instants: Vec<(i64, f64)> = all.into_iter().collect();
    let intervals = instants.windows(2).filter_map(|pair| {
        let ((from, before), (to, after)) = (pair[0], pair[1]);
        let share = (stolen.get(&to)? - stolen.get(&from)?) / (after - before);
        (after > before).then_some((Window { from, to }, share))
    });
    intervals.collect()
}

/// Greatest share (0-1) of this machine's CPU time that was stolen in any of `windows`; none if not
/// recorded.
pub fn stolen(index: &Index, windows: impl IntoIterator<Item = Window>) -> Option<f64> {
    let taken = taken(index);
    let share_in = |window: Window| {
        let overlap = |w: &Window| (w.to.min(window.to) - w.from.max(window.from)).max(0) as f64;
        let parts = taken.iter().map(|(w, share)| (share * overlap(w), overlap(w)));
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

    #[test]
    fn stolen_seconds_are_found_and_weighed() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("r");
        let manifest = Manifest::starting("t", 0, Host::default());
        let recorder = Recorder::create(&dir, &manifest).unwrap();
        let mut samples = Vec::new();
        // Ten seconds of two CPUs; from 4 s to 7 s nine tenths of their time is stolen.
        for second in 0..=10_i64 {
            let stolen = 1.8 * (second.clamp(4, 7) - 4) as f64;
            for (mode, value) in [("steal", stolen), ("idle", 2.0 * second as f64 - stolen)] {
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
        let found = Disturbance::find(&View { recording: &recording, index: &index, window });
        assert_eq!(found.intervals.len(), 3);
        assert!((found.share_of(Window { from: 0, to: 6_000_000_000 }) - 2.0 / 6.0).abs() < 1e-6);
        assert!(found.text().unwrap().starts_with("for 3.0 s"));
    }
}
