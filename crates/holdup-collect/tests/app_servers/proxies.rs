//! `--watch haproxy:` and `nginx:`, on real ones in front of a backend that takes exactly known time.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use holdup_collect::Collector;
use holdup_recording::Batch;
use holdup_testing::{Nginx, Process, free_port};

use super::programs::{are_here, launch, wait_for_answer};
use super::{probed, refused, sum, until, watch};

/// How long the backend has each request.
const SERVICE: Duration = Duration::from_millis(50);
const SLOTS: usize = 2;
const CLIENTS: usize = 8;
/// Requests of each client, one after the other.
const REQUESTS: usize = 25;

/// Answers any number of requests at once, each after [`SERVICE`].
struct Backend {
    port: u16,
    /// Nanoseconds for which it had requests, from accepting to the answer.
    served_ns: Arc<AtomicU64>,
}

impl Backend {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let backend = Self { port: listener.local_addr().unwrap().port(), served_ns: Arc::default() };
        let served_ns = backend.served_ns.clone();
        spawn(move || {
            for line in listener.incoming().flatten() {
                let served_ns = served_ns.clone();
                spawn(move || serve(line, &served_ns));
            }
        });
        backend
    }
}

fn serve(mut line: TcpStream, served_ns: &AtomicU64) -> std::io::Result<()> {
    let begun = Instant::now();
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.ends_with(b"\r\n\r\n") {
        match line.read(&mut buffer)? {
            0 => return Ok(()),
            n => head.extend(&buffer[..n]),
        }
    }
    sleep(SERVICE);
    line.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfine")?;
    served_ns.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
    Ok(())
}

/// HAProxy's lines as the documentation has them.
fn documented_log() -> String {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/logs.md")).unwrap();
    let block = page.split("```haproxy\n").nth(1).and_then(|rest| rest.split("```").next());
    block.expect("it shows HAProxy's lines").to_owned()
}

/// HAProxy in `folder`, with two slots for `backend`. Its log is the file `log`; of two threads that write a line at once it
/// would drop one's.
fn haproxy(folder: &Path, backend: u16) -> (Process, u16, u16) {
    let (port, stats) = (free_port(), free_port());
    let options = format!(
        "global\n  nbthread 1\n  maxconn 200\n  stats socket {}/stats.sock level user\n  stats socket ipv4@127.0.0.1:{stats} level user\n\
         defaults\n  mode http\n  timeout client 60s\n  timeout server 60s\n  timeout connect 10s\n  timeout queue 60s\n\
         frontend web\n  bind 127.0.0.1:{port}\n  default_backend app\n{}\
         backend app\n  server one 127.0.0.1:{backend} maxconn {SLOTS}\n  server two 127.0.0.1:{backend} maxconn 9 disabled\n",
        folder.display(),
        documented_log()
    );
    fs::write(folder.join("options"), options).unwrap();
    let mut server = launch(folder, Command::new("haproxy").args(["-db", "-f", "options"]));
    wait_for_answer(&mut server, port);
    (server, port, stats)
}

/// Whether a request with this trace id is answered.
fn is_answered(port: u16, trace_id: usize) -> bool {
    let Ok(mut line) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let head = format!("GET /?s3cr3t-canary HTTP/1.0\r\ntraceparent: 00-{trace_id:032x}-00f067aa0ba902b7-01\r\n\r\n");
    let mut answer = String::new();
    line.write_all(head.as_bytes()).and_then(|()| line.read_to_string(&mut answer)).is_ok() && answer.contains("200 OK")
}

/// Mean seconds of a request if [`CLIENTS`] each ask `port` so often; `meanwhile` is done until all have an answer.
fn asked(port: u16, mut meanwhile: impl FnMut()) -> f64 {
    let client = |client: usize| {
        move || {
            let begun = Instant::now();
            (1..=REQUESTS).for_each(|n| assert!(is_answered(port, client * REQUESTS + n)));
            begun.elapsed().as_secs_f64()
        }
    };
    let clients: Vec<_> = (0..CLIENTS).map(|number| spawn(client(number))).collect();
    while !clients.iter().all(std::thread::JoinHandle::is_finished) {
        meanwhile();
    }
    clients.into_iter().map(|client| client.join().unwrap()).sum::<f64>() / (CLIENTS * REQUESTS) as f64
}

fn sampled(source: &mut dyn Collector) -> Batch {
    let mut batch = Batch::default();
    source.sample(&mut batch).unwrap();
    batch
}

