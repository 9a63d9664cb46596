//! What to do about a proxy whose slots are all taken. More slots help only if the app behind them
//! has free workers: else they move the queue to where it is harder to see.

use crate::case::Case;
use crate::causes::{Fix, ms};
use crate::change::{Bounds, Direction, SettingChange, Steps, Unit};
use crate::resources::workers::{Pool, WorkerHold, stretch};
use holdup_signals::app::app_server::Workers;

use super::advice::{MOST_WORKERS, WELL_USED};

/// From this share (0-1) of an app's workers busy, further requests would wait for one.
const BUSY: f64 = 0.9;

/// Fixes, safest first.
pub(super) fn fixes(case: &Case<'_>, pool: &Pool, slots: &Workers, held: Option<&WorkerHold>) -> Vec<Fix> {
    let fix = |text: String, risk: &str| Fix { text, command: None, keep: None, risk: Some(risk.to_owned()) };
    let behind = stretch(case).app_workers();
    let mut fixes = vec![match behind {
        Some(app) if app.busy_ratio() >= BUSY => fix(
            format!(
                "Add workers to the app first: {:.1} of {:.0} {} are busy, and more slots of {} would only move the queue behind it.",
                app.busy,
                app.most,
                app.name(),
                slots.server
            ),
            "Each may hold a connection to the database.",
        ),
        Some(app) => more(case, slots, held, &app),
        None => fix(
            format!(
                "See whether the app behind has free workers (--watch server:PORT, or its own figures). If it has, raise maxconn on the server lines of backend {}; if not, add workers first.",
                slots.backend.as_deref().unwrap_or_default()
            ),
            "Slots beyond the app's workers move the queue behind the proxy, where no figure of it shows it.",
        ),
    }];
    let slowest = held.and_then(WorkerHold::slowest).map(|neighbour| neighbour.name.clone());
    fixes.push(fix(
        format!(
            "Hold each slot for less time: give calls of {} and statements a deadline.",
            slowest.as_deref().unwrap_or("downstream services")
        ),
        "Some requests are then answered with an error.",
    ));
    let waited =
        pool.proxy_ms.map_or_else(String::new, |waited_ms| format!(", after less than the {} of now", ms(waited_ms)));
    fixes.push(fix(
        format!("Reject early what cannot be served in time: timeout queue in {}{waited}.", slots.server),
        "Clients get a 503 sooner; they have to retry later, not at once.",
    ));
    fixes
}

/// As many slots as the load needs, and no more than the app has workers.
fn more(case: &Case<'_>, slots: &Workers, held: Option<&WorkerHold>, app: &Workers) -> Fix {
    let backend = slots.backend.as_deref().unwrap_or_default();
    let offered = case.peak_offered_per_second();
    let needed = held.map_or(f64::NAN, |held| (offered * held.ms / 1e3 / WELL_USED).ceil());
    let bounds = Bounds { least: 1.0, most: app.most.min(MOST_WORKERS) };
    let name = format!("the slots of backend {backend}");
    match SettingChange::new(Direction::Raise, &name, Unit::Count, Some(slots.most), needed, bounds) {
        Ok(change) => {
            let servers = stretch(case).servers_with_slots(&slots.source, backend);
            let each = (change.to / servers.max(1) as f64).floor().max(1.0);
            let steps = Steps {
                command: Some(format!(
                    "maxconn {each:.0} on each of the {servers} server lines of backend {backend}, then reload {}",
                    slots.server
                )),
                ..Steps::default()
            };
            let why = format!(
                "{offered:.0} requests/s keep {:.0} busy with some room for bursts, and only {:.1} of {:.0} {} are busy",
                needed,
                app.busy,
                app.most,
                app.name()
            );
            change.fix(&why, steps, "Each may hold a connection to the database.")
        }
        Err(stay) => stay.fix("Hold each slot for less time"),
    }
}
