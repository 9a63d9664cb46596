//! `--watch probe:URL`, against servers of this test that answer, refuse, hang up, hang, or have no room for a connection.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use holdup_collect::Collector;
use holdup_collect::watch::{Options, collector};
use holdup_recording::rows::Event;
use holdup_recording::{Batch, CoverageState};

/// How long is waited for what must happen at some time.
const PATIENCE: Duration = Duration::from_secs(120);

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const BAD: &str = "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n";
const MOVED: &str = "HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n";

/// Hands the n-th connection and its request, from 0, to `serve`; gives the port. Ends with the test's process.
fn server(serve: impl Fn(usize, TcpStream, &str) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (number, mut stream) in listener.incoming().flatten().enumerate() {
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).unwrap_or(0);
            serve(number, stream, &String::from_utf8_lossy(&request[..length]));
        }
    });
    port
}

fn answers(texts: &'static [&'static str]) -> u16 {
    server(move |number, mut stream, _| {
        let text = texts.get(number).or(texts.last()).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
    })
}

fn at(address: &str) -> Box<dyn Collector> {
    collector(address, &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Samples until `enough` is there.
fn until(probe: &mut dyn Collector, enough: impl Fn(&Batch) -> bool) -> Batch {
    let (begun, mut batch) = (Instant::now(), Batch::default());
    while !enough(&batch) {
        assert!(begun.elapsed() < PATIENCE, "only {} samples and {:?}", batch.samples.len(), batch.events);
        probe.sample(&mut batch).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    batch
}

fn values(batch: &Batch, metric: &str) -> Vec<f64> {
    batch.samples.iter().filter(|s| s.metric == metric).map(|s| s.value).collect()
}

fn label<'a>(event: &'a Event, name: &str) -> &'a str {
    event.labels.get(name).unwrap_or_default()
}

/// The first failure that a probe of `address` finds: every one before it would be of the same kind.
fn failure(address: &str) -> Event {
    let mut probe = at(address);
    let mut batch = until(&mut *probe, |batch| !batch.events.is_empty());
    assert_eq!(values(&batch, "probe_success").first(), Some(&0.0));
    let event = batch.events.remove(0);
    assert_eq!((event.kind.as_str(), label(&event, "in_a_row")), ("probe_failed", "1"));
    event
}

#[test]
fn each_probe_is_a_new_connection_and_is_known_as_one() {
    let connections = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&connections);
    let port = server(move |_, mut stream, request| {
        let lower = request.to_ascii_lowercase();
        assert!(lower.starts_with("get /health?deep=1 http/1.1\r\n"), "{request}");
        assert!(lower.contains("user-agent: holdup/") && lower.contains("connection: close"), "{request}");
        seen.fetch_add(1, Ordering::Relaxed);
        stream.write_all(OK.as_bytes()).unwrap();
    });
    let mut probe = at(&format!("probe:http://127.0.0.1:{port}/health?deep=1&every=10ms&timeout=60s"));
    assert_eq!(probe.source(), format!("probe:http://127.0.0.1:{port}/health?deep=1"));
    assert_eq!(probe.probe().unwrap()[0].state, CoverageState::Complete);
    let mut batch = until(&mut *probe, |batch| values(batch, "probe_success").len() >= 4);
    drop(probe);
    assert!(values(&batch, "probe_success").iter().all(|value| *value == 1.0), "{:?}", batch.events);
    // One before the recording, and perhaps one that was not taken any more.
    assert!(connections.load(Ordering::Relaxed) > values(&batch, "probe_success").len());
    assert_eq!(values(&batch, "probe_duration_seconds").len(), values(&batch, "probe_success").len());
    assert!(batch.events.is_empty() && batch.requests.is_empty() && batch.statements.is_empty());
    at("probe:http://h/?every=500ms").settings(&mut batch).unwrap();
    let settings: Vec<_> = batch.settings.iter().map(|it| (it.name.as_str(), it.value.as_str())).collect();
    let usual = ("probe.timeout_s", "1");
    assert_eq!(settings[..3], [("probe.every_s", "0.5"), usual, ("probe.failures", "3")]);
}

