//! Reads a scenario from YAML. Each section has its own module; this one puts them together.

use std::sync::Arc;

use crate::script::program::{Form, RequestSpec, Source};
use crate::script::{Names, Template};
use holdup_recording::secret::{HIDDEN, redact_value, spans};

use super::masked_text::MaskedText;
use super::mix::{Kinds, MAX_WEIGHT};
use super::request::Language;
use super::{
    DEFAULT_CONNECTIONS, DEFAULT_TIMEOUT, Generator, Http, Inputs, MAX_CONNECTIONS, Operation, Pace, RateOf, Scenario,
    Sessions, Target, http, include, load, measured, names, objectives, pipeline, positive, probe, seed, statement,
    steps,
};
use crate::model::Load;
use crate::yaml::{Map, Node, YamlError};

/// Keys of a scenario.
const KEYS: [&str; 21] = [
    "name",
    "include",
    "seed",
    "target",
    "http",
    "load",
    "operations",
    "sessions",
    "steps",
    "setup",
    "teardown",
    "define",
    "headers",
    "vars",
    "secrets",
    "feeders",
    "thresholds",
    "watch",
    "pipeline",
    "probe",
    "trace",
];

impl Scenario {
    /// Reads a scenario from the text of `file`, without other inputs.
    ///
    /// # Errors
    /// The first mistake, with its line and what would be right.
    pub fn parse(text: &str, file: &str) -> Result<Self, YamlError> {
        Self::read(text, file, &Inputs::default())
    }

    /// Reads a scenario from the text of `file` and the inputs beside it.
    ///
    /// # Errors
    /// The first mistake, with its line and what would be right.
    pub fn read(text: &str, file: &str, inputs: &Inputs) -> Result<Self, YamlError> {
        let mut root = Node::parse(text, file)?;
        let included = include::resolve(&mut root)?;
        let mut kept = MaskedText::from_tree(&root);
        inputs.vars.values().for_each(|value| kept.add_secret(value));
        inputs
            .target
            .iter()
            .for_each(|target| spans(target).into_iter().for_each(|span| kept.add_secret(&target[span])));
        Self::from_root(&root, file, inputs, &(kept.text.clone() + &included)).map_err(|error| kept.masked(error))
    }

    /// The scenario of `root`; `kept` is its text for the recording.
    fn from_root(root: &Node, file: &str, inputs: &Inputs, kept: &str) -> Result<Self, YamlError> {
        let map = root.map(&KEYS)?;
        let luck = map.get("seed").map_or(Ok(inputs.luck), seed)?;
        let (names, mut sources) = names::gather(&map, inputs, luck)?;
        // Target and load may use variables given from outside.
        let filled = |key: &str| map.get(key).map(|node| fill_known(node, &names)).transpose();
        let missing = |key: &str| map.need(key).map(|_| ());
        missing("target")?;
        let target = target(&filled("target")?.unwrap_or_else(|| map.node().clone()), inputs)?;
        let language = Language::of_target(&target);
        missing("load")?;
        let load = &filled("load")?.unwrap_or_else(|| map.node().clone());
        let own = ["connections", "timeout", "pace", "open_all", "of"];
        let keys: Vec<&str> = load::PROFILES.into_iter().chain(load::KEYS).chain(own).collect();
        let load_map = load.map(&keys)?;
        let has_steps = ["operations", "sessions", "steps"].iter().any(|key| map.get(key).is_some());
        if target.sql.is_some() {
            statement::check(&map, has_steps)?;
        }
        let mut read = || read_operations(&map, Arc::clone(&names), std::mem::take(&mut sources), language, luck);
        // The rates of phases may be those of single operations.
        let own = has_steps.then(&mut read).transpose()?;
        let kinds = own.as_ref().map(|(operations, sessions)| Kinds::new(operations, sessions.as_ref()));
        let section = load::parse(load, &keys, file, kinds.as_ref())?;
        let rate_of = rate_of(&load_map, &section.load)?;
        for (key, kinds) in ["operations", "sessions"].iter().filter_map(|key| Some((map.get(key)?, kinds.as_ref()?))) {
            kinds.check_used(key.list(), &section.mixes)?;
        }
        let (operations, sessions) = match own {
            Some(own) => own,
            None if !section.operations.is_empty() => (section.operations, None),
            None => read()?,
        };
        let is_measured = measured(&operations, sessions.as_ref());
        let of_load = operations.iter().zip(is_measured).filter(|(_, is)| *is).map(|(o, _)| o.name.clone());
        let thresholds = objectives::parse(filled("thresholds")?.as_ref(), &of_load.collect::<Vec<_>>())?;
        let watch = filled("watch")?;
        let watch = watch.as_ref().map_or(&[][..], Node::list).iter().map(|n| n.text().map(str::to_owned));
        let name = filled("name")?;
        let luck = sessions.as_ref().filter(|_| map.get("seed").is_none()).map(|_| luck);
        let text = kept.to_owned() + &remarks(section.remark.as_deref(), inputs, luck);
        let http = http(&map, sessions.is_some() && target.sql.is_none())?;
        let scenario = Self {
            probes: probe::parse(filled("probe")?.as_ref(), &target)?,
            name: name.as_ref().map_or(Ok("run"), Node::text)?.to_owned(),
            target,
            load: section.load,
            connections: connections(&load_map)?,
            timeout: load_map.get("timeout").map_or(Ok(DEFAULT_TIMEOUT), positive)?,
            operations,
            sessions,
            is_set_up: false,
            mixes: section.mixes,
            rate_of,
            search: section.search,
            thresholds,
            watch: watch.collect::<Result<_, _>>()?,
            pipeline: filled("pipeline")?.as_ref().map_or(Ok(Vec::new()), pipeline::parse)?,
            warm_up: section.warm_up,
            shard: inputs.share,
            start_at: None,
            http,
            generator: generator(&load_map)?,
            trace: map.get("trace").map_or(Ok(true), |node| http::flag(Some(node)))?,
            text: Some(text),
        };
        scenario.check_keep_alive().map_err(|why| keep_alive(&map).error(why))?;
        Ok(scenario)
    }
}

