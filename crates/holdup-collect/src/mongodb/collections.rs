//! Which collections are read, and how often. The busiest ones are chosen by the time that operations
//! on them took (`top`); a server without that lists its largest databases. One sample reads the sizes
//! of two of them at most.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use holdup_mongodb::{Figure, Value, collection, index_uses, usage};

use super::commands::Command;
use super::parts::Parts;
use super::server::{Failure, Server};
use crate::pace::{Pace, Turn};

/// Collections that are read.
const COLLECTIONS_MAX: usize = 20;

/// Databases that are listed where the server does not count uses.
const DATABASES_MAX: usize = 5;

/// Collections whose sizes one sample reads.
const AT_ONCE: usize = 2;

/// How often the use of collections is read.
const USES_EVERY: Duration = Duration::from_secs(5);

/// How often the sizes of each collection are read.
const SIZES_EVERY: Duration = Duration::from_secs(60);

/// Databases of the server itself.
const OWN: [&str; 3] = ["admin", "config", "local"];

/// A collection that is gone, or is a view.
const GONE: [i64; 2] = [26, 166];

/// The collections that are due.
pub(super) struct Collections {
    uses: Pace,
    sizes: Pace,
    due: VecDeque<(String, String)>,
}

impl Default for Collections {
    fn default() -> Self {
        Self { uses: Pace::at_least(USES_EVERY), sizes: Pace::slow(SIZES_EVERY), due: VecDeque::new() }
    }
}

impl Collections {
    /// Reads what is due.
    pub(super) fn sample(&mut self, server: &mut Server, parts: &Parts) -> Result<Vec<Figure>, Failure> {
        let (mut turn, mut figures) = (Turn::default(), Vec::new());
        if parts.top && self.uses.is_due(&turn) {
            let begun = Instant::now();
            let top = server.ask(Command::Top);
            self.uses.read(&mut turn, begun, &top);
            figures.extend(usage(&top?, COLLECTIONS_MAX).0);
        }
        if self.due.is_empty() && (parts.sizes || parts.index_uses) && self.sizes.is_due(&turn) {
            let begun = Instant::now();
            let names = names(server, parts.top, COLLECTIONS_MAX);
            self.sizes.read(&mut turn, begun, &names);
            self.due.extend(names?);
        }
        for _ in 0..AT_ONCE {
            let Some((database, name)) = self.due.pop_front() else { break };
            if parts.sizes {
                let stats = unless_gone(server.ask(Command::Sizes(&database, &name)))?;
                figures.extend(stats.iter().flat_map(|stats| collection(stats, &database, &name)));
            }
            if parts.index_uses {
                let uses = unless_gone(server.list(Command::IndexUses(&database, &name)))?;
                figures.extend(uses.iter().flat_map(|uses| index_uses(uses, &database, &name)));
            }
        }
        Ok(figures)
    }
}

fn unless_gone<T>(read: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(Failure::Server(code, _)) if GONE.contains(&code) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Names of the collections that matter, database and collection.
pub(super) fn names(server: &mut Server, has_top: bool, most: usize) -> Result<Vec<(String, String)>, Failure> {
    if has_top {
        return Ok(usage(&server.ask(Command::Top)?, most).1);
    }
    let databases = server.ask(Command::Databases)?;
    let mut found = Vec::new();
    for database in largest(&databases) {
        let list = server.list(Command::Collections(&database))?;
        // A view has no size.
        let is_one = |entry: &&Value| entry.get("type").and_then(Value::text) != Some("view");
        let names = list.iter().filter(is_one).filter_map(|entry| entry.get("name").and_then(Value::text));
        found.extend(names.filter(|name| !name.starts_with("system.")).map(|name| (database.clone(), name.to_owned())));
        if found.len() >= most {
            break;
        }
    }
    found.truncate(most);
    Ok(found)
}

/// The largest databases of an answer, without the server's own.
fn largest(databases: &Value) -> Vec<String> {
    let size = |entry: &Value| entry.get("sizeOnDisk").and_then(Value::number).unwrap_or(0.0);
    let mut entries: Vec<&Value> = databases.get("databases").map(Value::items).unwrap_or_default().iter().collect();
    entries.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let names = entries.into_iter().filter_map(|entry| entry.get("name").and_then(Value::text));
    names.filter(|name| !OWN.contains(name)).take(DATABASES_MAX).map(str::to_owned).collect()
}
