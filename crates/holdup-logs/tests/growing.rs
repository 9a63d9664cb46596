//! Logs that grow, are renamed, truncated and packed while they are read: each record is counted once, whenever it is looked at.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdup_logs::digest::Dialect;
use holdup_logs::digest::follow::Follow;
use holdup_logs::digest::report::{Order, Report};
use holdup_logs::digest::resume::State;
use holdup_logs::digest::run::{Options, Outcome, run, run_on};
use holdup_logs::digest::select::Select;
use holdup_logs::digest::tally::{Identity, Tally};

/// Records of a slow log, each with a time of its own.
fn records(from: u64, count: u64) -> String {
    (from..from + count).fold(String::new(), |mut log, number| {
        let _ = write!(
            log,
            "# Time: 2025-11-03T10:00:{:02}.{number:06}Z\n# User@Host: app[app] @ h []\n# Query_time: 0.{:06}  Lock_time: 0.0\n{}SET timestamp={};\nselect a\n from t where b = 'CaNaRy {number};\n# Time: x';\n",
            number / 100 % 60,
            number + 1,
            if number == 0 { "use shop;\n" } else { "" },
            1_762_164_000 + number / 100,
        );
        log
    })
}

/// What `count` records from the first on come to.
fn sum(count: u64) -> u128 {
    (1..=u128::from(count)).sum()
}

fn tally() -> Tally {
    Tally::new(Dialect::MySql, Identity::Holdup, Select::default())
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn seen(tally: &Tally) -> (u64, u128) {
    tally.shapes.iter().fold((0, 0), |(calls, total), shape| {
        (calls + shape.calls, total + shape.measure(0).map_or(0, |time| time.sum))
    })
}

#[test]
fn a_log_that_is_written_in_pieces_is_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slow.log");
    let log = records(0, 300);
    File::create(&path).unwrap();
    let mut follow = Follow::new(std::slice::from_ref(&path), &Options::default(), &State::default()).unwrap();
    let mut counted = tally();
    // Pieces that end anywhere, also between the bytes of a head.
    for piece in log.as_bytes().chunks(977) {
        append(&path, std::str::from_utf8(piece).unwrap());
        follow.poll(&mut counted).unwrap();
        follow.poll(&mut counted).unwrap();
    }
    assert_eq!(seen(&counted), (300, sum(300)));
    assert!(counted.problems.all().next().is_none(), "{:?}", counted.problems);
    assert_eq!(counted.shapes.len(), 1, "the literal is one whatever it holds");
}

#[test]
fn rotation_and_truncation_lose_nothing_that_was_written_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slow.log");
    append(&path, &records(0, 50));
    let mut follow = Follow::new(std::slice::from_ref(&path), &Options::default(), &State::default()).unwrap();
    let mut counted = tally();
    follow.poll(&mut counted).unwrap();
    // Renamed, and written on for a moment, as servers do until they are told.
    let old = folder.path().join("slow.log.1");
    std::fs::rename(&path, &old).unwrap();
    append(&old, &records(50, 20));
    follow.poll(&mut counted).unwrap();
    append(&path, &records(70, 30));
    append(&old, &records(100, 5));
    for _ in 0..5 {
        follow.poll(&mut counted).unwrap();
    }
    assert_eq!(seen(&counted), (105, sum(105)));
    // Copied and truncated.
    OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
    for _ in 0..3 {
        follow.poll(&mut counted).unwrap();
    }
    append(&path, &records(105, 15));
    for _ in 0..3 {
        follow.poll(&mut counted).unwrap();
    }
    let mut state = State::default();
    follow.finish(&mut counted, &mut state);
    assert_eq!(seen(&counted), (120, sum(120)));
    let problems: Vec<_> = counted.problems.all().map(|(problem, count, _)| (problem.words(), count)).collect();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].0.contains("truncated while they were read"), "{problems:?}");
    assert_eq!(follow.files.len(), 3);
    // What follows is a run's that goes on.
    append(&path, &records(120, 10));
    let outcome = run_on(&[path], &Options::default(), Some(&mut state)).unwrap();
    assert_eq!(seen(&outcome.tally).0, 10);
}

