//! The kind of answer and its sentence.

use crate::cause::Cause;
use crate::generator;
use crate::generator::{DisturbanceWords, GeneratorWords};
use holdup_recording::objective::{Judgement, State, Unit};
use holdup_signals::client::degradation::{EVERY_MET, Severity};
use holdup_signals::client::latency::Origin;
use holdup_signals::client::objectives::Objective;
use holdup_signals::client::validity::{Label, Limit};
use holdup_signals::host::disturbance::Disturbance;
use holdup_signals::time::requests::{mean_over, send_lag_ms};
use holdup_signals::{Degradation, Window};

use super::CULPRIT_RATIO;
use crate::between;
use crate::case::{Case, SPOILED};
use crate::causes::capital;
use crate::resources::cpu::CpuUse;
use crate::search::{self, SearchReport};
use crate::verdict::{Answer, Finding, NAMED};

/// From this factor on, a rate is more load.
const MORE_LOAD: f64 = 1.25;

/// Below this factor a minor slowdown without a culprit leaves a service healthy.
const UNEXPLAINED: f64 = 3.0;

/// The same for a search, which overloads the service: the rates come first, then what limits it.
pub(super) fn of_search(
    report: &SearchReport,
    case: &Case<'_>,
    culprit: Option<&Finding>,
    disturbance: &Disturbance,
) -> (Answer, String) {
    let headline = search::headline(report);
    let is_generator = culprit.is_some_and(|f| f.cause == Cause::LoadGeneratorLimit);
    if !report.is_answered() {
        // If the generator is the culprit, it is also why the search has no answer.
        return (if is_generator { Answer::Found } else { Answer::Undecided }, format!("{headline}."));
    }
    let disturbed = case.degradation.as_ref().and_then(|c| disturbance.spoiled_text(c.slow));
    let is_spoiled = disturbed.is_some() || case.limited_ratio >= SPOILED && !is_generator;
    let is_missed = case.objectives.iter().any(|o| o.judgement.state == State::Missed);
    match (&case.degradation, culprit) {
        (Some(_), Some(f)) if !is_spoiled => (Answer::Found, format!("{headline}; beyond it {}.", f.cause)),
        _ if is_spoiled && !report.stable => {
            let why = disturbed.unwrap_or_else(|| "the load generator could not keep up".to_owned());
            (Answer::Undecided, format!("{headline}; but {why}. Run it again."))
        }
        _ if report.fails_below() => (
            Answer::Undecided,
            format!("{headline}; requests fail below it too, and none of the judged causes explains it."),
        ),
        _ if is_missed => (
            Answer::Undecided,
            format!("{headline}; an objective was missed, and none of the judged causes explains it."),
        ),
        _ => (Answer::Healthy, format!("{headline}.")),
    }
}

/// Whether objectives say that response time is good enough. One that could not be judged says
/// nothing.
pub(super) fn is_good_enough(case: &Case<'_>) -> bool {
    let state = |of: &Objective| of.judgement.state;
    !case.objectives.is_empty() && case.objectives.iter().all(|of| state(of) == State::Met)
}

/// Whether more requests were asked for in the episode than in the baseline window, and got served
/// within every objective: then they may take longer.
pub(super) fn is_load_carried(case: &Case<'_>) -> bool {
    let minor = case.degradation.as_ref().filter(|c| c.severity == Severity::Minor && is_good_enough(case));
    let rate = |window: Window| case.due_per_second(window).ok();
    minor.is_some_and(|c| {
        let rates = rate(c.slow).zip(c.baseline.and_then(rate));
        rates.is_some_and(|(now, before)| now >= MORE_LOAD * before)
    })
}

