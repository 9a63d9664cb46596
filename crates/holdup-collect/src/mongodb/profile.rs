//! Reads what the profiler of a database has kept (`system.profile`), where it is on:
//! holdup never does. An entry becomes an execution with its plan and its waits, as from the log.
//!
//! A database whose profiler has kept nothing yet is asked once a minute, any other every 5 s, one
//! database a sample. What was there before is left out, and so is what holdup asked itself.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use holdup_mongodb::{OWN_DATABASES, SlowOperation, Value};
use holdup_recording::{Batch, Labels};

use super::collections;
use super::commands::{Command, PROFILED_MAX};
use super::executions::{Ended, add, is_own};
use super::server::{Failure, Server};
use crate::reading::Out;

/// How often databases are listed, and one without entries is asked.
const SELDOM: Duration = Duration::from_secs(60);

/// How often one with entries is asked.
const OFTEN: Duration = Duration::from_secs(5);

/// Databases that are asked.
const DATABASES_MAX: usize = 5;

/// The profilers of a server.
#[derive(Default)]
pub(super) struct Profiles {
    listed_at: Option<Instant>,
    databases: BTreeMap<String, Profile>,
}

/// The profiler of a database.
#[derive(Default)]
struct Profile {
    asked_at: Option<Instant>,
    /// The newest entry, milliseconds since 1970; 0 if there was none at the first look.
    newest_ms: Option<i64>,
}

impl Profile {
    fn is_due(&self) -> bool {
        let every = if self.newest_ms.is_some_and(|ms| ms > 0) { OFTEN } else { SELDOM };
        self.asked_at.is_none_or(|at| at.elapsed() >= every)
    }
}

impl Profiles {
    /// Whether a sample may have something to ask.
    pub(super) fn is_due(&self) -> bool {
        self.is_list_due() || self.databases.values().any(Profile::is_due)
    }

    fn is_list_due(&self) -> bool {
        self.listed_at.is_none_or(|at| at.elapsed() >= SELDOM)
    }

    /// Asks the database that is due.
    pub(super) fn sample(&mut self, server: &mut Server, has_top: bool, out: &mut Out) -> Result<(), Failure> {
        if self.is_list_due() {
            self.listed_at = Some(Instant::now());
            for (database, _) in collections::names(server, has_top, usize::MAX)? {
                if self.databases.len() < DATABASES_MAX && !OWN_DATABASES.contains(&database.as_str()) {
                    self.databases.entry(database).or_default();
                }
            }
        }
        let due = self.databases.iter_mut().filter(|(_, profile)| profile.is_due());
        let Some((database, profile)) = due.min_by_key(|(_, profile)| profile.asked_at) else { return Ok(()) };
        profile.asked_at = Some(Instant::now());
        let entries = server.list(Command::Profiled(database, profile.newest_ms))?;
        take(&entries, &mut profile.newest_ms, out.source(), out.batch);
        if entries.len() >= PROFILED_MAX as usize {
            let text = format!(
                "the profiler of {database} may have kept more than {PROFILED_MAX} operations since the last look"
            );
            out.say("sampled", text, Labels::none());
        }
        Ok(())
    }
}

/// Adds the rows of entries, unless this is the first look.
fn take(entries: &[Value], newest_ms: &mut Option<i64>, source: &str, batch: &mut Batch) {
    let at = |entry: &Value| match entry.get("ts") {
        Some(Value::Time(ms)) => Some(*ms),
        _ => None,
    };
    let before = *newest_ms;
    let newest = entries.iter().filter_map(at).max();
    *newest_ms = Some(newest.unwrap_or(0).max(before.unwrap_or(0)));
    if before.is_none() {
        return;
    }
    for entry in entries {
        let (Some(ms), Some(slow)) = (at(entry), SlowOperation::read(entry)) else { continue };
        if !is_own(&slow) {
            // The profiler names a client by its address, and no connection.
            add(slow, &Ended { at: ms.saturating_mul(1_000_000), source, session_id: None }, batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use holdup_mongodb::{Document, Writer};

    use super::*;

    fn entry(ms: i64, app: &str) -> Value {
        let filter = Writer::new().text("status", "canary");
        let command = Writer::new().text("find", "orders").document("filter", filter).text("$db", "shop");
        let data = Writer::new().long("timeReadingMicros", 700);
        let bytes = Writer::new()
            .text("op", "query")
            .text("ns", "shop.orders")
            .document("command", command)
            .int("keysExamined", 0)
            .int("docsExamined", 800)
            .int("numYield", 6)
            .int("nreturned", 3)
            .int("responseLength", 230)
            .document("storage", Writer::new().document("data", data))
            .int("millis", 120)
            .text("planSummary", "COLLSCAN")
            .time("ts", ms)
            .text("client", "10.0.0.9")
            .text("appName", app)
            .text("user", "canary@admin")
            .finish();
        Document::read(&bytes).unwrap().value().unwrap()
    }

    #[test]
    fn profiler_entries_after_the_first_look_become_rows() {
        let (mut newest, mut batch) = (None, Batch::default());
        take(&[entry(500, "web")], &mut newest, "mongodb://x", &mut batch);
        assert_eq!((newest, batch.statements.len()), (Some(500), 0), "it was there before");
        take(&[entry(900, "holdup"), entry(800, "web")], &mut newest, "mongodb://x", &mut batch);
        let [one] = batch.statements.as_slice() else { panic!("{:?}", batch.statements) };
        assert_eq!((newest, one.observed_at), (Some(900), 800_000_000));
        assert_eq!(one.digest_text, "find shop.orders filter { status: ? }");
        assert_eq!((one.duration_ns, one.rows_examined, one.rows_sent, one.no_index), (120_000_000, 800, 3, 1));
        assert_eq!((batch.plans.len(), batch.stages.len()), (1, 1));
        assert!(!format!("{batch:?}").contains("canary"));
        // Nothing new, and nothing at all at the first look.
        take(&[], &mut newest, "mongodb://x", &mut batch);
        take(&[entry(700, "holdup")], &mut newest, "mongodb://x", &mut batch);
        let mut empty = None;
        take(&[], &mut empty, "mongodb://x", &mut batch);
        assert_eq!((newest, empty, batch.statements.len()), (Some(900), Some(0), 1));
    }

    #[test]
    fn one_that_has_kept_nothing_is_asked_seldom() {
        let ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds));
        for (newest_ms, seconds, is_due) in
            [(None, 30, false), (Some(0), 30, false), (Some(900), 30, true), (Some(900), 2, false), (Some(0), 70, true)]
        {
            let profile = Profile { asked_at: ago(seconds), newest_ms };
            assert_eq!(profile.is_due(), is_due, "{newest_ms:?} {seconds}");
        }
        assert!(Profile::default().is_due());
    }
}
