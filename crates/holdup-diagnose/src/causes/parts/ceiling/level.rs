//! The level of a flow as evidence: what it stood at, and the demand beyond it.

use crate::causes::{percent, thousands};
use crate::resources::volume::level::{AtCeiling, rate};
use holdup_signals::Window;
use holdup_signals::evidence::Evidence;
use holdup_signals::time::plateau::{Ceiling, Demand};

/// Evidence of the level and of the demand beyond it.
pub(crate) fn level_evidence(at: &AtCeiling) -> Vec<Evidence> {
    let (flow, unit, ceiling) = (&at.flow, at.binding.unit, &at.binding.ceiling);
    let demand = match ceiling.demand {
        Demand::Longer => "and each waited longer than in quieter intervals",
        Demand::Insensitive => "and their number varied while the rate did not",
        Demand::Standing => "all the time",
        Demand::Unchanged => return vec![lowered_evidence(at)],
    };
    let text = format!(
        "reads and writes of {} together stayed at {} in {} of {} intervals with as much demand, with {:.1} \
         operations in flight, {demand}",
        flow.name,
        rate(unit, ceiling.level),
        percent(ceiling.at_level_ratio),
        ceiling.intervals,
        ceiling.queued,
    );
    let observed = rate(unit, ceiling.level);
    let mut evidence: Vec<Evidence> = Vec::new();
    let stretch = |c: &Ceiling| {
        let from = c.stretches.first().map_or(0, |s| s.from);
        Window { from, to: c.stretches.last().map_or(from, |s| s.to) }
    };
    evidence.push(flow.evidence(unit, stretch(ceiling), observed, "as much as the demand".into(), text));
    if let (Some(burst), Some(fall)) = (at.burst(), at.falls().last()) {
        let last = burst.stretches.iter().rfind(|s| s.from < fall.at).copied().unwrap_or(stretch(burst));
        let text = format!(
            "until then it stayed at {} for {} s: a burst that ended",
            rate(unit, burst.level),
            thousands(last.seconds())
        );
        evidence.push(flow.evidence(unit, last, rate(unit, burst.level), "the same level".into(), text));
    }
    if let Some(freer) = at.freer() {
        let text = format!(
            "before, it exceeded that in {} intervals, up to {}, and never afterwards: a burst that ended, or a \
             limit that was lowered",
            freer.intervals,
            rate(unit, freer.most)
        );
        evidence.push(flow.evidence(unit, freer.window, rate(unit, freer.most), "the same level".into(), text));
    }
    evidence
}

/// Evidence of a limit that came down without a level.
fn lowered_evidence(at: &AtCeiling) -> Evidence {
    let (flow, unit, ceiling) = (&at.flow, at.binding.unit, &at.binding.ceiling);
    let text = format!(
        "{} did no more than in the baseline window, {}, and {:.1} operations were in flight on average: each takes many times as long, so the disk may do less than before",
        flow.name,
        rate(unit, ceiling.level),
        ceiling.queued
    );
    let window = ceiling.stretches.first().copied().unwrap_or(Window { from: 0, to: 0 });
    flow.evidence(unit, window, rate(unit, ceiling.level), "as quick as before".into(), text)
}
