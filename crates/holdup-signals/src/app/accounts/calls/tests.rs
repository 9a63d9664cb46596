//! The join of a server's timing, packets and sessions.

use holdup_recording::manifest::{Host, Manifest};
use holdup_recording::tables::Tables;

use super::*;

const MS: i64 = 1_000_000;

fn recording(tables: Tables) -> Recording {
    let manifest = Manifest::starting("made", 0, Host::default());
    Recording { dir: Default::default(), manifest, tables, latencies: Vec::new(), search: None, excerpt: None }
}

fn exchange(side: &str, client: &str, from_ms: i64, to_ms: i64) -> Exchange {
    Exchange {
        side: side.into(),
        client: client.into(),
        kind: "query".into(),
        request_at: from_ms * MS,
        request_end_at: from_ms * MS,
        first_byte_at: Some(to_ms * MS),
        done_at: to_ms * MS,
        outcome: "ok".into(),
        ..Exchange::default()
    }
}

fn execution(session: i64, end_ms: i64, ms: i64) -> Statement {
    Statement {
        observed_at: end_ms * MS,
        kind: "execution".into(),
        session_id: Some(session),
        duration_ns: ms * MS,
        calls: 1,
        ..Statement::default()
    }
}

#[test]
fn packets_find_the_servers_timing_by_address_and_time() {
    let mut tables = Tables::default();
    tables.exchanges.rows =
        vec![exchange("server", "10.0.0.1:5000", 100, 600), exchange("server", "10.0.0.1:5000", 700, 710)];
    let session = |at_ms: i64, id| Session {
        observed_at: at_ms * MS,
        session_id: id,
        client: Some("10.0.0.1:5000".into()),
        ..Session::default()
    };
    // The port was another session's long ago.
    tables.sessions.rows = vec![session(-90_000, 3), session(500, 7)];
    tables.statements.rows =
        vec![execution(7, 601, 2), execution(7, 709, 4), execution(3, 600, 5), execution(7, 3000, 1)];
    let recording = recording(tables);
    let calls = Calls::new(&recording);
    let joined: Vec<(f64, f64)> =
        calls.all().iter().filter_map(|c| Some((c.served_ms()?, c.execution_ms()?))).collect();
    assert_eq!(joined, [(500.0, 2.0), (10.0, 4.0)]);
    assert_eq!(calls.all().len(), 4, "what has no packets is a call, too");
}

#[test]
fn an_execution_lends_its_trace_to_packets_that_hide_theirs() {
    let trace = "0000000000000000000000000000002a";
    let mut tables = Tables::default();
    let opaque = Exchange { kind: "opaque".into(), session_id: Some(7), ..exchange("server", "a:1", 100, 600) };
    tables.exchanges.rows = vec![opaque];
    tables.statements.rows = vec![Statement { trace_id: Some(trace.into()), ..execution(7, 600, 2) }];
    let recording = recording(tables);
    let calls = Calls::new(&recording);
    let mine = calls.of_trace(42);
    assert_eq!((mine.len(), mine[0].served_ms()), (1, Some(500.0)));
    assert!(calls.of_trace(41).is_empty());
}

#[test]
fn both_sightings_of_a_packet_are_one_call() {
    let mut tables = Tables::default();
    tables.exchanges.rows = vec![
        exchange("server", "a:1", 120, 130),
        exchange("client", "a:1", 100, 150),
        exchange("client", "b:1", 100, 150),
    ];
    let recording = recording(tables);
    let calls = Calls::new(&recording);
    let both: Vec<_> = calls.all().iter().filter(|c| c.server.is_some()).collect();
    assert_eq!(both.iter().map(|c| (c.called_ms(), c.served_ms())).collect::<Vec<_>>(), [(Some(50.0), Some(10.0))]);
    assert_eq!(calls.all().len(), 2);
}

#[test]
fn incomplete_exchanges_are_not_used() {
    let mut tables = Tables::default();
    let lost = Exchange { outcome: "lost".into(), ..exchange("server", "a:1", 100, 600) };
    let login = Exchange { kind: "login".into(), ..exchange("server", "a:1", 0, 90) };
    tables.exchanges.rows = vec![lost, login];
    assert!(Calls::new(&recording(tables)).all().is_empty());
}

