//! `--watch php-fpm:HOST:PORT?status=/status`, `php-fpm:unix:PATH?status=/status` or
//! `php-fpm:http://HOST/status`: the status page of one PHP-FPM pool, requested over FastCGI as a
//! web server would, or through a web server. It records PHP-FPM's own figures; nothing is derived.
//! The list of requests (`full`) contains client addresses and is not requested.
//!
//! A page on the pool's own socket queues behind other requests when the children are busy, and
//! counts itself as active. PHP 8 has `pm.status_listen` for a separate socket.

mod fastcgi;

use holdup_recording::metrics::php_fpm as metric;
use holdup_recording::{Batch, Labels};
use serde::Deserialize;

use crate::endpoint::{self, Endpoint};
use crate::options::Options;
use crate::page::{self as status_page, PageError, StatusPage, TIMEOUT};
use crate::prometheus::address::Address as Url;
use crate::reading::Out;
use crate::{Collector, http};

/// Largest answer accepted.
const BODY_BYTES_MAX: u64 = 1 << 20;

/// Characters kept of a pool's name.
const NAME_CHARACTERS_MAX: usize = 100;

const EXAMPLE: &str = "php-fpm:127.0.0.1:9000?status=/status, php-fpm:unix:/run/php.sock?status=/status or \
    php-fpm:http://127.0.0.1/status (in the pool's configuration: pm.status_path = /status)";

const OF_ITS_OWN: &str = "when all children are busy, the status page waits with the other requests: pm.status_listen (PHP 8) gives \
    it a separate socket; watch that one";

/// A pool, and how to reach its status page.
enum PhpFpm {
    FastCgi { endpoint: Endpoint, path: String },
    Http { agent: ureq::Agent, url: Url },
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

/// Makes the collector for `php-fpm:…`, which has one of three forms.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    PhpFpm::new(rest).map(|(source, pool)| status_page::collector(source, pool))
}

impl PhpFpm {
    /// The source's name, and the pool.
    fn new(address: &str) -> Result<(String, Self), String> {
        if address.starts_with("http://") || address.starts_with("https://") {
            let mut url = Url::parse(address, "/status").map_err(|_| format!("expected {EXAMPLE}"))?;
            let query = url.url.split_once('?').map(|(_, query)| query.to_owned());
            if !query.as_deref().unwrap_or_default().split('&').any(|word| word == "json") {
                url.url = format!("{}{}json", url.url, if query.is_some() { '&' } else { '?' });
            }
            let place = url.place.split_once("://").map_or(url.place.as_str(), |(_, rest)| rest);
            let source = format!("php-fpm:{place}");
            return Ok((source, Self::Http { agent: http::agent(TIMEOUT, "application/json"), url }));
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
        Ok((format!("php-fpm:{endpoint}"), Self::FastCgi { endpoint, path: path.to_owned() }))
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
        let what = http::kind(body);
        format!("it answers with {what}, not with PHP-FPM's status page as JSON; expected {EXAMPLE}")
    })
}

/// Adds the samples of a FastCGI answer.
///
/// # Errors
/// If it is not FastCGI or not a status page.
pub fn samples(answer: &[u8], batch: &mut Batch) -> Result<(), String> {
    let output = fastcgi::output(answer).ok_or("no FastCGI")?;
    PhpFpm::put(&page(&output, "/status")?, &mut Out::new(batch, "php-fpm:"));
    Ok(())
}

impl StatusPage for PhpFpm {
    type Figures = Status;

    fn ask(&self) -> Result<Status, PageError> {
        Ok(match self {
            Self::FastCgi { endpoint, path } => {
                let answer = endpoint.ask(&fastcgi::request(path, "json"), BODY_BYTES_MAX);
                let bytes = answer.map_err(|error| {
                    let (denied, absent) = ("run holdup as the pool's listen.owner or as root", "is PHP-FPM running?");
                    endpoint::why(&error, denied, absent, || format!("no answer within the time limit; {OF_ITS_OWN}"))
                })?;
                if bytes.is_empty() {
                    return Err("it closes without an answer: does listen.allowed_clients include this address?"
                        .to_owned()
                        .into());
                }
                let output =
                    fastcgi::output(&bytes).ok_or_else(|| format!("its answer is not FastCGI; expected {EXAMPLE}"))?;
                page(&output, path)
            }
            Self::Http { agent, url } => {
                let answer = http::get(agent, &url.url, url.authorization.as_deref(), BODY_BYTES_MAX)?;
                match answer.status {
                    200 => read(&answer.body),
                    status @ (401 | 403) => Err(format!(
                        "it answers with status {status}: allow this address in the web server, or use http://USER:PASSWORD@…"
                    )),
                    status @ 502..=504 => Err(format!("it answers with status {status}; {OF_ITS_OWN}")),
                    status => Err(format!("it answers with status {status}; expected {EXAMPLE}")),
                }
            }
        }?)
    }

    fn put(status: &Status, out: &mut Out) {
        let pool: String = status.pool.chars().take(NAME_CHARACTERS_MAX).collect();
        let values = [
            (metric::ACTIVE_PROCESSES, Some(status.active)),
            (metric::IDLE_PROCESSES, Some(status.idle)),
            (metric::TOTAL_PROCESSES, Some(status.total)),
            (metric::MAX_ACTIVE_PROCESSES, status.active_max),
            (metric::LISTEN_QUEUE, Some(status.queue)),
            // Unix sockets have no known limit: it is reported as 0.
            (metric::LISTEN_QUEUE_LIMIT, status.queue_limit.filter(|limit| *limit > 0.0)),
            (metric::MAX_LISTEN_QUEUE, status.queue_max),
            (metric::MAX_CHILDREN_REACHED, status.reached),
            (metric::ACCEPTED_CONNECTIONS, Some(status.accepted)),
            (metric::SLOW_REQUESTS, status.slow),
        ];
        out.put_known(&Labels::new([("pool", pool)]), values);
    }

    /// As far as they are certain: only a static pool always has all its children.
    fn settings(status: &Status) -> Vec<(&'static str, String)> {
        let mut settings = vec![("pm", status.manager.clone())];
        if status.manager == "static" {
            settings.push(("pm.max_children", status.total.to_string()));
        }
        settings
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
        PhpFpm::put(&status, &mut Out::new(&mut batch, "php-fpm:x"));
        assert_eq!(batch.samples.len(), 9, "the limit of a Unix socket's queue is not told");
        assert!(batch.samples.iter().all(|s| s.labels.get("pool") == Some("www")));
        assert_eq!(PhpFpm::settings(&status), [("pm", "dynamic".to_owned())]);
    }

    #[test]
    fn other_pages_are_refused_with_the_setting() {
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
        let of = |address: &str| PhpFpm::new(address).map(|(source, _)| source);
        assert_eq!(of("127.0.0.1:9000").as_deref(), Ok("php-fpm:127.0.0.1:9000"));
        assert_eq!(of("unix:/run/php.sock?status=/s").as_deref(), Ok("php-fpm:unix:/run/php.sock"));
        let (source, through) = PhpFpm::new("http://me:s3cret@h/status?full").unwrap();
        assert_eq!(source, "php-fpm:h/status");
        assert!(matches!(&through, PhpFpm::Http { url, .. } if url.url == "http://h/status?full&json"));
        for bad in
            ["", "9000", "unix:php.sock", "127.0.0.1:9000?status=s", "127.0.0.1:9000?path=/s", "http://u:s3cret@/"]
        {
            assert!(of(bad).is_err_and(|why| !why.contains("s3cret")), "{bad}");
        }
    }
}
