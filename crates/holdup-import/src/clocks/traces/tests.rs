//! Offsets between three sides that saw the same requests. Whole recordings are in the end-to-end tests.

use super::*;

const MS: i64 = 1_000_000;

/// A client, an app whose clock is 40 ms behind, and a database whose clock is 25 ms ahead, 5 ms away
/// from each other. A request takes the app 1 ms before and after its statement, which takes 2 ms.
fn three_sides() -> (Batch, Batch, Batch) {
    let (mut client, mut app, mut database) = (Batch::default(), Batch::default(), Batch::default());
    for n in 0..200_i64 {
        let (id, at) = (format!("{n:032x}"), n * 100 * MS);
        // The way varies by a third of a millisecond.
        let way = 5 * MS + (n * 7919) % (MS / 3);
        let begun = at + way;
        let asked = begun + MS;
        let run = asked + way;
        let answered = run + 2 * MS + way;
        let done = answered + MS + way;
        client.requests.push(Request {
            intended_at: at,
            sent_at: Some(at),
            done_at: done,
            trace_id: Some(id.clone()),
            ..Request::default()
        });
        let span = |from: i64, to: i64, digest: Option<&str>| Span {
            trace_id: id.clone(),
            started_at: from - 40 * MS,
            duration_ns: to - from,
            digest: digest.map(str::to_owned),
            ..Span::default()
        };
        app.spans.extend([span(begun, answered + MS, None), span(asked, answered, Some("d"))]);
        database.statements.push(Statement {
            observed_at: run + 2 * MS + 25 * MS,
            duration_ns: 2 * MS,
            kind: "execution".to_owned(),
            digest: "d".to_owned(),
            trace_id: Some(id),
            ..Statement::default()
        });
    }
    (client, app, database)
}

fn found(known: &Batch, other: &Batch) -> Offset {
    by_traces(known.into(), other.into()).unwrap()
}

#[test]
fn both_ends_of_requests_and_of_statements_bound_the_offset() {
    let (client, app, database) = three_sides();
    let of_app = found(&client, &app);
    assert!((of_app.offset_ns - 40 * MS).abs() < MS, "{of_app:?}");
    assert!((of_app.offset_ns - 40 * MS).abs() <= of_app.error_ns && of_app.error_ns <= 13 * MS, "{of_app:?}");
    // Against the app the database's clock is 65 ms ahead.
    let of_database = found(&app, &database);
    assert!((of_database.offset_ns + 65 * MS).abs() < MS && of_database.error_ns <= 13 * MS, "{of_database:?}");
    // The call alone bounds it closer than the request around it.
    assert!(of_database.error_ns < found(&client, &database).error_ns);
    assert_eq!(of_database.count, 200);
}

#[test]
fn a_few_wrong_times_are_outvoted() {
    let (client, mut app, _) = three_sides();
    let before = found(&client, &app);
    for row in app.spans.iter_mut().step_by(20) {
        row.started_at += 3_600_000 * MS;
    }
    let after = found(&client, &app);
    assert!((after.offset_ns - before.offset_ns).abs() < MS, "{before:?} {after:?}");
    assert!(after.error_ns <= before.error_ns + MS, "{before:?} {after:?}");
}

#[test]
fn clocks_that_drift_leave_the_middle_and_their_spread() {
    let (client, mut app, _) = three_sides();
    for (n, row) in (0..).zip(&mut app.spans) {
        row.started_at += n * MS;
    }
    let drifting = found(&client, &app);
    assert!(drifting.error_ns > 50 * MS, "{drifting:?}");
}

#[test]
fn of_many_rows_both_sides_keep_the_same_ones() {
    let kept = (0..100_000).filter(|n| hash(&format!("{n:032x}")).leading_zeros() >= 3).count();
    assert!((11_000..14_000).contains(&kept), "{kept}");
    let ids: Vec<Interval> = vec![(0, 10), (5, 15), (8, 9), (100, 200)];
    assert_eq!(most_agreed(&ids), Some((8, 9, 3)));
}
