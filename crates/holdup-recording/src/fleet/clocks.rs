//! How the clocks of a fleet's recordings hang together. Each part is measured against those that
//! are placed already, and the one with the smallest error is placed next, so errors add up along
//! the shortest way to the part whose clock counts. How two are measured is up to the caller.

use crate::Recording;
use crate::tables::Tables;

/// How far the clock of a part is off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// What was added to its times, nanoseconds.
    pub offset_ns: i64,
    /// How far that may be off, nanoseconds.
    pub error_ns: i64,
    /// What both saw, in words, e.g. `1,500 shared trace ids`.
    pub by: String,
    /// The host that it was measured against.
    pub against: String,
}

/// Measures how far the clock of the second is off that of the first; none if they share nothing.
/// `against` of the result is filled in here.
pub type Measure<'m> = &'m dyn Fn(&Tables, &Tables) -> Option<Clock>;

/// The clock of each part against part `reference`.
pub(super) fn place(
    parts: &[Recording],
    hosts: &[String],
    reference: usize,
    measure: Measure<'_>,
) -> Vec<Option<Clock>> {
    let mut placed: Vec<(usize, i64, i64)> = vec![(reference, 0, 0)];
    let mut clocks: Vec<Option<Clock>> = parts.iter().map(|_| None).collect();
    let mut near: Vec<Option<Clock>> = clocks.clone();
    let mut is_open: Vec<bool> = (0..parts.len()).map(|number| number != reference).collect();
    while let Some(&(last, offset_ns, error_ns)) = placed.last() {
        for number in (0..parts.len()).filter(|number| is_open[*number]) {
            let Some(found) = measure(&parts[last].tables, &parts[number].tables) else { continue };
            let found = Clock {
                offset_ns: found.offset_ns.saturating_add(offset_ns),
                error_ns: found.error_ns.saturating_add(error_ns),
                against: hosts[last].clone(),
                ..found
            };
            let is_nearer = near[number].as_ref().is_none_or(|known| found.error_ns < known.error_ns);
            if is_nearer {
                near[number] = Some(found);
            }
        }
        let next = (0..parts.len()).filter(|number| is_open[*number]).filter_map(|n| Some((n, near[n].take()?)));
        let all: Vec<(usize, Clock)> = next.collect();
        let Some(best) = all.iter().map(|(_, clock)| clock.error_ns).min() else { break };
        let mut is_placed = false;
        for (number, clock) in all {
            if clock.error_ns == best && !is_placed {
                placed.push((number, clock.offset_ns, clock.error_ns));
                (is_open[number], is_placed) = (false, true);
                clocks[number] = Some(clock);
            } else {
                near[number] = Some(clock);
            }
        }
    }
    clocks
}
