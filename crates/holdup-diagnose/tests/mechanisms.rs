//! Mechanisms as made-up series: a minute of normal time, half a minute of a fault, and normal time again. Each must be found
//! where it is, and named; the same table without the fault names nobody.

use holdup_diagnose::counters::{Ranking, judge};
use holdup_diagnose::trace::view::Normal;
use holdup_signals::time::counters::detect::{detect, healthy};
use holdup_signals::time::counters::jitter::Jitter;
use holdup_signals::time::counters::{Frame, Signal};

const FAULT: std::ops::Range<usize> = 60..90;

/// What a server with 64 sessions does in a second.
const USUAL: &[(Signal, f64)] = &[
    (Signal::CpuUser, 0.3),
    (Signal::CpuSystem, 0.05),
    (Signal::CpuIdle, 0.55),
    (Signal::CpuIowait, 0.1),
    (Signal::RunQueue, 2.0),
    (Signal::ServerCpu, 120.0),
    (Signal::DiskWriteBytes, 4e6),
    (Signal::ServerWriteBytes, 4e6),
    (Signal::NetReceivedBytes, 2e5),
    (Signal::NetSentBytes, 4e5),
    (Signal::FileHandles, 1000.0),
    (Signal::SessionsRunning, 64.0),
    (Signal::LockWaiting, 16.0),
    (Signal::Commits, 60.0),
    (Signal::RowsInserted, 500.0),
    (Signal::RowsChanged, 600.0),
    (Signal::RowsScanned, 2000.0),
    (Signal::RowsNext, 500.0),
    (Signal::LogBytes, 1.5e5),
    (Signal::PagesWritten, 120.0),
    (Signal::ServerReadBytes, 3e6),
    (Signal::PoolRequests, 12_000.0),
];

/// The table with some signals multiplied during the fault; every value moves by up to 5 %.
fn frame(fault: &[(Signal, f64)]) -> Frame {
    let mut frame = Frame::new(150, 1.0);
    for (place, (signal, usual)) in USUAL.iter().enumerate() {
        let factor = fault.iter().find(|(moved, _)| moved == signal).map_or(1.0, |(_, factor)| *factor);
        let value = |row: usize| {
            let noise = Jitter::new(7, 1.05).apply(&format!("{place}/{row}"), 1.0);
            usual * noise * if FAULT.contains(&row) { factor } else { 1.0 }
        };
        frame.set(*signal, (0..150).map(value).collect());
    }
    frame
}

fn judged(frame: &Frame) -> Ranking {
    let normal = frame.pick((0..150).filter(|row| !FAULT.contains(row)));
    judge(&frame.range(FAULT), &Normal::own(normal))
}

#[test]
fn each_mechanism_is_found_and_named() {
    use Signal::{
        Commits, CpuIdle, CpuIowait, CpuSystem, CpuUser, DiskWriteBytes, LogBytes, NetReceivedBytes, NetSentBytes,
        PagesWritten, PoolRequests, RowsChanged, RowsInserted, RowsScanned, RunQueue, ServerCpu, ServerReadBytes,
        ServerWriteBytes, SessionsRunning,
    };
    let cases: [(&str, &[(Signal, f64)]); 7] = [
        (
            "cpu_taken_by_others",
            &[(CpuSystem, 11.0), (CpuIdle, 0.04), (RunQueue, 5.0), (ServerCpu, 0.8), (CpuIowait, 0.1)],
        ),
        ("io_taken_by_others", &[(DiskWriteBytes, 8.0), (CpuIowait, 3.0), (CpuIdle, 0.6)]),
        (
            "network_delay",
            &[
                (NetReceivedBytes, 0.05),
                (NetSentBytes, 0.05),
                (Commits, 0.05),
                (ServerCpu, 0.05),
                (PagesWritten, 0.2),
                (PoolRequests, 0.05),
                (LogBytes, 0.05),
                (CpuUser, 0.05),
                (CpuIdle, 1.7),
                (RowsChanged, 0.05),
                (RowsInserted, 0.05),
                (RowsScanned, 0.05),
                (ServerReadBytes, 0.05),
                (ServerWriteBytes, 0.1),
                (DiskWriteBytes, 0.1),
            ],
        ),
        ("backup_read", &[(NetSentBytes, 20.0), (RowsScanned, 50.0), (ServerReadBytes, 8.0)]),
        ("bulk_load", &[(RowsInserted, 8.0), (RowsChanged, 8.0), (LogBytes, 8.0)]),
        ("missing_index", &[(RowsScanned, 100.0), (ServerCpu, 3.0), (CpuUser, 2.5), (Commits, 0.6)]),
        ("workload_spike", &[(SessionsRunning, 3.0), (Signal::LockWaiting, 3.0), (Commits, 1.1)]),
    ];
    for (cause, fault) in cases {
        let frame = frame(fault);
        let ranking = judged(&frame);
        assert_eq!(ranking.named().next().map(|suspect| suspect.pattern), Some(cause), "{:?}", ranking.first());
        let found = detect(&frame, Jitter::NONE);
        let first = found.first().unwrap_or_else(|| panic!("{cause}: nothing found"));
        assert!(first.start.abs_diff(FAULT.start) <= 3 && first.end.abs_diff(FAULT.end) <= 3, "{cause}: {found:?}");
        assert!(healthy(&frame, &found).iter().all(|row| !first.contains(row)));
    }
}

