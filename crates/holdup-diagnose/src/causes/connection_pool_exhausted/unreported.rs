//! A pool that the app does not report, by the connections that the kernel and the database see.

use crate::change::{Bounds, Direction, Fix, SettingChange, Unit};
use holdup_signals::yardstick::MATTERS;

use super::advice::{POOL_MOST, POOL_RISK};
use crate::case::Case;
use crate::causes::{CauseFinding, Outcome, Role, ms};
use crate::resources::connections::{Place, UnreportedPool};
use crate::strength::{AS_SYMPTOM, STRONG};

/// Room for bursts in a pool, as a factor on what its load needs.
const BURSTS: f64 = 1.5;

/// What sets the size of a pool, by the beginning of the process' name.
const SETTINGS: &[(&[&str], &str)] = &[
    (&["java"], "HikariCP: maximumPoolSize"),
    (&["gunicorn", "python", "uwsgi", "uvicorn", "flask", "celery"], "SQLAlchemy: pool_size + max_overflow"),
    (&["node"], "node-postgres: max; mysql2: connectionLimit"),
    (&["puma", "ruby", "unicorn", "falcon"], "Rails: pool in database.yml"),
];

/// The same where the name does not tell.
const ANY_SETTING: &str = "HikariCP: maximumPoolSize; SQLAlchemy: pool_size + max_overflow; node-postgres: max; Rails: pool; Go: SetMaxOpenConns";

/// The same for connections to other services.
const OF_HTTP: &str = "the most connections for each host: Apache HttpClient: setMaxConnPerRoute; Node.js: maxSockets; Go: MaxConnsPerHost";

/// The same between app and database.
const OF_POOLER: &str = "PgBouncer: default_pool_size; ProxySQL: max_connections of the server";

/// None if no queue is seen: a connection may also be held without awaiting an answer.
pub(super) fn judge(case: &Case<'_>) -> Option<Outcome> {
    let pool = UnreportedPool::for_case(case).ok()?;
    let explains_ms = pool.queued_ms();
    if case.share(explains_ms) < MATTERS {
        return None;
    }
    let (role, part) = if pool.is_held_longer_by_others() { (Role::Symptom, AS_SYMPTOM) } else { (Role::Root, 1.0) };
    let [queue, hold] = pool.evidence();
    let evidence = match pool.place {
        Place::Sessions => vec![queue, pool.beside(case.episode()), hold],
        _ => vec![queue, hold],
    };
    Some(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights: vec![STRONG * part],
        fixes: fixes(case, &pool),
        prove: "Run the same scenario again: not all of the app's connections are busy.".to_owned(),
        role,
    }))
}

/// A connection returned earlier if the app keeps it in a transaction; then the one setting, with as
/// many as the load needs.
fn fixes(case: &Case<'_>, pool: &UnreportedPool) -> Vec<Fix> {
    let plain =
        |text: String, risk: Option<&str>| Fix { text, command: None, keep: None, risk: risk.map(str::to_owned) };
    let mut fixes = Vec::new();
    if pool.kept_ms() >= MATTERS * pool.held_ms() {
        let text = format!(
            "End the transaction before other work: a request keeps a connection for {} of {} while no statement runs.",
            ms(pool.kept_ms()),
            ms(pool.held_ms())
        );
        fixes.push(plain(text, Some("What the transaction read may have changed until the next one.")));
    }
    let setting = setting(pool);
    let each = match pool.processes.filter(|count| *count > 1.0 && pool.place != Place::Pooler) {
        Some(count) => format!(", of all {count:.0} processes together"),
        None => String::new(),
    };
    let offered = case.peak_offered_per_second();
    let needed = (offered * pool.held_ms() / 1e3 * BURSTS).ceil();
    let why =
        format!("{offered:.0}/s x {} held, by Little's law, and half as many again for bursts", ms(pool.held_ms()));
    let bounds = Bounds { least: 1.0, most: POOL_MOST };
    let change = SettingChange::new(Direction::Raise, "the pool", Unit::Count, Some(pool.open), needed, bounds);
    fixes.push(match change {
        Ok(change) => {
            let text = format!(
                "Raise the pool from {:.0} to {:.0} connections{each} ({setting}): {why}.",
                pool.open, change.to
            );
            plain(text, Some(POOL_RISK))
        }
        Err(_) => plain(
            format!(
                "Hold each connection for less time: {needed:.0} of {:.0}{each} are enough ({why}); see {setting}.",
                pool.open
            ),
            None,
        ),
    });
    if pool.place == Place::Sessions {
        let text = "If each worker of the app has a connection of its own, add workers instead: --watch server:PORT of the app tells the two apart.";
        fixes.push(plain(text.to_owned(), None));
    }
    fixes
}

fn setting(pool: &UnreportedPool) -> &'static str {
    let of_app = || SETTINGS.iter().find(|(names, _)| names.iter().any(|name| pool.app.starts_with(name)));
    match pool.place {
        Place::Pooler => OF_POOLER,
        Place::Service => OF_HTTP,
        Place::Database | Place::Sessions => of_app().map_or(ANY_SETTING, |(_, setting)| setting),
    }
}

#[cfg(test)]
#[path = "unreported_tests.rs"]
mod tests;
