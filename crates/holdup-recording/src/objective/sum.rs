//! What ended in some seconds together: seconds are added, and taken away again when a window slides past them.

use std::collections::BTreeMap;

use super::{Ended, Metric};

/// What ended in one second, of all operations that an objective is for.
#[derive(Default)]
pub struct Second {
    /// Which, from the start of the load.
    pub index: u64,
    /// Requests that ended well.
    pub completed: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Response times in nanoseconds, each with how often it occurred. A value may stand more than once.
    pub times: Vec<(u64, u64)>,
}

impl Second {
    /// Adds what ended of one operation; its times only `with_times`.
    pub fn add(&mut self, ended: &Ended<'_>, with_times: bool) {
        self.completed += ended.completed;
        self.failed += ended.failed;
        if with_times {
            self.times.extend_from_slice(ended.times);
        }
    }
}

/// See the module. Its size is bounded by the number of different values, which are of three digits.
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

    /// Takes away a second that was added.
    pub fn take(&mut self, second: &Second) {
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

    /// The value of `metric` over `seconds`: milliseconds, a ratio, or successes per second. None if there is nothing it
    /// could be about; of no request the rate is 0.
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

    /// Nearest rank.
    fn quantile(&self, q: f64) -> Option<u64> {
        // A hair less, so that 0.07 of 100 is the 7th although 0.07 has no exact binary form.
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
