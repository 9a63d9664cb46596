//! Statements wait for row or metadata locks that other transactions hold.

use std::collections::BTreeMap;

use holdup_recording::Labels;

use super::{Doc, Found, MATTERS, Outcome, Rule, ms, thousands, timing};
use crate::case::Case;
use crate::signals::{Missing, View};
use crate::verdict::{Evidence, Fix, Role};

/// The rule.
pub const RULE: Rule = Rule {
    cause: "lock_contention",
    doc: Doc {
        title: "Statements wait for locks",
        what: "A transaction holds a row or table lock that others need. They wait until it commits or rolls back.",
        hurts: "Everything that touches the hot row runs one after another, however idle the machine is.",
        needs: "Sampled sessions with their true state and blockers, and the server's lock-wait counters; or at least the app's own timing of its statements, which bounds every wait inside the database.",
        predicts: "Sessions are in lock wait, the server's lock-wait time grows by about what requests are too slow by, CPU and disk are idle.",
        clears: "No session waits for a lock, or all time spent in the database is a small share of the delay.",
        looks_like: "A thread-pool queue (sessions show Sleep, not a lock wait), a connection pool (the wait is before the statement).",
        fix: "Shorten the transaction that holds the lock, commit before calling others, spread the hot row, order updates alike.",
        prove: "The same load again: no session in lock wait, lock-wait time per request near zero.",
        references: "MariaDB documentation: InnoDB Lock Modes, INNODB_LOCK_WAITS; MySQL Reference Manual: InnoDB Locking.",
    },
    judge,
};

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    match from_server(case) {
        Err(missing) => clear_by_bound(case).map_err(|_| missing),
        outcome => outcome,
    }
}

/// Nothing that waits inside the database can take longer than the app's own timing of its statements.
fn clear_by_bound(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let app = timing::app_operations(&view)?;
    let per_request = app.ms * app.count / case.completed_in(view.window)?.max(1.0);
    if case.share(per_request) >= MATTERS {
        return Err(Missing::new("what the database's sessions wait for", "--watch mysql://USER@HOST:PORT"));
    }
    Ok(Outcome::Cleared(vec![app.evidence(
        ms(per_request),
        "most of the delay",
        format!("a request spent {} in the database, waits for locks included", ms(per_request)),
    )]))
}

fn from_server(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let sessions = view.sessions(&["observed_at", "source", "true_state", "blocked_by", "digest_text"])?;
    let instants = view.session_instants().max(1) as f64;
    let waiting: Vec<_> = sessions.iter().filter(|s| s.true_state == "lock_wait").collect();
    let mean_waiting = waiting.len() as f64 / instants;
    let completed = case.completed_in(view.window)?.max(1.0);
    // Little's law: waiters = rate x wait.
    let little = mean_waiting / (completed / view.window.seconds()) * 1e3;
    // InnoDB books a wait when it ends, in milliseconds; a wait that still lasts is only in the sessions.
    let booked = view
        .counter("mysql_global_status_innodb_row_lock_time", &[], "--watch mysql://USER@HOST:PORT")
        .map(|c| (c.delta / completed, c));
    let explains_ms = booked.as_ref().map_or(little, |(ms, _)| ms.max(little));

    let mut evidence = Vec::new();
    if let Ok((per_request, counter)) = &booked {
        evidence.push(counter.evidence(
            format!("{} a request", ms(*per_request)),
            "near 0 ms",
            format!("the server booked {} of row-lock wait per request", ms(*per_request)),
        ));
    }
    if waiting.is_empty() {
        let questions = view.gauge("mysql_global_status_threads_connected", &[], "--watch mysql://USER@HOST:PORT")?;
        let text = format!("in {instants:.0} samples no session waited for a lock");
        evidence.push(questions.evidence("0 waiting", "several, if locks were the cause", text));
    } else {
        evidence.insert(
            0,
            Evidence::new(
                "sessions",
                "true_state",
                Labels::of([("true_state", "lock_wait")]),
                view.window,
                format!("{mean_waiting:.1} on average"),
                "0",
                format!("{mean_waiting:.1} sessions waited for a lock on average"),
            ),
        );
    }
    if case.share(explains_ms) < MATTERS {
        return Ok(Outcome::Cleared(evidence));
    }
    let mut weights = vec![0.85];
    if booked.is_ok_and(|(ms, _)| case.share(ms) >= MATTERS) {
        weights.push(0.7);
    }
    if let Some(holder) = holder(&view)? {
        evidence.push(holder);
        weights.push(0.6);
    }
    Ok(Outcome::Found(Found {
        explains_ms,
        evidence,
        weights,
        fixes: vec![
            Fix {
                text: "Shorten the transaction that holds the lock: commit before waiting for anything else."
                    .to_owned(),
                command: None,
                keep: None,
                risk: None,
            },
            Fix {
                text: "Bound the wait, so that waiters fail fast instead of piling up.".to_owned(),
                command: Some("SET GLOBAL innodb_lock_wait_timeout = 5;".to_owned()),
                keep: None,
                risk: Some(
                    "Statements that wait longer fail with error 1205; the app must retry. New sessions only."
                        .to_owned(),
                ),
            },
        ],
        prove: "Run the same scenario again: no session in lock wait, and the lock wait leaves the ledger.".to_owned(),
        role: Role::Root,
    }))
}

/// The session that most waiters name as their blocker.
fn holder(view: &View<'_>) -> Result<Option<Evidence>, Missing> {
    let sessions = view.sessions(&["observed_at", "true_state", "blocked_by", "digest_text"])?;
    let mut blockers: BTreeMap<i64, usize> = BTreeMap::new();
    let mut waiters: BTreeMap<&str, usize> = BTreeMap::new();
    for session in sessions.iter().filter(|s| s.true_state == "lock_wait") {
        if let Some(blocker) = session.blocked_by {
            *blockers.entry(blocker).or_default() += 1;
        }
        if let Some(text) = session.digest_text.as_deref() {
            *waiters.entry(text).or_default() += 1;
        }
    }
    let Some((blocker, count)) = blockers.into_iter().max_by_key(|(_, n)| *n) else { return Ok(None) };
    let statement = waiters.into_iter().max_by_key(|(_, n)| *n).map_or("", |(text, _)| text);
    Ok(Some(Evidence::new(
        "sessions",
        "blocked_by",
        Labels::of([("true_state", "lock_wait")]),
        view.window,
        format!("session {blocker}"),
        "nobody",
        format!(
            "session {blocker} was named as the blocker {} times; most of those it blocked ran: {statement}",
            thousands(count as f64)
        ),
    )))
}
