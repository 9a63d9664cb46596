//! A few whole searches of each kind of service, small enough for every test run. The seeds are fixed; `sweeps` has many.

use super::sweeps::{STALLS, kind};
use super::*;
use crate::{Estimate, MissedRequirement, Objective, StepResult};

const EVEN: Arrivals = Arrivals::Even;
const POISSON: Arrivals = Arrivals::Poisson;
const CONSTANT: Length = Length::Constant;
const EXPONENTIAL: Length = Length::Exponential;

fn is_near(estimate: Option<Estimate>, truth: f64, share: f64) -> bool {
    estimate.is_some_and(|estimate| (estimate.value / truth - 1.0).abs() <= share)
}

/// Searches a service. Whatever it is, the budget is kept, and judging the recording gives the
/// result of the search.
fn search(service: Service, arrivals: Arrivals, config: &Config, seed: u64) -> Finding {
    let (finding, steps, elapsed) = World::new(service, arrivals, seed).search(config);
    assert!(elapsed <= config.budget.as_secs_f64(), "took {elapsed} s");
    assert_eq!(judge(&steps, config), finding);
    finding
}

#[test]
fn where_nothing_varies_the_knee_is_the_capacity() {
    for (workers, capacity) in [(1, 100.0), (4, 40.0), (32, 32.0), (2, 2.0)] {
        let kind = kind(EVEN, CONSTANT, workers, capacity);
        let finding = search(kind.service, EVEN, &kind.config, 1);
        assert!(is_near(finding.knee, capacity, 0.1), "{workers} workers, {capacity}/s: {:?}", finding.knee);
        let (knee, breaking) = (finding.knee.unwrap(), finding.breaking_point.unwrap());
        assert!(knee.low <= capacity && capacity <= knee.high, "{knee:?}");
        assert_eq!(breaking.how, MissedRequirement::AchievedBelowOffered);
        assert!(is_near(Some(breaking.rate), capacity, 0.1), "{breaking:?}");
    }
}

#[test]
fn where_arrivals_or_service_vary_it_is_below() {
    for (arrivals, length, workers, capacity) in
        [(POISSON, CONSTANT, 8, 400.0), (POISSON, EXPONENTIAL, 4, 400.0), (EVEN, EXPONENTIAL, 1, 400.0)]
    {
        let kind = kind(arrivals, length, workers, capacity);
        let finding = search(kind.service, arrivals, &kind.config, 3);
        assert!(is_near(finding.knee, kind.knee, 0.1), "{}: {:?} not {}", kind.name, finding.knee, kind.knee);
        assert!(is_near(finding.capacity, capacity, 0.05), "{}: {:?}", kind.name, finding.capacity);
        assert!(finding.knee_of_capacity_ratio.unwrap() < 0.9);
    }
}

#[test]
fn stalls_of_the_machine_do_not_decide() {
    for seed in 0..3 {
        let kind = kind(EVEN, CONSTANT, 4, 100.0);
        let service = Service { stalls: Some(STALLS), ..kind.service };
        let finding = search(service, EVEN, &kind.config, seed * 7919 + 1);
        assert!(is_near(finding.knee, 100.0, 0.1), "{:?}", finding.knee);
    }
}

#[test]
fn errors_and_silence_that_were_there_before_are_not_the_limit() {
    let kind = kind(EVEN, CONSTANT, 2, 200.0);
    for service in [Service { error_ratio: 0.01, ..kind.service }, Service { never_ratio: 0.005, ..kind.service }] {
        let finding = search(service, EVEN, &kind.config, 5);
        assert!(is_near(finding.knee, 200.0, 0.1), "{:?}", finding.knee);
    }
}

#[test]
fn a_backlog_that_overflows_breaks_by_errors() {
    let kind = kind(EVEN, CONSTANT, 4, 200.0);
    let finding = search(Service { most_in_system: 24, ..kind.service }, EVEN, &kind.config, 1);
    let breaking = finding.breaking_point.unwrap();
    assert_eq!(breaking.how, MissedRequirement::Errors);
    assert!(is_near(Some(breaking.rate), 200.0, 0.1) && is_near(finding.knee, 200.0, 0.1), "{finding:?}");
}

