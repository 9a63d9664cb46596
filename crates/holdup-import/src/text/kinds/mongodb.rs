//! MongoDB's `db.serverStatus()`, `db.currentOp()` and `db.stats()`, as JSON or as its shells print
//! them. Values in operations are replaced by `?`.

use std::collections::BTreeMap;

use holdup_recording::rows::Session;
use holdup_recording::{Labels, Text, metrics};
use holdup_sql::digest_of_text;

use super::super::context::Context;
use super::super::json::{self, Document, Value};
use super::super::paste::Line;
use super::Kind;
use super::mongodb_shape::shape;

/// Names of the kinds.
pub(super) const STATUS: &str = "db.serverStatus()";
pub(super) const OPERATIONS: &str = "db.currentOp()";
pub(super) const DATABASE: &str = "db.stats()";

/// The source of what MongoDB says.
const SOURCE: &str = "mongodb://pasted";

/// Most figures of one status.
const FIGURES_MAX: usize = 5_000;

pub(super) const STATUS_KIND: Kind = Kind {
    name: STATUS,
    recognises: |lines| {
        has(lines, |head| head.get("host").is_some() && head.get("process").is_some() && head.get("uptime").is_some())
    },
    read: |lines, context| with_document(lines, context, read_status),
};

pub(super) const OPERATIONS_KIND: Kind = Kind {
    name: OPERATIONS,
    recognises: |lines| {
        has(lines, |head| head.get("inprog").is_some() || head.items().first().is_some_and(is_operation))
    },
    read: |lines, context| with_document(lines, context, read_operations),
};

pub(super) const DATABASE_KIND: Kind = Kind {
    name: DATABASE,
    recognises: |lines| has(lines, |head| ["db", "dataSize", "storageSize"].iter().all(|key| head.get(key).is_some())),
    read: |lines, context| with_document(lines, context, read_database),
};

fn has(lines: &[Line], is_one: fn(&Value) -> bool) -> bool {
    json::head(lines).is_some_and(|head| is_one(&head))
}

fn is_operation(value: &Value) -> bool {
    value.get("opid").is_some() && (value.get("op").is_some() || value.get("desc").is_some())
}

fn with_document(lines: &[Line], context: &mut Context, put: fn(&Document, &mut Context)) -> usize {
    let Some(document) = json::read(lines) else {
        context.unread.push(0);
        return 1;
    };
    if document.is_cut {
        context.out.note("MongoDB: a document ends before its last bracket; what follows is unknown");
    }
    context.out.note("holdup has no rules for MongoDB yet: its figures are kept for those to come");
    put(&document, context);
    document.used
}

/// `bytes currently in the cache` and `globalLock` as parts of a metric's name.
fn snake(name: &str) -> String {
    let mut out = String::new();
    let mut before = ' ';
    for c in name.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            out.push('_');
        }
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.ends_with('_') && !out.is_empty() {
            out.push('_');
        }
        before = c;
    }
    out.trim_end_matches('_').to_owned()
}

fn read_status(document: &Document, context: &mut Context) {
    let status = &document.value;
    let stamp = status.get("localTime").and_then(Value::text).and_then(holdup_recording::clock::parse_rfc3339);
    if let Some(at) = stamp {
        context.set_time(at);
    }
    let at = if stamp.is_some() { context.instant() } else { context.instant_of(STATUS) };
    let mut figures = Vec::new();
    for (name, value) in status.entries() {
        // Identities, and figures that have their own metric.
        if !matches!(name.as_str(), "pid" | "ok" | "uptime" | "uptimeMillis" | "uptimeEstimate" | "mem" | "opLatencies")
        {
            gather(&snake(name), value, &mut figures);
        }
    }
    for (name, value) in figures {
        context.out.gauge(at, SOURCE, metrics::mongodb::SERVER_STATUS.member(name).as_str(), Labels::none(), value);
    }
    for kind in ["reads", "writes", "commands", "transactions"] {
        let of = |field: &str| status.at(&["opLatencies", kind, field]).and_then(Value::number);
        // Latencies are sums in microseconds.
        for (metric, value) in [
            (metrics::mongodb::OPERATIONS, of("ops")),
            (metrics::mongodb::OPERATION_TIME, of("latency").map(|us| us / 1e6)),
        ] {
            if let Some(value) = value {
                context.out.gauge(at, SOURCE, metric.name, Labels::new([("kind", kind)]), value);
            }
        }
    }
    let resident = status.at(&["mem", "resident"]).and_then(Value::number).map(|mib| mib * 1_048_576.0);
    for (metric, value) in [
        (metrics::mongodb::MEMORY_RESIDENT_BYTES, resident),
        (metrics::mongodb::UPTIME, status.get("uptime").and_then(Value::number)),
    ] {
        if let Some(value) = value {
            context.out.gauge(at, SOURCE, metric.name, Labels::none(), value);
        }
    }
    for (setting, path) in [("version", &["version"][..]), ("storage_engine", &["storageEngine", "name"])] {
        if let Some(value) = status.at(path).and_then(Value::text) {
            context.out.setting(at, SOURCE, setting, value);
        }
    }
}

