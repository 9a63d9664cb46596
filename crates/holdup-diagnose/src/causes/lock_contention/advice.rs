//! What to do about a lock that others wait for: the transaction that holds it, and how long a wait
//! may be.

use crate::case::Case;
use crate::change::database::Server;
use crate::change::parameters::{Engine, IDLE_IN_TRANSACTION, IDLE_WRITE_TRANSACTION, INNODB_LOCK_WAIT, LOCK_TIMEOUT};
use crate::change::{Direction, Fix, Unit, cut};
use holdup_signals::{Holder, View};

/// A wait for a lock beyond this helps no request that is quick otherwise, milliseconds.
const BOUND_MS: f64 = 5_000.0;

/// A wait of so many times a healthy request is given up.
const FAR_LONGER: f64 = 10.0;

/// What to do about the holding transaction.
pub(super) fn shorten(view: &View<'_>, first: &Holder) -> Fix {
    let statement = match first.statement.as_str() {
        "" => String::new(),
        text => format!(" with {}", cut(text)),
    };
    if first.is_idle() {
        let server = Server::at(view, &first.source);
        return Fix {
            text: format!(
                "Commit at once: the transaction{statement} stays open while its session does nothing. For now, kill that session."
            ),
            command: Some(server.kill(first.session_id)),
            keep: Some(end_idle(&server)),
            risk: Some("The transaction is rolled back, and its app gets an error.".to_owned()),
        };
    }
    Fix {
        text: format!(
            "Make the transaction{statement} shorter: the locking statement last, and no other wait before its commit."
        ),
        command: None,
        keep: None,
        risk: None,
    }
}

/// How the server ends such transactions by itself, where it can and does not yet.
fn end_idle(server: &Server<'_>) -> String {
    const IN_APP: &str = "in the app: a transaction that commits before it calls other services";
    let parameter = if server.engine() == Engine::PostgreSql { &IDLE_IN_TRANSACTION } else { &IDLE_WRITE_TRANSACTION };
    let to = if parameter.unit == Unit::Seconds { BOUND_MS / 1e3 } else { BOUND_MS };
    let Ok(change) = server.change(Direction::Lower, parameter, to) else { return IN_APP.to_owned() };
    let steps = server.steps(&[(parameter, &change)]);
    match steps.command.or(steps.keep).filter(|_| server.has(parameter)) {
        Some(how) => format!("{how} It ends such transactions from then on. Or {IN_APP}"),
        None => IN_APP.to_owned(),
    }
}

/// Makes waiters fail fast instead of piling up, after a time that no healthy request takes.
pub(super) fn bound(case: &Case<'_>, view: &View<'_>, source: &str) -> Fix {
    const WHY: &str = "waiters then fail fast instead of piling up";
    let server = Server::at(view, source);
    let usual_ms = case.degradation.as_ref().map_or(0.0, |c| c.baseline_mean_ms);
    let seconds = (BOUND_MS / 1e3).max((FAR_LONGER * usual_ms / 1e3).ceil());
    let (parameter, to, risk) = if server.engine() == Engine::PostgreSql {
        let risk = "Statements that wait longer fail with SQLSTATE 55P03, maintenance included; the app must retry.";
        (&LOCK_TIMEOUT, seconds * 1e3, risk)
    } else {
        let risk = "Statements that wait longer fail with error 1205; the app must retry.";
        (&INNODB_LOCK_WAIT, seconds, risk)
    };
    match server.change(Direction::Lower, parameter, to) {
        Ok(change) => {
            let mut steps = server.steps(&[(parameter, &change)]);
            // Sessions that are open keep the value that they began with.
            if !steps.effect.is_empty() {
                steps.effect = "New sessions take it.".to_owned();
            }
            change.fix(WHY, steps, risk)
        }
        Err(stay) => stay.fix("Have the app give up waiting sooner, if it must."),
    }
}
