//! Objects of a database's catalogs as settings, and what changed between two readings of settings.
//! An object is a row of `settings`: its name has the [`PREFIX`], its value is a statement or a
//! definition, and an empty value means that it is gone. Other settings are compared as they are.

mod restore;

use std::collections::BTreeMap;
use std::fmt;

pub use self::restore::{Dialect, restore};

/// Beginning of the names of settings that are objects of a catalog.
pub const PREFIX: &str = "catalog.";

/// A kind of object. The order is that in which changes are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An index; its definition is the statement that makes it.
    Index,
    /// A setting: of the server, or of a role or database.
    Setting,
    /// A column, within the object [`Kind::Table`].
    Column,
    /// A trigger.
    Trigger,
    /// A view; its definition is a hash.
    View,
    /// An extension; its definition is a version.
    Extension,
    /// A table; its definition has a column a line, with its type.
    Table,
}

/// Kinds by the word that names them.
const KINDS: [(Kind, &str); 7] = [
    (Kind::Index, "index"),
    (Kind::Setting, "setting"),
    (Kind::Column, "column"),
    (Kind::Trigger, "trigger"),
    (Kind::View, "view"),
    (Kind::Extension, "extension"),
    (Kind::Table, "table"),
];

impl Kind {
    /// Its word, e.g. `index`.
    pub fn word(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }

    /// The kind with this word.
    pub fn parse(word: &str) -> Option<Self> {
        KINDS.iter().find(|(_, known)| *known == word).map(|(kind, _)| *kind)
    }
}

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its kind.
    pub kind: Kind,
    /// The table of an index, column or trigger, with its schema; the role or database of a setting;
    /// empty for others.
    pub on: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// An object of `kind`.
    pub fn new(kind: Kind, on: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind, on: on.into(), name: name.into() }
    }

    /// The object that a setting of this name is; a setting of the server without the prefix.
    pub fn of_setting(name: &str) -> Self {
        let object = || {
            let (kind, rest) = name.strip_prefix(PREFIX)?.split_once(' ')?;
            let (on, own) = rest.split_once(": ").unwrap_or(("", rest));
            Some(Self::new(Kind::parse(kind)?, on, own))
        };
        object().unwrap_or_else(|| Self::new(Kind::Setting, "", name))
    }

    /// Name of the setting that stands for it.
    pub fn setting(&self) -> String {
        let Self { kind, on, name } = self;
        match (kind, on.as_str()) {
            (Kind::Setting, "") => name.clone(),
            (_, "") => format!("{PREFIX}{} {name}", kind.word()),
            _ => format!("{PREFIX}{} {on}: {name}", kind.word()),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.kind.word();
        match self.on.as_str() {
            "" => write!(f, "{word} {}", self.name),
            on => write!(f, "{word} {} of {on}", self.name),
        }
    }
}

/// What an object is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Why it is not in use, e.g. `invalid`, `invisible`, `ignored`, `disabled`; empty if it is.
    pub state: String,
    /// Its definition, or the value of a setting.
    pub definition: String,
}

impl Form {
    /// An object in this `state`.
    pub fn new(state: impl Into<String>, definition: impl Into<String>) -> Self {
        Self { state: state.into(), definition: definition.into() }
    }

    /// From the value of the setting `key`.
    pub fn of_value(key: &Key, value: &str) -> Self {
        let with_state = || value.strip_prefix('[')?.split_once("] ");
        match with_state().filter(|_| matches!(key.kind, Kind::Index | Kind::Trigger)) {
            Some((state, definition)) => Self::new(state, definition),
            None => Self::new("", value),
        }
    }

    /// The value of the setting that stands for it.
    pub fn value(&self) -> String {
        if self.state.is_empty() { self.definition.clone() } else { format!("[{}] {}", self.state, self.definition) }
    }
}

/// Objects and settings of one source.
pub type Objects = BTreeMap<Key, Form>;

/// One object that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which.
    pub key: Key,
    /// What it was; none if it did not exist.
    pub from: Option<Form>,
    /// What it is; none if it is gone.
    pub to: Option<Form>,
}

impl Difference {
    /// Both sides in a word: `in use` or why not, if its definition is the same; else definitions, and
    /// `none` where it does not exist.
    pub fn sides(&self) -> (String, String) {
        let has_state_only =
            self.from.as_ref().map(|form| &form.definition) == self.to.as_ref().map(|to| &to.definition);
        let word = |form: &Option<Form>| match form {
            None => "none".to_owned(),
            Some(form) if has_state_only && form.state.is_empty() => "in use".to_owned(),
            Some(form) if has_state_only => form.state.clone(),
            Some(form) => form.value(),
        };
        (word(&self.from), word(&self.to))
    }

