//! Histories of made-up builds whose change is known.

use super::*;
use crate::recordings::Run;
use holdup_signals::testing::SyntheticRecording;

/// A build whose only operation takes some `us` microseconds, a little more or less from build to build.
fn build(number: usize, us: i64, rate: i64) -> Group {
    let jitter = (number as i64 * 37 % 11 - 5) * us / 500;
    let made = SyntheticRecording::new(5).requests(rate, 20).each_request(move |n, request| {
        request.done_at = request.intended_at + (us + jitter + n % 5 * us / 50) * 1_000;
    });
    let name = format!("v{number}");
    let diagnosis = holdup_diagnose::diagnose(made.recording(), None);
    Group { runs: vec![Run::from_recording(&name, made.recording(), &diagnosis, None)], name }
}

fn builds(us: impl Fn(usize) -> i64, count: usize) -> Vec<Group> {
    (0..count).map(|number| build(number, us(number), 50)).collect()
}

fn p95(history: &History) -> &Figure {
    history.figures.iter().find(|figure| figure.indicator.ends_with("response time p95")).unwrap()
}

#[test]
fn a_slower_build_is_named() {
    let history = history(&builds(|number| if number < 12 { 20_000 } else { 23_000 }, 18), Options::default());
    assert_eq!(history.verdict, Change::Worse, "{}", history.headline);
    let change = p95(&history).standing().unwrap();
    assert_eq!((change.after_build.as_str(), change.since_build.as_str()), ("v11", "v12"));
    assert_eq!((change.builds_before, change.builds_since), (12, 6));
    assert!(history.headline.starts_with("worse since v12: "), "{}", history.headline);
    assert!(history.headline.contains("and stayed there for 6 builds, after 12 builds"), "{}", history.headline);
}

#[test]
fn a_regression_that_was_undone_is_not_reported() {
    let us = |number| if (11..17).contains(&number) { 30_000 } else { 20_000 };
    let history = history(&builds(us, 24), Options::default());
    assert_eq!(history.verdict, Change::NoDifference, "{}", history.headline);
}

#[test]
fn one_slow_build_is_none() {
    let us = |number| if number == 15 { 90_000 } else { 20_000 };
    let history = history(&builds(us, 20), Options::default());
    assert_eq!(history.headline, "no lasting change in 20 builds");
}

#[test]
fn too_few_builds_are_said_to_be_too_few() {
    let history = history(&builds(|_| 20_000, 14), Options::default());
    assert_eq!(history.verdict, Change::CantTell);
    assert!(history.headline.starts_with("14 builds are too few"), "{}", history.headline);
}

#[test]
fn builds_under_another_load_do_not_count() {
    let all = (0..20).map(|number| build(number, 20_000, if number < 8 { 80 } else { 50 })).collect::<Vec<_>>();
    let history = history(&all, Options::default());
    assert_eq!(history.verdict, Change::NotComparable);
    assert!(history.headline.starts_with("only 12 of 20 builds"), "{}", history.headline);
    assert!(history.left_out.iter().any(|why| why.contains("v3: the offered rates differ")), "{:?}", history.left_out);
    assert_eq!(p95(&history).values.iter().flatten().count(), 12);
}
