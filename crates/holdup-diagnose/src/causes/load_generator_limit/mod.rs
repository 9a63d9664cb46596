//! The load generator itself is the limit: its numbers are then not the service's.

mod own_account;
#[cfg(test)]
mod tests;

use crate::change::Fix;
use crate::change::host::Place;
use holdup_recording::Labels;
use holdup_recording::rows::Request;

use self::own_account::own_account;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, MATTERS, Others, Outcome, Role, SERVICE_SLOWED, Source::Of,
    Trait, ms,
};
use crate::case::{Case, SPOILED};
use crate::generator::GeneratorWords;
use crate::next_command::NextCommand;
use crate::strength::{CERTAIN, STRONG};
use holdup_signals::client::validity::Limit;
use holdup_signals::evidence::Evidence;
use holdup_signals::time::requests::{client_queue_ms, mean_over, send_lag_ms, service_ms, unloaded_ms};
use holdup_signals::{Missing, Window};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::Outside, Trait::OnGenerator],
    follows_from: &[
        // A loop of holdup's that stands in the run queue of full CPUs sends late.
        Edge::same_time(&[&[Of(Cause::CpuSaturated)]]),
    ],
    ..Definition::new(Cause::LoadGeneratorLimit, DOC, Judge::Beside(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "The load generator is the limit",
    what: "The machine or process that generates the load can't keep up: it sends late, or its limit on requests in flight binds while the service still answers as fast as before.",
    hurts: "Every number of the run then describes the generator. A knee found this way is the knee of the wrong system.",
    needs: "Request rows with intended start, the moment a connection was free, and send; for the reason, the generator's own samples (busy time, run-queue wait, CPU quota). holdup's own runs have them.",
    predicts: "Send lag (from connection free to sent) is a large part of response time; or requests wait for a free connection while service time is as low as without load, or while nothing in the service shows a delay, the wait is nearly all of it, and even a service without load would need more connections. Its loop never sleeps, waits for a CPU, or its CPU cgroup is out of quota.",
    clears: "Send lag is a small share of the excess, and if requests waited for a connection, the service itself had become slower, and a cause in it shows. Or a cause in it makes up most of its time, and without that the connections would suffice.",
    looks_like: "A slow service: it too makes requests wait for the generator's connections, but its service time grows. A closed-model generator never shows the difference.",
    fix: "More connections (load.connections); another core (--loops, --cpus), a larger CPU quota, fewer processes beside it; its schedule split over machines (--shard).",
    prove: "Run again: send lag is a small share of response time and requests find a free connection.",
    references: "G. Tene, How NOT to Measure Latency (coordinated omission); J. D. C. Little, A Proof for the Queuing Formula L = λW, 1961.",
};

/// Shows it in one command.
const NEXT: NextCommand =
    NextCommand::anywhere("top -b -n 1 on the load generator", 1, "whether the generator itself is short of CPUs");

/// From this share (0-1) of the excess the wait for a connection is all of it.
const ALL: f64 = 0.9;

/// From this share (0-1) of service time a cause in the service is what requests are slow of.
const MOST: f64 = 0.5;

/// A request that waited no longer than this found a free connection, milliseconds.
const FOUND_FREE_MS: f64 = 1.0;

/// Share (0-1) of its connections up to which a generator has one for each request.
const ENOUGH: f64 = 0.8;

fn judge(case: &Case<'_>, others: &Others) -> Result<Outcome, Missing> {
    let waits = OwnWaits::measure(case)?;
    let (lag_ms, queued_ms) = (waits.lag_ms, waits.queued_ms);
    let of_service = slowest_of_service(others);
    let own = own_account(case);
    // A loop that can't keep up causes its own queue: it frees connections late.
    let full = case.limited_ratio >= SPOILED
        && case.share(lag_ms + queued_ms) >= MATTERS
        && (!waits.is_service_slower() || case.validity.limits().iter().any(|(_, r)| r.limit == Limit::Busy));
    // An idle service would need as many as well, and nothing in this one shows why it is slower.
    let is_unheld = of_service.is_none() && !waits.would_suffice(case, waits.unloaded_ms);
    let is_all = is_unheld && case.share(queued_ms) >= ALL && is_capped(case);
    let capped = case.share(queued_ms) >= MATTERS && (!waits.is_service_slower() || is_all);
    let held = of_service.filter(|(_, ms)| capped && waits.would_suffice_without(case, *ms));
    let (explains_ms, mut evidence, fixes) = if full || case.share(lag_ms) >= MATTERS {
        if full && queued_ms > lag_ms {
            (lag_ms + queued_ms, vec![waits.queued_for_loop(), waits.late()], stronger_generator(case))
        } else {
            (lag_ms, vec![waits.late()], stronger_generator(case))
        }
    } else if let Some((cause, ms)) = held {
        return Ok(Outcome::Cleared(vec![waits.queued_behind(cause, ms)]));
    } else if capped {
        (queued_ms, vec![waits.queued_as_allowed()], vec![waits.more_connections()])
    } else {
        let cleared = own.into_iter().chain([waits.late()]).chain(waits.queued_for_service());
        return Ok(Outcome::Cleared(cleared.collect()));
    };
    evidence.extend(own);
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights: vec![if waits.is_service_slower() && capped { STRONG } else { CERTAIN }],
        fixes,
        prove: "Run the same scenario again: every slice is valid, and send lag and the wait for a connection are gone from the ledger."
            .to_owned(),
        role: Role::Root,
    }))
}

