//! Operations wait for a ticket of MongoDB's storage engine.

mod signs;

use super::Source::{Of, With};
use super::{Cause, CauseFinding, Definition, Doc, Edge, Judge, Occurs, Outcome, Role, Trait};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command::NextCommand;
use crate::resources::tickets::Tickets;
use crate::resources::{is_too_small, tickets};
use crate::strength::{CERTAIN, STRONG};
use holdup_signals::Missing;

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::OnMongodb,
    traits: &[Trait::Queue],
    follows_from: &[
        // An operation keeps its ticket while it reads, writes or waits for a lock.
        Edge::in_front(
            &[
                &[Of(Cause::ProcessStopped)],
                &[Of(Cause::LockContention)],
                &[With(Trait::LongStatement), With(Trait::FullCpu)],
                &[With(Trait::Load)],
            ],
            tickets::held_ms,
        ),
    ],
    signs: Some(signs::find),
    ..Definition::new(Cause::TicketsExhausted, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "Operations queue for the storage engine's tickets",
    what: "MongoDB lets so many operations at once into its storage engine: each needs a read or a write ticket. All are in use, so further operations wait in the server's queue.",
    hurts: "The queue grows with everything that keeps tickets: a wait of some milliseconds for the disk, times the number of those in front, becomes seconds.",
    needs: "The server's queue and tickets (--watch mongodb://…, or its diagnostic.data), and what holds tickets: disks, CPUs and the storage engine's cache.",
    predicts: "No ticket is left while operations stand in globalLock.currentQueue; the queue divided by the rate of operations is the delay.",
    clears: "Tickets were left in every sample, or the queue is too short to matter.",
    looks_like: "An operation that holds a lock on a whole database or on everything: operations queue as well, and tickets are left.",
    fix: "Shorten what operations do while they hold a ticket: the cause below this one is nearly always a disk, a missing index or the cache. More tickets only move the queue into the storage engine.",
    prove: "The same load again: tickets are left, and globalLock.currentQueue is near 0.",
    references: "MongoDB manual: serverStatus (globalLock.currentQueue, wiredTiger.concurrentTransactions, queues.execution), storageEngineConcurrentReadTransactions.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "db.serverStatus(); db.currentOp({active: true})",
    1,
    "whether tickets are left, how many operations wait for one, and what those at work do",
);

/// None was left in this share (0-1) of the samples: below, the queue was for something else most of
/// the time.
const GONE: f64 = 0.3;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let tickets = Tickets::measure(&view)?;
    let explains_ms = tickets.request_ms(&view, case.completed_in(view.window)?.max(1.0));
    let [queue, left] = tickets.evidence();
    if tickets.gone_ratio() < GONE {
        return Ok(Outcome::Cleared(vec![left, queue]));
    }
    if is_too_small(case, explains_ms)? {
        return Ok(Outcome::Cleared(vec![queue, left]));
    }
    let kind = tickets.kind;
    let fix = Fix {
        text: format!(
            "Find what operations do with their {kind} ticket: db.currentOp({{active: true}}) shows the oldest, and the disk, the index and the cache come first. Leave the number of tickets alone until that is known."
        ),
        command: None,
        keep: None,
        risk: None,
    };
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence: vec![queue, left],
        weights: vec![STRONG, CERTAIN * tickets.gone_ratio()],
        fixes: vec![fix],
        prove:
            "Run the same scenario again: tickets are left, and hardly any operation waits in globalLock.currentQueue."
                .to_owned(),
        role: Role::Root,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    const STATUS: &str = "mongodb_server_status";

    /// 200 requests a second of 100 ms; `queued` operations wait to write and `left` tickets are left.
    fn made(queued: f64, left: f64) -> SyntheticRecording {
        let level = |made: SyntheticRecording, name: &str, value| {
            made.gauge("mongodb://db", &format!("{STATUS}_{name}"), &[], value)
        };
        let tickets = "wired_tiger_concurrent_transactions";
        let made = SyntheticRecording::new(20).requests(200, 100);
        let made =
            level(level(made, "global_lock_current_queue_readers", 0.0), "global_lock_current_queue_writers", queued);
        let made = level(level(made, &format!("{tickets}_read_out"), 3.0), &format!("{tickets}_read_available"), 125.0);
        level(level(made, &format!("{tickets}_write_out"), 128.0 - left), &format!("{tickets}_write_available"), left)
    }

    #[test]
    fn the_queue_over_the_rate_is_what_a_request_waits() {
        let found = made(16.0, 0.0).explains(&DEFINITION).unwrap();
        assert!((found - 80.0).abs() < 4.0, "{found}");
    }

    #[test]
    fn tickets_that_are_left_and_a_short_queue_clear_it() {
        assert_eq!(made(16.0, 40.0).explains(&DEFINITION), Some(0.0), "a lock makes the same queue");
        assert_eq!(made(0.2, 0.0).explains(&DEFINITION), Some(0.0));
        for gone in ["global_lock_current_queue_writers", "wired_tiger_concurrent_transactions_write_available"] {
            assert_eq!(made(16.0, 0.0).without(&format!("{STATUS}_{gone}")).explains(&DEFINITION), None, "{gone}");
        }
    }
}
