//! A stage of a pipeline does not keep up with what comes in: a consumer group, or a stage that the user named.

mod order;
mod stages;

use super::parts::present::{self, Shown};
use super::{Cause, Definition, Doc, Edge, Judge, Occurs, Outcome, Source::Of, Trait};
use crate::case::Case;
use crate::change::Fix;
use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::next_command::NextCommand;
use holdup_recording::metrics::kafka;
use holdup_signals::app::pipeline::courses;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View};

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::Rarely,
    traits: &[Trait::Harm],
    follows_from: &[
        // A stage that indexes sends again what the search engine rejected, and takes nothing new meanwhile.
        Edge::same_time(&[&[Of(Cause::SearchRejections)]]),
    ],
    signs: Some(find),
    ..Definition::new(Cause::PipelineStageLag, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "A stage of the pipeline falls behind",
    what: "A consumer group of Kafka works more slowly than records come in, or does not work at all, while producers send no more than before. Most often what it calls for each record got slow (its database, an index, another service); or it has too few partitions or members, is rebalanced again and again, or has ended. With the stages named in order (--pipeline), a stage that a full queue holds back stands apart from a slow one.",
    hurts: "What the stage makes of records is late by its lag: a search index, a cache, a report show old data. A lag beyond the topic's retention loses records.",
    needs: "Backlog, lag and committed offsets of the group, and the ends of the topic's partitions (--watch kafka://HOST:PORT), from before the lag grew. Or what counts the work of the stages that --pipeline names.",
    predicts: "The lag grows although records come in as before. The group takes fewer of them, or none, and the next stage gets less. A stage before a full queue is as slow as the one behind it.",
    clears: "The lag stays below ten seconds or falls; or producers sent more than before, and the group took as much as before or more: that backlog is worked off, and no stage is broken.",
    looks_like: "A burst of producers leaves a lag, too, but the rate into the topic rose first. A consumer that commits rarely has a lag that returns to zero with each commit. A group that nothing has read with for days is left over, not slow.",
    fix: "Find what the stage waits for: watch its process and what it calls. Start a stopped consumer. Add members up to the number of partitions, or partitions if every one has its member. Lengthen max.poll.interval.ms or take fewer records a poll if members are thrown out while they work.",
    prove: "The lag falls to seconds under the same rate into the topic, and stays there.",
    references: "Apache Kafka documentation: Monitoring (consumer lag), Consumer Configs (max.poll.interval.ms, session.timeout.ms), Operations: managing consumer groups; KIP-62; KIP-345.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "kafka-consumer-groups.sh --bootstrap-server HOST:9092 --describe --all-groups",
    5,
    "how many records each group has left in each partition, and which member has it",
);

/// Most stages that are named, the worst first.
const SHOWN: usize = 4;

/// What shows that stages are behind, the worst first; pieces of no worth clear.
fn shown(view: &View<'_>) -> Shown {
    let of = courses(view);
    let pieces: Vec<_> = of.iter().map(stages::judged).collect();
    // An order is known only of stages that the user named.
    let is_named = !view.recording.manifest.pipeline.is_empty();
    let mut all: Shown = if is_named { order::linked(&of, pieces) } else { pieces.into_iter().flatten().collect() };
    all.sort_by(|a, b| b.0.chance().total_cmp(&a.0.chance()));
    all.truncate(SHOWN);
    all
}

fn find(facts: &Facts<'_>, signs: &mut Signs) {
    present::signs(shown(&facts.view), signs);
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let shown = shown(&case.view(case.whole()));
    if shown.is_empty() && !case.recording.manifest.pipeline.is_empty() {
        let enable = "--watch what counts the stages' work, e.g. --watch kafka://HOST:PORT";
        return Err(Missing::new("figures of the stages that the pipeline names", enable));
    }
    if shown.is_empty() {
        return Err(Missing::new("how far consumer groups are behind", "--watch kafka://HOST:PORT"));
    }
    let is_kafka = |(_, piece): &(_, Evidence)| piece.labels.get("metric") == Some(kafka::LAG.name);
    let fixes = if shown.iter().any(is_kafka) { of_kafka() } else { of_any() };
    let unknown = Missing::new("what late records cost requests", "a check of the app that reads what the stage made");
    let prove = "The lag falls to seconds under the same rate into the topic, and stays there.";
    Ok(present::outcome(shown, fixes, prove, unknown))
}

fn of_kafka() -> Vec<Fix> {
    vec![
        present::step(
            "See which member has the partitions that are behind, and what it waits for.",
            Some("kafka-consumer-groups.sh --bootstrap-server HOST:9092 --describe --group GROUP --members --verbose"),
            None,
        ),
        present::step(
            "Start consumers that have ended, or add members up to the number of partitions.",
            None,
            Some("Each member that joins is a rebalance. More members put more load on what the stage calls."),
        ),
    ]
}

fn of_any() -> Vec<Fix> {
    let risk = "More workers put more load on what the stage calls.";
    vec![
        present::step("See what the stage waits for: watch its process and what it calls.", None, None),
        present::step("Start its workers if they have ended, or add workers.", None, Some(risk)),
    ]
}

#[cfg(test)]
mod tests;
