//! Capacity in sentences.

use holdup_knee::figure;
use holdup_knee::scaling::{Growth, Proportion, Scaling};

use super::{CapacityReport, CpuUse, Demand, Plan, PlanRow, Setting};
use holdup_diagnose::search::Interval;

/// The first limit at one value.
pub(super) fn bound_first(culprit: Option<&str>, cpu: Option<&CpuUse>, has_no_knee: bool) -> String {
    let cpu = cpu.map(|cpu| (cpu.is_bound(), used(cpu)));
    match (culprit, cpu) {
        (Some(culprit), Some((_, used))) => format!("{culprit}; {used}"),
        (Some(culprit), None) => culprit.to_owned(),
        (None, _) if has_no_knee => "unknown".to_owned(),
        (None, Some((true, used))) => format!("CPU: {used}"),
        (None, Some((false, used))) => format!("nothing watched; {used}"),
        (None, None) => "nothing watched".to_owned(),
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

/// The whole result in sentences, most important first.
pub(super) fn sentences(report: &CapacityReport, demand: Option<&Demand>) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(scaling) = &report.scaling {
        all.extend(grows(report, scaling));
    }
    match (&report.plan, demand) {
        (Some(plan), _) => all.extend(planned(report, plan)),
        (None, Some(_)) => all.push("No plan: it needs a knee.".to_owned()),
        (None, None) => {}
    }
    for setting in &report.settings {
        all.push(carries(report, setting));
    }
    let answered = report.settings.iter().filter(|setting| setting.knee.is_some()).count();
    if report.axis.is_some() && report.scaling.is_none() {
        all.push(match answered {
            0 => "The growth of capacity is unknown: no value has a knee.".to_owned(),
            _ => "The growth of capacity is unknown: it takes the knee at two values or more.".to_owned(),
        });
    }
    all
}

fn carries(report: &CapacityReport, setting: &Setting) -> String {
    let name = report.name(setting.value);
    let Some(knee) = &setting.knee else {
        let why = setting.no_knee.as_deref().unwrap_or("no search was made");
        let lead = if setting.value.is_some() { format!("At {name} no") } else { "No".to_owned() };
        return format!("{lead} knee was found: {}.", why.trim_end_matches('.'));
    };
    let lead = if setting.value.is_some() { format!("At {name} the") } else { "The".to_owned() };
    let most =
        setting.capacity.as_ref().map_or_else(String::new, |most| format!(", it completes at most {}", between(most)));
    format!("{lead} knee is at {}{most}; first limit: {}.", between(knee), setting.bound_first)
}

fn grows(report: &CapacityReport, scaling: &Scaling) -> Vec<String> {
    let axis = report.axis.as_deref().unwrap_or("it");
    let figure_of = report.scaling_of.as_deref().unwrap_or("capacity");
    let Some(whole) = scaling.from_smallest.last() else { return Vec::new() };
    let mut all = vec![match scaling.whole {
        Proportion::Linear => {
            format!(
                "Linear: {}; proportional growth would give {}.",
                times(axis, figure_of, whole),
                figure(whole.given)
            )
        }
        Proportion::More => format!(
            "More than linear: {}; proportional growth would give {}. Something else changed, too.",
            times(axis, figure_of, whole),
            figure(whole.given)
        ),
        Proportion::Less => {
            let nothing = if whole.carried.low <= 1.0 { " More of it gives no measurable gain." } else { "" };
            let (times, given) = (times(axis, figure_of, whole), figure(whole.given));
            format!("Less than linear: {times}; proportional growth would give {given}.{nothing}")
        }
        Proportion::Unclear => format!(
            "Linear or not is unclear: {}; proportional growth would give {}. More repeats (--repeat) or longer searches narrow it.",
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

/// If another limit applies than at the smallest value, the varied setting is not what is short.
fn other_limit(report: &CapacityReport) -> Option<String> {
    let what = |setting: &Setting| match (&setting.culprit, &setting.cpu) {
        (Some(culprit), _) => culprit.clone(),
        (None, Some(cpu)) if cpu.is_bound() && cpu.is_quota => "its CPU quota".to_owned(),
        (None, Some(cpu)) if cpu.is_bound() => "the CPUs of the host".to_owned(),
        (None, _) => "nothing watched".to_owned(),
    };
    let mut answered = report.settings.iter().filter(|setting| setting.knee.is_some());
    let first = answered.next()?;
    let other = answered.find(|setting| what(setting) != what(first))?;
    let (at, before) = (report.name(other.value), report.name(first.value));
    Some(format!("At {at} the limit is another than at {before}: {} instead of {}.", what(other), what(first)))
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
        let what = "a limit applies from some value on, instead of a cost of sharing";
        return Some(format!("The measurements do not follow the Universal Scalability Law: {what}."));
    }
    let of = |name: &str, one: &holdup_knee::Estimate| {
        format!("{name} {} ({} to {})", percent(one.value), percent(one.low), percent(one.high))
    };
    let most = scaling.from_smallest.last().map_or(0.0, |growth| growth.to);
    let end = match &law.peak {
        Some(peak) => {
            let beyond = if peak.concurrency.value > most { ", beyond the measured values" } else { "" };
            format!(
                "; its peak is at {axis}={} ({} to {}){beyond}, {}/s",
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
                "{load} needs {} instance{}{at}{}, each at {}/s: {} below its knee{}.",
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
        (Some(each), Some(budget)) => all.push(format!("Connections per instance: {each}; the budget: {budget}.")),
        (Some(each), None) => all.push(format!(
            "Connections per instance: {each}. The budget is unknown: add --connection-budget N, or watch the database."
        )),
        (None, _) => all.push(
            "The number of connections per instance is unknown: add --connections-per-instance N, or --watch server:PORT of the app."
                .to_owned(),
        ),
    }
    all.push("This holds as long as no resource that instances share becomes the limit: a search of one instance does not see that.".to_owned());
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
        None => format!("{sum}, so the load is the limit, not the connections"),
        Some(rate) => {
            format!("{sum}, so connections are the first limit: {} fit, for {}/s", many(budget.instances), figure(rate))
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
