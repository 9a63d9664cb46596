//! A stage of a pipeline does not keep up with what comes in: a consumer group falls behind.

mod course;
mod stages;

use super::parts::present;
use super::{Cause, Definition, Doc, Edge, Judge, Occurs, Outcome, Source::Of, Trait};
use crate::case::Case;
use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::next_command::NextCommand;
use holdup_signals::Missing;

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
    what: "A consumer group of Kafka works more slowly than records come in, or does not work at all, while producers send no more than before. Most often what it calls for each record got slow (its database, an index, another service); or it has too few partitions or members, is rebalanced again and again, or has ended.",
    hurts: "What the stage makes of records is late by its lag: a search index, a cache, a report show old data. A lag beyond the topic's retention loses records.",
    needs: "Backlog, lag and committed offsets of the group, and the ends of the topic's partitions (--watch kafka://HOST:PORT), from before the lag grew.",
    predicts: "The lag grows although records come in as before. The group takes fewer of them, or none.",
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

fn find(facts: &Facts<'_>, signs: &mut Signs) {
    present::signs(stages::shown(&facts.view), signs);
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let shown = stages::shown(&case.view(case.whole()));
    if shown.is_empty() {
        return Err(Missing::new("how far consumer groups are behind", "--watch kafka://HOST:PORT"));
    }
    let fixes = vec![
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
    ];
    let unknown = Missing::new("what late records cost requests", "a check of the app that reads what the stage made");
    let prove = "The lag falls to seconds under the same rate into the topic, and stays there.";
    Ok(present::outcome(shown, fixes, prove, unknown))
}

#[cfg(test)]
mod tests;
