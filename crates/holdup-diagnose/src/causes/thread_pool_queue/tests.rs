//! The queue is found by whichever account is left, less surely with each that is lost, and never by a guess.

use super::DEFINITION;
use crate::cause::Cause;
use crate::causes::Outcome;
use crate::testing::{Judged as _, SyntheticRecording};
use crate::verdict::Answer;
use holdup_recording::rows::Session;
use holdup_signals::app::accounts::testing::{ALL, Injected, NONE, ReportingSources, made};

const QUEUE: Injected = Injected { admission: 250.0, ..NONE };
const NO_TABLES: ReportingSources = ReportingSources { pool_tables: false, ..ALL };
const NO_WIRE: ReportingSources = ReportingSources { wire: (false, false), ..ALL };

fn doubt(made: &SyntheticRecording) -> Option<f64> {
    match made.judge(&DEFINITION) {
        Ok(Outcome::Found(found)) => Some(found.weights.iter().map(|w| 1.0 - w.chance()).product()),
        _ => None,
    }
}

#[test]
fn each_source_alone_finds_it_and_all_together_are_surest() {
    let all = made(QUEUE, ALL).gauge("host", "tcp_connections_unread", &[("port", "3306"), ("side", "server")], 10.0);
    let surest = doubt(&all).unwrap();
    let sockets = made(QUEUE, ReportingSources { spans: false, executions: false, ..NO_TABLES }).gauge(
        "host",
        "tcp_connections_unread",
        &[("port", "3306"), ("side", "server")],
        10.0,
    );
    let lesser = [
        ("no spans", made(QUEUE, ReportingSources { spans: false, ..ALL })),
        ("no performance_schema", made(QUEUE, ReportingSources { executions: false, ..ALL })),
        ("no pool tables", made(QUEUE, NO_TABLES)),
        ("no packets", made(QUEUE, NO_WIRE)),
        ("pool tables alone", made(QUEUE, ReportingSources { spans: false, executions: false, ..NO_WIRE })),
        (
            "packets and the server's timing",
            made(QUEUE, ReportingSources { spans: false, trace_in_statements: false, ..NO_TABLES }),
        ),
        ("sockets", sockets),
    ];
    for (what, made) in lesser {
        let doubt = doubt(&made).unwrap_or_else(|| panic!("not found: {what}"));
        assert!(doubt > surest, "{what}: {doubt}");
        let diagnosis = made.diagnose();
        assert_eq!(diagnosis.culprit, Some(Cause::ThreadPoolQueue), "{what}: {}", diagnosis.headline);
        let ms = diagnosis.findings[0].explains_ms;
        assert!((150.0..350.0).contains(&ms), "{what}: {ms}");
    }
}

/// Both accounts differ, and nothing tells whether it is the network: it is said to lie between them.
#[test]
fn app_against_server_alone_is_the_queue_only_if_the_network_is_known_to_be_short() {
    let told = ReportingSources { wire: (false, false), ..NO_TABLES };
    let between = made(QUEUE, told);
    let missing = between.judge(&DEFINITION).err().unwrap();
    assert!(missing.what.contains("network or in a queue") && missing.enable.contains("wire"), "{missing:?}");
    let diagnosis = between.diagnose();
    assert_eq!(diagnosis.verdict, Answer::Undecided);
    assert!(diagnosis.headline.contains("between"), "{}", diagnosis.headline);
    let short = between.gauge(
        "host",
        "tcp_round_trip_seconds",
        &[("port", "3306"), ("side", "client"), ("stat", "mean")],
        0.0003,
    );
    assert_eq!(short.diagnose().culprit, Some(Cause::ThreadPoolQueue));
}

#[test]
fn the_network_is_not_taken_for_the_queue() {
    let network = Injected { admission: 0.0, database_network: 250.0, ..QUEUE };
    for told in [ALL, NO_TABLES, ReportingSources { spans: false, ..NO_TABLES }] {
        assert_eq!(made(network, told).explains(&DEFINITION), Some(0.0), "{told:?}");
    }
}

#[test]
fn packets_alone_do_not_tell_queue_from_execution() {
    let alone = made(QUEUE, ReportingSources { spans: false, executions: false, ..NO_TABLES });
    assert_eq!(alone.explains(&DEFINITION), None);
    let headline = alone.diagnose().headline;
    assert!(headline.contains("between"), "{headline}");
}

#[test]
fn one_thread_per_connection_has_no_queue() {
    let mut other = made(QUEUE, ALL);
    other = other.tables(|t| t.settings.rows.iter_mut().for_each(|s| s.value = "one-thread-per-connection".into()));
    assert_eq!(other.explains(&DEFINITION), Some(0.0));
}

/// A fix moves a setting only the way that it says, and names the statement that holds the threads.
#[test]
fn settings_beyond_the_advice_are_kept() {
    let fixes = |size: &str, stall: &str| {
        let made = made(QUEUE, ALL).setting("mysql://db:3306", "thread_pool_size", size).setting(
            "mysql://db:3306",
            "thread_pool_stall_limit",
            stall,
        );
        let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
        found.fixes
    };
    let small = fixes("1", "500");
    let to = |at: usize, name: &str| -> Option<u32> {
        small[at]
            .command
            .as_deref()?
            .strip_prefix("SET GLOBAL ")?
            .strip_prefix(name)?
            .strip_prefix(" = ")?
            .strip_suffix(';')?
            .parse()
            .ok()
    };
    assert!(to(0, "thread_pool_stall_limit").is_some_and(|ms| (10..500).contains(&ms)), "{small:?}");
    assert!(to(1, "thread_pool_size").is_some_and(|groups| (2..=16).contains(&groups)), "{small:?}");
    let large = fixes("40", "6");
    assert!(large[..2].iter().all(|fix| fix.command.is_none() && fix.text.contains("already")), "{large:?}");
}

