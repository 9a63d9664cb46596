//! What is said of a search: sentences, headline, lines.

use crate::cause::Cause;
use std::time::Duration;

use holdup_knee::{Breaking, Curve, Hysteresis, Peak, Point, Second, Summary, Usl};

use super::*;

fn estimate(value: f64, low: f64, high: f64) -> Estimate {
    Estimate { value, low, high }
}

/// A step of three seconds whose answers took `ms`, of which the first is not counted.
fn step(offered: f64, ms: f64, why_limited: Option<&str>) -> Step {
    let second = |p99_ns: f64| Second {
        response: Summary { count: 10, mean_ns: ms * 1e6, p99_ns, ..Summary::default() },
        ..Second::default()
    };
    Step {
        offered,
        from: Duration::from_secs(1),
        to: Duration::from_secs(4),
        settle: Duration::from_secs(1),
        purpose: Purpose::Explore,
        seconds: vec![second(9e9), second(ms * 2e6), second(ms * 2e6)],
        is_generator_limited: why_limited.is_some(),
        why_limited: why_limited.map(str::to_owned),
    }
}

fn point(offered: f64, ms: f64, held: StepResult) -> Point {
    Point {
        offered,
        due: offered,
        achieved: offered.min(201.0),
        response_ns: Some(ms * 1e6),
        error_ratio: 0.0,
        in_system: offered * ms / 1e3,
        growth: 0.0,
        held,
    }
}

fn found() -> (Finding, Vec<Step>) {
    let piles = StepResult::No(MissedRequirement::AchievedBelowOffered);
    let finding = Finding {
        knee: Some(estimate(197.8123, 190.2, 205.0)),
        breaking_point: Some(Breaking {
            rate: estimate(201.6, 199.0, 204.0),
            how: MissedRequirement::AchievedBelowOffered,
        }),
        capacity: Some(estimate(201.6, 199.0, 204.0)),
        knee_of_capacity_ratio: Some(0.9812),
        hysteresis: Some(Hysteresis {
            overload_rate: 260.0,
            recover_rate: 150.0,
            recovered: true,
            after: Some(Duration::from_secs(2)),
            response_ratio: 1.02,
        }),
        curve: Some(Curve { base_ns: 2e7, capacity: 201.6, a: 0.001, k: 2.0, onset: 1.0 }),
        points: vec![point(100.0, 20.0, StepResult::Yes), point(320.0, 570.0, piles)],
        steps_visited: 2,
        is_stable: true,
        elapsed: Duration::from_secs(102),
        ..Finding::default()
    };
    (finding, vec![step(100.0, 20.0, None), step(320.0, 570.0, None)])
}

fn report_of(finding: &Finding, steps: &[Step]) -> SearchReport {
    SearchReport::new(finding, steps, &Config::default(), |step| Some(step.offered * 1e6))
}

#[test]
fn an_answer_in_sentences() {
    let (finding, steps) = found();
    let report = report_of(&finding, &steps);
    assert_eq!(
        report.text,
        [
            "The knee is at 198/s (190 to 205): from there on response time grows faster than load.",
            "The breaking point is at 202/s (199 to 204): fewer requests end than become due, so they pile up.",
            "The highest sustained throughput is 202/s (199 to 204); the knee is at 98 % of that: arrivals and service times vary little, so hardly a request waits before the service is full.",
            "It recovers: 2 s after an overload of 260/s had fallen to 150/s, response time was back to normal.",
            "2 steps in 102 s; repeated steps agree, so more of them would not change the answer.",
        ]
    );
    assert_eq!(
        headline(&report),
        "The knee is at 198/s (190 to 205), it breaks at 202/s: fewer requests end than become due"
    );
    assert!(report.is_answered() && !report.fails_below());
    let last = &report.points[1];
    assert_eq!((last.held.as_str(), last.how), ("no", Some(MissedRequirement::AchievedBelowOffered)));
    assert_eq!((last.mean_ms, last.p99_ms, last.from_s), (Some(570.0), Some(320.0), 1.0));
}

