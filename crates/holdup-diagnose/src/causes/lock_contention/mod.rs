//! Statements wait for row or metadata locks that other transactions hold.

mod advice;
mod deadlocks;
mod global_lock;
mod row_locks;
mod signs;
mod write_conflicts;

use crate::change::Fix;
use std::collections::BTreeMap;

use holdup_recording::rows::Session;
use holdup_recording::{Labels, metrics};

use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, MATTERS, Outcome, Role, Source::Of, Source::With, Trait, ms,
    percent, timing,
};
use crate::case::Case;
use crate::next_command::NextCommand;
use crate::resources::locks::{self, LockWaiters};
use crate::resources::{is_felt, sessions};
use crate::strength::{CERTAIN, FAIR, STRONG};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Blockers, Holder, Missing, View};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::Queue],
    follows_from: &[
        // Waiters for a lock stand in front of the same time of its holder.
        Edge::in_front(&[&[With(Trait::WithinStatement)]], locks::held_ms),
        // Else a bulk change holds its locks for as long as it works, and what began is the change.
        Edge::in_front(&[&[Of(Cause::BackupOrBulkLoad)]], |case| locks::are_held_by_bulk(case).then_some(0.0)),
    ],
    traces: &[global_lock::PATTERN, row_locks::PATTERN],
    signs: Some(|facts, signs| {
        signs::find(facts, signs);
        deadlocks::find(facts, signs);
    }),
    errors: &[
        (holdup_recording::events::LOCK_TIMEOUT, crate::strength::CERTAIN),
        // Its one writer holds the lock for as long as its disk takes.
        (holdup_recording::events::WRITER_WAITED, crate::strength::FAIR),
    ],
    ..Definition::new(Cause::LockContention, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "Statements wait for locks",
    what: "A transaction holds a row or table lock that others need. They wait until it commits or rolls back. In MongoDB a write that meets another one on the same document is made again instead.",
    hurts: "All statements on the hot row run one after another, however idle the machine is.",
    needs: "Sampled sessions with their true state and blockers (MySQL, MariaDB, PostgreSQL), and the server's lock-wait counters; of MongoDB also its count of write conflicts (--watch mongodb://…); or at least the app's own timing of its statements, which bounds every wait inside the database.",
    predicts: "Sessions are in lock wait, the server's lock-wait time grows by about the excess, CPU and disk are idle. Or MongoDB makes several tries for each write, instead of one.",
    clears: "No session waits for a lock, or all time spent in the database is a small share of the delay. Writes of MongoDB need no more tries than in the baseline window.",
    looks_like: "A thread-pool queue (sessions show Sleep, not a lock wait), a connection pool (the wait is before the statement).",
    fix: "Shorten the transaction that holds the lock, commit before calling other services, spread the hot row, order updates alike.",
    prove: "The same load again: no session in lock wait, lock-wait time per request near zero.",
    references: "MariaDB documentation: InnoDB Lock Modes, INNODB_LOCK_WAITS; MySQL Reference Manual: InnoDB Locking; PostgreSQL documentation: pg_blocking_pids, lock_timeout, idle_in_transaction_session_timeout; MongoDB manual: serverStatus (metrics.operation.writeConflicts), FAQ: Concurrency.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::statement(
    "SELECT * FROM sys.innodb_lock_waits\\G SELECT * FROM sys.schema_table_lock_waits\\G",
    "SELECT pid, pg_blocking_pids(pid), state, query FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0;",
    "which session holds the lock of a row or of a table's definition that others wait for",
);

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let waits = match from_server(case) {
        Err(missing) => clear_by_bound(case).map_err(|_| missing),
        outcome => outcome,
    };
    write_conflicts::or_conflicts(case, waits)
}

