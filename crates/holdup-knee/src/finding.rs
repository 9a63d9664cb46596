//! The results of a search.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A figure with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The best single figure.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The results of the steps of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The offered rate at which the mean response time starts to grow faster than load (its
    /// elasticity is 1), requests per second.
    pub knee: Option<Estimate>,
    /// Where the service stops meeting its requirements.
    pub breaking_point: Option<Breaking>,
    /// The most requests per second that it can complete permanently. Equal to the knee when
    /// neither arrivals nor service vary.
    pub capacity: Option<Estimate>,
    /// `knee / capacity`: below 1 because of variation. None without both.
    pub knee_of_capacity_ratio: Option<f64>,
    /// What happened when load fell after an overload. None if that was not tried or the result is
    /// unclear.
    pub hysteresis: Option<Hysteresis>,
    /// The Universal Scalability Law over throughput and concurrency. None with fewer than four rates.
    pub usl: Option<Usl>,
    /// The curve of response time from which the knee was derived.
    pub curve: Option<Curve>,
    /// Why no knee is reported, and at which rate: something other than the service was the limit.
    pub refused: Option<String>,
    /// Questions that stayed open, and why. Sentences.
    pub unresolved: Vec<String>,
    /// Every step in the order played, judged.
    pub points: Vec<Point>,
    /// Number of steps played.
    pub steps_visited: usize,
    /// Visits of the same rates agree, and the interval is as narrow as requested.
    pub is_stable: bool,
    /// From the start of the load to the end of the last step.
    pub elapsed: Duration,
}

/// Where the service stops meeting its requirements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Breaking {
    /// Requests per second.
    pub rate: Estimate,
    /// The requirement that it misses from there on.
    pub how: MissedRequirement,
}

/// The requirement that is missed beyond the breaking point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedRequirement {
    /// Requests pile up: fewer end than become due.
    AchievedBelowOffered,
    /// More requests fail than allowed.
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
    /// The response time returned to its value at that rate before.
    pub recovered: bool,
    /// Time from the end of the overload until it did.
    pub after: Option<Duration>,
    /// Mean response time at the end of the recovery, divided by that at this rate before the
    /// overload.
    pub response_ratio: f64,
}

/// The Universal Scalability Law: `X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1))`
/// (N. J. Gunther, "A simple capacity model of massively parallel transaction systems", CMG 1993; "Guerrilla Capacity
/// Planning", 2007).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usl {
    /// Throughput with one request at a time, requests per second.
    pub gamma: Estimate,
    /// Contention: the share that is serial.
    pub alpha: Estimate,
    /// Coherency: the cost of each pair of requests; it makes throughput fall again.
    pub beta: Estimate,
    /// Where throughput is largest. None when `beta` is 0: throughput grows to `gamma / alpha` and
    /// never falls.
    pub peak: Option<Peak>,
    /// Share of the variance of throughput that the law explains.
    pub r2: f64,
    /// Whether the data determine the parameters. If not, `why_not` says why.
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

/// Mean response time by offered rate: `base (1 + a w(u))` with `w(u) = u^k e^(-onset (1 - u) / u)
/// / (1 - u)` and `u = rate / capacity`.
///
/// For a queue with c workers, `a = V / c` and `k = sqrt(2 (c + 1)) - 1` (H. Sakasegawa, "An
/// approximation formula L = alpha rho^beta / (1 - rho)", Annals of the Institute of Statistical
/// Mathematics 29, 1977). `V` is half the sum of the squared coefficients of variation of arrivals
/// and service. `onset` is 0 for Poisson arrivals; with evenly spaced ones waiting sets in later,
/// by this much (Kraemer and Langenbach-Belz 1976). The curve is exact for M/M/1 and for the law of
/// contention.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Mean response time of a service without load, nanoseconds.
    pub base_ns: f64,
    /// The rate at which it becomes infinite, requests per second.
    pub capacity: f64,
    /// Amount of waiting.
    pub a: f64,
    /// Steepness of waiting.
    pub k: f64,
    /// How much later waiting sets in because arrivals are evenly spaced.
    pub onset: f64,
}

/// One step, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Offered rate, requests per second.
    pub offered: f64,
    /// Requests that became due, per second, after settling.
    pub due: f64,
    /// Requests that succeeded, per second, after settling.
    pub achieved: f64,
    /// Their mean response time, nanoseconds; outlying seconds are left out.
    pub response_ns: Option<f64>,
    /// Share of requests that failed, 0-1.
    pub error_ratio: f64,
    /// Mean number of requests in the system.
    pub in_system: f64,
    /// Growth of the requests in the system, as a share of the offered rate: 0.1 means every tenth request stays.
    pub growth: f64,
    /// Whether the service kept up.
    pub held: StepResult,
}

/// Whether the service kept up in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepResult {
    /// Yes.
    Yes,
    /// No.
    No(MissedRequirement),
    /// The step is too short or too unsteady to say.
    Unclear,
    /// The generator did not offer the intended load.
    GeneratorLimited,
}
