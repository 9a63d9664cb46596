//! `--watch php-fpm:HOST:PORT?status=/status`, `php-fpm:unix:PATH?status=/status` or
//! `php-fpm:http://HOST/status`: the status page of one PHP-FPM pool, requested over FastCGI as a
//! web server would, or through a web server. It records PHP-FPM's own figures; nothing is derived.
//! The list of requests (`full`) contains client addresses and is not requested.
//!
//! A page on the pool's own socket queues behind other requests when the children are busy, and
//! counts itself as active. PHP 8 has `pm.status_listen` for a separate socket.

mod fastcgi;

use std::io::{ErrorKind, Write as _};
use std::time::{Duration, Instant};

use holdup_recording::{Batch, Coverage, Labels, clock, metrics};
use serde::Deserialize;

use crate::endpoint::Endpoint;
use crate::options::Options;
use crate::prometheus::address::Address as Url;
use crate::reading::{Out, tell};
use crate::{Collector, ProbeError, ReadError, http};

/// Time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Largest answer accepted.
const BODY_BYTES_MAX: u64 = 1 << 20;

/// Characters kept of a pool's name.
const NAME_CHARACTERS_MAX: usize = 100;

const EXAMPLE: &str = "php-fpm:127.0.0.1:9000?status=/status, php-fpm:unix:/run/php.sock?status=/status or \
    php-fpm:http://127.0.0.1/status (in the pool's configuration: pm.status_path = /status)";

const OF_ITS_OWN: &str = "when all children are busy, the status page waits with the other requests: pm.status_listen (PHP 8) gives \
    it a separate socket; watch that one";

/// How to reach the status page.
enum Transport {
    FastCgi { endpoint: Endpoint, path: String },
    Http { agent: ureq::Agent, url: Url },
}

/// A pool as a source.
struct PhpFpm {
    source: String,
    way: Transport,
    /// Names and values from the last answer.
    settings: Vec<(&'static str, String)>,
}

/// The status page as JSON.
#[derive(Debug, Deserialize)]
struct Status {
    pool: String,
    #[serde(rename = "process manager")]
    manager: String,
    #[serde(rename = "accepted conn")]
    accepted: f64,
    #[serde(rename = "listen queue")]
    queue: f64,
    #[serde(rename = "listen queue len")]
    queue_limit: Option<f64>,
    #[serde(rename = "max listen queue")]
    queue_max: Option<f64>,
    #[serde(rename = "idle processes")]
    idle: f64,
    #[serde(rename = "active processes")]
    active: f64,
    #[serde(rename = "total processes")]
    total: f64,
    #[serde(rename = "max active processes")]
    active_max: Option<f64>,
    #[serde(rename = "max children reached")]
    reached: Option<f64>,
    #[serde(rename = "slow requests")]
    slow: Option<f64>,
}

/// Makes the collector for `php-fpm:…`; [`watch::SCHEMES`](crate::watch::SCHEMES) lists it.
///
/// # Errors
/// If the rest has none of the three forms.
pub fn make(address: &str, _options: &Options) -> Result<Box<dyn Collector>, ProbeError> {
    match PhpFpm::new(address.strip_prefix("php-fpm:").unwrap_or_default()) {
        Ok(pool) => Ok(Box::new(pool)),
        Err(why) => Err(ProbeError::BadAddress(format!("--watch php-fpm:…: {why}"))),
    }
}

impl PhpFpm {
    fn new(address: &str) -> Result<Self, String> {
        if address.starts_with("http://") || address.starts_with("https://") {
            let mut url = Url::parse(address, "/status").map_err(|_| format!("expected {EXAMPLE}"))?;
            let query = url.url.split_once('?').map(|(_, query)| query.to_owned());
            if !query.as_deref().unwrap_or_default().split('&').any(|word| word == "json") {
                url.url = format!("{}{}json", url.url, if query.is_some() { '&' } else { '?' });
            }
            let place = url.place.split_once("://").map_or(url.place.as_str(), |(_, rest)| rest);
            let source = format!("php-fpm:{place}");
            return Ok(Self {
                source,
                way: Transport::Http { agent: http::agent(TIMEOUT, "application/json"), url },
                settings: Vec::new(),
            });
        }
        let (place, query) = address.split_once('?').map_or((address, None), |(place, query)| (place, Some(query)));
        let endpoint = Endpoint::parse(place).ok_or_else(|| format!("expected {EXAMPLE}"))?;
        let path = match query {
            None => "/status",
            Some(query) => {
                query.strip_prefix("status=").ok_or("the only option is ?status=PATH, as in pm.status_path")?
            }
        };
        if !path.starts_with('/') || path.len() > 1_000 || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("the status page's path must begin with a slash; expected {EXAMPLE}"));
        }
        let (source, path) = (format!("php-fpm:{endpoint}"), path.to_owned());
        Ok(Self { source, way: Transport::FastCgi { endpoint, path }, settings: Vec::new() })
    }

    fn ask(&self) -> Result<Status, String> {
        match &self.way {
            Transport::FastCgi { endpoint, path } => {
                let answer = endpoint.connect(TIMEOUT).and_then(|mut line| {
                    line.write_all(&fastcgi::request(path, "json"))?;
                    line.rest(BODY_BYTES_MAX)
                });
                let bytes = answer.map_err(|error| match error.kind() {
                    ErrorKind::PermissionDenied => {
                        "permission denied on its socket: run holdup as the pool's listen.owner or as root".to_owned()
                    }
                    ErrorKind::NotFound => "the socket does not exist: is PHP-FPM running?".to_owned(),
                    ErrorKind::TimedOut => format!("no answer within the time limit; {OF_ITS_OWN}"),
                    _ => error.to_string(),
                })?;
                if bytes.is_empty() {
                    return Err(
                        "it closes without an answer: does listen.allowed_clients include this address?".to_owned()
                    );
                }
                let output =
                    fastcgi::output(&bytes).ok_or_else(|| format!("its answer is not FastCGI; expected {EXAMPLE}"))?;
                page(&output, path)
            }
            Transport::Http { agent, url } => {
                let answer = http::get(agent, &url.url, url.authorization.as_deref(), BODY_BYTES_MAX)?;
                match answer.status {
                    200 => read(&answer.body),
                    401 | 403 => Err(format!(
                        "it answers with status {}: allow this address in the web server, or use http://USER:PASSWORD@…",
                        answer.status
                    )),
                    502..=504 => Err(format!("it answers with status {}; {OF_ITS_OWN}", answer.status)),
                    status => Err(format!("it answers with status {status}; expected {EXAMPLE}")),
                }
            }
        }
    }
}

