//! `--watch uwsgi:HOST:PORT` or `uwsgi:unix:PATH`: uWSGI's stats server, which sends a JSON
//! document to each client that connects. It records uWSGI's own names; nothing is derived. The
//! document also contains the variables of each running request, cookies included: they are not
//! read.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use holdup_recording::{Batch, Coverage, Labels, clock, metrics};
use serde::Deserialize;

use crate::endpoint::Endpoint;
use crate::options::Options;
use crate::reading::Out;
use crate::{Collector, ProbeError, ReadError};

/// Time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Largest answer accepted: a core with a running request takes some kilobytes.
const BODY_BYTES_MAX: u64 = 16 << 20;

/// Largest number of workers read.
const WORKERS_MAX: usize = 1_000;

const EXAMPLE: &str =
    "uwsgi:127.0.0.1:1717 or uwsgi:unix:/run/uwsgi-stats.sock (in uWSGI's configuration: stats = 127.0.0.1:1717)";

/// A stats server as a source.
struct Uwsgi {
    endpoint: Endpoint,
}

#[derive(Debug, Deserialize)]
struct Stats {
    listen_queue: f64,
    listen_queue_errors: Option<f64>,
    #[serde(default)]
    sockets: Vec<Socket>,
    workers: Vec<Worker>,
}

#[derive(Debug, Deserialize)]
struct Socket {
    #[serde(default)]
    max_queue: f64,
}

#[derive(Debug, Deserialize)]
struct Worker {
    id: u32,
    pid: u32,
    status: String,
    requests: f64,
    exceptions: Option<f64>,
    harakiri_count: Option<f64>,
    respawn_count: Option<f64>,
    /// Microseconds.
    running_time: Option<f64>,
    /// Microseconds.
    avg_rt: Option<f64>,
    #[serde(default)]
    cores: Vec<Core>,
}

/// One thread, or one green thread, of a worker.
#[derive(Debug, Deserialize)]
struct Core {
    /// 0 or 1.
    #[serde(default)]
    in_request: f64,
}

/// Makes the collector for `uwsgi:…`; [`watch::SCHEMES`](crate::watch::SCHEMES) lists it.
///
/// # Errors
/// If the rest is neither host and port nor a Unix socket.
pub fn make(address: &str, _options: &Options) -> Result<Box<dyn Collector>, ProbeError> {
    match Endpoint::parse(address.strip_prefix("uwsgi:").unwrap_or_default()) {
        Some(endpoint) => Ok(Box::new(Uwsgi { endpoint })),
        None => Err(ProbeError::BadAddress(format!("--watch uwsgi:…: expected {EXAMPLE}"))),
    }
}

impl Uwsgi {
    fn ask(&self) -> Result<Stats, String> {
        let answer = self.endpoint.connect(TIMEOUT).and_then(|mut line| line.rest(BODY_BYTES_MAX));
        let body = answer.map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => {
                "permission denied on its socket: run holdup as uWSGI's user or as root".to_owned()
            }
            ErrorKind::NotFound => "the socket does not exist: is uWSGI running, with stats = …?".to_owned(),
            ErrorKind::TimedOut => {
                format!("it sends nothing on connecting: it is busy, or not uWSGI's stats server; expected {EXAMPLE}")
            }
            _ => error.to_string(),
        })?;
        read(document(&body))
    }
}

/// With `stats-http` the document follows an HTTP head.
fn document(bytes: &[u8]) -> &[u8] {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").filter(|_| bytes.starts_with(b"HTTP/"));
    end.map_or(bytes, |end| &bytes[end + 4..])
}

fn read(body: &[u8]) -> Result<Stats, String> {
    serde_json::from_slice(body).map_err(|error| {
        let what =
            if body.is_empty() { "nothing".to_owned() } else { format!("something else (line {})", error.line()) };
        format!("it answers with {what}, not with uWSGI's stats; expected {EXAMPLE}")
    })
}

/// Adds the samples of a stats server's answer.
///
/// # Errors
/// If it is not such an answer.
pub fn samples(answer: &[u8], batch: &mut Batch) -> Result<(), String> {
    put(&read(document(answer))?, &mut Out::new(batch, "uwsgi:"));
    Ok(())
}

