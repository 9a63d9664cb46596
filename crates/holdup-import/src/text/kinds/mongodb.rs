//! MongoDB's `db.serverStatus()`, `db.currentOp()` and `db.stats()`, as JSON or as its shells print
//! them. What they mean is for `holdup-mongodb`, which replaces values in operations by `?`.

use holdup_recording::{Labels, metrics};

use super::{Context, Document, Kind, Value};

const STATUS: &str = "db.serverStatus()";
const OPERATIONS: &str = "db.currentOp()";

/// The source of what MongoDB says.
const SOURCE: &str = "mongodb://pasted";

pub(super) const STATUS_KIND: Kind =
    Kind::document(STATUS, |head| ["host", "process", "uptime"].iter().all(|key| head.get(key).is_some()), read_status);

pub(super) const OPERATIONS_KIND: Kind = Kind::document(
    OPERATIONS,
    |head| head.get("inprog").is_some() || head.items().first().is_some_and(is_operation),
    read_operations,
);

/// A line of mongod's log, alone or pretty-printed over many lines.
pub(super) const RECORD_KIND: Kind = Kind::document(
    "mongod's log",
    |head| ["t", "s", "c", "msg"].iter().all(|key| head.get(key).is_some()) && head.get("attr").is_some(),
    super::explain::read_record,
);

/// Tickets of WiredTiger, cut out of the status.
pub(super) const TICKETS_KIND: Kind = Kind::document(
    "concurrentTransactions",
    |head| ["read", "write"].iter().all(|side| head.at(&[*side, "totalTickets"]).is_some()),
    read_tickets,
);

pub(super) const DATABASE_KIND: Kind = Kind::document(
    "db.stats()",
    |head| ["db", "dataSize", "storageSize"].iter().all(|key| head.get(key).is_some()),
    read_database,
);

fn is_operation(value: &Value) -> bool {
    value.get("opid").is_some() && (value.get("op").is_some() || value.get("desc").is_some())
}

fn note_cut(document: &Document, context: &mut Context) {
    if document.is_cut {
        context.out.note("MongoDB: a document ends before its last bracket; what follows is unknown");
    }
}

fn read_status(document: &Document, context: &mut Context) {
    note_cut(document, context);
    let stamp = document.value.get("localTime").and_then(Value::text);
    let stamp = stamp.and_then(holdup_recording::clock::parse_rfc3339);
    if let Some(at) = stamp {
        context.set_time(at);
    }
    let at = if stamp.is_some() { context.instant() } else { context.instant_of(STATUS) };
    let found = holdup_mongodb::status(&document.value);
    for figure in found.figures {
        context.out.gauge(at, SOURCE, &figure.metric, figure.labels, figure.value);
    }
    for (setting, value) in found.settings {
        context.out.setting(at, SOURCE, setting, value);
    }
}

fn read_tickets(document: &Document, context: &mut Context) {
    let at = context.instant_of("concurrentTransactions");
    let part = |name: &str, value: Value| Value::Map(vec![(name.to_owned(), value)]);
    let whole = part("wiredTiger", part("concurrentTransactions", document.value.clone()));
    for figure in holdup_mongodb::status(&whole).figures {
        context.out.gauge(at, SOURCE, &figure.metric, figure.labels, figure.value);
    }
}

fn read_database(document: &Document, context: &mut Context) {
    note_cut(document, context);
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
    note_cut(document, context);
    let at = context.instant_of(OPERATIONS);
    let operations = document.value.get("inprog").unwrap_or(&document.value);
    let found = holdup_mongodb::operations(operations.items(), at, SOURCE);
    for figure in found.figures {
        context.out.gauge(at, SOURCE, &figure.metric, figure.labels, figure.value);
    }
    context.out.batch.sessions.extend(found.sessions);
}
