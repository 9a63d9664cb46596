//! A real nginx before a backend that is slow for some seconds: from nginx' access log alone, holdup says when requests
//! were slow and how slow, as the client measured it.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use holdup_testing::{Nginx, free_port};

use crate::program::{finish, holdup};

const FAST: Duration = Duration::from_millis(20);
const SLOW: Duration = Duration::from_millis(400);

/// Interval between requests, and how many are sent: fast, slow, fast again.
const EVERY: Duration = Duration::from_millis(20);
const PHASES: [usize; 3] = [600, 400, 300];

/// A backend whose requests take [`FAST`], or [`SLOW`] while `is_slow`.
fn backend(is_slow: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    spawn(move || {
        for line in listener.incoming().flatten() {
            let is_slow = is_slow.clone();
            spawn(move || answer(line, &is_slow));
        }
    });
    port
}

fn answer(mut line: TcpStream, is_slow: &AtomicBool) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.ends_with(b"\r\n\r\n") {
        match line.read(&mut buffer)? {
            0 => return Ok(()),
            count => head.extend(&buffer[..count]),
        }
    }
    sleep(if is_slow.load(Ordering::Relaxed) { SLOW } else { FAST });
    line.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
}

/// nginx on `port`, before the backend on another, with its times at the end of each line; none where it is not installed.
/// It logs the requests of this test alone: holdup of other tests asks every port of the machine for /metrics.
fn nginx(port: u16, backend: u16) -> Option<Nginx> {
    let http = format!(
        "log_format timed '$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\" $request_time $upstream_response_time';
         map $uri $is_ours {{ ~^/cart/ 1; default 0; }}
         access_log access.log timed if=$is_ours;
         server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{backend}; }} }}"
    );
    Nginx::start(tempfile::tempdir().unwrap(), 512, &http, port)
}

/// Milliseconds of one request.
fn asked(port: u16, number: usize) -> f64 {
    let begun = Instant::now();
    let mut line = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(line, "GET /cart/{number} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    line.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("200 OK"), "{answer}");
    begun.elapsed().as_secs_f64() * 1e3
}

/// A request as the client saw it: when it began, seconds since the Unix epoch, and how many milliseconds it took.
type Seen = (f64, f64);

/// Sends requests on a schedule: what the client saw, and when the backend became slow.
fn load(port: u16, is_slow: &AtomicBool) -> (Vec<Seen>, f64) {
    let epoch_s = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let begun = Instant::now();
    let (mut number, mut requests, mut since) = (0, Vec::new(), 0.0);
    for (phase, count) in PHASES.into_iter().enumerate() {
        is_slow.store(phase == 1, Ordering::Relaxed);
        if phase == 1 {
            since = epoch_s();
        }
        for _ in 0..count {
            number += 1;
            sleep((EVERY * number as u32).saturating_sub(begun.elapsed()));
            requests.push((epoch_s(), spawn(move || asked(port, number))));
        }
    }
    (requests.into_iter().map(|(at, request)| (at, request.join().unwrap())).collect(), since)
}

/// Mean of the requests that began in `from..to`.
fn mean_ms(seen: &[Seen], from: f64, to: f64) -> f64 {
    let times: Vec<f64> = seen.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, ms)| *ms).collect();
    assert!(times.len() > 50, "{from} {to}");
    times.iter().sum::<f64>() / times.len() as f64
}

#[test]
fn response_time_by_the_log_of_nginx() {
    let is_slow = Arc::new(AtomicBool::new(false));
    let port = free_port();
    let Some(nginx) = nginx(port, backend(is_slow.clone())) else { return };
    let (seen, since) = load(port, &is_slow);
    sleep(SLOW);
    let recording = nginx.folder().join("recording");
    let mut command = holdup(["import", "--json"]);
    let imported = finish(command.arg(nginx.folder().join("access.log")).arg("-o").arg(&recording), 60).json();
    assert_eq!(imported["format"], "nginx, combined and $request_time $upstream_response_time", "{imported}");
    // The connection that waited for nginx to listen sent no request, and so has no line.
    assert_eq!(imported["lines"]["lines"], PHASES.iter().sum::<usize>(), "{imported}");
    let diagnosis = finish(holdup(["diagnose", "--json"]).arg(&recording), 60).json();
    let symptom = diagnosis["symptom"].as_str().unwrap_or_else(|| panic!("{diagnosis:#}")).to_owned();
    assert_eq!(diagnosis["findings"][0]["cause"], "downstream_slow", "{diagnosis:#}");
    let started = holdup_access::time::parse(diagnosis["started_at"].as_str().unwrap()).unwrap() as f64 / 1e9;
    let bound = |key: &str| started + diagnosis["episode"][key].as_f64().unwrap_or_else(|| panic!("{diagnosis:#}"));
    let (from, to) = (bound("from_s"), bound("to_s"));
    // A log without fractions of a second places a request within one.
    assert!((from - since).abs() <= 1.5, "{from}, not {since}: {symptom}");
    let explains_ms = diagnosis["findings"][0]["explains_ms"].as_f64().unwrap();
    let extra_ms = mean_ms(&seen, from, to) - mean_ms(&seen, started, since - 1.0);
    assert!((explains_ms / extra_ms - 1.0).abs() < 0.1, "{explains_ms} of {extra_ms}: {symptom}");
    println!("from {from:.1} ({since:.1}): {explains_ms:.1} ms by the log, {extra_ms:.1} ms by the client: {symptom}");
}
