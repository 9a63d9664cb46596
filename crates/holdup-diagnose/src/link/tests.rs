//! Links of findings, by themselves and of whole recordings.

use super::*;
use crate::causes::Edge;
use crate::testing::{Judged as _, SyntheticRecording};
use holdup_recording::rows::Session;

/// 50 requests of 400 ms a second: session 7 is in `state` and holds what 18 others wait for; a flush takes 15 ms.
fn locked(true_state: &str, state: &str) -> SyntheticRecording {
    let row = |second: i64, id: i64| Session {
        observed_at: second * 1_000_000_000,
        source: "mysql://db".into(),
        session_id: id,
        true_state: if id == 7 { true_state } else { "lock_wait" }.into(),
        state: (id == 7).then(|| state.into()),
        blocked_by: (id != 7).then_some(7),
        ..Session::default()
    };
    let disk = [("device", "vda")];
    SyntheticRecording::new(12)
        .requests(50, 400)
        .session_rows((0..=12).flat_map(|s| (0..18).map(move |i| row(s, 100 + i)).chain([row(s, 7)])).collect())
        // Two more commit at any time, so that commits are a tenth of the delay by themselves.
        .session_rows(
            (0..=12)
                .flat_map(|s| {
                    (0..2).map(move |i| Session {
                        session_id: 200 + i,
                        true_state: "executing".into(),
                        state: Some("Commit".into()),
                        blocked_by: None,
                        ..row(s, 7)
                    })
                })
                .collect(),
        )
        .setting("mysql://db", "innodb_flush_log_at_trx_commit", "1")
        .disk("vda", (0.0, 0.0, 0.0), (20.0, 4096.0, 1.0))
        .counter("host", "system_disk_flushes_total", &disk, 60.0)
        .counter("host", "system_disk_flush_time_seconds_total", &disk, 0.9)
}

#[test]
fn waits_for_a_lock_follow_from_what_its_holder_waits_for() {
    let diagnosis = locked("executing", "Commit").diagnose();
    assert_eq!(diagnosis.culprit, Some(Cause::CommitLogBound), "{:#?}", diagnosis.findings);
    let locks = diagnosis.findings.iter().find(|f| f.cause == Cause::LockContention).unwrap();
    assert_eq!(locks.follows_from, Some(Cause::CommitLogBound));
    // A holder that does nothing is the app's own doing.
    assert_eq!(locked("idle", "").diagnose().culprit, Some(Cause::LockContention));
}

fn found(cause: Cause, explains_ms: f64) -> Linked {
    Linked::new(cause, explains_ms, Role::Root)
}

/// 400 ms to explain; each edge of `found` asks for half of what its finding explains.
fn circumstances(found: &[Linked]) -> Circumstances {
    let edges = found.iter().flat_map(|finding| {
        let edges = finding.cause.definition().follows_from.iter();
        edges.map(|edge| ActiveEdge { consequence: finding.cause, edge, needed: Needed::Own(1.0) })
    });
    Circumstances {
        excess_ms: 400.0,
        client_queue_ms: 0.0,
        edges: edges.collect(),
        began: Vec::new(),
        tips: Vec::new(),
        came_down: false,
        got_slow: false,
        not_judged: Vec::new(),
    }
}

fn linked(found: &[Linked], change: impl FnOnce(&mut Circumstances)) -> BTreeMap<Cause, Linked> {
    let mut of = circumstances(found);
    change(&mut of);
    link(found.to_vec(), &of).into_iter().map(|finding| (finding.cause, finding)).collect()
}

#[test]
fn a_disk_explains_what_all_in_line_behind_its_writer_wait() {
    let explained = |consequence: Cause| {
        let all = linked(&[found(Cause::ThroughputCeiling, 80.0), found(consequence, 120.0)], |_| {});
        assert_eq!(all[&consequence].follows_from, Some(Cause::ThroughputCeiling), "{consequence}");
        all[&Cause::ThroughputCeiling].explains_ms
    };
    assert!((explained(Cause::CommitLogBound) - 120.0).abs() < 1e-9);
    // The same time, but no line: what the disk does not explain may have another cause.
    assert!((explained(Cause::DiskSaturated) - 80.0).abs() < 1e-9);
}

