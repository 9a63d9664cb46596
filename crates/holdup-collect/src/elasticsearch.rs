//! `--watch elasticsearch://HOST:PORT` or `opensearch://HOST:PORT`: a cluster, by one of its nodes. Each
//! sample has the work, thread pools, memory limits and collections of every node, and the state of the
//! cluster, in two requests. Versions, the limits of pools and some settings of indices are settings.
//!
//! It sends requests that only read, and reads no document.

mod address;
mod figures;

use std::collections::BTreeSet;

use holdup_protocol::database::Secret;
use holdup_recording::{Batch, Coverage};
use serde_json::Value;

use self::address::{Account, Address, PASSWORD_VARIABLE, Product};
use self::figures::{Limits, NODES_MAX, at, limits, name, nodes, put_health, put_nodes};
use crate::coverage::{Line as _, part};
use crate::database::login_refused;
use crate::line::Tls;
use crate::options::Options;
use crate::page::TIMEOUT;
use crate::reading::{Out, tell};
use crate::{Collector, ProbeError, ReadError, http};

/// Largest answer accepted: a node takes some 6 kB.
const BODY_BYTES_MAX: u64 = 16 << 20;

/// A node that is slower than this is left out, and the others are read.
const STATS: &str = "/_nodes/stats/indices,thread_pool,indexing_pressure,breaker,jvm,fs/indexing,search,merge,refresh,flush\
    ?timeout=1500ms&filter_path=_nodes.total,_nodes.failed,nodes.*.name,nodes.*.indices,nodes.*.thread_pool,\
    nodes.*.indexing_pressure,nodes.*.breakers,nodes.*.jvm.uptime_in_millis,nodes.*.jvm.mem.heap_*,nodes.*.jvm.gc,\
    nodes.*.fs.total,nodes.*.fs.io_stats.total";

const HEALTH: &str = "/_cluster/health";

const NODES: &str = "/_nodes/thread_pool?timeout=1500ms&filter_path=nodes.*.name,nodes.*.version,nodes.*.thread_pool";

/// Settings of indices that decide when a document is seen, synced and merged; those that an index leaves
/// at the server's default are not in the answer.
const INDICES: &str = "/_all/_settings/index.refresh_interval,index.translog.durability,index.merge.scheduler.*\
    ?flat_settings=true&expand_wildcards=open";

/// Most settings of indices that are kept, in the order of names.
const SETTINGS_MAX: usize = 300;

/// Makes the collector for `elasticsearch://…`.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    Ok(Box::new(Cluster::new(Address::parse(Product::Elasticsearch, rest)?)?))
}

/// Makes the collector for `opensearch://…`.
pub(crate) fn make_opensearch(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    Ok(Box::new(Cluster::new(Address::parse(Product::OpenSearch, rest)?)?))
}

struct Cluster {
    source: String,
    address: Address,
    authorization: Option<Secret>,
    agent: ureq::Agent,
    limits: Limits,
    /// Whether the account may read settings of indices.
    has_indices: bool,
}

/// Why a request has no answer.
#[derive(Debug)]
enum Failure {
    /// Nothing usable answers.
    Lost(String),
    /// The account or key is refused, or missing.
    Login,
    /// The account may not read this.
    NotPermitted(String),
    /// The server's own error.
    Server(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Login => f.write_str("the server refused the login (401)"),
            Self::Lost(why) | Self::NotPermitted(why) | Self::Server(why) => f.write_str(why),
        }
    }
}

impl Cluster {
    fn new(address: Address) -> Result<Self, String> {
        let agent = http::config(TIMEOUT, "application/json").tls_config(address.certificates()?).build().into();
        let authorization = address.authorization();
        let source = address.source();
        Ok(Self { source, address, authorization, agent, limits: Limits::new(), has_indices: true })
    }

    fn ask(&self, path: &str) -> Result<Value, Failure> {
        let authorization = self.authorization.as_ref().map(Secret::reveal);
        let answer = http::get(&self.agent, &self.address.url(path), authorization, BODY_BYTES_MAX);
        let answer = answer.map_err(Failure::Lost)?;
        let reason = || http::said(&answer.body, |body| at(body, "error/reason").or(body.get("error"))?.as_str());
        match answer.status {
            200 => serde_json::from_slice(&answer.body)
                .map_err(|_| Failure::Lost(format!("it answers with {}, not with JSON", http::kind(&answer.body)))),
            401 => Err(Failure::Login),
            403 => Err(Failure::NotPermitted(format!("not allowed (403): {}", reason()))),
            status => Err(Failure::Server(format!("it answers with status {status}: {}", reason()))),
        }
    }

