//! What a search is asked for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a search is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The first rate that is offered, requests per second. When it is too much already, the search goes down.
    pub from: f64,
    /// No step offers more than this, requests per second.
    pub most: f64,
    /// The whole search takes at most so long, counted from the start of the load, with drains and gaps.
    pub budget: Duration,
    /// A larger share of failed requests than this (beyond what fails at low rates anyway) breaks the service, 0-1.
    pub error_ratio_most: f64,
    /// An objective for the response time: the breaking point is also where it is missed.
    pub objective: Option<Objective>,
    /// How finely rates are told apart, as a share: the search goes on until the interval is about so narrow.
    pub resolution: f64,
    /// After so long the engine gives up a request. A service that hangs holds up the end of the search by this.
    pub timeout: Duration,
    /// Squared coefficient of variation of the times between arrivals: 0 for evenly spaced ones, 1 for Poisson's.
    pub arrivals_variation: f64,
    /// The engine needs up to so long between two steps. Kept free in the budget.
    pub gap: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            from: 10.0,
            most: 20_000.0,
            budget: Duration::from_secs(180),
            error_ratio_most: 0.01,
            objective: None,
            resolution: 0.04,
            timeout: Duration::from_secs(10),
            arrivals_variation: 0.0,
            gap: Duration::from_secs(1),
        }
    }
}

/// An objective for the response time: `quantile` of the requests are answered within `below_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// 0-1. Between the 50th, 95th and 99th percentile of a second, and beyond, times are taken to be exponential.
    pub quantile: f64,
    /// Nanoseconds of response time.
    pub below_ns: f64,
}
