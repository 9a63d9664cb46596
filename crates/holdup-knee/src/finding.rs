//! What a search found.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A figure with its interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The best single figure.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What the steps of a search show.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The offered rate from which the mean response time grows faster than load (its elasticity is 1), requests per second.
    pub knee: Option<Estimate>,
    /// Where the service stops doing what it should.
    pub breaking_point: Option<Breaking>,
    /// The most requests per second that it can complete for long. Equal to the knee when neither arrivals nor service vary.
    pub capacity: Option<Estimate>,
    /// `knee / capacity`: what is lost to variation. None without both.
    pub knee_of_capacity_ratio: Option<f64>,
    /// What happened when load fell after an overload. None if that was not tried or can't be judged.
    pub hysteresis: Option<Hysteresis>,
    /// The Universal Scalability Law over throughput and concurrency. None with fewer than four rates.
    pub usl: Option<Usl>,
    /// The curve of response time that the knee was read from.
    pub curve: Option<Curve>,
    /// No knee is named because something other than the service was the limit: why, and at which rate.
    pub refused: Option<String>,
    /// What could not be answered, and why. Sentences.
    pub unresolved: Vec<String>,
    /// Every step in the order played, judged.
    pub points: Vec<Point>,
    /// How many steps were played.
    pub steps_visited: usize,
    /// Visits of the same rates agree, and the interval is as narrow as was asked for.
    pub is_stable: bool,
    /// From the start of the load to the end of the last step.
    pub elapsed: Duration,
}

/// Where the service stops doing what it should.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Breaking {
    /// Requests per second.
    pub rate: Estimate,
    /// What is missed from there on.
    pub how: How,
}

/// What is missed beyond the breaking point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Requests pile up: fewer end than become due.
    AchievedBelowOffered,
    /// More fail than is allowed.
    Errors,
    /// The response time misses its objective.
    Objective,
}

/// What happened when load fell after an overload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hysteresis {
    /// The rate of the overload, requests per second.
    pub overload_rate: f64,
    /// The rate it fell to.
    pub recover_rate: f64,
    /// The response time came back to what it was at that rate before.
    pub recovered: bool,
    /// So long after the overload ended, if it did.
    pub after: Option<Duration>,
    /// Mean response time at the end of the recovery over that at this rate before the overload.
    pub response_ratio: f64,
}

/// The Universal Scalability Law: `X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1))`
/// (N. J. Gunther, "A simple capacity model of massively parallel transaction systems", CMG 1993; "Guerrilla Capacity
/// Planning", 2007).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usl {
    /// Throughput of one request at a time, requests per second.
    pub gamma: Estimate,
    /// Contention: the share that is serial.
    pub alpha: Estimate,
    /// Coherency: the cost of each pair; it makes throughput fall again.
    pub beta: Estimate,
    /// Where throughput is largest. None when `beta` is 0: it grows to `gamma / alpha` and never falls.
    pub peak: Option<Peak>,
    /// Share of the variance of throughput that the law explains.
    pub r2: f64,
    /// The data determine the parameters. If not, `why_not` says why.
    pub is_determined: bool,
    /// Why the data don't determine the parameters.
    pub why_not: Option<String>,
}

/// The largest throughput by the Universal Scalability Law.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// Requests in the system: `sqrt((1 - alpha) / beta)`.
    pub concurrency: Estimate,
    /// Requests per second there.
    pub rate: Estimate,
}

/// Mean response time by offered rate: `base (1 + a w(u))` with `w(u) = u^k e^(-onset (1 - u) / u) / (1 - u)` and
/// `u = rate / capacity`.
///
/// For a queue with c workers, `a = V / c` and `k = sqrt(2 (c + 1)) - 1` (H. Sakasegawa, "An approximation formula
/// L = alpha rho^beta / (1 - rho)", Annals of the Institute of Statistical Mathematics 29, 1977); `V` is half the sum of
/// the squared coefficients of variation of arrivals and service; `onset` is 0 for Poisson's arrivals and says how much
/// later waiting begins with even ones (Kraemer and Langenbach-Belz 1976). Exact for M/M/1 and for the law of contention.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Mean response time of a service without load, nanoseconds.
    pub base_ns: f64,
    /// The rate at which it has no end, requests per second.
    pub capacity: f64,
    /// The size of what is added by waiting.
    pub a: f64,
    /// How steep it is.
    pub k: f64,
    /// How much later it sets in because arrivals are even.
    pub onset: f64,
}

/// One step, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Offered rate, requests per second.
    pub offered: f64,
    /// Requests that became due, per second, once settled.
    pub due: f64,
    /// Requests that ended well, per second, once settled.
    pub achieved: f64,
    /// Mean response time of those, nanoseconds; seconds that stand out are left out.
    pub response_ns: Option<f64>,
    /// Share of requests that failed, 0-1.
    pub error_ratio: f64,
    /// Mean of the requests in the system.
    pub in_system: f64,
    /// Growth of the requests in the system, as a share of the offered rate: 0.1 means every tenth request stays.
    pub growth: f64,
    /// Whether the service followed.
    pub held: Held,
}

/// Whether the service followed in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// It did.
    Yes,
    /// It did not.
    No(How),
    /// The step is too short or too restless to say.
    Unclear,
    /// The generator did not offer what it should have.
    GeneratorLimited,
}
