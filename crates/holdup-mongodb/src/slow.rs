//! One operation that a server reported after it ended: an entry `Slow query` of its log, or a document
//! of `system.profile`. Values are replaced by `?`; of a plan the names of its steps and of its index
//! are kept.

use crate::operations::comment_trace_id;
use crate::printed::printed;
use crate::shape::{namespace, reported_shape};
use crate::value::Value;

/// Most bytes of a plan's text.
const PLAN_BYTES_MAX: usize = 500;

/// An operation that has ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlowOperation {
    /// Its shape.
    pub shape: String,
    /// Its database.
    pub database: String,
    /// How long it took, nanoseconds; the server gives milliseconds.
    pub duration_ns: i64,
    /// `COLLSCAN`, or `IXSCAN { status: 1 }`.
    pub plan: Option<String>,
    /// Whether it read a collection from one end to the other.
    pub is_scan: bool,
    /// Whether it sorted what it found.
    pub has_sort: bool,
    /// Whether it wrote temporary files.
    pub used_disk: bool,
    /// The server's code, or 0 for an error without one; none if it succeeded.
    pub error: Option<i64>,
    /// Counts by name: see [`COUNTS`].
    pub counts: Vec<(&'static str, u64)>,
    /// Times by name, nanoseconds: see [`TIMES`].
    pub times: Vec<(&'static str, i64)>,
    /// Address of its client.
    pub client: Option<String>,
    /// The name by which its client introduced itself.
    pub application: Option<String>,
    /// Its account; only the profiler has it.
    pub user: Option<String>,
    /// The trace id of its comment.
    pub trace_id: Option<String>,
}

/// Counts, and our names for them.
pub const COUNTS: [(&str, &str); 12] = [
    ("keysExamined", "keys_examined"),
    ("docsExamined", "documents_examined"),
    ("nreturned", "returned"),
    ("ninserted", "inserted"),
    ("nModified", "modified"),
    ("ndeleted", "deleted"),
    ("writeConflicts", "write_conflicts"),
    ("numYields", "yields"),
    ("numYield", "yields"),
    ("reslen", "response_bytes"),
    ("responseLength", "response_bytes"),
    ("prepareReadConflicts", "prepare_conflicts"),
];

/// Times by their paths, nanoseconds of their unit, and our names for them.
pub const TIMES: [(&[&str], i64, &str); 10] = [
    (&["storage", "data", "timeReadingMicros"], 1_000, "storage_read"),
    (&["storage", "data", "timeWritingMicros"], 1_000, "storage_write"),
    (&["storage", "timeWaitingMicros", "cache"], 1_000, "cache_wait"),
    (&["storage", "timeWaitingMicros", "schemaLock"], 1_000, "schema_lock_wait"),
    (&["storage", "timeWaitingMicros", "handleLock"], 1_000, "handle_lock_wait"),
    (&["flowControl", "timeAcquiringMicros"], 1_000, "flow_control_wait"),
    (&["queues", "execution", "totalTimeQueuedMicros"], 1_000, "ticket_wait"),
    (&["waitForWriteConcernDurationMillis"], 1_000_000, "write_concern_wait"),
    (&["cpuNanos"], 1, "cpu"),
    (&["planningTimeMicros"], 1_000, "planning"),
];

impl SlowOperation {
    /// Reads the fields of an entry or a document; none if it says neither what was done nor how long
    /// it took.
    #[must_use]
    pub fn read(fields: &Value) -> Option<Self> {
        let number = |field: &str| fields.get(field).and_then(Value::number);
        let text = |field: &str| fields.get(field).and_then(Value::text).map(str::to_owned);
        let millis = number("durationMillis").or_else(|| number("millis")).filter(|ms| (0.0..=9e12).contains(ms))?;
        let command = fields.get("command").or_else(|| fields.get("query"));
        let name = text("ns").unwrap_or_default();
        // A batch of writes is logged on the database, and names its collection itself.
        let collection = command.filter(|_| name.ends_with(".$cmd") || name.is_empty()).map(namespace);
        let name = collection.filter(|name| !name.ends_with("$cmd") && name.contains('.')).unwrap_or(name);
        let plan = fields.get("planSummary").and_then(Value::text).and_then(plan);
        let counts = COUNTS.iter().filter_map(|(field, name)| Some((*name, count(number(field)?))));
        let times = TIMES.iter().filter_map(|(path, unit_ns, name)| {
            let time =
                fields.at(path).and_then(Value::number).filter(|time| (0.0..9e15 / *unit_ns as f64).contains(time))?;
            Some((*name, (time * *unit_ns as f64) as i64))
        });
        let locks = lock_wait_ns(fields).map(|wait_ns| ("lock_wait", wait_ns));
        let comment = command.and_then(|command| command.get("comment"));
        Some(Self {
            shape: reported_shape(fields, &name),
            database: name.split('.').next().unwrap_or_default().to_owned(),
            duration_ns: (millis * 1e6) as i64,
            is_scan: plan.as_deref().is_some_and(|plan| plan.split(", ").any(|step| step == "COLLSCAN")),
            plan,
            has_sort: fields.get("hasSortStage").is_some_and(Value::is_true),
            used_disk: fields.get("usedDisk").is_some_and(Value::is_true),
            error: error(fields),
            counts: counts.collect(),
            times: times.chain(locks).collect(),
            client: text("remote").or_else(|| text("client")),
            application: text("appName"),
            user: text("user").filter(|user| !user.is_empty()),
            trace_id: comment.and_then(comment_trace_id),
        })
    }

    /// A count by name.
    #[must_use]
    pub fn count(&self, name: &str) -> Option<u64> {
        self.counts.iter().find(|(known, _)| *known == name).map(|(_, count)| *count)
    }

    /// A time by name, nanoseconds.
    #[must_use]
    pub fn time_ns(&self, name: &str) -> Option<i64> {
        self.times.iter().find(|(known, _)| *known == name).map(|(_, time)| *time)
    }

    /// Documents that it changed.
    #[must_use]
    pub fn changed(&self) -> u64 {
        ["inserted", "modified", "deleted"].iter().filter_map(|name| self.count(name)).sum()
    }
}

fn count(number: f64) -> u64 {
    number.clamp(0.0, 1e18) as u64
}

/// The code of an error, or 0.
fn error(fields: &Value) -> Option<i64> {
    let code = fields.get("errCode").or_else(|| fields.get("exceptionCode")).and_then(Value::number);
    let is_failed = code.is_some()
        || ["errMsg", "exception", "errName"].iter().any(|field| fields.get(field).is_some())
        || fields.get("ok").is_some_and(|ok| !ok.is_true());
    is_failed.then(|| code.unwrap_or(0.0).clamp(0.0, 1e9) as i64)
}

/// The time that it waited for locks, of all kinds and modes.
fn lock_wait_ns(fields: &Value) -> Option<i64> {
    let locks = fields.get("locks")?.entries();
    let waits = locks.iter().filter_map(|(_, lock)| lock.get("timeAcquiringMicros"));
    let micros: f64 = waits.flat_map(Value::entries).filter_map(|(_, time)| time.number()).sum();
    (micros > 0.0 && micros < 9e12).then_some((micros * 1e3) as i64)
}

/// A plan as the server sums it up, from steps and the fields of indexes: no values of a query.
#[must_use]
pub(crate) fn plan(summary: &str) -> Option<String> {
    let (mut text, mut rest) = (String::new(), summary.trim());
    while !rest.is_empty() && text.len() < PLAN_BYTES_MAX {
        let end =
            rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')).unwrap_or(rest.len());
        let (step, after) = rest.split_at_checked(end).filter(|(step, _)| !step.is_empty())?;
        text.push_str(if text.is_empty() { "" } else { ", " });
        text.push_str(step);
        rest = after.trim_start();
        if rest.starts_with('{') {
            let index = printed(&[rest])?;
            let fields = index.value.entries().iter().map(|(name, order)| match order.number() {
                Some(order) => format!("{name}: {order}"),
                None => format!("{name}: ?"),
            });
            text.push_str(&format!(" {{ {} }}", fields.collect::<Vec<_>>().join(", ")));
            rest = rest.get(index.end.1..)?.trim_start();
        }
        rest = rest.strip_prefix(',').map_or("", str::trim_start);
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_keep_steps_and_indexes() {
        for (summary, expected) in [
            ("COLLSCAN", Some("COLLSCAN")),
            (
                "IXSCAN { a: 1.0, b: -1 }, IXSCAN { \"c.d\": \"hashed\" }",
                Some("IXSCAN { a: 1, b: -1 }, IXSCAN { c.d: ? }"),
            ),
            ("IDHACK", Some("IDHACK")),
            ("canary", None),
            ("", None),
        ] {
            assert_eq!(plan(summary).as_deref(), expected, "{summary}");
        }
    }
}
