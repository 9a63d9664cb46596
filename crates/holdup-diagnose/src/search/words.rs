//! A search in sentences.

use holdup_knee::{Config, MissedRequirement};

use super::{Interval, ScalabilityLaw, SearchReport};
use holdup_recording::words::{ms, thousands};

/// Variability explains a knee below this share (0-1) of the capacity.
const FULL: f64 = 0.9;

/// All sentences, most important first.
pub(super) fn sentences(report: &SearchReport, config: &Config) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(refused) = &report.refused {
        all.push(format!("No knee is named, because {refused}."));
    }
    if let Some(knee) = &report.knee {
        all.push(format!("The knee is at {}: from there on response time grows faster than load.", between(knee)));
    }
    if let Some(breaking) = &report.breaking_point {
        all.push(format!("The breaking point is at {}: {}.", between(&breaking.rate), missed(breaking.how, config)));
    }
    all.extend(report.unresolved.iter().map(|text| sentence(text)));
    all.extend(capacity(report));
    all.extend(report.hysteresis.as_ref().map(|h| {
        let (from, to) = (per_second(h.overload_rate), per_second(h.recover_rate));
        match h.after_s {
            Some(after) if h.recovered => format!(
                "It recovers: {after:.0} s after an overload of {from} had fallen to {to}, response time was back to normal."
            ),
            _ => format!(
                "It does not recover: after an overload of {from} had fallen to {to}, response time stayed at {:.1} times its former value.",
                h.response_ratio
            ),
        }
    }));
    all.extend(report.usl.as_ref().map(law));
    if report.steps > 0 {
        let stable = match (report.knee, report.stable) {
            (Some(_), true) => "; repeated steps agree, so more of them would not change the answer",
            (Some(_), false) => "; more time could narrow or change the answer",
            (None, _) => "",
        };
        let steps = if report.steps == 1 { "step" } else { "steps" };
        all.push(format!("{} {steps} in {:.0} s{stable}.", report.steps, report.elapsed_s));
    }
    all
}

/// The headline of a search, without the limit beyond the knee.
pub(crate) fn headline(report: &SearchReport) -> String {
    if let Some(refused) = &report.refused {
        return format!("No knee is named, because {refused}");
    }
    let breaks = |b: &super::BreakingPoint| match b.how {
        MissedRequirement::AchievedBelowOffered => {
            format!("breaks at {}: fewer requests end than become due", per_second(b.rate.value))
        }
        MissedRequirement::Errors => format!("breaks at {}: requests fail", per_second(b.rate.value)),
        MissedRequirement::Objective => format!("misses its objective from {} on", per_second(b.rate.value)),
    };
    let stuck = report.hysteresis.is_some_and(|h| !h.recovered);
    let after = if stuck { "; it does not recover from an overload" } else { "" };
    let text = match (&report.knee, &report.breaking_point) {
        (Some(knee), Some(breaking)) => format!("The knee is at {}, it {}", between(knee), breaks(breaking)),
        (Some(knee), None) => format!("The knee is at {}", between(knee)),
        (None, Some(breaking)) => format!("No knee is named, but the service {}", breaks(breaking)),
        (None, None) => report.unresolved.first().map_or_else(|| "No step was played".to_owned(), |text| capital(text)),
    };
    text + after
}

fn missed(how: MissedRequirement, config: &Config) -> String {
    match (how, config.objective) {
        (MissedRequirement::AchievedBelowOffered, _) => {
            "fewer requests end than become due, so they pile up".to_owned()
        }
        (MissedRequirement::Errors, _) => {
            format!("more than {} % of the requests fail beyond it", thousandths(100.0 * config.error_ratio_most))
        }
        (MissedRequirement::Objective, Some(objective)) => {
            let quantile = thousandths(100.0 * objective.quantile);
            format!("p{quantile} is over {} beyond it, the search's objective", ms(objective.below_ns / 1e6))
        }
        (MissedRequirement::Objective, None) => "its objective is missed".to_owned(),
    }
}

fn capacity(report: &SearchReport) -> Option<String> {
    let capacity = report.capacity.as_ref()?;
    let text = format!("The highest sustained throughput is {}", between(capacity));
    Some(match report.knee_of_capacity_ratio {
        None => text + ".",
        Some(ratio) if ratio >= FULL => format!(
            "{text}; the knee is at {:.0} % of that: arrivals and service times vary little, so hardly a request waits before the service is full.",
            100.0 * ratio
        ),
        Some(ratio) => format!(
            "{text}; the knee is at {:.0} % of that: arrivals or service times vary, so requests wait for each other long before the service is full.",
            100.0 * ratio
        ),
    })
}

fn law(usl: &ScalabilityLaw) -> String {
    if let Some(why) = usl.why_not.as_ref().filter(|_| !usl.determined) {
        return format!("The Universal Scalability Law is not determined by these steps: {why}.");
    }
    let of = |one: &Interval| format!("{:.2}% ({:.2} to {:.2})", 100.0 * one.value, 100.0 * one.low, 100.0 * one.high);
    let peak = match (&usl.peak_concurrency, &usl.peak_rate) {
        (Some(at), Some(rate)) => {
            format!(
                "throughput is largest, {}, with {:.0} requests in the service, and falls beyond",
                between(rate),
                at.value
            )
        }
        _ => "throughput grows with concurrency and does not fall again".to_owned(),
    };
    format!(
        "By the Universal Scalability Law {peak}: contention {}, coherency {:.4}% ({:.4} to {:.4}), {} with one request at a time; it explains {:.1} % of the variance.",
        of(&usl.alpha),
        100.0 * usl.beta.value,
        100.0 * usl.beta.low,
        100.0 * usl.beta.high,
        per_second(usl.gamma.value),
        100.0 * usl.r2.max(0.0)
    )
}

/// `198/s (190 to 205)`.
pub(super) fn between(interval: &Interval) -> String {
    format!("{} ({} to {})", per_second(interval.value), number(interval.low), number(interval.high))
}

fn per_second(rate: f64) -> String {
    format!("{}/s", number(rate))
}

/// Three digits or more.
fn number(value: f64) -> String {
    match value {
        v if v >= 99.95 => thousands(v),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// Up to three decimals, without trailing zeros.
fn thousandths(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn sentence(text: &str) -> String {
    capital(text.trim_end_matches('.')) + "."
}