#[test]
fn recovery_after_an_overload_is_seen_and_its_absence_too() {
    let kind = kind(EVEN, CONSTANT, 4, 100.0);
    let finding = search(kind.service, EVEN, &kind.config, 1);
    let hysteresis = finding.hysteresis.unwrap();
    assert!(hysteresis.recovered && hysteresis.response_ratio < 1.2 && hysteresis.after.is_some(), "{hysteresis:?}");

    let slow = Metastable { in_system: 16, factor: 2.0, idle: 0.25 };
    let finding = search(Service { metastable: Some(slow), ..kind.service }, EVEN, &kind.config, 1);
    let hysteresis = finding.hysteresis.unwrap();
    assert!(!hysteresis.recovered && hysteresis.response_ratio > 1.5, "{hysteresis:?}");
    assert!(is_near(finding.knee, 100.0, 0.1), "{:?}", finding.knee);

    // It is never idle long enough to become fast again.
    let spoilt = Metastable { idle: 1e9, ..slow };
    let finding = search(Service { metastable: Some(spoilt), ..kind.service }, EVEN, &kind.config, 1);
    assert!(!finding.is_stable && finding.hysteresis.is_some_and(|hysteresis| !hysteresis.recovered), "{finding:?}");
}

#[test]
fn the_law_of_a_service_that_slows_down_with_load_is_found() {
    let mut kind = kind(EVEN, CONSTANT, 1, 40.0);
    kind.service.usl = Some((0.03, 0.002));
    kind.service.most_in_system = 200;
    let finding = search(kind.service, EVEN, &kind.config, 1);
    let usl = finding.usl.unwrap();
    assert!(usl.is_determined && is_near(Some(usl.gamma), 40.0, 0.1), "{usl:?}");
    let peak = usl.peak.unwrap();
    let truth = kind.service.usl_rate((0.97_f64 / 0.002).sqrt());
    assert!(is_near(Some(peak.rate), truth, 0.1), "{peak:?} not {truth}");
    assert!(is_near(finding.capacity, truth, 0.1), "{:?} not {truth}", finding.capacity);
}

#[test]
fn no_knee_is_named_when_the_generator_is_the_limit() {
    let kind = kind(EVEN, CONSTANT, 4, 400.0);
    let world = World::new(kind.service, EVEN, 1).with_generator_most(250.0);
    let (finding, _, _) = world.search(&kind.config);
    assert_eq!(finding.knee, None);
    assert!(finding.refused.as_ref().unwrap().contains("generator"), "{finding:?}");
    assert!(finding.points.iter().any(|point| point.held == StepResult::GeneratorLimited));

    let world = World::new(kind.service, EVEN, 1).with_generator_most(700.0);
    let (finding, _, _) = world.search(&kind.config);
    assert!(finding.refused.is_none() && is_near(finding.knee, 400.0, 0.1), "{finding:?}");
}

#[test]
fn a_service_that_follows_all_the_way_has_no_knee() {
    let kind = kind(EVEN, CONSTANT, 4, 400.0);
    let finding = search(kind.service, EVEN, &Config { most: 300.0, ..kind.config }, 1);
    assert_eq!((finding.knee, finding.breaking_point), (None, None));
    assert!(finding.unresolved.iter().any(|reason| reason.contains("not reached up to 300")), "{finding:?}");
}

#[test]
fn an_objective_that_is_missed_first_is_the_breaking_point() {
    // The 99th percentile of M/M/1 is ln(100) / (capacity - rate): 50 ms at 308 of 400 requests/s.
    let mut kind = kind(POISSON, EXPONENTIAL, 1, 400.0);
    kind.config.objective = Some(Objective { quantile: 0.99, below_ns: 5e7 });
    let finding = search(kind.service, POISSON, &kind.config, 1);
    let breaking = finding.breaking_point.unwrap();
    assert_eq!(breaking.how, MissedRequirement::Objective);
    assert!(is_near(Some(breaking.rate), 308.0, 0.15), "{breaking:?}");
}

#[test]
fn a_service_that_answers_nothing_costs_no_more_than_the_budget() {
    let kind = kind(EVEN, CONSTANT, 4, 100.0);
    let finding = search(Service { never_ratio: 1.0, ..kind.service }, EVEN, &kind.config, 1);
    assert_eq!(finding.knee, None, "{finding:?}");
}

#[test]
fn a_first_rate_that_is_too_much_is_no_obstacle() {
    let kind = kind(EVEN, CONSTANT, 2, 20.0);
    let finding = search(kind.service, EVEN, &Config { from: 200.0, ..kind.config }, 1);
    assert!(is_near(finding.knee, 20.0, 0.1), "{:?}", finding.knee);
}

#[test]
fn intervals_cover_the_truth_about_as_often_as_they_say() {
    let mut covered = 0;
    for seed in 0..12 {
        for (arrivals, length) in [(POISSON, EXPONENTIAL), (EVEN, CONSTANT)] {
            let kind = kind(arrivals, length, 4, 100.0);
            let knee = search(kind.service, arrivals, &kind.config, seed * 7919 + 1).knee.unwrap();
            covered += usize::from(knee.low <= kind.knee && kind.knee <= knee.high);
        }
    }
    assert!(covered >= 22, "{covered} of 24");
}
