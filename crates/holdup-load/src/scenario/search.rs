//! `load.search`: holdup finds the rates itself.

use std::time::Duration;

pub use holdup_knee::{Config, Objective};

use super::{MAX_RATE, positive};
use crate::yaml::{Map, Node, YamlError};

/// Shortest search that can find anything.
const SHORTEST: Duration = Duration::from_secs(20);

/// Longest search.
const LONGEST: Duration = Duration::from_secs(4 * 3_600);

/// Reads `search: knee` or `search: {from: 10, most: 5000, within: 3m, objective: p99 < 500ms,
/// errors: 1%}`.
///
/// # Errors
/// The first mistake, with its line and what would be right.
pub fn parse(node: &Node, load: &Map<'_>) -> Result<Config, YamlError> {
    let mut config = Config::default();
    if let Some(timeout) = load.get("timeout") {
        config.timeout = positive(timeout)?;
    }
    if !node.is_map() {
        return match node.text()? {
            "knee" => Ok(config),
            other => Err(node.error(format!("unknown search \"{other}\"; supported: knee"))),
        };
    }
    let map = node.map(&["from", "most", "within", "objective", "errors", "resolution"])?;
    let rate = |node: &Node| node.number("requests per second", 0.1..=MAX_RATE);
    if let Some(from) = map.get("from") {
        config.from = rate(from)?;
    }
    if let Some(most) = map.get("most") {
        config.most = rate(most)?;
    }
    if let Some(within) = map.get("within") {
        config.budget = within.duration()?;
    }
    if let Some(errors) = map.get("errors") {
        config.error_ratio_most = share(errors)?;
    }
    if let Some(resolution) = map.get("resolution") {
        config.resolution = share(resolution)?;
        if !(0.005..=0.5).contains(&config.resolution) {
            return Err(resolution.error("is from 0.5% to 50%"));
        }
    }
    if let Some(objective) = map.get("objective") {
        config.objective = Some(self::objective(objective.text()?).map_err(|why| objective.error(why))?);
    }
    check(&config).map_err(|why| node.error(why))?;
    Ok(config)
}

/// # Errors
/// If a search with these settings cannot find anything.
pub fn check(config: &Config) -> Result<(), String> {
    if config.from > config.most {
        return Err(format!("its first rate, {}, is above its highest, {}", config.from, config.most));
    }
    if config.budget < SHORTEST || config.budget > LONGEST {
        return Err("a search takes from 20s to 4h; 3m is usually enough".to_owned());
    }
    Ok(())
}

/// Reads `p99 < 500ms`.
///
/// # Errors
/// A message that says what is accepted.
pub fn objective(text: &str) -> Result<Objective, String> {
    let wrong = || format!("\"{text}\" is not an objective for a search; use p50, p95 or p99, e.g. p99 < 500ms");
    let (metric, below) = text.split_once('<').ok_or_else(wrong)?;
    let quantile = match metric.trim() {
        "p50" => 0.5,
        "p95" => 0.95,
        "p99" => 0.99,
        _ => return Err(wrong()),
    };
    let below = crate::yaml::parse_duration(below.trim())?;
    Ok(Objective { quantile, below_ns: below.as_nanos() as f64 })
}

/// `1%` or `0.01`.
fn share(node: &Node) -> Result<f64, YamlError> {
    let text = node.text()?;
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |n| (n.trim(), 0.01));
    let value =
        number.parse::<f64>().map_err(|_| node.error(format!("\"{text}\" is not a share such as 1% or 0.01")))?;
    let share = value * scale;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(node.error(format!("{text} is not a share from 0 to 100%")))
    }
}
