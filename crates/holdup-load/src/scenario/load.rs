//! The scenario's `load` section: how much load, and when.

use std::path::Path;
use std::time::Duration;

use super::profile::{self, DEFAULT_SEED, MAX_GROUP, MAX_PHASES, REPLAYED_METHODS, SPEED};
use super::search;
use super::{MAX_CONNECTIONS, MAX_RATE, Operation, WarmUp, positive};
use crate::access_log::{Format, Options};
use crate::model::{Closed, Load, Stage};
use crate::schedule::{Schedule, Stretch};
use crate::yaml::{Map, Node, YamlError};

/// Keys that say what the load is; exactly one is used.
const PROFILES: [&str; 9] = ["rate", "steps", "ramp", "spike", "sine", "phases", "replay", "users", "search"];

/// Keys of the section that are read here.
pub const KEYS: [&str; 16] = [
    "rate",
    "steps",
    "ramp",
    "spike",
    "sine",
    "phases",
    "replay",
    "users",
    "search",
    "duration",
    "think",
    "iterations",
    "ramp_up",
    "arrivals",
    "seed",
    "warm_up",
];

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
}

/// Reads the section. `all_keys` are its allowed keys, those read elsewhere included; the path of a
/// log is relative to `file`, the scenario.
///
/// # Errors
/// The first mistake, with its line and what would be right.
pub fn parse(load: &Node, all_keys: &[&str], file: &str, has_operations: bool) -> Result<Section, YamlError> {
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
    let load = match profile {
        "users" => Load::Closed(closed(node, &map)?),
        "search" => {
            let config = search::parse(node, &map)?;
            let schedule = Schedule::live(config.budget, config.most);
            search = Some(config);
            Load::Open(schedule)
        }
        "replay" => {
            let log = replay(node, file, has_operations, map.get("duration").map(positive).transpose()?)?;
            operations = log.1;
            Load::Open(log.0)
        }
        "rate" => Load::Open(Schedule::constant(rate(node)?, length()?)),
        "steps" => Load::Open(steps(node)?),
        "ramp" => Load::Open(ramp(node, length()?)?),
        "spike" => Load::Open(spike(node, length()?)?),
        "sine" => Load::Open(sine(node, length()?)?),
        _ => Load::Open(phases(node)?),
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
    Ok(Section { load, warm_up, operations, remark, search })
}

/// Users, for a time or until they have completed so many sessions.
fn closed(node: &Node, map: &Map<'_>) -> Result<Closed, YamlError> {
    let iterations = map.get("iterations").map(|n| n.integer("sessions in all", 1..=u32::MAX)).transpose()?;
    let (users, stages) =
        if node.is_list() { stages(node)? } else { (node.integer("users", 1..=MAX_CONNECTIONS)?, Vec::new()) };
    let length = match (map.get("duration"), iterations) {
        (Some(duration), _) if !stages.is_empty() => {
            return Err(duration.error("each stage of users has its own \"for\"; remove \"duration\""));
        }
        _ if !stages.is_empty() => stages.iter().map(|stage| stage.length).sum(),
        (None, Some(_)) => LONGEST_ITERATIONS,
        _ => positive(map.need("duration")?)?,
    };
    Ok(Closed {
        users,
        stages,
        think: map.get("think").map_or(Ok(Duration::ZERO), Node::duration)?,
        length,
        iterations: iterations.map(u64::from),
        ramp_up: map.get("ramp_up").map_or(Ok(Duration::ZERO), Node::duration)?,
    })
}

/// `[{users: 10, for: 20s}, {ramp: {from: 10, to: 50}, for: 1m}]`: the most users, and the stages.
fn stages(node: &Node) -> Result<(u32, Vec<Stage>), YamlError> {
    let list = node.list();
    if list.is_empty() || list.len() > MAX_PHASES {
        return Err(node.error(format!("from 1 to {MAX_PHASES} stages, e.g. - {{users: 10, for: 20s}}")));
    }
    let mut stages = Vec::new();
    for entry in list {
        let map = entry.map(&["name", "users", "ramp", "for"])?;
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
    Ok((most, stages))
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

fn phases(node: &Node) -> Result<Schedule, YamlError> {
    let list = node.list();
    if list.len() > MAX_PHASES {
        return Err(node.error(format!("more than {MAX_PHASES} phases")));
    }
    let stretches: Vec<Stretch> = list.iter().enumerate().map(|(i, node)| phase(i, node)).collect::<Result<_, _>>()?;
    if stretches.iter().all(|s| s.rate_from + s.rate_to <= 0.0) {
        return Err(node.error("no phase sends anything; add one, e.g. - {rate: 50, for: 10s}"));
    }
    Ok(Schedule::new(stretches))
}

/// `{rate: 50, for: 10s}`, `{ramp: {from: 50, to: 500}, for: 20s}` or `{pause: 5s}`, each with or without a name.
fn phase(index: usize, node: &Node) -> Result<Stretch, YamlError> {
    let map = node.map(&["name", "rate", "ramp", "pause", "for"])?;
    let schedule = match (map.get("rate"), map.get("ramp"), map.get("pause")) {
        (Some(constant), None, None) => Schedule::constant(rate(constant)?, positive(map.need("for")?)?),
        (None, Some(change), None) => ramp(change, positive(map.need("for")?)?)?,
        (None, None, Some(pause)) => {
            if let Some(length) = map.get("for") {
                return Err(length.error("a pause contains its length: {pause: 5s}; remove \"for\""));
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
    Ok(stretch)
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
            let number = match seed {
                Some(node) => {
                    let text = node.text()?;
                    text.parse().map_err(|_| node.error(format!("expected a whole number from 0, found \"{text}\"")))?
                }
                None => DEFAULT_SEED,
            };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(load: &str) -> Result<Section, YamlError> {
        let node = Node::parse(load, "s.yaml").unwrap();
        let keys: Vec<&str> = KEYS.into_iter().chain(["connections"]).collect();
        parse(&node, &keys, "s.yaml", true)
    }

    fn schedule(load: &str) -> Schedule {
        match read(load).unwrap().load {
            Load::Open(schedule) => schedule,
            Load::Closed(_) => panic!("{load} is closed"),
        }
    }

    #[test]
    fn profiles() {
        for (load, total, seconds, phases) in [
            ("{rate: 5, duration: 10s}", 50, 10, vec!["5/s"]),
            ("{steps: {from: 10, to: 20, step: 10, every: 2s}}", 60, 4, vec!["step 1: 10/s", "step 2: 20/s"]),
            ("{ramp: {from: 0, to: 20}, duration: 2s}", 20, 2, vec!["ramp 0 to 20/s"]),
            ("{spike: {base: 1, peak: 50, at: 2s, for: 1s}, duration: 5s}", 54, 5, vec!["before", "spike", "after"]),
            (
                "{sine: {mean: 10, amplitude: 10, period: 5s}, duration: 10s}",
                100,
                10,
                vec!["period 1: 10 ± 10/s", "period 2: 10 ± 10/s"],
            ),
            (
                "phases: [{rate: 5, for: 2s}, {pause: 3s}, {name: rush, ramp: {from: 0, to: 10}, for: 1s}]",
                15,
                6,
                vec!["phase 1: 5/s", "phase 2: pause", "rush"],
            ),
        ] {
            let schedule = schedule(load);
            let names: Vec<&str> = schedule.stretches().iter().map(|s| s.name.as_str()).collect();
            assert_eq!((schedule.total(), schedule.length().as_secs(), names), (total, seconds, phases), "{load}");
        }
        let closed = read("{users: 64, think: 200ms, duration: 6s, warm_up: 1s}").unwrap();
        let expected = Closed {
            users: 64,
            think: Duration::from_millis(200),
            length: Duration::from_secs(6),
            ..Closed::default()
        };
        assert_eq!((closed.load, closed.warm_up), (Load::Closed(expected), WarmUp::For(Duration::from_secs(1))));
    }

    #[test]
    fn arrivals_are_even_or_random() {
        let even = schedule("{rate: 100, duration: 9s}");
        assert_eq!(schedule("{rate: 100, duration: 9s, arrivals: even}"), even);
        let random = read("{rate: 100, duration: 9s, arrivals: poisson}").unwrap();
        assert_eq!(random.remark.unwrap(), "load.seed: 1, because none was given");
        assert_eq!(random.load, Load::Open(schedule("{rate: 100, duration: 9s, arrivals: poisson, seed: 1}")));
        assert_ne!(random.load, Load::Open(even.clone()));
        let groups = schedule("{rate: 100, duration: 9s, arrivals: {groups_of: 20}}");
        assert_eq!((groups.group(), groups.seed(), groups.total()), (20, None, 900));
        assert_eq!(groups, even.in_groups(20));
        let random = read("{rate: 100, duration: 9s, arrivals: {groups_of: 20, spacing: poisson}, seed: 4}").unwrap();
        assert_eq!(random.load, Load::Open(groups.poisson(4)));
        assert!(
            read("{rate: 100, duration: 9s, arrivals: poisson, seed: 18446744073709551615}").unwrap().remark.is_none()
        );
    }

    #[test]
    fn errors_name_the_way_out() {
        for (load, words) in [
            ("{duration: 1s}", "s.yaml:1: say how much: one of \"rate\", \"steps\", \"ramp\""),
            ("{rate: 1, sine: {mean: 1}}", "\"rate\" and \"sine\" exclude each other; keep one"),
            (
                "{rate: 1, users: 5, duration: 1s}",
                "\"users\" is a closed model, in which the service's speed determines",
            ),
            ("{users: 5, duration: 1s, connections: 9}", "connections: each user has a separate connection"),
            ("{users: 5, duration: 1s, arrivals: poisson}", "remove \"arrivals\""),
            ("{users: 5}", "\"duration\" is missing"),
            ("{users: 0, duration: 1s}", "users: 0 is out of range: users, from 1 to 60000"),
            ("{rate: 5, think: 1s, duration: 1s}", "think: needs \"users\""),
            ("{rate: 5, duration: 1s, seed: 5}", "seed: a seed is for random arrivals"),
            (
                "{rate: 5, duration: 1s, arrivals: poisson, seed: -5}",
                "seed: expected a whole number from 0, found \"-5\"",
            ),
            ("{rate: 5, duration: 1s, arrivals: normal}", "arrivals: expected even or poisson, found \"normal\""),
            ("{rate: 5, duration: 1s, arrivals: {spacing: even}}", "arrivals: \"groups_of\" is missing"),
            ("{rate: 5, duration: 1s, arrivals: {groups_of: 0}}", "arrivals.groups_of: 0 is out of range"),
            (
                "{rate: 5, duration: 1s, arrivals: {groups_of: 5, spacing: odd}}",
                "expected even or poisson, found \"odd\"",
            ),
            ("{rate: 5, duration: 1s, arrivals: {groups_of: 5}, seed: 5}", "seed: a seed is for random arrivals"),
            ("{search: knee, arrivals: {groups_of: 5}}", "arrivals: a search expects single arrivals; remove"),
            ("{users: 5, duration: 1s, arrivals: {groups_of: 5}}", "remove \"arrivals\""),
            ("{rate: 5, duration: 1s, warm_up: 1s}", "warm_up: a warm-up of 1s leaves nothing of a load of 1s"),
            ("{rate: 5, duration: 1s, warm_up: some}", "or auto, or none"),
            ("{ramp: {from: 0, to: 0}, duration: 1s}", "ramp: a ramp from 0 to 0 sends nothing"),
            (
                "{spike: {base: 1, peak: 5, at: 9s, for: 2s}, duration: 10s}",
                "spike: the spike ends at 11s and the load at 10s",
            ),
            ("{spike: {base: 1, peak: 5, at: 9s, for: 0s}, duration: 10s}", "spike.for: must be longer than 0s"),
            ("{spike: {base: 5, peak: 5, at: 1s, for: 2s}, duration: 10s}", "use \"rate\""),
            ("{sine: {mean: 5, amplitude: 6, period: 1s}, duration: 2s}", "below 0; at most the mean, 5"),
            ("{sine: {mean: 5, amplitude: 5, period: 1ms}, duration: 1m}", "more than 10000 periods"),
            ("{steps: {from: 1, to: 10001, step: 1, every: 1s}}", "more than 10000 steps"),
            (
                "{steps: {from: 1, to: 5, step: 1, every: 1s}, duration: 5s}",
                "duration: each step takes its length from \"every\"",
            ),
            ("{phases: [{rate: 5, for: 1s}], duration: 5s}", "duration: each phase has its own"),
            ("{phases: [{rate: 5}]}", "phases[0]: \"for\" is missing"),
            ("{phases: [{pause: 5s, for: 1s}]}", "phases[0].for: a pause contains its length"),
            ("{phases: [{pause: 5s}]}", "phases: no phase sends anything"),
            ("{phases: [{rate: 5, pause: 5s}]}", "phases[0]: a phase is one of"),
            ("{phases: [{rate: 5, fro: 5s}]}", "did you mean \"for\"?"),
            ("{phases: []}", "phases: no phase sends anything"),
            ("{replay: {file: /nowhere/a.log}}", "replay.file: /nowhere/a.log: No such file"),
            ("{replay: {file: a.log, speed: 0}}", "replay.speed: 0 is out of range"),
            ("{replay: {file: a.log, format: xml}}", "replay.format: \"xml\" is not a log format; use auto"),
            ("{replay: {file: a.log, methods: GET}}", "only the timing of the log is replayed"),
        ] {
            let error = read(load).err().unwrap_or_else(|| panic!("{load} is accepted")).to_string();
            assert!(error.starts_with("s.yaml:1: ") && error.contains(words), "{load}: {error}");
        }
    }

    #[test]
    fn a_log_lies_beside_the_scenario() {
        let dir = tempfile::tempdir().unwrap();
        let line =
            |second: u32, request: &str| format!("h - - [10/Oct/2000:13:55:{second:02} -0700] \"{request}\" 200 5\n");
        let log = [line(1, "GET /a HTTP/1.1"), line(3, "POST /b HTTP/1.1"), line(5, "GET /a HTTP/1.1")].concat();
        std::fs::write(dir.path().join("access.log"), log).unwrap();
        let file = dir.path().join("s.yaml").display().to_string();
        let read = |load: &str, has_operations: bool| {
            parse(&Node::parse(load, &file).unwrap(), &KEYS, &file, has_operations).unwrap()
        };
        let counted = |section: &Section| match &section.load {
            Load::Open(schedule) => (schedule.total(), schedule.length().as_millis(), section.operations.len()),
            Load::Closed(_) => (0, 0, 0),
        };
        assert_eq!(counted(&read("replay: {file: access.log, speed: 2}", true)), (3, 2_500, 0));
        assert_eq!(counted(&read("replay: {file: access.log}", false)), (2, 5_000, 1));
        assert_eq!(
            counted(&read("{replay: {file: access.log, methods: [get, post]}, duration: 3s}", false)),
            (2, 3_000, 2)
        );
    }
}
