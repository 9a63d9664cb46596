//! The load generator itself is the limit: its numbers are then not the service's.

use holdup_recording::rows::Request;
use holdup_recording::{Labels, metrics};

use super::{Doc, Judge, MATTERS, Occurs, Outcome, Role, Rule, RuleFinding, SERVICE_SLOWED, ms, percent};
use crate::case::{Case, SPOILED};
use crate::strength::CERTAIN;
use holdup_signals::change::host::Place;
use holdup_signals::client::{client_queue_ms, mean_over, send_lag_ms, service_ms, unloaded_ms};
use holdup_signals::evidence::{Evidence, Fix};
use holdup_signals::validity::{Label, Limit};
use holdup_signals::{Missing, Window};

pub const RULE: Rule = Rule {
    cause: "load_generator_limit",
    occurs: Occurs::Anywhere,
    doc: Doc {
        title: "The load generator is the limit",
        what: "The machine or process that generates the load can't keep up: it sends late, or its limit on requests in flight binds while the service still answers as fast as before.",
        hurts: "Every number of the run then describes the generator. A knee found this way is the knee of the wrong system.",
        needs: "Request rows with intended start, the moment a connection was free, and send; for the reason, the generator's own samples (busy time, run-queue wait, CPU quota). holdup's own runs have them.",
        predicts: "Send lag (from connection free to sent) is a large part of response time; or requests wait for a free connection while service time is as low as without load. Its loop never sleeps, waits for a CPU, or its CPU cgroup is out of quota.",
        clears: "Send lag is a small share of the excess, and if requests waited for a connection, the service itself had become slower.",
        looks_like: "A slow service: it too makes requests wait for the generator's connections, but its service time grows. A closed-model generator never shows the difference.",
        fix: "More connections (load.connections); another core (--loops, --cpus), a larger CPU quota, fewer processes beside it; its schedule split over machines (--shard).",
        prove: "Run again: send lag is a small share of response time and requests find a free connection.",
        references: "G. Tene, How NOT to Measure Latency (coordinated omission); J. D. C. Little, A Proof for the Queuing Formula L = λW, 1961.",
    },
    judge: Judge::Alone(judge),
};

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let requests = case.slow_requests()?;
    let window = case.slow().window;
    let over = |of: fn(&Request) -> Option<f64>| mean_over(requests.iter().copied(), of).unwrap_or(0.0);
    let (lag, queued, service) = (over(send_lag_ms), over(|r| Some(client_queue_ms(r))), over(service_ms));
    let unloaded = unloaded_ms(case.requests_in(case.whole())?);
    let connections = case.recording.manifest.load.as_ref().map_or(0, |l| l.connections);

    let evidence = |column: &str, observed: String, expected: &str, text: String| {
        Evidence::new("requests", column, Labels::none(), window, observed, expected, text)
    };
    let lag_text = format!("holdup sent each request {} late, on average", ms(lag));
    let late = evidence("sent_at", ms(lag), "a small share of the delay", lag_text);
    let own = own_account(case);

    let slowed = service >= SERVICE_SLOWED * unloaded;
    // A loop that can't keep up causes its own queue: it frees connections late.
    let full = case.limited_ratio >= SPOILED
        && case.share(lag + queued) >= MATTERS
        && (!slowed || case.validity.limits().iter().any(|(_, r)| r.limit == Limit::Busy));
    let capped = case.share(queued) >= MATTERS && !slowed;
    let (explains_ms, mut evidence, fixes) = if full || case.share(lag) >= MATTERS {
        let mut fixes = case.validity.fixes();
        // A container's kernel is not set from within it.
        if !Place::find(&case.slow(), "host").is_machine() {
            for fix in fixes.iter_mut().filter(|fix| fix.command.as_ref().is_some_and(|c| c.starts_with("sysctl"))) {
                fix.command = None;
            }
        }
        if fixes.is_empty() {
            fixes.push(Fix {
                text: "Give the generator a dedicated core, or split the load over machines.".to_owned(),
                command: None,
                keep: None,
                risk: None,
            });
        }
        let queue = evidence(
            "ready_at",
            ms(queued),
            "0 ms",
            format!("requests waited {} for a connection that the generator had not freed", ms(queued)),
        );
        if full && queued > lag { (lag + queued, vec![queue, late], fixes) } else { (lag, vec![late], fixes) }
    } else if capped {
        let text = format!(
            "requests waited {} for one of {connections} connections while the service took {}, as usual ({} at its fastest)",
            ms(queued),
            ms(service),
            ms(unloaded)
        );
        let fix = Fix {
            text: format!(
                "Allow more than {connections} requests in flight: load.connections in the scenario, or --connections."
            ),
            command: None,
            keep: None,
            risk: None,
        };
        (queued, vec![evidence("ready_at", ms(queued), "0 ms", text)], vec![fix])
    } else {
        let mut cleared = own;
        cleared.push(late);
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
    Ok(Outcome::Found(RuleFinding {
        explains_ms,
        evidence,
        weights: vec![CERTAIN],
        fixes,
        prove: "Run the same scenario again: every slice is valid, and send lag and the wait for a connection are gone from the ledger."
            .to_owned(),
        role: Role::Root,
    }))
}

/// The generator's own figures, loop by loop, and every limit of its own that bound.
fn own_account(case: &Case<'_>) -> Vec<Evidence> {
    let view = case.slow();
    let mut own = Vec::new();
    let loops = view.label_values(metrics::load::CPU.name, "loop");
    let several = loops.len() > 1;
    for name in &loops {
        let pair = [("loop", name.as_str())];
        let labels: &[(&str, &str)] = if name.is_empty() { &[] } else { &pair };
        let read = |metric: &str| view.counter(metric, labels, "holdup run").ok();
        let share = |metric: &str| read(metric).map(|c| percent(c.rate()));
        if let Some(cpu) = read(metrics::load::CPU.name) {
            let which = if several { format!("loop {name}") } else { "its loop".to_owned() };
            let awake = share(metrics::load::BUSY.name)
                .map_or_else(String::new, |s| format!(", was awake for {s} of the time"));
            let waited = share(metrics::load::RUN_QUEUE.name)
                .map_or_else(String::new, |s| format!(", waited for a CPU for {s}"));
            let text = format!("{which} used {} of one core{awake}{waited}", percent(cpu.rate()));
            own.push(cpu.evidence(percent(cpu.rate()), "below 100 %", text));
        }
    }
    for (limit, _, text) in case.validity.sentences() {
        let Some(window) = case.validity.windows(Label::GeneratorLimited).reduce(|a, b| Window { to: b.to, ..a })
        else {
            break;
        };
        let evidence = |table: &str, column: &str, labels: Labels| {
            Evidence::new(table, column, labels, window, "", "", text.clone())
        };
        let sample = |metric: &str| evidence("samples", "value", Labels::new([("metric", metric)]));
        own.push(match limit {
            Limit::Busy => sample(metrics::load::BUSY.name),
            Limit::RunQueue => sample(metrics::load::RUN_QUEUE.name),
            Limit::Throttled => sample(metrics::load::THROTTLED.name),
            Limit::SendLag => evidence("requests", "sent_at", Labels::none()),
            Limit::LocalPorts => evidence("requests", "outcome", Labels::none()),
            Limit::InFlight => continue,
        });
    }
    own
}
