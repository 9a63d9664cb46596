//! `currentOp` as rows: a session for each operation of a client, with what it waits for, and counts of
//! them. holdup's own reads are left out.

use std::collections::BTreeMap;

use holdup_recording::rows::Session;
use holdup_recording::{Labels, Text, metrics};
use holdup_sql::{Dialect, digest_of_text, trace_id};

use crate::Figure;
use crate::index_builds::index_builds;
use crate::shape::shape;
use crate::value::Value;

/// The name that holdup's sources give themselves when they connect.
pub const OWN_NAME: &str = "holdup";

/// What was in progress at an instant.
#[derive(Debug, Default)]
pub struct Operations {
    /// One row for each operation of a client.
    pub sessions: Vec<Session>,
    /// Their numbers, by command and state and by what they wait for; and index builds.
    pub figures: Vec<Figure>,
}

/// The operations of `list`, as `source` had them at `at` (nanoseconds since 1970).
#[must_use]
pub fn operations(list: &[Value], at: i64, source: &str) -> Operations {
    let mut found = Operations::default();
    let mut states: BTreeMap<(String, &'static str), f64> = BTreeMap::new();
    let mut waits: BTreeMap<&'static str, f64> = BTreeMap::new();
    for operation in list {
        // The server's own threads have no connection.
        let Some(id) = operation.get("connectionId").and_then(Value::number).filter(|_| !is_own(operation)) else {
            continue;
        };
        let wait = wait(operation);
        let true_state = true_state(operation, wait);
        let command = operation.get("op").and_then(Value::text).unwrap_or("none");
        *states.entry((command.to_owned(), true_state)).or_default() += 1.0;
        if true_state != "idle" {
            *waits.entry(wait.map_or("none", Wait::name)).or_default() += 1.0;
        }
        found.sessions.push(session(operation, (id as i64, at, source), command, (true_state, wait)));
    }
    let states = states.into_iter().map(|((command, true_state), count)| {
        let labels = Labels::new([("command", command.as_str()), ("true_state", true_state)]);
        Figure::new(metrics::mongodb::SESSIONS, labels, count)
    });
    let waits = waits.into_iter().map(|(wait, count)| {
        let labels = Labels::new([("wait", wait)]);
        Figure::new(metrics::mongodb::ACTIVE_OPERATIONS, labels, count)
    });
    found.figures.extend(states.chain(waits));
    found.figures.extend(index_builds(list));
    found
}

fn is_own(operation: &Value) -> bool {
    let stage = |stages: &Value| stages.items().first().is_some_and(|stage| stage.get("$currentOp").is_some());
    operation.get("appName").and_then(Value::text) == Some(OWN_NAME)
        || operation.at(&["command", "currentOp"]).is_some()
        || operation.at(&["command", "pipeline"]).is_some_and(stage)
}

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// A lock that another operation holds.
    Lock,
    /// One of the server's own latches (shown from 4.2 to 7.0).
    Latch,
    /// A ticket of the storage engine (8.0 shows the queue).
    Ticket,
    /// The primary holds writes back until the secondaries have caught up.
    FlowControl,
}

impl Wait {
    fn name(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Latch => "latch",
            Self::Ticket => "ticket",
            Self::FlowControl => "flow_control",
        }
    }

    /// The text of a session's state.
    fn words(self) -> &'static str {
        match self {
            Self::Lock => "waiting for a lock",
            Self::Latch => "waiting for a latch",
            Self::Ticket => "waiting for a ticket",
            Self::FlowControl => "held back by flow control",
        }
    }
}

fn wait(operation: &Value) -> Option<Wait> {
    let is = |field: &str| operation.get(field).is_some_and(Value::is_true);
    let has = |field: &str| operation.get(field).is_some_and(|it| !it.entries().is_empty());
    match () {
        () if has("currentQueue") => Some(Wait::Ticket),
        () if is("waitingForFlowControl") => Some(Wait::FlowControl),
        () if is("waitingForLock") => Some(Wait::Lock),
        () if has("waitingForLatch") => Some(Wait::Latch),
        () => None,
    }
}

