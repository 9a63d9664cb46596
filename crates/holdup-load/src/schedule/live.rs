//! A schedule that is made while it is played: a search decides from its results what to offer
//! next. Each stretch has a constant rate and is known before it begins. So even here the service
//! cannot move a request that has been scheduled.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use super::exponential::Exponentials;
use super::{Arrival, Share};

/// Distance between the request numbers of one stretch and the next.
const NUMBERS: u64 = 1 << 40;

/// A stretch of a constant rate.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveStretch {
    /// Name of the phase.
    pub name: String,
    /// Its start, from the start of the schedule.
    pub from: Duration,
    /// How long.
    pub length: Duration,
    /// Requests per second.
    pub rate: f64,
}

/// See the module. A clone shares its state.
#[derive(Clone, Debug)]
pub struct Live(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    stretches: RwLock<Vec<LiveStretch>>,
    /// Number of stretches: read without a lock to see whether there is a new one.
    known: AtomicUsize,
    is_over: AtomicBool,
    longest: Duration,
    most: f64,
    seed: Option<u64>,
}

impl Live {
    /// A schedule of at most `longest` and at most `most` requests per second; with a seed, of
    /// Poisson arrivals.
    pub fn new(longest: Duration, most: f64, seed: Option<u64>) -> Self {
        let (known, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self(Arc::new(Inner { stretches: RwLock::default(), known, is_over, longest, most, seed }))
    }

    /// Adds a stretch, which must not begin before the last one ends.
    pub fn push(&self, stretch: LiveStretch) {
        let mut stretches = self.0.stretches.write().unwrap_or_else(PoisonError::into_inner);
        stretches.push(stretch);
        self.0.known.store(stretches.len(), Ordering::Release);
    }

    /// Declares that no more will be added.
    pub fn end(&self) {
        self.0.is_over.store(true, Ordering::Release);
    }

    /// Whether no more will be added.
    pub fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::Acquire)
    }

    /// All stretches so far.
    pub fn stretches(&self) -> Vec<LiveStretch> {
        self.0.stretches.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The stretch of this index, if it exists already.
    pub fn stretch(&self, index: usize) -> Option<LiveStretch> {
        if index >= self.0.known.load(Ordering::Acquire) {
            return None;
        }
        self.0.stretches.read().unwrap_or_else(PoisonError::into_inner).get(index).cloned()
    }

    /// Index and rate of the stretch at `t`; the last one that began, with rate 0 after its end.
    pub fn at(&self, t: Duration) -> (usize, f64) {
        let stretches = self.0.stretches.read().unwrap_or_else(PoisonError::into_inner);
        let index = stretches.partition_point(|s| s.from <= t).saturating_sub(1);
        let rate = stretches.get(index).filter(|s| s.from <= t && t < s.from + s.length).map_or(0.0, |s| s.rate);
        (index, rate)
    }

    pub(super) fn longest(&self) -> Duration {
        self.0.longest
    }

    pub(super) fn most(&self) -> f64 {
        self.0.most
    }

    pub(super) fn seed(&self) -> Option<u64> {
        self.0.seed
    }

    pub(super) fn with_seed(&self, seed: u64) -> Self {
        Self::new(self.0.longest, self.0.most, Some(seed))
    }
}

/// Walks along it. At the end of the known stretches it yields nothing until there are more.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    live: Live,
    index: usize,
    now: Option<LiveStretch>,
    /// Number of the next arrival within the stretch.
    number: u64,
    gaps: Option<Exponentials>,
    /// Sum of the gaps so far, in gaps of mean 1.
    sum: f64,
}

impl Walk {
    pub fn new(live: Live) -> Self {
        Self { live, index: 0, now: None, number: 0, gaps: None, sum: 0.0 }
    }

    pub fn next(&mut self, share: Share) -> Option<Arrival> {
        loop {
            if self.now.is_none() {
                self.now = Some(self.live.stretch(self.index)?);
                self.number = 0;
                self.sum = 0.0;
                self.gaps = self.live.seed().map(|seed| Exponentials::new(seed.wrapping_add(self.index as u64)));
                self.step();
            }
            let Some(stretch) = &self.now else { return None };
            let seconds = if self.gaps.is_some() { self.sum } else { self.number as f64 } / stretch.rate;
            if seconds >= stretch.length.as_secs_f64() {
                self.now = None;
                self.index += 1;
                continue;
            }
            let due_ns = stretch.from.as_nanos() as i64 + (seconds * 1e9) as i64;
            let number = self.number;
            self.number += 1;
            self.step();
            if number % u64::from(share.of.max(1)) == u64::from(share.index) {
                let number = self.index as u64 * NUMBERS + number;
                return Some(Arrival { number, due_ns, phase: self.index as u32, request: None });
            }
        }
    }

    fn step(&mut self) {
        if let Some(gaps) = &mut self.gaps {
            self.sum += gaps.next() as f64 / super::curve::REQUEST as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(from_s: u64, length_s: u64, rate: f64) -> LiveStretch {
        LiveStretch { name: "s".into(), from: Duration::from_secs(from_s), length: Duration::from_secs(length_s), rate }
    }

    #[test]
    fn arrivals_go_on_when_more_is_known() {
        let live = Live::new(Duration::from_secs(60), 100.0, None);
        let mut walk = Walk::new(live.clone());
        assert_eq!(walk.next(Share::WHOLE), None);
        live.push(stretch(1, 1, 4.0));
        let due: Vec<i64> = std::iter::from_fn(|| walk.next(Share::WHOLE)).map(|a| a.due_ns / 1_000_000).collect();
        assert_eq!(due, [1_000, 1_250, 1_500, 1_750]);
        live.push(stretch(5, 1, 2.0));
        let next = walk.next(Share::WHOLE).unwrap();
        assert_eq!((next.due_ns, next.phase, next.number), (5_000_000_000, 1, NUMBERS));
        assert_eq!((live.at(Duration::from_secs(1)), live.at(Duration::from_secs(3))), ((0, 4.0), (0, 0.0)));
    }

    #[test]
    fn shares_are_all_of_it_and_poisson_keeps_the_rate() {
        let live = Live::new(Duration::from_secs(60), 1_000.0, Some(3));
        live.push(stretch(0, 10, 1_000.0));
        let all = |share| {
            let mut walk = Walk::new(live.clone());
            std::iter::from_fn(move || walk.next(share)).map(|a| a.due_ns).collect::<Vec<_>>()
        };
        let whole = all(Share::WHOLE);
        let mut parts: Vec<i64> = (0..3).flat_map(|index| all(Share { index, of: 3 })).collect();
        parts.sort_unstable();
        assert_eq!(whole, parts);
        assert!((9_700..10_300).contains(&whole.len()), "{}", whole.len());
    }
}
