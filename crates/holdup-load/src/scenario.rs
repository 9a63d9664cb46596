//! A scenario: which operations, against what, at which rates, watched by whom. Read from YAML (see
//! `docs/scenario.md`, `docs/schema/scenario.schema.json`) or made of the quick form's flags.

mod asked;
pub mod generator;
pub mod http;
mod include;
mod load;
mod names;
mod objectives;
pub mod profile;
pub mod search;
mod statement;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use holdup_script::Template;
pub use holdup_script::program::Over;
use holdup_script::program::{Asked, Form, Op, Script};
use holdup_wire::{Address, Dialect, Secret, TlsWish};

use holdup_recording::manifest::Threshold;
use holdup_recording::objective;

use self::asked::Language;
pub use self::generator::{Generator, Pace};
pub use self::http::{Http, HttpVersion};
pub use self::names::Given;
use crate::model::{Closed, Load};
use crate::schedule::Share;
use crate::yaml::{Map, Node, YamlError};

/// Connections (requests in flight) if the scenario does not say.
pub const DEFAULT_CONNECTIONS: u32 = 50;

/// [`Scenario::timeout`] if the scenario does not say.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Most connections one process is asked to hold.
pub const MAX_CONNECTIONS: u32 = 60_000;

/// A set-up takes at most so long.
const LONGEST_SET_UP: Duration = Duration::from_secs(600);

/// Most requests per second that can be asked for.
pub const MAX_RATE: f64 = 10_000_000.0;

/// What to do.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is called.
    pub name: String,
    /// Where to.
    pub target: Target,
    /// How much, when.
    pub load: Load,
    /// Most requests in flight.
    pub connections: u32,
    /// How long a request waits for a free connection before it counts as never sent, and how long, once it
    /// has one, for its response. Two deadlines, because one from the intended start would send requests that
    /// have no time left, and a service that had been slow once would never get to answer any.
    pub timeout: Duration,
    /// What, by weight. With sessions: the kinds of requests they send.
    pub operations: Vec<Operation>,
    /// What sessions do; none if each request is the same as the last of its operation and stands for itself.
    pub sessions: Option<Sessions>,
    /// It is the set-up or the end of another: what its session leaves is kept.
    pub is_set_up: bool,
    /// What the rate of an open model counts.
    pub rate_of: RateOf,
    /// What the search for the knee is asked for, if the load is one.
    pub search: Option<holdup_knee::Config>,
    /// Objectives.
    pub thresholds: Vec<Threshold>,
    /// What to watch meanwhile: addresses as for `--watch`.
    pub watch: Vec<String>,
    /// What of the beginning is left out of the figures.
    pub warm_up: WarmUp,
    /// This process's part of the load.
    pub shard: Share,
    /// When the schedule starts, nanoseconds since the Unix epoch: shards on several machines agree on it. None for
    /// at once.
    pub start_at: Option<i64>,
    /// How requests are sent and responses are taken.
    pub http: Http,
    /// How the load is made.
    pub generator: Generator,
    /// The text it was read from, if any.
    pub text: Option<String>,
}

/// What of the beginning of a run is left out of the figures: caches fill, connections open, code gets compiled.
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
    /// Requests: each moves a session on, or begins one.
    #[default]
    Requests,
    /// Sessions: each sends its further requests when it has been answered and has thought.
    Sessions,
}

/// Sessions of a scenario.
#[derive(Clone, Debug)]
pub struct Sessions {
    /// Their steps, data and names.
    pub script: Arc<Script>,
    /// The first of the script's flows that are the load, by weight, and how many those are; others are set-up.
    pub first: u32,
    /// See `first`.
    pub flows: u32,
    /// The flow that is gone through once before the load.
    pub setup: Option<u32>,
    /// The flow that is gone through once after it.
    pub teardown: Option<u32>,
}

/// `http[s]://host[:port]`, without path or credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Whether it speaks TLS: `https`.
    pub tls: bool,
    /// Host name or address, an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The account and the database, if it is one that speaks SQL.
    pub sql: Option<Arc<Address>>,
}

impl Target {
    /// Whether `address` is one of a database: `mysql://` or `postgres://`.
    pub fn is_database(address: &str) -> bool {
        Address::is_one(address)
    }