/// The fixes of a pool with these settings, and with this many threads and this many active ones in a group.
fn advised(most: &str, each: &str, threads: f64, active: f64) -> Vec<crate::change::Fix> {
    const DB: &str = "mysql://db:3306";
    let made = made(QUEUE, ALL)
        .setting(DB, "thread_pool_size", "4")
        .setting(DB, "thread_pool_stall_limit", "500")
        .setting(DB, "thread_pool_max_threads", most)
        .setting(DB, "thread_pool_oversubscribe", each)
        .gauge(DB, "mysql_thread_pool_threads", &[], threads)
        .gauge(DB, "mysql_thread_pool_group_active_threads", &[("group", "0")], active);
    let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
    found.fixes
}

#[test]
fn a_pool_that_may_start_no_thread_gets_more_of_them_first() {
    let moves = |fixes: &[crate::change::Fix], name: &str| {
        let set = format!("SET GLOBAL {name} = ");
        fixes.iter().position(|fix| fix.command.as_deref().is_some_and(|command| command.starts_with(&set)))
    };
    let full = advised("12", "3", 12.0, 4.0);
    assert_eq!(moves(&full, "thread_pool_max_threads"), Some(0), "{full:?}");
    assert!(full[0].text.contains("all 12 threads") && moves(&full, "thread_pool_stall_limit").is_none(), "{full:?}");
    // With threads left, a stalled group gets one by the stall limit, and by oversubscription where that is used up.
    let left = advised("65536", "3", 12.0, 4.0);
    assert!(moves(&left, "thread_pool_max_threads").is_none() && moves(&left, "thread_pool_stall_limit") == Some(0));
    assert!(moves(&left, "thread_pool_oversubscribe").is_some(), "{left:?}");
    let idle = advised("65536", "3", 12.0, 1.0);
    assert!(moves(&idle, "thread_pool_oversubscribe").is_none(), "{idle:?}");
}

#[test]
fn the_heaviest_statements_are_named_with_where_they_can_go() {
    let reads = "SELECT COUNT(*) FROM note WHERE body LIKE ?";
    let locks = "SELECT id FROM note WHERE id = ? FOR UPDATE";
    let writes = "UPDATE note SET body = ? WHERE id = ?";
    let made = beside_scans("report")
        .digest(reads, |s| (10 * s, 600 * s, 0, 10 * s, 0))
        .digest(locks, |s| (10 * s, 200 * s, 0, 10 * s, 0))
        .digest(writes, |s| (10 * s, 190 * s, 0, 10 * s, 0))
        .digest("SELECT 1", |s| (10 * s, 10 * s, 0, 10 * s, 0));
    let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("{:?}", made.explains(&DEFINITION)) };
    let last = found.fixes.last().unwrap();
    for part in [
        format!("{reads} (60 % of the time; it only reads: a replica)"),
        format!("{locks} (20 % of the time; it writes: another database)"),
        format!("{writes} (19 % of the time; it writes: another database)"),
    ] {
        assert!(last.text.contains(&part), "{}", last.text);
    }
    assert!(!last.text.contains("SELECT 1 "), "{}", last.text);
    assert_eq!(last.command.as_deref(), Some("holdup advise SLOW_LOG --on mysql://db"), "{last:?}");
}

/// 50 requests a second that are slow from 10 s on, when `user` scans. 20 statements are unread then and 8 of them in the queue: six
/// sessions of the app, two of `user`. All executions together take as long as scans do.
fn beside_scans(user: &str) -> SyntheticRecording {
    const DB: &str = "mysql://db:3306";
    let since = |value: f64| move |s: i64| if s < 10 { 0.0 } else { value };
    let session = |s: i64, id: i64, user: &str, state: &str| Session {
        observed_at: s * 1_000_000_000,
        source: DB.into(),
        session_id: id,
        user: Some(user.into()),
        command: if state == "queued" { "Sleep" } else { "Query" }.into(),
        true_state: state.into(),
        digest_text: (state == "executing").then(|| "SELECT COUNT(*) FROM note".into()),
        ..Session::default()
    };
    let rows = (0..20).flat_map(|s| {
        let app = (0..6).map(move |id| session(s, id, "shop", if s < 10 { "idle" } else { "queued" }));
        let states = if s < 10 { &[][..] } else { &["queued", "queued", "executing", "executing"] };
        let scans: Vec<Session> = (10..).zip(states).map(|(id, state)| session(s, id, user, state)).collect();
        app.chain(scans)
    });
    SyntheticRecording::new(20)
        .requests(50, 400)
        .each_request(|n, r| {
            if n < 500 {
                r.done_at = r.intended_at + 5_000_000;
            }
        })
        .setting(DB, "thread_handling", "pool-of-threads")
        .session_rows(rows.collect())
        .gauge(DB, "mysql_sessions", &[("true_state", "idle")], 6.0)
        .counter(DB, "mysql_global_status_questions", &[], 1_000.0)
        .counted(DB, "mysql_thread_pool_queue_length", &[], since(8.0))
        .counted("host", "tcp_connections_unread", &[("port", "3306"), ("side", "server")], since(20.0))
}

#[test]
fn own_statements_wait_behind_those_of_others() {
    // Three quarters of 20, at 50 a second.
    let own = beside_scans("report").explains(&DEFINITION).expect("judged");
    assert!((own - 300.0).abs() < 40.0, "{own}");
    // Under the app's account nothing tells whose they are: 20 of 1,000 statements a second.
    assert_eq!(beside_scans("shop").explains(&DEFINITION), Some(0.0));
}
