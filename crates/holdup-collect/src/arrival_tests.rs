//! Sources that answer at once, late or never: when a recording begins, how often each is asked again, and
//! what the coverage says. Nothing real is asked here; the end-to-end tests do that.

use CoverageState::{Absent, Complete, Failed};
use holdup_recording::Batch;

use super::*;
use crate::ReadError;
use crate::coverage::part;

/// A source whose probes end as planned, the last one again and again.
struct Planned {
    name: &'static str,
    plan: Vec<Step>,
}

#[derive(Clone)]
enum Step {
    Answers(Vec<Coverage>),
    Refuses,
    Denies,
    Ends,
    Hangs,
    Panics,
}

impl Collector for Planned {
    fn source(&self) -> String {
        self.name.to_owned()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let step = if self.plan.len() > 1 { self.plan.remove(0) } else { self.plan[0].clone() };
        let source_name = self.name.to_owned();
        match step {
            Step::Answers(parts) => Ok(Coverage::with_parts(self.name, parts)),
            Step::Refuses => Err(ProbeError::unreachable(self.name, "connection refused")),
            Step::Denies => Err(ProbeError::denied(self.name, "wrong password")),
            Step::Ends => Err(ProbeError::Gone { source_name, why: "it ended".to_owned() }),
            Step::Hangs => {
                std::thread::sleep(Duration::from_secs(600));
                Ok(Vec::new())
            }
            Step::Panics => panic!("on purpose"),
        }
    }

    fn sample(&mut self, _: &mut Batch) -> Result<(), ReadError> {
        Ok(())
    }
}

fn source(name: &'static str, plan: &[Step]) -> (String, Box<dyn Collector>) {
    (name.to_owned(), Box::new(Planned { name, plan: plan.to_vec() }))
}

fn asked(sources: Vec<(String, Box<dyn Collector>)>) -> (Result<Vec<Arrival>, NoAnswer>, Vec<String>, Duration) {
    let (mut said, begun) = (Vec::new(), Instant::now());
    let result = first_answers(sources, &AtomicBool::new(false), &mut |text| said.push(text.to_owned()));
    (result, said, begun.elapsed())
}

const ANSWERS: Step = Step::Answers(Vec::new());

#[test]
fn one_source_that_answers_is_enough_to_begin() {
    let (result, mut said, took) = asked(vec![
        source("gone", &[Step::Ends]),
        source("here", &[ANSWERS]),
        source("closed", &[Step::Refuses]),
        source("secret", &[Step::Denies]),
        source("broken", &[Step::Panics]),
    ]);
    let all = result.unwrap();
    assert!(took < FIRST_ANSWER, "{took:?}");
    let states: Vec<CoverageState> = all.iter().map(|it| it.coverage()[0].state).collect();
    assert_eq!(states, [Absent, Complete, Absent, Absent, Failed]);
    said.sort_unstable();
    assert_eq!(
        said,
        [
            "not watched: broken: its collector panicked; please report this",
            "not watched: gone: it ended; tried once",
            "waiting for closed: connection refused; tried once",
            "waiting for secret: wrong password; tried once",
        ]
    );
    let why = all[2].coverage()[0].why.clone().unwrap();
    assert!(why.starts_with("no answer since 20") && why.ends_with("Z: connection refused"), "{why}");
}

#[test]
fn a_source_that_hangs_delays_the_others_by_seconds_only() {
    let (result, said, took) = asked(vec![source("silent", &[Step::Hangs]), source("here", &[ANSWERS])]);
    let all = result.unwrap();
    assert!(took >= FIRST_ANSWER && took < FIRST_ANSWER * 2, "{took:?}");
    assert_eq!(said, ["waiting for silent: no answer within 4 s"]);
    assert!(!all[0].is_answered() && all[1].is_answered());
}

