//! What causes are asked with: questions about an episode's phases, its alarms and its statements, each answered with a
//! strength from 0 to 1, or not at all where nothing was recorded. The questions that several causes ask stand here; the
//! ranges are stated where they come from, a mechanism or the grain of what is counted.

use super::course::Course;
use super::workload::Workload;
use holdup_diagnose::counters::view::{Observation, any};
use holdup_signals::time::counters::jitter::Jitter;
use holdup_signals::time::counters::signal::Signal;

/// The weakest of things that must hold together; nothing if one of them is not known. Half of a mechanism is not seen for
/// the whole of it.
#[must_use]
pub fn every<const N: usize>(readings: [Option<Observation>; N]) -> Option<Observation> {
    let known: Vec<Observation> = readings.into_iter().collect::<Option<_>>()?;
    Some(Observation {
        strength: known.iter().map(|reading| reading.strength).fold(1.0, f64::min),
        figures: known.into_iter().flat_map(|reading| reading.figures).collect(),
    })
}

/// What monitoring shouted about, whatever it calls that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alarm {
    /// Little memory is left for programs.
    MemoryShort,
    /// The CPUs are busy.
    CpuHigh,
    /// More threads run or wait for disks than there are CPUs.
    LoadHigh,
    /// A filesystem is nearly full.
    FilesystemFull,
    /// The server did not answer its monitoring.
    ServerDown,
}

/// An episode as a cause looks at it.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// Its phases, if connections were recorded.
    pub course: Option<&'a Course>,
    /// What alarms fired; that one did not is no evidence.
    pub alarms: &'a [Alarm],
    /// Its statements, if they are known.
    pub workload: Option<&'a Workload>,
    /// Whether constants are moved.
    pub jitter: Jitter,
    /// Which cause asks.
    pub place: &'static str,
}

impl Evidence<'_> {
    /// Whether a value is high: not at all at `from`, fully at `to` (which may lie below `from`: low).
    #[must_use]
    pub fn level(&self, name: &'static str, value: Option<f64>, from: f64, to: f64) -> Option<Observation> {
        let value = value?;
        let moved = |end: &str, constant| self.jitter.apply(&format!("{}/{name} {end}", self.place), constant);
        let (from, to) = if from < to {
            let from = moved("from", from);
            (from, moved("to", to).max(from + f64::EPSILON))
        } else {
            let to = moved("to", to);
            (moved("from", from).max(to + f64::EPSILON), to)
        };
        Some(Observation {
            strength: ((value - from) / (to - from)).clamp(0.0, 1.0),
            figures: vec![(name, f64::NAN, value)],
        })
    }

    /// How high a figure of the statements is.
    #[must_use]
    pub fn told(&self, name: &'static str, figure: fn(&Workload) -> f64, from: f64, to: f64) -> Option<Observation> {
        self.level(name, self.workload.map(figure), from, to)
    }

    /// Whether something holds of the statements.
    #[must_use]
    pub fn holds(&self, name: &'static str, fact: fn(&Workload) -> bool) -> Option<Observation> {
        let strength = if fact(self.workload?) { 1.0 } else { 0.0 };
        Some(Observation { strength, figures: vec![(name, f64::NAN, strength)] })
    }

    /// Whether an alarm fired; nothing if it did not.
    #[must_use]
    pub fn alarm(&self, name: &'static str, alarm: Alarm) -> Option<Observation> {
        self.alarms.contains(&alarm).then(|| Observation { strength: 1.0, figures: vec![(name, f64::NAN, 1.0)] })
    }

    /// The mean of a signal while a session worked alone.
    #[must_use]
    pub fn alone(&self, signal: Signal) -> Option<f64> {
        self.course?.alone.mean(signal)
    }

    /// The mean of a signal while the crowd was there.
    #[must_use]
    pub fn crowd(&self, signal: Signal) -> Option<f64> {
        self.course?.crowd.mean(signal)
    }

    /// A session worked alone for longer than a client needs to connect and prepare (8 to 20 s).
    #[must_use]
    pub fn worked_alone(&self) -> Option<Observation> {
        self.level("alone_busy_s", self.course.and_then(|course| course.alone_busy_s), 8.0, 20.0)
    }

    /// The crowd did not follow on the work of one session: what that takes to connect and to make a small table is allowed.
    #[must_use]
    pub fn crowd_from_the_start(&self) -> Option<Observation> {
        every([
            self.level("alone_busy_s", self.course.and_then(|course| course.alone_busy_s), 20.0, 8.0),
            self.crowd_of(1.0, 3.0),
        ])
    }

    /// How many sessions work at once.
    #[must_use]
    pub fn crowd_of(&self, from: f64, to: f64) -> Option<Observation> {
        self.level("crowd_sessions", self.course.and_then(|course| course.crowd_sessions), from, to)
    }

    /// No crowd came at all.
    #[must_use]
    pub fn no_crowd(&self) -> Option<Observation> {
        Some(self.crowd_of(1.0, 3.0)?.inverse())
    }

    /// So many sessions work at once, and nearly each of them computes.
    #[must_use]
    pub fn crowd_of_computing(&self, from: f64, to: f64) -> Option<Observation> {
        every([self.crowd_of(from, to), self.crowd_computes()])
    }

    /// Sessions of the crowd want a CPU, nearly each of them: they wait for nothing else. A session that commits sleeps for
    /// the flush of its log, so a crowd of writers stays far below one.
    #[must_use]
    pub fn crowd_computes(&self) -> Option<Observation> {
        self.level("running_per_session", self.course.and_then(Course::running_per_session), 0.3, 0.7)
    }

    /// In many samples a thread of the crowd waits for a disk: a flush of the log is under way. Commits go through one flush at a
    /// time, so however many sessions commit it is seen in about half of the samples of a disk that takes its time.
    #[must_use]
    pub fn crowd_commits(&self) -> Option<Observation> {
        let share = self.course.and_then(|course| course.crowd.share_with_any(Signal::BlockedThreads));
        self.level("crowd_samples_with_blocked_ratio", share, 0.15, 0.4)
    }

    /// A session worked alone and wrote so much that it had to wait for disks: pages and log go out faster than a commit now and
    /// then would send them (a queue of writes, or threads blocked half of the time). PostgreSQL gives no workers to what changes
    /// rows, so hardly more than it and the checkpointer wait; several at once are a parallel scan.
    #[must_use]
    pub fn wrote_alone_until_disks_were_busy(&self) -> Option<Observation> {
        let blocked = self.alone(Signal::BlockedThreads);
        let waited = any([
            self.level("alone_blocked_threads", blocked, 0.25, 0.75),
            self.level("alone_disk_writes_in_flight", self.alone(Signal::DiskWritesInFlight), 2.0, 20.0),
        ]);
        every([self.worked_alone(), waited, self.level("alone_blocked_threads", blocked.or(Some(0.0)), 3.0, 1.75)])
    }

    /// What was written was read again, or worked on after it had stopped growing: a delete or an update of many rows, which
    /// looks at every page once more. A load reads nothing, and ends when growth ends.
    #[must_use]
    pub fn worked_over_again(&self) -> Option<Observation> {
        const MIB: f64 = 1024.0 * 1024.0;
        any([
            self.level("alone_disk_read_bytes_per_s", self.alone(Signal::DiskReadBytes), MIB, 4.0 * MIB),
            self.level("alone_disk_reads_in_flight", self.alone(Signal::DiskReadsInFlight), 0.2, 1.0),
            self.level("alone_after_growth_s", self.course.and_then(|course| course.alone_after_growth_s), 3.0, 10.0),
        ])
    }
}
