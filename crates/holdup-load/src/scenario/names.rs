//! First pass over a scenario with sessions: every name that its templates may use, and the data
//! behind them. Steps are read when all names are known, so that one may use what a later one
//! captures.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::script::program::Source;
use crate::script::{AtEnd, Drawer, Feeder, Names, Order};

use super::include::beside;
use super::profile::DEFAULT_SEED;
use crate::schedule::Share;
use crate::yaml::{Map, Node, YamlError};

/// Largest file of rows, bytes.
const LARGEST_BYTES: u64 = 4 << 30;

/// Inputs beside the file.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// `--var name=value`.
    pub vars: BTreeMap<String, String>,
    /// `--target`, instead of the scenario's.
    pub target: Option<String>,
    /// The seed of all random values, if the scenario gives none.
    pub luck: u64,
    /// This process's part of the load, and of the rows of feeders.
    pub share: Share,
}

impl Default for Inputs {
    fn default() -> Self {
        Self { vars: BTreeMap::new(), target: None, luck: DEFAULT_SEED, share: Share::WHOLE }
    }
}

/// The names and the sources of rows.
///
/// # Errors
/// If a file can't be read, a secret is not set, or a name is used twice.
pub fn gather(map: &Map<'_>, inputs: &Inputs, seed: u64) -> Result<(Arc<Names>, Vec<Source>), YamlError> {
    let mut names = Names::default();
    for (name, value) in std::env::vars() {
        names.outside(&format!("env.{name}"), &value);
    }
    for node in map.get("secrets").map_or(&[][..], Node::list) {
        let name = node.text()?;
        let value = std::env::var(name).map_err(|_| {
            node.error(format!(
                "the environment variable {name} is not set; run: export {name}=... (or read -rs {name})"
            ))
        })?;
        names.outside(&format!("secret.{name}"), &value);
    }
    let mut given_left = inputs.vars.clone();
    if let Some(vars) = map.get("vars") {
        for (name, value) in vars.entries()? {
            check_name(name).map_err(|why| value.error(why))?;
            let text = given_left.remove(name);
            names.text(name, text.as_deref().map_or_else(|| value.text(), Ok)?);
        }
    }
    if let Some(name) = given_left.keys().next() {
        let known: Vec<&str> = map
            .get("vars")
            .map_or(&[][..], |v| v.entries().unwrap_or_default())
            .iter()
            .map(|(k, _)| k.as_str())
            .collect();
        let hint =
            crate::yaml::nearest(name, &known).map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
        return Err(map.node().error(format!("--var {name}: the scenario has no such key in vars{hint}")));
    }
    let mut sources = Vec::new();
    if let Some(feeders) = map.get("feeders") {
        for (name, node) in feeders.entries()? {
            check_name(name).map_err(|why| node.error(why))?;
            let source = source(name, node, seed, inputs.share)?;
            names.feeder(name, source.feeder.columns().to_vec());
            sources.push(source);
        }
        if sources.len() > crate::script::session::MAX_FEEDERS {
            return Err(feeders.error(format!("more than {} feeders", crate::script::session::MAX_FEEDERS)));
        }
    }
    for key in ["setup", "steps", "sessions", "operations", "teardown"] {
        if let Some(node) = map.get(key) {
            variables(node, &mut names)?;
        }
    }
    map.get("define").map_or(Ok(()), |define| variables_of_each(define, &mut names))?;
    Ok((Arc::new(names), sources))
}

/// Collects the variables that the steps of `node` set.
fn variables(node: &Node, names: &mut Names) -> Result<(), YamlError> {
    if node.is_list() {
        return node.list().iter().try_for_each(|item| variables(item, names));
    }
    if !node.is_map() {
        return Ok(());
    }
    for (key, value) in node.entries()? {
        match key.as_str() {
            "capture" | "set" => {
                for (name, place) in value.entries()? {
                    variable(name, place, names)?;
                }
            }
            "as" => variable(value.text()?, value, names)?,
            "cases" => variables_of_each(value, names)?,
            "json" | "form" | "headers" | "check" | "params" | "command" => {}
            _ => variables(value, names)?,
        }
    }
    Ok(())
}