/// No wait inside the database can exceed the app's own timing of its statements.
fn clear_by_bound(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let app = timing::app_operations(&view)?;
    let per_request = app.ms * app.count / case.completed_in(view.window)?.max(1.0);
    if case.share_inside(per_request) >= MATTERS {
        return Err(Missing::new("waits of the database's sessions", "--watch mysql://USER@HOST:PORT"));
    }
    Ok(Outcome::Cleared(vec![app.evidence(
        ms(per_request),
        "most of the delay",
        format!("a request spent {} in the database, including lock waits", ms(per_request)),
    )]))
}

fn from_server(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let waiters = locks::waiters(case, &view, &["observed_at", "source", "true_state", "blocked_by", "digest_text"])?;
    let completed = case.completed_in(view.window)?.max(1.0);
    // Little's law: waiters = rate x wait.
    let little = waiters.mean() / (completed / view.window.seconds()) * 1e3;
    // InnoDB books a wait when it ends; an unfinished wait shows only in the sessions.
    let booked = view
        .counter(metrics::mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_TIME.name, &[], "--watch mysql://USER@HOST:PORT")
        .map(|c| (c.delta * waiters.own_ratio() / completed, c));
    let explains_ms = booked.as_ref().map_or(little, |(ms, _)| ms.max(little));

    let mut evidence = Vec::new();
    if let Ok((per_request, counter)) = &booked {
        evidence.push(counter.evidence(
            format!("{} a request", ms(*per_request)),
            "near 0 ms",
            format!("the server booked {} of row-lock wait per request", ms(*per_request)),
        ));
    }
    // With no waiting session to show, the booked time comes first.
    let at = if waiters.own.is_empty() && waiters.aside == 0 { evidence.len() } else { 0 };
    evidence.splice(at..at, seen(&view, &waiters));
    if !is_felt(case, explains_ms)? {
        return Ok(Outcome::Cleared(evidence));
    }
    let mut weights = vec![CERTAIN];
    if booked.is_ok_and(|(ms, _)| case.share_inside(ms) >= MATTERS) {
        weights.push(STRONG);
    }
    let mut fixes = Vec::new();
    if let Ok(blockers) = view.blockers()
        && let Some(first) = blockers.holders.first()
    {
        evidence.push(holder_evidence(&view, &blockers, first));
        evidence.extend(most_waiters(&view, &waiters.own));
        weights.push(FAIR);
        fixes.push(advice::shorten(&view, first));
    } else {
        fixes.push(Fix {
            text: "Shorten the transaction that holds the lock: commit before waiting for anything else.".to_owned(),
            command: None,
            keep: None,
            risk: None,
        });
    }
    fixes.push(advice::bound(case, &view, waiters.own.first().map_or("", |s| s.source.as_str())));
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes,
        prove: "Run the same scenario again: no session in lock wait, and the lock wait leaves the ledger.".to_owned(),
        role: Role::Root,
    }))
}

/// The sessions that wait, or else the count of all.
fn seen(view: &View<'_>, waiters: &LockWaiters<'_>) -> Option<Evidence> {
    let labels = Labels::new([("true_state", "lock_wait")]);
    let waiting = |observed: String, expected: &str, text: String| {
        Some(Evidence::new("sessions", "true_state", labels, view.window, observed, expected, text))
    };
    if !waiters.own.is_empty() {
        let mean = format!("{:.1}", waiters.mean());
        let text = format!("{mean} sessions waited for a lock on average");
        return waiting(format!("{mean} on average"), "0", text);
    }
    if waiters.aside > 0 {
        let aside = waiters.aside as f64 / waiters.instants;
        let text = format!(
            "no session of a request waited for a lock; {aside:.1} sessions did on average that run other work, which began with the episode"
        );
        return waiting("0 waiting".to_owned(), "several", text);
    }
    let connected = view.status_level(metrics::mysql::GLOBAL_STATUS_THREADS_CONNECTED).ok();
    let counted = connected.or_else(|| sessions::counted(view, &[]))?;
    let text = format!("in {:.0} samples no session waited for a lock", waiters.instants);
    Some(counted.evidence("0 waiting", "several, if locks were the cause", text))
}

