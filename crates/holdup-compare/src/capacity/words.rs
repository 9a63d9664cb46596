//! Capacity in sentences.

use holdup_knee::figure;
use holdup_knee::scaling::{Growth, Proportion, Scaling};

use super::{CapacityReport, CpuUse, Demand, Plan, PlanRow, Setting};
use holdup_diagnose::search::Interval;

/// What bound first at one value.
pub(super) fn bound_first(culprit: Option<&str>, cpu: Option<&CpuUse>, has_no_knee: bool) -> String {
    let cpu = cpu.map(|cpu| (cpu.is_bound(), used(cpu)));
    match (culprit, cpu) {
        (Some(culprit), Some((_, used))) => format!("{culprit}; {used}"),
        (Some(culprit), None) => culprit.to_owned(),
        (None, _) if has_no_knee => "not known".to_owned(),
        (None, Some((true, used))) => format!("CPU: {used}"),
        (None, Some((false, used))) => format!("nothing that was watched; {used}"),
        (None, None) => "nothing that was watched".to_owned(),
    }
}

/// `0.39 of 0.40 CPUs used (98 %), 91 % of periods throttled`.
fn used(cpu: &CpuUse) -> String {
    let whose = if cpu.is_quota { "CPUs of the quota" } else { "CPUs of the host" };
    let throttled = cpu.throttled_ratio.map_or_else(String::new, |r| format!(", {} of periods throttled", percent(r)));
    let cpus = cpu.cpus.map_or_else(String::new, |cpus| format!("{cpus:.2} of "));
    let in_use = if cpu.cpus.is_some() { " in use" } else { "" };
    format!("{cpus}{:.2} {whose}{in_use}{throttled}", cpu.of_cpus)
}

/// All that there is to say, most important first. Each is a whole sentence.
pub(super) fn sentences(report: &CapacityReport, demand: Option<&Demand>) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(scaling) = &report.scaling {
        all.extend(grows(report, scaling));
    }
    match (&report.plan, demand) {
        (Some(plan), _) => all.extend(planned(report, plan)),
        (None, Some(_)) => all.push("There is no plan, because there is no knee to plan with.".to_owned()),
        (None, None) => {}
    }
    for setting in &report.settings {
        all.push(carries(report, setting));
    }
    let answered = report.settings.iter().filter(|setting| setting.knee.is_some()).count();
    if report.axis.is_some() && report.scaling.is_none() {
        all.push(match answered {
            0 => "How capacity grows can't be said: no value has a knee.".to_owned(),
            _ => "How capacity grows can't be said: it takes the knee at two values or more.".to_owned(),
        });
    }
    all
}

fn carries(report: &CapacityReport, setting: &Setting) -> String {
    let name = report.name(setting.value);
    let Some(knee) = &setting.knee else {
        let why = setting.no_knee.as_deref().unwrap_or("no search was made");
        let lead = if setting.value.is_some() { format!("At {name} no") } else { "No".to_owned() };
        return format!("{lead} knee is named: {}.", why.trim_end_matches('.'));
    };
    let lead = if setting.value.is_some() { format!("At {name} the") } else { "The".to_owned() };
    let most =
        setting.capacity.as_ref().map_or_else(String::new, |most| format!(", it completes {} at most", between(most)));
    format!("{lead} knee is at {}{most}; what bound first: {}.", between(knee), setting.bound_first)
}

fn grows(report: &CapacityReport, scaling: &Scaling) -> Vec<String> {
    let axis = report.axis.as_deref().unwrap_or("it");
    let figure_of = report.scaling_of.as_deref().unwrap_or("capacity");
    let Some(whole) = scaling.from_smallest.last() else { return Vec::new() };
    let mut all = vec![match scaling.whole {
        Proportion::Linear => {
            format!("Linear: {}; in proportion would be {}.", times(axis, figure_of, whole), figure(whole.given))
        }
        Proportion::More => format!(
            "More than linear: {}; in proportion would be {}. What is given more of is not all that changed.",
            times(axis, figure_of, whole),
            figure(whole.given)
        ),
        Proportion::Less => {
            let nothing = if whole.carried.low <= 1.0 { " More of it gives nothing that can be told." } else { "" };
            let (times, given) = (times(axis, figure_of, whole), figure(whole.given));
            format!("Less than linear: {times}; in proportion would be {given}.{nothing}")
        }
        Proportion::Unclear => format!(
            "Linear or not can't be told: {}; in proportion would be {}. More repeats (--repeat) or longer searches narrow it.",
            times(axis, figure_of, whole),
            figure(whole.given)
        ),
    }];
    if let Some(to) = scaling.proportional_to.filter(|_| scaling.from_smallest.len() > 1) {
        let next = scaling.from_smallest.iter().find(|growth| growth.to > to);
        let before = scaling.from_before.iter().find(|growth| growth.to > to);
        if let (Some(next), Some(before)) = (next, before) {
            let first = scaling.from_smallest.first().map_or(0.0, |growth| growth.from);
            let until = if to > first {
                format!("It is linear up to {axis}={}", figure(to))
            } else {
                format!("It is not linear from {axis}={} on", figure(to))
            };
            all.push(format!(
                "{until}; from there to {axis}={} it gives {} times as much.",
                figure(next.to),
                ratio(before)
            ));
        }
    }
    all.extend(other_limit(report));
    if let Some(from) = scaling.falls_from {
        all.push(format!("From {axis}={} on it carries less than with fewer.", figure(from)));
    }
    all.extend(law(axis, scaling));
    all
}

