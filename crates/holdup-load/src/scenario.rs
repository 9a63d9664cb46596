//! A scenario: which operations, against what, at which rates, and what to watch. Read from YAML
//! (see `docs/scenario.md`, `docs/schema/scenario.schema.json`) or made from the flags of the quick
//! form.

mod document;
pub mod generator;
pub mod http;
mod include;
mod load;
mod masked_text;
pub mod mix;
mod names;
mod objectives;
pub mod pipeline;
mod probe;
pub mod profile;
mod reading;
mod request;
pub mod search;
mod statement;
mod steps;
mod target;

use std::sync::Arc;
use std::time::Duration;

pub use crate::script::program::EndReason;
use crate::script::program::{Form, Op, Script};
use holdup_recording::manifest::Threshold;
use holdup_recording::objective;
use holdup_recording::pipeline::Stage;

pub use self::generator::{Generator, Pace};
pub use self::http::{Http, HttpVersion, parse_bytes};
pub use self::masked_text::mask;
pub use self::names::Inputs;
pub use self::target::Target;
use crate::model::{Closed, Load};
use crate::schedule::Share;
use crate::yaml::{Node, YamlError};

/// Connections (requests in flight) if the scenario does not say.
pub const DEFAULT_CONNECTIONS: u32 = 50;

/// [`Scenario::timeout`] if the scenario does not say.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Most connections of one process.
pub const MAX_CONNECTIONS: u32 = 60_000;

/// Longest setup.
const LONGEST_SET_UP: Duration = Duration::from_secs(600);

/// Highest rate that can be requested, requests per second.
pub const MAX_RATE: f64 = 10_000_000.0;

/// A scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// The target.
    pub target: Target,
    /// How much load, and when.
    pub load: Load,
    /// Most requests in flight.
    pub connections: u32,
    /// How long a request waits for a free connection before it counts as never sent, and then, how
    /// long it waits for its response. There are two deadlines, because a single one from the
    /// intended start would send requests that have no time left; a service that was slow once
    /// could then never answer any.
    pub timeout: Duration,
    /// The operations, by weight. With sessions: the kinds of requests they send.
    pub operations: Vec<Operation>,
    /// What sessions do; none if each request is independent and equals the last one of its
    /// operation.
    pub sessions: Option<Sessions>,
    /// This is the setup or teardown of another scenario: the variables of its session are kept.
    pub is_set_up: bool,
    /// Weights of the operations, or of the sessions, in each phase that has its own; empty if no
    /// phase has.
    pub mixes: Vec<Option<Vec<u64>>>,
    /// What the rate of an open model counts.
    pub rate_of: RateOf,
    /// The settings of the search for the knee, if the load is one.
    pub search: Option<holdup_knee::Config>,
    /// Objectives.
    pub thresholds: Vec<Threshold>,
    /// What to watch during the run: addresses as for `--watch`.
    pub watch: Vec<String>,
    /// The stages of the pipeline behind the service, in order, if it names them.
    pub pipeline: Vec<Stage>,
    /// Addresses of the health probes during the run, as for `--watch`.
    pub probes: Vec<String>,
    /// How much of the start is left out of the figures.
    pub warm_up: WarmUp,
    /// This process's part of the load.
    pub shard: Share,
    /// When the schedule starts, nanoseconds since the Unix epoch: shards on several machines agree
    /// on it. None for at once.
    pub start_at: Option<i64>,
    /// How requests are sent and responses are taken.
    pub http: Http,
    /// How the load is generated.
    pub generator: Generator,
    /// Whether each request carries its own trace id.
    pub trace: bool,
    /// The text it was read from, if any, without secrets.
    pub text: Option<String>,
}

/// How much of the start of a run is left out of the figures: caches fill, connections open, code
/// is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WarmUp {
    /// As much as the response times show.
    #[default]
    Detect,
    /// Nothing.
    None,
    /// This much.
    For(Duration),
}

/// What the rate of an open model counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateOf {
    /// Requests: each continues a session, or begins one.
    #[default]
    Requests,
    /// Sessions: each sends its further requests when the last was answered and the user has
    /// thought.
    Sessions,
}

