//! Whole logs, good, odd and hostile.

use std::io::Write as _;

use super::*;
use crate::schedule::{Arrival, Schedule, Share};

const SEND: &[&str] = &["GET", "HEAD"];

fn options(methods: Option<&[&'static str]>) -> Options {
    Options { format: Format::Auto, speed: 1.0, methods: methods.map(<[_]>::to_vec), length: None }
}

fn arrivals(log: Log) -> Vec<Arrival> {
    Schedule::replayed(log.replay, "log".to_owned(), log.length).arrivals(Share::WHOLE).collect()
}

fn times_ms(text: &str) -> Vec<i64> {
    let log = read_from(text.as_bytes(), "a.log", &options(None)).unwrap();
    arrivals(log).iter().map(|a| a.due_ns / 1_000_000).collect()
}

fn line(second: u32, request: &str) -> String {
    format!("10.0.0.1 - - [10/Oct/2000:13:55:{second:02} -0700] \"{request} HTTP/1.1\" 200 5 \"-\" \"agent\"\n")
}

#[test]
fn seconds_are_spread_and_order_is_restored() {
    let text: String = [3, 1, 1, 1, 1, 3].map(|s| line(s, "GET /")).concat();
    assert_eq!(times_ms(&text), [0, 250, 500, 750, 2_000, 2_500]);
    let log = read_from(text.as_bytes(), "a.log", &options(None)).unwrap();
    assert_eq!(log.length, Duration::from_secs(3));
    assert_eq!(log.replay.notes.len(), 2, "{:?}", log.replay.notes);
    // Finer times are taken as they are, at their own resolution.
    let json = |ms: &str| format!("{{\"ts\":971211336.{ms},\"msg\":\"x\"}}\n");
    assert_eq!(times_ms(&[json("100"), json("250"), json("250"), json("900")].concat()), [0, 150, 150, 800]);
}

#[test]
fn speed_and_length() {
    let text: String = (0..10).map(|s| line(s, "GET /")).collect();
    let read = |speed, length: Option<u64>| {
        let options = Options { speed, length: length.map(Duration::from_secs), ..options(Some(SEND)) };
        let log = read_from(text.as_bytes(), "a.log", &options).unwrap();
        (log.length.as_millis(), arrivals(log).iter().map(|a| a.due_ns / 1_000_000).collect::<Vec<_>>())
    };
    assert_eq!(read(4.0, None), (2_500, (0..10).map(|i| i * 250).collect()));
    assert_eq!(read(0.5, Some(5)), (5_000, vec![0, 2_000, 4_000]));
    assert_eq!(read(1.0, Some(60)).0, 10_000);
}

#[test]
fn requests_are_distinct_and_grouped() {
    let asked = ["GET /u/1?a", "GET /u/2", "POST /u", "GET /u/1?a", "HEAD /", "BREW /", "GET /u/1?b"];
    let text: String = asked.iter().enumerate().map(|(i, r)| line(i as u32, r)).collect();
    let log = read_from(text.as_bytes(), "a.log", &options(Some(SEND))).unwrap();
    let names: Vec<&str> = log.operations.iter().map(|o| o.name.as_str()).collect();
    assert_eq!((names, log.replay.operations.len()), (vec!["/u/{id}", "HEAD /"], 2));
    assert_eq!(log.operations[0].weight, 4);
    let note = log.replay.notes.iter().find(|n| n.contains("not sent")).unwrap();
    assert!(note.contains("1 POST, 1 without a valid request") && note.contains("GET, HEAD, POST"), "{note}");
    let requests = std::sync::Arc::clone(&log.replay.requests);
    let sent = arrivals(log);
    let sent: Vec<String> = sent
        .iter()
        .map(|a| &requests[a.request.unwrap() as usize])
        .map(|r| format!("{} {} {}", r.method, r.path, r.operation))
        .collect();
    assert_eq!(sent, ["GET /u/1?a 0", "GET /u/2 0", "GET /u/1?a 0", "HEAD / 1", "GET /u/1?b 0"]);
    // The timing alone is that of all lines.
    assert_eq!(times_ms(&text).len(), 7);
}

#[test]
fn a_few_bad_lines_are_said_and_many_are_refused() {
    let good: String = (0..20).map(|s| line(s, "GET /")).collect();
    let some = format!("{good}\n\nnonsense\n");
    let log = read_from(some.as_bytes(), "a.log", &options(None)).unwrap();
    assert!(log.replay.notes[0].starts_with("a.log: 1 of 21 lines can't be read; the first is line 23: no date"));
    let many = format!("what\n{good}{}", "nonsense\n".repeat(3));
    let error = read_from(many.as_bytes(), "a.log", &options(None)).unwrap_err().to_string();
    assert!(error.starts_with("a.log: 4 of 24 lines can't be read; the first is line 1: no date"), "{error}");
    assert!(error.contains("A line should look like `1.2.3.4 - - ["), "{error}");
    let none = read_from("\n \r\n".as_bytes(), "a.log", &options(None)).unwrap_err().to_string();
    assert_eq!(none, "a.log: it is empty");
    let posts = read_from(line(1, "POST /x").as_bytes(), "a.log", &options(Some(SEND))).unwrap_err().to_string();
    assert!(posts.contains("none of its 1 requests can be sent: 1 POST") && posts.contains("POST)"), "{posts}");
    let json = Options { format: Format::Json, ..options(None) };
    assert!(read_from(good.as_bytes(), "a.log", &json).unwrap_err().to_string().contains("not one JSON object"));
}

#[test]
fn files_that_are_no_logs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.gz");
    std::fs::File::create(&path).unwrap().write_all(&[0x1f, 0x8b, 8, 0]).unwrap();
    for (path, words) in [
        (path.as_path(), "zcat"),
        (dir.path(), "not a file"),
        (Path::new("/dev/zero"), "not a regular file"),
        (Path::new("/nowhere/access.log"), "No such file"),
    ] {
        let error = read(path, &options(None)).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains(&path.display().to_string()), "{error}");
    }
    let decades = format!("{}{{\"ts\":1700000000}}\n", line(1, "GET /"));
    assert!(read_from(decades.as_bytes(), "a.log", &options(None)).unwrap_err().to_string().contains("year"));
    let cut = Options { length: Some(Duration::from_secs(9)), ..options(None) };
    assert_eq!(arrivals(read_from(decades.as_bytes(), "a.log", &cut).unwrap()).len(), 1);
}

