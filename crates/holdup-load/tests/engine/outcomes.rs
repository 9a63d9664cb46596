//! What every user sees of the engine: requests are sent when they are due, wait when they must, and fail by name.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::play::{age_ms, at_once, load, outcomes, play_until, scenario};
use crate::servers::http1::{OK, answer};
use crate::servers::server;

#[test]
fn all_is_well() {
    let port = server(|s| answer(s, OK, || ()));
    let (summary, rows) = load(port, "rate: 200, duration: 1s, connections: 5", None);
    assert_eq!(outcomes(&rows), BTreeMap::from([("ok", 200)]));
    assert_eq!(summary.operations[0].latencies.response.len(), 200);
    for row in &rows {
        let (ready, sent, first) = (row.ready_at.unwrap(), row.sent_at.unwrap(), row.first_byte_at.unwrap());
        assert!(row.intended_at <= ready && ready <= sent && sent <= first && first <= row.done_at, "{row:?}");
        assert_eq!((row.status, row.response_bytes), (Some(200), OK.len() as i64));
    }
    // Rows are in the order in which requests ended.
    let mut intended: Vec<i64> = rows.iter().map(|row| row.intended_at).collect();
    intended.sort_unstable();
    let spacing: Vec<i64> = intended.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(rows.len() == 200 && spacing.iter().filter(|s| (**s - 5_000_000).abs() < 1_000).count() > 150);
}

#[test]
fn a_stall_counts_from_the_intended_start() {
    // From the first request on, so that it does not matter how long it takes to begin.
    let begun: OnceLock<Instant> = OnceLock::new();
    let stall = Duration::from_millis(600)..Duration::from_millis(1_200);
    let end = stall.end;
    let port = server(move |s| {
        answer(s, OK, || {
            let now = begun.get_or_init(Instant::now).elapsed();
            if stall.contains(&now) {
                thread::sleep(end - now);
            }
        });
    });
    // Few connections: most requests of the stall wait for one, and are as late all the same.
    let (_, rows) = load(port, "rate: 200, duration: 2s, connections: 4", None);
    assert_eq!(outcomes(&rows), BTreeMap::from([("ok", 400)]));
    let slow = rows.iter().filter(|r| age_ms(r) > 300.0).count();
    // 200/s for the first half of a stall of 0.6 s are more than 0.3 s late: 60 requests; more on a machine that stalls too.
    assert!(slow >= 55, "{slow} requests were more than 300 ms late");
    let queued = rows.iter().filter(|r| r.ready_at.unwrap() - r.intended_at > 100_000_000).count();
    assert!(queued > 60, "{queued} waited for a connection");
}

#[test]
fn requests_without_a_connection_count_at_their_age() {
    let port = server(|s| answer(s, OK, || thread::sleep(Duration::from_millis(200))));
    let (summary, rows) = load(port, "rate: 50, duration: 1s, connections: 1, timeout: 1s", None);
    let counts = outcomes(&rows);
    // One connection answers 5 a second, and goes on doing so: what is sent has its whole time to be answered.
    assert!((1..=11).contains(&counts["ok"]) && counts["never_sent"] >= 39, "{counts:?}");
    for row in rows.iter().filter(|r| r.outcome == "never_sent") {
        assert!(row.sent_at.is_none() && row.ready_at.is_none(), "{row:?}");
        assert!(age_ms(row) >= 1_000.0, "{row:?}");
    }
    let latencies = &summary.operations[0].latencies;
    assert_eq!(latencies.response.len(), 50, "never-sent requests are in the response times");
    assert_eq!(latencies.service.len(), counts["ok"] as u64, "and in no service time");
}

#[test]
fn silence_times_out_at_the_deadline() {
    let port = server(|s| answer(s, b"", || ()));
    let (_, rows) = load(port, "rate: 50, duration: 500ms, connections: 50, timeout: 1s", None);
    assert_eq!(outcomes(&rows), BTreeMap::from([("timeout", 25)]));
    assert!(rows.iter().all(|r| age_ms(r) >= 1_000.0));
}

#[test]
fn every_kind_of_failure_has_its_name() {
    let cases: [(&'static [u8], &str); 4] = [
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "http_status"),
        (b"220 mail.example ESMTP\r\n", "bad_response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "connection_closed"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil I close", "ok"),
    ];
    at_once(cases, |(response, outcome)| {
        let port = server(move |mut s| {
            let _ = s.read(&mut [0; 4_096]);
            let _ = s.write_all(response);
            // Closing with unread bytes would reset; there are none.
        });
        let (_, rows) = load(port, "rate: 40, duration: 500ms, connections: 10", None);
        assert_eq!(outcomes(&rows), BTreeMap::from([(outcome, 20)]), "{:?}", String::from_utf8_lossy(response));
    });
}

#[test]
fn a_service_that_goes_away_is_counted_not_fatal() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        // The first connection is the check before the run.
        let _ = listener.accept();
        let (stream, _) = listener.accept().unwrap();
        drop(listener);
        answer(stream, OK, || thread::sleep(Duration::from_millis(100)));
    });
    let (_, rows) = load(port, "rate: 50, duration: 1s, connections: 10", None);
    let counts = outcomes(&rows);
    assert!(counts["ok"] > 0 && counts["connect_failed"] > 0, "{counts:?}");
}

#[test]
fn a_stop_keeps_what_was_measured() {
    // Ten are answered, and ten on their way, when it is stopped.
    let (asked, stop) = (AtomicU32::new(0), Arc::new(AtomicBool::new(false)));
    let own = Arc::clone(&stop);
    let port = server(move |s| {
        answer(s, OK, || {
            let number = asked.fetch_add(1, Ordering::Relaxed);
            own.fetch_or(number >= 20, Ordering::Relaxed);
            if number >= 10 {
                thread::sleep(Duration::from_secs(60));
            }
        });
    });
    let target = format!("http://127.0.0.1:{port}");
    let played = play_until(&scenario(&target, "rate: 50, duration: 60s, connections: 100", ""), &stop);
    let (summary, counts) = (&played.summary, outcomes(&played.rows));
    assert!(summary.interrupted);
    assert!((1..=10).contains(&counts["ok"]) && counts["unfinished"] >= 10, "{counts:?}");
    assert_eq!(summary.operations[0].errors, 0, "unfinished is neither good nor bad");
}
