//! Services that are as they are from the first second on: dear ones, and those whose time their work
//! needs.

use holdup_recording::rows::Session;

use crate::cause::Cause;
use crate::testing::{Judged as _, SyntheticRecording};
use crate::verdict::Answer;

const SOURCE: &str = "postgresql://db:5432";
const BY_CUSTOMER: &str = "SELECT id, total FROM orders WHERE customer_id = ? ORDER BY id DESC LIMIT ?";
const LINES: &str = "SELECT id, sku FROM lines WHERE order_id = ?";
const SECONDS: i64 = 20;
const RATE: i64 = 50;

/// 50 requests a second of 30 ms without an objective, with a PostgreSQL beside them.
fn service(text: &str, calls: i64, each_us: i64, returned: i64) -> SyntheticRecording {
    let counts =
        move |s: i64| (RATE * calls * s, RATE * calls * s * each_us / 1_000, 0, RATE * calls * s * returned, 0);
    SyntheticRecording::new(SECONDS).requests(RATE, 30).without_objectives().digest(text, counts).tables(|tables| {
        tables.statements.rows.iter_mut().for_each(|row| row.source = SOURCE.to_owned());
    })
}

/// The same with sequential scans of `orders` that read `rows` for each request.
fn scanning(text: &str, each_us: i64, rows: f64) -> SyntheticRecording {
    let labels = [("table", "public.orders")];
    service(text, 1, each_us, 1)
        .counter(SOURCE, "postgresql_stat_tables_seq_tup_read", &labels, RATE as f64 * rows)
        .counter(SOURCE, "postgresql_stat_tables_seq_scan", &labels, RATE as f64)
}

/// Sixty calls a request of 0.1 ms; `sessions` stand between two of them at a time.
fn looping(sessions: i64) -> SyntheticRecording {
    let rows = (0..SECONDS).flat_map(|second| {
        (0..sessions).map(move |id| Session {
            observed_at: second * 1_000_000_000,
            source: SOURCE.into(),
            session_id: id,
            command: "idle in transaction".into(),
            true_state: "idle_in_transaction".into(),
            age_ns: Some(100_000),
            digest_text: Some(LINES.into()),
            ..Session::default()
        })
    });
    service(LINES, 60, 100, 2).session_rows(rows.collect())
}

/// The same with one sighting in all, `age_ms` after a call; the server counted `between_ms` for each request.
fn looping_counted(between_ms: f64, age_ms: i64) -> SyntheticRecording {
    let database = [("database", "shop")];
    let metric = "postgresql_stat_database_idle_in_transaction_time";
    looping(1).counter(SOURCE, metric, &database, RATE as f64 * between_ms).tables(|tables| {
        tables.sessions.rows.truncate(1);
        tables.sessions.rows[0].age_ns = Some(age_ms * 1_000_000);
    })
}

#[test]
fn an_index_that_is_missing_from_the_start_stands_out_with_its_statement() {
    // So few sources leave too many rivals for a name.
    let diagnosis = scanning(BY_CUSTOMER, 22_000, 300_000.0).diagnose();
    assert_eq!((diagnosis.verdict, diagnosis.culprit), (Answer::Undecided, None), "{}", diagnosis.headline);
    assert!(diagnosis.headline.contains("at most 22.0 ms of the 30.0 ms"), "{}", diagnosis.headline);
    let level = diagnosis.level.expect("a level");
    assert!(
        level.p50_ms.is_some_and(|ms| ms >= 30.0) && level.database_ms.is_some_and(|ms| (ms - 22.0).abs() < 0.1),
        "{level:?}"
    );
    let command = level.dear.first().and_then(|dear| dear.command.as_deref());
    assert_eq!(command, Some("CREATE INDEX CONCURRENTLY ON public.orders (customer_id);"));
}

