//! Waits that were put in at a known place are found again in their own row, whoever tells of them.

use super::request;
use crate::ledger::LedgerRow;
use crate::testing::Judged as _;
use holdup_signals::app::accounts::testing::{self, ALL, Injected, NONE, ReportingSources, made};

fn all(rows: &[LedgerRow]) -> &LedgerRow {
    rows.iter().find(|r| r.band == "all").unwrap()
}

fn part(row: &LedgerRow, name: &str) -> f64 {
    row.parts.iter().find(|p| p.part == name).map_or(0.0, |p| p.ms)
}

/// Within 5 % or 2 ms of what was injected and what the part takes anyway.
fn close(ms: f64, injected: f64, anyway: f64) -> bool {
    (ms - injected - anyway).abs() <= (injected * 0.05).max(2.0)
}

/// Part, what it takes anyway, and what was injected there.
fn expected(injected: &Injected) -> [(&'static str, f64, f64); 8] {
    [
        ("connection_pool_wait", 0.1, injected.pool),
        ("downstream", 2.0, injected.downstream),
        ("database_network", 0.1, injected.database_network),
        ("database_admission_queue", 0.0, injected.admission),
        ("database_lock_wait", 0.0, injected.lock),
        ("database_execution", 1.0, injected.execution),
        ("network", 0.4, injected.network),
        ("app_other", 1.0, injected.app),
    ]
}

fn assert_recovered(injected: Injected, told: ReportingSources) {
    let diagnosis = made(injected, told).diagnose();
    let row = all(&diagnosis.ledger);
    for (name, anyway, ms) in expected(&injected) {
        assert!(close(part(row, name), ms, anyway), "{name}: {} of {ms} ms, {row:#?}", part(row, name));
    }
    assert!(row.residual_ms.abs() < 1.0, "{row:#?}");
    let accounts = diagnosis.accounts.unwrap();
    assert_eq!(accounts.joined, accounts.requests, "{}", accounts.text);
    assert!(accounts.requests > 400 && accounts.assigned_ratio > 0.98, "{}", accounts.text);
}

const EACH: [Injected; 8] = {
    [
        Injected { pool: 50.0, ..NONE },
        Injected { downstream: 60.0, ..NONE },
        Injected { database_network: 20.0, ..NONE },
        Injected { admission: 120.0, ..NONE },
        Injected { lock: 80.0, ..NONE },
        Injected { execution: 30.0, ..NONE },
        Injected { network: 20.0, ..NONE },
        Injected { app: 25.0, ..NONE },
    ]
};

#[test]
fn each_injected_wait_is_recovered_in_its_own_row() {
    for injected in EACH {
        assert_recovered(injected, ALL);
    }
}

#[test]
fn all_waits_at_once_are_recovered() {
    let injected = Injected {
        pool: 50.0,
        downstream: 60.0,
        database_network: 20.0,
        admission: 120.0,
        lock: 80.0,
        execution: 0.0,
        network: 20.0,
        app: 25.0,
        calls: 3,
    };
    let diagnosis = made(injected, ALL).diagnose();
    let row = all(&diagnosis.ledger);
    for (name, anyway, ms) in expected(&injected) {
        let anyway = match name {
            // Three further calls.
            "database_execution" => 1.0 + 3.0 * 1.9,
            "database_network" => 0.4,
            _ => anyway,
        };
        assert!(close(part(row, name), ms, anyway), "{name}: {} of {ms} ms, {row:#?}", part(row, name));
    }
    assert!(row.residual_ms.abs() < 1.0, "{row:#?}");
    assert!(diagnosis.accounts.unwrap().examples[0].calls == 4);
}

/// Without packets what lies between both accounts is the queue's where a queue was seen, and nobody's where none was.
#[test]
fn without_packets_the_gap_is_a_queue_only_if_one_was_seen() {
    let injected = Injected { admission: 120.0, ..Injected::default() };
    let told = ReportingSources { wire: (false, false), ..ALL };
    assert_recovered(injected, told);
    let diagnosis = made(injected, ReportingSources { pool_tables: false, ..told }).diagnose();
    let row = all(&diagnosis.ledger);
    assert_eq!(part(row, "database_admission_queue"), 0.0);
    assert!(close(row.residual_ms, 120.0, 0.0), "{row:#?}");
    let accounts = diagnosis.accounts.unwrap();
    assert!(accounts.joined == accounts.requests && accounts.assigned_ratio < 0.2, "{}", accounts.text);
}

/// Packets alone split a call into network and what the server's machine had it, and no further.
#[test]
fn without_the_servers_timing_queue_and_execution_are_one() {
    let injected = Injected { admission: 120.0, database_network: 20.0, ..Injected::default() };
    let diagnosis = made(injected, ReportingSources { executions: false, ..ALL }).diagnose();
    let row = all(&diagnosis.ledger);
    assert!(close(part(row, "database"), 121.0, 0.0) && close(part(row, "database_network"), 20.0, 0.1), "{row:#?}");
    assert!(diagnosis.accounts.unwrap().assigned_ratio < 0.5);
}

/// The app's clock is a minute off, and the packets' two: durations stay what they were.
#[test]
fn clocks_that_are_off_change_no_part() {
    let injected = Injected { admission: 120.0, pool: 50.0, ..Injected::default() };
    let off = made(injected, ALL).tables(|tables| {
        tables.spans.rows.iter_mut().for_each(|s| s.started_at += 60_000_000_000);
        tables.statements.rows.iter_mut().for_each(|s| s.observed_at += 100_000_000);
    });
    let (on, off) = (made(injected, ALL).diagnose(), off.diagnose());
    assert_eq!(all(&on.ledger), all(&off.ledger));
    let waits = |d: &crate::Diagnosis| d.accounts.as_ref().unwrap().examples[0].waits.clone();
    assert!(waits(&off)[0].from_ms.unwrap() < 60.0, "{:?}", waits(&off));
}

#[test]
fn nothing_is_reported_where_nothing_can_be_followed() {
    let injected = Injected { admission: 120.0, ..Injected::default() };
    let told = ReportingSources { spans: false, wire: (false, false), trace_in_statements: false, ..ALL };
    assert_eq!(made(injected, told).diagnose().accounts, None);
}

/// Of traces that were kept for being slow the slow requests' rows are exact, and the others are not taken for them.
#[test]
fn a_tail_sample_is_not_the_whole() {
    let injected = Injected { downstream: 60.0, ..Injected::default() };
    let tail = made(injected, ALL).tables(|tables| {
        let rows = &mut tables.requests.rows;
        // Every tenth is slow, of all of them.
        let fast: Vec<String> =
            (0..rows.len()).filter(|i| i % 10 != 0).filter_map(|i| rows[i].trace_id.clone()).collect();
        for row in rows.iter_mut().filter(|r| fast.contains(r.trace_id.as_ref().unwrap())) {
            row.done_at = row.intended_at + 5_000_000;
        }
        tables.spans.rows.retain(|s| !fast.contains(&s.trace_id));
    });
    let accounts = tail.diagnose().accounts.unwrap();
    assert!(accounts.sampling.as_ref().is_some_and(|s| s.contains("tail sampling kept the slow ones")), "{accounts:?}");
    let head = made(injected, ALL).tables(|tables| {
        let kept = |trace: &str| i64::from_str_radix(&trace[24..], 16).unwrap() % 4 == 0;
        tables.spans.rows.retain(|s| kept(&s.trace_id));
    });
    let accounts = head.diagnose().accounts.unwrap();
    assert!(accounts.sampling.is_some_and(|s| s.contains("25 %")), "{}", accounts.text);
}

#[test]
fn counts_and_waits_agree_by_littles_law() {
    let injected = Injected { admission: 250.0, ..Injected::default() };
    let checks = made(injected, ALL).diagnose().accounts.unwrap().checks;
    assert!(checks.len() == 1 && checks[0].agrees, "{checks:?}");
    let fewer = made(injected, ALL).tables(|tables| {
        let queue = |s: &&mut holdup_recording::rows::Sample| s.metric == "mysql_thread_pool_queue_length";
        tables.samples.rows.iter_mut().filter(queue).for_each(|s| s.value = (s.value / 9.0).min(1.0));
    });
    let checks = fewer.diagnose().accounts.unwrap().checks;
    assert!(!checks[0].agrees && checks[0].text.contains("not spent there"), "{checks:?}");
}

#[test]
fn one_request_is_found_by_its_trace() {
    let made = made(Injected { pool: 50.0, ..Injected::default() }, ALL);
    let found = |id: &str| made.with(|case| request(case, id));
    let one = found(&testing::trace(700)).unwrap();
    assert!(one.joined && one.unexplained_ms.abs() < 0.1, "{one:?}");
    assert_eq!(one.waits.iter().map(|w| w.resource.as_str()).collect::<Vec<_>>(), ["pool", "http", "database"]);
    assert!(found("nobody's").is_none() && found(&testing::trace(100_000)).is_none());
}

#[test]
fn a_proxys_queue_is_taken_out_of_what_is_in_front_of_the_app() {
    let row = |injected: Injected, queued: f64| {
        let made = made(injected, ALL).counted(
            "haproxy:/run/h.sock",
            "haproxy_queued_requests",
            &[("backend", "app")],
            |second| if second >= testing::BASELINE_S { queued } else { 0.0 },
        );
        all(&made.diagnose().ledger).clone()
    };
    let (without, with) = (row(NETWORK, 0.0), row(NETWORK, 1.5));
    // Three are with the service whenever it is sampled.
    let queued = part(&with, "proxy_queue");
    assert!(close(queued, with.response_ms / 2.0, 0.0), "{with:#?}");
    assert!((part(&with, "network") + queued - part(&without, "network")).abs() < 0.01, "{with:#?}");
    assert!((with.residual_ms - without.residual_ms).abs() < 0.01, "{with:#?}");
    // A queue of requests that the app has already is not in front of it.
    let longer = row(Injected { execution: 60.0, ..NONE }, 3.0);
    assert!(part(&longer, "proxy_queue") < 1.0 && part(&longer, "network") < 0.01, "{longer:#?}");
}

const NETWORK: Injected = Injected { network: 60.0, ..NONE };