#[test]
fn variance_hysteresis_and_missed_objectives_are_reported() {
    let (mut finding, steps) = found();
    finding.knee_of_capacity_ratio = Some(0.6);
    finding.hysteresis =
        finding.hysteresis.map(|h| Hysteresis { recovered: false, after: None, response_ratio: 4.96, ..h });
    finding.breaking_point = finding.breaking_point.map(|b| Breaking { how: MissedRequirement::Objective, ..b });
    finding.unresolved = vec!["visits disagree at 150 requests/s".to_owned()];
    finding.is_stable = false;
    let objective = Some(holdup_knee::Objective { quantile: 0.99, below_ns: 5e8 });
    let report = SearchReport::new(&finding, &steps, &Config { objective, ..Config::default() }, |_| None);
    let text = report.text.join("\n");
    for said in [
        "p99 is over 500 ms beyond it",
        "60 % of that: arrivals or service times vary",
        "5.0 times",
        "Visits disagree",
        "more time could",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(headline(&report).ends_with("misses its objective from 202/s on; it does not recover from an overload"));
}

#[test]
fn a_refusal_names_its_reason_once_and_is_no_answer() {
    let refused = Finding {
        refused: Some("the generator was the limit at 104/s; the service followed up to 50/s".to_owned()),
        points: vec![point(50.0, 20.0, StepResult::Yes), point(104.0, 30.0, StepResult::GeneratorLimited)],
        steps_visited: 3,
        ..Finding::default()
    };
    let why = Some("all 10 connections were in use");
    let report = report_of(&refused, &[step(50.0, 20.0, None), step(104.0, 30.0, why), step(110.0, 30.0, why)]);
    let said = "the generator was the limit at 104/s: all 10 connections were in use; the service followed up to 50/s";
    assert_eq!(report.refused.as_deref(), Some(said));
    assert_eq!(headline(&report), format!("No knee is named, because {said}"));
    assert!(!report.is_answered());
}

#[test]
fn not_reached_is_an_answer_and_no_step_is_none() {
    let (mut finding, steps) = found();
    (finding.knee, finding.breaking_point, finding.capacity, finding.hysteresis) = (None, None, None, None);
    finding.points.truncate(1);
    finding.unresolved = vec!["knee not reached up to 150/s, the highest allowed rate".to_owned()];
    let report = report_of(&finding, &steps[..1]);
    assert!(report.is_answered());
    assert_eq!(headline(&report), "Knee not reached up to 150/s, the highest allowed rate");
    assert!(!report_of(&Finding::default(), &[]).is_answered());
    assert_eq!(headline(&report_of(&Finding::default(), &[])), "No step was played");
}

#[test]
fn lines_go_no_further_than_the_steps() {
    let (mut finding, steps) = found();
    finding.usl = Some(Usl {
        gamma: estimate(100.0, 90.0, 110.0),
        alpha: estimate(0.05, 0.04, 0.06),
        beta: estimate(0.001, 0.0008, 0.0012),
        peak: Some(Peak { concurrency: estimate(30.8, 28.0, 33.0), rate: estimate(904.0, 880.0, 930.0) }),
        r2: 0.998,
        is_determined: true,
        why_not: None,
    });
    let report = report_of(&finding, &steps);
    let usl = report.usl.as_ref().unwrap();
    for line in [&report.curve, &usl.curve] {
        assert!(line.len() > 20, "{line:?}");
        assert!(line.iter().all(|p| p.rate > 0.0 && p.response_ms >= 5.0 && p.response_ms <= 570.0), "{line:?}");
    }
    assert!(report.curve.iter().all(|p| (100.0..201.6).contains(&p.rate)), "{:?}", report.curve);
    // By Little's law one request at a time takes 1 / gamma.
    let alone = usl.curve.iter().min_by(|a, b| (a.rate - 100.0).abs().total_cmp(&(b.rate - 100.0).abs())).unwrap();
    assert!((alone.response_ms - 10.0).abs() < 2.0, "{alone:?}");
    assert!(report.text.iter().any(|t| t.contains("throughput is largest, 904/s (880 to 930), with 31 requests")));
    finding.usl = finding.usl.map(|u| Usl { is_determined: false, why_not: Some("it is flat".to_owned()), ..u });
    let report = report_of(&finding, &steps);
    assert!(report.usl.as_ref().unwrap().curve.is_empty());
    assert!(report.text.iter().any(|t| t.contains("not determined by these steps: it is flat")));
}

/// A search whose last step asked for more at a time than it may have under way, while the service was as fast as ever.
#[test]
fn a_generator_that_asks_for_too_little_at_a_time_is_named_and_no_knee_is() {
    use crate::testing::{Judged as _, SyntheticRecording};
    // Two steps of 10 s: at 40/s requests take 130 ms, at 80/s they wait 400 ms for one of eight connections besides.
    let ms = |n: i64| if n < 400 { 0 } else { 400_000_000 };
    let mut made = SyntheticRecording::new(15).requests(40, 130).each_request(|n, r| {
        // 40 a second, then 80.
        r.intended_at = if n < 400 { n * 25_000_000 } else { 10_000_000_000 + (n - 400) * 12_500_000 };
        (r.ready_at, r.sent_at) = (Some(r.intended_at + ms(n)), Some(r.intended_at + ms(n)));
        r.done_at = r.intended_at + ms(n) + 130_000_000;
    });
    let mut steps = vec![step(40.0, 130.0, None), step(80.0, 530.0, Some("all 8 connections were in use"))];
    for (step, (from, to)) in steps.iter_mut().zip([(0, 10), (10, 13)]) {
        (step.from, step.to) = (Duration::from_secs(from), Duration::from_secs(to));
        step.seconds =
            vec![Second { due: step.offered as u64, completed: 40, ..step.seconds[1].clone() }; (to - from) as usize];
    }
    made = made.searched(&serde_json::json!({"config": Config::default(), "steps": steps}).to_string());
    let diagnosis = made.diagnose();
    assert!(
        diagnosis.search.as_ref().is_some_and(|s| s.knee.is_none() && s.refused.is_some()),
        "{:?}",
        diagnosis.search
    );
    assert!(diagnosis.headline.starts_with("No knee is named, because"), "{}", diagnosis.headline);
    assert_eq!(diagnosis.culprit, Some(Cause::LoadGeneratorLimit), "{:#?}", diagnosis.findings);
    let text = &diagnosis.findings[0].evidence[0].text;
    assert!(text.contains("waited 400 ms for one of 8 connections while the service took 130 ms, as usual"), "{text}");
}