#[test]
fn runs_go_on_where_the_last_one_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slow.log");
    let (mut state, mut calls, mut total) = (State::default(), 0, 0);
    let mut go_on = |path: &Path| {
        // By way of its form on disk.
        let saved = folder.path().join("state");
        state.save(&saved).unwrap();
        state = State::load(&saved).unwrap();
        let outcome =
            run_on(&[path.to_owned()], &Options { threads: 2, ..Options::default() }, Some(&mut state)).unwrap();
        let (more, time) = seen(&outcome.tally);
        assert!(outcome.tally.problems.all().next().is_none(), "{:?}", outcome.tally.problems);
        (calls, total) = (calls + more, total + time);
        (more, calls, total, outcome)
    };
    // Half a record is left for later.
    let log = records(0, 400);
    let half = log.len() / 2 + 30;
    append(&path, &log[..half]);
    let first = go_on(&path);
    assert!(first.0 > 190 && first.0 < 210, "{}", first.0);
    assert_eq!(go_on(&path).0, 0);
    append(&path, &log[half..]);
    let second = go_on(&path);
    assert_eq!((second.1, second.2), (400, sum(400)));
    // The database that was said once holds on.
    let report = Report::from_outcome(&second.3, &Order::TotalTime, 0);
    assert_eq!(report.queries[0].databases.first().map(|one| (one.name.as_str(), one.calls)), Some(("shop", second.0)));
    // Rotated, with records that nobody has read; then packed as well.
    append(&path, &records(400, 10));
    std::fs::rename(&path, folder.path().join("slow.log.1")).unwrap();
    append(&path, &records(410, 10));
    let third = go_on(&path);
    assert_eq!((third.0, third.1, third.2), (20, 420, sum(420)));
    append(&path, &records(420, 7));
    std::fs::rename(&path, folder.path().join("slow.log.2")).unwrap();
    let has_gzip =
        Command::new("gzip").arg(folder.path().join("slow.log.2")).status().is_ok_and(|status| status.success());
    if !has_gzip {
        eprintln!("there is no gzip: not packed");
    }
    append(&path, &records(427, 3));
    let fourth = go_on(&path);
    assert_eq!((fourth.0, fourth.1, fourth.2), (10, 430, sum(430)));
    // Begun anew under its name: all of it is new.
    File::create(&path).unwrap();
    append(&path, &records(430, 2));
    assert_eq!(go_on(&path).1, 432);
}

#[test]
fn a_rotated_set_is_read_by_time_in_whatever_order_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let part = |name: &str, from: u64| {
        let path = folder.path().join(name);
        append(&path, &records(from, 100));
        path
    };
    let set = [part("slow.log", 200), part("slow.log.1", 100), part("slow.log.2", 0)];
    let read = |paths: &[PathBuf]| -> (Vec<PathBuf>, String) {
        let outcome: Outcome = run(paths, &Options::default()).unwrap();
        let files = outcome.files.iter().map(|file| file.path.clone()).collect();
        (files, serde_json::to_string(&Report::from_outcome(&outcome, &Order::TotalTime, 0)).unwrap())
    };
    let (files, report) = read(&set);
    assert_eq!(files, [set[2].clone(), set[1].clone(), set[0].clone()]);
    assert_eq!(read(&[set[1].clone(), set[2].clone(), set[0].clone()]), (files, report.clone()));
    assert!(report.contains("\"calls\":300") && !report.contains("CaNaRy"));
}

#[test]
fn problems_are_said_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slow.log");
    let begin = records(0, 3_000);
    let bad = "# Time: 2025-11-03T11:00:00.000001Z\n# User@Host: app[app] @ h []\n# Query_time: slow  Lock_time: 0.0\nSET timestamp=1762167600;\nselect 1;\n";
    append(&path, &format!("{begin}{bad}{}", records(3_000, 3_000)));
    let line = begin.lines().count() + 1;
    for threads in [1, 3] {
        let outcome = run(std::slice::from_ref(&path), &Options { threads, ..Options::default() }).unwrap();
        let report = Report::from_outcome(&outcome, &Order::TotalTime, 0);
        assert_eq!(report.problems[0].places, [format!("{}:{line}", path.display())], "{threads} threads");
    }
}
