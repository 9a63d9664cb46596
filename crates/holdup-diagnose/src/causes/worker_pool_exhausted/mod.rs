//! All workers of the app server are busy, and requests wait for one.

mod advice;
mod signs;
mod slots;
#[cfg(test)]
mod tests;
mod timed;

use super::Source::{AnyBehindApp, Of, With};
use super::{Cause, CauseFinding, Definition, Doc, Edge, Judge, MATTERS, Outcome, Role, Trait, of_failures_in};
use crate::case::Case;
use crate::resources::share;
use crate::resources::workers::{self, Pool, WorkerHold, stretch};
use crate::strength::{AS_SYMPTOM, NONE, STRONG, Strength};
use crate::{failures, next_command};
use holdup_signals::Missing;
use holdup_signals::client::latency::Origin;

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::Pool, Trait::InFrontOfApp, Trait::Queue],
    follows_from: &[
        // A request holds its worker throughout, whatever it waits for.
        Edge::in_front(
            &[
                &[Of(Cause::CpuThrottled), Of(Cause::ProcessStopped)],
                &[Of(Cause::RuntimePause)],
                &[
                    Of(Cause::DownstreamSlow),
                    Of(Cause::ConnectionPoolExhausted),
                    Of(Cause::ThreadPoolQueue),
                    Of(Cause::TicketsExhausted),
                    Of(Cause::LockContention),
                ],
                &[AnyBehindApp],
                &[With(Trait::Load)],
            ],
            workers::held_ms,
        ),
    ],
    signs: Some(signs::find),
    is_answered: |facts| facts.accept_queue.is_some() && facts.workers.is_some(),
    errors: &[(holdup_recording::events::WORKERS_BUSY, crate::strength::CERTAIN)],
    ..Definition::new(Cause::WorkerPoolExhausted, DOC, Judge::Alone(judge), &next_command::ACCEPT_QUEUES)
};

const DOC: Doc = Doc {
    title: "All workers of the app server are busy",
    what: "An app server takes as many requests at once as it has workers: threads, processes, or both. A proxy in front of it may take fewer: HAProxy sends each server at most maxconn requests, and those slots are workers, too. With N workers that are each held for H seconds it answers no more than N / H requests per second, whatever holds them: a worker that waits for a downstream service or a database is as busy as one that computes.",
    hurts: "Further requests wait in front of the app, most of them in the kernel's accept queue, where no metric of the app counts them, or in the proxy's queue. Its own timing stays fine, CPU and memory too. When the queue is full connections are refused or time out, and a liveness probe in the same queue has the server killed.",
    needs: "How many workers are busy and how many there are (--watch puma:…, uwsgi:…, php-fpm:…, a JVM's prometheus:…), and what waits in front of them (--watch server:PORT; --watch haproxy:PATH for the queue of a proxy). From outside alone both show once requests wait in the accept queue, or once all threads of a server that gives each request a thread have one. The app's spans, or its http.server.request.duration, give the wait as the client's time beyond them.",
    predicts: "All workers are busy at most instants; connections stand in the accept queue, or the server has accepted more requests than it has workers; by Little's law that wait is a large part of the excess.",
    clears: "Workers were free at most instants, or the requests waiting for one are a small share of the delay. By the app's own timing, workers were idle while requests waited: something keeps the server from its requests, or they are still on their way.",
    looks_like: "A slow downstream service or database, a CPU quota, saturated CPUs: each holds workers longer, and the pool is a symptom of whatever makes up most of worker-hold time. It is a symptom even if that is not visible, provided that the hold time of the baseline window would have sufficed. Held as long as before, workers are the root: there are fewer of them, or more load. A server of fibres takes any number of requests at once: they then wait inside, for a pooled connection, a lock or the CPU, and neither its own figures nor the accept queue shows it; spans do. Puma's backlog stays 0 and its `running` counts threads that exist.",
    fix: "More workers, as many as rate times hold time needs (or more slots of the proxy, if the app has free workers), within memory and the database's budget of connections; if they mostly wait, fibres or another server that takes further requests meanwhile; deadlines for calls.",
    prove: "The same load again: workers are free at most instants, and the accept queue is empty.",
    references: "J. D. C. Little, A Proof for the Queuing Formula L = λW, 1961; listen(2), accept(2); Puma documentation: architecture, stats; uWSGI documentation: stats server; PHP manual: FPM status page; HAProxy documentation: maxconn, statistics; M. Nygard, Release It!, Blocked Threads.",
};

/// Below this share (0-1) of instants, all workers were busy only by chance.
const NOW_AND_THEN: f64 = 0.1;

