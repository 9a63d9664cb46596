//! What to do about a pool whose groups are held: how many groups and how long a stall this load
//! asks for, and which statement holds the threads.

use super::elsewhere;
use crate::case::Case;
use crate::causes::{capital, ms, thousands, timing};
use crate::change::Fix;
use crate::change::database::Server;
use crate::change::parameters::{Engine, POOL_MAX_THREADS, POOL_OVERSUBSCRIBE, POOL_SIZE, POOL_STALL_LIMIT};
use crate::change::{Direction, host};
use holdup_recording::metrics::mysql;
use holdup_signals::View;

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
    let (view, waiting) = (case.slow(), waiting.unwrap_or(0.0));
    // Neither a shorter stall nor another group starts a thread that may not exist.
    if let Some(more) = more_threads(&view, waiting) {
        return vec![more, elsewhere::heaviest(&view)];
    }
    let settings = [Some(stall(&view, completed)), Some(groups(&view, waiting)), oversubscribe(&view, waiting)];
    settings.into_iter().flatten().chain([elsewhere::heaviest(&view)]).collect()
}

/// More threads in all, if the pool has as many as it may.
fn more_threads(view: &View<'_>, waiting: f64) -> Option<Fix> {
    let server = Server::find(view, Engine::MySql);
    let most = server.number(&POOL_MAX_THREADS)?;
    let threads = view.gauge(mysql::THREAD_POOL_THREADS.name, &[], "").ok()?;
    if threads.max < most {
        return None;
    }
    let why = format!(
        "the pool has all {} threads that it may have, so it starts none for a stalled group, whatever the stall limit and the number of groups",
        thousands(most)
    );
    Some(match server.change(Direction::Raise, &POOL_MAX_THREADS, (threads.max + waiting).ceil()) {
        Ok(change) => change.fix(
            &why,
            server.steps(&[(&POOL_MAX_THREADS, &change)]),
            "Each thread takes memory for its stack, and more statements run at the same time.",
        ),
        Err(stay) => stay.fix(&format!("{}.", capital(&why))),
    })
}

/// More active threads for each group, if groups have as many as they may while statements wait.
fn oversubscribe(view: &View<'_>, waiting: f64) -> Option<Fix> {
    let server = Server::find(view, Engine::MySql);
    let (each, size) = (server.number(&POOL_OVERSUBSCRIBE)?, server.number(&POOL_SIZE)?);
    let active = mysql::THREAD_POOL_GROUP_ACTIVE_THREADS.name;
    let groups = view.label_values(active, "group").into_iter();
    let most =
        groups.filter_map(|group| Some(view.gauge(active, &[("group", &group)], "").ok()?.max)).reduce(f64::max)?;
    let is_used_up = most > each && waiting > 0.0;
    let to = each + (waiting / size.max(1.0)).ceil();
    let change = server.change(Direction::Raise, &POOL_OVERSUBSCRIBE, to).ok().filter(|_| is_used_up)?;
    let why = format!("a group had {most:.0} threads active, which is all that it may have beside a stalled one");
    Some(change.fix(
        &why,
        server.steps(&[(&POOL_OVERSUBSCRIBE, &change)]),
        "More threads than CPUs are active then: it helps if statements wait, and costs context switches if they compute.",
    ))
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
