//! Sums requests over seconds: a second is added when a window reaches it and removed when the
//! window leaves it.

use std::collections::BTreeMap;

use super::{Metric, OperationOutcomes};

/// Requests that ended in one second, of all operations that an objective covers.
#[derive(Default)]
pub struct Second {
    /// Index of the second, from the start of the load.
    pub index: u64,
    /// Requests that succeeded.
    pub completed: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Response times in nanoseconds with their counts. A value may occur more than once.
    pub times: Vec<(u64, u64)>,
}

impl Second {
    /// Adds the requests of one operation; their times only `with_times`.
    pub fn add(&mut self, ended: &OperationOutcomes<'_>, with_times: bool) {
        self.completed += ended.completed;
        self.failed += ended.failed;
        if with_times {
            self.times.extend_from_slice(ended.times);
        }
    }
}

/// See the module. The number of distinct values bounds its size, and values have three digits.
#[derive(Default)]
pub struct Sum {
    completed: u64,
    failed: u64,
    times: BTreeMap<u64, u64>,
    count: u64,
    total_ns: u128,
}

impl Sum {
    /// Adds a second.
    pub fn add(&mut self, second: &Second) {
        self.completed += second.completed;
        self.failed += second.failed;
        for &(value, count) in second.times.iter().filter(|(_, count)| *count > 0) {
            *self.times.entry(value).or_default() += count;
            self.count += count;
            self.total_ns += u128::from(value) * u128::from(count);
        }
    }

    /// Removes a second that was added.
    pub fn remove(&mut self, second: &Second) {
        self.completed -= second.completed;
        self.failed -= second.failed;
        for &(value, count) in second.times.iter().filter(|(_, count)| *count > 0) {
            if let Some(left) = self.times.get_mut(&value) {
                *left -= count;
                if *left == 0 {
                    self.times.remove(&value);
                }
            }
            self.count -= count;
            self.total_ns -= u128::from(value) * u128::from(count);
        }
    }

    /// The value of `metric` over `seconds`: milliseconds, a ratio, or successes per second. None
    /// without requests, except that a rate is 0 then.
    pub fn value(&self, metric: Metric, seconds: f64) -> Option<f64> {
        let ms = |ns: u64| ns as f64 / 1e6;
        match metric {
            Metric::Quantile(q) => self.quantile(q).map(ms),
            Metric::Max => self.times.last_key_value().map(|(ns, _)| ms(*ns)),
            Metric::Mean => (self.count > 0).then(|| self.total_ns as f64 / self.count as f64 / 1e6),
            Metric::Errors => {
                let ended = self.completed + self.failed;
                (ended > 0).then(|| self.failed as f64 / ended as f64)
            }
            Metric::Rate => (seconds > 0.0).then(|| self.completed as f64 / seconds),
        }
    }

    /// By nearest rank.
    fn quantile(&self, q: f64) -> Option<u64> {
        // Slightly less, so that 0.07 of 100 is the 7th although 0.07 has no exact binary form.
        let rank = (q * self.count as f64 - 1e-6).ceil().max(1.0) as u64;
        let mut below = 0;
        for (value, count) in &self.times {
            below += count;
            if below >= rank {
                return Some(*value);
            }
        }
        None
    }
}