#[test]
fn a_part_of_the_time_is_named_by_what_it_could_save_at_most() {
    let diagnosis = scanning(BY_CUSTOMER, 9_000, 300_000.0).diagnose();
    assert_eq!((diagnosis.verdict, diagnosis.culprit), (Answer::Healthy, None), "{}", diagnosis.headline);
    let level = diagnosis.level.expect("a level");
    let dear = level.dear.first().expect("dear");
    assert_eq!((dear.cause, dear.saves_ms), (Cause::MissingIndex, Some(9.0)));
    assert_eq!(dear.command.as_deref(), Some("CREATE INDEX CONCURRENTLY ON public.orders (customer_id);"));
}

#[test]
fn time_that_the_work_needs_is_healthy_and_says_that_nothing_compares() {
    // Scans that read what is returned, and scans that another statement does.
    for made in [
        scanning(BY_CUSTOMER, 22_000, 500.0),
        service(BY_CUSTOMER, 1, 22_000, 20).counter(
            SOURCE,
            "postgresql_stat_tables_seq_tup_read",
            &[("table", "public.orders")],
            10.0,
        ),
    ] {
        let diagnosis = made.diagnose();
        assert_eq!(diagnosis.verdict, Answer::Healthy, "{}", diagnosis.headline);
        let account = "No change seen; p50 30.0 ms, and 22.0 ms of the 30.0 ms of an average request in the database";
        assert!(diagnosis.headline.starts_with(account), "{}", diagnosis.headline);
        assert!(diagnosis.level.is_some_and(|level| level.dear.is_empty()));
    }
}

#[test]
fn time_in_the_database_that_nothing_explains_is_undecided() {
    // A count stands for the rows that it read; and without counters of tables nothing tells.
    let counted = scanning("SELECT count(*) FROM orders WHERE customer_id = ?", 22_000, 300_000.0);
    for made in [counted, service(BY_CUSTOMER, 1, 22_000, 20)] {
        let diagnosis = made.diagnose();
        assert_eq!((diagnosis.verdict, diagnosis.culprit), (Answer::Undecided, None), "{}", diagnosis.headline);
        assert!(diagnosis.headline.contains("No source shows whether"), "{}", diagnosis.headline);
    }
    // Quick calls too short to read that many rows are another statement's neighbours.
    let quick = scanning(BY_CUSTOMER, 1_000, 300_000.0).diagnose();
    assert_eq!((quick.verdict, quick.culprit), (Answer::Healthy, None), "{}", quick.headline);
}

#[test]
fn an_objective_says_what_is_good() {
    let diagnosis = scanning(BY_CUSTOMER, 22_000, 300_000.0).p99_below(100.0).diagnose();
    assert_eq!((diagnosis.verdict, diagnosis.level), (Answer::Healthy, None), "{}", diagnosis.headline);
}

#[test]
fn a_loop_of_statements_costs_its_calls_and_the_time_between_them() {
    // 60 calls of 0.1 ms, and 1 session at a time over 3,000 calls a second: 0.33 ms after each.
    let diagnosis = looping(1).diagnose();
    assert_eq!(diagnosis.culprit, Some(Cause::NPlusOneQueries), "{}", diagnosis.headline);
    let ms = diagnosis.findings[0].explains_ms;
    assert!((ms - 59.0 * 0.433).abs() < 2.0, "{ms}");
}

#[test]
fn a_loop_is_named_by_the_servers_count_of_the_time_between_its_calls() {
    let diagnosis = looping_counted(20.0, 0).diagnose();
    assert_eq!(diagnosis.culprit, Some(Cause::NPlusOneQueries), "{}", diagnosis.headline);
    let ms = diagnosis.findings[0].explains_ms;
    assert!((ms - 59.0 * (0.1 + 20.0 / 60.0)).abs() < 1.0, "{ms}");
    // A transaction that another session keeps open is counted as well.
    let kept = looping_counted(20.0, 500).diagnose();
    assert_eq!((kept.verdict, kept.culprit), (Answer::Undecided, None), "{}", kept.headline);
}

