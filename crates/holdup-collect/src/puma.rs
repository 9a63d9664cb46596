//! `--watch puma:http://HOST:PORT?token=T` or `puma:unix:PATH`: Puma's control server and its
//! `/stats`, for one process or a cluster's workers. It records Puma's own names; nothing is
//! derived.
//!
//! Two of them mislead. `running` counts started threads, not busy ones. `backlog` stays 0 while
//! hundreds wait, because with all threads busy Puma leaves connections in the kernel's accept
//! queue (`server:PORT` sees those). A cluster's parent repeats each worker's report from the last
//! 5 s.

use holdup_recording::layouts::puma as layout;
use holdup_recording::metrics::{Metric, puma as metric};
use holdup_recording::{Batch, Labels, clock, files};
use serde::Deserialize;

use crate::endpoint::{self, Endpoint};
use crate::options::Options;
use crate::page::{self, PageError, StatusPage, TIMEOUT};
use crate::prometheus::address::Address as Url;
use crate::reading::Out;
use crate::{Collector, http};

/// Largest answer accepted: a worker takes some 300 bytes.
const BODY_BYTES_MAX: u64 = 1 << 20;

/// Largest number of workers read.
const WORKERS_MAX: usize = 1_000;

const PATH: &str = "/stats";

const EXAMPLE: &str = "puma:http://127.0.0.1:9293?token=… or puma:unix:/run/pumactl.sock (in Puma's configuration: \
    activate_control_app \"tcp://127.0.0.1:9293\", { auth_token: \"…\" })";

/// How to reach the control server.
enum Transport {
    Http { agent: ureq::Agent, url: Url },
    Unix(Endpoint),
}

/// A Puma.
struct Puma {
    way: Transport,
    /// Never output it.
    token: Option<String>,
}

/// The report of one Puma process.
type Status = serde_json::Map<String, serde_json::Value>;

#[derive(Debug, Deserialize)]
struct Worker {
    index: u32,
    pid: u32,
    #[serde(default)]
    last_checkin: String,
    #[serde(default)]
    last_status: Status,
}

/// The whole document, in either mode.
#[derive(Debug, Deserialize)]
struct Stats {
    #[serde(default)]
    worker_status: Vec<Worker>,
    #[serde(flatten)]
    own: Status,
}

/// Makes the collector for `puma:…`, an http URL or a Unix socket.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    Puma::new(rest).map(|(source, puma)| page::collector(source, puma))
}

impl Puma {
    /// The source's name, and the Puma.
    fn new(address: &str) -> Result<(String, Self), String> {
        let (place, query) = address.split_once('?').map_or((address, ""), |(place, query)| (place, query));
        let token = token(query)?;
        if let Some(endpoint @ Endpoint::Unix(_)) = Endpoint::parse(place) {
            return Ok((format!("puma:{endpoint}"), Self { way: Transport::Unix(endpoint), token }));
        }
        let url = Url::parse(place, "/").map_err(|_| format!("expected {EXAMPLE}"))?;
        let base = url.place.trim_end_matches('/');
        let base = base.strip_suffix(PATH).unwrap_or(base).to_owned();
        let host = base.split_once("://").map_or(base.as_str(), |(_, host)| host);
        let source = format!("puma:{host}");
        let url = Url { url: format!("{base}{PATH}"), ..url };
        Ok((source, Self { way: Transport::Http { agent: http::agent(TIMEOUT, "application/json"), url }, token }))
    }
}

/// `token=T`, `token_env=VAR` or `token_file=PATH`.
fn token(query: &str) -> Result<Option<String>, String> {
    let mut token = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let found = match name {
            "token" => value.to_owned(),
            "token_env" => {
                std::env::var(value).map_err(|_| format!("token_env={value}: this environment variable is not set"))?
            }
            "token_file" => {
                let text = files::read_text(value.as_ref(), files::SMALL_BYTES)
                    .map_err(|e| format!("token_file={value}: {e}"))?;
                text.trim_end_matches(['\r', '\n']).to_owned()
            }
            _ => return Err("unknown option; supported: token, token_env, token_file".to_owned()),
        };
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"#&\"<>".contains(&byte);
        if found.is_empty() || !found.bytes().all(is_plain) {
            return Err("the token may contain only letters, digits and characters allowed in a query".to_owned());
        }
        token = Some(found);
    }
    Ok(token)
}

