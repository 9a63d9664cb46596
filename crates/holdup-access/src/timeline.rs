//! What a log says about each second: how many requests came in it and how long they took, as
//! counters that only grow, so that they read like those of an app's own histogram.
//!
//! Lines come in the order of their ends, and a request belongs to the second of its start, so
//! nothing is written before the whole log was read. Memory is bounded all the same: a log with
//! more than [`SLOTS_MAX`] seconds in which requests came gets intervals of two seconds, of four,
//! and so on.

use std::collections::{BTreeMap, HashMap};

use holdup_recording::metrics::{access_log, app};
use holdup_recording::rows::Sample;
use holdup_recording::{Labels, metrics::Metric};

const SECOND_NS: i64 = 1_000_000_000;

/// Most intervals that are kept: four hours in whole seconds, a day in intervals of eight.
pub const SLOTS_MAX: usize = 14_400;

/// Most series of one family; what comes later counts as `other`.
const SERIES_MAX: usize = 300;

/// Least upper bound of the histogram, milliseconds.
const LEAST_MS: f64 = 0.1;
/// Ratio of one bound to the next: a mean over one bucket is off by less than 5 %.
const RATIO: f64 = 1.1;
/// Number of bounds: up to eleven minutes.
const BOUNDS: usize = 165;

/// Requests this far from all others, nanoseconds (a day), are taken for a wrong clock if they are
/// less than [`STRAY_RATIO`] of all.
const STRAY_NS: i64 = 86_400_000_000_000;
/// See [`STRAY_NS`].
const STRAY_RATIO: f64 = 0.01;

/// A kind of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Requests that were served, with their distribution.
    Server,
    /// Requests to a server behind.
    Client,
    /// Connecting to it.
    Connect,
    /// The proxy's own queue.
    Queue,
    /// Calls to a database.
    Database,
    /// Waits for a connection of a pool.
    Pool,
    /// Requests, with a time or without.
    Requests,
    /// Failed requests, by kind of error.
    Failed,
}

impl Family {
    /// Its metric.
    pub fn metric(self) -> Metric {
        match self {
            Self::Server => app::HTTP_SERVER_REQUEST_DURATION,
            Self::Client => app::HTTP_CLIENT_REQUEST_DURATION,
            Self::Connect => access_log::CONNECT,
            Self::Queue => access_log::QUEUE,
            Self::Database => app::DB_CLIENT_OPERATION_DURATION,
            Self::Pool => app::DB_CLIENT_CONNECTION_WAIT_TIME,
            Self::Requests => access_log::REQUESTS,
            Self::Failed => access_log::FAILED_REQUESTS,
        }
    }
}

/// Labels of one series: names and values.
pub type Pairs = Vec<(&'static str, String)>;

/// A number that stands for a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeriesId(u32);

/// How often something happened, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesCount {
    /// What.
    pub name: String,
    /// How often in all.
    pub count: u64,
    /// Start of the first interval in which it happened, nanoseconds since the epoch.
    pub first_at: i64,
    /// Start of the last one.
    pub last_at: i64,
    /// Start of the one in which it happened most.
    pub most_at: i64,
    /// How often in that one.
    pub most: u64,
}

/// The counters by interval.
#[derive(Debug)]
pub struct Timeline {
    width_ns: i64,
    slots: BTreeMap<i64, Slot>,
    ids: HashMap<(Family, Pairs), SeriesId>,
    series: Vec<(Family, Pairs)>,
    bounds: Vec<f64>,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    requests: u64,
    /// Requests by the smallest bound that they do not exceed; empty without any.
    buckets: Vec<u32>,
    /// Count and sum of seconds by series.
    sums: Vec<(SeriesId, u64, f64)>,
}

impl Slot {
    fn add(&mut self, id: SeriesId, count: u64, seconds: f64) {
        match self.sums.binary_search_by_key(&id, |(known, ..)| *known) {
            Ok(at) => {
                self.sums[at].1 += count;
                self.sums[at].2 += seconds;
            }
            Err(at) => self.sums.insert(at, (id, count, seconds)),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
        } else {
            self.buckets.iter_mut().zip(&other.buckets).for_each(|(mine, more)| *mine += more);
        }
        for &(id, count, seconds) in &other.sums {
            self.add(id, count, seconds);
        }
    }
}