#[test]
fn a_loop_whose_cost_is_unknown_leaves_the_verdict_open_and_a_few_calls_do_not() {
    let diagnosis = looping(0).diagnose();
    assert_eq!((diagnosis.verdict, diagnosis.culprit), (Answer::Undecided, None), "{}", diagnosis.headline);
    assert!(diagnosis.headline.contains("one of them 60.1 times"), "{}", diagnosis.headline);
    let few = service(LINES, 4, 100, 2).diagnose();
    assert_eq!((few.verdict, few.level.map(|level| level.dear)), (Answer::Healthy, Some(vec![])));
}

#[test]
fn a_database_alone_with_sessions_that_wait_is_left_open() {
    let alone = |waiting: i64| {
        let rows = (0..40).flat_map(|second| {
            (0..waiting).map(move |id| Session {
                observed_at: second * 1_000_000_000,
                source: "mysql://db".into(),
                session_id: id,
                true_state: "queued".into(),
                ..Session::default()
            })
        });
        let steady = SyntheticRecording::new(40).digest("SELECT item", |second| (100 * second, 200 * second, 0, 0, 0));
        steady.session_rows(rows.collect()).diagnose()
    };
    assert_eq!(alone(0).verdict, Answer::Healthy);
    let waiting = alone(6);
    assert_eq!(waiting.verdict, Answer::Undecided, "{}", waiting.headline);
    assert!(waiting.headline.contains("6 sessions waited for a thread of the pool"), "{}", waiting.headline);
}

/// 50 requests a second of `ms`, most of which their statement waits for a lock.
fn locked(ms: i64) -> SyntheticRecording {
    let waiting = RATE * (ms - 10) / 1_000;
    let rows = (0..SECONDS).flat_map(|second| {
        (0..waiting).map(move |id| Session {
            observed_at: second * 1_000_000_000,
            source: SOURCE.into(),
            session_id: id,
            command: "active".into(),
            true_state: "lock_wait".into(),
            digest_text: Some(LINES.into()),
            ..Session::default()
        })
    });
    let counts = move |s: i64| (RATE * s, RATE * s * (ms - 10), 0, 0, 0);
    SyntheticRecording::new(SECONDS)
        .requests(RATE, ms)
        .without_objectives()
        .digest(LINES, counts)
        .tables(|tables| tables.statements.rows.iter_mut().for_each(|row| row.source = SOURCE.to_owned()))
        .session_rows(rows.collect())
}

#[test]
fn a_wait_that_people_notice_is_not_called_good() {
    let long = locked(300).diagnose();
    assert_ne!(long.verdict, Answer::Healthy, "{}", long.headline);
    let first = long.findings.first().map(|f| f.cause).or(long.level.and_then(|l| Some(l.dear.first()?.cause)));
    assert_eq!(first, Some(Cause::LockContention), "{}", long.headline);
    let short = locked(60).diagnose();
    assert_ne!(short.verdict, Answer::Found, "{}", short.headline);
    assert!(short.level.is_some_and(|level| level.dear.is_empty()), "{}", short.headline);
}

#[test]
fn most_of_a_noticed_time_without_an_owner_leaves_the_verdict_open() {
    let server = "server:8080";
    // 50 requests a second, all of them with the app, which awaits nothing.
    let made = |ms: i64| {
        SyntheticRecording::new(SECONDS)
            .requests(RATE, ms)
            .without_objectives()
            .target("http://127.0.0.1:8080/")
            .gauge(server, "tcp_accept_queue_length", &[("port", "8080")], 0.0)
            .gauge(server, "server_answering_connections", &[], (RATE * ms) as f64 / 1e3)
            .gauge(server, "server_outgoing_pending_connections", &[("peer_port", "5432")], 0.0)
            .diagnose()
    };
    let long = made(300);
    assert_eq!(long.verdict, Answer::Undecided, "{}", long.headline);
    assert!(long.headline.contains("No source shows what 300 ms of the 300 ms are for"), "{}", long.headline);
    assert_eq!(made(60).verdict, Answer::Healthy);
}
