//! The warm-up of the service at the start of a load: caches fill, code is compiled, pools grow,
//! and the first requests take longer for reasons that are soon gone. holdup looks for it only if
//! the demand is constant from the start, because under a changing rate response time changes for
//! other reasons.
//!
//! The rule is kin to Conway's ("truncate up to the first observation that is neither the greatest
//! nor the least of those that follow", R. W. Conway, "Some Tactical Problems in Digital
//! Simulation", 1963), made robust: medians of short bins instead of single observations, the
//! ninetieth percentile of the rest instead of its maximum, and two bins in a row. A minimum of the
//! standard error (MSER, K. P. White 1997) also cuts at an early stall; this rule does not, because
//! a stall is not where the series begins. In doubt it leaves nothing out.

use holdup_recording::Manifest;
use holdup_recording::manifest::Model;
use holdup_recording::rows::Request;

use crate::Window;
use crate::time::distribution::Distribution;
use crate::time::requests::{failed, is_latency, response_ms};
use holdup_recording::words::ms;

/// A warm-up's median is at least this many times that of the rest. Seconds of a healthy service on
/// a shared machine differ by less.
const SLOWER: f64 = 1.3;

/// … and at least this much slower, milliseconds: less is within the generator's own wake quantum.
const SLOWER_AT_LEAST_MS: f64 = 0.25;

/// A bin has settled if its median is at most this quantile (0-1) of the later bins' medians.
const SETTLED_QUANTILE: f64 = 0.9;

/// … or at most this many times their median: the last tenth of a decay is not worth the requests
/// it would cost.
const SETTLED_WITHIN: f64 = 1.1;

/// Share (0-1) of a warm-up's bins that must lie above the rest.
const CLEAR: f64 = 0.75;

/// A warm-up takes at most this part (0-1) of the stretch of constant demand: enough must be left
/// to define the steady state.
const LONGEST: f64 = 1.0 / 3.0;

/// Least number of bins of a warm-up. By chance one bin in ten lies above the ninetieth percentile,
/// three in a row one in a thousand.
const LEAST_BINS: usize = 3;

/// Fewer bins than this do not show how much they differ by chance.
const FEWEST_BINS: usize = 15;

/// Least mean number of requests in a bin, for a meaningful median.
const A_BIN: f64 = 5.0;

/// Narrowest and widest bin, nanoseconds.
const BIN_NS: (f64, f64) = (1e8, 1e9);

/// Bins that a stretch is cut into, within the limits of their width.
const BINS: f64 = 60.0;

/// From this share (0-1) of failed requests, a slow start is a fault and not a warm-up.
const FAILED: f64 = 0.05;

/// The part of a load's start that is left out of response times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WarmUp {
    /// From the load's start to its end; none if nothing is left out.
    pub window: Option<Window>,
    /// Whether it was found in the response times; if not, it was asked for.
    pub detected: bool,
    /// In words; none if there is nothing to say.
    pub text: Option<String>,
}

impl WarmUp {
    /// Seconds left out.
    pub fn seconds(&self) -> f64 {
        self.window.map_or(0.0, |w| w.seconds())
    }

    /// Start of the measurement, nanoseconds since the Unix epoch.
    pub fn measured_from(&self) -> i64 {
        self.window.map_or(i64::MIN, |w| w.to)
    }

    /// What the scenario asks for; if it asks for nothing and `look` is true, what `requests` show.
    pub fn find(manifest: &Manifest, requests: &[&Request], look: bool) -> Self {
        let (Some(load), Some(from)) = (&manifest.load, manifest.phases.first().map(|p| p.from)) else {
            return Self::default();
        };
        if let Some(asked) = load.warm_up_ns {
            if asked <= 0 {
                return Self::default();
            }
            let window = Window { from, to: from.saturating_add(asked) };
            let text = format!("the first {:.1} s are left out of response times, as asked", window.seconds());
            return Self { window: Some(window), detected: false, text: Some(text) };
        }
        match steady_stretch(manifest, load.model) {
            Some(stretch) if look => Self::look(stretch, requests),
            _ => Self::default(),
        }
    }