/// Parses the status page from an answer with a CGI header.
fn page(output: &[u8], path: &str) -> Result<Status, String> {
    let end = output.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, body) = end.map_or((&b""[..], output), |end| (&output[..end], &output[end + 4..]));
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    match head.lines().find_map(|line| line.strip_prefix("status:")) {
        // PHP-FPM takes another path for a script, which does not exist or does not end in `.php`.
        Some(status) if status.trim().starts_with("404") || status.trim().starts_with("403") => {
            Err(format!("it has no status page under {path}: set pm.status_path = {path} in the pool's configuration"))
        }
        Some(status) if !status.trim().starts_with("200") => Err(format!("its status page answers{status}")),
        _ => read(body),
    }
}

fn read(body: &[u8]) -> Result<Status, String> {
    serde_json::from_slice(body).map_err(|_| {
        let is_html = body.trim_ascii_start().first() == Some(&b'<');
        let what = if is_html { "HTML" } else { "something else" };
        format!("it answers with {what}, not with PHP-FPM's status page as JSON; expected {EXAMPLE}")
    })
}

/// Adds the samples of a FastCGI answer.
///
/// # Errors
/// If it is not FastCGI or not a status page.
pub fn samples(answer: &[u8], batch: &mut Batch) -> Result<(), String> {
    let output = fastcgi::output(answer).ok_or("no FastCGI")?;
    put(&page(&output, "/status")?, &mut Out::new(batch, "php-fpm:"));
    Ok(())
}

