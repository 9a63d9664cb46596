//! Each mechanism with series and statements made up for it: it is named first, and what it is mistaken for is not.

use crate::dbot::course_judge::{Alarm, Course, Executed, Workload, judge};
use holdup_diagnose::counters::judge::Ranking;
use holdup_signals::time::counters::frame::Frame;
use holdup_signals::time::counters::jitter::Jitter;
use holdup_signals::time::counters::signal::Signal;

const MIB: f64 = 1024.0 * 1024.0;

/// Series of 3 s: `alone` rows of one session, then `crowd` rows of `sessions` sessions.
struct Episode {
    alone: usize,
    crowd: usize,
    sessions: f64,
    series: Vec<(Signal, f64, f64)>,
}

impl Episode {
    fn course(&self) -> Course {
        let mut frame = Frame::new(1 + self.alone + self.crowd, 3.0);
        let rows = |quiet: f64, alone: f64, crowd: f64| {
            let values = std::iter::once(quiet).chain(std::iter::repeat_n(alone, self.alone));
            values.chain(std::iter::repeat_n(crowd, self.crowd)).collect::<Vec<f64>>()
        };
        frame.set(Signal::TcpConnections, rows(12.0, 13.0, 13.0 + self.sessions));
        for (signal, alone, crowd) in &self.series {
            frame.set(*signal, rows(0.0, *alone, *crowd));
        }
        Course::of(&frame).unwrap()
    }

    fn judged(&self) -> Ranking {
        judge(Some(&self.course()), &[], None, Jitter::NONE)
    }
}

fn first(ranking: &Ranking) -> &'static str {
    ranking.first().unwrap().pattern
}

fn score(ranking: &Ranking, slug: &str) -> Option<f64> {
    ranking.suspects.iter().find(|suspect| suspect.pattern == slug).unwrap().score
}

fn by_statements(statements: &[(&str, Option<f64>)]) -> Ranking {
    let executed: Vec<Executed> =
        statements.iter().map(|(sql, sessions)| Executed { sql: (*sql).to_owned(), sessions: *sessions }).collect();
    judge(None, &[], Workload::of(&executed).as_ref(), Jitter::NONE)
}

#[test]
fn a_mass_delete_is_told_from_a_load() {
    let bulk = |read: f64| Episode {
        alone: 15,
        crowd: 5,
        sessions: 80.0,
        series: vec![
            (Signal::RunQueue, 3.0, 80.0),
            (Signal::BlockedThreads, 1.2, 0.5),
            (Signal::DiskReadBytes, read, 0.0),
        ],
    };
    let deleted = bulk(8.0 * MIB).judged();
    assert_eq!(first(&deleted), "heavy_deletes");
    assert!(score(&deleted, "insert_large_data") < score(&deleted, "heavy_deletes"));
    let load = Episode { crowd: 0, ..bulk(0.0) }.judged();
    assert_eq!(first(&load), "insert_large_data");
}

#[test]
fn index_builds_before_writers_are_told_from_updates_from_the_start() {
    let writers = |alone: usize| Episode {
        alone,
        crowd: 20,
        sessions: 10.0,
        series: vec![(Signal::RunQueue, 5.0, 8.0), (Signal::BlockedThreads, 0.1, 1.0), (Signal::DiskReads, 1.0, 1.0)],
    };
    assert_eq!(first(&writers(18).judged()), "too_many_indexes");
    let updates = writers(0).judged();
    assert_eq!(first(&updates), "concurrent_updates");
    assert!(score(&updates, "too_many_indexes").unwrap() < 0.5);
}

#[test]
fn a_crowd_that_commits_without_computing_inserts() {
    let crowd = Episode {
        alone: 0,
        crowd: 20,
        sessions: 60.0,
        series: vec![(Signal::RunQueue, 1.0, 3.0), (Signal::BlockedThreads, 0.0, 1.0)],
    };
    assert_eq!(first(&crowd.judged()), "concurrent_inserts");
    let asleep = Episode { series: vec![(Signal::RunQueue, 1.0, 3.0), (Signal::BlockedThreads, 0.0, 0.0)], ..crowd };
    assert_eq!(first(&asleep.judged()), "row_lock_contention");
}

#[test]
fn a_crowd_that_computes_from_the_start_lacks_an_index() {
    let crowd = Episode {
        alone: 0,
        crowd: 20,
        sessions: 60.0,
        series: vec![(Signal::RunQueue, 1.0, 58.0), (Signal::BlockedThreads, 0.0, 0.0)],
    };
    assert_eq!(first(&crowd.judged()), "missing_index");
}