/// Sessions of a scenario.
#[derive(Clone, Debug)]
pub struct Sessions {
    /// Their steps, data and names.
    pub script: Arc<Script>,
    /// The first of the script's flows that are the load, by weight, and (below) how many they are;
    /// the others are setup.
    pub first: u32,
    /// See `first`.
    pub flows: u32,
    /// The flow that is played once before the load.
    pub setup: Option<u32>,
    /// The flow that is played once after it.
    pub teardown: Option<u32>,
}

/// One kind of request.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its name in tables and reports.
    pub name: String,
    /// `GET`, `POST`, …
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Further header fields in order.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Option<String>,
    /// Weight among the operations.
    pub weight: u32,
}

/// Methods a scenario can send, as its keys.
pub const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

impl Scenario {
    /// Whether it has transactions that its target may lack: MongoDB's.
    pub fn has_transactions(&self) -> bool {
        let requests = self.sessions.iter().flat_map(|sessions| &sessions.script.requests);
        let mut forms = requests.map(|request| &request.form);
        forms.any(|form| matches!(form, Form::Mongodb { is_transaction: true, .. }))
    }

    /// A scenario with defaults for everything that is not given.
    pub fn new(name: &str, target: Target, load: Load, operations: Vec<Operation>) -> Self {
        Self {
            name: name.to_owned(),
            target,
            load,
            connections: DEFAULT_CONNECTIONS,
            timeout: DEFAULT_TIMEOUT,
            operations,
            sessions: None,
            is_set_up: false,
            mixes: Vec::new(),
            rate_of: RateOf::default(),
            search: None,
            thresholds: Vec::new(),
            watch: Vec::new(),
            pipeline: Vec::new(),
            probes: Vec::new(),
            warm_up: WarmUp::default(),
            shard: Share::WHOLE,
            start_at: None,
            http: Http::default(),
            generator: Generator::default(),
            trace: true,
            text: None,
        }
    }

    /// The scenario that plays `flow` of its sessions once, as setup or teardown.
    pub fn once(&self, flow: u32) -> Self {
        let mut once = self.clone();
        once.load = Load::Closed(Closed { users: 1, length: LONGEST_SET_UP, iterations: Some(1), ..Closed::default() });
        once.shard = Share::WHOLE;
        once.search = None;
        once.mixes = Vec::new();
        once.is_set_up = true;
        once.start_at = None;
        if let Some(sessions) = &mut once.sessions {
            (sessions.first, sessions.flows) = (flow, 1);
        }
        once
    }

    /// Which of the operations are part of the load, rather than of setup or teardown.
    pub fn measured(&self) -> Vec<bool> {
        measured(&self.operations, self.sessions.as_ref())
    }

    /// Most requests in flight: users of a closed model, else connections times the streams on
    /// each.
    pub fn slots(&self) -> u32 {
        match &self.load {
            Load::Open(_) => self.connections * self.http.streams,
            Load::Closed(closed) => self.shard.count(u64::from(closed.users)) as u32,
        }
    }
}

/// Which of `operations` the flows of the load use.
fn measured(operations: &[Operation], sessions: Option<&Sessions>) -> Vec<bool> {
    let Some(sessions) = sessions else { return vec![true; operations.len()] };
    let mut measured = vec![false; operations.len()];
    let flows = sessions.script.flows.iter().skip(sessions.first as usize).take(sessions.flows as usize);
    for op in flows.flat_map(|flow| &flow.ops) {
        if let Op::Request(request) = op {
            measured[sessions.script.requests[*request as usize].operation as usize] = true;
        }
    }
    measured
}

/// A duration that is not 0.
fn positive(node: &Node) -> Result<Duration, YamlError> {
    let length = node.duration()?;
    if length.is_zero() { Err(node.error("must be longer than 0s")) } else { Ok(length) }
}

/// A seed: a whole number.
fn seed(node: &Node) -> Result<u64, YamlError> {
    let text = node.text()?;
    text.parse().map_err(|_| node.error(format!("expected a whole number from 0, found \"{text}\"")))
}