    /// Reads the address of a database; a password that it does not hold is taken from the environment.
    ///
    /// # Errors
    /// A message that says what is wrong with it and never repeats credentials.
    pub fn database(address: &str) -> Result<Self, String> {
        let mut address = Address::parse(address).map_err(|why| why.to_string())?;
        if address.password.reveal().is_empty()
            && let Ok(password) = std::env::var(password_variable(address.dialect))
        {
            address.password = Secret::new(password);
        }
        let tls = address.tls == TlsWish::On;
        Ok(Self { tls, host: address.host.clone(), port: address.port, sql: Some(Arc::new(address)) })
    }

    /// Whether it is an address of this machine's loopback.
    pub fn is_local(&self) -> bool {
        self.host == "localhost" || self.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// As it stands in a `Host` header.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == default_port(self.tls) { host } else { format!("{host}:{}", self.port) }
    }

    /// Scheme, host and port.
    pub fn url(&self) -> String {
        if let Some(sql) = &self.sql {
            let database = sql.database.as_deref().map_or_else(String::new, |name| format!("/{name}"));
            let host = if sql.host.contains(':') { format!("[{}]", sql.host) } else { sql.host.clone() };
            return format!("{}://{}@{host}:{}{database}", sql.dialect.name(), sql.user, sql.port);
        }
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }

    /// Splits `http[s]://host[:port][/path]` into target and path (`/` if it has none).
    ///
    /// # Errors
    /// A message that says what is wrong with it and never repeats credentials.
    pub fn parse(url: &str) -> Result<(Self, String), String> {
        let (tls, rest) = match url.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some((scheme, _)) => {
                return Err(format!("unknown scheme \"{scheme}\"; use http:// or https://host:port/path"));
            }
            None if url.contains('@') => return Err("it has no scheme; use http://host:port/path".to_owned()),
            None => return Err(format!("\"{url}\" has no scheme; use http://{url}")),
        };
        let (authority, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
        let default = default_port(tls).to_string();
        if authority.contains('@') {
            return Err("credentials in the URL are not supported; send an Authorization header".to_owned());
        }
        let (host, port) = match authority.strip_prefix('[').and_then(|a| a.split_once(']')) {
            Some((host, "")) => (host, default.as_str()),
            Some((host, rest)) => (host, rest.strip_prefix(':').unwrap_or(rest)),
            None => authority.rsplit_once(':').unwrap_or((authority, default.as_str())),
        };
        if host.is_empty() {
            return Err(format!("\"{url}\" names no host"));
        }
        let port = port.parse().map_err(|_| format!("\"{port}\" is not a port, 1 to 65535"))?;
        Ok((Self { tls, host: host.to_owned(), port, sql: None }, path.to_owned()))
    }
}

fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

/// One kind of request.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// What it is called in tables and reports.
    pub name: String,
    /// `GET`, `POST`, …
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Further header fields in order.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Option<String>,
    /// Share among the operations, relative to the others' weights.
    pub weight: u32,
}

/// Methods a scenario can send, as its keys.
pub const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// Keys of a scenario.
const KEYS: [&str; 16] = [
    "name",
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
];