/// The target that `node` gives, or the command line instead.
fn target(node: &Node, inputs: &Inputs) -> Result<Target, YamlError> {
    let address = inputs.target.as_deref().map_or_else(|| node.text(), Ok)?;
    if Target::is_database(address) {
        return Target::database(address).map_err(|why| node.error(why));
    }
    let (target, base_path) = Target::parse(address).map_err(|why| node.error(why))?;
    if base_path != "/" {
        return Err(node.error("the target is only scheme, host and port; write paths in the operations"));
    }
    Ok(target)
}

/// The section `http`. Users keep their cookies, unless the scenario says otherwise.
fn http(map: &Map<'_>, has_users: bool) -> Result<Http, YamlError> {
    let mut http = map.get("http").map_or(Ok(Http::default()), Http::parse)?;
    http.cookies |= has_users && map.get("http").is_none_or(|node| !node.has("cookies"));
    Ok(http)
}

/// The place of `keep_alive`, or the whole scenario.
fn keep_alive<'n>(map: &Map<'n>) -> &'n Node {
    let http = map.get("http").and_then(|http| http.entries().ok()).unwrap_or_default();
    http.iter().find(|(key, _)| key == "keep_alive").map_or(map.node(), |(_, node)| node)
}

/// How many requests may be in flight.
fn connections(load: &Map<'_>) -> Result<u32, YamlError> {
    let given = load.get("connections").map(|n| n.integer("connections", 1..=MAX_CONNECTIONS));
    given.unwrap_or(Ok(DEFAULT_CONNECTIONS))
}

/// How the load is generated.
fn generator(load: &Map<'_>) -> Result<Generator, YamlError> {
    Ok(Generator {
        pace: load.get("pace").map_or(Ok(Pace::default()), Pace::read)?,
        open_all: http::flag(load.get("open_all"))?,
        ..Generator::default()
    })
}

/// What the scenario's text does not show, as comments behind it: choices that were made, and what the
/// command line gave.
fn remarks(choice: Option<&str>, inputs: &Inputs, luck: Option<u64>) -> String {
    let choice = choice.map(|choice| format!("# {choice}\n"));
    // A value given from outside may be secret under any name.
    let vars = inputs.vars.keys().map(|name| format!("# --var {name}={HIDDEN}\n"));
    let target = inputs.target.as_deref().map(|target| format!("# --target {}\n", redact_value(target)));
    let luck = luck.map(|luck| format!("# seed: {luck}, because none was given\n"));
    choice.into_iter().chain(vars).chain(target).chain(luck).collect()
}

