//! Upgrades with known changes: what is found, and what is not.

use super::change::Verdict;
use super::load::Answer;
use super::testing::{Mix, recorded};
use super::*;

fn compared(mix: &Mix, carries: Option<f64>) -> Report {
    let known = CompareOptions { carries, ..CompareOptions::default() };
    compare(("old", &mix.recordings(false)), ("new", &mix.recordings(true)), &known).unwrap()
}

/// Ten of 400 are slower by 10 to 80 %, three of them in loops; the whole server is a little
/// faster.
fn upgrade(seed: u64) -> Mix {
    let slower = (0..10).map(|i| (i * 37 + 5, 1.10 + 0.70 * i as f64 / 9.0)).collect();
    Mix { digests: 400, calls: 200, rounds: 2, slower, all: 0.97, loops: vec![(5, 20), (42, 20), (79, 20)], seed }
}

#[test]
fn ten_of_four_hundred_are_found_and_hardly_any_other() {
    let (mut found, mut false_ones, mut wanted, mut others) = (0, 0, 0, 0);
    for seed in 1..=2 {
        let mix = upgrade(seed);
        let report = compared(&mix, None);
        for statement in &report.statements {
            let digest: usize = statement.digest[1..].parse().unwrap();
            let is_slower = mix.slower.iter().any(|(of, _)| *of == digest);
            let is_called = statement.change.verdict == Verdict::Slower;
            found += usize::from(is_slower && is_called);
            false_ones +=
                usize::from(!is_slower && matches!(statement.change.verdict, Verdict::Slower | Verdict::Faster));
            wanted += usize::from(is_slower);
            others += usize::from(!is_slower);
        }
        assert!((report.common.ratio - 0.97).abs() < 0.02, "{:?}", report.common);
    }
    assert!(found * 100 >= wanted * 95, "{found} of {wanted}");
    assert!(false_ones * 100 <= others, "{false_ones} of {others}");
}

#[test]
fn intervals_hold_what_is_true() {
    let mix = upgrade(9);
    let report = compared(&mix, None);
    let holds = report.statements.iter().filter(|s| {
        let digest: usize = s.digest[1..].parse().unwrap();
        let truth = mix.slower.iter().find(|(of, _)| *of == digest).map_or(1.0, |(_, v)| *v);
        (s.change.low..=s.change.high).contains(&truth)
    });
    let share = holds.count() as f64 / report.statements.len() as f64;
    assert!((0.92..=0.98).contains(&share), "{share}");
}

#[test]
fn two_replays_of_one_server_show_nothing() {
    for seed in 20..22 {
        let report = compared(&Mix { slower: Vec::new(), all: 1.0, ..upgrade(seed) }, None);
        let called = report.statements.iter().filter(|s| matches!(s.change.verdict, Verdict::Slower | Verdict::Faster));
        assert!(called.count() <= 1, "seed {seed}");
        assert_eq!(report.way.len(), 3, "nothing has to be mended first: {:?}", report.way);
    }
}

#[test]
fn statements_in_loops_are_found_by_their_requests() {
    let mut mix = upgrade(3);
    mix.slower = vec![(5, 1.8), (300, 1.8)];
    let report = compared(&mix, Some(0.1));
    let of = |digest: &str| report.statements.iter().find(|s| s.digest == digest).unwrap();
    let runs = of("d0005").runs.unwrap();
    assert!(runs.by_trace && runs.per_request > 3.0, "{runs:?}");
    assert_eq!(of("d0300").runs, None);
    assert_eq!(report.prediction.answer, Answer::Overload);
    let top: Vec<&str> = report.statements.iter().take(2).map(|s| s.digest.as_str()).collect();
    assert!(top.contains(&"d0300"), "{top:?}");
    let carried = compared(&mix, Some(1e9));
    assert_eq!(carried.prediction.answer, Answer::Carried);
    assert_eq!(compared(&mix, None).prediction.answer, Answer::Unknown);
}

#[test]
fn other_answers_come_first_and_fast_failures_are_no_gain() {
    let mix = Mix { digests: 5, calls: 40, rounds: 1, slower: vec![(1, 1.5)], all: 1.0, loops: Vec::new(), seed: 6 };
    let (old, new) = (mix.recordings(false), mix.recordings(true));
    let mut rows = new[0].tables.executions.rows.clone();
    for row in rows.iter_mut().filter(|row| row.digest == "d0004") {
        row.outcome = "statement_failed".to_owned();
        row.error = Some("1176".to_owned());
        row.done_at = row.intended_at + 1_000;
    }
    let hashed = rows.iter_mut().find(|row| row.digest == "d0002").unwrap();
    hashed.rows_hash = Some(-1);
    let report = compare(("old", &old), ("new", &[recorded(rows)]), &CompareOptions::default()).unwrap();
    let of = |digest: &str| report.statements.iter().find(|s| s.digest == digest).unwrap();
    assert_eq!(of("d0004").change.verdict, Verdict::Unknown);
    let differs = of("d0004").differs.clone().unwrap();
    assert!(differs.fails > 0 && differs.errors == ["1176"]);
    assert_eq!(of("d0002").differs.as_ref().map(|d| (d.contents, d.rows)), Some((1, 0)));
    assert!(report.statements[..2].iter().all(|s| s.differs.is_some()), "they come first");
    assert!(report.way[0].starts_with("first of all"), "{:?}", report.way);
    assert!(!report.too_little.is_empty());
}

#[test]
fn incomparable_replays_give_the_reason() {
    let mix = Mix { digests: 3, calls: 10, rounds: 1, slower: Vec::new(), all: 1.0, loops: Vec::new(), seed: 1 };
    let (old, new) = (mix.recordings(false), mix.recordings(true));
    let why = |new: &[Recording]| compare(("a", &old), ("b", new), &CompareOptions::default()).unwrap_err();
    assert!(why(&[]).contains("1 recordings of the old server and 0"));
    assert!(why(&[recorded(Vec::new())]).contains("holdup replay"));
    let mut other = new[0].tables.executions.rows.clone();
    other.iter_mut().for_each(|row| row.digest = "other".to_owned());
    assert!(why(&[recorded(other)]).contains("the same log"));
}