/// The session that blocks most: its statement, hold time, and what it does meanwhile.
fn holder_evidence(view: &View<'_>, blockers: &Blockers, first: &Holder) -> Evidence {
    let who = match (&first.user, &first.client) {
        (Some(user), Some(client)) => format!(" ({user} from {client})"),
        (Some(user), None) => format!(" ({user})"),
        _ => String::new(),
    };
    let held = if first.held_seconds >= 1.0 {
        format!(", for up to {:.0} s at a time", first.held_seconds)
    } else {
        String::new()
    };
    let does = match first.did.first() {
        Some((state, share)) => format!("; in {} of those it was {state}", percent(*share)),
        None => String::new(),
    };
    let statement = match first.statement.as_str() {
        "" => "; its statement is unknown".to_owned(),
        text if first.is_idle() => format!("; the last statement it ran: {text}"),
        text => format!("; it ran: {text}"),
    };
    let chain = if blockers.longest_chain > 2 {
        format!("; the longest chain of waiters had {} sessions", blockers.longest_chain)
    } else {
        String::new()
    };
    let others = match blockers.holders.len() - 1 {
        0 => String::new(),
        n => format!("; {n} other sessions held locks as well"),
    };
    let id = first.session_id;
    Evidence::new(
        "sessions",
        "blocked_by",
        Labels::new([("true_state", "lock_wait")]),
        view.window,
        format!("session {id}"),
        "none",
        format!(
            "session {id}{who} blocked {:.1} others on average, in {} of the samples{held}{does}{statement}{chain}{others}",
            first.behind,
            percent(first.instants_ratio)
        ),
    )
}

