//! The test of every load generator: the target stops for a while, and what is reported must be how long callers waited.

use std::thread;
use std::time::{Duration, Instant};

use crate::play::{Played, play, scenario};
use crate::servers::http1::{self, OK};
use crate::servers::server;

const LENGTH: f64 = 5.0;
const RATE: f64 = 500.0;
const TRIES: u32 = 4;

/// A server that takes a millisecond, and stops after two seconds for one. How long it stood, and what came of it.
fn freeze() -> (f64, Played) {
    let begun = Instant::now();
    let (from, to) = (Duration::from_secs(2), Duration::from_secs(3));
    let port = server(move |s| {
        http1::answer(s, OK, || {
            let now = begun.elapsed();
            let pause = if (from..to).contains(&now) { to - now } else { Duration::from_millis(1) };
            thread::sleep(pause);
        });
    });
    let load = format!("rate: {RATE}, duration: {LENGTH}s, connections: 50");
    ((to - from).as_secs_f64() * 1e3, play(&scenario(&format!("http://127.0.0.1:{port}"), &load, ""), None))
}

/// Requests due during a freeze of F seconds wait for what is left of it. At a constant rate over D seconds the slowest
/// share q of them are those due in its first q D seconds, so that the percentile 1 - q is F - q D as long as that is
/// positive: of 1 s in 5, p99 is 0.95 s, p95 0.75 s, p90 0.5 s and the median a millisecond or two.
#[test]
fn what_is_due_while_the_service_stands_waits_for_what_is_left() {
    for left in (0..TRIES).rev() {
        let (frozen_ms, played) = freeze();
        let operation = played.operation();
        let lag_ms = operation.latencies.send_lag.value_at_quantile(0.99) as f64 / 1e6;
        // Where the generator does not get the CPU either, its own send lag says so: such a run measures nothing, and
        // is made again. The last one counts.
        if lag_ms > 0.01 * frozen_ms && left > 0 {
            eprintln!("the generator stood for {lag_ms} ms as well: once more");
            continue;
        }
        played.all("ok");
        assert_eq!(operation.offered, (RATE * LENGTH) as u64);
        let ms = |q: f64| operation.latencies.response.value_at_quantile(q) as f64 / 1e6;
        for (q, slack) in [(0.01, 0.03), (0.05, 0.03), (0.10, 0.05)] {
            let (expected, measured) = (frozen_ms - q * LENGTH * 1e3, ms(1.0 - q));
            let off = (measured / expected - 1.0).abs();
            assert!(off < slack, "p{} is {measured} ms, not {expected} ms within {slack}", 100.0 * (1.0 - q));
        }
        assert!((ms(1.0) / frozen_ms - 1.0).abs() < 0.05, "the longest took {} ms", ms(1.0));
        // Four of five requests met a service that takes a millisecond.
        assert!((1.0..25.0).contains(&ms(0.5)), "p50 is {} ms", ms(0.5));
        let service = &operation.latencies.service;
        let slow = service.count_between(500_000_000, service.max());
        assert!((1..=50).contains(&slow), "only those on their way saw it in their service time: {slow}");
        return;
    }
}