#[test]
fn a_source_that_answers_late_is_recorded_from_then_on() {
    let late = [Step::Refuses, Step::Refuses, ANSWERS];
    let (result, ..) = asked(vec![source("late", &late), source("here", &[ANSWERS])]);
    let mut late = result.unwrap().remove(0);
    let gap = late.begin().unwrap();
    assert_eq!((gap.kind.as_str(), gap.text.as_str()), ("gap", "not recorded yet: connection refused"));
    let begun = Instant::now();
    let mut news = Vec::new();
    while !late.is_answered() && begun.elapsed() < Duration::from_secs(60) {
        news.extend(late.poll());
        std::thread::sleep(LOOK_EVERY);
    }
    assert!(news.len() == 1 && news[0].ends_with("it is recorded from now on"), "{news:?}");
    let (_, coverage) = late.into_collector().unwrap();
    let why = coverage[0].why.as_ref().unwrap();
    assert_eq!((coverage[0].state, coverage[0].gaps_total), (CoverageState::Partial, 2));
    assert!(why.starts_with("recorded since ") && why.ends_with("before, connection refused"), "{why}");
}

#[test]
fn a_source_that_answers_before_the_recording_begins_lacks_nothing() {
    let (result, ..) = asked(vec![source("slow", &[Step::Refuses, ANSWERS])]);
    let mut only = result.unwrap().remove(0);
    assert_eq!(only.begin(), None);
    assert_eq!(only.coverage()[0].state, CoverageState::Complete);
}

#[test]
fn without_any_answer_nothing_begins() {
    // Waiting does not mend these.
    let (result, said, took) = asked(vec![source("secret", &[Step::Denies]), source("gone", &[Step::Ends])]);
    let error = result.err().unwrap().to_string();
    assert_eq!(error, "none of 2 sources answers: secret: wrong password | gone: it ended");
    assert!(said.len() < 2 && took < FIRST_ANSWER, "{said:?} {took:?}");
    let (result, said, took) = asked(vec![source("closed", &[Step::Refuses])]);
    let error = result.err().unwrap().to_string();
    assert!(error.starts_with("closed: connection refused; tried ") && error.ends_with(" times in 10 s"), "{error}");
    assert!(said[0].starts_with("waiting for closed") && took >= ANY_ANSWER, "{said:?} {took:?}");
    let result = first_answers(vec![source("closed", &[Step::Refuses])], &AtomicBool::new(true), &mut |_| ());
    assert!(matches!(result, Err(NoAnswer::Stopped)));
}

#[test]
fn attempts_are_counted_and_reported_now_and_then() {
    let mut arrival = Arrival::new("closed", source("closed", &[Step::Hangs]).1);
    let refused = || ProbeError::unreachable("closed", "connection refused");
    let told: Vec<String> = (0..12).filter_map(|_| arrival.failed(refused())).collect();
    let numbers: Vec<&str> = told.iter().map(|text| text.rsplit("; ").next().unwrap()).collect();
    assert_eq!(numbers, ["tried once", "tried 3 times", "tried 10 times"]);
    assert!(arrival.failed(ProbeError::denied("closed", "wrong password")).is_some(), "another reason");
}

#[test]
fn parts_that_an_address_asks_for_in_vain_are_named_with_what_mends_them() {
    let lacks = |name: &str| part("db", name).absent("the role keeps texts").enable("ALTER ROLE me SET x;");
    let parts = vec![lacks("plans"), lacks("slow log"), lacks("statements"), part("db", "files")];
    let planned = Planned { name: "db", plan: vec![Step::Answers(parts)] };
    let address = "db://me:a?b@h/x?plans=explain&log=/var/log/x".to_owned();
    let (result, said, _) = asked(vec![(address, Box::new(planned))]);
    assert!(result.is_ok());
    assert_eq!(
        said,
        [
            "asked for in vain: db plans: the role keeps texts; to get it: ALTER ROLE me SET x;",
            "asked for in vain: db slow log: the role keeps texts; to get it: ALTER ROLE me SET x;",
        ]
    );
}
