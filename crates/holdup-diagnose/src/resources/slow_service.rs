//! The service whose own time grew, as traces of single requests show it, with its evidence.

use holdup_recording::Labels;
use holdup_recording::words::ms;
use holdup_signals::evidence::Evidence;

use super::services::{Growth, ServiceRow, Services};
use crate::case::Case;
use crate::strength::{CERTAIN, FAIR, Strength};

/// What is said of a service whose own time grew.
pub(crate) struct SlowService {
    pub service: String,
    pub ms: f64,
    pub evidence: Vec<Evidence>,
    pub weights: Vec<Strength>,
    pub is_front: bool,
}

impl SlowService {
    /// The service whose own time grew most; none if none grew by more than chance.
    pub(crate) fn find(case: &Case<'_>, services: &Services) -> Option<Self> {
        let (row, growth) = services.slowest()?;
        let is_front = row.service == services.front;
        let mut evidence = vec![grown(case, row, growth, is_front)];
        let mut weights = vec![CERTAIN];
        if let Some(text) = part(row, growth) {
            evidence.push(of(case, row, ms(growth.ms), "none of it", text));
            weights.push(FAIR);
        }
        let others: f64 =
            services.rows.iter().skip(1).filter_map(|row| row.growth).map(|other| other.ms.max(0.0)).sum();
        let text = format!(
            "all other services together took {} longer of it, by {} traces now and {} before",
            ms(others),
            services.requests.0,
            services.requests.1
        );
        evidence.push(of(case, row, ms(others), "more, if another service were the reason", text));
        Some(Self { service: row.service.clone(), ms: growth.ms, evidence, weights, is_front })
    }
}

/// Evidence that points at the spans of a service.
pub(crate) fn of(case: &Case<'_>, row: &ServiceRow, observed: String, expected: &str, text: String) -> Evidence {
    let labels = Labels::new([("service", row.service.as_str())]);
    Evidence::new("spans", "duration_ns", labels, case.episode(), observed, expected, text)
}

fn grown(case: &Case<'_>, row: &ServiceRow, growth: Growth, is_front: bool) -> Evidence {
    let (now, before) = (row.own_ms, row.own_before_ms.unwrap_or_default());
    let callers = if is_front { "outside of all its calls" } else { "its callers only wait for it" };
    let text = format!(
        "{}'s own time grew from {} to {} ms a request: {callers}",
        row.service,
        figure(before),
        figure(now.max(before + growth.ms))
    );
    of(case, row, ms(now), &ms(before), text)
}

fn figure(ms: f64) -> String {
    if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

/// Where within its time, if most of the growth is in one place.
fn part(row: &ServiceRow, growth: Growth) -> Option<String> {
    const MOST: f64 = 0.7;
    let name = &row.service;
    if growth.way_ms >= MOST * growth.ms {
        let text = "of that are between the call and the answering span: the network, or a queue in front of";
        return Some(format!("{} {text} {name}", ms(growth.way_ms)));
    }
    let stores = growth.stores_ms >= MOST * growth.ms;
    stores.then(|| format!("{} of that are in {name}'s calls of its database, cache or queue", ms(growth.stores_ms)))
}
