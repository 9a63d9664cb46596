//! What the rules on ceilings share: the flow at a level, the wait for it, and whose limit it is.

pub(crate) mod level;

use self::level::level_evidence;
use crate::case::Case;
use crate::resources::is_too_small;
use crate::resources::volume::level::{AtCeiling, CLOUD, at_ceiling, backlog, rate, waited_ms};
use crate::rules::Role;
use crate::rules::{Outcome, RuleFinding, ms, percent};
use crate::strength::{CERTAIN, FAIR, STRONG, Strength};
use holdup_recording::metrics;
use holdup_signals::Missing;
use holdup_signals::evidence::{Evidence, Fix};
use holdup_signals::flows::{Flow, FlowSource};
use holdup_signals::plateau::{Ceiling, Demand};
use holdup_signals::throttle::Unit;

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
    let known = case.slow().known_limits();
    let limit = known.of_unit(unit).min_by(|a, b| a.limit.total_cmp(&b.limit));
    let provisioned = known.of_unit(unit).find(|d| d.of.starts_with("provisioned"));
    let beside = provisioned
        .or(limit)
        .map_or_else(String::new, |d| format!("; the limit ({}) is {}", d.of, rate(unit, d.limit)));
    let text = format!(
        "{} did {} on average and {} at most, without a plateau{beside}",
        flow.name,
        rate(unit, mean),
        rate(unit, most)
    );
    Some(flow.evidence(unit, slow, rate(unit, most), "a level, if it were the limit".into(), text))
}

/// Whose limit the level is: a documented one of the instance or volume, or unknown.
pub(crate) fn origin(case: &Case<'_>, at: &AtCeiling) -> String {
    let (unit, level) = (at.binding.unit, at.binding.ceiling.level);
    let known = case.slow().known_limits();
    if at.flow.counted == FlowSource::Host && !known.is_from_user || known.what.is_none() {
        return "The limit's origin is unknown, because neither instance nor volume is known (holdup diagnose --on instance:CLASS, \
                --on volume:TYPE:SIZE); a number alone matches many limits."
            .into();
    }
    if let Some(limit) = known.matching(unit, level) {
        return format!("It is the {} ({}; {}).", limit.of, rate(unit, limit.limit), limit.source);
    }
    let documented: Vec<String> = known.of_unit(unit).map(|d| format!("{} {}", d.of, rate(unit, d.limit))).collect();
    let what = known.what.unwrap_or_default();
    if documented.is_empty() {
        return format!("The limit's origin is unknown: holdup has no figures for {what}.");
    }
    let restart = if what.contains("r5.") || what.contains("m5.") {
        " Instances started before 3 December 2019 have less until they are stopped and started."
    } else {
        ""
    };
    format!("It matches no documented limit ({}): its origin is unknown.{restart}", documented.join(", "))
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
        Err(missing) if missing.enable == CLOUD => return None,
        Err(missing) => return Some(Err(missing)),
    };
    Some(cloud_outcome(case, unit, &flows, at))
}

fn cloud_outcome(case: &Case<'_>, unit: Unit, flows: &[Flow], at: Vec<AtCeiling>) -> Result<Outcome, Missing> {
    let at = at.into_iter().find(|a| a.binding.unit == unit);
    let Some(at) = at else {
        let evidence = flows.iter().filter_map(|flow| other_unit(case, flow, unit)).collect();
        return Ok(Outcome::Cleared(evidence));
    };
    let explains_ms = waited_ms(case, &at.flow)?;
    let mut evidence = level_evidence(&at);
    let slow = case.slow().window;
    let waits = format!(
        "{:.1} operations were in flight on average: {} per request more than in the baseline window. {}",
        at.flow.queued(slow).unwrap_or(0.0),
        ms(explains_ms),
        origin(case, &at)
    );
    evidence.push(at.flow.evidence(unit, slow, ms(explains_ms), "a small part of the delay".into(), waits));
    if is_too_small(case, explains_ms)? {
        return Ok(Outcome::Cleared(evidence));
    }
    let other = if unit == Unit::Bytes { Unit::Operations } else { Unit::Bytes };
    evidence.extend(other_unit(case, &at.flow, other));
    Ok(Outcome::Found(RuleFinding {
        explains_ms,
        evidence,
        weights: weights(&at.binding.ceiling),
        fixes: vec![raise(case, &at)],
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

/// Less I/O, or more room: the next class up, if the class is known.
pub(crate) fn raise(case: &Case<'_>, at: &AtCeiling) -> Fix {
    let (room, risk) = sizing(case, &at.flow, at.binding.unit, at.binding.ceiling.level);
    let text = format!("Reduce the I/O first (vacuum, unchanged values sent again, missing indexes); then {room}.");
    Fix { text, command: None, keep: None, risk }
}

/// The room this load needs and the class that provides it: throughput per served request times all
/// due requests. Also what that costs.
pub(crate) fn sizing(case: &Case<'_>, flow: &Flow, unit: Unit, level: f64) -> (String, Option<String>) {
    let slow = case.slow().window;
    let asked = flow.mean(unit, slow).unwrap_or(level) * backlog(case, slow);
    let needed = asked.max(level);
    let load = if needed > 1.01 * level {
        format!("this load needs {}, including the queue", rate(unit, asked))
    } else {
        format!("this load needs at least {}", rate(unit, level))
    };
    let known = case.slow().known_limits();
    if flow.counted == FlowSource::Host && !known.is_from_user || known.what.is_none() {
        return (format!("an instance or volume that may do more than {}: {load}", rate(unit, level)), None);
    }
    let what = known.what.clone().unwrap_or_default();
    let documented = known.of_unit(unit).filter(|d| !d.of.starts_with("burst")).map(|d| d.limit);
    let Some((class, baseline)) = known.next_up(unit, documented.fold(needed, f64::max)) else {
        return (format!("more than {what} allows: at least {}, as {load}", rate(unit, needed)), None);
    };
    let buys = format!(
        "{:.1} times the present limit, of which this load uses {}",
        baseline / level.max(1.0),
        percent((needed / baseline).min(1.0))
    );
    let text = format!("the next one up, {class} ({} sustained): {buys}; {load}", rate(unit, baseline));
    (text, Some("A larger one costs more, and changing an instance's class restarts it.".to_owned()))
}
