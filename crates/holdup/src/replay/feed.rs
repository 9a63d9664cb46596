//! Turns a survey of the logs into a load for the engine: operations, connections, times.

use std::sync::Arc;
use std::time::Duration;

use holdup_load::model::Load;
use holdup_load::scenario::{MAX_CONNECTIONS, Operation, Scenario, Target};
use holdup_load::schedule::Schedule;
use holdup_load::schedule::played::{Action, Feed, MixSettings, PlannedExecution, Play, RecordedMix, Rows, Statement};
use holdup_logs::digest::Dialect;
use holdup_logs::replay::mix::{self, Mix, Rules};
use holdup_logs::replay::order::{HELD_BACK_BYTES, Order};
use holdup_logs::replay::source::Logs;
use holdup_logs::replay::survey::Survey;

/// Statements with their own operation; all others share one. Each operation has histograms in
/// every second, hundreds of kilobytes that a low-priority thread must write: with 400 operations a
/// busy machine fell behind by 10 GB. The executions have the time of every statement.
const MOST_OPERATIONS: usize = 50;

/// The name of the shared operation.
const OTHERS: &str = "(other statements)";

/// Longest name of an operation, in characters.
const LONGEST_NAME: usize = 60;

/// How much longer than the log the replay is scheduled: the last statement may take longer than it
/// did.
const SLACK: Duration = Duration::from_millis(1);

/// Connections beyond the log's maximum plus an eighth of it.
const SPARE_CONNECTIONS: u32 = 4;

/// A mix and how to play it.
pub struct Plan<'a> {
    /// The logs.
    pub logs: &'a Logs,
    /// What may be sent.
    pub rules: &'a Rules,
    /// The survey of the logs.
    pub survey: &'a Survey,
    /// The target.
    pub target: Target,
    /// The speed, as a multiple of the log's.
    pub speed: f64,
    /// Most concurrent sessions.
    pub sessions: Option<u32>,
    /// How result rows are treated.
    pub rows: Rows,
}

/// The scenario that plays it.
pub fn plan(plan: Plan<'_>) -> Scenario {
    let Plan { logs, rules, survey, mut target, speed, sessions, rows } = plan;
    let is_mysql = rules.dialect != Dialect::PostgreSql;
    if !is_mysql && let Some(database) = rules.database.as_deref().or(survey.database.as_deref()) {
        // Without a database, PostgreSQL uses the account's name as one when the target is first
        // checked.
        target = target.or_in(database);
    }
    let (names, of_shape) = operations(survey);
    let operation = |name: String| Operation {
        name,
        method: String::new(),
        path: String::new(),
        headers: Vec::new(),
        body: None,
        weight: 1,
    };
    let first_us = survey.first_us;
    let length = Duration::from_secs_f64(survey.last_us.abs_diff(first_us) as f64 / 1e6 / speed) + SLACK;
    let mut mix = Mix::new(Order::new(logs.read(), HELD_BACK_BYTES), rules.clone(), Some(Arc::clone(&survey.lasts)));
    mix.shapes.clone_from(&survey.shapes);
    let digests: Vec<Arc<str>> = survey.shapes.all.iter().map(|shape| Arc::clone(&shape.digest)).collect();
    let play = move |item: mix::Item| {
        let due_ns = ((item.begin_us - first_us) as f64 * 1e3 / speed) as i64;
        let action = match item.action {
            mix::Action::Open(entry) => Action::Open(entry),
            mix::Action::Close => Action::Close,
            mix::Action::Execute(ask) => {
                let shape = ask.shape as usize;
                let before = ask.goes_to.map(|text| Statement { text, ..Statement::default() });
                // PostgreSQL needs no extra round trip to prepare a statement.
                let is_prepared = is_mysql && !ask.parameters.is_empty();
                let own = Statement { text: ask.text, is_prepared, parameters: ask.parameters };
                Action::Execute(
                    Box::new(PlannedExecution {
                        operation: of_shape.get(shape).copied().unwrap_or(0),
                        number: ask.number,
                        statements: before.into_iter().chain([own]).collect(),
                        digest: digests.get(shape).cloned().unwrap_or_default(),
                        logged_ns: ask.took_us.and_then(|took| i64::try_from(took).ok()).map(|took| took * 1_000),
                        trace_id: ask.trace_id.map(String::into_boxed_str),
                    }),
                    ask.entry,
                )
            }
        };
        Play { session: item.session, due_ns, action }
    };
    let feed: Feed = Box::new(mix.map(play));
    let played = RecordedMix::new(survey.per_second.clone(), length, manner(is_mysql, rules.writes, rows), feed);
    let name = if speed == 1.0 { "replay".to_owned() } else { format!("replay at {speed} times its speed") };
    let schedule = Schedule::played(played, name);
    let operations = names.into_iter().map(operation).collect();
    let mut scenario = Scenario::new("replay", target, Load::Open(schedule), operations);
    let most = sessions.unwrap_or(MAX_CONNECTIONS);
    // The next session need not wait because one leaves a little later than it did.
    let at_once = survey.most_sessions.saturating_add(survey.most_sessions / 8 + SPARE_CONNECTIONS);
    scenario.connections = at_once.clamp(1, most);
    // The statements keep their own trace ids.
    scenario.trace = false;
    scenario.http.max_response_bytes = u64::MAX;
    scenario
}

/// Read-only sessions also say so to the server, which then rejects writes that a statement's words
/// do not show.
fn manner(is_mysql: bool, writes: bool, rows: Rows) -> MixSettings {
    let mut manner = MixSettings { rows, ..MixSettings::default() };
    if !writes && is_mysql {
        let text = "SET SESSION TRANSACTION READ ONLY".to_owned();
        manner.opening.push(Statement { text, ..Statement::default() });
    } else if !writes {
        // A session returns to its initial settings when it is reset.
        manner.settings.push(("default_transaction_read_only".to_owned(), "on".to_owned()));
    }
    manner
}

/// Names of the operations, and each shape's operation: first those that took the most time in the
/// log.
fn operations(survey: &Survey) -> (Vec<String>, Vec<u32>) {
    let shapes = &survey.shapes.all;
    let mut order: Vec<usize> = (0..shapes.len()).filter(|at| shapes.get(*at).is_some_and(|s| s.sent > 0)).collect();
    order.sort_by_key(|at| shapes.get(*at).map(|s| std::cmp::Reverse((s.took_us, s.sent))));
    let mut names: Vec<String> = Vec::new();
    let mut of_shape = vec![0; shapes.len()];
    let mut known = std::collections::HashSet::new();
    let others = order.len().saturating_sub(MOST_OPERATIONS);
    for (place, at) in order.iter().enumerate() {
        let (Some(shape), Some(own)) = (shapes.get(*at), of_shape.get_mut(*at)) else { continue };
        *own = u32::try_from(place.min(MOST_OPERATIONS)).unwrap_or(u32::MAX);
        if place < MOST_OPERATIONS {
            let mut name = shortened(&shape.text);
            if !known.insert(name.clone()) {
                name = format!("{name} {}", shape.digest.get(..8).unwrap_or_default());
                known.insert(name.clone());
            }
            names.push(name);
        }
    }
    if others > 0 {
        names.push(OTHERS.to_owned());
    }
    (names, of_shape)
}

fn shortened(text: &str) -> String {
    match text {
        "" => "(empty)".to_owned(),
        text if text.chars().count() <= LONGEST_NAME => text.to_owned(),
        text => text.chars().take(LONGEST_NAME - 1).collect::<String>() + "…",
    }
}
