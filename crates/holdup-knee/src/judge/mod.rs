//! Judges the steps of a search.

mod analysis;
mod breaking;
mod capacity;
mod curve;
mod follows;
mod hysteresis;
mod observations;
mod usl;
mod variation;
mod visit;

pub(crate) use analysis::Analysis;
pub(crate) use breaking::objective;
pub(crate) use curve::memory;
pub(crate) use observations::MEMORY_MOST;
pub(crate) use visit::Visit;

use crate::{Config, Finding, Point, Step, StepResult, figure};

/// Derives knee, breaking point, capacity, hysteresis and scaling law from the steps, in the order
/// they were played.
pub fn judge(steps: &[Step], config: &Config) -> Finding {
    let analysis = Analysis::from_steps(steps, config);
    let mut finding = Finding {
        points: points(&analysis),
        steps_visited: steps.len(),
        elapsed: steps.last().map_or_else(Default::default, |step| step.to),
        ..Finding::default()
    };
    finding.hysteresis = hysteresis::hysteresis(steps, &analysis, &mut finding.unresolved);
    finding.usl = usl::usl(&analysis);
    finding.refused = refused(&analysis);
    if finding.refused.is_some() {
        return finding;
    }
    finding.curve = analysis.fit.as_ref().map(|fit| fit.curve);
    // Without a rate that held, nothing is known about the service's capacity.
    if analysis.hold.is_some() {
        finding.capacity = analysis.capacity;
        finding.breaking_point = breaking::breaking(&analysis, config);
    }
    finding.knee = analysis.knee();
    if finding.knee.is_none() {
        finding.unresolved.push(no_knee(&analysis, config));
    }
    if analysis.errors_base > config.error_ratio_most {
        let share = 100.0 * analysis.errors_base;
        finding
            .unresolved
            .push(format!("{share:.1} % of requests fail even at low rates: only errors beyond that count"));
    }
    if let (Some(knee), Some(capacity)) = (finding.knee, finding.capacity) {
        finding.knee_of_capacity_ratio = Some((knee.value / capacity.value).min(1.0));
        finding.is_stable = is_stable(&analysis, config);
        if !analysis.conflicts.is_empty() && !finding.is_stable {
            let rates: Vec<String> =
                analysis.conflicts.iter().map(|index| figure(analysis.visits[*index].offered)).collect();
            finding.unresolved.push(format!("visits disagree at {} requests/s", rates.join(", ")));
        }
    }
    finding
}

/// Whether more visits would not change the answer: they agree, some are close to the knee, and the
/// interval is narrow.
pub(crate) fn is_stable(analysis: &Analysis, config: &Config) -> bool {
    let Some(knee) = analysis.knee() else { return false };
    let near = analysis
        .visits
        .iter()
        .filter(|visit| !visit.is_limited && (visit.offered / knee.value).ln().abs() < 0.15)
        .count();
    analysis.spoilt_by.is_none()
        && near >= 2
        && (analysis.over.is_none() || analysis.witnesses() >= 2)
        && 4 * analysis.conflicts.len() <= near
        && analysis.half_width() <= 2.0 * config.resolution
}

/// Why no knee is reported, if the generator or failures rule it out.
fn refused(analysis: &Analysis) -> Option<String> {
    if analysis.errors_base > 0.5 {
        let share = 100.0 * analysis.errors_base;
        return Some(format!(
            "{share:.0} % of requests fail even at the lowest rate: holdup cannot judge this service"
        ));
    }
    let limited = analysis.limited?;
    // The knee was found below: a limit of the generator further up does not matter.
    if analysis.over.is_some_and(|over| over < limited) || analysis.knee().is_some() {
        return None;
    }
    let why = analysis.visits.iter().any(|visit| visit.is_limited).then_some("the generator was the limit");
    let held = analysis.hold.map_or_else(String::new, |hold| format!("; the service carried {hold:.4}/s"));
    Some(format!("{} at {limited:.4}/s{held}", why.unwrap_or_default()))
}

fn no_knee(analysis: &Analysis, config: &Config) -> String {
    match analysis.hold {
        Some(hold) if hold >= 0.98 * config.most => {
            format!("knee not reached up to {}/s, the highest allowed rate", figure(config.most))
        }
        Some(hold) => format!("knee not reached up to {}/s within the time", figure(hold)),
        None => "no knee: the service carried none of the rates".to_owned(),
    }
}

fn points(analysis: &Analysis) -> Vec<Point> {
    analysis
        .visits
        .iter()
        .zip(&analysis.held)
        .map(|(visit, held): (&Visit, &StepResult)| Point {
            offered: visit.offered,
            due: visit.due,
            achieved: visit.achieved,
            response_ns: visit.response.map(|response| response * 1e9),
            error_ratio: visit.error_ratio(),
            in_system: visit.in_system,
            growth: visit.growth,
            held: *held,
        })
        .collect()
}