/// The kind of answer and its sentence, where `tied` causes are equally likely and the generator may have
/// spoiled what it measured.
pub(super) fn answer(
    case: &Case<'_>,
    culprit: Option<&Finding>,
    (tied, is_spoiled): (Option<&str>, bool),
    disturbance: &Disturbance,
) -> (Answer, String) {
    let disturbed = case.degradation.as_ref().and_then(|c| disturbance.spoiled_text(c.slow));
    if let Some(c) = case.degradation.as_ref().filter(|_| disturbed.is_none() && !is_spoiled)
        && let Some(text) = minor(case, c, culprit)
    {
        return (Answer::Healthy, text);
    }
    if let Some(what) = disturbed {
        let text = format!("{}: those measurements do not show the service. Run it again.", capital(&what));
        return (Answer::Undecided, text);
    }
    match (&case.degradation, culprit) {
        // If all of the load was generated, the generator's delay only hides how good the service
        // is.
        (symptom, _) if is_spoiled && (symptom.is_some() || !case.validity.is_put_on) => {
            (Answer::Undecided, limited(case))
        }
        // If the question cannot be answered, finding nothing conspicuous is not an answer.
        (None, _) if is_open(case) => {
            (Answer::Undecided, format!("No cause of delay was found{}; {}.", met(case), unjudged(case)))
        }
        (None, _) => (Answer::Healthy, format!("{}{}{}.{}", nothing(case), met(case), caveat(case), in_front(case))),
        (Some(c), Some(f)) if f.cause == Cause::WorkloadSpike => (
            Answer::Found,
            format!(
                "There is more load than the service carries, and nothing is broken: at the old rate, the {:.0} ms that the average request lost would be gone.",
                c.excess_ms()
            ),
        ),
        (Some(_), Some(f)) if case.share(f.explains_ms) < CULPRIT_RATIO => (
            Answer::Found,
            format!(
                "{}: it accounts for {} of the failed requests.",
                f.title,
                holdup_recording::words::percent(f.explains_ratio)
            ),
        ),
        (Some(c), Some(f)) => (
            Answer::Found,
            format!(
                "{}: it accounts for {:.0} of the {:.0} ms that {}.",
                f.title,
                f.explains_ms.min(c.excess_ms()),
                c.excess_ms(),
                if c.baseline.is_none() { "an average request takes" } else { "the average request lost" }
            ),
        ),
        (Some(_), None) if tied.is_some() => (Answer::Undecided, tied.unwrap_or_default().to_owned()),
        (Some(c), None) => {
            let what = if c.is_slow { "Requests are too slow" } else { "Requests fail" };
            // Better than nothing: where to look, and with which source.
            let between = between::between(case).map_or_else(String::new, |b| format!(" {}.", b.text));
            (Answer::Undecided, format!("{what}, and none of the judged causes explains it.{between}"))
        }
    }
}

/// Whether the generator was the limit for most of the episode, so that what it measured is not the
/// service's. If only a CPU was missing, on a machine whose CPUs are seen to be full, its loop handles
/// responses as late as it sends requests: twice its send lag is its own delay, and what exceeds that
/// is the service's.
pub(super) fn is_spoiled(case: &Case<'_>) -> bool {
    let waits_only = || {
        let limits = case.validity.limits();
        limits.iter().all(|(_, reason)| matches!(reason.limit, Limit::RunQueue | Limit::SendLag))
            && CpuUse::measure(&case.slow()).is_ok_and(|cpus| cpus.is_short())
    };
    let own_ms = || {
        let requests = case.slow_requests().ok()?;
        Some(2.0 * mean_over(requests.iter().copied(), send_lag_ms)?)
    };
    case.limited_ratio >= SPOILED
        && !(waits_only() && own_ms().is_some_and(|own_ms| own_ms < SPOILED * case.excess_ms()))
}

/// The sentence of a minor episode that leaves the verdict healthy. Objectives say what is too slow;
/// without them, a culprit is reason enough to say that something is wrong.
fn minor(case: &Case<'_>, of: &Degradation, culprit: Option<&Finding>) -> Option<String> {
    let is_good_enough = is_good_enough(case);
    let is_small = of.slow_mean_ms < UNEXPLAINED * of.baseline_mean_ms;
    let met = met(case);
    let what = of.text.replace(&format!(" ({EVERY_MET})"), "");
    match culprit {
        _ if of.severity != Severity::Minor => None,
        _ if is_load_carried(case) => {
            Some(format!("{}{met}; but {what} while more were asked for.{}", nothing(case), in_front(case)))
        }
        Some(f) if is_good_enough && f.confidence >= NAMED => {
            Some(format!("No request was too slow{met}; but {what}: {} ({:.2}).", f.title, f.confidence))
        }
        Some(_) if !is_good_enough => None,
        _ if is_good_enough || is_small => {
            Some(format!("{}{met}; but {what}, and no judged cause explains it.{}", nothing(case), in_front(case)))
        }
        _ => None,
    }
}

/// Says that the generator was the limit, why, and what to do.
fn limited(case: &Case<'_>) -> String {
    // The first limit is the cause of the others, if any is.
    let reason = case.validity.sentences().into_iter().find(|(limit, ..)| limit.is_generators());
    let whose = match &case.degradation {
        Some(_) => "it is unknown whether the service was slow",
        None => "the achieved rate is its own limit, and the service may carry more",
    };
    let fix = case.validity.fixes().into_iter().next().map_or_else(String::new, |fix| format!(" {}", fix.text));
    let why = reason.map_or_else(String::new, |(.., text)| format!(": {text}"));
    format!("The load generator could not keep up, so {whose}{why}.{fix}")
}

