//! What the rules on ceilings share: the flow at a level, the wait for it, and whose limit it is.

pub(crate) mod level;
mod sizing;
mod stated;

use self::level::level_evidence;
use self::sizing::restart;
pub(crate) use self::sizing::{raise, sizing};
use crate::case::Case;
use crate::causes::parts::cloud;
use crate::causes::{CauseFinding, Outcome, Role, ms, thousands};
use crate::resources::is_too_small;
use crate::resources::volume::level::{AtCeiling, CLOUD, at_ceiling, documented, rate, waited_ms};
use crate::resources::volume::stated::stated;
use crate::strength::{CERTAIN, FAIR, STRONG, Strength};
use holdup_recording::{Labels, metrics};
use holdup_signals::Missing;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::flows::{Flow, FlowSource};
use holdup_signals::host::limits::{BY_PERCENTAGES, Documented, KnownLimits, Place};
use holdup_signals::host::throttle::Unit;
use holdup_signals::time::plateau::{Ceiling, Demand};

/// The outcome if disks were recorded and none did any I/O.
pub(crate) fn no_disk_was_asked(case: &Case<'_>) -> Option<Outcome> {
    let view = case.slow();
    let is_idle = view.disks().is_ok_and(|disks| disks.tops().next().is_none());
    let none = view.counter(metrics::host::DISK_OPERATIONS.name, &[], "--watch host").ok().filter(|_| is_idle)?;
    Some(Outcome::Cleared(vec![none.evidence("0", "many", "no disk did any I/O")]))
}

/// The other unit, with its limit if known.
pub(crate) fn other_unit(case: &Case<'_>, flow: &Flow, unit: Unit) -> Option<Evidence> {
    let slow = case.slow().window;
    let (mean, most) = (flow.mean(unit, slow)?, flow.most(unit));
    let text = format!(
        "{} did {} on average and {} at most, without a plateau{}",
        flow.name,
        rate(unit, mean),
        rate(unit, most),
        limit_text(&case.slow().known_limits(), unit)
    );
    Some(flow.evidence(unit, slow, rate(unit, most), "a level, if it were the limit".into(), text))
}

/// `; the limit is 18,750 operations/s (burst of db.r5.2xlarge), 12,000 operations/s sustained`, and
/// the volume's where the instance's is smaller; empty if unknown.
fn limit_text(known: &KnownLimits, unit: Unit) -> String {
    let (sustained, most) = known.smallest(unit);
    let Some(most) = most else { return String::new() };
    let sustained = sustained.filter(|d| d.limit < most.limit);
    let sustained = sustained.map_or_else(String::new, |d| format!(", {} sustained", rate(unit, d.limit)));
    let larger = known.of_unit(unit).filter(|d| d.place != most.place && d.limit > most.limit);
    let larger = larger.max_by(|a, b| a.limit.total_cmp(&b.limit));
    let larger = larger.map_or_else(String::new, |d| format!("; the {} allows {}", d.of, rate(unit, d.limit)));
    format!("; the limit is {} ({}){sustained}{larger}", rate(unit, most.limit), most.of)
}

/// Whose limit the level is: a documented one of the instance or volume, or unknown.
pub(crate) fn origin(case: &Case<'_>, at: &AtCeiling) -> String {
    let unit = at.binding.unit;
    let known = case.slow().known_limits();
    if at.flow.counted == FlowSource::Host && !known.is_from_user || known.what.is_none() {
        return "The limit's origin is unknown, because neither instance nor volume is known (holdup diagnose --on instance:CLASS, \
                --on volume:TYPE:SIZE); a number alone matches many limits."
            .into();
    }
    if let Some(limit) = documented(case, at) {
        let bandwidth = if limit.place == Place::Instance && unit == Unit::Bytes {
            format!(" or {} Mbit/s", thousands(limit.limit * 8.0 / 1e6))
        } else {
            String::new()
        };
        return format!("It is the {} ({}{bandwidth}; {}).", limit.of, rate(unit, limit.limit), limit.source);
    }
    let documented: Vec<String> = known.of_unit(unit).map(|d| format!("{} {}", d.of, rate(unit, d.limit))).collect();
    let what = known.what.unwrap_or_default();
    if documented.is_empty() {
        return format!("The limit's origin is unknown: holdup has no figures for {what}.");
    }
    format!("It matches no documented limit ({}): its origin is unknown.", documented.join(", "))
}