/// The same for lists of steps whose keys are names: `define`, and the cases of a switch.
fn variables_of_each(node: &Node, names: &mut Names) -> Result<(), YamlError> {
    node.entries()?.iter().try_for_each(|(_, steps)| variables(steps, names))
}

fn variable(name: &str, place: &Node, names: &mut Names) -> Result<(), YamlError> {
    check_name(name).map_err(|why| place.error(why))?;
    if names.texts().iter().any(|(n, _)| n == name) {
        return Err(place.error(format!("\"{name}\" is one of vars, which are constant; choose another name")));
    }
    if names.feeders().iter().any(|(n, _)| n == name) {
        return Err(place.error(format!("\"{name}\" is a feeder; choose another name")));
    }
    names.variable(name);
    Ok(())
}

/// # Errors
/// If `name` can't be a name in a template.
fn check_name(name: &str) -> Result<(), String> {
    let is_good = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !is_good {
        return Err(format!("\"{name}\" is not a name: letters, digits, _ and -, a letter first"));
    }
    if ["env", "secret", "and", "or", "not", "in", "exists"].contains(&name) {
        return Err(format!("\"{name}\" is reserved; choose another name"));
    }
    Ok(())
}

fn source(name: &str, node: &Node, seed: u64, share: Share) -> Result<Source, YamlError> {
    let map = node.map(&["csv", "jsonl", "list", "order", "at_end"])?;
    let feeder = match (map.get("csv"), map.get("jsonl"), map.get("list")) {
        (Some(file), None, None) => {
            let (bytes, path) = read(file)?;
            Feeder::csv(bytes, &path).map_err(|e| file.error(e))?
        }
        (None, Some(file), None) => {
            let (bytes, path) = read(file)?;
            Feeder::jsonl(bytes, &path).map_err(|e| file.error(e))?
        }
        (None, None, Some(list)) => Feeder::jsonl(rows(list)?.into_bytes(), list.file()).map_err(|e| list.error(e))?,
        _ => return Err(node.error("say where the rows are: one of csv: FILE, jsonl: FILE and list: [...]")),
    };
    let orders = [("sequential", Order::Sequential), ("random", Order::Random), ("unique", Order::Unique)];
    let order = map.get("order").map_or(Ok(Order::Sequential), |node| node.one_of("order", &orders))?;
    let ends = [("again", AtEnd::Again), ("fail", AtEnd::Fail), ("stop", AtEnd::Stop)];
    let at_end = match map.get("at_end") {
        None if order == Order::Unique => AtEnd::Fail,
        None => AtEnd::Again,
        Some(node) => match node.one_of("at_end", &ends)? {
            AtEnd::Again if order == Order::Unique => {
                return Err(node.error("unique rows cannot be repeated; use order: sequential"));
            }
            at_end => at_end,
        },
    };
    let drawer =
        Drawer::new(order, at_end, feeder.len(), seed ^ crate::scenario::steps::hash(name), share.index, share.of);
    Ok(Source { name: name.to_owned(), feeder, drawer, drawn: AtomicU64::new(0) })
}

fn read(file: &Node) -> Result<(Vec<u8>, String), YamlError> {
    let path = beside(file.file(), file.text()?);
    let bytes = super::include::read(&path, LARGEST_BYTES).map_err(|why| file.error(why))?;
    Ok((bytes, path))
}

/// Rows given in the scenario, as JSON lines: a plain value is a row with the single column
/// `value`.
fn rows(list: &Node) -> Result<String, YamlError> {
    let mut lines = String::new();
    for row in list.list() {
        let object = if row.is_map() {
            let cells = row.entries()?.iter().map(|(k, v)| Ok((k.clone(), serde_json::Value::from(v.text()?))));
            cells.collect::<Result<serde_json::Map<_, _>, YamlError>>()?
        } else {
            [("value".to_owned(), serde_json::Value::from(row.text()?))].into_iter().collect()
        };
        lines.push_str(&serde_json::Value::Object(object).to_string());
        lines.push('\n');
    }
    Ok(lines)
}
