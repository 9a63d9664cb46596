//! `--watch uwsgi:HOST:PORT` or `uwsgi:unix:PATH`: uWSGI's stats server, which sends a JSON
//! document to each client that connects. It records uWSGI's own names; nothing is derived. The
//! document also contains the variables of each running request, cookies included: they are not
//! read.

use holdup_recording::metrics::uwsgi as metric;
use holdup_recording::{Batch, Labels};
use serde::Deserialize;

use crate::Collector;
use crate::endpoint::{self, Endpoint};
use crate::options::Options;
use crate::page::{self, PageError, StatusPage};
use crate::reading::Out;

/// Largest answer accepted: a core with a running request takes some kilobytes.
const BODY_BYTES_MAX: u64 = 16 << 20;

/// Largest number of workers read.
const WORKERS_MAX: usize = 1_000;

const EXAMPLE: &str =
    "uwsgi:127.0.0.1:1717 or uwsgi:unix:/run/uwsgi-stats.sock (in uWSGI's configuration: stats = 127.0.0.1:1717)";

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

/// Makes the collector for `uwsgi:…`, host and port or a Unix socket.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    let endpoint = Endpoint::parse(rest).ok_or_else(|| format!("expected {EXAMPLE}"))?;
    Ok(page::collector(format!("uwsgi:{endpoint}"), Uwsgi(endpoint)))
}

/// A stats server.
struct Uwsgi(Endpoint);

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
    Uwsgi::put(&read(document(answer))?, &mut Out::new(batch, "uwsgi:"));
    Ok(())
}

impl StatusPage for Uwsgi {
    type Figures = Stats;

    fn ask(&self) -> Result<Stats, PageError> {
        let body = self.0.ask(&[], BODY_BYTES_MAX).map_err(|error| {
            let (denied, absent) = ("run holdup as uWSGI's user or as root", "is uWSGI running, with stats = …?");
            endpoint::why(&error, denied, absent, || {
                format!("it sends nothing on connecting: it is busy, or not uWSGI's stats server; expected {EXAMPLE}")
            })
        })?;
        Ok(read(document(&body))?)
    }

    fn put(stats: &Stats, out: &mut Out) {
        out.put_plain(metric::LISTEN_QUEUE, stats.listen_queue);
        // The master reads it once a second: until then, and for Unix sockets, it is 0.
        let limit: f64 = stats.sockets.iter().map(|socket| socket.max_queue).sum();
        let limit = Some(limit).filter(|limit| *limit > 0.0);
        let queue = [(metric::LISTEN_QUEUE_LIMIT, limit), (metric::LISTEN_QUEUE_ERRORS, stats.listen_queue_errors)];
        out.put_known(&Labels::none(), queue);
        // A cheap worker is not running.
        for worker in stats.workers.iter().filter(|worker| worker.status != "cheap").take(WORKERS_MAX) {
            let labels = Labels::new([("worker", worker.id.to_string()), ("pid", worker.pid.to_string())]);
            let busy_cores = worker.cores.iter().filter(|core| core.in_request > 0.0).count() as f64;
            let seconds = |us: Option<f64>| us.map(|us| us / 1e6);
            let values = [
                (metric::WORKER_BUSY, Some(f64::from(u8::from(worker.status == "busy")))),
                (metric::WORKER_CORES, Some(worker.cores.len() as f64)),
                (metric::WORKER_BUSY_CORES, Some(busy_cores)),
                (metric::REQUESTS, Some(worker.requests)),
                (metric::EXCEPTIONS, worker.exceptions),
                (metric::HARAKIRI, worker.harakiri_count),
                (metric::RESPAWNS, worker.respawn_count),
                (metric::RUNNING_TIME, seconds(worker.running_time)),
                (metric::AVERAGE_RESPONSE, seconds(worker.avg_rt)),
            ];
            out.put_known(&labels, values);
        }
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
    fn other_answers_are_refused_and_an_http_head_is_skipped() {
        for bad in ["", "{}", "<html>", "{\"listen_queue\":\"s3cret\"}"] {
            assert!(!read(bad.as_bytes()).unwrap_err().contains("s3cret"));
        }
        let with_head = format!("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{TWO}").into_bytes();
        assert!(read(document(&with_head)).is_ok());
    }
}