/// What clients measure beyond the backend's own time is what HAProxy's queue holds, by Little's law.
#[test]
fn requests_that_wait_for_a_slot_of_haproxy() {
    if !are_here(&["haproxy"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let backend = Backend::start();
    let (_server, port, stats) = haproxy(folder.path(), backend.port);
    let mut source = probed(&format!("haproxy:127.0.0.1:{stats}"));
    let mut log = probed(&format!("log:{}", folder.path().join("log").display()));
    let before = sampled(&mut *source);
    backend.served_ns.store(0, Ordering::Relaxed);
    let mut queue: Vec<(i64, f64)> = Vec::new();
    let (mut used, mut longest) = (0.0_f64, 0.0_f64);
    let app = [("backend", "app")];
    let through_s = asked(port, || {
        let now = sampled(&mut *source);
        let queued = sum(&now, "haproxy_queued_requests", &app).unwrap();
        queue.push((now.samples[0].observed_at, queued));
        used = used.max(sum(&now, "haproxy_slots_used", &app).unwrap());
        longest = longest.max(queued);
        sleep(Duration::from_millis(10));
    });
    let after = sampled(&mut *source);
    let grew = |metric: &str| sum(&after, metric, &app).unwrap() - sum(&before, metric, &app).unwrap();
    let requests = (CLIENTS * REQUESTS) as f64;
    assert_eq!(used, SLOTS as f64);
    // A client that has its answer may ask again before HAProxy frees the slot of the answered request.
    let back_already = (CLIENTS - SLOTS) as f64..=CLIENTS as f64;
    assert!(back_already.contains(&longest), "{longest} in the queue of {CLIENTS} clients and {SLOTS} slots");
    assert_eq!((grew("haproxy_requests_total"), grew("haproxy_server_requests_total")), (requests, requests));
    assert_eq!(sum(&after, "haproxy_slots", &app), Some(SLOTS as f64), "a server in maintenance has no slots");
    let served_s = backend.served_ns.load(Ordering::Relaxed) as f64 / 1e9 / requests;
    let waited_s = through_s - served_s;
    assert!(waited_s > 2.0 * served_s, "{waited_s} s beyond {served_s} s");
    let queued_s: f64 = queue.windows(2).map(|two| two[0].1 * (two[1].0 - two[0].0) as f64 / 1e9).sum();
    let by_length_s = queued_s / requests;
    assert!((by_length_s / waited_s - 1.0).abs() < 0.05, "{by_length_s} s by its length, {waited_s} s by clients");
    let mean_s = sum(&after, "haproxy_queue_time_seconds", &app).unwrap();
    assert!((mean_s / waited_s - 1.0).abs() < 0.05, "{mean_s} s by its own mean, {waited_s} s by clients");
    // A line is written after the response.
    let mut spans = Vec::new();
    until(&mut *log, "a line of each request", |batch| {
        spans.extend(batch.spans.iter().cloned());
        spans.iter().filter(|span| span.resource == "request").count() == CLIENTS * REQUESTS
    });
    let logged_ns: i64 = spans.iter().filter(|span| span.resource == "queue").map(|span| span.duration_ns).sum();
    let logged_s = logged_ns as f64 / 1e9 / requests;
    assert!((logged_s / waited_s - 1.0).abs() < 0.05, "{logged_s} s by its log, {waited_s} s by clients");
    assert!(!format!("{spans:?}").contains("canary"));
    let mut batch = Batch::default();
    source.settings(&mut batch).unwrap();
    assert!(batch.settings.iter().any(|row| row.name == "haproxy_version" && row.value.starts_with(char::is_numeric)));
    assert!(!format!("{after:?} {batch:?}").contains("canary"));
}

#[test]
fn haproxy_over_a_unix_socket_and_what_is_none() {
    if !are_here(&["haproxy"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (_server, port, _stats) = haproxy(folder.path(), Backend::start().port);
    let socket = folder.path().join("stats.sock");
    let mut source = probed(&format!("haproxy:{}", socket.display()));
    until(&mut *source, "a server that is up", |batch| {
        sum(batch, "haproxy_server_up", &[("server", "one")]) == Some(1.0)
    });
    assert!(watch(&format!("haproxy:unix:{}", socket.display())).probe().is_ok());
    for (address, said) in [
        (format!("haproxy:127.0.0.1:{port}"), "not with HAProxy's statistics"),
        (format!("haproxy:127.0.0.1:{}", free_port()), "refused"),
        ("haproxy:/nowhere/stats.sock".to_owned(), "the socket does not exist"),
    ] {
        let error = refused(&address).to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn connections_and_requests_of_nginx() {
    let (port, backend) = (free_port(), Backend::start().port);
    let http = format!(
        "access_log off;
         server {{
           listen 127.0.0.1:{port};
           location = /status {{ stub_status; }}
           location = /closed {{ return 403; }}
           location / {{ proxy_pass http://127.0.0.1:{backend}; }}
         }}"
    );
    let Some(_nginx) = Nginx::start(tempfile::tempdir().unwrap(), 64, &http, port) else { return };
    let mut source = probed(&format!("nginx:http://127.0.0.1:{port}/status"));
    let before = sampled(&mut *source);
    let mut busiest = 0.0_f64;
    asked(port, || {
        busiest = busiest.max(sum(&sampled(&mut *source), "nginx_writing_connections", &[]).unwrap());
        sleep(Duration::from_millis(5));
    });
    // The page itself is on one of the busy connections.
    assert!(busiest >= 3.0, "{busiest}");
    let after = sampled(&mut *source);
    let grew = |metric: &str| sum(&after, metric, &[]).unwrap() - sum(&before, metric, &[]).unwrap();
    assert!(grew("nginx_requests_total") >= (CLIENTS * REQUESTS) as f64);
    let accepted = grew("nginx_accepted_connections_total");
    assert!(accepted >= (CLIENTS * REQUESTS) as f64);
    assert_eq!(grew("nginx_handled_connections_total"), accepted, "none was dropped");
    for (page, said) in [("closed", "status 403"), ("", "not the page of stub_status")] {
        let error = refused(&format!("nginx:http://127.0.0.1:{port}/{page}")).to_string();
        assert!(error.contains(said), "{error}");
    }
    // A request that has begun holds one of the 64 slots; nginx closes idle connections to make room for others.
    let held = (0..100).map(|_| {
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        client.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let _ = client.write_all(b"GET /status HTTP/1.1\r\n");
        // A connection that is closed says so at once; the others have been read by then.
        let _ = client.read(&mut [0]);
        client
    });
    let held: Vec<TcpStream> = held.collect();
    drop(held);
    until(&mut *source, "connections that were not handled", |batch| {
        let of = |metric: &str| sum(batch, metric, &[]);
        let counts = of("nginx_accepted_connections_total").zip(of("nginx_handled_connections_total"));
        counts.is_some_and(|(accepted, handled)| accepted - handled >= 10.0)
    });
}