    /// Looks for one at the start of `stretch`.
    fn look(stretch: Window, requests: &[&Request]) -> Self {
        let Some(bins) = Bins::new(stretch, requests) else { return Self::default() };
        let medians = &bins.medians;
        let longest = (LONGEST * medians.len() as f64).floor() as usize;
        // The steady state is first taken from the bins that can't be warm-up, then from all later
        // ones.
        let guess = leading(medians, settled(&medians[longest..]));
        if guess < LEAST_BINS {
            return Self::default();
        }
        let limit = settled(&medians[guess.min(longest)..]);
        let (cold, rest) = medians.split_at(leading(medians, limit));
        let above = cold.iter().filter(|m| **m > limit).count();
        let (was, is) = (middle(cold), middle(rest));
        if above < LEAST_BINS
            || cold[0] <= limit
            || (above as f64) < CLEAR * cold.len() as f64
            || was < SLOWER * is
            || was < is + SLOWER_AT_LEAST_MS
        {
            return Self::default();
        }
        let (first, second) = cold.split_at(cold.len() / 2);
        if middle(first) < middle(second) {
            return Self::default();
        }
        if cold.len() > longest {
            let text = "response time falls for more than a third of the load's first stretch: nothing is left out; run longer to see it steady";
            return Self { text: Some(text.to_owned()), ..Self::default() };
        }
        let window = Window { to: stretch.from + (cold.len() as f64 * bins.width_ns) as i64, ..stretch };
        let (mut all, mut bad) = (0, 0);
        for request in requests.iter().filter(|r| window.contains(r.intended_at)) {
            all += request.count();
            bad += if failed(request) { request.count() } else { 0 };
        }
        if bad as f64 > FAILED * all as f64 {
            return Self::default();
        }
        let text = format!(
            "the first {:.1} s are left out of response times as warm-up: a median of {}, against {} after",
            window.seconds(),
            ms(was),
            ms(is)
        );
        Self { window: Some(window), detected: true, text: Some(text) }
    }
}

/// The upper bound of what `rest` varies by.
fn settled(rest: &[f64]) -> f64 {
    let rest = Distribution::from_counts(rest.iter().map(|m| (*m, 1)));
    let greatest = |q: f64| rest.quantile(q).unwrap_or(f64::INFINITY);
    greatest(SETTLED_QUANTILE).max(SETTLED_WITHIN * greatest(0.5))
}

/// Number of leading `medians` before two in a row that are at most `limit`.
fn leading(medians: &[f64], limit: f64) -> usize {
    let pairs = medians.windows(2).position(|pair| pair[0] <= limit && pair[1] <= limit);
    pairs.unwrap_or(medians.len())
}

fn middle(medians: &[f64]) -> f64 {
    Distribution::from_counts(medians.iter().map(|m| (*m, 1))).quantile(0.5).unwrap_or(0.0)
}

/// The stretch of constant demand at the start of the load: all of a closed model.
fn steady_stretch(manifest: &Manifest, model: Model) -> Option<Window> {
    let first = manifest.phases.first()?;
    if model == Model::Closed {
        return Some(Window { from: first.from, to: manifest.phases.last()?.to });
    }
    let constant = |p: &&holdup_recording::Phase| p.rate_from == first.rate_from && p.rate_to == first.rate_from;
    let last = manifest.phases.iter().take_while(constant).last()?;
    Some(Window { from: first.from, to: last.to })
}

/// Medians of response time over bins of one width; an empty bin has that of the one before.
struct Bins {
    width_ns: f64,
    medians: Vec<f64>,
}

