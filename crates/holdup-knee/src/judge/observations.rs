//! Chooses the response times to which the curve is fitted.

use crate::Estimate;
use crate::judge::curve::{Observation, memory};
use crate::judge::variation::Variation;
use crate::judge::visit::Visit;

/// The observations, and for each visit whether it is one.
pub(crate) fn observed(
    visits: &[Visit],
    is_usable: &impl Fn(usize) -> bool,
    capacity: Option<Estimate>,
    variation: &Variation,
) -> (Vec<Observation>, Vec<bool>) {
    let of = |visit: &Visit| {
        Some(Observation {
            rate: visit.due,
            response: visit.response?,
            own_error: visit.response_error,
            disturbed: 0.0,
            seconds: visit.seconds as f64,
        })
    };
    let usable = |index: &usize| is_usable(*index) && visits[*index].response.is_some();
    let mut chosen: Vec<usize> = (0..visits.len())
        .filter(usable)
        .filter(|index| is_quiet(&visits[*index], variation) && is_steady(&visits[*index], capacity, variation))
        .collect();
    if chosen.len() < FEWEST {
        // A service so slow that no step is long enough: its lowest rates are the best
        // approximation.
        chosen = (0..visits.len()).filter(usable).collect();
        chosen.sort_by(|a, b| visits[*a].offered.total_cmp(&visits[*b].offered));
        chosen.truncate(FEWEST);
    }
    let used = (0..visits.len()).map(|index| chosen.contains(&index)).collect();
    let mut observed: Vec<Observation> = chosen.into_iter().filter_map(|index| of(&visits[index])).collect();
    widen(&mut observed, if variation.is_little() { 0.0 } else { 0.2 });
    (observed, used)
}

/// With fewer observations than this the curve is theory alone.
const FEWEST: usize = 4;

/// Without much variation, seconds that differ much mean that the machine was disturbed for long.
fn is_quiet(visit: &Visit, variation: &Variation) -> bool {
    !variation.is_little() || visit.response_error <= 0.1 || visit.seconds < 2
}

/// Largest memory of a queue, as a share of the step, with which the step still shows the final
/// queue length.
pub(crate) const MEMORY_MOST: f64 = 0.3;

/// Close to its capacity, a queue needs longer than a step to reach its final length.
fn is_steady(visit: &Visit, capacity: Option<Estimate>, variation: &Variation) -> bool {
    let is_long =
        |capacity: Estimate| memory(visit.due / capacity.value) / capacity.value < MEMORY_MOST * visit.seconds as f64;
    variation.is_little() || capacity.is_none_or(is_long)
}

/// A response time much longer than one at a higher rate was disturbed: its error is at least the
/// difference.
fn widen(observed: &mut [Observation], luck: f64) {
    const PLAINLY: f64 = 0.1;
    let all = observed.to_vec();
    for one in observed {
        let beyond = all
            .iter()
            .filter(|other| other.rate > one.rate)
            .map(|other| (one.response / other.response).ln() - 3.5 * one.own_error.hypot(other.own_error).max(luck))
            .fold(0.0, f64::max);
        if beyond > PLAINLY {
            one.disturbed = 2.0 * beyond;
        }
    }
}