fn put(stats: &Stats, out: &mut Out) {
    out.put_plain(metrics::uwsgi::LISTEN_QUEUE, stats.listen_queue);
    // The master reads it once a second: until then, and for Unix sockets, it is 0.
    let limit: f64 = stats.sockets.iter().map(|socket| socket.max_queue).sum();
    if limit > 0.0 {
        out.put_plain(metrics::uwsgi::LISTEN_QUEUE_LIMIT, limit);
    }
    if let Some(errors) = stats.listen_queue_errors {
        out.put_plain(metrics::uwsgi::LISTEN_QUEUE_ERRORS, errors);
    }
    // A cheap worker is not running.
    for worker in stats.workers.iter().filter(|worker| worker.status != "cheap").take(WORKERS_MAX) {
        let labels = Labels::new([("worker", worker.id.to_string()), ("pid", worker.pid.to_string())]);
        let busy_cores = worker.cores.iter().filter(|core| core.in_request > 0.0).count() as f64;
        let seconds = |us: Option<f64>| us.map(|us| us / 1e6);
        for (metric, value) in [
            (metrics::uwsgi::WORKER_BUSY, Some(f64::from(u8::from(worker.status == "busy")))),
            (metrics::uwsgi::WORKER_CORES, Some(worker.cores.len() as f64)),
            (metrics::uwsgi::WORKER_BUSY_CORES, Some(busy_cores)),
            (metrics::uwsgi::REQUESTS, Some(worker.requests)),
            (metrics::uwsgi::EXCEPTIONS, worker.exceptions),
            (metrics::uwsgi::HARAKIRI, worker.harakiri_count),
            (metrics::uwsgi::RESPAWNS, worker.respawn_count),
            (metrics::uwsgi::RUNNING_TIME, seconds(worker.running_time)),
            (metrics::uwsgi::AVERAGE_RESPONSE, seconds(worker.avg_rt)),
        ] {
            if let Some(value) = value {
                out.put(metric, labels.clone(), value);
            }
        }
    }
}

impl Collector for Uwsgi {
    fn source(&self) -> String {
        format!("uwsgi:{}", self.endpoint)
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        self.ask().map_err(|why| ProbeError::Unreachable { source_name: self.source(), why })?;
        Ok(Coverage::with_parts(&self.source(), Vec::new()))
    }

    fn settings(&mut self, _batch: &mut Batch) -> Result<(), ReadError> {
        // uWSGI reports none.
        Ok(())
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let source = self.source();
        let mut out = Out::new(batch, &source);
        let (begun_at, begun) = (clock::now_ns(), Instant::now());
        let stats = self.ask().map_err(ReadError)?;
        out.set_window(begun_at, begun.elapsed().as_nanos() as i64);
        put(&stats, &mut out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"{"version":"2.0.21","listen_queue":3,"listen_queue_errors":1,"sockets":[{"name":"a","queue":3,"max_queue":8}],
        "workers":[
        {"id":1,"pid":71,"requests":9,"exceptions":1,"harakiri_count":2,"status":"busy","running_time":1500000,"respawn_count":1,"avg_rt":250000,
         "apps":[],"cores":[{"id":0,"in_request":1,"vars":["HTTP_COOKIE=s3cret"]},{"id":1,"in_request":0,"vars":[]}]},
        {"id":2,"pid":0,"requests":0,"status":"cheap","cores":[]}]}"#;

    #[test]
    fn a_worker_with_two_threads() {
        let mut batch = Batch::default();
        samples(TWO.as_bytes(), &mut batch).unwrap();
        assert!(!format!("{batch:?}").contains("s3cret"));
        let of = |metric: &str| {
            let found: Vec<f64> = batch.samples.iter().filter(|s| s.metric == metric).map(|s| s.value).collect();
            assert_eq!(found.len(), 1, "{metric}");
            found[0]
        };
        assert_eq!((of("uwsgi_listen_queue"), of("uwsgi_listen_queue_limit")), (3.0, 8.0));
        assert_eq!((of("uwsgi_worker_busy"), of("uwsgi_worker_busy_cores"), of("uwsgi_worker_cores")), (1.0, 1.0, 2.0));
        assert_eq!((of("uwsgi_running_time_seconds_total"), of("uwsgi_average_response_seconds")), (1.5, 0.25));
    }

    #[test]
    fn what_is_no_stats_and_a_head_before_it() {
        for bad in ["", "{}", "<html>", "{\"listen_queue\":\"s3cret\"}"] {
            assert!(!read(bad.as_bytes()).unwrap_err().contains("s3cret"));
        }
        let with_head = format!("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{TWO}").into_bytes();
        assert!(read(document(&with_head)).is_ok());
    }
}