#[test]
fn every_way_to_fail_has_its_name() {
    let bad = failure(&format!("probe:http://127.0.0.1:{}/?every=10ms&timeout=60s", answers(&[BAD])));
    assert_eq!((label(&bad, "reason"), label(&bad, "status")), ("status", "500"));

    let free = holdup_testing::free_port();
    for scheme in ["http", "tcp"] {
        let refused = failure(&format!("probe:{scheme}://127.0.0.1:{free}?every=10ms&timeout=60s"));
        assert_eq!(label(&refused, "reason"), "refused");
    }

    // Closed with an answer outstanding: by a reset, by an end, and in the midst of a body.
    let reset = server(|_, stream, _| {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        let length = size_of::<libc::linger>() as libc::socklen_t;
        // SAFETY: the option's value is a linger of the size that is given.
        let set = unsafe {
            libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, (&raw const linger).cast(), length)
        };
        assert_eq!(set, 0);
    });
    let ended = server(|_, _, _| {});
    let cut = answers(&["HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nok"]);
    for port in [reset, ended, cut] {
        let event = failure(&format!("probe:http://127.0.0.1:{port}/?every=10ms&timeout=60s"));
        assert_eq!(label(&event, "reason"), "reset", "{}", event.text);
    }

    let hangs = server(|_, stream, _| std::mem::forget(stream));
    let event = failure(&format!("probe:http://127.0.0.1:{hangs}/?every=10ms&timeout=50ms"));
    assert_eq!(label(&event, "reason"), "timeout");
    assert!(label(&event, "duration_ms").parse::<u64>().unwrap() >= 50, "{event:?}");

    let event = failure("probe:http://no-such-host.invalid/?every=10ms&timeout=60s");
    assert_eq!(label(&event, "reason"), "dns", "{}", event.text);
    assert!(failure(&format!("probe:https://127.0.0.1:{ended}/?every=10ms&timeout=60s")).text.len() > 5);
}

/// What the incident's probe met: a server that is alive, and whose accept queue is full.
#[test]
fn a_full_accept_queue_is_a_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // SAFETY: it is a listening socket, and this only sets its backlog.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let place = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&place, Duration::from_millis(300)) {
        waiting.push(stream);
        assert!(waiting.len() < 100, "it never fills");
    }
    for scheme in ["http", "tcp"] {
        let event = failure(&format!("probe:{scheme}://{place}?every=10ms&timeout=100ms"));
        assert_eq!(label(&event, "reason"), "timeout", "{scheme}: {}", event.text);
    }
}

#[test]
fn failures_are_counted_until_it_answers_again() {
    let port = answers(&[BAD, BAD, MOVED, OK, BAD, OK]);
    let mut probe = at(&format!("probe:http://127.0.0.1:{port}/?every=10ms&timeout=60s&failures=2"));
    let batch = until(&mut *probe, |batch| values(batch, "probe_success").len() >= 6);
    assert_eq!(values(&batch, "probe_success")[..6], [0.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
    let events: Vec<_> = batch.events.iter().map(|it| (it.kind.as_str(), label(it, "in_a_row"))).collect();
    let (failed, recovered) = ("probe_failed", "probe_recovered");
    assert_eq!(events, [(failed, "1"), (failed, "2"), (recovered, "2"), (failed, "1"), (recovered, "1")]);
    assert!(batch.events[1].text.contains("2 in a row; at 2 "), "{}", batch.events[1].text);
}

/// A probe that is under way holds up neither the samples nor the end.
#[test]
fn a_slow_probe_does_not_delay_the_recording() {
    let begun = Instant::now();
    let came = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&came);
    let port = server(move |_, stream, _| {
        seen.fetch_add(1, Ordering::Relaxed);
        std::mem::forget(stream);
    });
    // Much longer than this test may take.
    let mut probe = at(&format!("probe:http://127.0.0.1:{port}/?every=10ms&timeout=1h&delay=1ms"));
    probe.probe().unwrap();
    let mut batch = Batch::default();
    while came.load(Ordering::Relaxed) == 0 {
        assert!(begun.elapsed() < PATIENCE);
        probe.sample(&mut batch).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    probe.sample(&mut batch).unwrap();
    drop(probe);
    assert!(batch.samples.is_empty() && batch.events.is_empty());
}

#[test]
fn a_service_that_fails_already_is_said_and_watched() {
    let mut probe = at(&format!("probe:http://127.0.0.1:{}/helth?timeout=60s", answers(&[BAD])));
    let coverage = probe.probe().unwrap().remove(0);
    assert_eq!(coverage.state, CoverageState::Partial);
    assert!(coverage.why.is_some_and(|why| why.contains("status 500")));
    let error = collector("probe:127.0.0.1/x?every=1s", &Options::default()).err().unwrap().to_string();
    assert!(error.starts_with("--watch probe:…: ") && error.contains("e.g. probe:http://"), "{error}");
}