impl Scenario {
    /// A scenario in which everything else is as if a file did not mention it.
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
            rate_of: RateOf::default(),
            search: None,
            thresholds: Vec::new(),
            watch: Vec::new(),
            warm_up: WarmUp::default(),
            shard: Share::WHOLE,
            start_at: None,
            http: Http::default(),
            generator: Generator::default(),
            text: None,
        }
    }

    /// The scenario that goes once through `flow` of its sessions, its set-up or its end.
    pub fn once(&self, flow: u32) -> Self {
        let mut once = self.clone();
        once.load = Load::Closed(Closed { users: 1, length: LONGEST_SET_UP, iterations: Some(1), ..Closed::default() });
        once.shard = Share::WHOLE;
        once.search = None;
        once.is_set_up = true;
        once.start_at = None;
        if let Some(sessions) = &mut once.sessions {
            (sessions.first, sessions.flows) = (flow, 1);
        }
        once
    }

    /// Which of the operations are part of the load, rather than of what goes before or after it.
    pub fn measured(&self) -> Vec<bool> {
        let Some(sessions) = &self.sessions else { return vec![true; self.operations.len()] };
        let mut measured = vec![false; self.operations.len()];
        let flows = sessions.script.flows.iter().skip(sessions.first as usize).take(sessions.flows as usize);
        for op in flows.flat_map(|flow| &flow.ops) {
            if let Op::Request(request) = op {
                measured[sessions.script.requests[*request as usize].operation as usize] = true;
            }
        }
        measured
    }

    /// Most requests in flight: users of a closed model, else connections times the streams on each.
    pub fn lanes(&self) -> u32 {
        match &self.load {
            Load::Open(_) => self.connections * self.http.streams,
            Load::Closed(closed) => self.shard.count(u64::from(closed.users)) as u32,
        }
    }

    /// Reads a scenario from the text of `file`, with nothing given beside it.
    ///
    /// # Errors
    /// The first thing wrong, with its line and what would be right.
    pub fn parse(text: &str, file: &str) -> Result<Self, YamlError> {
        Self::read(text, file, &Given::default())
    }

    /// Reads a scenario from the text of `file` and what is given beside it.
    ///
    /// # Errors
    /// The first thing wrong, with its line and what would be right.
    pub fn read(text: &str, file: &str, given: &Given) -> Result<Self, YamlError> {
        let mut root = Node::parse(text, file)?;
        let included = include::resolve(&mut root)?;
        let map = root.map(&KEYS)?;
        let target_node = map.need("target")?;
        let address = target_node.text()?;
        let (target, base_path) = if Target::is_database(address) {
            (Target::database(address).map_err(|why| target_node.error(why))?, "/".to_owned())
        } else {
            Target::parse(address).map_err(|why| target_node.error(why))?
        };
        let language = target.sql.as_ref().map_or(Language::Http, |database| Language::Sql(database.dialect));
        if base_path != "/" {
            return Err(target_node.error("the target is scheme, host and port; paths belong to the operations"));
        }
        let load = map.need("load")?;
        let own = ["connections", "timeout", "pace", "open_all", "of"];
        let keys: Vec<&str> = load::KEYS.into_iter().chain(own).collect();
        let load_map = load.map(&keys)?;
        let has_steps = ["operations", "sessions", "steps"].iter().any(|key| map.get(key).is_some());
        let section = load::parse(load, &keys, file, has_steps)?;
        let rate_of = rate_of(&load_map, &section.load)?;
        if target.sql.is_some() {
            statement::check(&map, has_steps)?;
        }
        let (operations, sessions) = match has_steps {
            false if !section.operations.is_empty() => (section.operations, None),
            _ => what(&map, given, language)?,
        };
        let names: Vec<String> = operations.iter().map(|o| o.name.clone()).collect();
        let thresholds = objectives::parse(map.get("thresholds"), &names)?;
        let watch = map.get("watch").map_or(&[][..], Node::list);
        let remark = section.remark.map_or_else(String::new, |remark| format!("# {remark}\n"));
        let vars: String = given.vars.iter().map(|(name, value)| format!("# --var {name}={value}\n")).collect();
        let recorded = match (included.as_str(), remark.as_str(), vars.as_str()) {
            ("", "", "") => text.to_owned(),
            _ => format!("{}\n{included}{remark}{vars}", text.trim_end()),
        };
        let mut http = map.get("http").map_or(Ok(Http::default()), Http::parse)?;
        // Users keep their cookies, unless it is said that they do not.
        http.cookies |=
            sessions.is_some() && target.sql.is_none() && map.get("http").is_none_or(|node| !node.has("cookies"));
        Ok(Self {
            name: map.get("name").map_or(Ok("run"), Node::text)?.to_owned(),
            target,
            load: section.load,
            connections: load_map
                .get("connections")
                .map_or(Ok(DEFAULT_CONNECTIONS), |n| n.integer("connections", 1..=MAX_CONNECTIONS))?,
            timeout: load_map.get("timeout").map_or(Ok(DEFAULT_TIMEOUT), positive)?,
            operations,
            sessions,
            is_set_up: false,
            rate_of,
            search: section.search,
            thresholds,
            watch: watch.iter().map(|n| n.text().map(str::to_owned)).collect::<Result<_, _>>()?,
            warm_up: section.warm_up,
            shard: given.share,
            start_at: None,
            http,
            generator: Generator {
                pace: load_map.get("pace").map_or(Ok(Pace::default()), Pace::read)?,
                open_all: http::flag(load_map.get("open_all"))?,
                ..Generator::default()
            },
            text: Some(recorded),
        })
    }
}