/// The statement of most waiters.
fn most_waiters(view: &View<'_>, waiting: &[&Session]) -> Option<Evidence> {
    let mut by_text: BTreeMap<&str, usize> = BTreeMap::new();
    for text in waiting.iter().filter_map(|s| s.digest_text.as_deref()) {
        *by_text.entry(text).or_default() += 1;
    }
    let (statement, count) = by_text.into_iter().max_by_key(|(_, n)| *n)?;
    let share = percent(count as f64 / waiting.len().max(1) as f64);
    let labels = Labels::new([("true_state", "lock_wait"), ("digest_text", statement)]);
    let text = format!("{share} of the waiters ran: {statement}");
    Some(Evidence::new("sessions", "digest_text", labels, view.window, share, "", text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::locks::held_ms;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// A session of `source` at a second.
    fn session(source: &str, second: i64, id: i64, true_state: &str, blocked_by: Option<i64>) -> Session {
        Session {
            observed_at: second * 1_000_000_000,
            source: source.into(),
            session_id: id,
            user: Some("batch".into()),
            client: Some("10.0.0.7:4711".into()),
            true_state: true_state.into(),
            digest_text: Some(
                if id == 7 { "SELECT views FROM day FOR UPDATE" } else { "UPDATE day SET views = ?" }.into(),
            ),
            blocked_by,
            ..Session::default()
        }
    }

    /// 50 requests of 400 ms a second; session 7 holds what `waiters` wait for, one behind the other.
    fn server(source: &str, waiters: i64, holder: &str) -> SyntheticRecording {
        let rows = (0..=12).flat_map(|s| {
            let waits = (0..waiters)
                .map(move |i| session(source, s, 100 + i, "lock_wait", Some(if i == 0 { 7 } else { 99 + i })));
            std::iter::once(session(source, s, 7, holder, None)).chain(waits).collect::<Vec<_>>()
        });
        SyntheticRecording::new(12).requests(50, 400).session_rows(rows.collect()).gauge(
            source,
            "mysql_global_status_threads_connected",
            &[],
            20.0,
        )
    }

    #[test]
    fn a_short_wait_counts_where_it_is_why_connections_ran_out() {
        // From 6 s on a request waits 870 ms for one of the pool's connections, each held for 26 ms instead of 2:
        // 20 ms of that, one waiter at 50 a second, are the lock's.
        let from_then =
            |baseline: f64, slow: f64| move |s: i64| baseline * s.min(6) as f64 + slow * (s - 6).max(0) as f64;
        let waiters: Vec<Session> = (6..=12)
            .flat_map(|s| {
                [session("mysql://db", s, 7, "executing", None), session("mysql://db", s, 8, "lock_wait", Some(7))]
            })
            .collect();
        let made = SyntheticRecording::new(12)
            .requests(50, 900)
            .each_request(|n, r| {
                if n / 50 < 6 {
                    r.done_at = r.intended_at + 10_000_000;
                }
            })
            .session_rows(waiters)
            .gauge("mysql://db", "mysql_global_status_threads_connected", &[], 20.0);
        assert_eq!(made.explains(&DEFINITION), Some(0.0), "two hundredths of the delay");
        let app = "prometheus:http://app";
        let pooled =
            [("acquire", 0.0, 43.5), ("usage", 0.1, 1.3)].into_iter().fold(made, |made, (what, baseline, slow)| {
                let metric = |kind: &str| format!("hikaricp_connections_{what}_seconds_{kind}");
                made.counted(app, &metric("sum"), &[], from_then(baseline, slow)).counter(
                    app,
                    &metric("count"),
                    &[],
                    50.0,
                )
            });
        let pooled = pooled
            .counted(app, "hikaricp_connections_active", &[], |s| if s < 6 { 0.1 } else { 2.0 })
            .gauge(app, "hikaricp_connections_max", &[], 2.0)
            .gauge(app, "hikaricp_connections_pending", &[], 40.0);
        let explains = pooled.explains(&DEFINITION).unwrap();
        assert!((explains - 20.0).abs() < 4.0, "{explains}");
    }

    #[test]
    fn the_holder_is_named_with_its_statement_and_how_long() {
        let made = server("mysql://db", 18, "idle");
        let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
        assert!((found.explains_ms - 360.0).abs() < 40.0, "{}", found.explains_ms);
        let text = found.evidence.iter().map(|e| e.text.as_str()).collect::<Vec<_>>().join("\n");
        for part in [
            "session 7 (batch from 10.0.0.7:4711) blocked 18.0 others on average",
            "in 100 % of those it was idle",
            "the last statement it ran: SELECT views FROM day FOR UPDATE",
            "the longest chain of waiters had 19 sessions",
            "ran: UPDATE day SET views = ?",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(found.fixes[0].command.as_deref(), Some("KILL 7;"));
        // One holder at a time, 50 requests a second: each holds it for 20 ms. One that does nothing is the app's.
        assert_eq!(made.with(held_ms), None);
        assert!((server("mysql://db", 18, "executing").with(|case| held_ms(case).unwrap()) - 20.0).abs() < 2.0);
    }

    #[test]
    fn postgresql_has_its_own_commands() {
        let made = server("postgresql://db", 18, "idle_in_transaction").setting("postgresql://db", "lock_timeout", "0");
        let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
        assert_eq!(found.fixes[0].command.as_deref(), Some("SELECT pg_terminate_backend(7);"));
        assert!(found.fixes[1].command.as_deref().is_some_and(|c| c.contains("lock_timeout")));
    }

    #[test]
    fn few_waiters_clear_it_and_no_sessions_leave_it_open() {
        assert_eq!(server("mysql://db", 0, "executing").explains(&DEFINITION), Some(0.0));
        assert_eq!(server("mysql://db", 1, "executing").explains(&DEFINITION), Some(0.0));
        let made = server("mysql://db", 18, "idle");
        assert_eq!(made.clone().without("mysql_sessions").explains(&DEFINITION), None);
        for column in ["true_state", "blocked_by", "observed_at"] {
            assert_eq!(made.clone().without_column("sessions", column).explains(&DEFINITION), None, "{column}");
        }
    }
}
