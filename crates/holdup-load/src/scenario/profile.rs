//! Load profiles as a user gives them, in a file or by flags. Impossible ones are refused here, for
//! both.

use std::path::Path;
use std::time::Duration;

use super::Operation;
use crate::access_log::{self, LoggedOperation, Options};
use crate::schedule::Schedule;

/// Most phases of a load.
pub const MAX_PHASES: usize = 10_000;

/// Most requests that arrive at the same instant.
pub const MAX_GROUP: u32 = 1_000_000;

/// Default seed of Poisson arrivals: always the same, so that two runs get the same arrivals.
pub const DEFAULT_SEED: u64 = 1;

/// Default methods of a replayed log's requests that are sent: those that change nothing (RFC 9110,
/// 9.2.1).
pub const REPLAYED_METHODS: [&str; 2] = ["GET", "HEAD"];

/// Allowed speeds of a replay, relative to the log.
pub const SPEED: std::ops::RangeInclusive<f64> = 0.001..=10_000.0;

/// Steps between two rates.
///
/// # Errors
/// If there are too many.
pub fn steps(from: f64, to: f64, step: f64, every: Duration) -> Result<Schedule, String> {
    if (to - from).abs() / step >= MAX_PHASES as f64 {
        return Err(format!("more than {MAX_PHASES} steps; make \"step\" greater"));
    }
    Ok(Schedule::steps(from, to, step, every))
}

/// An even change of the rate.
///
/// # Errors
/// If nothing would be sent.
pub fn ramp(from: f64, to: f64, length: Duration) -> Result<Schedule, String> {
    if from + to <= 0.0 {
        return Err("a ramp from 0 to 0 sends nothing".to_owned());
    }
    Ok(Schedule::ramp(from, to, length))
}

/// A rate, then another for a while, then the first again.
///
/// # Errors
/// If the spike is not within the load, or does not change the rate.
pub fn spike(base: f64, peak: f64, at: Duration, lasting: Duration, length: Duration) -> Result<Schedule, String> {
    if base == peak {
        return Err(format!("base and peak are both {base}; use \"rate\""));
    }
    if at + lasting > length {
        let end = (at + lasting).as_secs_f64();
        let whole = length.as_secs_f64();
        return Err(format!("the spike ends at {end}s and the load at {whole}s; make the duration longer"));
    }
    Ok(Schedule::spike(base, peak, at, lasting, length))
}

/// A rate that swings around its mean.
///
/// # Errors
/// If it would go below 0, or has too many periods.
pub fn sine(mean: f64, amplitude: f64, period: Duration, length: Duration) -> Result<Schedule, String> {
    if amplitude > mean {
        return Err(format!("an amplitude of {amplitude} takes the rate below 0; at most the mean, {mean}"));
    }
    if length.as_secs_f64() / period.as_secs_f64() > MAX_PHASES as f64 {
        return Err(format!("more than {MAX_PHASES} periods; make \"period\" longer"));
    }
    Ok(Schedule::sine(mean, amplitude, period, length))
}

/// The arrivals of an access log, and its operations if its own requests are to be sent.
///
/// # Errors
/// If it can't be read or is not a log.
pub fn replay(file: &Path, options: &Options) -> Result<(Schedule, Vec<Operation>), String> {
    let log = access_log::read(file, options).map_err(|e| e.to_string())?;
    let name = file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned());
    let speed = if options.speed == 1.0 { String::new() } else { format!(", {} times as fast", options.speed) };
    let operations = log.operations.into_iter().map(as_logged).collect();
    Ok((Schedule::replayed(log.replay, format!("replay of {name}{speed}"), log.length), operations))
}

/// The operation that sends requests as logged.
fn as_logged(logged: LoggedOperation) -> Operation {
    let LoggedOperation { name, method, path, weight } = logged;
    Operation { name, method: method.to_owned(), path, headers: Vec::new(), body: None, weight }
}

/// Reads the name of a method whose requests are to be replayed.
///
/// # Errors
/// A message that lists the accepted names.
pub fn method(name: &str) -> Result<&'static str, String> {
    let known = holdup_access::request::METHODS;
    known
        .into_iter()
        .find(|m| m.eq_ignore_ascii_case(name.trim()))
        .ok_or_else(|| format!("\"{name}\" is not a method that can be replayed; supported: {}", known.join(", ")))
}

/// Reads `auto`, `none` or a duration.
///
/// # Errors
/// A message that says what is accepted.
pub fn warm_up(text: &str) -> Result<super::WarmUp, String> {
    match text {
        "auto" => Ok(super::WarmUp::Detect),
        "none" => Ok(super::WarmUp::None),
        _ => {
            crate::yaml::parse_duration(text).map(super::WarmUp::For).map_err(|why| format!("{why}; or auto, or none"))
        }
    }
}

/// # Errors
/// If the warm-up would leave nothing of a load of this length.
pub fn check_warm_up(warm_up: super::WarmUp, length: Duration) -> Result<(), String> {
    match warm_up {
        super::WarmUp::For(warm_up) if warm_up >= length => Err(format!(
            "a warm-up of {}s leaves nothing of a load of {}s",
            warm_up.as_secs_f64(),
            length.as_secs_f64()
        )),
        _ => Ok(()),
    }
}
