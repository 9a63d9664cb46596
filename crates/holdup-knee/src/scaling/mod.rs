//! How capacity grows with a resource: workers, CPUs, instances. It takes the capacities that
//! searches found at several values of one resource. It reports the growth between values, whether
//! that is proportional and up to where, and the scaling law through all of them. Pure, like all of
//! this crate: the caller knows what the values mean and how they were set.

mod instances;
mod law;
mod pooled;

#[cfg(test)]
mod tests;

pub use instances::{Budget, InstanceCount, budget, instances};
pub use law::ScalingLaw;
pub use pooled::pooled;

use serde::{Deserialize, Serialize};

use crate::Estimate;

/// 95 % of a normal distribution lie within this many standard deviations.
const Z: f64 = 1.959_964;

/// A ratio this close to proportion counts as proportional, however narrow its interval: it makes
/// no difference in planning, and searches are not more exact.
const NEGLIGIBLE: f64 = 0.05;

/// An interval that contains both proportion and less than this share of it says nothing.
const VAGUE: f64 = 0.75;

/// The capacity with a given amount of the resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityPoint {
    /// Amount of the resource, e.g. workers. Above 0.
    pub value: f64,
    /// Capacity, requests per second.
    pub carried: Estimate,
}

/// How capacity grows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// From the smallest value to each of the larger ones.
    pub from_smallest: Vec<Growth>,
    /// From each value to the next.
    pub from_before: Vec<Growth>,
    /// From the smallest value to the largest.
    pub whole: Proportion,
    /// The largest value up to which growth is proportional, if it is not proportional throughout;
    /// the smallest value if it never is.
    pub proportional_to: Option<f64>,
    /// From this value on capacity certainly falls.
    pub falls_from: Option<f64>,
    /// The scaling law; none with fewer than three values.
    pub law: Option<ScalingLaw>,
}

/// The effect of more of the resource.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// The value before.
    pub from: f64,
    /// The value after.
    pub to: f64,
    /// Ratio of the amounts: the ratio of capacities if growth is proportional.
    pub given: f64,
    /// Ratio of the capacities.
    pub carried: Estimate,
    /// Comparison of the two.
    pub proportion: Proportion,
}

/// Whether capacity grows in proportion to the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proportion {
    /// Yes: the interval contains proportion, or lies close to it.
    Linear,
    /// Less.
    Less,
    /// More.
    More,
    /// The interval is too wide to say.
    Unclear,
}

/// How capacity grows over `given`, each value once, in any order; none with fewer than two values.
pub fn scaling(given: &[CapacityPoint]) -> Option<Scaling> {
    let mut sorted: Vec<CapacityPoint> =
        given.iter().copied().filter(|one| one.value > 0.0 && one.carried.value > 0.0).collect();
    sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
    let (first, last) = (sorted.first()?, sorted.last()?);
    if last.value <= first.value {
        return None;
    }
    let from_smallest: Vec<Growth> = sorted[1..].iter().map(|to| growth(first, to)).collect();
    let from_before: Vec<Growth> = sorted.windows(2).map(|pair| growth(&pair[0], &pair[1])).collect();
    let whole = from_smallest.last()?.proportion;
    // Searched only if growth is less than proportional overall: of many intervals, one misses by
    // chance.
    let proportional_to = (whole == Proportion::Less).then(|| {
        let good = from_smallest.iter().take_while(|growth| growth.proportion != Proportion::Less);
        good.last().map_or(first.value, |growth| growth.to)
    });
    let falls_from = from_before.iter().find(|growth| growth.carried.high < 1.0).map(|growth| growth.to);
    let law = law::law(&sorted);
    Some(Scaling { from_smallest, from_before, whole, proportional_to, falls_from, law })
}

fn growth(from: &CapacityPoint, to: &CapacityPoint) -> Growth {
    let given = to.value / from.value;
    let ratio = to.carried.value / from.carried.value;
    // Combine opposite ends: the upper end of one with the lower end of the other.
    let spread = |a: f64, b: f64| (a * a + b * b).sqrt();
    let up = spread(above(&to.carried), below(&from.carried));
    let down = spread(below(&to.carried), above(&from.carried));
    let carried = Estimate { value: ratio, low: ratio * (-down).exp(), high: ratio * up.exp() };
    let (low, high) = (carried.low / given, carried.high / given);
    let proportion = match () {
        () if low >= 1.0 - NEGLIGIBLE && high <= 1.0 + NEGLIGIBLE => Proportion::Linear,
        () if high < 1.0 => Proportion::Less,
        () if low > 1.0 => Proportion::More,
        () if low >= VAGUE && high <= 1.0 / VAGUE => Proportion::Linear,
        () => Proportion::Unclear,
    };
    Growth { from: from.value, to: to.value, given, carried, proportion }
}

/// Distance from the value to the upper end, as a logarithm.
fn above(one: &Estimate) -> f64 {
    (one.high.max(one.value) / one.value).ln().max(LEAST_SPREAD * Z)
}

/// Distance from the value to the lower end, as a logarithm.
fn below(one: &Estimate) -> f64 {
    (one.value / one.low.min(one.value).max(1e-3 * one.value)).ln().max(LEAST_SPREAD * Z)
}

/// Least relative uncertainty of a search: arrivals are counted in whole requests.
const LEAST_SPREAD: f64 = 0.002;

/// The standard deviation of the logarithm.
fn spread(one: &Estimate) -> f64 {
    (above(one) + below(one)) / (2.0 * Z)
}