/// `of: requests` or `of: sessions`.
fn rate_of(load: &Map<'_>, model: &Load) -> Result<RateOf, YamlError> {
    let Some(node) = load.get("of") else { return Ok(RateOf::default()) };
    if matches!(model, Load::Closed(_)) {
        return Err(node.error("says what a rate counts, and users have none; remove \"of\""));
    }
    match node.text()? {
        "requests" => Ok(RateOf::Requests),
        "sessions" => Ok(RateOf::Sessions),
        other => Err(node.error(format!("a rate is of requests or of sessions, not of \"{other}\""))),
    }
}

/// The environment variable that holds a database's password, so that it need not be in a file.
pub fn password_variable(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Mysql => "HOLDUP_MYSQL_PASSWORD",
        Dialect::Postgres => "HOLDUP_POSTGRES_PASSWORD",
    }
}

/// What is sent: `operations`, `sessions` or `steps`.
fn what(map: &Map<'_>, given: &Given, language: Language) -> Result<(Vec<Operation>, Option<Sessions>), YamlError> {
    let kinds: Vec<(&str, &Node)> =
        ["operations", "sessions", "steps"].into_iter().filter_map(|key| Some((key, map.get(key)?))).collect();
    let (kind, node) = match kinds[..] {
        [one] => one,
        [] => return Err(map.node().error("say what to send: operations, sessions or steps")),
        [(one, _), (other, node), ..] => {
            return Err(node.error(format!("\"{one}\" and \"{other}\" exclude each other; keep one")));
        }
    };
    let (names, sources) = names::gather(map, given, profile::DEFAULT_SEED)?;
    let mut reader = steps::Reader::new(map, names, sources, language, profile::DEFAULT_SEED)?;
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
                let weight = map.get("weight").map_or(Ok(1), |n| n.integer("weight", 1..=1_000_000))?;
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
    if kind == "operations" && setup.is_none() && teardown.is_none() && script.requests.iter().all(Asked::is_plain) {
        return Ok((operations.into_iter().zip(&script.requests).map(|(o, asked)| plain(o, asked)).collect(), None));
    }
    Ok((operations, Some(Sessions { script: Arc::new(script), first: 0, flows, setup, teardown })))
}

/// An operation whose requests are all the same.
fn plain(operation: Operation, asked: &Asked) -> Operation {
    let Form::Http { path, headers, body, .. } = &asked.form else { return operation };
    let text = |template: &Template| template.constant().unwrap_or_default().to_owned();
    let body = body.as_ref().map(|_| asked.form.constant_body().unwrap_or_default());
    let headers = headers.iter().map(|(name, value)| (name.clone(), text(value))).collect();
    Operation { path: text(path), headers, body, ..operation }
}

/// A duration that is not 0.
fn positive(node: &Node) -> Result<Duration, YamlError> {
    let length = node.duration()?;
    if length.is_zero() { Err(node.error("must be longer than 0s")) } else { Ok(length) }
}

/// A path without its query, which may hold what belongs in no report.
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

/// Reads `[operation] METRIC < VALUE [for WINDOW]`, e.g. `p99 < 500ms`, `search p95 < 1s for 30s`, `errors < 1%`, `rate > 50`.
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
                "s.yaml:13: thresholds[0]: unknown metric \"median\"; there are: p50, p99, p99.9 or any other percentile, max, mean, errors, rate",
            ),
        ];
        for (from, to, expected) in cases {
            assert_eq!(Scenario::parse(&GOOD.replace(from, to), "s.yaml").unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn targets() {
        assert_eq!(
            Target::parse("http://[::1]:81/x?y").unwrap(),
            (Target { tls: false, host: "::1".into(), port: 81, sql: None }, "/x?y".into())
        );
        assert_eq!(Target::parse("http://h").unwrap().0.authority(), "h");
        assert_eq!(Target::parse("https://h").unwrap().0.url(), "https://h");
        assert_eq!(Target::parse("https://h:80").unwrap().0.authority(), "h:80");
        for bad in ["ftp://h", "h:80", "http://u:secret@h/", "u:secret@h/", "http://:80", "http://h:99999"] {
            let why = Target::parse(bad).unwrap_err();
            assert!(!why.contains("secret"), "{why}");
        }
    }
}