/// A path without its query, which may contain what must not appear in a report.
pub fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or(path)
}

/// # Errors
/// If `path` can't stand in a request line.
pub fn check_path(path: &str) -> Result<(), String> {
    if !path.starts_with('/') {
        return Err(format!("a path begins with /, found \"{path}\""));
    }
    match path.chars().find(|c| c.is_whitespace() || c.is_control() || !c.is_ascii()) {
        Some(c) => Err(format!("{c:?} can't stand in a path; percent-encode it")),
        None => Ok(()),
    }
}

/// # Errors
/// If the pair can't stand in a request head.
pub fn check_header(name: &str, value: &str) -> Result<(), String> {
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)) {
        return Err(format!("\"{name}\" is not a header name"));
    }
    if ["content-length", "transfer-encoding", "connection"].contains(&name.to_lowercase().as_str()) {
        return Err(format!("{name} is set by holdup; remove it"));
    }
    if value.contains(['\r', '\n', '\0']) {
        return Err("a header value can't hold line breaks".to_owned());
    }
    Ok(())
}

/// Reads `[operation] METRIC < VALUE [for WINDOW]`, e.g. `p99 < 500ms`, `search p95 < 1s for 30s`,
/// `errors < 1%`, `rate > 50`.
///
/// # Errors
/// A message that says what is accepted.
pub fn parse_threshold(text: &str, operations: &[Operation]) -> Result<Threshold, String> {
    let names: Vec<&str> = operations.iter().map(|o| o.name.as_str()).collect();
    objective::parse(text, &names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "
name: shop
target: http://127.0.0.1:8080
load:
  steps: {from: 50, to: 300, step: 50, every: 10s}
  connections: 20
operations:
  - {name: search, get: /search?q=a, weight: 3}
  - name: order
    post: /orders
    headers: {Content-Type: application/json}
    body: '{\"id\": 1}'
thresholds: ['p99 < 500ms', 'order errors < 1%']
watch: [host]
";

    #[test]
    fn reads_a_scenario() {
        let s = Scenario::parse(GOOD, "s.yaml").unwrap();
        assert_eq!((s.operations.len(), s.load.phase_names().len(), s.connections), (2, 6, 20));
        assert_eq!(s.operations[1].method, "POST");
        assert_eq!((s.thresholds[0].below, s.thresholds[1].below), (500.0, 0.01));
        assert_eq!(s.timeout, DEFAULT_TIMEOUT);
    }

    #[test]
    fn errors_name_the_line_and_the_way_out() {
        let cases = [
            (
                "  connections: 20",
                "  conections: 20",
                "s.yaml:6: unknown key \"conections\" in load; did you mean \"connections\"?",
            ),
            (
                "  connections: 20",
                "  connections: 0",
                "s.yaml:6: load.connections: 0 is out of range: connections, from 1 to 60000",
            ),
            ("  connections: 20", "  rate: 5", "s.yaml:4: load: \"rate\" and \"steps\" exclude each other; keep one"),
            (
                "every: 10s",
                "every: 10",
                "s.yaml:5: load.steps.every: expected a duration such as 250ms, 20s, 1m30s or 2h, found \"10\"",
            ),
            ("get: /search?q=a", "get: search", "s.yaml:8: operations[0].get: a path begins with /, found \"search\""),
            ("name: order", "name: search", "s.yaml:9: operations[1]: two operations are called \"search\""),
            (
                "target: http://127.0.0.1:8080",
                "target: 127.0.0.1:8080",
                "s.yaml:3: target: \"127.0.0.1:8080\" has no scheme; use http://127.0.0.1:8080",
            ),
            (
                "p99 < 500ms",
                "median < 500ms",
                "s.yaml:13: thresholds[0]: unknown metric \"median\"; known: p50, p99, p99.9 or any other percentile, max, mean, errors, rate",
            ),
        ];
        for (from, to, expected) in cases {
            assert_eq!(Scenario::parse(&GOOD.replace(from, to), "s.yaml").unwrap_err().to_string(), expected);
        }
    }
}
