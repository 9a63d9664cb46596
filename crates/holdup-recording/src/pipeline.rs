//! The pipeline of an asynchronous service, as its user names it: stages in order, each with what
//! counts the work that comes in and the work that it is done with.

use serde::{Deserialize, Serialize};

use crate::Labels;

/// One stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Its name, unique in the pipeline.
    pub name: String,
    /// What counts the work that comes in and waits.
    #[serde(rename = "in")]
    pub input: Intake,
    /// What counts the work that it is done with; none if `input` tells that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<Output>,
}

/// What counts the work that comes into a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Intake {
    /// A topic of Kafka that a consumer group reads.
    Topic {
        /// The topic.
        topic: String,
        /// The consumer group.
        group: String,
    },
    /// A logical replication slot of PostgreSQL.
    Slot {
        /// Its name.
        slot: String,
    },
    /// A gauge of what waits, e.g. the length of a queue, from any source.
    Waiting {
        /// The metric, as recorded.
        metric: String,
        /// Labels that its series have.
        #[serde(default, skip_serializing_if = "Labels::is_empty")]
        labels: Labels,
    },
    /// One that this version does not know.
    #[serde(other)]
    Unknown,
}

/// What counts the work that a stage is done with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Output {
    /// A topic of Kafka that it writes.
    Topic {
        /// The topic.
        topic: String,
    },
    /// A table of PostgreSQL: rows inserted, changed and deleted.
    Table {
        /// `schema.name`.
        table: String,
    },
    /// Documents that Elasticsearch or OpenSearch indexed, in all indices.
    Index,
    /// Any counter.
    Counter {
        /// The metric, as recorded.
        metric: String,
        /// Labels that its series have.
        #[serde(default, skip_serializing_if = "Labels::is_empty")]
        labels: Labels,
    },
    /// One that this version does not know.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_a_later_version_knows_are_read_as_unknown() {
        let text =
            r#"{"name": "index", "in": {"kind": "stream", "stream": "s"}, "out": {"kind": "bucket", "bucket": "b"}}"#;
        let stage: Stage = serde_json::from_str(text).unwrap();
        assert_eq!((stage.input, stage.out), (Intake::Unknown, Some(Output::Unknown)));
        let kept = Stage {
            name: "apply".into(),
            input: Intake::Slot { slot: "cdc".into() },
            out: Some(Output::Counter { metric: "done_total".into(), labels: Labels::new([("queue", "q")]) }),
        };
        let text = serde_json::to_string(&kept).unwrap();
        assert!(text.contains(r#""in":{"kind":"slot","slot":"cdc"}"#), "{text}");
        assert_eq!(serde_json::from_str::<Stage>(&text).unwrap(), kept);
    }
}