/// Lines made of pieces of real ones, bytes changed, cut and swapped: whatever comes of it, there is an answer.
#[test]
fn hostile_lines_do_no_harm() {
    let seeds = [
        line(7, "GET /a/1?b=%20"),
        r#"{"ts":971211336.5,"request":{"method":"GET","uri":"/x?y"},"a":[1,{"b":null}]}"#.to_owned(),
        "h - \"[\" [10/Oct/2000:13:55:36 -0700] \"\\x16\\\\\\\" \\x\" 1".to_owned(),
        "[2000-10-10T20:55:36.123456789+23:59] \"HEAD http://[::1]/\u{e9}\u{1f600}#x HTTP/2\"".to_owned(),
    ];
    let special = b"[]{}\"\\/:- \x00\xff\xc3\n\r0919TZ.+";
    // Knuth's MMIX constants.
    let mut state = 42u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let mut readable = 0;
    for _ in 0..10_000 {
        let mut bytes = seeds[random(seeds.len())].clone().into_bytes();
        for _ in 0..random(4) {
            let at = random(bytes.len());
            match random(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, special[random(special.len())]),
                2 if at < bytes.len() => bytes[at] = special[random(special.len())],
                _ => {
                    let other = seeds[random(seeds.len())].as_bytes();
                    bytes.extend_from_slice(&other[random(other.len())..]);
                }
            }
        }
        for methods in [None, Some(SEND)] {
            if let Ok(log) = read_from(&bytes[..], "a.log", &options(methods)) {
                let operations = log.operations.len() as u32;
                for request in log.replay.requests.iter() {
                    assert!(request.operation < operations);
                    assert_eq!(crate::scenario::check_path(&request.path), Ok(()));
                }
                assert!(arrivals(log).windows(2).all(|w| w[0].due_ns <= w[1].due_ns));
                readable += 1;
            }
        }
    }
    assert!(readable > 3_000, "{readable}");
}
