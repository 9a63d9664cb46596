//! The scenario's `load` section: how much load, and when.

#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use super::mix::{Kinds, Mix};
use super::profile::{self, DEFAULT_SEED, MAX_GROUP, MAX_PHASES, REPLAYED_METHODS, SPEED};
use super::search;
use super::{MAX_CONNECTIONS, MAX_RATE, Operation, WarmUp, positive};
use crate::access_log::{Format, Options};
use crate::model::{Closed, Load, Stage};
use crate::schedule::{Schedule, Stretch};
use crate::yaml::{Map, Node, YamlError};

/// Keys that say what the load is; exactly one is used.
pub const PROFILES: [&str; 9] = ["rate", "steps", "ramp", "spike", "sine", "phases", "replay", "users", "search"];

/// The other keys of the section that are read here.
pub const KEYS: [&str; 7] = ["duration", "think", "iterations", "ramp_up", "arrivals", "seed", "warm_up"];

/// Longest load, if only iterations are given.
const LONGEST_ITERATIONS: Duration = Duration::from_secs(24 * 3_600);

/// The parsed section.
pub struct Section {
    /// How much load, and when.
    pub load: Load,
    /// How much of the start is left out.
    pub warm_up: WarmUp,
    /// Operations of a replayed log; empty if the scenario has its own.
    pub operations: Vec<Operation>,
    /// A remark to add to the scenario's text, for a choice that it does not show.
    pub remark: Option<String>,
    /// The settings of the search, if the load is one.
    pub search: Option<holdup_knee::Config>,
    /// Weights of each phase that has its own; empty if no phase has.
    pub mixes: Mixes,
}

/// The weights of each phase, if they are not the scenario's.
type Mixes = Vec<Option<Vec<u64>>>;

/// Reads the section. `all_keys` are its allowed keys, those read elsewhere included; the path of a
/// log is relative to `file`, the scenario; `kinds` are what the scenario sends, if it says that.
///
/// # Errors
/// The first mistake, with its line and what would be right.
pub fn parse(load: &Node, all_keys: &[&str], file: &str, kinds: Option<&Kinds>) -> Result<Section, YamlError> {
    let map = load.map(all_keys)?;
    let given: Vec<(&str, &Node)> = PROFILES.iter().filter_map(|key| Some((*key, map.get(key)?))).collect();
    let (profile, node) = match given[..] {
        [one] => one,
        [] => return Err(load.error(format!("say how much: one of {}", PROFILES.map(quoted).join(", ")))),
        [(one, _), .., ("users", _)] => {
            return Err(load.error(format!(
                "\"users\" is a closed model, in which the service's speed determines the load, so it excludes {}; keep one of the two",
                quoted(one)
            )));
        }
        [(one, _), (other, _), ..] => {
            return Err(load.error(format!("{} and {} exclude each other; keep one", quoted(one), quoted(other))));
        }
    };
    only(&map, profile)?;
    let length = || positive(map.need("duration")?);
    let mut operations = Vec::new();
    let mut search = None;
    let mut mixes = Vec::new();
    let none = Kinds::default();
    let known = kinds.unwrap_or(&none);
    let load = match profile {
        "users" => {
            let users = closed(node, &map, known)?;
            mixes = users.1;
            Load::Closed(users.0)
        }
        "search" => {
            let config = search::parse(node, &map)?;
            let schedule = Schedule::live(config.budget, config.most);
            search = Some(config);
            Load::Open(schedule)
        }
        "replay" => {
            let log = replay(node, file, kinds.is_some(), map.get("duration").map(positive).transpose()?)?;
            operations = log.1;
            Load::Open(log.0)
        }
        "rate" => Load::Open(Schedule::constant(rate(node)?, length()?)),
        "steps" => Load::Open(steps(node)?),
        "ramp" => Load::Open(ramp(node, length()?)?),
        "spike" => Load::Open(spike(node, length()?)?),
        "sine" => Load::Open(sine(node, length()?)?),
        _ => {
            let phases = phases(node, known)?;
            mixes = phases.1;
            Load::Open(phases.0)
        }
    };
    let (load, remark) = arrivals(&map, load)?;
    let warm_up = match map.get("warm_up") {
        Some(node) => {
            let warm_up = profile::warm_up(node.text()?).map_err(|why| node.error(why))?;
            profile::check_warm_up(warm_up, load.length()).map_err(|why| node.error(why))?;
            warm_up
        }
        None => WarmUp::default(),
    };
    Ok(Section { load, warm_up, operations, remark, search, mixes: only_own(mixes) })
}

