//! A scenario: which operations, against what, at which rates, watched by whom. Read from YAML (see
//! `docs/scenario.md`, `docs/schema/scenario.schema.json`) or made of the quick form's flags.

pub mod generator;
pub mod http;
mod load;
mod objectives;
pub mod profile;

use std::time::Duration;

use holdup_recording::manifest::Threshold;
use holdup_recording::objective;

pub use self::generator::{Generator, Pace};
pub use self::http::{Http, HttpVersion};
use crate::model::Load;
use crate::schedule::Share;
use crate::yaml::{Node, YamlError};

/// Connections (requests in flight) if the scenario does not say.
pub const DEFAULT_CONNECTIONS: u32 = 50;

/// [`Scenario::timeout`] if the scenario does not say.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Most connections one process is asked to hold.
pub const MAX_CONNECTIONS: u32 = 60_000;

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
    /// What, by weight.
    pub operations: Vec<Operation>,
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

/// `http[s]://host[:port]`, without path or credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Whether it speaks TLS: `https`.
    pub tls: bool,
    /// Host name or address, an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl Target {
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
        Ok((Self { tls, host: host.to_owned(), port }, path.to_owned()))
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
pub const METHODS: [&str; 6] = ["get", "post", "put", "patch", "delete", "head"];

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

    /// Most requests in flight: users of a closed model, else connections times the streams on each.
    pub fn lanes(&self) -> u32 {
        match &self.load {
            Load::Open(_) => self.connections * self.http.streams,
            Load::Closed(closed) => self.shard.count(u64::from(closed.users)) as u32,
        }
    }

    /// Reads a scenario from the text of `file`.
    ///
    /// # Errors
    /// The first thing wrong, with its line and what would be right.
    pub fn parse(text: &str, file: &str) -> Result<Self, YamlError> {
        let root = Node::parse(text, file)?;
        let map = root.map(&["name", "target", "http", "load", "operations", "thresholds", "watch"])?;
        let target_node = map.need("target")?;
        let (target, base_path) = Target::parse(target_node.text()?).map_err(|why| target_node.error(why))?;
        if base_path != "/" {
            return Err(target_node.error("the target is scheme, host and port; paths belong to the operations"));
        }
        let load = map.need("load")?;
        let keys: Vec<&str> = load::KEYS.into_iter().chain(["connections", "timeout", "pace", "open_all"]).collect();
        let load_map = load.map(&keys)?;
        let section = load::parse(load, &keys, file, map.get("operations").is_some())?;
        let operations: Vec<Operation> = match map.get("operations") {
            None if !section.operations.is_empty() => section.operations,
            _ => map.need("operations")?.list().iter().map(operation).collect::<Result<_, _>>()?,
        };
        if operations.is_empty() {
            return Err(map.need("operations")?.error("there must be at least one operation"));
        }
        for (i, operation) in operations.iter().enumerate() {
            if operations[..i].iter().any(|o| o.name == operation.name) {
                return Err(map.need("operations")?.error(format!("two operations are called \"{}\"", operation.name)));
            }
        }
        let names: Vec<String> = operations.iter().map(|o| o.name.clone()).collect();
        let thresholds = objectives::parse(map.get("thresholds"), &names)?;
        let watch = map.get("watch").map_or(&[][..], Node::list);
        Ok(Self {
            name: map.get("name").map_or(Ok("run"), Node::text)?.to_owned(),
            target,
            load: section.load,
            connections: load_map
                .get("connections")
                .map_or(Ok(DEFAULT_CONNECTIONS), |n| n.integer("connections", 1..=MAX_CONNECTIONS))?,
            timeout: load_map.get("timeout").map_or(Ok(DEFAULT_TIMEOUT), positive)?,
            operations,
            thresholds,
            watch: watch.iter().map(|n| n.text().map(str::to_owned)).collect::<Result<_, _>>()?,
            warm_up: section.warm_up,
            shard: Share::WHOLE,
            start_at: None,
            http: map.get("http").map_or(Ok(Http::default()), Http::parse)?,
            generator: Generator {
                pace: load_map.get("pace").map_or(Ok(Pace::default()), Pace::read)?,
                open_all: http::flag(load_map.get("open_all"))?,
                ..Generator::default()
            },
            text: Some(match section.remark {
                Some(remark) => format!("{}\n# {remark}\n", text.trim_end()),
                None => text.to_owned(),
            }),
        })
    }
}

/// A duration that is not 0.
fn positive(node: &Node) -> Result<Duration, YamlError> {
    let length = node.duration()?;
    if length.is_zero() { Err(node.error("must be longer than 0s")) } else { Ok(length) }
}

fn operation(node: &Node) -> Result<Operation, YamlError> {
    let mut keys = vec!["name", "weight", "headers", "body"];
    keys.extend(METHODS);
    let map = node.map(&keys)?;
    let mut methods = METHODS.iter().filter_map(|m| Some((*m, map.get(m)?)));
    let (method, path_node) = methods
        .next()
        .ok_or_else(|| node.error(format!("say what to send: one of {}, e.g. get: /path", METHODS.join(", "))))?;
    if methods.next().is_some() {
        return Err(node.error("more than one method; make two operations of it"));
    }
    let path = path_node.text()?;
    check_path(path).map_err(|why| path_node.error(why))?;
    let mut headers = Vec::new();
    if let Some(list) = map.get("headers") {
        for (name, value) in list.entries()? {
            check_header(name, value.text()?).map_err(|why| value.error(why))?;
            headers.push((name.clone(), value.text()?.to_owned()));
        }
    }
    Ok(Operation {
        name: map.get("name").map_or(Ok(without_query(path)), Node::text)?.to_owned(),
        method: method.to_uppercase(),
        path: path.to_owned(),
        headers,
        body: map.get("body").map(|n| n.text().map(str::to_owned)).transpose()?,
        weight: map.get("weight").map_or(Ok(1), |n| n.integer("weight", 1..=1_000_000))?,
    })
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
            ("name: order", "name: search", "s.yaml:7: operations: two operations are called \"search\""),
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
            (Target { tls: false, host: "::1".into(), port: 81 }, "/x?y".into())
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
