//! How large a pool of connections has to be, or what else to do if it is large enough.

use crate::resources::statements;
use holdup_signals::View;
use holdup_signals::change::{Bounds, Direction, SettingChange, Unit, cut};
use holdup_signals::evidence::Fix;

/// The risk of a larger pool.
pub(super) const POOL_RISK: &str =
    "Each instance of the app then opens that many; check the sum against the database's max_connections.";

/// No single instance has more connections than this.
const POOL_MOST: f64 = 10_000.0;

/// More connections if the measured load needs more than the pool may have; else what holds them.
pub(super) fn raise(view: &View<'_>, most: f64, needed: f64, at_least: &str, why: &str) -> Fix {
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
