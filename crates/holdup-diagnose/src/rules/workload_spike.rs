//! Nothing is broken; there is more of it than before.

use super::{Doc, Found, Outcome, Rule, percent, timing};
use crate::case::Case;
use crate::signals::latency::TRANSACTIONS;
use crate::signals::{Counter, Missing, View};
use crate::verdict::{Fix, Role};

/// The rule.
pub const RULE: Rule = Rule {
    cause: "workload_spike",
    doc: Doc {
        title: "There is more load than before",
        what: "More requests arrive than in the calm stretch and each asks for the same work as ever. No part is broken; a resource that is named beside this has run out.",
        hurts: "Looked at alone, every resource near its limit seems to be the culprit.",
        needs: "A calm stretch in the same recording, and the rate of requests in both: the app's HTTP server metrics or the database's statement counter. Load that holdup puts on itself is a schedule, not a spike.",
        predicts: "The rate rises at the start of the degraded stretch; the work per request stays.",
        clears: "The rate is what it was, or the rate is holdup's own schedule.",
        looks_like: "Retries after a fault raise the rate too, but after the latency rose, not before.",
        fix: "Admit less (rate limits, load shedding), or add what has run out.",
        prove: "With the old rate response time is back.",
        references: "B. Gregg, The USE Method; the workload characterisation method.",
    },
    judge,
};

/// A rate that grew by less than this factor is what noise and daily drift give.
const SPIKE_FACTOR: f64 = 1.5;

fn arrivals(view: &View<'_>) -> Result<Counter, Missing> {
    view.counter(&format!("{}_count", timing::HTTP_SERVER), &[], timing::APP_METRICS)
        .or_else(|_| view.counter("mysql_global_status_questions", &[], timing::APP_METRICS))
        .or_else(|_| view.counter(TRANSACTIONS, &[], timing::APP_METRICS))
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    if case.recording.manifest.load.is_some() {
        let offered = case.slow().counter("holdup_load_requests_offered_total", &[], "holdup run")?;
        let text = format!(
            "the rate was holdup's own schedule, {:.0}/s in this stretch: a question, not a spike",
            offered.rate()
        );
        return Ok(Outcome::Cleared(vec![offered.evidence(format!("{:.0}/s", offered.rate()), "as scheduled", text)]));
    }
    let calm = case.calm().ok_or_else(|| {
        Missing::new("a calm stretch to compare with", "a longer recording, with a stretch in which all is well")
    })?;
    let (before, now) = (arrivals(&calm)?, arrivals(&case.slow())?);
    let factor = now.rate() / before.rate().max(1e-9);
    let text = format!("{:.0} requests a second, against {:.0} in the calm stretch", now.rate(), before.rate());
    let evidence = vec![now.evidence(format!("{:.0}/s", now.rate()), format!("{:.0}/s", before.rate()), text)];
    if factor < SPIKE_FACTOR {
        return Ok(Outcome::Cleared(evidence));
    }
    Ok(Outcome::Found(Found {
        // More load is a reason for every queue, but which one is for the other rules to say: it takes the share by which demand grew.
        explains_ms: case.excess_ms() * (1.0 - 1.0 / factor),
        evidence,
        weights: vec![0.6],
        fixes: vec![Fix {
            text: format!("Shed or spread {} of the load, or add what has run out.", percent(1.0 - 1.0 / factor)),
            command: None,
            keep: None,
            risk: None,
        }],
        prove: "With the old rate response time is back.".to_owned(),
        role: Role::Contributor,
    }))
}