fn put(status: &Status, out: &mut Out) {
    let pool: String = status.pool.chars().take(NAME_CHARACTERS_MAX).collect();
    let pool = Labels::new([("pool", pool)]);
    for (metric, value) in [
        (metrics::php_fpm::ACTIVE_PROCESSES, Some(status.active)),
        (metrics::php_fpm::IDLE_PROCESSES, Some(status.idle)),
        (metrics::php_fpm::TOTAL_PROCESSES, Some(status.total)),
        (metrics::php_fpm::MAX_ACTIVE_PROCESSES, status.active_max),
        (metrics::php_fpm::LISTEN_QUEUE, Some(status.queue)),
        // Unix sockets have no known limit: it is reported as 0.
        (metrics::php_fpm::LISTEN_QUEUE_LIMIT, status.queue_limit.filter(|limit| *limit > 0.0)),
        (metrics::php_fpm::MAX_LISTEN_QUEUE, status.queue_max),
        (metrics::php_fpm::MAX_CHILDREN_REACHED, status.reached),
        (metrics::php_fpm::ACCEPTED_CONNECTIONS, Some(status.accepted)),
        (metrics::php_fpm::SLOW_REQUESTS, status.slow),
    ] {
        if let Some(value) = value {
            out.put(metric, pool.clone(), value);
        }
    }
}

/// Its settings as far as they are certain: only a static pool always has all its children.
fn settings_from(status: &Status) -> Vec<(&'static str, String)> {
    let mut settings = vec![("pm", status.manager.clone())];
    if status.manager == "static" {
        settings.push(("pm.max_children", status.total.to_string()));
    }
    settings
}

impl Collector for PhpFpm {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let status = self.ask().map_err(|why| ProbeError::Unreachable { source_name: self.source.clone(), why })?;
        self.settings = settings_from(&status);
        Ok(Coverage::with_parts(&self.source, Vec::new()))
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        // From the last answer: a full pool may be too busy to answer again.
        tell(batch, &self.source, self.settings.iter().cloned());
        Ok(())
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut out = Out::new(batch, &self.source);
        let (begun_at, begun) = (clock::now_ns(), Instant::now());
        let status = self.ask().map_err(ReadError)?;
        out.set_window(begun_at, begun.elapsed().as_nanos() as i64);
        put(&status, &mut out);
        self.settings = settings_from(&status);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = r#"{"pool":"www","process manager":"dynamic","start time":1,"start since":2,"accepted conn":9,"listen queue":1,
        "max listen queue":4,"listen queue len":0,"idle processes":1,"active processes":2,"total processes":3,
        "max active processes":3,"max children reached":1,"slow requests":0}"#;

    #[test]
    fn a_pool_that_grows() {
        let (mut batch, status) = (Batch::default(), read(OLD.as_bytes()).unwrap());
        put(&status, &mut Out::new(&mut batch, "php-fpm:x"));
        assert_eq!(batch.samples.len(), 9, "the limit of a Unix socket's queue is not told");
        assert!(batch.samples.iter().all(|s| s.labels.get("pool") == Some("www")));
        assert_eq!(settings_from(&status), [("pm", "dynamic".to_owned())]);
    }

    #[test]
    fn what_is_no_status_page() {
        let said = |output: &str| page(output.as_bytes(), "/status").unwrap_err();
        assert!(
            said("Status: 404 Not Found\r\nContent-type: text/html\r\n\r\nFile not found.\n")
                .contains("pm.status_path = /status")
        );
        assert!(said("Content-type: text/html\r\n\r\n<html>").contains("HTML"));
        assert!(said("").contains("something else"));
        assert!(page(format!("Content-Type: application/json\r\n\r\n{OLD}").as_bytes(), "/status").is_ok());
    }

    #[test]
    fn addresses() {
        let of = |address: &str| PhpFpm::new(address).map(|it| it.source);
        assert_eq!(of("127.0.0.1:9000").as_deref(), Ok("php-fpm:127.0.0.1:9000"));
        assert_eq!(of("unix:/run/php.sock?status=/s").as_deref(), Ok("php-fpm:unix:/run/php.sock"));
        let through = PhpFpm::new("http://me:s3cret@h/status?full").unwrap();
        assert_eq!(through.source, "php-fpm:h/status");
        assert!(matches!(&through.way, Transport::Http { url, .. } if url.url == "http://h/status?full&json"));
        for bad in
            ["", "9000", "unix:php.sock", "127.0.0.1:9000?status=s", "127.0.0.1:9000?path=/s", "http://u:s3cret@/"]
        {
            assert!(of(bad).is_err_and(|why| !why.contains("s3cret")), "{bad}");
        }
    }
}