impl Default for Timeline {
    fn default() -> Self {
        let bounds = std::iter::successors(Some(LEAST_MS / 1e3), |bound| Some(bound * RATIO));
        Self {
            width_ns: SECOND_NS,
            slots: BTreeMap::new(),
            ids: HashMap::new(),
            series: Vec::new(),
            bounds: bounds.take(BOUNDS).map(four_digits).collect(),
        }
    }
}

/// `seconds` with four significant digits, as a bound is written.
fn four_digits(seconds: f64) -> f64 {
    format!("{seconds:.3e}").parse().unwrap_or(seconds)
}

impl Timeline {
    /// The number of a series; that of `other` if there are too many.
    pub fn series(&mut self, family: Family, labels: &Pairs, other: impl FnOnce() -> Pairs) -> SeriesId {
        // One tuple to look up by: labels are short, and callers remember what they got.
        let key = (family, labels.clone());
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let of_family = self.series.iter().filter(|(known, _)| *known == family).count();
        let key = if of_family + 1 < SERIES_MAX { key } else { (family, other()) };
        let next = SeriesId(self.series.len() as u32);
        let id = *self.ids.entry(key.clone()).or_insert(next);
        if id == next {
            self.series.push(key);
        }
        id
    }

    /// Counts one time that began at `at`. Times of [`Family::Server`] also count in the
    /// distribution.
    pub fn add(&mut self, at: i64, id: SeriesId, ns: i64) {
        let seconds = ns as f64 / 1e9;
        let family = self.series.get(id.0 as usize).map(|(family, _)| *family);
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        let all = self.bounds.len() + 1;
        let slot = self.slots.entry(at.div_euclid(self.width_ns)).or_default();
        slot.add(id, 1, seconds);
        if family == Some(Family::Server) {
            if slot.buckets.is_empty() {
                slot.buckets.resize(all, 0);
            }
            slot.buckets[bucket] += 1;
        }
        if matches!(family, Some(Family::Requests)) {
            slot.requests += 1;
        }
        if self.slots.len() > SLOTS_MAX {
            self.widen();
        }
    }

    fn widen(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        let mut wider: BTreeMap<i64, Slot> = BTreeMap::new();
        for (number, slot) in std::mem::take(&mut self.slots) {
            wider.entry(number.div_euclid(2)).or_default().merge(&slot);
        }
        self.slots = wider;
    }

    /// Length of an interval, nanoseconds.
    pub fn width_ns(&self) -> i64 {
        self.width_ns
    }

    /// From the first interval's start to the last one's end.
    pub fn span(&self) -> Option<(i64, i64)> {
        let (first, last) = (self.slots.keys().next()?, self.slots.keys().next_back()?);
        Some((first * self.width_ns, (last + 1) * self.width_ns))
    }

    /// Forgets requests that are more than a day from all others and few, and returns their number.
    pub fn drop_strays(&mut self) -> u64 {
        let all: u64 = self.slots.values().map(|slot| slot.requests).sum();
        let apart = STRAY_NS / self.width_ns;
        let mut groups: Vec<(i64, i64, u64)> = Vec::new();
        for (&number, slot) in &self.slots {
            match groups.last_mut() {
                Some((_, last, count)) if number - *last <= apart => (*last, *count) = (number, *count + slot.requests),
                _ => groups.push((number, number, slot.requests)),
            }
        }
        let few = |count: u64| (count as f64) < STRAY_RATIO * all as f64;
        let strays: Vec<(i64, i64, u64)> = groups.into_iter().filter(|(.., count)| few(*count)).collect();
        for (first, last, _) in &strays {
            self.slots.retain(|number, _| !(first..=last).contains(&number));
        }
        strays.iter().map(|(.., count)| count).sum()
    }

    /// The mean of a family, milliseconds, and how many times it has.
    pub fn mean_ms(&self, family: Family) -> Option<(f64, u64)> {
        let sums = self.slots.values().flat_map(|slot| &slot.sums);
        let of_family = sums.filter(|(id, ..)| self.series.get(id.0 as usize).is_some_and(|s| s.0 == family));
        let (count, seconds) = of_family.fold((0, 0.0), |(n, s), (_, count, seconds)| (n + count, s + seconds));
        (count > 0).then(|| (seconds / count as f64 * 1e3, count))
    }

