//! The settings of a search.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The settings of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The first offered rate, requests per second. If it is too much already, the search goes
    /// down.
    pub from: f64,
    /// Highest offered rate, requests per second.
    pub most: f64,
    /// Longest duration of the whole search, from the start of the load, with drains and gaps.
    pub budget: Duration,
    /// A share of failed requests above this (beyond those that fail at low rates anyway) means
    /// that the service breaks, 0-1.
    pub error_ratio_most: f64,
    /// An objective for the response time: missing it is a breaking point, too.
    pub objective: Option<Objective>,
    /// Wanted precision of rates, as a share: the search goes on until the interval is about this
    /// narrow.
    pub resolution: f64,
    /// After this long the engine gives up a request. A service that hangs delays the end of the
    /// search by this.
    pub timeout: Duration,
    /// Squared coefficient of variation of the times between arrivals: 0 for evenly spaced ones, 1
    /// for Poisson arrivals.
    pub arrivals_variation: f64,
    /// Longest time that the engine needs between two steps. The budget reserves it.
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
    /// 0-1. Between the 50th, 95th and 99th percentile of a second, and beyond, times are assumed
    /// to be exponential.
    pub quantile: f64,
    /// Nanoseconds of response time.
    pub below_ns: f64,
}
