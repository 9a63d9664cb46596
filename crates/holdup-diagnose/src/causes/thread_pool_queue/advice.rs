//! What to do about a pool whose groups are held: how many groups and how long a stall this load
//! asks for, and which statement holds the threads.

use crate::change::Fix;
use holdup_signals::View;

use crate::case::Case;
use crate::causes::{ms, thousands, timing};
use crate::change::database::Server;
use crate::change::parameters::{Engine, POOL_SIZE, POOL_STALL_LIMIT};
use crate::change::{Direction, cut, host};
use crate::resources::statements;

/// A statement that takes so many times the usual one holds its group up.
const STALLED: f64 = 10.0;

/// Steps of a stall limit, milliseconds: the pool's timer looks no more often than that.
const STALL_STEP_MS: f64 = 10.0;

/// More groups than this for each CPU, and the pool protects the server no more.
const GROUPS_PER_CPU: f64 = 4.0;

/// Groups at most where the recording does not say how many CPUs there are.
const GROUPS_MOST: f64 = 16.0;

/// Safest first; `waiting` statements stand in the pool's queue on average.
pub(super) fn fixes(case: &Case<'_>, completed: f64, waiting: Option<f64>) -> Vec<Fix> {
    let view = case.slow();
    vec![stall(&view, completed), groups(&view, waiting.unwrap_or(0.0)), shorten(&view)]
}

/// A stall is what takes far longer than a usual statement.
fn stall(view: &View<'_>, completed: f64) -> Fix {
    let server = Server::find(view, Engine::MySql);
    let usual_ms = timing::server_timing(view, completed).map_or(0.0, |timing| timing.p50_ms);
    let to = ((STALLED * usual_ms / STALL_STEP_MS).ceil() * STALL_STEP_MS).max(STALL_STEP_MS);
    match server.change(Direction::Lower, &POOL_STALL_LIMIT, to) {
        Ok(change) => {
            let usual =
                if usual_ms > 0.0 { format!(" (a usual statement takes {})", ms(usual_ms)) } else { String::new() };
            let why = format!("a group whose thread is held then starts another one sooner{usual}");
            change.fix(&why, server.steps(&[(&POOL_STALL_LIMIT, &change)]), "More threads run at the same time.")
        }
        Err(stay) => stay.fix("A shorter stall limit does not help here."),
    }
}

/// As many groups as statements want to run at once, and no more than the CPUs carry.
fn groups(view: &View<'_>, waiting: f64) -> Fix {
    let server = Server::find(view, Engine::MySql);
    let cpus = host::cpus(view);
    let running = view
        .busy_sessions()
        .map_or(0.0, |busy| busy.groups.iter().filter(|g| g.true_state == "executing").map(|g| g.mean).sum::<f64>());
    let at_once = (running + waiting).ceil();
    let most = cpus.map_or(GROUPS_MOST, |cpus| GROUPS_PER_CPU * cpus);
    match server.change(Direction::Raise, &POOL_SIZE, at_once.max(cpus.unwrap_or(1.0)).min(most)) {
        Ok(change) => {
            let why = format!(
                "{} statements wanted to run at once, and a long one then blocks fewer of the others",
                thousands(at_once)
            );
            change.fix(
                &why,
                server.steps(&[(&POOL_SIZE, &change)]),
                "With many more groups than cores the pool protects the server less.",
            )
        }
        Err(stay) => stay.fix("More thread groups do not help here."),
    }
}

fn shorten(view: &View<'_>) -> Fix {
    let text = match statements::holding(view, "executing") {
        Some((statement, sessions)) => format!(
            "Make the statement that holds the threads shorter, or move it to a replica: {} ({sessions:.1} sessions ran it on average).",
            cut(&statement)
        ),
        None => "Find the statements that hold the threads (longest by total time) and make them shorter, or move them to a replica.".to_owned(),
    };
    Fix { text, command: None, keep: None, risk: None }
}