    fn unusable(&self, failure: Failure) -> ProbeError {
        match failure {
            Failure::Login => ProbeError::denied(&self.source, self.refused(&failure)),
            Failure::NotPermitted(why) => ProbeError::MissingGrant {
                source_name: self.source.clone(),
                why,
                grant: self.address.product.grant().to_owned(),
            },
            Failure::Server(why) => ProbeError::unreachable(&self.source, why),
            Failure::Lost(why) => {
                let tls = match self.address.tls {
                    Tls::Off => "and does it take connections without TLS (?tls=verify)?",
                    _ => {
                        "is this its port for TLS, and is its certificate signed by a trusted authority (?tls_ca=PATH)?"
                    }
                };
                ProbeError::unreachable(&self.source, format!("{why}; is the server running there, {tls}"))
            }
        }
    }

    fn refused(&self, failure: &Failure) -> String {
        match &self.address.account {
            Account::None => format!(
                "the server asks for an account (401): {}, with the password in the environment variable {PASSWORD_VARIABLE}, \
                 or ?api_key_env=VAR",
                self.address.with_account()
            ),
            Account::Key(_) => {
                "the server refused the API key (401): is it valid, not expired, and given in its encoded \
                form?"
                    .to_owned()
            }
            Account::Password(user, password) => {
                login_refused(failure, user, !password.reveal().is_empty(), PASSWORD_VARIABLE)
            }
        }
    }

    fn coverage(&self, stats: &Value, indices: Result<Value, Failure>) -> Vec<Coverage> {
        let mut parts = Vec::new();
        let all = stats.get("nodes").and_then(Value::as_object).map_or(0, serde_json::Map::len);
        if all > NODES_MAX {
            let why = format!("{all} nodes; each sample has the {NODES_MAX} with the most tasks");
            parts.push(part(&self.source, "nodes").partial(why));
        }
        if let Err(failure) = indices {
            let grant = self.address.product.grant();
            parts.push(part(&self.source, "index settings").absent(failure.to_string()).enable(grant));
        }
        let mut lines = Coverage::with_parts(&self.source, parts);
        if let (Some(risk), Some(own)) = (self.address.risk(), lines.first_mut()) {
            let before = own.why.take().map_or_else(String::new, |why| format!("{why}; "));
            own.why = Some(format!("{before}{risk}"));
        }
        lines
    }
}

/// Versions of nodes, and settings of indices.
fn settings(nodes_info: &Value, indices: &Value) -> Vec<(String, String)> {
    let version = |(_, node): (String, &Value)| Some(name(node.get("version")?.as_str()?));
    let versions: BTreeSet<String> = nodes(nodes_info).into_iter().filter_map(version).collect();
    let versions = versions.into_iter().collect::<Vec<_>>().join(", ");
    let of_index = |(index, body): (&String, &Value)| -> Vec<(String, String)> {
        let settings = body.get("settings").and_then(Value::as_object).into_iter().flatten();
        let text = |(setting, value): (&String, &Value)| {
            Some((format!("{} of {}", name(setting), name(index)), name(value.as_str()?)))
        };
        settings.filter_map(text).collect()
    };
    let of_indices = indices.as_object().into_iter().flatten();
    let is_own = |(index, _): &(&String, &Value)| index.starts_with('.');
    let of_indices = of_indices.filter(|index| !is_own(index)).flat_map(of_index).take(SETTINGS_MAX);
    std::iter::once(("version".to_owned(), versions)).chain(of_indices).collect()
}

impl Collector for Cluster {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let asked = self.ask(STATS).and_then(|stats| Ok((stats, self.ask(NODES)?)));
        let (stats, info) = asked.map_err(|failure| self.unusable(failure))?;
        if nodes(&stats).is_empty() {
            let why = "it answers with JSON, not with the statistics of Elasticsearch or OpenSearch";
            return Err(ProbeError::unreachable(&self.source, why));
        }
        self.limits = limits(&info);
        let indices = self.ask(INDICES);
        self.has_indices = indices.is_ok();
        Ok(self.coverage(&stats, indices))
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let info = self.ask(NODES).map_err(|failure| ReadError(format!("nodes: {failure}")))?;
        self.limits = limits(&info);
        let mut failures = Vec::new();
        let indices = if self.has_indices { self.ask(INDICES) } else { Ok(Value::Null) };
        let indices = indices.unwrap_or_else(|failure| {
            failures.push(format!("index settings: {failure}"));
            Value::Null
        });
        tell(batch, &self.source, settings(&info, &indices));
        ReadError::all(failures)
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut failures = Vec::new();
        let mut out = Out::new(batch, &self.source);
        let stats = out.read(|| self.ask(STATS)).map_err(|failure| ReadError(format!("nodes: {failure}")))?;
        put_nodes(&stats, &self.limits, &mut out);
        let count = |path| at(&stats, path).and_then(Value::as_u64).unwrap_or(0);
        if count("_nodes/failed") > 0 {
            failures.push(format!("{} of {} nodes did not answer", count("_nodes/failed"), count("_nodes/total")));
        }
        match out.read(|| self.ask(HEALTH)) {
            Ok(health) => put_health(&health, &mut out),
            Err(failure) => failures.push(format!("cluster health: {failure}")),
        }
        ReadError::all(failures)
    }
}