fn true_state(operation: &Value, wait: Option<Wait>) -> &'static str {
    match wait {
        _ if operation.get("active") == Some(&Value::Bool(false)) => "idle",
        Some(Wait::Ticket | Wait::FlowControl) => "queued",
        Some(Wait::Lock | Wait::Latch) => "lock_wait",
        None => "executing",
    }
}

fn session(
    operation: &Value,
    (id, at, source): (i64, i64, &str),
    command: &str,
    (true_state, wait): (&str, Option<Wait>),
) -> Session {
    let text = |field: &str| operation.get(field).and_then(Value::text);
    let nanoseconds = |us: f64| (0.0..9e15).contains(&us).then_some((us * 1e3) as i64);
    let microseconds = operation.get("microsecs_running").and_then(Value::number);
    let age_us = microseconds.or_else(|| Some(operation.get("secs_running")?.number()? * 1e6));
    let queued_us = operation.at(&["currentQueue", "timeQueuedMicros"]).and_then(Value::number);
    let namespace = text("ns").unwrap_or_default();
    let digest_text = (true_state != "idle").then(|| shape(operation, namespace)).flatten();
    let user = operation.get("effectiveUsers").and_then(|users| users.items().first()?.get("user")?.text());
    let comment = operation.at(&["command", "comment"]);
    let state = wait.map(Wait::words).or_else(|| text("planSummary").map(|summary| plan(operation, summary)));
    Session {
        observed_at: at,
        source: source.into(),
        session_id: id,
        user: user.map(Text::from),
        client: text("client").map(Text::from),
        database: namespace.split('.').next().filter(|name| !name.is_empty()).map(Text::from),
        command: command.into(),
        state: state.map(Text::from),
        true_state: true_state.into(),
        queued_ns: queued_us.and_then(nanoseconds),
        age_ns: age_us.and_then(nanoseconds),
        digest: digest_text.as_deref().map(|text| digest_of_text(text).into()),
        digest_text: digest_text.map(Text::from),
        trace_id: comment.and_then(comment_trace_id).map(Text::from),
        ..Session::default()
    }
}

/// The state of an operation that goes through an index in its order, which no condition of its filter bounds.
const UNBOUNDED_INDEX: &str = "IXSCAN without a condition on the index";

/// The kind of a plan, without the index: `IXSCAN { a: 1 }`.
fn plan<'s>(operation: &Value, summary: &'s str) -> &'s str {
    if is_unbounded(operation, summary) {
        return UNBOUNDED_INDEX;
    }
    summary.split(' ').next().unwrap_or_default()
}

/// Whether the first field of the only index is one to sort by and none of the filter's: every entry is read
/// until enough documents match.
fn is_unbounded(operation: &Value, summary: &str) -> bool {
    let Some((field, _)) = summary.strip_prefix("IXSCAN {").and_then(|rest| rest.trim_start().split_once(':')) else {
        return false;
    };
    let at = |part: &str| operation.at(&["command", part]).filter(|part| !part.entries().is_empty());
    let (Some(filter), Some(sort)) = (at("filter"), at("sort")) else { return false };
    !summary.contains(',') && sort.get(field).is_some() && !has_field(filter, field)
}

/// Whether a filter names a field, at its top or within `$or` and `$and`.
fn has_field(filter: &Value, field: &str) -> bool {
    filter.entries().iter().any(|(name, value)| {
        name == field || name.starts_with('$') && value.items().iter().any(|part| has_field(part, field))
    })
}