impl Bins {
    fn new(stretch: Window, requests: &[&Request]) -> Option<Self> {
        let mine: Vec<&Request> =
            requests.iter().copied().filter(|r| stretch.contains(r.intended_at) && is_latency(r)).collect();
        // A stopped run has a shorter one.
        let end = mine.iter().map(|r| r.intended_at).max()?.min(stretch.to);
        let length = (end - stretch.from) as f64;
        let width_ns = (length / BINS).clamp(BIN_NS.0, BIN_NS.1).max(length * A_BIN / mine.len() as f64);
        let count = (length / width_ns).floor() as usize;
        if count < FEWEST_BINS {
            return None;
        }
        let mut bins: Vec<Vec<(f64, u64)>> = vec![Vec::new(); count];
        for request in mine {
            let at = ((request.intended_at - stretch.from) as f64 / width_ns) as usize;
            if let Some(bin) = bins.get_mut(at) {
                bin.push((response_ms(request), request.count()));
            }
        }
        let found: Vec<Option<f64>> =
            bins.into_iter().map(|bin| Distribution::from_counts(bin).quantile(0.5)).collect();
        let mut last = found.iter().flatten().next().copied()?;
        let medians = found.into_iter().map(|median| {
            last = median.unwrap_or(last);
            last
        });
        Some(Self { width_ns, medians: medians.collect() })
    }
}

#[cfg(test)]
mod tests {
    use holdup_recording::Phase;
    use holdup_recording::manifest::{Host, LoadFacts};

    use super::*;

    /// Parts of a second by which response times differ by chance: the same ones every time.
    struct Noise(u64);

    impl Noise {
        /// About 0.7 to 1.4, now and then 3.
        fn factor(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let uniform = (self.0 >> 11) as f64 / (1_u64 << 53) as f64;
            if uniform > 0.99 { 3.0 } else { 0.7 + 0.7 * uniform }
        }
    }

    fn manifest(phases: &[(f64, f64, f64)]) -> Manifest {
        let mut manifest = Manifest::starting("t", 0, Host::default());
        manifest.load = Some(LoadFacts::default());
        let mut from = 0;
        for &(seconds, rate_from, rate_to) in phases {
            let to = from + (seconds * 1e9) as i64;
            manifest.phases.push(Phase { name: String::new(), from, to, rate_from, rate_to });
            from = to;
        }
        manifest
    }

    /// `rate` requests a second for `seconds`, each as slow as `ms` says for its time.
    fn rows(seed: u64, rate: f64, seconds: f64, ms: impl Fn(f64) -> f64) -> Vec<Request> {
        let mut noise = Noise(seed);
        let row = |k: u64| {
            let at = k as f64 / rate;
            let intended_at = (at * 1e9) as i64;
            let took = ms(at) * noise.factor();
            Request {
                intended_at,
                done_at: intended_at + (took * 1e6) as i64,
                outcome: "ok".into(),
                ..Request::default()
            }
        };
        (0..(rate * seconds) as u64).map(row).collect()
    }

    fn found(manifest: &Manifest, rows: &[Request]) -> WarmUp {
        WarmUp::find(manifest, &rows.iter().collect::<Vec<_>>(), true)
    }

    #[test]
    fn compiling_code_is_a_warm_up() {
        let manifest = manifest(&[(20.0, 200.0, 200.0)]);
        for seed in 0..20 {
            let rows = rows(seed, 200.0, 20.0, |t| 10.0 + 60.0 * (-t / 1.0).exp());
            let warm_up = found(&manifest, &rows);
            assert!(warm_up.detected, "seed {seed}");
            // After 2 s it is still 1.8 times as slow, after 5 s it is 4 % slower.
            assert!((1.5..=5.0).contains(&warm_up.seconds()), "seed {seed}: {warm_up:?}");
        }
    }

    #[test]
    fn a_sampled_row_counts_as_often_as_it_stands_for() {
        let manifest = manifest(&[(20.0, 200.0, 200.0)]);
        let mut rows = rows(1, 200.0, 20.0, |t| if t < 2.0 { 40.0 } else { 10.0 });
        assert_eq!(found(&manifest, &rows).seconds().round(), 2.0);
        // Each tenth was fast and stands for thirty others.
        for row in rows.iter_mut().step_by(10) {
            row.done_at = row.intended_at + 10_000_000;
            row.weight = 30;
        }
        assert_eq!(found(&manifest, &rows), WarmUp::default());
    }

