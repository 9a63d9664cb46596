//! Which collections are read, and how often. The busiest ones are chosen by the time that operations
//! on them took (`top`); a server without that lists its largest databases. One sample reads the sizes
//! of two of them at most.

use std::collections::VecDeque;
use std::time::Duration;

use holdup_mongodb::{Figure, OWN_DATABASES, Value, collection, index_uses, usage};

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
    pub(super) fn sample(&mut self, server: &mut Server, parts: &mut Parts) -> Result<Vec<Figure>, Failure> {
        let (mut turn, mut figures) = (Turn::default(), Vec::new());
        if parts.top
            && let Some(begun) = self.uses.due(&turn)
        {
            let top = self.uses.read(&mut turn, begun, server.ask(Command::Top))?;
            figures.extend(usage(&top, COLLECTIONS_MAX).0);
        }
        if self.due.is_empty()
            && (parts.sizes || parts.index_uses)
            && let Some(begun) = self.sizes.due(&turn)
        {
            self.due.extend(self.sizes.read(&mut turn, begun, names(server, parts.top, COLLECTIONS_MAX))?);
        }
        for _ in 0..AT_ONCE {
            let Some((database, name)) = self.due.pop_front() else { break };
            let stats = known(&mut parts.sizes, || server.ask(Command::Sizes(&database, &name)))?;
            figures.extend(stats.iter().flat_map(|stats| collection(stats, &database, &name)));
            let uses = known(&mut parts.index_uses, || server.list(Command::IndexUses(&database, &name)))?;
            figures.extend(uses.iter().flat_map(|uses| index_uses(uses, &database, &name)));
        }
        Ok(figures)
    }
}

/// What a collection that is not gone answers, where the server `has` it.
fn known<T>(has: &mut bool, read: impl FnOnce() -> Result<T, Failure>) -> Result<Option<T>, Failure> {
    if !*has {
        return Ok(None);
    }
    match read() {
        Ok(value) => Ok(Some(value)),
        Err(Failure::Server(code, _)) if GONE.contains(&code) => Ok(None),
        // It was empty when it was probed.
        Err(failure) if failure.is_denied() || failure.is_lacking() => {
            *has = false;
            Ok(None)
        }
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
        found.extend(own_names(&list).map(|name| (database.clone(), name.to_owned())));
        if found.len() >= most {
            break;
        }
    }
    found.truncate(most);
    Ok(found)
}

/// Names of the collections in a database's list, without the server's own.
fn own_names(list: &[Value]) -> impl Iterator<Item = &str> {
    // A view has no size.
    let is_one = |entry: &&Value| entry.get("type").and_then(Value::text) != Some("view");
    let names = list.iter().filter(is_one).filter_map(|entry| entry.get("name").and_then(Value::text));
    names.filter(|name| !name.starts_with("system."))
}

/// The largest databases of an answer, without the server's own.
fn largest(databases: &Value) -> Vec<String> {
    let size = |entry: &Value| entry.get("sizeOnDisk").and_then(Value::number).unwrap_or(0.0);
    let mut entries: Vec<&Value> = databases.get("databases").map(Value::items).unwrap_or_default().iter().collect();
    entries.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let names = entries.into_iter().filter_map(|entry| entry.get("name").and_then(Value::text));
    names.filter(|name| !OWN_DATABASES.contains(name)).take(DATABASES_MAX).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_databases_are_listed_and_not_the_servers_own() {
        let entry = |(name, bytes): (&str, f64)| {
            Value::Map(vec![
                ("name".to_owned(), Value::Text(name.to_owned())),
                ("sizeOnDisk".to_owned(), Value::Number(bytes)),
            ])
        };
        let sizes = [("local", 9.0), ("a", 1.0), ("b", 3.0), ("c", 2.0), ("d", 4.0), ("e", 5.0), ("f", 6.0)];
        let list = Value::List(sizes.map(entry).to_vec());
        assert_eq!(largest(&Value::Map(vec![("databases".to_owned(), list)])), ["f", "e", "d", "b", "c"]);
    }

    #[test]
    fn views_and_collections_of_the_server_are_left_out() {
        let entry = |(name, kind): (&str, &str)| {
            let text = |text: &str| Value::Text(text.to_owned());
            Value::Map(vec![("name".to_owned(), text(name)), ("type".to_owned(), text(kind))])
        };
        let list = [("orders", "collection"), ("late", "view"), ("system.views", "collection")].map(entry);
        assert_eq!(own_names(&list).collect::<Vec<_>>(), ["orders"]);
    }

    #[test]
    fn a_collection_that_is_gone_is_no_failure_and_what_is_lacking_is_not_asked_again() {
        let refused = |code| {
            let mut has = true;
            let read = known::<()>(&mut has, || Err(Failure::Server(code, String::new())));
            (read.is_ok(), has)
        };
        assert!(GONE.iter().all(|code| refused(*code) == (true, true)));
        assert_eq!([13, 59, 50].map(refused), [(true, false), (true, false), (false, true)]);
        assert!(matches!(known(&mut false, || Ok(1)), Ok(None)));
    }
}
