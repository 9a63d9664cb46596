//! Look-ups of caches that missed, and keys that were evicted, for each request.

use holdup_recording::metrics::{self, Metric};
use holdup_signals::{Missing, View};

use crate::causes::parts::one_thread::ENABLE;

/// One cache's, in a window.
pub(super) struct Misses<'v> {
    pub(super) source: &'v str,
    /// Look-ups of a request that found no key.
    pub(super) missed: f64,
    /// Those that found one.
    found: f64,
    /// Keys evicted for a request.
    pub(super) evicted: f64,
}

impl Misses<'_> {
    /// Share (0-1) of the look-ups that missed.
    pub(super) fn ratio(&self) -> f64 {
        self.missed / (self.missed + self.found).max(f64::MIN_POSITIVE)
    }
}

/// Those of each cache that is watched.
///
/// # Errors
/// If none is.
pub(super) fn lookups<'v>(view: &View<'v>, requests: f64) -> Result<Vec<Misses<'v>>, Missing> {
    let of = |source: &'v str| -> Result<Misses<'v>, Missing> {
        let each = |metric: Metric| -> Result<f64, Missing> {
            let all = view.counter_where(|of| of == source, metric.name, &[], ENABLE);
            Ok(all?.delta / requests.max(1.0))
        };
        Ok(Misses {
            source,
            missed: each(metrics::redis::INFO_KEYSPACE_MISSES)?,
            found: each(metrics::redis::INFO_KEYSPACE_HITS)?,
            evicted: each(metrics::redis::INFO_EVICTED_KEYS)?,
        })
    };
    let sources = view.sources_of(metrics::redis::INFO_KEYSPACE_MISSES.name);
    if sources.is_empty() {
        return Err(Missing::new("look-ups of a cache", ENABLE));
    }
    sources.into_iter().map(of).collect()
}
