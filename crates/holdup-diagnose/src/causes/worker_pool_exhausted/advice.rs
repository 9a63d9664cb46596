//! What to do about workers that are all busy: how many the load needs, and what limits their
//! number.

use crate::case::Case;
use crate::causes::{Fix, bytes, ms, percent, thousands};
use crate::change::{Bounds, Direction, SettingChange, Unit};
use crate::resources::connections::{NAMES, UnreportedPool};
use crate::resources::workers::{Pool, WorkerHold, processes, stretch};
use holdup_recording::metrics;
use holdup_signals::View;
use holdup_signals::app::timing::APP_METRICS;

/// Share (0-1) of time for which workers should be busy: the rest is for uneven arrivals.
pub(super) const WELL_USED: f64 = 0.7;

/// From this share (0-1) of its time a worker mostly waits.
const MOSTLY_WAITS: f64 = 0.5;

/// No single instance of a server has more workers than this.
pub(super) const MOST_WORKERS: f64 = 10_000.0;

/// Settings that limit a database's connections.
const BUDGETS: &[&str] = &["max_connections"];

/// Fixes, safest first.
pub(super) fn fixes(case: &Case<'_>, pool: &Pool, held: Option<&WorkerHold>) -> Vec<Fix> {
    let view = stretch(case);
    let fix = Fix::advice;
    let mut fixes = Vec::new();
    if let Some((most, held)) = pool.most.zip(held) {
        let offered = case.peak_offered_per_second();
        let at_once = offered * held.ms / 1e3;
        let needed = (at_once / WELL_USED).ceil().max((most + 1.0).ceil()).min(MOST_WORKERS);
        let text = format!(
            "Raise the workers from {most:.0} to {}: {offered:.0} requests/s that each hold one for {} are {at_once:.1} at once by Little's law, and uneven arrivals need room.{}",
            thousands(needed),
            ms(held.ms),
            limits(&view, pool, most, needed) + &next_limit(case, &view, needed)
        );
        let mut raise = fix(
            text,
            Some(
                "Each may hold a connection to the database; threads of one interpreter share one CPU at a time, processes do not.",
            ),
        );
        let bounds = Bounds { least: 1.0, most: MOST_WORKERS };
        let change = SettingChange::new(Direction::Raise, "the workers", Unit::Count, Some(most), needed, bounds);
        raise.command = pool
            .workers
            .as_ref()
            .zip(change.ok())
            .and_then(|(w, change)| command(w.server, change.to, processes(&view, pool)));
        fixes.push(raise);
        if held.waits_ratio() >= MOSTLY_WAITS {
            fixes.push(fix(
                format!(
                    "Or let a worker take further requests while it waits, which is {} of its time: fibres (Falcon), async workers, virtual threads.",
                    percent(held.waits_ratio())
                ),
                Some("The queue then moves inside: connections to the database and calls of downstream services need their own limits and deadlines."),
            ));
        }
    }
    let name = held.and_then(WorkerHold::slowest).map_or_else(|| "downstream services".to_owned(), |n| n.name.clone());
    fixes.push(fix(
        format!("Give calls of {name} and statements a deadline: it bounds the time that a worker is held."),
        Some("Some requests are then answered with an error."),
    ));
    fixes.push(fix(
        "Reject early what can't be served in time: a shorter accept queue, and the liveness probe on a separate port."
            .to_owned(),
        Some("Clients see refusals sooner; they have to retry later, not at once."),
    ));
    fixes
}

/// What more of them cost: memory, and connections to the database.
fn limits(view: &View<'_>, pool: &Pool, most: f64, needed: f64) -> String {
    let mut text = String::new();
    let source = pool.outside.as_ref().map(|o| o.source.as_str()).unwrap_or_default();
    if let Ok(memory) =
        view.gauge_where(|s| s == source, metrics::server::MEMORY_USAGE_BYTES.name, &[("role", "worker")], "")
    {
        let each = memory.max / processes(view, pool);
        text += &format!(" Threads cost little memory; a further process takes {}.", bytes(each));
    }
    let budget = BUDGETS.iter().find_map(|name| view.setting(name, "").ok()?.parse::<f64>().ok());
    if let Some(budget) = budget {
        text += &format!(
            " If each holds a connection, this instance takes {} of the {} that the database allows, after {most:.0}.",
            thousands(needed),
            thousands(budget)
        );
    }
    text
}

/// Which limit the workers would meet next: their connections to the database, where each needs one and the
/// pool has fewer.
fn next_limit(case: &Case<'_>, view: &View<'_>, needed: f64) -> String {
    let reported = NAMES.iter().find_map(|names| view.gauge(names.max, &[], APP_METRICS).ok()).map(|most| most.max);
    let open = || UnreportedPool::for_case(case).ok().map(|pool| pool.open());
    let (connections, has) = match (reported, open()) {
        (Some(most), _) => (most, format!("the pool has {most:.0}")),
        (None, Some(open)) => (open, format!("no more than {open:.0} were ever open")),
        (None, None) => return String::new(),
    };
    if connections >= needed {
        return String::new();
    }
    format!(
        " {0} workers need {0} connections to the database; {has}: that limit binds next, so raise the pool with them.",
        thousands(needed)
    )
}

/// How to configure the server.
fn command(server: &str, needed: f64, processes: f64) -> Option<String> {
    let each = (needed / processes.max(1.0)).ceil();
    Some(match server {
        "Puma" => format!("threads {each:.0}, {each:.0}  # in config/puma.rb, for each of {processes:.0} workers"),
        "uWSGI" => format!("processes = {needed:.0}"),
        "PHP-FPM" => format!("pm.max_children = {needed:.0}"),
        "Tomcat" => format!("server.tomcat.threads.max={needed:.0}"),
        "Jetty" => format!("server.jetty.threads.max={needed:.0}"),
        _ => return None,
    })
}
