//! The hidden queue, seen by everybody (app, wire, server, kernel), and then with one of them after the other gone: the same culprit,
//! less sure, or an honest "between these, turn on that". Never another culprit.

use holdup_diagnose::Cause;
use std::path::Path;

use holdup_diagnose::diagnose;
use holdup_diagnose::verdict::{Answer, Diagnosis};
use holdup_recording::Recording;

const CULPRIT: &str = "thread_pool_queue";

/// Of the slow requests so many have to be joined, and of their time so much has to have an owner.
const SHARE: f64 = 0.95;

fn whole() -> Recording {
    Recording::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hidden-queue-accounts")).unwrap()
}

fn confidence(diagnosis: &Diagnosis) -> f64 {
    diagnosis.findings.iter().find(|f| f.cause.slug() == CULPRIT).map_or(0.0, |f| f.confidence)
}

fn no_spans(recording: &mut Recording) {
    recording.tables.spans.rows.clear();
    recording.tables.spans.present = false;
}

fn no_app_metrics(recording: &mut Recording) {
    recording.tables.samples.rows.retain(|s| !s.source.starts_with("prometheus:"));
}

fn no_performance_schema(recording: &mut Recording) {
    recording.tables.statements.rows.clear();
    recording.tables.statements.present = false;
    recording.tables.samples.rows.retain(|s| !s.metric.starts_with("mysql_statement"));
}

/// As before MariaDB 10.5: neither the tables, nor whose statement waits in the pool.
fn no_pool_tables(recording: &mut Recording) {
    recording.tables.samples.rows.retain(|s| {
        let is_queued = s.metric == "mysql_sessions" && s.labels.get("true_state") == Some("queued");
        !s.metric.starts_with("mysql_thread_pool_") && !is_queued
    });
    for session in recording.tables.sessions.rows.iter_mut().filter(|s| s.true_state == "queued") {
        session.true_state = "idle".into();
    }
}

fn no_wire(recording: &mut Recording) {
    recording.tables.exchanges.rows.clear();
    recording.tables.exchanges.present = false;
    recording.tables.samples.rows.retain(|s| !s.metric.starts_with("wire_"));
}

fn no_sockets(recording: &mut Recording) {
    recording.tables.samples.rows.retain(|s| !s.metric.starts_with("tcp_"));
}

fn no_server(recording: &mut Recording) {
    no_performance_schema(recording);
    recording.tables.sessions.rows.clear();
    recording.tables.sessions.present = false;
    recording.tables.samples.rows.retain(|s| !s.source.starts_with("mysql"));
    recording.tables.settings.rows.retain(|s| !s.source.starts_with("mysql"));
}

type Without = fn(&mut Recording);

fn without(takes: &[Without]) -> Diagnosis {
    let mut recording = whole();
    takes.iter().for_each(|take| take(&mut recording));
    let diagnosis = diagnose(&recording, None);
    for evidence in diagnosis.findings.iter().flat_map(|f| &f.evidence) {
        assert!(evidence.resolves(&recording), "{evidence:?} points nowhere");
    }
    diagnosis
}

#[test]
fn with_all_sources_every_slow_request_is_joined_and_its_time_has_an_owner() {
    let diagnosis = without(&[]);
    assert_eq!(diagnosis.culprit.map(Cause::slug), Some(CULPRIT));
    let accounts = diagnosis.accounts.unwrap();
    assert!(accounts.requests >= 100, "{}", accounts.text);
    assert!(accounts.joined as f64 >= SHARE * accounts.requests as f64, "{}", accounts.text);
    assert!(accounts.assigned_ratio >= SHARE, "{}", accounts.text);
}

#[test]
fn one_source_less_names_the_same_less_sure() {
    let sure = confidence(&without(&[]));
    for (name, takes) in [
        ("no spans", &[no_spans as Without] as &[Without]),
        ("neither spans nor metrics of the app", &[no_spans, no_app_metrics]),
        ("no performance_schema", &[no_performance_schema]),
        ("no tables of the pool", &[no_pool_tables]),
        ("no packets", &[no_wire]),
        ("no sockets", &[no_sockets]),
        ("sockets, app and server's timing", &[no_wire, no_pool_tables]),
        ("packets and server's timing", &[no_spans, no_app_metrics, no_pool_tables, no_sockets]),
    ] {
        let diagnosis = without(takes);
        let less = confidence(&diagnosis);
        println!("{name}: {:?} {:?} {less:.2}: {}", diagnosis.verdict, diagnosis.culprit, diagnosis.headline);
        assert_eq!(diagnosis.culprit.map(Cause::slug), Some(CULPRIT), "{name}: {}", diagnosis.headline);
        assert!(less <= sure, "{name}: {less} with less to see than for {sure}");
    }
}

#[test]
fn too_little_is_said_together_with_what_would_tell() {
    for (name, takes) in [
        ("packets alone", &[no_spans as Without, no_app_metrics, no_server, no_sockets] as &[Without]),
        ("the app alone", &[no_wire, no_server, no_sockets]),
        ("the app's metrics alone", &[no_spans, no_wire, no_server, no_sockets]),
    ] {
        let diagnosis = without(takes);
        println!("{name}: {:?} {:?}: {}", diagnosis.verdict, diagnosis.culprit, diagnosis.headline);
        assert_eq!((diagnosis.verdict, diagnosis.culprit.map(Cause::slug)), (Answer::Undecided, None), "{name}");
        assert!(diagnosis.headline.contains("Turn on --watch "), "{name}: {}", diagnosis.headline);
    }
}