/// What a healthy verdict does not claim: that the service can carry no more, or be no faster.
fn caveat(case: &Case<'_>) -> String {
    let validity = &case.validity;
    let limited = validity.spoiled().map(|w| w.seconds()).fold(0.0, |sum, s| sum + s);
    let (of_limited, capped) = (generator::seconds(limited), validity.seconds(Label::Capped));
    match () {
        () if limited > 0.0 && validity.is_put_on => {
            format!("; but for {of_limited} s response times include the load generator's own delay")
        }
        () if limited > 0.0 => format!(
            "; but for {of_limited} s the load generator could not keep up, so the achieved rate is its limit, not the service's"
        ),
        () if capped > 0.0 => format!(
            "; but for {} s the limit of {} requests in flight bound, so the achieved rate does not show the service's limit",
            generator::seconds(capped),
            validity.connections
        ),
        () => String::new(),
    }
}

/// What holds nothing up: all of the service, or only the part that was timed.
pub(super) fn nothing(case: &Case<'_>) -> &'static str {
    match case.origin {
        Origin::DatabaseStatements | Origin::DatabaseSessions => "The database holds nothing up",
        Origin::Volume => "The volume holds nothing up",
        _ => "Nothing is holding requests up",
    }
}

/// Where requests may wait in front of the part that was timed, if that is not all of them.
fn in_front(case: &Case<'_>) -> &'static str {
    match case.origin {
        Origin::DatabaseStatements | Origin::DatabaseSessions => {
            " Requests were not timed: they may wait in the app, for its connections, or on the network."
        }
        Origin::Volume => " Nothing in front of it was timed: requests may wait in the database or in the app.",
        _ => "",
    }
}

/// `; 3 s in which the generator could not keep up are left out`, if so.
pub(super) fn left_out(case: &Case<'_>) -> String {
    let seconds = case.left_out.iter().fold(0.0, |sum, w| sum + w.seconds());
    if seconds <= 0.0 {
        return String::new();
    }
    format!("; {} s in which the load generator could not keep up are left out", generator::seconds(seconds))
}

/// Objectives on response time, or all if it has none: without them the question is open.
fn asked<'c>(case: &'c Case<'_>) -> Vec<&'c Judgement> {
    let all: Vec<&Judgement> = case.objectives.iter().map(|o| &o.judgement).collect();
    let timed: Vec<&Judgement> = all.iter().copied().filter(|j| j.unit == Unit::Ms).collect();
    if timed.is_empty() { all } else { timed }
}

/// Whether there is a question on response time that nothing recorded can answer.
fn is_open(case: &Case<'_>) -> bool {
    let asked = asked(case);
    !asked.is_empty() && asked.iter().all(|j| j.state == State::NotJudged)
}

/// Why the question is open.
fn unjudged(case: &Case<'_>) -> String {
    let why = asked(case).into_iter().find_map(|j| j.why.clone());
    why.unwrap_or_else(|| "its metric was not recorded".to_owned())
}

/// `: every objective was met (p99 < 400ms)`, if there was one, and which could not be judged.
fn met(case: &Case<'_>) -> String {
    let texts = |state: State| {
        let of_state = case.objectives.iter().filter(|o| o.judgement.state == state);
        of_state.map(|o| o.threshold.text.as_str()).collect::<Vec<_>>().join(", ")
    };
    match (texts(State::Met), texts(State::NotJudged)) {
        (met, open) if met.is_empty() && open.is_empty() => String::new(),
        (met, open) if open.is_empty() => format!(": every objective was met ({met})"),
        (met, open) if met.is_empty() => format!("; but no objective could be judged ({open})"),
        (met, open) => format!(": every objective that could be judged was met ({met}), and {open} could not"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    #[test]
    fn a_database_alone_does_not_speak_for_requests() {
        let steady = SyntheticRecording::new(40).digest("SELECT item", |second| (100 * second, 200 * second, 0, 0, 0));
        let diagnosis = steady.diagnose();
        assert_eq!(diagnosis.verdict, Answer::Healthy, "{}", diagnosis.headline);
        let account = "No change seen; mean 2.00 ms; only a mean statement in the database";
        assert!(diagnosis.headline.starts_with(account), "{}", diagnosis.headline);
        assert!(diagnosis.headline.contains("Requests were not timed"), "{}", diagnosis.headline);
    }
}
