//! Statements wait in the database's thread pool before execution, where no usual view shows them.

mod advice;
mod elsewhere;
mod gap;
mod seen;
mod signs;
#[cfg(test)]
mod tests;

use holdup_recording::{Labels, metrics};

use self::seen::QueueSources;
use super::Source::{Of, With};
use super::parts::clearing;
use super::{Cause, CauseFinding, Definition, Doc, Edge, Judge, Occurs, Outcome, Role, Trait, ms, percent, thousands};
use crate::case::Case;
use crate::next_command::NextCommand;
use crate::resources::{is_too_small, statements};
use crate::strength::FAIR;
use holdup_signals::client::latency::Origin;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View};

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::OnMysql,
    traits: &[Trait::Queue],
    follows_from: &[
        // A statement holds its thread of the pool throughout, including lock waits.
        Edge::in_front(
            &[
                &[Of(Cause::ProcessStopped)],
                &[Of(Cause::LockContention)],
                &[With(Trait::WithinStatement)],
                &[With(Trait::Load)],
            ],
            statements::executed_ms,
        ),
    ],
    signs: Some(signs::find),
    is_answered: |facts| facts.pool_queue.is_some(),
    ..Definition::new(Cause::ThreadPoolQueue, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "Statements queue for the database's thread pool",
    what: "With thread_handling=pool-of-threads a statement that has reached the server waits until its thread group has a free thread. Until then its connection is shown as Sleep, and none of the server's timings includes the wait.",
    hurts: "The client waits seconds for a statement that the server says took a millisecond; each side blames the other.",
    needs: "Any one of: MariaDB's THREAD_POOL_GROUPS and THREAD_POOL_QUEUES (10.5 and later); the database's sockets with unread statements; the packets on the database's machine and the server's own timing; the app's timing of its statements (spans or metrics) and the server's own, if the network is known to be short. Fewer of them make it less certain; if network and queue can't be told apart it says so.",
    predicts: "Connections wait in the pool's queue, their statements unread in the socket; sessions with a queued statement show Sleep; the app's timing of a statement exceeds the server's by about queue length over statement rate (Little's law).",
    clears: "One thread per connection is in use, or the queue is empty in every sample, or both timings of a statement agree.",
    looks_like: "A slow network (the gap exists, the queue is empty), a connection pool in the app (the wait is before the statement is sent), locks (the server's own timing is long too).",
    fix: "More thread groups and a shorter stall limit; take long statements off the pool (a replica, another port); fewer of them at once.",
    prove: "The same load again: queue length 0, and the app's timing of a statement matches the server's.",
    references: "MariaDB documentation: Thread Pool in MariaDB, Information Schema THREAD_POOL_GROUPS and THREAD_POOL_QUEUES; MDEV on CONNECTION_ID being NULL before 10.5.13 and 10.6.5.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "SELECT * FROM information_schema.THREAD_POOL_GROUPS; SELECT * FROM information_schema.THREAD_POOL_QUEUES;",
    1,
    "whether connections that look idle wait for a thread of the pool (QUEUE_LENGTH)",
);

const ENABLE: &str = "--watch mysql://USER@HOST:PORT with PROCESS, on MariaDB 10.5 or later";

/// What to record to tell the queue from the network.
const WIRE: &str = "--watch wire:PORT on the database's machine: it tells the network from the queue there";

/// A network that takes at most this share (0-1) of the gap between both sides does not explain it.
const NETWORK_ASIDE: f64 = 0.25;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    // If sessions and settings were read they must be complete; if not, other sources may suffice.
    let tables = &view.recording.tables;
    if tables.sessions.present {
        view.sessions(&["observed_at", "true_state", "command"])?;
    }
    tables.settings.with_columns(&["name", "value"]).map_err(|what| Missing::new(what, ENABLE))?;
    let handling = view.setting("thread_handling", ENABLE);
    if let Some(other) = handling.as_ref().ok().filter(|h| **h != "pool-of-threads") {
        let text = format!("the server has thread_handling={other}: statements cannot queue for a pool");
        let labels = Labels::new([("name", "thread_handling")]);
        let told = Evidence::new("settings", "value", labels, view.window, *other, "pool-of-threads", text);
        return Ok(Outcome::Cleared(vec![told]));
    }
    let completed = case.completed_in(view.window)?.max(1.0);
    let seen = QueueSources::find(case, handling.is_ok(), completed);
    let Some(explains_ms) = seen.request_ms(case, completed) else {
        let what = "the wait between app and database, seen from both sides";
        return clearing::by_statements(case, "including the pool's queue").ok_or_else(|| Missing::new(what, ENABLE));
    };
    if seen.is_empty_queue() || is_too_small(case, explains_ms)? {
        return Ok(Outcome::Cleared(seen.evidence().into_iter().take(1).collect()));
    }
    // Two rivals make the same gap. A bounded network or a seen queue decides.
    if seen.wire.is_none() && !seen.is_queue_seen() {
        let aside = gap::network_bound_ms(case).is_some_and(|ms| ms <= NETWORK_ASIDE * explains_ms);
        if !aside || !seen.handling {
            let what = format!(
                "which of the two: {} of a request lie between app and database, in the network or in a queue in front of execution",
                ms(explains_ms)
            );
            return Err(Missing::new(what, WIRE));
        }
    }
    let (mut evidence, mut weights) = (seen.evidence(), seen.weights());
    evidence.extend(client_p99(case));
    if let Ok(Some(asleep)) = asleep(&view) {
        evidence.push(asleep);
        weights.push(FAIR);
    }
    if let Ok(longest) = view.gauge(metrics::mysql::THREAD_POOL_QUEUEING_TIME_MAX.name, &[], ENABLE) {
        let most = ms(longest.max * 1e3);
        let text = format!("the longest wait seen in the queue was {most}");
        evidence.push(longest.evidence(most, "0 ms", text));
    }
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: advice::fixes(case, completed, seen.waiting()),
        prove: "Run the same scenario again: mysql_thread_pool_queue_length stays 0 and the admission queue leaves the ledger.".to_owned(),
        role: Role::Root,
    }))
}

fn client_p99(case: &Case<'_>) -> Option<Evidence> {
    let symptom = case.degradation.as_ref().filter(|_| case.origin == Origin::Client)?;
    Some(Evidence::new(
        "requests",
        "done_at",
        Labels::none(),
        symptom.slow,
        ms(symptom.slow_p99_ms),
        String::new(),
        format!("the client's p99 was {}, from the intended start", ms(symptom.slow_p99_ms)),
    ))
}

/// Sessions with a queued statement that the server itself shows as `Sleep`.
fn asleep(view: &View<'_>) -> Result<Option<Evidence>, Missing> {
    let sessions = view.sessions(&["observed_at", "true_state", "command"])?;
    let queued = sessions.iter().filter(|s| s.true_state == "queued").count();
    let asleep = sessions.iter().filter(|s| s.true_state == "queued" && s.command == "Sleep").count();
    if asleep == 0 {
        return Ok(None);
    }
    let share = asleep as f64 / queued as f64;
    let labels = Labels::new([("true_state", "queued"), ("command", "Sleep")]);
    let text = format!(
        "{} of the sampled sessions with a queued statement appear as Sleep ({} of {})",
        percent(share),
        thousands(asleep as f64),
        thousands(queued as f64)
    );
    let evidence = Evidence::new("sessions", "true_state", labels, view.window, percent(share), "0 %", text);
    Ok(Some(evidence))
}
