//! Reads the steps of sessions and compiles them into a program.

mod loops;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::script::program::{Flow, Op, RequestSpec, Script, Source, Think};
use crate::script::{Condition, Names, Slot, Subjects, Template};

use super::request::{self, Language};
use super::{METHODS, Operation, positive};
use crate::yaml::{Map, Node, YamlError, hint, nearest, parse_duration};

/// Deepest nesting of steps.
const DEEPEST: usize = 64;

/// Most steps of a scenario; those of `define` count at each call, because nested calls multiply.
const MOST: usize = 100_000;

/// What a step does, and the keys that are allowed beside it.
const STEPS: [(&str, &[&str]); 16] = [
    ("think", &[]),
    ("pace", &[]),
    ("repeat", &["steps", "as"]),
    ("while", &["steps"]),
    ("during", &["steps"]),
    ("for_each", &["steps", "as"]),
    ("retry", &["steps"]),
    ("if", &["steps", "else"]),
    ("switch", &["cases", "else"]),
    ("choose", &[]),
    ("in_turn", &[]),
    ("group", &["steps"]),
    ("set", &[]),
    ("feed", &[]),
    ("call", &[]),
    ("end", &[]),
];

/// Reads the steps of sessions.
pub struct Reader<'a> {
    names: Arc<Names>,
    language: Language,
    /// Header fields of every request.
    headers: &'a [(String, Node)],
    define: &'a [(String, Node)],
    /// Operations in the order in which they are first used.
    pub operations: Vec<Operation>,
    script: Script,
    groups: Vec<String>,
    calls: Vec<String>,
    depth: usize,
    count: usize,
}

impl<'a> Reader<'a> {
    /// For the scenario `map`.
    ///
    /// # Errors
    /// If its `headers` or `define` are not maps.
    pub fn new(
        map: &Map<'a>,
        names: Arc<Names>,
        sources: Vec<Source>,
        language: Language,
        seed: u64,
    ) -> Result<Self, YamlError> {
        let entries = |key| map.get(key).map_or(Ok(&[][..]), Node::entries);
        Ok(Self {
            script: Script::new(Arc::clone(&names), sources, seed),
            names,
            language,
            headers: entries("headers")?,
            define: entries("define")?,
            operations: Vec::new(),
            groups: Vec::new(),
            calls: Vec::new(),
            depth: 0,
            count: 0,
        })
    }

    /// Number of flows read so far.
    pub fn flows(&self) -> u32 {
        self.script.flows.len() as u32
    }

    /// The finished script.
    pub fn script(self) -> (Script, Vec<Operation>) {
        (self.script, self.operations)
    }

    /// A flow of one request: an entry of `operations`.
    ///
    /// # Errors
    /// The first mistake, with its line and what would be right.
    pub fn operation(&mut self, node: &Node) -> Result<(), YamlError> {
        let mut keys = vec!["weight"];
        keys.extend(self.language.keys());
        self.misplaced(node)?;
        let map = node.map(&keys)?;
        let weight = map.get("weight").map_or(Ok(1), |n| n.integer("weight", 0..=super::mix::MAX_WEIGHT))?;
        let before = self.operations.len();
        let spec = self.read_spec(node, &map)?;
        if self.operations.len() == before {
            let name = &self.operations[spec.operation as usize].name;
            return Err(node.error(format!("two operations are called \"{name}\"")));
        }
        self.operations[before].weight = weight;
        let name = self.operations[before].name.clone();
        self.script.requests.push(spec);
        let ops = vec![Op::Request(self.script.requests.len() as u32 - 1)];
        self.script.flows.push(Flow { name, weight, ops, counters: 0 });
        Ok(())
    }

