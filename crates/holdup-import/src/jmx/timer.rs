//! Timers: a timer that delays a sampler becomes think time before it, and one that holds a rate
//! becomes the load.

use super::Plan;
use super::element::Element;
use super::piece::{Piece, pieces};
use super::schedule::stretch;
use crate::load::{length, seconds};
use crate::scenario::{Phase, Step};

/// A timer that holds a rate.
#[derive(Clone, Debug, PartialEq)]
pub enum Pacer {
    /// Requests per second, and whether each thread sends that many.
    Rate { per_second: f64, of_each_thread: bool, is_poisson: bool, length_s: Option<f64> },
    /// Rows of a shaping timer.
    Shape(Vec<Phase>),
}

impl Plan<'_> {
    /// The delay before each sampler in a timer's scope, milliseconds from and to.
    pub(super) fn delay(&mut self, timer: &Element<'_>) -> Option<(f64, f64)> {
        let number = |plan: &Self, key: &str| timer.filled(key).map_or(Some(0.0), |text| plan.names.number(text));
        let ends = match timer.class.as_str() {
            "ConstantTimer" => {
                let text = timer.filled("ConstantTimer.delay").unwrap_or("0");
                if let [Piece::Call { name, arguments, .. }] = &pieces(text)[..]
                    && name == "__Random"
                    && let [[Piece::Text(from)], [Piece::Text(to)], ..] =
                        &arguments.iter().map(Vec::as_slice).collect::<Vec<_>>()[..]
                {
                    from.trim().parse().ok().zip(to.trim().parse().ok())
                } else {
                    self.names.number(text).map(|d| (d, d))
                }
            }
            "UniformRandomTimer" => {
                let (from, range) = (number(self, "ConstantTimer.delay"), number(self, "RandomTimer.range"));
                from.zip(range).map(|(from, range)| (from, from + range))
            }
            "GaussianRandomTimer" => {
                let (mean, deviation) = (number(self, "ConstantTimer.delay"), number(self, "RandomTimer.range"));
                self.changed(timer, "its normal distribution becomes an even one with the same mean and deviation", "");
                // An even distribution over 2w has the deviation w / sqrt(3).
                mean.zip(deviation).map(|(mean, d)| ((mean - d * 3_f64.sqrt()).max(0.0), mean + d * 3_f64.sqrt()))
            }
            "PoissonRandomTimer" => {
                let (from, mean) = (number(self, "ConstantTimer.delay"), number(self, "RandomTimer.range"));
                self.changed(timer, "its delays differ little from their mean, so the scenario waits for the mean", "");
                from.zip(mean).map(|(from, mean)| (from + mean, from + mean))
            }
            _ => None,
        };
        let is_good = |ms: f64| (0.0..=31_536_000_000.0).contains(&ms);
        match ends {
            Some((from, to)) if is_good(from) && is_good(to) && from <= to => Some((from, to)),
            _ => {
                self.left_out(timer, "its delay is computed while the plan runs", "write think: in its place");
                None
            }
        }
    }

    /// A rate that a timer holds for everything in its scope.
    pub(super) fn pacer(&mut self, timer: &Element<'_>) -> Option<Pacer> {
        let pacer = match timer.class.as_str() {
            "ConstantThroughputTimer" => {
                let per_minute = timer.filled("throughput").and_then(|text| self.names.number(text));
                let mode = timer.filled("calcMode").unwrap_or("0");
                // Its modes are numbers or, in older versions, texts.
                let of_each_thread = mode == "0" || mode.contains("this thread only") || mode == "calcMode.1";
                per_minute.map(|n| Pacer::Rate {
                    per_second: n / 60.0,
                    of_each_thread,
                    is_poisson: false,
                    length_s: None,
                })
            }
            "PreciseThroughputTimer" => {
                let number = |key: &str| timer.filled(key).and_then(|text| self.names.number(text));
                let per = number("throughputPeriod").filter(|p| *p > 0.0).unwrap_or(3_600.0);
                let length_s = number("duration").filter(|d| *d > 0.0);
                number("throughput").map(|n| Pacer::Rate {
                    per_second: n / per,
                    of_each_thread: false,
                    is_poisson: true,
                    length_s,
                })
            }
            "VariableThroughputTimer" => {
                let rows = self.rows(timer, "load_profile");
                let phases: Option<Vec<Phase>> = rows
                    .iter()
                    .map(|row| match row[..] {
                        [from, to, length, ..] => in_range(from).zip(in_range(to)).zip(seconds(length)),
                        _ => None,
                    })
                    .map(|row| row.map(|((from, to), length)| stretch(from, to, length)))
                    .collect();
                let phases = phases.map(|all| all.into_iter().filter(|p| !p.length().is_zero()).collect::<Vec<_>>());
                phases.filter(|all| all.iter().any(|p| !matches!(p, Phase::Pause(_)))).map(Pacer::Shape)
            }
            _ => None,
        };
        match &pacer {
            Some(Pacer::Rate { per_second, .. }) if in_range(*per_second).is_none_or(|rate| rate == 0.0) => None,
            other => other.clone(),
        }
        .or_else(|| {
            self.left_out(timer, "its rate is unknown", "write it under load");
            None
        })
    }

    /// Rows of numbers of a collection; an invalid cell becomes NaN.
    pub(super) fn rows(&self, at: &Element<'_>, name: &str) -> Vec<Vec<f64>> {
        let items = at.items(name).iter().take(10_000);
        items
            .map(|row| row.children.iter().map(|cell| self.names.number(&cell.text).unwrap_or(f64::NAN)).collect())
            .filter(|row: &Vec<f64>| !row.is_empty())
            .collect()
    }
}

/// A rate that a scenario can have, or 0.
fn in_range(rate: f64) -> Option<f64> {
    (rate == 0.0 || (0.001..=1e7).contains(&rate)).then_some(rate)
}

/// Whether an element is a timer that delays.
pub fn is_delay(class: &str) -> bool {
    matches!(class, "ConstantTimer" | "UniformRandomTimer" | "GaussianRandomTimer" | "PoissonRandomTimer")
}

/// Whether an element is a timer that holds a rate.
pub fn is_pacer(class: &str) -> bool {
    matches!(class, "ConstantThroughputTimer" | "PreciseThroughputTimer" | "VariableThroughputTimer")
}

/// A delay as a step; none without a delay.
pub fn think((from_ms, to_ms): (f64, f64)) -> Option<Step> {
    let (from, to) = (seconds(from_ms / 1e3)?, seconds(to_ms / 1e3)?);
    if to.is_zero() {
        None
    } else if from == to {
        Some(Step::Think(length(from)))
    } else {
        Some(Step::Think(format!("{}..{}", length(from), length(to))))
    }
}

/// The rest of the plan's duration properties: a number of seconds, or nothing.
pub fn number_of(plan: &Plan<'_>, at: &Element<'_>, key: &str) -> Option<f64> {
    plan.names.number(at.filled(key)?)
}