/// The outcome from a cloud's figures on `unit` if they show a limit; else from this host's.
pub(crate) fn judge(
    case: &Case<'_>,
    unit: Unit,
    host: fn(&Case<'_>) -> Result<Outcome, Missing>,
) -> Result<Outcome, Missing> {
    let cloud = cloud(case, unit);
    if let Some(Ok(Outcome::Found(found))) = cloud {
        return Ok(Outcome::Found(found));
    }
    match (host(case), cloud) {
        (Err(_), Some(outcome)) => outcome,
        (outcome, _) => outcome,
    }
}

/// The outcome from the cloud's figures on `unit`; none without them.
fn cloud(case: &Case<'_>, unit: Unit) -> Option<Result<Outcome, Missing>> {
    let (flows, at) = match at_ceiling(case, FlowSource::Cloud) {
        Ok(both) => both,
        Err(missing) => {
            // The provider's percentage needs no rates.
            let reached = stated(case);
            return match reached.iter().find(|s| s.unit == unit) {
                Some(here) => Some(stated::outcome(case, here)),
                None => (missing.enable != CLOUD).then_some(Err(missing)),
            };
        }
    };
    Some(cloud_outcome(case, unit, &flows, at))
}

fn cloud_outcome(case: &Case<'_>, unit: Unit, flows: &[Flow], at: Vec<AtCeiling>) -> Result<Outcome, Missing> {
    let reached = stated(case);
    let here = reached.iter().find(|s| s.unit == unit);
    // The provider says which of its limits binds: a level of the other rate follows from it.
    let is_other = here.is_none() && !reached.is_empty();
    let at = at.into_iter().find(|a| a.binding.unit == unit && !is_other);
    let Some(at) = at else {
        if let Some(here) = here {
            return stated::outcome(case, here);
        }
        let evidence = flows.iter().filter_map(|flow| other_unit(case, flow, unit)).collect();
        return Ok(Outcome::Cleared(evidence));
    };
    let explains_ms = waited_ms(case, &at.flow)?;
    let mut evidence = level_evidence(&at);
    let of_level = weights(&at.binding.ceiling);
    let demand = of_level[1];
    let mut weights = vec![demand; evidence.len()];
    weights[0] = of_level[0];
    let slow = case.slow().window;
    let waits = format!(
        "{:.1} operations were in flight on average: {} per request more than in the baseline window. {}",
        at.flow.queued(slow).unwrap_or(0.0),
        ms(explains_ms),
        origin(case, &at)
    );
    evidence.push(at.flow.queue_evidence(slow, ms(explains_ms), "a small part of the delay".into(), waits));
    weights.push(demand);
    if is_too_small(case, explains_ms)? {
        return Ok(Outcome::Cleared(evidence));
    }
    if let Some((share, strength)) = here.map(|here| stated::statement(case, here)) {
        evidence.push(share);
        weights.push(strength);
    }
    if let Some(limit) = documented(case, &at).filter(|limit| limit.source != BY_PERCENTAGES) {
        evidence.push(described(case, &limit));
        weights.push(STRONG);
    }
    let other = if unit == Unit::Bytes { Unit::Operations } else { Unit::Bytes };
    evidence.extend(other_unit(case, &at.flow, other));
    evidence.extend(cloud::space(case));
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: restart(case, &at).into_iter().chain([raise(case, &at)]).collect(),
        prove: format!("The same load again: the {} of {} follow the load, and few wait.", word(unit), at.flow.name),
        role: Role::Root,
    }))
}

pub(crate) fn weights(ceiling: &Ceiling) -> Vec<Strength> {
    let demand = match ceiling.demand {
        Demand::Longer | Demand::Insensitive | Demand::Unchanged => STRONG,
        Demand::Standing => FAIR,
    };
    vec![CERTAIN * ceiling.at_level_ratio, demand]
}

pub(crate) fn word(unit: Unit) -> &'static str {
    if unit == Unit::Bytes { "bytes a second" } else { "operations a second" }
}

/// The setting that says what the instance or volume is whose limit the level matches.
fn described(case: &Case<'_>, limit: &Documented) -> Evidence {
    let name = if limit.place == Place::Instance { "instance.class" } else { "volume.type" };
    let known = case.slow().known_limits();
    let value = match limit.place {
        Place::Instance => known.class.unwrap_or_default(),
        Place::Volume => limit.of.clone(),
    };
    let rated = rate(limit.unit, limit.limit);
    let text = format!("{name} is {value}, whose documented limit is {rated}: the level is within 5 % of it");
    Evidence::new("settings", "value", Labels::new([("name", name)]), case.slow().window, rated, "another level", text)
}
