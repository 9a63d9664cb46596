//! Memory that the kernel had to free first, or to read back: what tasks that stall for memory wait
//! for.

use holdup_recording::metrics;
use holdup_recording::words::thousands;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::memory::{HOST, Memory};
use holdup_signals::{Counter, Missing, View};

/// Pages that a stalled allocation frees before it continues (the kernel's SWAP_CLUSTER_MAX).
const PAGES_A_STALL: f64 = 32.0;

/// What the kernel did to make room, and which pages it had to read again.
pub struct Reclaim {
    /// Allocations that had to free memory first.
    stalls: Counter,
    /// Pages read back from swap; none without swap.
    swapped: Option<Counter>,
    /// Pages of files that were dropped and read again.
    dropped: Option<Counter>,
}

impl Reclaim {
    /// In `view`, for what `memory` holds.
    ///
    /// # Errors
    /// If stalls or swap were not recorded.
    pub fn measure(view: &View<'_>, memory: &Memory) -> Result<Self, Missing> {
        Ok(Self {
            stalls: view.counter(metrics::host::ALLOCATION_STALLS.name, &[], HOST)?,
            swapped: swapped_in(view)?,
            dropped: view.refaults(memory, "file").ok(),
        })
    }

    /// Pages that stalled allocations freed.
    fn freed(&self) -> f64 {
        self.stalls.delta * PAGES_A_STALL
    }

    /// Pages read back from swap.
    fn back(&self) -> f64 {
        self.swapped.as_ref().map_or(0.0, |swapped| swapped.delta)
    }

    /// Whether no allocation stalled and no page came back from swap.
    pub fn is_none(&self) -> bool {
        self.stalls.delta == 0.0 && self.back() == 0.0
    }

    /// Whether more pages came back from swap than allocations freed.
    pub fn is_swapping(&self) -> bool {
        self.back() > self.freed()
    }

    /// Share (0-1) of the pages that tasks waited for that was not of dropped files.
    pub fn ratio(&self) -> f64 {
        let dropped = self.dropped.as_ref().map_or(0.0, |dropped| dropped.delta);
        (self.back() + self.freed()) / (self.back() + self.freed() + dropped).max(1.0)
    }

    /// Stalled allocations, and pages that came back.
    pub fn evidence(&self) -> Vec<Evidence> {
        let stalls = &self.stalls;
        let text = format!("{} allocations/s had to free memory first", thousands(stalls.rate()));
        let mut evidence = vec![stalls.evidence(format!("{:.1} a second", stalls.rate()), "0", text)];
        if let Some(swapped) = &self.swapped {
            let text = format!("{} pages/s were read back from swap", thousands(swapped.rate()));
            evidence.push(swapped.evidence(format!("{:.1} pages a second", swapped.rate()), "0", text));
        }
        evidence
    }

    /// What stalled tasks waited for instead.
    pub fn dropped_evidence(&self) -> Option<Evidence> {
        self.dropped.as_ref().map(|dropped| {
            let text = format!(
                "{} pages/s of files were read again after they had been dropped: stalled tasks waited for those",
                thousands(dropped.rate())
            );
            dropped.evidence(format!("{:.0} a second", dropped.rate()), "", text)
        })
    }
}

/// Pages read back from swap; none without swap.
fn swapped_in(view: &View<'_>) -> Result<Option<Counter>, Missing> {
    match view.counter(metrics::host::PAGING_OPERATIONS.name, &[("direction", "in")], HOST) {
        Ok(pages) => Ok(Some(pages)),
        Err(_) if view.setting("swap_total_bytes", HOST) == Ok("0") => Ok(None),
        Err(missing) => {
            let size = view.gauge(metrics::host::PAGING_USAGE_BYTES.name, &[], HOST);
            if size.is_ok_and(|size| size.max == 0.0) { Ok(None) } else { Err(missing) }
        }
    }
}