/// The text of `node`, and of all within it, with the values known before the run filled in: vars
/// and the environment.
fn fill_known(node: &Node, names: &Names) -> Result<Node, YamlError> {
    let mut filled = node.clone();
    filled.fill(&mut |place, text| {
        if !text.contains("${") {
            return Ok(None);
        }
        let template = Template::parse(text, names).map_err(|e| place.error(e))?;
        match template.constant() {
            Some(text) if !template.is_secret() => Ok(Some(text.to_owned())),
            Some(_) => Err(place.error("a secret is not allowed here: the recording would contain it")),
            None => {
                Err(place
                    .error(format!("\"{text}\" is not known before the run; only vars and env.NAME are allowed here")))
            }
        }
    })?;
    Ok(filled)
}

/// `of: requests` or `of: sessions`.
fn rate_of(load: &Map<'_>, model: &Load) -> Result<RateOf, YamlError> {
    let Some(node) = load.get("of") else { return Ok(RateOf::default()) };
    if matches!(model, Load::Closed(_)) {
        return Err(node.error("users have no rate, so there is nothing to count; remove \"of\""));
    }
    match node.text()? {
        "requests" => Ok(RateOf::Requests),
        "sessions" => Ok(RateOf::Sessions),
        other => Err(node.error(format!("a rate counts requests or sessions, not \"{other}\""))),
    }
}

/// Reads what is sent: `operations`, `sessions` or `steps`.
fn read_operations(
    map: &Map<'_>,
    names: Arc<Names>,
    sources: Vec<Source>,
    language: Language,
    luck: u64,
) -> Result<(Vec<Operation>, Option<Sessions>), YamlError> {
    let kinds: Vec<(&str, &Node)> =
        ["operations", "sessions", "steps"].into_iter().filter_map(|key| Some((key, map.get(key)?))).collect();
    let (kind, node) = match kinds[..] {
        [one] => one,
        [] => return Err(map.node().error("say what to send: operations, sessions or steps")),
        [(one, _), (other, node), ..] => {
            return Err(node.error(format!("\"{one}\" and \"{other}\" exclude each other; keep one")));
        }
    };
    let mut reader = steps::Reader::new(map, names, sources, language, luck)?;
    match kind {
        "operations" => {
            node.list().iter().try_for_each(|entry| reader.operation(entry))?;
            if node.list().is_empty() {
                return Err(node.error("there must be at least one operation"));
            }
        }
        "steps" => {
            reader.flow("session", 1, node)?;
        }
        _ => {
            for (i, entry) in node.list().iter().enumerate() {
                let map = entry.map(&["name", "weight", "steps"])?;
                let weight = map.get("weight").map_or(Ok(1), |n| n.integer("weight", 0..=MAX_WEIGHT))?;
                let name = map.get("name").map_or(Ok(None), |n| n.text().map(Some))?;
                let name = name.map_or_else(|| format!("session {}", i + 1), str::to_owned);
                reader.flow(&name, weight, map.need("steps")?)?;
            }
            if node.list().is_empty() {
                return Err(node.error("there must be at least one session"));
            }
        }
    }
    let flows = reader.flows();
    let mut once = |key: &str| map.get(key).map(|steps| reader.flow(key, 0, steps)).transpose();
    let (setup, teardown) = (once("setup")?, once("teardown")?);
    let (script, operations) = reader.script();
    if kind == "operations"
        && setup.is_none()
        && teardown.is_none()
        && script.requests.iter().all(RequestSpec::is_plain)
    {
        return Ok((operations.into_iter().zip(&script.requests).map(|(o, spec)| plain(o, spec)).collect(), None));
    }
    Ok((operations, Some(Sessions { script: Arc::new(script), first: 0, flows, setup, teardown })))
}

/// An operation whose requests are all equal.
fn plain(operation: Operation, spec: &RequestSpec) -> Operation {
    let Form::Http { path, headers, body, .. } = &spec.form else { return operation };
    let text = |template: &Template| template.constant().unwrap_or_default().to_owned();
    let body = body.as_ref().map(|_| spec.form.constant_body().unwrap_or_default());
    let headers = headers.iter().map(|(name, value)| (name.clone(), text(value))).collect();
    Operation { path: text(path), headers, body, ..operation }
}