    #[test]
    fn a_steady_service_has_none_however_noisy() {
        let manifest = manifest(&[(20.0, 100.0, 100.0)]);
        for seed in 0..200 {
            let steady = rows(seed, 100.0, 20.0, |_| 10.0);
            assert_eq!(found(&manifest, &steady), WarmUp::default(), "seed {seed}");
            // Every so often 400 ms in which all is twice as slow: a garbage collector, a neighbour.
            let waves = rows(seed, 100.0, 20.0, |t| if (t + seed as f64 * 0.13) % 2.0 < 0.4 { 20.0 } else { 10.0 });
            assert_eq!(found(&manifest, &waves), WarmUp::default(), "seed {seed}");
        }
    }

    #[test]
    fn a_stall_is_none_wherever_it_is() {
        let manifest = manifest(&[(20.0, 500.0, 500.0)]);
        for stall in [0.5, 1.0, 2.0, 4.0, 8.0, 12.0, 17.0] {
            let left = |t: f64| if (stall..stall + 2.0).contains(&t) { (stall + 2.0 - t) * 1e3 } else { 0.0 };
            let rows = rows(7, 500.0, 20.0, |t| 1.0 + left(t));
            assert_eq!(found(&manifest, &rows), WarmUp::default(), "a stall at {stall} s");
        }
    }

    #[test]
    fn a_rate_that_changes_is_no_warm_up() {
        let steps = manifest(&[(10.0, 300.0, 300.0), (10.0, 200.0, 200.0), (10.0, 100.0, 100.0)]);
        let rows_of_steps = rows(3, 200.0, 30.0, |t| if t < 10.0 { 80.0 } else { 20.0 });
        assert_eq!(found(&steps, &rows_of_steps), WarmUp::default());
        let ramp = manifest(&[(20.0, 300.0, 10.0)]);
        let rows_of_ramp = rows(3, 200.0, 20.0, |t| 10.0 + 60.0 * (-t / 1.0).exp());
        assert_eq!(found(&ramp, &rows_of_ramp), WarmUp::default());
    }

    #[test]
    fn failing_long_or_tiny_starts_are_not_warm_ups() {
        let manifest = manifest(&[(20.0, 200.0, 200.0)]);
        let mut failing = rows(1, 200.0, 20.0, |t| if t < 3.0 { 50.0 } else { 10.0 });
        assert!(found(&manifest, &failing).detected);
        for row in failing.iter_mut().take(600).step_by(10) {
            row.outcome = "http_status".into();
        }
        assert_eq!(found(&manifest, &failing), WarmUp::default(), "a fault, not a warm-up");
        let long = rows(1, 200.0, 20.0, |t| 10.0 + 60.0 * (-t / 6.0).exp());
        let unsettled = found(&manifest, &long);
        assert!(unsettled.window.is_none() && unsettled.text.is_some(), "{unsettled:?}");
        let small = rows(1, 200.0, 20.0, |t| if t < 3.0 { 0.2 } else { 0.1 });
        assert_eq!(found(&manifest, &small), WarmUp::default(), "less than the generator can tell");
    }

    #[test]
    fn the_requested_warm_up_counts() {
        let mut manifest = manifest(&[(20.0, 10.0, 200.0)]);
        let rows = rows(1, 200.0, 20.0, |t| if t < 3.0 { 50.0 } else { 10.0 });
        for (asked, seconds) in [(Some(4_000_000_000), 4.0), (Some(0), 0.0)] {
            manifest.load.as_mut().unwrap().warm_up_ns = asked;
            let warm_up = found(&manifest, &rows);
            assert_eq!((warm_up.seconds(), warm_up.detected), (seconds, false));
        }
    }
}