#[test]
fn one_session_reads_or_computes() {
    let one = |running: f64, blocked: f64| Episode {
        alone: 30,
        crowd: 0,
        sessions: 0.0,
        series: vec![(Signal::RunQueue, running, 0.0), (Signal::BlockedThreads, blocked, 0.0)],
    };
    assert_eq!(first(&one(6.0, 0.0).judged()), "poor_join");
    assert_eq!(first(&one(2.0, 3.0).judged()), "fetch_large_data");
    assert_eq!(first(&one(2.1, 0.0).judged()), "correlated_subquery");
}

#[test]
fn the_server_s_own_counts_decide() {
    let counts = [Signal::RowsInserted, Signal::RowsUpdated, Signal::RowsDeleted, Signal::Commits, Signal::LockWaiting];
    let counted = |signal: Signal, rate: f64| Episode {
        alone: 0,
        crowd: 20,
        sessions: 20.0,
        series: counts
            .iter()
            .map(|count| (*count, 0.0, if *count == signal { rate } else { 0.0 }))
            .chain([(Signal::BlockedThreads, 0.0, 1.0)])
            .collect(),
    };
    assert_eq!(first(&counted(Signal::RowsDeleted, 20_000.0).judged()), "heavy_deletes");
    assert_eq!(first(&counted(Signal::RowsInserted, 9_000.0).judged()), "concurrent_inserts");
    assert_eq!(first(&counted(Signal::Commits, 9_000.0).judged()), "concurrent_commits");
}

#[test]
fn statements_alone_name_what_they_do() {
    let load = ("INSERT INTO t SELECT generate_series(1,2000000), now()", Some(1.0));
    let update = ("UPDATE t SET a = $1 WHERE id = $2", Some(40.0));
    let lookup = ("SELECT * FROM t WHERE id = $1", Some(90.0));
    for (statements, cause) in [
        (vec![load], "insert_large_data"),
        (vec![load, lookup], "missing_index"),
        (vec![load, ("DELETE FROM t WHERE id < 1900000", None), lookup], "heavy_deletes"),
        (vec![load, ("DELETE FROM t WHERE id < 1900000", None)], "insert_large_data"),
        (
            vec![update, ("DELETE FROM u WHERE id = $1", Some(30.0)), ("INSERT INTO v VALUES ($1)", Some(40.0))],
            "concurrent_commits",
        ),
        (vec![load, ("CREATE INDEX a ON t(a)", None), ("CREATE INDEX b ON t(b)", None), update], "too_many_indexes"),
        (vec![("INSERT INTO t SELECT generate_series(1,300), now()", Some(1.0)), update], "concurrent_updates"),
        (vec![("INSERT INTO t SELECT generate_series(1,58), now()", Some(60.0))], "concurrent_inserts"),
        (vec![("SELECT * FROM a WHERE x > (SELECT avg(b.x) FROM b WHERE b.k = a.k)", None)], "correlated_subquery"),
        (
            vec![(
                "SELECT min(a.x) FROM a, b, c, d, e WHERE a.k = b.k AND b.l = c.l AND c.m = d.m AND d.n = e.n",
                None,
            )],
            "poor_join",
        ),
        (vec![("SELECT * FROM lineitem", None)], "fetch_large_data"),
    ] {
        assert_eq!(first(&by_statements(&statements)), cause, "{statements:?}");
    }
}

#[test]
fn nothing_is_named_where_nothing_was_recorded() {
    let none = judge(None, &[Alarm::CpuHigh, Alarm::MemoryShort, Alarm::FilesystemFull], None, Jitter::NONE);
    assert!(none.first().is_none() && none.named().next().is_none());
}

#[test]
fn a_quiet_host_has_no_culprit() {
    let quiet = Episode {
        alone: 40,
        crowd: 0,
        sessions: 0.0,
        series: vec![
            (Signal::RunQueue, 1.5, 0.0),
            (Signal::BlockedThreads, 0.02, 0.0),
            (Signal::DiskReadBytes, 2000.0, 0.0),
            (Signal::DiskWritesInFlight, 0.1, 0.0),
        ],
    };
    let named: Vec<&str> = quiet.judged().named().map(|suspect| suspect.pattern).collect();
    assert!(named.is_empty(), "{named:?}");
}
