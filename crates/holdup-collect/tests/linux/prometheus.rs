//! `--watch prometheus:URL`, against a server of this test.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use holdup_collect::prometheus::Prometheus;
use holdup_collect::watch::{Options, collector};
use holdup_collect::{Collector, ProbeError};
use holdup_recording::{Batch, CoverageState};

use crate::value;

/// Answers every request with `answer`, then closes; gives its port. Ends with the test's process.
fn server(answer: impl Fn(&str) -> String + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).unwrap_or(0);
            let _ = stream.write_all(answer(&String::from_utf8_lossy(&request[..length])).as_bytes());
        }
    });
    port
}

fn ok(content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn at(port: u16) -> Prometheus {
    Prometheus::new(&format!("http://127.0.0.1:{port}/metrics")).unwrap()
}

#[test]
fn series_are_rows_and_a_bad_line_is_a_gap() {
    let port = server(|_| ok("text/plain; version=0.0.4", "a_total{x=\"1\"} 7\nbroken\nb 2\n"));
    let mut prometheus = at(port);
    assert_eq!(prometheus.probe().unwrap()[0].state, CoverageState::Complete);
    let mut batch = Batch::default();
    let error = prometheus.sample(&mut batch).unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
    assert_eq!(value(&batch, "a_total", &[("x", "1")]), Some(7.0));
    assert_eq!(value(&batch, "b", &[]), Some(2.0));
    assert_eq!(batch.samples[0].source, format!("prometheus:http://127.0.0.1:{port}/metrics"));
}

#[test]
fn a_password_is_sent_and_shown_nowhere() {
    // me:hunter2
    let port = server(|request| {
        let good = request.to_ascii_lowercase().contains("authorization: basic bwu6ahvudgvymg==");
        if good { ok("text/plain", "a 1\n") } else { "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n".to_owned() }
    });
    let address = format!("prometheus:http://me:hunter2@127.0.0.1:{port}/metrics");
    let mut right = collector(&address, &Options::default()).unwrap();
    assert_eq!(right.source(), format!("prometheus:http://127.0.0.1:{port}/metrics"));
    right.probe().unwrap();
    let mut batch = Batch::default();
    right.sample(&mut batch).unwrap();
    assert!(!format!("{batch:?}").contains("hunter2"));
    let mut wrong = collector(&address.replace("hunter2", "hunter3"), &Options::default()).unwrap();
    let error = wrong.probe().unwrap_err().to_string();
    assert!(error.contains("401") && !error.contains("hunter"), "{error}");
}

#[test]
fn an_unusable_endpoint_gives_the_reason() {
    let closed = holdup_testing::free_port();
    let html = server(|_| ok("text/html", "<html>\n</html>\n"));
    let empty = server(|_| ok("text/plain", ""));
    let missing = server(|_| "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n".to_owned());
    let moved = server(|_| "HTTP/1.1 302 No\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n".to_owned());
    let rubbish = server(|_| "\0\0\0\0 hello\r\n\r\n".to_owned());
    let huge =
        server(|_| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", 99_u64 << 30, "a 1\n".repeat(5 << 20)));
    for (port, said) in [
        (closed, "refused"),
        (html, "line 1"),
        (empty, "contains no metric"),
        (missing, "404"),
        (moved, "redirect"),
        (rubbish, "HTTP"),
        (huge, "exceeds"),
    ] {
        let error = at(port).probe().unwrap_err();
        assert!(matches!(error, ProbeError::Unreachable { .. }));
        assert!(error.to_string().contains(said), "{said}: {error}");
    }
    for bad in ["prometheus:", "prometheus:ftp://h/", "prometheus:http://u:hunter2@/x"] {
        let error = collector(bad, &Options::default()).err().unwrap();
        assert!(matches!(error, ProbeError::BadAddress(_)));
        assert!(!error.to_string().contains("hunter2"));
    }
}

#[test]
fn a_server_that_stalls_is_given_up() {
    let port = server(|_| {
        std::thread::sleep(Duration::from_secs(60));
        String::new()
    });
    let begun = Instant::now();
    let error = at(port).sample(&mut Batch::default()).unwrap_err().to_string();
    assert!(error.contains("within the time limit"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(50));
}

#[test]
fn openmetrics_without_its_end_is_a_gap_and_too_many_series_are_partial() {
    let cut = server(|_| ok("application/openmetrics-text; version=1.0.0", "a_total 1\n"));
    assert!(at(cut).sample(&mut Batch::default()).unwrap_err().to_string().contains("# EOF"));
    let many = server(|_| ok("text/plain", &"a 1\n".repeat(20_100)));
    let mut many = at(many);
    let coverage = many.probe().unwrap();
    assert_eq!(coverage[0].state, CoverageState::Partial);
    let mut batch = Batch::default();
    many.sample(&mut batch).unwrap();
    assert_eq!(batch.samples.len(), 20_000);
}
