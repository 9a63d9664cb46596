//! By how much a rate rose: of requests or statements, with what chance may add.

use holdup_recording::metrics;
use holdup_signals::client::latency::TRANSACTIONS;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, Missing, View, app::timing};

use crate::case::{Band, Change};
use crate::strength::{FAIR, Strength, WEAK};

/// Noise and daily drift change a rate by less than this factor.
pub(super) const SPIKE_FACTOR: f64 = 1.5;

/// Share (0-1) of the calls whose statements may have risen less: holdup's own, and jobs.
const FEWER: f64 = 0.25;

/// More requests or statements per second than in the baseline window.
pub(super) struct Rise {
    /// By how much, with its band.
    pub change: Change,
    pub evidence: Evidence,
    pub weight: Strength,
}

impl Rise {
    pub fn new(now: Band, before: Band, evidence: Evidence, weight: Strength) -> Self {
        Self { change: now.since(before), evidence, weight }
    }

    /// Whether it is more than noise and drift, by all of its band.
    pub fn is_clear(&self) -> bool {
        self.change.least() >= SPIKE_FACTOR
    }

    /// Whether its band excludes a rise.
    pub fn is_excluded(&self) -> bool {
        self.change.stayed(SPIKE_FACTOR)
    }

    /// By how much it rose.
    pub fn factor(&self) -> f64 {
        self.change.factor
    }

    /// Requests that the app served, of all clients.
    fn by_app(slow: &View<'_>, baseline: &View<'_>) -> Result<Self, Missing> {
        let metric = format!("{}_count", timing::HTTP_SERVER);
        Self::by_counter(slow, baseline, &metric, "requests/s", FAIR)
    }

    fn by_counter(
        slow: &View<'_>,
        baseline: &View<'_>,
        metric: &str,
        unit: &str,
        weight: Strength,
    ) -> Result<Self, Missing> {
        let of = |view: &View<'_>| view.counter(metric, &[], timing::APP_METRICS);
        let (now, before) = (of(slow)?, of(baseline)?);
        let text = format!("{:.0} {unit}, against {:.0} in the baseline window", now.rate(), before.rate());
        let evidence = now.evidence(format!("{:.0}/s", now.rate()), format!("{:.0}/s", before.rate()), text);
        let band = |of: &Counter| Band::of_count(of.rate(), of.delta).read(of.reads);
        Ok(Self::new(band(&now), band(&before), evidence, weight))
    }

    /// Statements: by how much three quarters of those that ran before run more often. A request that
    /// reads row by row, or another mix, raises the rate of some statements only.
    fn by_statements(slow: &View<'_>, baseline: &View<'_>) -> Result<Self, Missing> {
        let mix = slow.mix(&[slow.window], baseline, &[baseline.window])?;
        let mut ratios: Vec<(f64, f64)> = mix
            .statements
            .iter()
            .filter(|of| of.calls.1 > 0.0)
            .map(|of| {
                let (now, before) = mix.rates(of);
                (now / before.max(1e-9), of.calls.1)
            })
            .collect();
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        let least = ratios.iter().map(|(_, calls)| calls).sum::<f64>() * FEWER;
        let mut below = 0.0;
        let middle = ratios.iter().find(|(_, calls)| {
            below += calls;
            below >= least
        });
        let factor = middle.map_or(0.0, |(factor, _)| *factor);
        let before = mix.rate().1;
        let text = format!(
            "three quarters of the calls that were made before are made {factor:.1} times as often or more: {before:.0}/s, now {:.0}/s in all",
            mix.rate().0
        );
        let evidence = mix.evidence(slow.window, None, format!("{factor:.1} times"), "once".to_owned(), text);
        let (now, before) = (Band::of_count(factor * before, mix.calls.0), Band::of_count(before, mix.calls.1));
        Ok(Self::new(now, before, evidence, FAIR))
    }
}

/// Who sends what is best known by the app; the database counts statements of everybody.
pub(super) fn arrivals(slow: &View<'_>, baseline: &View<'_>) -> Result<Rise, Missing> {
    Rise::by_app(slow, baseline).or_else(|_| Rise::by_statements(slow, baseline)).or_else(|_| {
        // A count of all statements does not tell whether they are the same.
        let all = |metric: &str| Rise::by_counter(slow, baseline, metric, "statements/s", WEAK);
        all(metrics::mysql::GLOBAL_STATUS_QUESTIONS.name).or_else(|_| all(TRANSACTIONS))
    })
}
