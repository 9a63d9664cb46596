//! `describe-events`: what RDS did with an instance, or saw happen to it.

use holdup_recording::rows::Event;
use holdup_recording::{Labels, events};
use serde_json::Value;

use super::element::{Element, moment};
use super::{Aws, shown};

/// Most events.
const MOST: usize = 20_000;
/// Letters of an event's text.
const TEXT_LETTERS: usize = 400;

/// Words of a message, the kind of event that it is, and why a server began anew. The first that
/// fits counts (Amazon RDS user guide, "Amazon RDS event categories and event messages").
const KINDS: [(&str, &str, Option<&str>); 22] = [
    ("failover completed", events::RESTART, Some(events::FAILOVER)),
    ("failover complete", events::RESTART, Some(events::FAILOVER)),
    ("completed failover", events::RESTART, Some(events::FAILOVER)),
    ("failover started", "failover_started", None),
    ("started cross az failover", "failover_started", None),
    ("a different instance than the primary", "failover_started", None),
    ("failover", "failover_started", None),
    ("out of memory", events::RESTART, Some(events::CRASH)),
    ("restarted due to a host", events::RESTART, Some(events::CRASH)),
    ("db instance restarted", events::RESTART, Some(events::UNKNOWN)),
    ("the database process was killed", events::RESTART, Some(events::CRASH)),
    ("recovery of the db instance has started", "recovery_started", None),
    ("recovery of the db instance is complete", events::RESTART, Some(events::CRASH)),
    ("recovery", "recovery_started", None),
    ("shutdown", "shutdown", None),
    ("allocated storage has been exhausted", events::DISK_FULL, None),
    ("storage-full", events::DISK_FULL, None),
    ("free storage capacity", "storage_low", None),
    ("burst", "credits_low", None),
    ("replication", "replication", None),
    ("back", "backup", None),
    ("appl", "configuration", None),
];

/// One of `Events`.
pub(super) fn event(aws: &mut Aws, element: &Element) -> Result<(), String> {
    let Some(message) = element.text("Message") else {
        return Err("one of Events has no Message; save the whole output of aws rds describe-events".to_owned());
    };
    let observed_at = moment(element.facts.get("Date").unwrap_or(&Value::Null))?;
    if aws.events.len() >= MOST {
        return Err(format!("there are more than {MOST} events; request a shorter period"));
    }
    let lower = message.to_lowercase();
    let known = KINDS.iter().find(|(words, ..)| lower.contains(words));
    let (kind, why) = known.map_or(("cloud_event", None), |(_, kind, why)| (*kind, *why));
    let mut labels = Labels::none();
    if let Some(name) = element.text("SourceIdentifier") {
        labels = labels.with("db_instance", shown(name)).with("server", shown(name));
    }
    if let Some(why) = why {
        labels = labels.with("why", why);
    }
    let categories = element.facts.get("EventCategories").and_then(Value::as_array).into_iter().flatten();
    let categories: Vec<&str> = categories.filter_map(Value::as_str).collect();
    if !categories.is_empty() {
        labels = labels.with("categories", categories.join(", "));
    }
    let source = format!("rds_events:{}", aws.files.last().map_or("", String::as_str));
    let text = message.chars().take(TEXT_LETTERS).collect();
    aws.events.push(Event { observed_at, source, kind: kind.to_owned(), text, labels });
    Ok(())
}