    /// It in a sentence, without its full stop.
    pub fn text(&self) -> String {
        let key = &self.key;
        let (from, to) = self.sides();
        match (&self.from, &self.to) {
            (_, None) => format!("{key} is gone"),
            (None, Some(form)) if form.state.is_empty() => format!("{key} is new: {to}"),
            (None, Some(form)) => format!("{key} is new and {}", form.state),
            (Some(before), Some(now)) if before.definition == now.definition => format!("{key} is {to}"),
            _ => format!("{key} went from {from} to {to}"),
        }
    }
}

/// Names of settings that differ from time to time without any change, or parts of them.
const OF_ITSELF: [&str; 10] = [
    "pid",
    "threads",
    "hostname",
    "timestamp",
    "pseudo_thread_id",
    "error_count",
    "warning_count",
    "last_insert_id",
    "insert_id",
    "identity",
];
const MOVING: [&str; 5] = ["free_", "used_", "gtid", "rand_seed", "wsrep_last"];
/// Last part of the name of a time.
const TIME: &str = "_at";

/// Whether a setting of this name moves without any change.
pub fn moves_by_itself(name: &str) -> bool {
    let moves = || OF_ITSELF.contains(&name) || name.ends_with(TIME) || MOVING.iter().any(|part| name.contains(part));
    !name.starts_with(PREFIX) && moves()
}

/// What differs between two readings, the most telling first. Indexes of a table that came or went with
/// it are not told, nor an index that another of the same columns replaced.
pub fn differences(before: &Objects, after: &Objects) -> Vec<Difference> {
    let keys = before.keys().chain(after.keys().filter(|key| !before.contains_key(key)));
    let differs = keys.filter(|key| before.get(key) != after.get(key));
    let mut all: Vec<Difference> = Vec::new();
    for key in differs {
        let (from, to) = (before.get(key).cloned(), after.get(key).cloned());
        match (key.kind, &from, &to) {
            (Kind::Table, Some(from), Some(to)) => all.extend(columns(key, from, to)),
            (Kind::Index | Kind::Trigger, ..) if came_or_went_with_table(key, before, after) => {}
            (Kind::Index, Some(gone), None) if is_replaced(key, gone, after) => {}
            _ => all.push(Difference { key: key.clone(), from, to }),
        }
    }
    all.sort_by(|a, b| (a.to.is_some(), &a.key).cmp(&(b.to.is_some(), &b.key)));
    all
}

/// Whether the table of an index exists in only one of the readings, where tables were read.
fn came_or_went_with_table(key: &Key, before: &Objects, after: &Objects) -> bool {
    let table = Key::new(Kind::Table, "", &key.on);
    before.contains_key(&table) != after.contains_key(&table)
}

/// Whether another index in use has the columns of the one that is `gone`.
fn is_replaced(key: &Key, gone: &Form, after: &Objects) -> bool {
    let columns = columns_of(&gone.definition);
    let of_table = after.range(Key::new(Kind::Index, key.on.as_str(), "")..);
    let mut of_table = of_table.take_while(|(other, _)| other.kind == Kind::Index && other.on == key.on);
    of_table.any(|(_, form)| form.state.is_empty() && columns_of(&form.definition) == columns)
}

/// The part of an index's statement behind its name and table: method, columns, condition.
fn columns_of(definition: &str) -> &str {
    let at = definition.find(" USING ").or_else(|| definition.find(" ("));
    at.and_then(|at| definition.get(at..)).unwrap_or(definition)
}

/// Columns of a table that differ. Each is a line: name, space, type.
fn columns(key: &Key, from: &Form, to: &Form) -> Vec<Difference> {
    let lines = |form: &Form| -> BTreeMap<String, Form> {
        let split = form.definition.lines().filter_map(|line| line.split_once(' '));
        split.map(|(name, definition)| (name.to_owned(), Form::new("", definition))).collect()
    };
    let (from, to) = (lines(from), lines(to));
    let names = from.keys().chain(to.keys().filter(|name| !from.contains_key(*name)));
    let differs = names.filter(|name| from.get(*name) != to.get(*name));
    let difference = |name: &String| Difference {
        key: Key::new(Kind::Column, &key.name, name),
        from: from.get(name).cloned(),
        to: to.get(name).cloned(),
    };
    differs.map(difference).collect()
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
