//! How large a pool of connections has to be, or what else to do if it is large enough.

use crate::case::Case;
use crate::causes::{ms, percent, timing};
use crate::change::{Bounds, Direction, Fix, SettingChange, Unit, cut};
use crate::resources::statements;
use holdup_signals::client::latency::Origin;
use holdup_signals::{Mean, View};

/// The risk of a larger pool.
pub(super) const POOL_RISK: &str =
    "Each instance of the app then opens that many; check the sum against the database's max_connections.";

/// No single instance has more connections than this.
pub(super) const POOL_MOST: f64 = 10_000.0;

/// A connection returned earlier if the app does other work meanwhile, then as many as the load
/// needs, where each is `held` so long and the pool may have `most`.
pub(super) fn fixes(case: &Case<'_>, view: &View<'_>, held: &Mean, most: f64, completed: f64) -> Vec<Fix> {
    let offered = case.peak_offered_per_second();
    let uses = held.count / completed;
    // Little's law: connections in use = rate x uses per request x time held; half as many again,
    // because a pool that is always busy turns every burst into a queue.
    let needed = (offered * uses * held.ms / 1e3 * 1.5).ceil();
    // If only served requests were counted, the demand may be higher.
    let at_least = if case.origin == Origin::Client { "" } else { "at least " };
    let why =
        format!("{offered:.0}/s x {} held, by Little's law, and half as many again for bursts", ms(held.ms * uses));
    let in_database = timing::database_share_of_connection_use(view).filter(|share| *share < 0.5);
    let earlier = in_database.map(|share| Fix {
        text: format!(
            "Return the connection before doing other work: {} of its hold time is spent in the database.",
            percent(share)
        ),
        command: None,
        keep: None,
        risk: Some("Statements of one transaction must stay on one connection.".to_owned()),
    });
    earlier.into_iter().chain([raise(view, most, needed, at_least, &why)]).collect()
}

/// More connections if the measured load needs more than the pool may have; else what holds them.
fn raise(view: &View<'_>, most: f64, needed: f64, at_least: &str, why: &str) -> Fix {
    let bounds = Bounds { least: 1.0, most: POOL_MOST };
    let change = SettingChange::new(Direction::Raise, "the pool", Unit::Count, Some(most), needed, bounds);
    let holder = || {
        let held = statements::holding(view, "executing");
        held.map_or_else(String::new, |(statement, _)| {
            format!(" Most of the database's sessions ran: {}.", cut(&statement))
        })
    };
    match change {
        Ok(change) => Fix {
            text: format!("Raise the pool from {most:.0} to {at_least}{:.0} connections: {why}.", change.to),
            command: None,
            keep: None,
            risk: Some(POOL_RISK.to_owned()),
        },
        Err(_) => Fix {
            text: format!(
                "Hold each connection for less time. A larger pool only moves the queue: {needed:.0} of its {most:.0} are enough ({why}).{}",
                holder()
            ),
            command: None,
            keep: None,
            risk: None,
        },
    }
}