/// One request over a Unix socket.
fn unix(endpoint: &Endpoint, target: &str) -> Result<http::Answer, String> {
    let request =
        format!("GET {target} HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\nConnection: close\r\n\r\n");
    let bytes = endpoint.ask(request.as_bytes(), BODY_BYTES_MAX).map_err(|error| {
        let denied = "run holdup as Puma's user or as root (ls -l shows the owner)";
        endpoint::why(&error, denied, "is Puma running with activate_control_app?", || error.to_string())
    })?;
    http::answer(&bytes).ok_or_else(|| "its answer is not HTTP".to_owned())
}

fn read(body: &[u8]) -> Result<Stats, String> {
    let stats: Stats = serde_json::from_slice(body).map_err(|_| {
        let what = http::kind(body);
        format!(
            "it answers with {what}, not with Puma's stats: is that the control server, not the application? {EXAMPLE}"
        )
    })?;
    let is_stats = ["workers", "pool_capacity", "running"].iter().any(|field| number(&stats.own, field).is_some());
    if !is_stats {
        return Err(format!("its JSON is not Puma's stats; expected {EXAMPLE}"));
    }
    Ok(stats)
}

/// Adds the samples of a control server's document, read at `now` (ns since 1970).
///
/// # Errors
/// If it is not such a document.
pub fn samples(body: &[u8], now: i64, batch: &mut Batch) -> Result<(), String> {
    put(&read(body)?, now, &mut Out::new(batch, "puma:"));
    Ok(())
}

fn put(stats: &Stats, now: i64, out: &mut Out) {
    put_fields(layout::CLUSTER, &stats.own, &Labels::none(), out);
    if number(&stats.own, "workers").is_none() {
        put_fields(layout::PROCESS, &stats.own, &Labels::new([("worker", "0")]), out);
    }
    for worker in stats.worker_status.iter().take(WORKERS_MAX) {
        let labels = Labels::new([("worker", worker.index.to_string()), ("pid", worker.pid.to_string())]);
        put_fields(layout::PROCESS, &worker.last_status, &labels, out);
        // Accurate to a second, as Puma writes it.
        let age_s = clock::parse_rfc3339(&worker.last_checkin).map(|at| (now - at).max(0) as f64 / 1e9);
        out.put_known(&labels, [(metric::LAST_CHECKIN_AGE, age_s)]);
    }
}

fn number(of: &Status, field: &str) -> Option<f64> {
    of.get(field)?.as_f64()
}

fn put_fields(fields: &[(&str, Metric)], of: &Status, labels: &Labels, out: &mut Out) {
    out.put_known(labels, fields.iter().map(|(field, metric)| (*metric, number(of, field))));
}

impl StatusPage for Puma {
    type Figures = Stats;

    fn ask(&self) -> Result<Stats, PageError> {
        // Puma compares the whole query.
        let query = self.token.as_ref().map(|token| format!("?token={token}")).unwrap_or_default();
        let answer = match &self.way {
            Transport::Http { agent, url } => {
                http::get(agent, &format!("{}{query}", url.url), url.authorization.as_deref(), BODY_BYTES_MAX)?
            }
            Transport::Unix(endpoint) => unix(endpoint, &format!("{PATH}{query}"))?,
        };
        match answer.status {
            200 => Ok(read(&answer.body)?),
            401 | 403 if self.token.is_none() => {
                Err(PageError::Denied("it requires its token: add ?token=T or ?token_file=PATH".to_owned()))
            }
            401 | 403 => {
                Err(PageError::Denied("it rejects this token: use auth_token of activate_control_app".to_owned()))
            }
            status => Err(PageError::Other(format!(
                "it answers with status {status}, so it is not Puma's control server; expected {EXAMPLE}"
            ))),
        }
    }

