//! The statement that undoes a change, by what the server is.

use super::{Difference, Form, Key, Kind};

/// What kind of server takes a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL.
    PostgreSql,
    /// MySQL or MariaDB.
    MySql,
}

impl Dialect {
    /// Of the server that is recorded as `source`; none for other servers.
    pub fn of_source(source: &str) -> Option<Self> {
        match source.split(':').next()? {
            "postgresql" => Some(Self::PostgreSql),
            "mysql" => Some(Self::MySql),
            _ => None,
        }
    }

    /// A name, quoted; of several parts each.
    fn quoted(self, name: &str) -> String {
        let quote = if self == Self::PostgreSql { '"' } else { '`' };
        let part = |part: &str| format!("{quote}{}{quote}", part.replace(quote, &format!("{quote}{quote}")));
        name.splitn(2, '.').map(part).collect::<Vec<_>>().join(".")
    }
}

/// The statement that undoes `change`; none if no single statement does.
pub fn restore(dialect: Dialect, change: &Difference) -> Option<String> {
    let key = &change.key;
    match (key.kind, &change.from, &change.to) {
        (Kind::Index, Some(from), None) => Some(format!("{};", from.definition)),
        (Kind::Index, Some(from), Some(to)) if from.state.is_empty() && !to.state.is_empty() => {
            back_in_use(dialect, key, to)
        }
        (Kind::Index, None, Some(_)) => Some(dropped(dialect, key)),
        (Kind::Column, Some(from), Some(to)) => column(dialect, key, from, to),
        (Kind::Setting, from, _) => setting(dialect, key, from.as_ref()),
        (Kind::Trigger, Some(from), Some(to)) if from.state.is_empty() && to.state == "disabled" => {
            Some(format!("ALTER TABLE {} ENABLE TRIGGER {};", dialect.quoted(&key.on), whole(dialect, &key.name)))
        }
        _ => None,
    }
}

/// A name without parts, quoted.
fn whole(dialect: Dialect, name: &str) -> String {
    dialect.quoted(&name.replace('.', "\u{0}")).replace('\u{0}', ".")
}

fn back_in_use(dialect: Dialect, key: &Key, to: &Form) -> Option<String> {
    let schema = key.on.split_once('.').map_or("", |(schema, _)| schema);
    match (dialect, to.state.as_str()) {
        (Dialect::PostgreSql, _) => {
            Some(format!("REINDEX INDEX CONCURRENTLY {}.{};", whole(dialect, schema), whole(dialect, &key.name)))
        }
        (_, state) => {
            let word = [("ignored", "NOT IGNORED"), ("invisible", "VISIBLE")].iter().find(|(is, _)| *is == state)?.1;
            let (table, index) = (dialect.quoted(&key.on), whole(dialect, &key.name));
            Some(format!("ALTER TABLE {table} ALTER INDEX {index} {word};"))
        }
    }
}

fn dropped(dialect: Dialect, key: &Key) -> String {
    let schema = key.on.split_once('.').map_or("", |(schema, _)| schema);
    let index = whole(dialect, &key.name);
    match dialect {
        Dialect::PostgreSql => format!("DROP INDEX CONCURRENTLY {}.{index};", whole(dialect, schema)),
        Dialect::MySql => format!("ALTER TABLE {} DROP INDEX {index};", dialect.quoted(&key.on)),
    }
}

/// How a column's line names the target of its statistics.
pub(super) const STATISTICS: &str = " statistics ";

fn column(dialect: Dialect, key: &Key, from: &Form, to: &Form) -> Option<String> {
    let (table, name) = (dialect.quoted(&key.on), whole(dialect, &key.name));
    let parts = |form: &Form| match form.definition.split_once(STATISTICS) {
        Some((kind, target)) => (kind.to_owned(), target.to_owned()),
        None => (form.definition.clone(), "-1".to_owned()),
    };
    let ((was, target), (is, _)) = (parts(from), parts(to));
    match dialect {
        Dialect::PostgreSql if was == is => {
            Some(format!("ALTER TABLE {table} ALTER COLUMN {name} SET STATISTICS {target}; ANALYZE {table};"))
        }
        Dialect::PostgreSql => Some(format!("ALTER TABLE {table} ALTER COLUMN {name} TYPE {was};")),
        Dialect::MySql => Some(format!("ALTER TABLE {table} MODIFY COLUMN {name} {was};")),
    }
}

fn setting(dialect: Dialect, key: &Key, from: Option<&Form>) -> Option<String> {
    let name = &key.name;
    let is_plain = |text: &str| !text.is_empty() && text.parse::<f64>().is_ok_and(f64::is_finite);
    let value = |form: &Form| match form.definition.as_str() {
        plain if is_plain(plain) => plain.to_owned(),
        text => format!("'{}'", text.replace('\'', "''")),
    };
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.') {
        return None;
    }
    match (dialect, key.on.split_once(' ')) {
        (Dialect::MySql, _) => Some(format!("SET GLOBAL {name} = {};", value(from?))),
        (Dialect::PostgreSql, Some((scope @ ("role" | "database"), whose))) => {
            let back = from.map_or_else(|| format!("RESET {name}"), |from| format!("SET {name} = {}", value(from)));
            let (whose, within) = whose.split_once(" in database ").map_or((whose, None), |(a, b)| (a, Some(b)));
            let within = within.map_or_else(String::new, |of| format!(" IN DATABASE {}", whole(dialect, of)));
            Some(format!("ALTER {} {}{within} {back};", scope.to_uppercase(), whole(dialect, whose)))
        }
        (Dialect::PostgreSql, _) if key.on.is_empty() => {
            let reload = "SELECT pg_reload_conf();";
            Some(format!("ALTER SYSTEM SET {name} = {}; {reload}", value(from?)))
        }
        _ => None,
    }
}
