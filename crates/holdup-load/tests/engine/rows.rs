//! At high rates only a part of the requests become rows. Counts and histograms stay exact, rows say how many they
//! stand for, and whatever failed is among them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::play::{play, scenario};
use crate::servers::server;

const ROWS: u64 = 1_000;

/// Answers a few bytes at a time as fast as it can: every 500th request is refused, every 5,000th with garbage.
fn fast() -> u16 {
    use std::io::{Read as _, Write as _};
    use std::sync::atomic::{AtomicU64, Ordering};
    let count = AtomicU64::new(0);
    server(move |mut stream| {
        let mut buffer = [0; 4_096];
        while stream.read(&mut buffer).is_ok_and(|n| n > 0) {
            let response: &[u8] = match count.fetch_add(1, Ordering::Relaxed) + 1 {
                n if n % 5_000 == 0 => b"garbage\r\n\r\n",
                n if n % 500 == 0 => b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
                _ => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            };
            if stream.write_all(response).is_err() {
                return;
            }
        }
    })
}

#[test]
fn rows_are_few_and_stand_for_all() {
    let operations = "operations: [{name: often, get: /a, weight: 3}, {name: seldom, get: /b}]";
    let load = "rate: 20000, duration: 2s, connections: 20";
    let mut scenario = scenario(&format!("http://127.0.0.1:{}", fast()), load, operations);
    scenario.generator.rows = Some(ROWS);
    scenario.generator.loops = Some(1);
    let played = play(&scenario, None);
    assert_eq!(played.offered(), 40_000);
    assert!(played.took < Duration::from_secs(60), "{:?}", played.took);
    // The budget is a rate; a run on a machine that is busy takes longer than it should and keeps its rate.
    let seconds = played.took.as_secs_f64().max(2.0).ceil() as u64;
    let most = ROWS / 2 * (seconds + 1);
    let rows = played.rows.len() as u64;
    assert!(rows >= ROWS / 3 && rows <= most, "{rows} rows, {most} at most");
    let counts = played.outcomes();
    assert!(counts["http_status"] >= 70 && counts["bad_response"] >= 7, "{counts:?}");
    for operation in &played.summary.operations {
        let mut exact: BTreeMap<&str, u64> = operation.failures.iter().map(|(k, n)| (k.as_str(), *n)).collect();
        exact.insert("ok", operation.completed);
        for (outcome, exact) in exact {
            let of_it = played.rows.iter().filter(|r| r.operation == operation.operation && r.outcome == outcome);
            let weights: Vec<u64> = of_it.map(|r| r.weight as u64).collect();
            let (stood_for, stride) = (weights.iter().sum::<u64>(), weights.iter().max().copied().unwrap_or(0));
            let name = &operation.operation;
            assert!(
                stood_for <= exact && exact - stood_for < stride.max(1),
                "{name}, {outcome}: {stood_for} of {exact} by {stride}"
            );
        }
    }
}

/// One kind of failure hides no other, however rare that is.
#[test]
fn a_flood_of_failures_leaves_room_for_a_rare_one() {
    use std::io::{Read as _, Write as _};
    let port = server(|mut stream| {
        let mut buffer = [0; 4_096];
        let mut count = 0;
        while stream.read(&mut buffer).is_ok_and(|n| n > 0) {
            count += 1;
            let response: &[u8] =
                if count == 300 { b"garbage\r\n\r\n" } else { b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n" };
            if stream.write_all(response).is_err() {
                return;
            }
        }
    });
    let load = "rate: 2000, duration: 1s, connections: 1";
    let mut scenario = scenario(&format!("http://127.0.0.1:{port}"), load, "");
    scenario.generator.rows = Some(40);
    let played = play(&scenario, None);
    let garbage = played.operation().failures["bad_response"];
    let rows = played.rows.iter().filter(|r| r.outcome == "bad_response").count() as u64;
    assert!(garbage >= 6 && rows >= 1 && rows <= garbage, "{rows} rows of {garbage}, {} in all", played.rows.len());
    assert!(played.rows.len() < 400, "{}", played.rows.len());
}