    fn put(stats: &Stats, out: &mut Out) {
        put(stats, clock::now_ns(), out);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn values(body: &str) -> BTreeMap<String, f64> {
        let (mut batch, now) = (Batch::default(), clock::parse_rfc3339("2026-11-22T10:00:07Z").unwrap());
        samples(body.as_bytes(), now, &mut batch).unwrap();
        batch.samples.into_iter().map(|s| (format!("{} {}", s.metric, s.labels), s.value)).collect()
    }

    #[test]
    fn one_process_of_several_versions() {
        let old = values(
            r#"{"started_at":"2026-11-22T09:00:00Z","backlog":0,"running":5,"pool_capacity":0,"max_threads":5}"#,
        );
        assert_eq!(old.len(), 4);
        assert_eq!(old[r#"puma_pool_capacity {"worker":"0"}"#], 0.0);
        let new = values(
            r#"{"started_at":"2026-11-22T09:00:00Z","backlog":0,"running":3,"pool_capacity":3,"busy_threads":2,"backlog_max":1,
                "max_threads":5,"requests_count":17,"reactor_max":0,"versions":{"puma":"7.0.0","ruby":{"engine":"ruby"}}}"#,
        );
        assert_eq!(
            (new[r#"puma_busy_threads {"worker":"0"}"#], new[r#"puma_requests_total {"worker":"0"}"#]),
            (2.0, 17.0)
        );
    }

    #[test]
    fn a_cluster_whose_second_worker_boots() {
        let found = values(
            r#"{"started_at":"2026-11-22T09:00:00Z","workers":2,"phase":0,"booted_workers":1,"old_workers":0,"worker_status":[
                {"started_at":"2026-11-22T09:00:00Z","pid":71,"index":0,"phase":0,"booted":true,"last_checkin":"2026-11-22T10:00:04Z",
                 "last_status":{"backlog":0,"running":5,"pool_capacity":1,"max_threads":5,"requests_count":9}},
                {"started_at":"2026-11-22T09:00:00Z","pid":72,"index":1,"phase":0,"booted":false,"last_checkin":"2026-11-22T10:00:07Z",
                 "last_status":{}}]}"#,
        );
        assert_eq!(found[r#"puma_booted_workers {}"#], 1.0);
        assert_eq!(found[r#"puma_pool_capacity {"pid":"71","worker":"0"}"#], 1.0);
        assert_eq!(found[r#"puma_last_checkin_age_seconds {"pid":"71","worker":"0"}"#], 3.0);
        assert!(!found.contains_key(r#"puma_pool_capacity {"pid":"72","worker":"1"}"#), "a gap, no zero");
    }

    #[test]
    fn other_answers_are_refused_as_stats() {
        assert!(read(b"<html><body>hi").unwrap_err().contains("HTML"));
        assert!(read(b"{}").unwrap_err().contains("not Puma's stats"));
        assert!(read(b"").is_err());
        assert!(read(&b"["[..].repeat(10_000)).is_err());
    }

    #[test]
    fn addresses_and_tokens() {
        for (address, source) in [
            ("http://127.0.0.1:9293?token=s3cret", "puma:127.0.0.1:9293"),
            ("http://127.0.0.1:9293/stats?token=s3cret", "puma:127.0.0.1:9293"),
            ("https://[::1]:9293/", "puma:[::1]:9293"),
            ("unix:/run/puma.sock?token=s3cret", "puma:unix:/run/puma.sock"),
        ] {
            assert_eq!(Puma::new(address).map(|(source, _)| source).as_deref(), Ok(source));
        }
        for bad in [
            "",
            "127.0.0.1:9293",
            "unix:puma.sock",
            "http://h:1?tokn=s3cret",
            "http://h:1?token=",
            "http://h:1?token=s3cret&token=é",
        ] {
            let why = Puma::new(bad).err().unwrap();
            assert!(!why.contains("s3cret"), "{why}");
        }
    }
}