/// Where something else binds than at the smallest value, what is given more of is not what is short.
fn other_limit(report: &CapacityReport) -> Option<String> {
    let what = |setting: &Setting| match (&setting.culprit, &setting.cpu) {
        (Some(culprit), _) => culprit.clone(),
        (None, Some(cpu)) if cpu.is_bound() && cpu.is_quota => "its CPU quota".to_owned(),
        (None, Some(cpu)) if cpu.is_bound() => "the CPUs of the host".to_owned(),
        (None, _) => "nothing that was watched".to_owned(),
    };
    let mut answered = report.settings.iter().filter(|setting| setting.knee.is_some());
    let first = answered.next()?;
    let other = answered.find(|setting| what(setting) != what(first))?;
    let (at, before) = (report.name(other.value), report.name(first.value));
    Some(format!("At {at} other things bind than at {before}: {}, and not {}.", what(other), what(first)))
}

/// `cpu from 1 to 2 gives 1.97 (1.9 to 2.05) times the capacity`.
fn times(axis: &str, figure_of: &str, growth: &Growth) -> String {
    format!(
        "{axis} from {} to {} gives {} times the {figure_of}",
        figure(growth.from),
        figure(growth.to),
        ratio(growth)
    )
}

fn ratio(growth: &Growth) -> String {
    let carried = &growth.carried;
    format!("{} ({} to {})", short(carried.value), short(carried.low), short(carried.high))
}

fn law(axis: &str, scaling: &Scaling) -> Option<String> {
    let law = scaling.law.as_ref()?;
    if law.is_met == Some(false) {
        let what = "there is something that binds from some value on, and no law of sharing";
        return Some(format!("What was measured is not on the Universal Scalability Law: {what}."));
    }
    let of = |name: &str, one: &holdup_knee::Estimate| {
        format!("{name} {} ({} to {})", percent(one.value), percent(one.low), percent(one.high))
    };
    let most = scaling.from_smallest.last().map_or(0.0, |growth| growth.to);
    let end = match &law.peak {
        Some(peak) => {
            let beyond = if peak.concurrency.value > most { ", beyond what was measured" } else { "" };
            format!(
                "; by it most is carried at {axis}={} ({} to {}){beyond}, {}/s, and less from there on",
                short(peak.concurrency.value),
                short(peak.concurrency.low),
                short(peak.concurrency.high),
                figure(peak.rate.value)
            )
        }
        None => String::new(),
    };
    let unit = if (law.unit - 1.0).abs() < 1e-9 {
        String::new()
    } else {
        format!(" with {axis}={} as the unit", figure(law.unit))
    };
    let untested = if law.is_met.is_none() { " Three values always meet it: a fourth would test it." } else { "" };
    Some(format!(
        "By the Universal Scalability Law{unit}: contention {}, coherency {}{end}.{untested}",
        of("sigma", &law.sigma),
        of("kappa", &law.kappa)
    ))
}

fn planned(report: &CapacityReport, plan: &Plan) -> Vec<String> {
    let asked = plan.times.map_or_else(String::new, |times| format!(" ({} times the knee)", figure(times)));
    let mut all: Vec<String> = plan
        .rows
        .iter()
        .map(|row| {
            let at = row.value.map_or_else(String::new, |value| format!(" of {}", report.name(Some(value))));
            let load = format!("{}/s{asked}", figure(plan.rate));
            format!(
                "For {load} it takes {} instance{}{at}{}, each at {}/s: {} less than its knee{}.",
                row.needed.instances,
                if row.needed.instances == 1 { "" } else { "s" },
                spread(row),
                figure(row.each),
                percent(plan.headroom_ratio),
                connections(row)
            )
        })
        .collect();
    match (&plan.connections_known_by, &plan.budget_known_by) {
        (Some(each), Some(budget)) => all.push(format!("Connections of an instance are by {each}; how many there may be by {budget}.")),
        (Some(each), None) => all.push(format!(
            "Connections of an instance are by {each}; how many there may be is not known: --connection-budget N, or watch the database."
        )),
        (None, _) => all.push(
            "How many connections an instance opens is not known: --connections-per-instance N, or --watch server:PORT of the app."
                .to_owned(),
        ),
    }
    all.push("It holds as long as nothing that instances share binds: a search of one does not see that.".to_owned());
    all
}

fn spread(row: &PlanRow) -> String {
    let needed = row.needed;
    if needed.fewest == needed.most { String::new() } else { format!(" ({} to {})", needed.fewest, needed.most) }
}

fn connections(row: &PlanRow) -> String {
    let many = |one: u32| if one == 1 { "1 instance".to_owned() } else { format!("{one} instances") };
    let (Some(each), Some(budget)) = (row.connections_each, row.budget) else {
        return row.connections_each.map_or_else(String::new, |each| {
            let all = each * f64::from(row.needed.instances);
            format!("; {} of {} connections: {}", many(row.needed.instances), figure(each), figure(all))
        });
    };
    let sum = format!(
        "; {} of {} connections: {} of {}",
        many(row.needed.instances),
        figure(each),
        figure(budget.connections),
        figure(budget.allowed)
    );
    match row.carried_within_budget {
        None => format!("{sum}, so that the load binds and not the connections"),
        Some(rate) => {
            format!(
                "{sum}, so that the connections bind first: {} fit in, for {}/s",
                many(budget.instances),
                figure(rate)
            )
        }
    }
}

/// `197/s (163 to 202)`.
fn between(interval: &Interval) -> String {
    format!("{}/s ({} to {})", figure(interval.value), figure(interval.low), figure(interval.high))
}

fn percent(ratio: f64) -> String {
    let percent = 100.0 * ratio;
    if percent > 0.0 && percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// Three digits.
fn short(value: f64) -> String {
    if value >= 99.5 { format!("{value:.0}") } else { figure((value * 100.0).round() / 100.0) }
}
