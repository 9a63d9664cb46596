//! The stages of a pipeline that one sample of the named sources shows, as text ready for `--pipeline`.

use holdup_collect::watch::{self, Options};
use holdup_recording::metrics::{kafka, postgresql};
use holdup_recording::rows::Sample;
use holdup_recording::{Batch, Labels};

/// Schemes of the sources that show stages.
const SCHEMES: [&str; 3] = ["kafka://", "postgresql://", "postgres://"];

/// Most stages that are proposed.
const MOST: usize = 20;

/// The proposal; none if the sources show no stage. What cannot be read is missing here, because the list of
/// sources shows it.
pub(super) fn proposed(watched: &[String], options: &Options) -> Option<String> {
    let mut batch = Batch::default();
    for address in watched.iter().filter(|address| SCHEMES.iter().any(|scheme| address.starts_with(scheme))) {
        if let Ok(mut collector) = watch::collector(address, options)
            && collector.probe().is_ok()
        {
            let _ = collector.sample(&mut batch);
        }
    }
    written(&batch.samples)
}

fn written(samples: &[Sample]) -> Option<String> {
    let mut stages: Vec<String> = samples.iter().filter_map(stage).collect();
    stages.sort_unstable();
    stages.dedup();
    stages.truncate(MOST);
    (!stages.is_empty()).then(|| format!("pipeline:\n{}", stages.concat()))
}

/// The line of the stage that a sample shows. Each text is quoted as JSON does, which YAML reads alike.
fn stage(sample: &Sample) -> Option<String> {
    let quoted = |label: &str| serde_json::to_string(sample.labels.get(label)?).ok();
    match &*sample.metric {
        name if name == kafka::BACKLOG.name => {
            let (group, topic) = (quoted("group")?, quoted("topic")?);
            let name = named(&sample.labels, "group", "topic")?;
            Some(format!("  - {{name: {name}, in: {{topic: {topic}, group: {group}}}}}\n"))
        }
        name if name == postgresql::REPLICATION_SLOT_UNCONFIRMED_BYTES.name => {
            let slot = quoted("slot")?;
            Some(format!("  - {{name: {slot}, in: {{slot: {slot}}}}}\n"))
        }
        _ => None,
    }
}

/// `"GROUP on TOPIC"`, because a group may read several topics.
fn named(labels: &Labels, group: &str, topic: &str) -> Option<String> {
    serde_json::to_string(&format!("{} on {}", labels.get(group)?, labels.get(topic)?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proposal_is_read_as_it_stands_whatever_the_names() {
        let sample = |metric: &str, labels: &[(&str, &str)]| Sample {
            metric: metric.into(),
            labels: Labels::new(labels.iter().copied()),
            ..Sample::default()
        };
        let hostile = "a: }\n- \"x\" # \u{1b}[2J";
        let samples = [
            sample("kafka_backlog", &[("group", "index"), ("topic", "orders")]),
            sample("kafka_backlog", &[("group", hostile), ("topic", "orders")]),
            sample("kafka_lag_seconds", &[("group", "index"), ("topic", "orders")]),
            sample("postgresql_replication_slot_unconfirmed_bytes", &[("slot", "cdc"), ("active", "1")]),
        ];
        let text = written(&samples).unwrap();
        assert!(
            text.contains("  - {name: \"index on orders\", in: {topic: \"orders\", group: \"index\"}}\n"),
            "{text}"
        );
        let stages = holdup_load::scenario::pipeline::read(&text, "p.yaml").unwrap();
        assert_eq!(stages.len(), 3, "{text}");
        assert!(stages.iter().any(|stage| stage.name == format!("{hostile} on orders")), "{stages:?}");
        assert_eq!(written(&samples[2..3]), None);
    }
}
