//! The scenario's `load` section: how much, when.

use std::time::Duration;

use super::{MAX_RATE, positive};
use crate::model::Load;
use crate::schedule::Schedule;
use crate::yaml::{Node, YamlError};

/// Keys of the section that are read here.
pub const KEYS: [&str; 4] = ["rate", "duration", "steps", "ramp"];

/// Reads it. `all_keys` are the keys the section may have, those read elsewhere included.
///
/// # Errors
/// The first thing wrong, with its line and what would be right.
pub fn parse(load: &Node, all_keys: &[&str]) -> Result<Load, YamlError> {
    let map = load.map(all_keys)?;
    let rate = |node: &Node| node.number("requests per second", 0.001..=MAX_RATE);
    let forms = [map.get("rate"), map.get("steps"), map.get("ramp")];
    match forms {
        [Some(node), None, None] => Ok(Load::Open(Schedule::constant(rate(node)?, positive(map.need("duration")?)?))),
        [None, Some(node), None] => {
            if let Some(duration) = map.get("duration") {
                return Err(duration.error("steps say how long with \"every\"; remove \"duration\""));
            }
            let steps = node.map(&["from", "to", "step", "every"])?;
            let (from, to, step) = (rate(steps.need("from")?)?, rate(steps.need("to")?)?, rate(steps.need("step")?)?);
            if (to - from).abs() / step > 10_000.0 {
                return Err(node.error("more than 10,000 steps"));
            }
            let every: Duration = positive(steps.need("every")?)?;
            Ok(Load::Open(Schedule::steps(from, to, step, every)))
        }
        [None, None, Some(node)] => {
            let ramp = node.map(&["from", "to"])?;
            let (from, to) = (rate(ramp.need("from")?)?, rate(ramp.need("to")?)?);
            Ok(Load::Open(Schedule::ramp(from, to, positive(map.need("duration")?)?)))
        }
        [None, None, None] => Err(load.error("say how much: one of \"rate\", \"steps\" or \"ramp\"")),
        _ => Err(load.error("\"rate\", \"steps\" and \"ramp\" exclude each other; keep one")),
    }
}