/// Three requests sent at once, answered one after another: the first waits 40 ms to be taken up, each is executed for 10 ms.
fn pipeline() -> Tables {
    let mut tables = Tables::default();
    let answered = [(0, 150), (1, 160), (2, 170)];
    let row =
        |side: &str, n: i64, done: i64| Exchange { ahead: n, session_id: Some(7), ..exchange(side, "a:1", 100, done) };
    tables.exchanges.rows = answered.iter().map(|(n, done)| row("server", *n, *done)).collect();
    tables.exchanges.rows.extend(answered.iter().map(|(n, done)| row("client", *n, *done)));
    tables.statements.rows = answered.iter().map(|(_, done)| execution(7, *done, 10)).collect();
    tables
}

#[test]
fn requests_of_a_pipeline_wait_for_those_in_front_and_in_no_queue() {
    let whole = recording(pipeline());
    let calls = Calls::new(&whole);
    let mut seen: Vec<_> =
        calls.all().iter().map(|c| (c.called_ms(), c.served_ms(), c.before_execution_ms())).collect();
    seen.sort_by(|a, b| b.partial_cmp(a).unwrap());
    let second = (Some(10.0), Some(10.0), Some(0.0));
    assert_eq!(seen, [(Some(50.0), Some(50.0), Some(40.0)), second, second]);

    // The first is not there, as if it had been left out: how long the second waited for it nobody knows.
    let mut tables = pipeline();
    tables.exchanges.rows.retain(|row| row.ahead > 0);
    let cut = recording(tables);
    let calls = Calls::new(&cut);
    let waits: Vec<_> = calls.all().iter().filter(|c| c.server.is_some()).map(Call::before_execution_ms).collect();
    assert_eq!(waits.iter().filter(|wait| wait.is_none()).count(), 1, "{waits:?}");
    assert!(waits.contains(&Some(0.0)), "{waits:?}");
}

#[test]
fn the_wait_for_execution_is_what_neither_rows_nor_a_slow_client_make() {
    let wait = |first_byte_ms: i64, done_ms: i64, executed_ms: i64| {
        let mut tables = Tables::default();
        let sent = exchange("server", "a:1", 0, done_ms);
        let first_byte_at = Some(first_byte_ms * MS);
        tables.exchanges.rows = vec![Exchange { first_byte_at, session_id: Some(7), ..sent }];
        tables.statements.rows = vec![execution(7, done_ms, executed_ms)];
        Calls::new(&recording(tables)).all()[0].before_execution_ms()
    };
    assert_eq!(wait(101, 600, 500), Some(100.0), "a large result: it is executed while rows are sent");
    assert_eq!(wait(5, 600, 3), Some(5.0), "a slow client: no wait is over later than the response begins");
    assert_eq!(wait(5, 6, 7), Some(0.0), "rounding");
}

#[test]
fn an_old_text_lends_no_trace_to_later_executions() {
    let trace = || Some("0000000000000000000000000000002a".to_owned());
    let run = |trace_id, from| Exchange {
        kind: "execute".into(),
        trace_id,
        session_id: Some(7),
        ..exchange("server", "a:1", from, from + 10)
    };
    let mut tables = Tables::default();
    tables.exchanges.rows = vec![run(trace(), 100), run(None, 5000)];
    // The server shows the text as it was prepared for both.
    tables.statements.rows = [109, 5009].map(|end| Statement { trace_id: trace(), ..execution(7, end, 2) }).to_vec();
    let recording = recording(tables);
    let calls = Calls::new(&recording);
    assert!(calls.all().iter().all(|c| c.execution_ms() == Some(2.0)), "both are joined by connection and time");
    assert_eq!(calls.of_trace(42).iter().map(|c| c.started_at()).collect::<Vec<_>>(), [100 * MS]);
}

#[test]
fn exchanges_of_an_unknown_side_are_not_used() {
    let mut tables = Tables::default();
    tables.exchanges.rows = vec![exchange("unknown", "a:1", 100, 600)];
    assert!(Calls::new(&recording(tables)).all().is_empty());
}