/// Users, for a time or until they have completed so many sessions.
fn closed(node: &Node, map: &Map<'_>, kinds: &Kinds) -> Result<(Closed, Mixes), YamlError> {
    let iterations = map.get("iterations").map(|n| n.integer("sessions in all", 1..=u32::MAX)).transpose()?;
    let (users, stages, mixes) = if node.is_list() {
        stages(node, kinds)?
    } else {
        (node.integer("users", 1..=MAX_CONNECTIONS)?, Vec::new(), Vec::new())
    };
    let length = match (map.get("duration"), iterations) {
        (Some(duration), _) if !stages.is_empty() => {
            return Err(duration.error("each stage of users has its own \"for\"; remove \"duration\""));
        }
        _ if !stages.is_empty() => stages.iter().map(|stage| stage.length).sum(),
        (None, Some(_)) => LONGEST_ITERATIONS,
        _ => positive(map.need("duration")?)?,
    };
    let closed = Closed {
        users,
        stages,
        think: map.get("think").map_or(Ok(Duration::ZERO), Node::duration)?,
        length,
        iterations: iterations.map(u64::from),
        ramp_up: map.get("ramp_up").map_or(Ok(Duration::ZERO), Node::duration)?,
    };
    Ok((closed, mixes))
}

/// Empty if no phase has its own weights.
fn only_own(mixes: Mixes) -> Mixes {
    if mixes.iter().any(Option::is_some) { mixes } else { Vec::new() }
}

/// `[{users: 10, for: 20s}, {ramp: {from: 10, to: 50}, for: 1m}]`: the most users, the stages, and
/// their weights.
fn stages(node: &Node, kinds: &Kinds) -> Result<(u32, Vec<Stage>, Mixes), YamlError> {
    let list = node.list();
    if list.is_empty() || list.len() > MAX_PHASES {
        return Err(node.error(format!("from 1 to {MAX_PHASES} stages, e.g. - {{users: 10, for: 20s}}")));
    }
    let mut stages = Vec::new();
    let mut mixes = Vec::new();
    for entry in list {
        let map = entry.map(&["name", "users", "ramp", "for", "mix"])?;
        let mix = map.get("mix").map(|node| Mix::parse(node, kinds)?.weights("users have no rate")).transpose()?;
        mixes.push(mix);
        let count = |node: &Node| node.integer("users", 0..=MAX_CONNECTIONS);
        let (from, to) = match (map.get("users"), map.get("ramp")) {
            (Some(users), None) => (count(users)?, count(users)?),
            (None, Some(ramp)) => {
                let ramp = ramp.map(&["from", "to"])?;
                (count(ramp.need("from")?)?, count(ramp.need("to")?)?)
            }
            _ => return Err(entry.error("a stage is {users: 10, for: 20s} or {ramp: {from: 10, to: 50}, for: 1m}")),
        };
        let own = if from == to { format!("{from} users") } else { format!("{from} to {to} users") };
        let name = map.get("name").map_or(Ok(own.as_str()), Node::text)?.to_owned();
        stages.push(Stage { name, length: positive(map.need("for")?)?, from, to });
    }
    let most = stages.iter().map(|stage| stage.from.max(stage.to)).max().unwrap_or(0);
    if most == 0 {
        return Err(node.error("every stage has 0 users"));
    }
    Ok((most, stages, mixes))
}

fn quoted(key: &str) -> String {
    format!("\"{key}\"")
}

/// # Errors
/// If there is a key that `profile` has no use for.
fn only(map: &Map<'_>, profile: &str) -> Result<(), YamlError> {
    let refuse = |key: &str, why: &str| map.get(key).map_or(Ok(()), |node| Err(node.error(why)));
    match profile {
        "steps" => refuse("duration", "each step takes its length from \"every\"; remove \"duration\"")?,
        "search" => refuse("duration", "a search takes its length from \"within\"; remove \"duration\"")?,
        "phases" => refuse("duration", "each phase has its own \"for\"; remove \"duration\"")?,
        _ => {}
    }
    if profile == "users" {
        refuse("connections", "each user has a separate connection; remove \"connections\"")?;
        refuse("arrivals", "a user's next request follows the response and the think time; remove \"arrivals\"")
    } else {
        refuse("iterations", "needs \"users\", a closed model; remove it or use \"users\"")?;
        refuse("ramp_up", "needs \"users\", a closed model; use \"ramp\" for a rate")?;
        refuse("think", "needs \"users\", a closed model; remove it or use \"users\"")
    }
}

