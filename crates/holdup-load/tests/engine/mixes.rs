//! Phases with their own mix: what arrives at the server is what the phase says, whatever carries it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use holdup_load::scenario::Scenario;

use crate::play::{Played, patient, play};
use crate::servers::http1::{self, OK};
use crate::servers::server;

/// Rows by phase and operation.
fn counts(played: &Played) -> BTreeMap<(String, String), i64> {
    let mut counts = BTreeMap::new();
    for row in &played.rows {
        *counts.entry((row.phase.clone(), row.operation.clone())).or_default() += row.weight;
    }
    counts
}

fn run(text: &str) -> (Played, BTreeMap<String, i64>) {
    let seen = Arc::new(Mutex::new(BTreeMap::new()));
    let log = Arc::clone(&seen);
    let port = server(move |stream| {
        http1::serve(stream, |asked| {
            *log.lock().unwrap().entry(asked.path.clone()).or_default() += 1;
            OK.to_vec()
        });
    });
    let text = patient(&text.replace("TARGET", &format!("http://127.0.0.1:{port}")));
    let played = play(&Scenario::parse(&text, "test.yaml").unwrap_or_else(|e| panic!("{e}\n{text}")), None);
    played.all("ok");
    let seen = seen.lock().unwrap().clone();
    (played, seen)
}

const PHASES: &str = "phases: [{name: usual, rate: 200, for: 500ms}, {name: sale, rate: 200, for: 500ms, mix: {a: 1}}, \
                      {name: more, rate: 200, for: 500ms, mix: {c: 100/s}}, {name: night, for: 500ms, mix: {c: 40/s}}]";

/// Each phase has exactly as many requests as its rate says; the golden ratio deals them out to within two.
#[test]
fn each_phase_sends_its_own_mix() {
    let single = "operations: [{name: a, get: /a, weight: 3}, {name: b, get: /b}, {name: c, get: /c, weight: 0}]";
    let sessions = "sessions: [{name: a, weight: 3, steps: [{name: a, get: /a}]}, {name: b, steps: [{name: b, get: /b}]}, \
                    {name: c, weight: 0, steps: [{name: c, get: /c}]}]";
    for (sends, of) in [(single, ""), (sessions, ""), (sessions, ", of: sessions")] {
        let (played, seen) = run(&format!("target: TARGET\nload: {{{PHASES}, connections: 20{of}}}\n{sends}\n"));
        let counts = counts(&played);
        let expected = [("usual", [75, 25, 0]), ("sale", [50, 50, 0]), ("more", [75, 25, 50]), ("night", [0, 0, 20])];
        for (phase, expected) in expected {
            let found = ["a", "b", "c"].map(|o| counts.get(&(phase.to_owned(), o.to_owned())).copied().unwrap_or(0));
            assert_eq!(found.iter().sum::<i64>(), expected.iter().sum::<i64>(), "{phase}: {found:?}");
            let is_near = |(found, want): (&i64, &i64)| (found - want).abs() <= 2 && (*want > 0 || *found == 0);
            assert!(found.iter().zip(&expected).all(is_near), "{phase}: {found:?} of {expected:?}");
        }
        assert_eq!(seen.values().sum::<i64>(), 370, "the server saw them all: {seen:?}");
    }
}

/// Stages of users.
#[test]
fn users_change_what_they_do() {
    let stages =
        "users: [{name: one, users: 2, for: 400ms, mix: {b: 0}}, {name: two, users: 2, for: 400ms, mix: {a: 0}}]";
    let (played, _) = run(&format!(
        "target: TARGET\nload: {{{stages}, think: 5ms}}\noperations: [{{name: a, get: /a}}, {{name: b, get: /b}}]\n"
    ));
    let kinds: Vec<_> = counts(&played).into_keys().collect();
    assert_eq!(kinds, [("one".to_owned(), "a".to_owned()), ("two".to_owned(), "b".to_owned())]);
}
