//! What a witness saw, second by second, and how much of that disturbs an attempt. It measures nothing itself.

use std::fmt;

/// What one second of one CPU was like.
#[derive(Clone, Copy, Debug, Default)]
pub struct Second {
    /// 99th percentile of how late the witness woke, milliseconds: of all ticks, those that a late one slept through as well.
    pub late_p99_ms: f64,
    /// Share (0-1) of the second that it could run and waited for the CPU, where the kernel counts that.
    pub waited_ratio: f64,
    /// Share (0-1) of all CPUs' time that the hypervisor took, where it says so.
    pub stolen_ratio: f64,
}

impl Second {
    /// Of two CPUs the worse.
    pub(crate) fn worsen(&mut self, other: &Self) {
        self.late_p99_ms = self.late_p99_ms.max(other.late_p99_ms);
        self.waited_ratio = self.waited_ratio.max(other.waited_ratio);
        self.stolen_ratio = self.stolen_ratio.max(other.stolen_ratio);
    }
}

/// What counts as a stall, and how much of an attempt may be stalled.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// See [`Second`]; more is a stall.
    pub late_p99_ms: f64,
    /// See [`Second`]; more is a stall.
    pub waited_ratio: f64,
    /// See [`Second`]; more is a stall.
    pub stolen_ratio: f64,
    /// Share (0-1) of the seconds; more of them disturb an attempt.
    pub seconds_ratio: f64,
}

/// For what only a stall can make fail: timeouts of some hundred milliseconds, order in time, most of many. Other tests that
/// work beside an attempt are no stall.
pub const STALLS: Limits = Limits { late_p99_ms: 50.0, waited_ratio: 0.3, stolen_ratio: 0.2, seconds_ratio: 0.0 };

/// For a verdict on a run: holdup calls a second limited from 5 ms of lag, or 15 % of waiting, on, and a run may have a few.
pub const VERDICTS: Limits = Limits { late_p99_ms: 5.0, waited_ratio: 0.15, stolen_ratio: 0.05, seconds_ratio: 0.03 };

/// For what is judged by every second of its own, with some distance from what makes holdup call one limited.
pub const SECOND_BY_SECOND: Limits =
    Limits { late_p99_ms: 3.0, waited_ratio: 0.07, stolen_ratio: 0.02, seconds_ratio: 0.0 };

/// For what is due to the millisecond: whose own thread wakes later than that can't be asked for it.
pub const TO_THE_MILLISECOND: Limits =
    Limits { late_p99_ms: 1.0, waited_ratio: 0.1, stolen_ratio: 0.02, seconds_ratio: 0.0 };

/// For what is found out over many seconds, of which a few may be lost.
pub const ON_THE_WHOLE: Limits =
    Limits { late_p99_ms: 10.0, waited_ratio: 0.15, stolen_ratio: 0.05, seconds_ratio: 0.1 };

/// Seconds of all CPUs, the worst CPU's of each.
pub struct Account(pub(crate) Vec<Second>);

impl Account {
    /// Whether the attempt that it is of is no evidence.
    #[must_use]
    pub fn is_disturbed(&self, limits: &Limits) -> bool {
        self.stalled(limits) as f64 > limits.seconds_ratio * self.0.len() as f64
    }

    /// Seconds with a stall.
    #[must_use]
    pub fn stalled(&self, limits: &Limits) -> usize {
        let is_stalled = |second: &&Second| {
            second.late_p99_ms > limits.late_p99_ms
                || second.waited_ratio > limits.waited_ratio
                || second.stolen_ratio > limits.stolen_ratio
        };
        self.0.iter().filter(is_stalled).count()
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = |of: fn(&Second) -> f64| {
            let mut values: Vec<f64> = self.0.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            (values.get(values.len() / 2).copied().unwrap_or(0.0), values.last().copied().unwrap_or(0.0))
        };
        let (late, waited, stolen) = (all(|s| s.late_p99_ms), all(|s| s.waited_ratio), all(|s| s.stolen_ratio));
        write!(
            f,
            "a thread that slept woke late by {:.1} ms (p99 of a middling second; {:.1} of the worst), ",
            late.0, late.1
        )?;
        write!(f, "waited for a CPU for {:.0} % ({:.0} %), and the hypervisor ", waited.0 * 1e2, waited.1 * 1e2)?;
        write!(f, "took {:.0} % ({:.0} %), in {} s", stolen.0 * 1e2, stolen.1 * 1e2, self.0.len())
    }
}
