//! A log of more statements than have room: the list is that of all of them, and the rest adds up.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::*;
use crate::digest::report::{Order, Report};
use crate::digest::run::{Options, run};

/// Statements that have one execution of a few milliseconds each.
const LIGHT: usize = 30_000;
/// Statements that took longest, and come last.
const HEAVY: usize = 12;

fn log(dir: &tempfile::TempDir) -> PathBuf {
    let mut text = String::new();
    let mut entry = |millis: usize, table: &str, number: usize| {
        let _ = write!(
            text,
            "# Time: 2026-11-22T10:00:00.000000Z\n# User@Host: a[a] @ h []  Id: 1\n# Query_time: {}.{:03}000  Lock_time: 0.0 \
             Rows_sent: 1  Rows_examined: 2\nSET timestamp=1795341600;\nselect c from {table}{number} where id = 7;\n",
            millis / 1_000,
            millis % 1_000
        );
    };
    (0..LIGHT).for_each(|number| entry(1 + number % 9, "light", number));
    (0..HEAVY).for_each(|number| entry(2_000 + 100 * number, "heavy", number));
    (0..HEAVY).for_each(|number| entry(3_000, "heavy", number));
    let path = dir.path().join("slow.log");
    std::fs::write(&path, text).unwrap();
    path
}

fn report(path: &PathBuf, threads: usize, most_bytes: Option<u64>) -> Report {
    let outcome = run(std::slice::from_ref(path), &Options { threads, most_bytes, ..Options::default() }).unwrap();
    Report::from_outcome(&outcome, &Order::TotalTime, 10)
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

#[test]
fn the_top_is_exact_and_the_rest_adds_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = log(&dir);
    let bounded = [1, 2].map(|threads| report(&path, threads, Some(32 << 20)));
    let bounded_mib = peak_mib();
    let whole = report(&path, 1, None);
    let whole_mib = peak_mib();
    assert!(bounded_mib * 2 < whole_mib, "{bounded_mib} MiB with a limit of 32, {whole_mib} without");
    let top = |report: &Report| -> Vec<_> {
        let queries = report.queries.iter();
        queries.map(|q| (q.rank, q.id.clone(), q.fingerprint.clone(), q.calls, q.total_us, q.p95_us)).collect()
    };
    assert!(whole.rest.is_none() && whole.queries[0].fingerprint.contains("heavy11"));
    for bounded in bounded {
        assert_eq!(top(&bounded), top(&whole));
        assert_eq!((bounded.calls, bounded.total_us), (whole.calls, whole.total_us));
        assert_eq!(bounded.distinct, LIGHT + HEAVY);
        let rest = bounded.rest.clone().unwrap();
        assert!(rest.exact_ranks >= 10 && !rest.is_at_least, "{rest:?}");
        let known = bounded.distinct - rest.statements;
        assert_eq!(known, 10 + bounded.not_listed);
        assert!(bounded.text().contains(" further statements, together "), "{}", bounded.text());
        assert!(bounded.text().contains("; none of them took more than "), "{}", bounded.text());
    }
}

/// Nothing can be read twice where it comes from a pipe: then it is said which ranks are sure.
#[test]
fn early_statements_are_exact_and_later_ones_bounded() {
    let mut rest = Rest::default();
    let (one, other) = (Key::from_id("one"), Key::from_id("other"));
    rest.add(one, 2, 30);
    rest.add(other, 1, 50);
    assert_eq!((rest.calls, rest.total_us, rest.at_most_us()), (3, 80, 50));
    let room = Room::new(STATEMENT_BYTES, 1);
    assert!(room.admits(one, 0) && !room.admits(other, 0) && room.admits(one, 0));
    assert!(!room.admits(other, 0), "the answer stays");
    assert_eq!(room.refused(), (1, false));
}