#[test]
fn a_contributor_that_began_is_what_changed() {
    let all = [found(Cause::ThroughputCeiling, 100.0), found(Cause::ToastRewrite, 100.0)];
    let root = |change: fn(&mut Circumstances)| linked(&all, change)[&Cause::ThroughputCeiling].follows_from;
    assert_eq!(root(|of| of.began = vec![Cause::ToastRewrite]), Some(Cause::ToastRewrite));
    assert_eq!(root(|of| of.tips = vec![Cause::ToastRewrite]), Some(Cause::ToastRewrite));
    assert_eq!(root(|_| {}), None, "it was there before");
    let small = [found(Cause::ThroughputCeiling, 300.0), found(Cause::ToastRewrite, 100.0)];
    let small = linked(&small, |of| of.began = vec![Cause::ToastRewrite]);
    assert_eq!(small[&Cause::ThroughputCeiling].follows_from, None, "it is a small part");
    assert_eq!(small[&Cause::ToastRewrite].adds_to, Some(Cause::ThroughputCeiling));
}

#[test]
fn queues_follow_from_what_a_grown_statement_makes_the_server_do() {
    // Any cause may lead to a pool that runs dry.
    let behind_the_pool = |rewritten_ms: f64| {
        let all = [
            found(Cause::StatementMixChanged, 61.0),
            found(Cause::ToastRewrite, rewritten_ms),
            found(Cause::ConnectionPoolExhausted, 38.0),
        ];
        linked(&all, |_| {})[&Cause::ConnectionPoolExhausted].follows_from
    };
    assert_eq!(behind_the_pool(48.0), Some(Cause::ToastRewrite));
    // Its known work is a small part of its cost.
    assert_eq!(behind_the_pool(10.0), Some(Cause::StatementMixChanged));
}

#[test]
fn waits_for_a_cpu_and_for_a_disk_add_up() {
    let sum = |disk_ms: f64| {
        let all = [
            found(Cause::BackupOrBulkLoad, 40.0),
            found(Cause::CpuSaturated, 40.0),
            found(Cause::ThroughputCeiling, disk_ms),
        ];
        linked(&all, |_| {})[&Cause::BackupOrBulkLoad].explains_ms
    };
    assert!((sum(35.0) - 75.0).abs() < 1e-9);
    assert!((sum(200.0) - 40.0).abs() < 1e-9, "another fills the disk");
}

#[test]
fn a_limit_that_came_down_does_not_follow_from_an_unchanged_demand() {
    let all = [found(Cause::ReadaheadTooLarge, 300.0), found(Cause::ThroughputCeiling, 300.0)];
    assert_eq!(linked(&all, |_| {})[&Cause::ThroughputCeiling].follows_from, Some(Cause::ReadaheadTooLarge));
    let lowered = linked(&all, |of| of.came_down = true);
    assert_eq!(lowered[&Cause::ThroughputCeiling].role, Role::Root);
    assert_eq!(lowered[&Cause::ReadaheadTooLarge].adds_to, Some(Cause::ThroughputCeiling));
}

#[test]
fn a_disk_that_got_slow_does_not_follow_from_a_size_that_did_not_change() {
    let all = [found(Cause::WorkingSetExceedsMemory, 300.0), found(Cause::DiskSaturated, 300.0)];
    assert_eq!(linked(&all, |_| {})[&Cause::DiskSaturated].follows_from, Some(Cause::WorkingSetExceedsMemory));
    let slow = linked(&all, |of| of.got_slow = true);
    assert_eq!(slow[&Cause::DiskSaturated].role, Role::Root);
    assert_eq!(slow[&Cause::WorkingSetExceedsMemory].adds_to, Some(Cause::DiskSaturated));
}