/// All numbers below `value`, by path.
fn gather(path: &str, value: &Value, into: &mut Vec<(String, f64)>) {
    if into.len() >= FIGURES_MAX || path.len() > 200 {
        return;
    }
    match value {
        Value::Number(number) => into.push((path.to_owned(), *number)),
        Value::Map(entries) => {
            for (name, value) in entries {
                gather(&format!("{path}_{}", snake(name)), value, into);
            }
        }
        _ => {}
    }
}

fn read_database(document: &Document, context: &mut Context) {
    let stats = &document.value;
    let at = context.instant();
    let Some(database) = stats.get("db").and_then(Value::text) else { return };
    let scale = stats.get("scaleFactor").and_then(Value::number);
    if scale.is_none() {
        context.out.note("db.stats(): before MongoDB 4.2 it does not show its scale; sizes were taken for bytes");
    }
    let scale = scale.unwrap_or(1.0);
    for (metric, field, factor) in [
        (metrics::mongodb::DATABASE_DATA_BYTES, "dataSize", scale),
        (metrics::mongodb::DATABASE_STORAGE_BYTES, "storageSize", scale),
        (metrics::mongodb::DATABASE_INDEX_BYTES, "indexSize", scale),
        (metrics::mongodb::DATABASE_OBJECTS, "objects", 1.0),
    ] {
        if let Some(value) = stats.get(field).and_then(Value::number) {
            context.out.gauge(at, SOURCE, metric.name, Labels::new([("database", database)]), value * factor);
        }
    }
}

fn read_operations(document: &Document, context: &mut Context) {
    let at = context.instant_of(OPERATIONS);
    let operations = document.value.get("inprog").unwrap_or(&document.value);
    let mut counts: BTreeMap<(String, &'static str), f64> = BTreeMap::new();
    for operation in operations.items() {
        let is_own = operation.at(&["command", "currentOp"]).is_some()
            || operation
                .at(&["command", "pipeline"])
                .is_some_and(|stages| stages.items().first().is_some_and(|stage| stage.get("$currentOp").is_some()));
        // The server's own threads have no connection.
        let Some(id) = operation.get("connectionId").and_then(Value::number).filter(|_| !is_own) else { continue };
        let true_state = true_state(operation);
        let command = operation.get("op").and_then(Value::text).unwrap_or("none");
        *counts.entry((command.to_owned(), true_state)).or_default() += 1.0;
        context.out.batch.sessions.push(session(operation, id as i64, command, true_state, at));
    }
    for ((command, true_state), count) in counts {
        let labels = Labels::new([("command", command.as_str()), ("true_state", true_state)]);
        context.out.gauge(at, SOURCE, metrics::mongodb::SESSIONS.name, labels, count);
    }
}

fn true_state(operation: &Value) -> &'static str {
    let is = |field: &str| operation.get(field).is_some_and(Value::is_true);
    match () {
        () if operation.get("active") == Some(&Value::Bool(false)) => "idle",
        () if is("waitingForLock") || operation.get("waitingForLatch").is_some_and(|it| !it.entries().is_empty()) => {
            "lock_wait"
        }
        () => "executing",
    }
}

fn session(operation: &Value, id: i64, command: &str, true_state: &str, at: i64) -> Session {
    let text = |field: &str| operation.get(field).and_then(Value::text);
    let microseconds = operation.get("microsecs_running").and_then(Value::number);
    let age_us = microseconds.or_else(|| Some(operation.get("secs_running")?.number()? * 1e6));
    let namespace = text("ns").unwrap_or_default();
    let digest_text = (true_state != "idle").then(|| shape(operation, namespace)).flatten();
    let user = operation.get("effectiveUsers").and_then(|users| users.items().first()?.get("user")?.text());
    let state = if true_state == "lock_wait" { Some("waiting for a lock") } else { text("planSummary").map(plan) };
    Session {
        observed_at: at,
        source: SOURCE.into(),
        session_id: id,
        user: user.map(Text::from),
        client: text("client").map(Text::from),
        database: namespace.split('.').next().filter(|name| !name.is_empty()).map(Text::from),
        command: command.into(),
        state: state.map(Text::from),
        true_state: true_state.into(),
        age_ns: age_us.filter(|us| (0.0..9e15).contains(us)).map(|us| (us * 1e3) as i64),
        digest: digest_text.as_deref().map(|text| digest_of_text(text).into()),
        digest_text: digest_text.map(Text::from),
        ..Session::default()
    }
}

/// The kind of a plan, without the index: `IXSCAN { a: 1 }`.
fn plan(summary: &str) -> &str {
    summary.split(' ').next().unwrap_or_default()
}
