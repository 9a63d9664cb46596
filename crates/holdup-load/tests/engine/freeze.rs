//! The test of every load generator: the target stops for a while, and what is reported must be how long callers waited.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::play::{Played, play, scenario};
use crate::servers::http1::{self, OK};
use crate::servers::server;

const LENGTH: f64 = 5.0;
const RATE: f64 = 500.0;
const TRIES: u32 = 4;

/// What came of a run against a service that stood for a while.
struct Frozen {
    frozen_ms: f64,
    /// How much longer than asked the service's own pauses took, at most: it did not get the CPU.
    overslept_ms: f64,
    played: Played,
}

/// A server that takes a millisecond, and stands for one second, two seconds after its first request.
fn freeze() -> Frozen {
    let begun: OnceLock<Instant> = OnceLock::new();
    let (from, to) = (Duration::from_secs(2), Duration::from_secs(3));
    let overslept_us = Arc::new(AtomicU64::new(0));
    let most = Arc::clone(&overslept_us);
    let port = server(move |s| {
        http1::answer(s, OK, || {
            let now = begun.get_or_init(Instant::now).elapsed();
            let pause = if (from..to).contains(&now) { to - now } else { Duration::from_millis(1) };
            let asleep = Instant::now();
            thread::sleep(pause);
            most.fetch_max((asleep.elapsed() - pause).as_micros() as u64, Ordering::Relaxed);
        });
    });
    let load = format!("rate: {RATE}, duration: {LENGTH}s, connections: 50");
    let played = play(&scenario(&format!("http://127.0.0.1:{port}"), &load, ""), None);
    let overslept_ms = overslept_us.load(Ordering::Relaxed) as f64 / 1e3;
    Frozen { frozen_ms: (to - from).as_secs_f64() * 1e3, overslept_ms, played }
}

/// Requests due during a freeze of F seconds wait for what is left of it. At a constant rate over D seconds the slowest
/// share q of them are those due in its first q D seconds, so that the percentile 1 - q is F - q D as long as that is
/// positive: of 1 s in 5, p99 is 0.95 s, p95 0.75 s, p90 0.5 s and the median a millisecond or two.
///
/// The upper bounds are the arithmetic of a clock: a machine that stalls by itself makes every wait longer. So a witness
/// stays beside it.
#[test]
#[holdup_witness::judged]
fn requests_due_in_a_stall_wait_for_its_rest() {
    for _ in 0..TRIES {
        let frozen = freeze();
        let operation = frozen.played.operation();
        frozen.played.all("ok");
        assert_eq!(operation.offered, (RATE * LENGTH) as u64);
        let ms = |q: f64| operation.latencies.response.value_at_quantile(q) as f64 / 1e6;
        let expected_ms = |q: f64| frozen.frozen_ms - q * LENGTH * 1e3;
        let (less, more) = (0.02 * frozen.frozen_ms, 0.05 * frozen.frozen_ms);
        for q in [0.0, 0.01, 0.05, 0.10] {
            let (expected, measured) = (expected_ms(q), ms(1.0 - q));
            assert!(measured > expected - less, "p{} is {measured} ms, not {expected} ms", 100.0 * (1.0 - q));
        }
        // A machine that is busy makes waits longer and never shorter. Where the service or the generator did not get the
        // CPU for a while, that is all that can be said, and the run is made again.
        let lag_ms = operation.latencies.send_lag.value_at_quantile(0.99) as f64 / 1e6;
        if lag_ms.max(frozen.overslept_ms).max(ms(0.5)) > 0.01 * frozen.frozen_ms {
            let (late, median) = (frozen.overslept_ms, ms(0.5));
            eprintln!("send lag {lag_ms} ms, service late by up to {late} ms, median {median} ms: once more");
            continue;
        }
        for q in [0.0, 0.01, 0.05, 0.10] {
            let (expected, measured) = (expected_ms(q), ms(1.0 - q));
            assert!(measured < expected + more, "p{} is {measured} ms, not {expected} ms", 100.0 * (1.0 - q));
        }
        // Four of five requests met a service that takes a millisecond.
        assert!(ms(0.5) >= 1.0, "p50 is {} ms", ms(0.5));
        let service = &operation.latencies.service;
        let slow = service.count_between(500_000_000, service.max());
        assert!((1..=50).contains(&slow), "only those on their way saw it in their service time: {slow}");
        return;
    }
    eprintln!("this machine was too busy for more than the lower bounds");
}