/// The trace id in a command's `comment`, which clients write as in a statement's.
#[must_use]
pub fn comment_trace_id(comment: &Value) -> Option<String> {
    trace_id(format!("/*{}*/", comment.text()?), Dialect::MySql)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bson::Document;
    use crate::writer::Writer;

    fn operation(id: i32, fill: impl FnOnce(Writer) -> Writer) -> Value {
        let filter = Writer::new().text("_id", "canary");
        let command = Writer::new().text("find", "orders").document("filter", filter);
        let head = Writer::new().bool("active", true).int("connectionId", id).text("op", "query");
        let bytes = fill(head.text("ns", "shop.orders").document("command", command)).finish();
        Document::read(&bytes).unwrap().value().unwrap()
    }

    #[test]
    fn an_index_that_only_sorts_differs_from_one_that_finds() {
        let state = |plan: &str, filter: Writer| {
            let command = Writer::new().text("find", "t").document("filter", filter);
            let command = command.document("sort", Writer::new().int("height", -1));
            let head = Writer::new().bool("active", true).int("connectionId", 1).text("op", "query").text("ns", "a.t");
            let bytes = head.document("command", command).text("planSummary", plan).finish();
            let list = [Document::read(&bytes).unwrap().value().unwrap()];
            operations(&list, 7, "mongodb://x").sessions[0].state.as_deref().map(str::to_owned)
        };
        let other = || Writer::new().text("owner", "canary");
        assert_eq!(state("IXSCAN { height: -1 }", other()).as_deref(), Some(UNBOUNDED_INDEX));
        assert_eq!(state("IXSCAN { height: -1 }", other().int("height", 7)).as_deref(), Some("IXSCAN"));
        assert_eq!(state("IXSCAN { owner: 1 }", other()).as_deref(), Some("IXSCAN"));
    }

    #[test]
    fn the_trace_id_is_that_of_the_comment() {
        for (comment, expected) in [
            (
                "traceparent='00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'",
                Some("0af7651916cd43dd8448eb211c80319c"),
            ),
            ("*/ canary", None),
        ] {
            let command = Writer::new().text("find", "orders").text("comment", comment);
            let bytes = Writer::new().int("connectionId", 1).document("command", command).finish();
            let list = [Document::read(&bytes).unwrap().value().unwrap()];
            let found = operations(&list, 7, "mongodb://x").sessions;
            assert_eq!(found[0].trace_id.as_deref(), expected);
            assert!(!format!("{found:?}").contains("canary"));
        }
    }

    #[test]
    fn each_operation_says_what_it_waits_for() {
        let list = [
            operation(1, |it| it.bool("waitingForLock", true).long("microsecs_running", 1_500)),
            operation(2, |it| it.document("waitingForLatch", Writer::new().text("captureName", "m"))),
            operation(3, |it| it.bool("waitingForFlowControl", true)),
            operation(4, |it| {
                let queue = Writer::new().text("name", "execution").long("timeQueuedMicros", 70);
                it.document("currentQueue", queue)
            }),
            operation(5, |it| it.text("planSummary", "IXSCAN { _id: 1 }").document("currentQueue", Writer::new())),
            operation(6, |it| it.text("appName", "holdup")),
        ];
        let found = operations(&list, 7, "mongodb://x");
        let states: Vec<(i64, &str, Option<&str>)> = found
            .sessions
            .iter()
            .map(|session| (session.session_id, session.true_state.as_str(), session.state.as_deref()))
            .collect();
        let expected = [
            (1, "lock_wait", Some("waiting for a lock")),
            (2, "lock_wait", Some("waiting for a latch")),
            (3, "queued", Some("held back by flow control")),
            (4, "queued", Some("waiting for a ticket")),
            (5, "executing", Some("IXSCAN")),
        ];
        assert_eq!(states, expected, "holdup's own read is left out");
        assert_eq!((found.sessions[0].age_ns, found.sessions[3].queued_ns), (Some(1_500_000), Some(70_000)));
        assert!(!format!("{:?}", found.sessions).contains("canary"));
        let waits = found.figures.iter().filter(|it| it.metric == metrics::mongodb::ACTIVE_OPERATIONS.name);
        assert_eq!(waits.map(|it| it.value).sum::<f64>(), 5.0);
    }
}