/// Requests per second.
fn rate(node: &Node) -> Result<f64, YamlError> {
    node.number("requests per second", 0.001..=MAX_RATE)
}

/// Requests per second, or 0.
fn rate_or_none(node: &Node) -> Result<f64, YamlError> {
    node.number("requests per second", 0.0..=MAX_RATE)
}

fn steps(node: &Node) -> Result<Schedule, YamlError> {
    let map = node.map(&["from", "to", "step", "every"])?;
    let (from, to, step) = (rate(map.need("from")?)?, rate(map.need("to")?)?, rate(map.need("step")?)?);
    profile::steps(from, to, step, positive(map.need("every")?)?).map_err(|why| node.error(why))
}

fn ramp(node: &Node, length: Duration) -> Result<Schedule, YamlError> {
    let map = node.map(&["from", "to"])?;
    let (from, to) = (rate_or_none(map.need("from")?)?, rate_or_none(map.need("to")?)?);
    profile::ramp(from, to, length).map_err(|why| node.error(why))
}

fn spike(node: &Node, length: Duration) -> Result<Schedule, YamlError> {
    let map = node.map(&["base", "peak", "at", "for"])?;
    let (base, peak) = (rate_or_none(map.need("base")?)?, rate(map.need("peak")?)?);
    let (at, lasting) = (map.need("at")?.duration()?, positive(map.need("for")?)?);
    profile::spike(base, peak, at, lasting, length).map_err(|why| node.error(why))
}

fn sine(node: &Node, length: Duration) -> Result<Schedule, YamlError> {
    let map = node.map(&["mean", "amplitude", "period"])?;
    let (mean, amplitude) = (rate(map.need("mean")?)?, rate(map.need("amplitude")?)?);
    profile::sine(mean, amplitude, positive(map.need("period")?)?, length).map_err(|why| node.error(why))
}

fn phases(node: &Node, kinds: &Kinds) -> Result<(Schedule, Mixes), YamlError> {
    let list = node.list();
    if list.len() > MAX_PHASES {
        return Err(node.error(format!("more than {MAX_PHASES} phases")));
    }
    let phases = list.iter().enumerate().map(|(i, node)| phase(i, node, kinds)).collect::<Result<Vec<_>, _>>()?;
    let (stretches, mixes): (Vec<Stretch>, Mixes) = phases.into_iter().unzip();
    if stretches.iter().all(|s| s.rate_from + s.rate_to <= 0.0) {
        return Err(node.error("no phase sends anything; add one, e.g. - {rate: 50, for: 10s}"));
    }
    Ok((Schedule::new(stretches), mixes))
}

/// `{rate: 50, for: 10s}`, `{ramp: {from: 50, to: 500}, for: 20s}` or `{pause: 5s}`, each with or
/// without a name, the first two also with a mix; `{for: 10s, mix: {search: 50/s}}`.
fn phase(index: usize, node: &Node, kinds: &Kinds) -> Result<(Stretch, Option<Vec<u64>>), YamlError> {
    let map = node.map(&["name", "rate", "ramp", "pause", "for", "mix"])?;
    let mix = map.get("mix").map(|node| Mix::parse(node, kinds)).transpose()?;
    let mut weights = None;
    let schedule = match (map.get("rate"), map.get("ramp"), map.get("pause"), &mix) {
        (Some(constant), None, None, None) => Schedule::constant(rate(constant)?, positive(map.need("for")?)?),
        (constant, None, None, Some(mix)) => {
            let (total, own) = mix.of_rate(constant.map(rate).transpose()?)?;
            weights = Some(own);
            Schedule::constant(total, positive(map.need("for")?)?)
        }
        (None, Some(change), None, _) => {
            let why = "within a ramp the rate of one operation would change the share of all others";
            weights = mix.as_ref().map(|mix| mix.weights(why)).transpose()?;
            ramp(change, positive(map.need("for")?)?)?
        }
        (None, None, Some(pause), _) => {
            if let Some(length) = map.get("for") {
                return Err(length.error("a pause contains its length: {pause: 5s}; remove \"for\""));
            }
            if let Some(mix) = map.get("mix") {
                return Err(mix.error("a pause sends nothing; remove \"mix\""));
            }
            Schedule::new(vec![Stretch {
                name: "pause".to_owned(),
                length: positive(pause)?,
                rate_from: 0.0,
                rate_to: 0.0,
            }])
        }
        _ => {
            return Err(node.error(
                "a phase is one of {rate: 50, for: 10s}, {ramp: {from: 50, to: 500}, for: 20s} and {pause: 5s}",
            ));
        }
    };
    let mut stretch = schedule.stretches()[0].clone();
    stretch.name = match map.get("name") {
        Some(name) => name.text()?.to_owned(),
        None => format!("phase {}: {}", index + 1, stretch.name),
    };
    if weights.is_none() && map.get("pause").is_none() && !kinds.has_weight() {
        return Err(node.error("every weight is 0, so nothing is sent; add \"mix\", or give one a weight above 0"));
    }
    Ok((stretch, weights))
}