    /// Each series of a family: the value of its first label, its count, when the first and the last
    /// interval of it began, and when the one with the most did. The most frequent one comes first.
    pub fn counts(&self, family: Family) -> Vec<SeriesCount> {
        let mut all: BTreeMap<SeriesId, SeriesCount> = BTreeMap::new();
        for (number, slot) in &self.slots {
            for (id, count, _) in &slot.sums {
                let Some((_, labels)) = self.series.get(id.0 as usize).filter(|(of, _)| *of == family) else {
                    continue;
                };
                let at = number * self.width_ns;
                let name = || labels.first().map_or_else(String::new, |(_, value)| value.clone());
                let one = all.entry(*id).or_insert_with(|| SeriesCount {
                    name: name(),
                    first_at: at,
                    ..SeriesCount::default()
                });
                one.count += count;
                one.last_at = at;
                if *count > one.most {
                    (one.most, one.most_at) = (*count, at);
                }
            }
        }
        let mut all: Vec<SeriesCount> = all.into_values().collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.count));
        all
    }

    /// Calls `put` with every sample of `source`, by time.
    pub fn samples(&self, source: &str, put: &mut dyn FnMut(Sample)) {
        let used = self.used_bounds();
        let mut totals: Vec<Total> = vec![Total::default(); self.series.len()];
        let mut buckets = vec![0u64; self.bounds.len() + 1];
        let mut written_at = i64::MIN;
        for (number, slot) in &self.slots {
            let (from, to) = (number * self.width_ns, (number + 1) * self.width_ns);
            if !slot.buckets.is_empty() {
                if written_at != from {
                    self.put_buckets(source, from, &buckets, used.clone(), put);
                }
                buckets.iter_mut().zip(&slot.buckets).for_each(|(total, more)| *total += u64::from(*more));
                self.put_buckets(source, to, &buckets, used.clone(), put);
                written_at = to;
            }
            for &(id, count, seconds) in &slot.sums {
                let (Some(total), Some((family, labels))) =
                    (totals.get_mut(id.0 as usize), self.series.get(id.0 as usize))
                else {
                    continue;
                };
                if total.written_at != Some(from) {
                    total.put(source, from, *family, labels, put);
                }
                total.count += count;
                total.seconds += seconds;
                total.put(source, to, *family, labels, put);
            }
        }
    }

    /// Bounds between which all requests lie, with one more below so that the lowest has both ends.
    fn used_bounds(&self) -> std::ops::Range<usize> {
        let used = |index: &usize| self.slots.values().any(|s| s.buckets.get(*index).is_some_and(|n| *n > 0));
        let first = (0..self.bounds.len()).find(used).unwrap_or(0).saturating_sub(1);
        let last = (0..self.bounds.len()).rev().find(used).map_or(0, |last| last + 1);
        first..last.max(first)
    }

    fn put_buckets(
        &self,
        source: &str,
        at: i64,
        totals: &[u64],
        used: std::ops::Range<usize>,
        put: &mut dyn FnMut(Sample),
    ) {
        let metric = format!("{}_bucket", Family::Server.metric().name);
        let mut below = totals.iter().take(used.start).sum::<u64>();
        let mut one = |bound: String, total: u64| {
            put(sample(source, at, metric.clone(), Labels::new([("le", bound)]), total as f64));
        };
        for index in used {
            below += totals[index];
            one(self.bounds[index].to_string(), below);
        }
        one("+Inf".to_owned(), totals.iter().sum());
    }
}

/// A series so far.
#[derive(Clone, Debug, Default)]
struct Total {
    count: u64,
    seconds: f64,
    written_at: Option<i64>,
}

impl Total {
    fn put(&mut self, source: &str, at: i64, family: Family, labels: &Pairs, put: &mut dyn FnMut(Sample)) {
        let name = family.metric().name;
        let labels = Labels::new(labels.iter().map(|(name, value)| (*name, value.as_str())));
        if matches!(family, Family::Requests | Family::Failed) {
            put(sample(source, at, name.to_owned(), labels, self.count as f64));
        } else {
            put(sample(source, at, format!("{name}_sum"), labels.clone(), self.seconds));
            put(sample(source, at, format!("{name}_count"), labels, self.count as f64));
        }
        self.written_at = Some(at);
    }
}

fn sample(source: &str, at: i64, metric: String, labels: Labels, value: f64) -> Sample {
    Sample { observed_at: at, window_ns: 0, source: source.to_owned(), metric, labels, value }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
