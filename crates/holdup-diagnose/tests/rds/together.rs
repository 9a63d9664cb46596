//! A provider's figures beside a watched server, and beside a healthy recording of the same figures.

use std::collections::BTreeMap;

use holdup_diagnose::Cause;
use holdup_recording::rows::{Sample, Session};
use holdup_recording::{Coverage, Labels, Recording, metrics};

use super::answers::{self, File};
use super::cases::{CASES, Case, HEALTHY};
use super::instance::{Course, Random, START_S};
use super::{SEEDS, accused, is_named, line, recorded};

fn case(name: &str) -> &'static Case {
    CASES.iter().find(|case| case.name == name).unwrap()
}

/// CloudWatch and the description, without Performance Insights.
fn without_insights(course: &Course, case: &Case) -> Vec<File> {
    answers::files(course, case).into_iter().filter(|file| !file.name.starts_with("pi")).collect()
}

/// What a collector reads of the sessions, once in 10 s.
fn sessions(course: &Course, seed: u64) -> Vec<Session> {
    let mut random = Random::new(seed ^ 0x51);
    let mut rows = Vec::new();
    for (n, minute) in course.minutes.iter().enumerate() {
        for second in [0, 10, 20, 30, 40, 50] {
            let observed_at = (START_S + 60 * n as i64 + second) * 1_000_000_000;
            for (event, mean) in &minute.waits {
                let here = (mean + random.unit()).floor() as usize;
                let state = Some(*event).filter(|event| *event != "CPU").map(str::to_owned);
                let true_state = if event.starts_with("Lock") { "lock_wait" } else { "executing" };
                let first = rows.len();
                rows.extend((0..here).map(|n| Session {
                    observed_at,
                    source: "postgresql://orders-db".into(),
                    session_id: (first + n) as i64,
                    command: "active".into(),
                    state: state.clone().map(Into::into),
                    true_state: true_state.into(),
                    ..Session::default()
                }));
            }
        }
    }
    rows
}

/// Every sample also counts the sessions by state: that is how a moment without any is told from one without a sample.
fn counts(sessions: &[Session]) -> Vec<Sample> {
    let mut counts: BTreeMap<(i64, &str), f64> = BTreeMap::new();
    for session in sessions {
        *counts.entry((session.observed_at, &session.true_state)).or_default() += 1.0;
    }
    let sample = |((observed_at, state), value): ((i64, &str), f64)| Sample {
        observed_at,
        source: "postgresql://orders-db".into(),
        metric: metrics::postgresql::SESSIONS.name.into(),
        labels: Labels::new([("true_state", state)]),
        value,
        ..Sample::default()
    };
    counts.into_iter().map(sample).collect()
}

#[test]
fn a_watched_server_and_its_providers_figures_are_one_case() {
    for (name, is_seen_alone) in [("throughput", true), ("cpu", true), ("locks", false)] {
        let case = case(name);
        for seed in 0..SEEDS {
            let course = Course::make(case, 200 + seed);
            let mut recording = recorded(&without_insights(&course, case), Some(course.incident()));
            let alone = holdup_diagnose::diagnose(&recording, None);
            assert_eq!(is_named(&alone, case.causes), is_seen_alone, "alone: {}", line(case, seed, &alone));
            assert!(accused(&alone, case.causes).is_none(), "alone: {}", line(case, seed, &alone));
            recording.tables.sessions.present = true;
            recording.tables.sessions.rows = sessions(&course, seed);
            recording.tables.samples.rows.extend(counts(&recording.tables.sessions.rows));
            recording.manifest.coverage.extend(Coverage::with_parts("postgresql://orders-db", Vec::new()));
            let both = holdup_diagnose::diagnose(&recording, None);
            assert!(is_named(&both, case.causes), "both: {}", line(case, seed, &both));
            let asks_for_a_shell = |text: &str| text.starts_with("--watch host") || text.contains("blockdev");
            let asked = both.not_judged.iter().find(|open| asks_for_a_shell(&open.enable));
            assert!(asked.is_none(), "{asked:?}");
        }
    }
}

fn a_day_earlier(recording: &mut Recording) {
    const DAY: i64 = 86_400_000_000_000;
    recording.manifest.started_at -= DAY;
    recording.manifest.ended_at = recording.manifest.ended_at.map(|at| at - DAY);
    recording.tables.samples.rows.iter_mut().for_each(|row| row.observed_at -= DAY);
    recording.tables.events.rows.iter_mut().for_each(|row| row.observed_at -= DAY);
}

#[test]
fn figures_are_judged_against_a_healthy_recording() {
    let case = case("cpu");
    for seed in 0..SEEDS {
        let course = Course::make(case, 300 + seed);
        let mut healthy = recorded(&answers::files(&Course::make(&HEALTHY[0], 400 + seed), &HEALTHY[0]), None);
        a_day_earlier(&mut healthy);
        let found = recorded(&answers::files(&course, case), None);
        let found = holdup_diagnose::diagnose_against(&found, None, &healthy).unwrap();
        assert!(is_named(&found, &[Cause::CpuSaturated]), "{}", line(case, seed, &found));
        let quiet = recorded(&answers::files(&Course::make(&HEALTHY[0], 500 + seed), &HEALTHY[0]), None);
        let quiet = holdup_diagnose::diagnose_against(&quiet, None, &healthy).unwrap();
        assert!(accused(&quiet, &[]).is_none(), "{}", line(&HEALTHY[0], seed, &quiet));
    }
}