#[test]
fn a_working_set_that_a_backup_pushes_out_follows_from_it() {
    let with = |backup_ms: f64| {
        let all = [found(Cause::BackupOrBulkLoad, backup_ms), found(Cause::WorkingSetExceedsMemory, 300.0)];
        let halved = |of: &mut Circumstances| of.edges.iter_mut().for_each(|edge| edge.needed = Needed::Own(0.5));
        linked(&all, halved)[&Cause::WorkingSetExceedsMemory].follows_from
    };
    assert_eq!(with(120.0), Some(Cause::BackupOrBulkLoad), "what it pushes out is read again beside it");
    assert_eq!(with(50.0), None, "it is a small part of what is read");
}

#[test]
fn a_limit_follows_from_the_end_of_a_burst_where_that_is_what_changed() {
    let all = [found(Cause::BurstExhausted, 300.0), found(Cause::IopsCeiling, 300.0)];
    let ended = linked(&all, |of| of.came_down = true);
    assert_eq!(ended[&Cause::IopsCeiling].follows_from, Some(Cause::BurstExhausted));
    // More is demanded: the limit would be reached without a burst as well.
    let is_of_burst = |edge: &ActiveEdge| edge.edge.causes() == [Cause::BurstExhausted];
    let grown = linked(&all, |of| of.edges.retain(|edge| !is_of_burst(edge)));
    assert_eq!(grown[&Cause::IopsCeiling].follows_from, None);
    assert_eq!(grown[&Cause::BurstExhausted].adds_to, Some(Cause::IopsCeiling));
}

#[test]
fn packets_that_a_full_queue_dropped_lead_to_nothing_behind_it() {
    let all = [found(Cause::NetworkLoss, 300.0), found(Cause::ConnectionPoolExhausted, 200.0)];
    assert_eq!(linked(&all, |_| {})[&Cause::ConnectionPoolExhausted].follows_from, Some(Cause::NetworkLoss));
    let all = [&all[..], &[found(Cause::AcceptQueueOverflow, 300.0)]].concat();
    let all = linked(&all, |_| {});
    assert_eq!(all[&Cause::ConnectionPoolExhausted].follows_from, None);
    assert_eq!(all[&Cause::NetworkLoss].follows_from, Some(Cause::AcceptQueueOverflow));
}

/// Draws findings, and links them in several orders.
#[test]
fn the_order_of_findings_changes_nothing() {
    let mut seed = 7_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for _ in 0..500 {
        let mut all: Vec<Linked> = Vec::new();
        for _ in 0..2 + random(10) {
            let cause = Cause::ALL[random(Cause::ALL.len())];
            if all.iter().all(|finding| finding.cause != cause) {
                all.push(found(cause, [40.0, 100.0, 250.0, 400.0][random(4)]));
            }
        }
        let first = link(all.clone(), &circumstances(&all));
        for _ in 0..4 {
            let (a, b) = (random(all.len()), random(all.len()));
            all.swap(a, b);
            assert_eq!(link(all.clone(), &circumstances(&all)), first, "{all:?}");
        }
        for finding in &first {
            assert!(finding.explains_ms <= 400.0 && finding.follows_from != Some(finding.cause), "{first:?}");
        }
    }
}

/// Whether a chain of edges leads from each cause back to itself: only lost packets may, which lead to
/// nothing where a full queue lost them.
#[test]
fn edges_make_no_circle() {
    let named = |cause: Cause| -> Vec<Cause> {
        let edges = cause.definition().follows_from.iter();
        let any = edges.clone().flat_map(|edge| edge.from).copied().flatten().any(|of| *of == Source::AnyBehindApp);
        let behind = Cause::ALL.iter().copied().filter(|of| any && Source::AnyBehindApp.has(*of) && *of != cause);
        edges.flat_map(Edge::causes).chain(behind).filter(|of| *of != Cause::NetworkLoss).collect()
    };
    for start in Cause::ALL.iter().copied() {
        let mut reached = vec![start];
        let mut at = 0;
        while at < reached.len() {
            for cause in named(reached[at]) {
                assert_ne!(cause, start, "{start} follows from itself, by {}", reached[at]);
                if !reached.contains(&cause) {
                    reached.push(cause);
                }
            }
            at += 1;
        }
    }
}
