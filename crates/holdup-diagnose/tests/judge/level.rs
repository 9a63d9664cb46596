//! Recordings of a web app (Flask, SQLAlchemy, gunicorn's threads) on PostgreSQL, 20 s each, that is as it is from the first
//! second on: it reports nothing itself, and no plans were read. No objective says what is good.

use std::path::Path;

use holdup_diagnose::Cause;
use holdup_diagnose::verdict::{Answer, Diagnosis};
use holdup_recording::Recording;

fn diagnosed(name: &str) -> Diagnosis {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judge/level").join(name);
    let diagnosis = holdup_diagnose::diagnose(&Recording::open(&dir).unwrap(), None);
    println!(
        "{name}: {:?} {}\n{:#?}\n{:#?}",
        diagnosis.verdict, diagnosis.headline, diagnosis.level, diagnosis.findings
    );
    diagnosis
}

#[test]
fn an_index_that_was_never_there_is_named_with_its_statement() {
    let diagnosis = diagnosed("missing");
    assert_eq!(diagnosis.culprit, Some(Cause::MissingIndex), "{}", diagnosis.headline);
    let mut commands = diagnosis.findings[0].fixes.iter().filter_map(|fix| fix.command.as_deref());
    assert_eq!(commands.next_back(), Some("CREATE INDEX CONCURRENTLY ON public.orders (customer_id);"));
}

#[test]
fn a_statement_for_each_row_of_a_list_is_named() {
    assert_eq!(diagnosed("loop").culprit, Some(Cause::NPlusOneQueries));
}

#[test]
fn the_same_requests_with_the_index_and_with_one_query_are_healthy() {
    for name in ["indexed", "eager"] {
        let diagnosis = diagnosed(name);
        assert_eq!((diagnosis.verdict, diagnosis.culprit), (Answer::Healthy, None), "{}", diagnosis.headline);
        assert!(diagnosis.headline.starts_with("No change seen; p50 "), "{}", diagnosis.headline);
    }
}