    /// Reads a flow, the list `steps`, called `name`; returns its index.
    ///
    /// # Errors
    /// The first mistake, with its line and what would be right.
    pub fn flow(&mut self, name: &str, weight: u32, steps: &Node) -> Result<u32, YamlError> {
        let mut flow = Flow { name: name.to_owned(), weight, ..Flow::default() };
        self.steps(steps, &mut flow)?;
        if !flow.ops.iter().any(|op| matches!(op, Op::Request(_))) {
            return Err(steps.error("no step sends anything; add one, e.g. - get: /path"));
        }
        self.script.flows.push(flow);
        Ok(self.script.flows.len() as u32 - 1)
    }

    fn steps(&mut self, list: &Node, flow: &mut Flow) -> Result<(), YamlError> {
        if list.is_empty() || list.list().is_empty() {
            return Err(list.error("there must be at least one step"));
        }
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(list.error(format!("steps are nested more than {DEEPEST} deep")));
        }
        self.count += list.list().len();
        if self.count > MOST {
            return Err(list.error(format!("more than {MOST} steps in total, counting each call of a define")));
        }
        for step in list.list() {
            self.step(step, flow)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn step(&mut self, step: &Node, flow: &mut Flow) -> Result<(), YamlError> {
        if !step.is_map() {
            return Err(step.error("a step is a key and what belongs to it, e.g. get: /path or think: 2s"));
        }
        if let Some((kind, beside)) = STEPS.iter().find(|(kind, _)| step.has(kind)) {
            let mut keys = vec![*kind];
            keys.extend(*beside);
            let map = step.map(&keys)?;
            return self.control(kind, map.need(kind)?, &map, flow);
        }
        self.misplaced(step)?;
        let keys = self.language.keys();
        if !self.language.starts().iter().any(|key| step.has(key)) {
            return Err(self.unknown_step(step, &keys));
        }
        let spec = self.read_spec(step, &step.map(&keys)?)?;
        self.script.requests.push(spec);
        flow.ops.push(Op::Request(self.script.requests.len() as u32 - 1));
        Ok(())
    }

    /// The error for a key that belongs to the other kind of target.
    fn misplaced(&self, node: &Node) -> Result<(), YamlError> {
        for (key, value) in node.entries().unwrap_or_default() {
            match (self.language, key.as_str()) {
                (Language::Http, "query" | "transaction") => {
                    let way_out = "mysql://user@host/database or postgres://user@host/database";
                    return Err(value.error(format!("statements need a database as target: {way_out}")));
                }
                (Language::Http | Language::Sql(_), "command") => {
                    return Err(value.error("commands are for MongoDB: target: mongodb://host/database"));
                }
                (Language::Mongodb { .. }, key) if key == "query" || METHODS.contains(&key) => {
                    return Err(value.error("the target is MongoDB; send commands instead: command: {find: orders}"));
                }
                (Language::Sql(_), method) if METHODS.contains(&method) => {
                    return Err(value.error("the target is a database; send statements instead: query: SELECT ..."));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn unknown_step(&self, step: &Node, keys: &[&str]) -> YamlError {
        let kinds: Vec<&str> =
            self.language.starts().iter().copied().chain(STEPS.iter().map(|(kind, _)| *kind)).collect();
        for (key, node) in step.entries().unwrap_or_default() {
            if !keys.contains(&key.as_str())
                && let Some(near) = nearest(key, &kinds)
            {
                return node.error(format!("unknown step \"{key}\"; did you mean \"{near}\"?"));
            }
        }
        step.error(format!("the step has no action; use one of: {}", kinds.join(", ")))
    }

    fn control(&mut self, kind: &str, node: &Node, map: &Map<'_>, flow: &mut Flow) -> Result<(), YamlError> {
        match kind {
            "think" => flow.ops.push(Op::Think(think(node)?)),
            "pace" => {
                let counter = counter(flow);
                flow.ops.push(Op::Pace { counter, length: positive(node)? });
            }
            "repeat" => self.repeat(node, map, flow)?,
            "while" => self.repeat_while(node, map, flow)?,
            "during" => {
                let length = positive(node)?;
                let counter = counter(flow);
                self.rounds(map, flow, counter, |exit| Op::During { counter, length, exit })?;
            }
            "for_each" => {
                let (list, item) = (self.slot(node)?, self.slot(map.need("as")?)?);
                let counter = counter(flow);
                self.rounds(map, flow, counter, |exit| Op::Each { counter, list, item, exit })?;
            }
            "retry" => self.retry(node, map, flow)?,
            "if" => self.only_if(node, map, flow)?,
            "switch" => self.switch(node, map, flow)?,
            "choose" | "in_turn" => self.branches(kind, node, flow)?,
            "group" => {
                self.groups.push(node.text()?.to_owned());
                self.steps(map.need("steps")?, flow)?;
                self.groups.pop();
            }
            "set" => {
                for (name, value) in node.entries()? {
                    let template = self.template(value, value.text()?)?;
                    let slot = self.names.slot(name).ok_or_else(|| value.error("unknown variable"))?;
                    flow.ops.push(Op::Set(slot, template));
                }
            }
            "feed" => {
                let name = node.text()?;
                let feeders: Vec<&str> = self.names.feeders().iter().map(|(n, _)| n.as_str()).collect();
                let index = feeders.iter().position(|n| *n == name);
                let index = index.ok_or_else(|| node.error(unknown("feeder", name, &feeders)))?;
                flow.ops.push(Op::Feed(index as u32));
            }
            "call" => self.call(node, flow)?,
            _ => match node.text()? {
                "session" => flow.ops.push(Op::End),
                "run" => flow.ops.push(Op::EndRun),
                other => return Err(node.error(format!("\"{other}\" can't be ended; use session or run"))),
            },
        }
        Ok(())
    }

    /// The steps of the first case that matches the value, else those of `else`: one condition
    /// after the other.
    fn switch(&mut self, node: &Node, map: &Map<'_>, flow: &mut Flow) -> Result<(), YamlError> {
        let text = node.text()?.trim();
        let value = if text.contains("${") { text.to_owned() } else { format!("${{{text}}}") };
        if value.contains(['(', '"', '\\']) {
            return Err(node.error("a switch needs a variable or a feeder's column, e.g. switch: kind; set one before"));
        }
        let cases = map.need("cases")?;
        if cases.entries()?.is_empty() {
            return Err(cases.error("there must be at least one case, e.g. book: [{get: /book}]"));
        }
        let mut leaves = Vec::new();
        for (case, steps) in cases.entries()? {
            let quoted = case.replace('\\', "\\\\").replace('"', "\\\"").replace("${", "$${");
            let condition = self.condition(node, &format!("\"{value}\" == \"{quoted}\""))?;
            let start = flow.ops.len();
            flow.ops.push(Op::Jump(0));
            if !steps.list().is_empty() {
                self.steps(steps, flow)?;
            }
            leaves.push(flow.ops.len());
            flow.ops.push(Op::Jump(0));
            flow.ops[start] = Op::Unless(condition, flow.ops.len() as u32);
        }
        if let Some(other) = map.get("else") {
            self.steps(other, flow)?;
        }
        let after = flow.ops.len() as u32;
        leaves.into_iter().for_each(|at| flow.ops[at] = Op::Jump(after));
        Ok(())
    }

    fn branches(&mut self, kind: &str, node: &Node, flow: &mut Flow) -> Result<(), YamlError> {
        if node.list().is_empty() {
            return Err(node.error("there must be at least one branch, e.g. - {steps: [...]}"));
        }
        let start = flow.ops.len();
        flow.ops.push(Op::Jump(0));
        let (mut places, mut ends, mut sum, mut leaves) = (Vec::new(), Vec::new(), 0, Vec::new());
        for branch in node.list() {
            let keys: &[&str] = if kind == "choose" { &["weight", "steps"] } else { &["steps"] };
            let map = branch.map(keys)?;
            let weight: u32 = map.get("weight").map_or(Ok(1), |n| n.integer("weight", 1..=1_000_000))?;
            sum += weight;
            ends.push(sum);
            places.push(flow.ops.len() as u32);
            // A branch may do nothing: the rest up to 100 %.
            if let Some(steps) = map.get("steps").filter(|steps| !steps.list().is_empty()) {
                self.steps(steps, flow)?;
            }
            leaves.push(flow.ops.len());
            flow.ops.push(Op::Jump(0));
        }
        let after = flow.ops.len() as u32;
        leaves.into_iter().for_each(|at| flow.ops[at] = Op::Jump(after));
        flow.ops[start] = if kind == "choose" {
            Op::Choose(ends, places)
        } else {
            self.script.turns.push(AtomicU64::new(0));
            Op::InTurn(self.script.turns.len() as u32 - 1, places)
        };
        Ok(())
    }

    fn call(&mut self, node: &Node, flow: &mut Flow) -> Result<(), YamlError> {
        let name = node.text()?;
        let names: Vec<&str> = self.define.iter().map(|(n, _)| n.as_str()).collect();
        let found = self.define.iter().find(|(n, _)| n == name);
        let (_, steps) = found.ok_or_else(|| node.error(unknown("define", name, &names)))?;
        if self.calls.iter().any(|called| called == name) {
            return Err(node.error(format!("{name} calls itself: {} calls {name}", self.calls.join(" calls "))));
        }
        self.calls.push(name.to_owned());
        self.steps(steps, flow)?;
        self.calls.pop();
        Ok(())
    }

    fn read_spec(&mut self, node: &Node, map: &Map<'_>) -> Result<RequestSpec, YamlError> {
        let mut read = request::read(node, map, self.language, &self.names, self.headers)?;
        if !self.groups.is_empty() {
            read.name = format!("{}/{}", self.groups.join("/"), read.name.trim_start_matches('/'));
        }
        let found = self.operations.iter().position(|o| o.name == read.name);
        read.spec.name.clone_from(&read.name);
        read.spec.operation = found.unwrap_or(self.operations.len()) as u32;
        if found.is_none() {
            self.operations.push(Operation {
                name: read.name,
                method: read.method,
                path: read.path,
                headers: Vec::new(),
                body: None,
                weight: 1,
            });
        }
        Ok(read.spec)
    }

    fn template(&self, node: &Node, text: &str) -> Result<Template, YamlError> {
        Template::parse(text, &self.names).map_err(|e| node.error(e))
    }

    fn condition(&self, node: &Node, text: &str) -> Result<Condition, YamlError> {
        Condition::parse(text, &self.names, Subjects::None).map_err(|e| node.error(e))
    }

    fn slot(&self, node: &Node) -> Result<Slot, YamlError> {
        let name = node.text()?;
        let known: Vec<&str> = self.names.variables().iter().map(String::as_str).collect();
        self.names.slot(name).ok_or_else(|| node.error(unknown("variable", name, &known)))
    }
}

fn counter(flow: &mut Flow) -> u32 {
    flow.counters += 1;
    flow.counters - 1
}

fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    format!("no {what} is called \"{name}\"; {}", hint(name, known))
}

/// `2s`, `1s..3s`, `~2s`.
fn think(node: &Node) -> Result<Think, YamlError> {
    let text = node.text()?;
    let length =
        |text: &str| -> Result<Duration, YamlError> { parse_duration(text.trim()).map_err(|why| node.error(why)) };
    if let Some(mean) = text.strip_prefix('~') {
        return Ok(Think::Exponential(length(mean)?));
    }
    let Some((from, to)) = text.split_once("..") else { return Ok(Think::Fixed(length(text)?)) };
    let (from, to) = (length(from)?, length(to)?);
    if from > to {
        return Err(node.error(format!("the first duration of \"{text}\" is longer than the second; swap them")));
    }
    Ok(Think::Uniform(from, to))
}

/// FNV-1a: a seed for each name.
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
