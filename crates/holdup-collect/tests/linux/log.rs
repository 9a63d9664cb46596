//! `--watch log:PATH`: files that grow, and the log of a real nginx in the forms that docs/logs.md shows.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use holdup_collect::watch::{Options, collector};
use holdup_collect::{Collector, ProbeError};
use holdup_recording::rows::Span;
use holdup_recording::{Batch, CoverageState};
use holdup_testing::{Nginx, free_port};

use crate::value;

const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn add(path: &Path, text: &str) {
    OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn watch(path: &Path, query: &str) -> Box<dyn Collector> {
    collector(&format!("log:{}{query}", path.display()), &Options::default()).unwrap()
}

fn times(spans: &[Span]) -> Vec<(&str, i64)> {
    spans.iter().map(|span| (span.resource.as_str(), span.duration_ns / 1_000)).collect()
}

#[test]
fn lines_become_rows_and_what_is_none_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.log");
    add(&path, &format!("{{\"trace_id\":\"{ID}\",\"duration_ms\":1}}\n"));
    let mut log = watch(&path, "");
    assert_eq!(log.probe().unwrap()[0].state, CoverageState::Complete);
    let mut batch = Batch::default();
    log.sample(&mut batch).unwrap();
    assert_eq!(batch.spans, [], "what was there before is not of this run");
    add(
        &path,
        &format!("trace={ID} total=9 db=2.5 pool=1 db_calls=x\nbooting up\nlevel=info msg=ready\n{{\"a\": secret"),
    );
    let error = log.sample(&mut batch).unwrap_err().to_string();
    assert_eq!(
        error,
        "some lines cannot be read (log_lines_total counts them): line 3 cannot be read: it is neither a JSON object nor key=value pairs"
    );
    assert_eq!(times(&batch.spans), [("request", 9_000), ("database", 2_500), ("pool", 1_000)]);
    let request = &batch.spans[0];
    assert_eq!((request.trace_id.as_str(), &request.source), (ID, &format!("log:{}", path.display())));
    add(&path, " }\n");
    let mut batch = Batch::default();
    assert!(!log.sample(&mut batch).unwrap_err().to_string().contains("secret"));
    for (outcome, count) in [("read", 1.0), ("without_trace", 1.0), ("unread", 2.0)] {
        assert_eq!(value(&batch, "log_lines_total", &[("outcome", outcome)]), Some(count), "{outcome}");
    }
    fs::rename(&path, dir.path().join("app.log.1")).unwrap();
    add(&path, &format!("trace={ID} total=3\n"));
    let mut batch = Batch::default();
    log.sample(&mut batch).unwrap();
    assert_eq!(times(&batch.spans), [("request", 3_000)]);
}

#[test]
fn a_log_that_says_too_little_is_told_beforehand() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    add(&path, "10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /hidden?a=b HTTP/1.1\" 200 2326\n");
    let coverage = watch(&path, "").probe().unwrap().remove(0);
    assert_eq!(coverage.state, CoverageState::Partial);
    let why = coverage.why.unwrap();
    assert!(why.contains("line 1 cannot be read") && !why.contains("hidden"), "{why}");
    assert!(coverage.enable.unwrap().contains("docs/logs.md"));
    let missing = watch(&dir.path().join("none"), "").probe().unwrap_err();
    assert!(matches!(missing, ProbeError::Unreachable { .. }), "{missing}");
    assert!(watch(dir.path(), "").probe().is_err(), "a folder is no log");
    assert!(collector("log:", &Options::default()).is_err());
    assert!(collector("log:/a?x=1", &Options::default()).is_err());
}

/// The formats as the documentation has them.
fn documented_formats() -> String {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/logs.md")).unwrap();
    let block = page.split("```nginx\n").nth(1).and_then(|rest| rest.split("```").next());
    block.expect("it shows nginx' formats").to_owned()
}

#[test]
fn a_real_nginx_in_both_forms() {
    let (port, behind) = (free_port(), free_port());
    let http = format!(
        "{}
         server {{ listen 127.0.0.1:{behind}; access_log off; location / {{ return 200 ok; }} }}
         server {{
           listen 127.0.0.1:{port};
           access_log json.log holdup_json; access_log pairs.log holdup_pairs;
           location / {{ proxy_pass http://127.0.0.1:{behind}; }}
         }}",
        documented_formats()
    );
    let Some(nginx) = Nginx::start(tempfile::tempdir().unwrap(), 64, &http, port) else { return };
    let until = Instant::now() + Duration::from_secs(60);
    let ask = |head: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("200 OK"), "{answer}");
    };
    ask("GET /first HTTP/1.0\r\n\r\n");
    let mut logs = ["json.log", "pairs.log"].map(|name| watch(&nginx.folder().join(name), ""));
    for log in &mut logs {
        log.probe().unwrap();
    }
    // What whoever asks writes is not taken for fields.
    ask(&format!(
        "GET /a\"rt=77&trace={ID} HTTP/1.0\r\nUser-Agent: \\\" rt=99 \"trace=1\r\ntraceparent: 00-{ID}-00f067aa0ba902b7-01\r\n\r\n"
    ));
    for log in &mut logs {
        let mut batch = Batch::default();
        // The line is written after the response.
        while batch.spans.is_empty() {
            assert!(Instant::now() < until, "no line came");
            log.sample(&mut batch).unwrap();
            std::thread::sleep(Duration::from_millis(10));
        }
        let spans = &batch.spans;
        assert_eq!(spans.iter().map(|s| s.resource.as_str()).collect::<Vec<_>>(), ["request", "http"], "{spans:?}");
        assert!(spans.iter().all(|s| s.trace_id == ID && s.status == "ok" && s.duration_ns < 60_000_000_000));
        assert!(spans[1].duration_ns <= spans[0].duration_ns + 1_000_000);
        let age = holdup_recording::clock::now_ns() - spans[0].started_at;
        assert!((0..120_000_000_000).contains(&age), "{age}");
    }
}
