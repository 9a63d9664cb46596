//! A server's messages about itself, in a report.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Figures;
use crate::digest::tally::Tally;

/// Most users, tables and so on of each kind.
const MOST_NAMED: usize = 20;

/// A PostgreSQL server's messages about itself.
#[derive(Clone, Debug, Serialize)]
pub struct ServerReport {
    /// Number of occurrences, by kind.
    pub counts: BTreeMap<String, u64>,
    /// Figures; the unit is in the name.
    pub figures: BTreeMap<String, Figures>,
    /// The same by user, database, host, table, cause or kind of lock; the most frequent of each.
    pub names: BTreeMap<String, Vec<Named>>,
    /// Errors by severity and words.
    pub messages: Vec<Message>,
}

/// Something with a name: how often, and how long.
#[derive(Clone, Debug, Serialize)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// How often.
    pub count: u64,
    /// Total time, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_us: Option<u128>,
    /// The longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_us: Option<u64>,
}

/// Errors with the same words.
#[derive(Clone, Debug, Serialize)]
pub struct Message {
    /// `ERROR`, `FATAL`, …
    pub severity: String,
    /// Its words; values are `?`.
    pub message: String,
    /// How often.
    pub count: u64,
}

/// The report of `tally`; none without such messages.
pub(super) fn from_tally(tally: &Tally) -> Option<ServerReport> {
    let server = &tally.server;
    if server.is_empty() {
        return None;
    }
    let figures = server.figures.iter().map(|(name, figure)| {
        (name.to_string(), Figures::from_measure(figure, if name.ends_with("_us") { "us" } else { "count" }))
    });
    let mut messages: Vec<Message> = server
        .messages
        .iter()
        .map(|((severity, message), count)| Message {
            severity: severity.clone(),
            message: message.clone(),
            count: *count,
        })
        .collect();
    messages.sort_by_key(|message| std::cmp::Reverse(message.count));
    let counts = server.counts.iter().map(|(name, count)| (name.to_string(), *count));
    let mut names: BTreeMap<String, Vec<Named>> = BTreeMap::new();
    for ((kind, name), figure) in &server.names {
        let times = (figure.sum > 0).then_some((figure.sum, figure.max));
        names.entry((*kind).to_owned()).or_default().push(Named {
            name: name.clone(),
            count: figure.count,
            total_us: times.map(|(sum, _)| sum),
            max_us: times.map(|(_, max)| max),
        });
    }
    for all in names.values_mut() {
        all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        all.truncate(MOST_NAMED);
    }
    Some(ServerReport { counts: counts.collect(), figures: figures.collect(), names, messages })
}
