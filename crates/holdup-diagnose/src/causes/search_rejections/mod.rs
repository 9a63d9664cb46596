//! A node of Elasticsearch or OpenSearch rejects writes or searches: the queue of a thread pool is full, or
//! the memory for writes in flight.

mod advice;
mod holders;
mod refusals;
#[cfg(test)]
mod tests;

use holdup_recording::metrics;

use self::refusals::{ENABLE, Refusals};
use super::parts::present;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, MATTERS, Occurs, Outcome, Role, Source::Of, Source::With, Trait,
    ms, of_failures,
};
use crate::case::Case;
use crate::failures::{self, Failed};
use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::next_command::NextCommand;
use crate::resources::is_felt;
use crate::strength::{FAIR, STRONG};
use holdup_signals::Missing;

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::OnElasticsearch,
    traits: &[Trait::Harm],
    follows_from: &[
        // A task keeps its thread while it waits for a disk or a CPU.
        Edge::in_front(
            &[
                &[Of(Cause::ProcessStopped)],
                &[With(Trait::FullDisk), With(Trait::DiskLimit), With(Trait::FullCpu)],
                &[With(Trait::Load)],
            ],
            held_ms,
        ),
    ],
    signs: Some(find),
    fixes: |facts| {
        let worst = Refusals::worst(&facts.view);
        worst.map_or_else(Vec::new, |worst| advice::fixes(&worst, &worst.holders(&facts.view)))
    },
    ..Definition::new(Cause::SearchRejections, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "A search node rejects work",
    what: "A node of Elasticsearch or OpenSearch runs writes and searches on thread pools of a fixed size. All threads of a pool are at work and its queue is full, so the node rejects further tasks with status 429. It does the same when the writes in flight take more memory than its limit (indexing pressure).",
    hurts: "A rejected search fails. A rejected part of a bulk request is lost unless the client sends it again, so an indexing pipeline falls behind. What is not rejected has waited behind a full queue.",
    needs: "The nodes' thread pools (--watch elasticsearch://… or opensearch://…); for what it costs requests, load from holdup run or the app's failed requests.",
    predicts: "The count of rejected tasks of one pool grows, sample after sample, while its queue is at its limit and its threads are at work.",
    clears: "No task was rejected; or fewer than one in a hundred, or in one short burst that the clients send again, and no request failed of it.",
    looks_like: "A circuit breaker answers 429 as well: elasticsearch_breaker_trips_total grows and no pool rejects. A proxy in front may have a limit of its own. A count that does not grow is about an earlier time.",
    fix: "Find what holds the threads: merges that are behind, collections, a disk, or simply too many requests at once. Send fewer and larger bulk requests, and send what was rejected again after a growing pause. A longer queue only makes clients wait longer, and takes heap.",
    prove: "The same load again: the count of rejected tasks stays, and the pool's queue is mostly empty.",
    references: "Elasticsearch documentation: Thread pools; Rejected requests; Indexing pressure; Tune for indexing speed. OpenSearch documentation: Nodes stats (thread_pool, indexing_pressure).",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "curl 'http://HOST:9200/_cat/thread_pool/write,search?v&h=node_name,name,size,active,queue,queue_size,rejected,completed'",
    5,
    "which node's pool rejects tasks, and whether its threads are all at work",
);

fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let Some(worst) = Refusals::worst(&facts.view) else { return };
    let mut seen = worst.evidence(&facts.view);
    if let Some(holder) = worst.holders(&facts.view).first() {
        seen.text = format!("{}; {}", seen.text, holder.evidence.text);
    }
    present::signs(vec![(worst.strength(), seen)], signs);
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.view(case.whole());
    let worst = Refusals::worst(&view).ok_or_else(|| Missing::new("tasks that thread pools rejected", ENABLE))?;
    let seen = worst.evidence(&view);
    if worst.count() <= 0.0 {
        return Ok(Outcome::Cleared(vec![seen]));
    }
    let share = failures::failed_share(case, &worst.windows);
    let failed = Failed::of(share.and_then(|share| failures::at_most(case, share, worst.count())))?;
    if worst.strength() < FAIR && failed.share < MATTERS {
        return Ok(Outcome::Cleared(vec![seen]));
    }
    let (mut evidence, mut weights) = (vec![seen], vec![worst.strength()]);
    if failed.share > 0.0 {
        evidence.push(of_failures(case, failed.share, "were in flight while it rejected tasks, with one for each"));
        weights.push(STRONG * failed.share);
    }
    let waited_ms = worst.waited_ms(&case.slow(), case.completed_in(case.slow().window)?);
    // Requests that took less than one task waits there do not wait there: others do.
    let explains_ms = if waited_ms <= SLACK * case.excess_ms() { waited_ms } else { 0.0 };
    let is_felt = is_felt(case, explains_ms)?;
    if is_felt {
        evidence.push(worst.queue_evidence(&case.slow(), &ms(explains_ms))?);
        weights.push(FAIR);
    }
    let holders = worst.holders(&view);
    let fixes = advice::fixes(&worst, &holders);
    evidence.extend(holders.into_iter().map(|holder| holder.evidence));
    let found = CauseFinding {
        explains_ms: if is_felt { explains_ms } else { 0.0 },
        evidence,
        weights,
        fixes,
        prove: "Run the same load again: elasticsearch_pool_rejected_total does not grow.".to_owned(),
        role: Role::Root,
    };
    Ok(match failed.share {
        share if share >= MATTERS => Outcome::Fails(found, share),
        _ if is_felt => Outcome::Found(found),
        _ => Outcome::Uncounted(found, Missing::new("whose tasks were rejected, and what that cost them", COST)),
    })
}

/// A queue is sampled, so the wait of a task is known this well (a factor).
const SLACK: f64 = 1.25;

/// Who would know what a rejected task cost.
const COST: &str = "load from holdup run, or the errors of the app that indexes and searches";

/// Milliseconds of a request for which threads of the nodes indexed and searched.
fn held_ms(case: &Case<'_>) -> Option<f64> {
    let view = case.slow();
    let of =
        |operation| view.counter(metrics::elasticsearch::OPERATION_TIME.name, &[("operation", operation)], ENABLE).ok();
    let seconds: Vec<f64> = ["indexing", "query", "fetch"].into_iter().filter_map(of).map(|of| of.delta).collect();
    let completed = case.completed_in(view.window).ok()?.max(1.0);
    (!seconds.is_empty()).then(|| seconds.iter().sum::<f64>() / completed * 1e3)
}