fn replay(
    node: &Node,
    file: &str,
    has_operations: bool,
    length: Option<Duration>,
) -> Result<(Schedule, Vec<Operation>), YamlError> {
    let map = node.map(&["file", "speed", "format", "methods"])?;
    let path = map.need("file")?;
    let methods = match map.get("methods") {
        Some(methods) if has_operations => {
            return Err(methods.error(
                "the scenario has operations, so only the timing of the log is replayed; remove one of the two",
            ));
        }
        Some(methods) => methods
            .list()
            .iter()
            .map(|m| profile::method(m.text()?).map_err(|why| m.error(why)))
            .collect::<Result<_, _>>()?,
        None => REPLAYED_METHODS.to_vec(),
    };
    let options = Options {
        format: match map.get("format") {
            Some(format) => Format::parse(format.text()?).map_err(|why| format.error(why))?,
            None => Format::Auto,
        },
        speed: map.get("speed").map_or(Ok(1.0), |n| n.number("times as fast as it was", SPEED))?,
        methods: (!has_operations).then_some(methods),
        length,
    };
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    profile::replay(&folder.join(path.text()?), &options).map_err(|why| path.error(why))
}

/// `even` or `poisson`.
fn is_poisson(node: &Node) -> Result<bool, YamlError> {
    match node.text()? {
        "even" => Ok(false),
        "poisson" => Ok(true),
        other => Err(node.error(format!("expected even or poisson, found \"{other}\""))),
    }
}

/// `even`, `poisson`, or `{groups_of: 20, spacing: even}`: whether it is random, and the size of
/// groups if it says one.
fn spacing(node: &Node) -> Result<(bool, Option<u32>), YamlError> {
    if !node.is_map() {
        return Ok((is_poisson(node)?, None));
    }
    let map = node.map(&["groups_of", "spacing"])?;
    let group = map.need("groups_of")?.integer("requests in a group", 1..=MAX_GROUP)?;
    Ok((map.get("spacing").map_or(Ok(false), is_poisson)?, Some(group)))
}

/// Regular or random arrivals, alone or in groups.
fn arrivals(map: &Map<'_>, load: Load) -> Result<(Load, Option<String>), YamlError> {
    let seed = map.get("seed");
    let (is_poisson, group) = map.get("arrivals").map_or(Ok((false, None)), spacing)?;
    let load = match (load, group) {
        (Load::Open(schedule), Some(_)) if schedule.as_live().is_some() => {
            let node = map.get("arrivals").unwrap_or(map.node());
            return Err(node.error("a search expects single arrivals; remove \"groups_of\", or use another load"));
        }
        (Load::Open(schedule), Some(group)) if schedule.replay().is_none() => Load::Open(schedule.in_groups(group)),
        (load, _) => load,
    };
    match (load, is_poisson || group.is_some()) {
        (Load::Open(schedule), true) if schedule.replay().is_some() => {
            let node = map.get("arrivals").unwrap_or(map.node());
            Err(node.error("a replayed log has its own arrivals; remove \"arrivals\""))
        }
        (load, true) if !is_poisson => without_seed(load, seed),
        (Load::Open(schedule), true) => {
            let number = seed.map_or(Ok(DEFAULT_SEED), super::seed)?;
            let remark = seed.is_none().then(|| format!("load.seed: {number}, because none was given"));
            Ok((Load::Open(schedule.poisson(number)), remark))
        }
        (load, _) => without_seed(load, seed),
    }
}

/// Arrivals that are not random have no seed.
fn without_seed(load: Load, seed: Option<&Node>) -> Result<(Load, Option<String>), YamlError> {
    match seed {
        Some(node) => Err(node.error("a seed is for random arrivals: add \"arrivals: poisson\", or remove it")),
        None => Ok((load, None)),
    }
}