#[test]
fn a_quiet_time_has_no_culprit_and_missing_telemetry_is_not_judged() {
    let quiet = frame(&[]);
    assert_eq!(judged(&quiet).named().count(), 0);
    assert_eq!(detect(&quiet, Jitter::NONE), Vec::new());
    let unseen = frame(&[]).without(holdup_signals::time::counters::Family::Host);
    let suspect = judged(&unseen).suspects.into_iter().find(|suspect| suspect.pattern == "cpu_taken_by_others");
    assert_eq!(suspect.map(|suspect| suspect.score), Some(None));
}

/// A cache takes up most of what the server writes, or its volume is not among the disks: disks then write less than the
/// server, and whatever they write can be the server's.
#[test]
fn a_disk_that_writes_less_than_the_server_has_no_neighbour() {
    let fault =
        [(Signal::DiskWriteBytes, 8.0), (Signal::DiskWrites, 8.0), (Signal::CpuIowait, 3.0), (Signal::CpuIdle, 0.6)];
    let score = |of_server: f64| {
        let mut frame = frame(&fault);
        let grows = |row: usize, usual: f64| usual * if FAULT.contains(&row) { 8.0 } else { 1.0 };
        let series = |usual: f64| (0..150).map(|row| grows(row, usual)).collect();
        frame.set(Signal::DiskWriteBytes, series(of_server * 4e6));
        frame.set(Signal::DiskWrites, series(of_server * 120.0));
        let ranking = judged(&frame);
        ranking.suspects.iter().find(|suspect| suspect.pattern == "io_taken_by_others").unwrap().score.unwrap()
    };
    assert!(score(0.1) < 0.1, "0.8 of what the server wrote: {}", score(0.1));
    assert!(score(1.1) > 0.9, "{}", score(1.1));
}

/// The vote on `what` for `cause`.
fn strength(ranking: &Ranking, cause: &str, what: &str) -> f64 {
    let suspect = ranking.suspects.iter().find(|suspect| suspect.pattern == cause).unwrap();
    let vote = suspect.votes.iter().find(|vote| vote.what.starts_with(what)).unwrap_or_else(|| panic!("{what}"));
    vote.reading.as_ref().unwrap().strength
}

#[test]
fn figures_booked_late_belong_to_the_episode() {
    let behind = FAULT.end..FAULT.end + 20;
    let scanned = |row: usize| {
        let mut frame = frame(&[(Signal::RowsScanned, 100.0)]);
        let mut rows = frame.get(Signal::RowsScanned).unwrap().to_vec();
        rows[row] = 4e6;
        frame.set(Signal::RowsScanned, rows);
        let rest = (0..150).filter(|row| !FAULT.contains(row) && !behind.contains(row));
        let ranking = judge(&frame.range(behind.clone()), &Normal::own(frame.pick(rest)));
        ranking.suspects.iter().find(|suspect| suspect.pattern == "missing_index").unwrap().score.unwrap()
    };
    assert!(scanned(behind.start) < 0.1, "{}", scanned(behind.start));
    assert!(scanned(behind.start + 10) > scanned(behind.start) + 0.1, "{}", scanned(behind.start + 10));
}

#[test]
fn more_and_lighter_transactions_are_no_spike() {
    let more = [(Signal::SessionsRunning, 1.4), (Signal::Commits, 1.8)];
    let what = "there are more transactions, and lighter ones";
    let lighter = judged(&frame(&[&more[..], &[(Signal::PoolRequests, 1.1)]].concat()));
    assert!(strength(&lighter, "workload_spike", what) > 0.8);
    assert!(strength(&lighter, "many_small_commits", "a transaction is as heavy as before, or lighter") > 0.8);
    let alike = judged(&frame(&[&more[..], &[(Signal::PoolRequests, 1.8)]].concat()));
    assert!(strength(&alike, "workload_spike", what) < 0.1);
}

#[test]
fn sessions_that_pile_up_at_an_idle_server_are_no_spike() {
    let judged_by = |commits: f64| {
        let mut frame = frame(&[(Signal::Commits, commits), (Signal::PoolRequests, commits)]);
        let running = |row: usize| if FAULT.contains(&row) { 6.0 } else { 0.5 };
        frame.set(Signal::SessionsRunning, (0..150).map(running).collect());
        frame.set(Signal::LockWaiting, vec![0.0; 150]);
        let ranking = judged(&frame);
        ranking.suspects.iter().find(|suspect| suspect.pattern == "workload_spike").unwrap().score.unwrap()
    };
    // No more is done, so each takes longer; a server that was idle does more if it is asked for more.
    assert!(judged_by(1.02) < 0.1, "{}", judged_by(1.02));
    assert!(judged_by(3.0) > 0.5, "{}", judged_by(3.0));
}

#[test]
fn rows_in_bulk_weigh_more_whatever_else_changes_rows() {
    let judged = |received: f64| judged(&frame(&[(Signal::RowsInserted, 4.0), (Signal::NetReceivedBytes, received)]));
    assert!(strength(&judged(1.6), "bulk_load", "a transaction is heavier") > 0.9);
    // Rows that no client sends come out of other rows.
    assert!(strength(&judged(1.0), "bulk_load", "a transaction is heavier") < 0.1);
}
