//! The load generator itself is the limit: its numbers are then not the service's.

use holdup_recording::Labels;

use super::{Doc, Found, MATTERS, Outcome, Rule, ms, percent};
use crate::case::Case;
use crate::signals::Missing;
use crate::signals::client::{client_queue_ms, mean, quantile, send_lag_ms, service_ms};
use crate::verdict::{Evidence, Fix, Role};

/// A service whose requests take this many times the time of its fastest ones is slow itself; that its slow
/// requests then use up the generator's connections is its doing, not the generator's.
const SERVICE_SLOWED: f64 = 2.0;

/// The rule.
pub const RULE: Rule = Rule {
    cause: "load_generator_limit",
    doc: Doc {
        title: "The load generator is the limit",
        what: "The machine or process that puts the load on can't keep up: it sends late, or its cap on requests in flight binds while the service still answers as fast as ever.",
        hurts: "Every number of the run is then about the generator. A knee found this way is the knee of the wrong system.",
        needs: "Request rows with intended start, moment a connection was free, and send. holdup's own runs have them.",
        predicts: "Send lag (from connection free to sent) is a large part of response time; or requests wait for a free connection while service time stays what it is without load.",
        clears: "Send lag is a small share of what requests are too slow by, and where requests waited for a connection, the service itself had become slower.",
        looks_like: "A slow service: it too makes requests wait for the generator's connections, but its service time grows. A closed-model generator never shows the difference.",
        fix: "More connections (load.connections), more or other machines for the generator, fewer processes beside it.",
        prove: "Run again: send lag is a small share of response time and requests find a free connection.",
        references: "G. Tene, How NOT to Measure Latency (coordinated omission); J. D. C. Little, A Proof for the Queuing Formula L = λW, 1961.",
    },
    judge,
};

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let requests = case.slow_requests()?;
    let window = case.slow().window;
    let lag = mean(requests.iter().filter_map(|r| send_lag_ms(r))).unwrap_or(0.0);
    let queued = mean(requests.iter().map(|r| client_queue_ms(r))).unwrap_or(0.0);
    let service = mean(requests.iter().filter_map(|r| service_ms(r))).unwrap_or(0.0);
    let mut unloaded: Vec<f64> = case.requests_in(case.whole())?.iter().filter_map(|r| service_ms(r)).collect();
    unloaded.sort_by(f64::total_cmp);
    let unloaded = quantile(&unloaded, 0.05).unwrap_or(0.0);
    let connections = case.recording.manifest.load.as_ref().map_or(0, |l| l.connections);

    let evidence = |column: &str, observed: String, expected: &str, text: String| {
        Evidence::new("requests", column, Labels::none(), window, observed, expected, text)
    };
    let lag_text = format!("holdup sent each request {} after it could, on average", ms(lag));
    let late = evidence("sent_at", ms(lag), "a small share of the delay", lag_text);
    let mut own = Vec::new();
    if let Ok(cpu) = case.slow().counter("holdup_load_cpu_seconds_total", &[], "holdup run") {
        let text = format!("its loop used {} of one core", percent(cpu.rate()));
        own.push(cpu.evidence(percent(cpu.rate()), "below 100 %", text));
    }

    let capped = case.share(queued) >= MATTERS && service < SERVICE_SLOWED * unloaded;
    let (explains_ms, mut evidence, fix) = if case.share(lag) >= MATTERS {
        let fix = Fix {
            text: "Give the generator a core of its own, or split the load over machines.".to_owned(),
            command: None,
            risk: None,
        };
        (lag, vec![late], fix)
    } else if capped {
        let text = format!(
            "requests waited {} for one of {connections} connections while the service took {}, as ever ({} at its fastest)",
            ms(queued),
            ms(service),
            ms(unloaded)
        );
        let fix = Fix {
            text: format!(
                "Allow more than {connections} requests in flight: load.connections in the scenario, or --connections."
            ),
            command: None,
            risk: None,
        };
        (queued, vec![evidence("ready_at", ms(queued), "0 ms", text)], fix)
    } else {
        let mut cleared = vec![late];
        cleared.extend(own);
        if queued > 1.0 {
            let text = format!(
                "requests waited {} for one of {connections} connections because the service held each for {}, {:.0} times its fastest",
                ms(queued),
                ms(service),
                service / unloaded.max(1e-6)
            );
            cleared.push(evidence("ready_at", ms(queued), "0 ms", text));
        }
        return Ok(Outcome::Cleared(cleared));
    };
    evidence.extend(own);
    Ok(Outcome::Found(Found {
        explains_ms,
        evidence,
        weights: vec![0.95],
        fixes: vec![fix],
        prove: "Run the same scenario again: send lag and the wait for a connection are gone from the ledger."
            .to_owned(),
        role: Role::Root,
    }))
}