/// The cause within the service that explains most, with its milliseconds.
fn slowest_of_service(others: &Others) -> Option<(Cause, f64)> {
    let found = others.iter().filter_map(|(cause, outcome)| match outcome {
        Ok(Outcome::Found(found) | Outcome::Fails(found, _)) => Some((*cause, found.explains_ms)),
        _ => None,
    });
    found.filter(|(cause, _)| !cause.is(Trait::Outside)).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Whether most requests of the episode found every connection in use.
fn is_capped(case: &Case<'_>) -> bool {
    let waited = |r: &Request| Some(f64::from(u8::from(client_queue_ms(r) > FOUND_FREE_MS)));
    let rows = case.slow_requests().unwrap_or_default();
    mean_over(rows.iter().copied(), waited).is_some_and(|share| share >= SPOILED)
}

/// What a mean slow request waited for within the generator, beside what the service took.
struct OwnWaits {
    window: Window,
    /// From when a connection was free until it was sent, milliseconds.
    lag_ms: f64,
    /// For a free connection.
    queued_ms: f64,
    service_ms: f64,
    /// What the service takes at its fastest.
    unloaded_ms: f64,
    /// Requests that may be in flight.
    connections: u32,
}

impl OwnWaits {
    fn measure(case: &Case<'_>) -> Result<Self, Missing> {
        let requests = case.slow_requests()?;
        let over = |of: fn(&Request) -> Option<f64>| mean_over(requests.iter().copied(), of).unwrap_or(0.0);
        Ok(Self {
            window: case.slow().window,
            lag_ms: over(send_lag_ms),
            queued_ms: over(|r| Some(client_queue_ms(r))),
            service_ms: over(service_ms),
            unloaded_ms: unloaded_ms(case.requests_in(case.whole())?),
            connections: case.recording.manifest.load.as_ref().map_or(0, |l| l.connections),
        })
    }

    fn is_service_slower(&self) -> bool {
        self.service_ms >= SERVICE_SLOWED * self.unloaded_ms
    }

    /// Whether connections would suffice for all due requests without `ms`, most of what the service
    /// takes.
    fn would_suffice_without(&self, case: &Case<'_>, ms: f64) -> bool {
        ms >= MOST * self.service_ms && self.would_suffice(case, self.service_ms - ms)
    }

    /// The same if each request took `ms`, by Little's law.
    fn would_suffice(&self, case: &Case<'_>, ms: f64) -> bool {
        case.peak_offered_per_second() * ms.max(0.0) / 1e3 <= ENOUGH * f64::from(self.connections)
    }

    fn queued_behind(&self, cause: Cause, cause_ms: f64) -> Evidence {
        self.queued(&format!(
            "one of {} connections because the service held each for {}, of which {cause} accounts for {}: without that they would suffice",
            self.connections,
            ms(self.service_ms),
            ms(cause_ms.min(self.service_ms))
        ))
    }

    fn evidence(&self, column: &str, observed_ms: f64, expected: &str, text: String) -> Evidence {
        Evidence::new("requests", column, Labels::none(), self.window, ms(observed_ms), expected, text)
    }

    fn late(&self) -> Evidence {
        let text = format!("holdup sent each request {} late, on average", ms(self.lag_ms));
        self.evidence("sent_at", self.lag_ms, "a small share of the delay", text)
    }

    fn queued(&self, why: &str) -> Evidence {
        self.evidence("ready_at", self.queued_ms, "0 ms", format!("requests waited {} for {why}", ms(self.queued_ms)))
    }

    fn queued_for_loop(&self) -> Evidence {
        self.queued("a connection that the generator had not freed")
    }

    fn queued_as_allowed(&self) -> Evidence {
        let usual = if self.is_service_slower() { "and nothing in it shows a delay" } else { "as usual" };
        self.queued(&format!(
            "one of {} connections while the service took {}, {usual} ({} at its fastest)",
            self.connections,
            ms(self.service_ms),
            ms(self.unloaded_ms)
        ))
    }

    /// None if hardly any request waited.
    fn queued_for_service(&self) -> Option<Evidence> {
        (self.queued_ms > 1.0).then(|| {
            self.queued(&format!(
                "one of {} connections because the service held each for {}, {:.0} times its fastest",
                self.connections,
                ms(self.service_ms),
                self.service_ms / self.unloaded_ms.max(1e-6)
            ))
        })
    }

    fn more_connections(&self) -> Fix {
        let text = format!(
            "Allow more than {} requests in flight: load.connections in the scenario, or --connections.",
            self.connections
        );
        Fix { text, command: None, keep: None, risk: None }
    }
}

/// By the limits of the generator that bound.
fn stronger_generator(case: &Case<'_>) -> Vec<Fix> {
    let mut fixes = case.validity.fixes();
    // A container's kernel is not set from within it.
    if !Place::find(&case.slow(), "host").is_machine() {
        for fix in fixes.iter_mut().filter(|fix| fix.command.as_ref().is_some_and(|c| c.starts_with("sysctl"))) {
            fix.command = None;
        }
    }
    if fixes.is_empty() {
        let text = "Give the generator a dedicated core, or split the load over machines.".to_owned();
        fixes.push(Fix { text, command: None, keep: None, risk: None });
    }
    fixes
}