/// Worth (0-1) of the evidence if the kernel alone shows a server's workers, and no source what
/// holds them.
const UNTOLD: f64 = 0.5;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let pool = Pool::for_case(case)?;
    let held = WorkerHold::measure(case, &pool);
    let overflow_ms = workers::dropped_ms(case, Some(&pool));
    let mut evidence = pool.evidence();
    // Without counted workers, the app's timing is the account that shows the queue.
    let at = if pool.most.is_some() { evidence.len() } else { 0 };
    evidence.splice(at..at, timed::evidence(&pool));
    let is_full = pool.is_full();

    let explains_ms = waited_ms(&pool, overflow_ms);
    let matters = share(case, explains_ms + overflow_ms) >= MATTERS;
    let failed = failed_share(case, &pool)?;
    match () {
        // Requests wait inside, and no source shows for what.
        () if pool.most.is_none() && pool.timing.is_none() && !pool.is_standing() => {
            if let Some(missing) = pool.unsplit(case, held.as_ref()) {
                return Err(missing);
            }
            evidence.extend(pool.answering_evidence());
            return Ok(Outcome::Cleared(evidence));
        }
        () if pool.most.is_some() && !is_full => {
            // Its own figures may be seconds old, and are missing while it starts: if they show
            // busy workers now and then, they clear nothing.
            let now_and_then = pool.full_ratio.is_some_and(|ratio| ratio >= NOW_AND_THEN);
            if !pool.knows_hand() && (pool.is_standing() || now_and_then || pool.is_unseen()) {
                return Err(Missing::new(
                    "accepted requests (samples of server_answering_connections), because the server's own figures are seconds old",
                    "--watch server:PORT of the app",
                ));
            }
            evidence.rotate_left(1);
            return Ok(Outcome::Cleared(evidence));
        }
        // Its own figures may show 0 for a queue that belongs to the kernel.
        () if is_full && !matters && !pool.knows_queue() && pool.timing.is_none() => {
            return Err(Missing::new(
                "requests waiting for a worker: the accept queue of the app's port",
                "--watch server:PORT of the app",
            ));
        }
        () if !matters && failed < MATTERS => return Ok(Outcome::Cleared(evidence)),
        () => {}
    }
    let weights = weights(case, &pool, held.as_ref());
    if let Some(held) = &held {
        evidence.extend(held.evidence(case, &pool));
        evidence.extend(timed::against_baseline(case, &pool, held, evidence.first()));
    }
    if failed >= MATTERS {
        evidence.push(of_failures_in(stretch(case).window, failed, "got no answer while others waited for a worker"));
    }
    let is_held_longer = held.as_ref().is_some_and(|held| held.was_enough_at_ms(case).is_some());
    let found = CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: match pool.workers.as_ref().filter(|workers| workers.backend.is_some()) {
            Some(slots) => slots::fixes(case, &pool, slots, held.as_ref()),
            None => advice::fixes(case, &pool, held.as_ref()),
        },
        prove: prove(&pool).to_owned(),
        role: if is_held_longer { Role::Symptom } else { Role::Root },
    };
    Ok(Outcome::Fails(found, failed))
}

/// Milliseconds that a request waits for a worker, beside what connections that overflow cost.
fn waited_ms(pool: &Pool, overflow_ms: f64) -> f64 {
    let queued_ms = pool.queued_ms();
    // The app's own timing bounds the wait from above, because the rest includes transport.
    match (&pool.timing, pool.timed_ms()) {
        (Some(timing), _) if pool.is_full() && overflow_ms <= 0.0 => queued_ms.max(timing.before_ms),
        (_, Some(ms)) if pool.is_timed_queue() => ms,
        _ => queued_ms,
    }
}

fn prove(pool: &Pool) -> &'static str {
    if pool.slots.is_some() {
        "Run the same scenario again: workers and slots are free at most instants, and proxy_queue leaves the ledger."
    } else {
        "Run the same scenario again: workers are free at most instants, and tcp_accept_queue_length stays 0."
    }
}

/// Worth of the evidence, in its order: the app's timing and the accepted requests if they show the
/// queue, then workers and the queue in front of them.
fn weights(case: &Case<'_>, pool: &Pool, held: Option<&WorkerHold>) -> Vec<Strength> {
    // If a server reports nothing about its workers and their holder is unknown, something inside
    // may be what all of them wait for. Held as long as before, they are too few for the load.
    let is_explained =
        pool.workers.is_some() || held.is_some_and(|held| held.known_ms() >= 0.5 * held.ms || held.is_as_before());
    let by_timing = timed::weights(case, pool);
    let unknown = if pool.is_standing() { 0.5 } else { 0.0 };
    let mut weights = vec![
        STRONG * pool.full_ratio.unwrap_or(unknown),
        if pool.knows_queue() { STRONG * pool.queue_ratio() } else { NONE },
    ];
    let at = if pool.most.is_some() { weights.len() } else { 0 };
    weights.splice(at..at, by_timing);
    let part = match () {
        () if held.is_some_and(|held| held.was_enough_at_ms(case).is_some()) => AS_SYMPTOM,
        () if is_explained => 1.0,
        () => UNTOLD,
    };
    weights.into_iter().map(|weight| weight * part).collect()
}

/// The share (0-1) of failed requests that got no answer while others waited for a worker.
fn failed_share(case: &Case<'_>, pool: &Pool) -> Result<f64, Missing> {
    let windows = pool.waiting_windows();
    // Where holdup only watched it knows of no failed request, and of the delay all the same.
    if windows.is_empty() || case.origin != Origin::Client {
        return Ok(0.0);
    }
    failures::unanswered_share(case, &windows)
}
