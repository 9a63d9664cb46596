//! A table of MySQL, MariaDB or PostgreSQL. MySQL gets statements with many rows, PostgreSQL gets COPY: each
//! statement is a transaction of its own, so its rows are there or not.

use holdup_protocol::database::Dialect;

use crate::client::{Client, number};
use crate::error::GenerateError;
use crate::field::{Field, Kind, Value};
use crate::row::Row;
use crate::schema::{Ids, Schema};
use crate::store::Store;
use crate::text::{copied, literal};

/// Rows of MySQL are sent in statements of about this size: its packets may have 16 MiB, old servers' 4.
const INSERT_BYTES: usize = 1 << 20;

/// Rows of PostgreSQL are sent in copies of about this size.
const COPY_BYTES: usize = 8 << 20;

/// Longest text that MySQL gets as VARCHAR.
const VARCHAR_MAX: usize = 1_000;

pub(crate) struct Table<'s> {
    client: Client,
    schema: &'s Schema,
    dialect: Dialect,
    /// The table's and its key's names, quoted.
    name: String,
    key: String,
    /// `(key, field, …)`.
    columns: String,
}

impl<'s> Table<'s> {
    pub(crate) fn new(client: Client, schema: &'s Schema, dialect: Dialect) -> Result<Self, GenerateError> {
        if schema.ids == Ids::ObjectId {
            return Err(GenerateError::Unfit("ids: the keys of a table are numbers; remove it".to_owned()));
        }
        let quote = if dialect == Dialect::Mysql { '`' } else { '"' };
        let quoted = |name: &str| -> Result<String, GenerateError> {
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
            let why = || {
                GenerateError::Unfit(format!(
                    "{name} cannot be the name of a table or column: use letters, digits and _"
                ))
            };
            if is_name { Ok(format!("{quote}{name}{quote}")) } else { Err(why()) }
        };
        let key = quoted(schema.key.as_deref().unwrap_or("id"))?;
        let names: Vec<String> = schema.fields.iter().map(|field| quoted(&field.name)).collect::<Result<_, _>>()?;
        let columns = format!("({key}, {})", names.join(", "));
        Ok(Self { client, schema, dialect, name: quoted(&schema.table)?, key, columns })
    }

    fn ask(&mut self, what: &'static str, text: String) -> Result<Option<String>, GenerateError> {
        let mut found = None;
        self.client.query(what, text, &mut |values| {
            let value = values.first().copied().flatten();
            found = value.map(|value| String::from_utf8_lossy(value).into_owned());
        })?;
        Ok(found)
    }

    fn number(&mut self, what: &'static str, text: String) -> Result<u64, GenerateError> {
        let found = self.ask(what, text)?;
        let found = found.and_then(|found| number(Some(found.as_bytes())));
        found.ok_or_else(|| GenerateError::Unfit(format!("the server's answer to {what} is not a number")))
    }

    fn exists(&mut self) -> Result<bool, GenerateError> {
        let text = match self.dialect {
            Dialect::Mysql => format!(
                "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '{}'",
                self.schema.table
            ),
            _ => format!("SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('{}')", self.name),
        };
        Ok(self.number("the table", text)? > 0)
    }

    fn column(&self, field: &Field) -> String {
        let is_mysql = self.dialect == Dialect::Mysql;
        match &field.kind {
            Kind::Sequence { .. } | Kind::Uniform { .. } | Kind::Zipf(_) => "BIGINT".to_owned(),
            Kind::Decimal { .. } => "DOUBLE PRECISION".to_owned(),
            Kind::Chance(_) => "BOOLEAN".to_owned(),
            Kind::Date { .. } => if is_mysql { "DATETIME(3)" } else { "TIMESTAMPTZ" }.to_owned(),
            Kind::Nested(_) | Kind::Array { .. } => if is_mysql { "JSON" } else { "JSONB" }.to_owned(),
            Kind::Uuid => if is_mysql { "CHAR(36)" } else { "TEXT" }.to_owned(),
            Kind::Text { to, .. } => self.text(*to as usize),
            Kind::Words { to, .. } => self.text(*to as usize * 10),
            Kind::Constant(value) => self.of_values(&[value]),
            Kind::Choice(choices) => self.of_values(&choices.iter().map(|(value, _)| value).collect::<Vec<_>>()),
        }
    }

    fn text(&self, length: usize) -> String {
        match self.dialect {
            Dialect::Mysql if length <= VARCHAR_MAX => format!("VARCHAR({})", length.max(1)),
            Dialect::Mysql => "LONGTEXT".to_owned(),
            _ => "TEXT".to_owned(),
        }
    }

    fn of_values(&self, values: &[&Value]) -> String {
        let are = |is: fn(&Value) -> bool| values.iter().all(|value| **value == Value::Null || is(value));
        if are(|value| matches!(value, Value::Int(_))) {
            return "BIGINT".to_owned();
        }
        if are(|value| matches!(value, Value::Int(_) | Value::Double(_))) {
            return "DOUBLE PRECISION".to_owned();
        }
        if are(|value| matches!(value, Value::Bool(_))) {
            return "BOOLEAN".to_owned();
        }
        let length = |value: &&Value| if let Value::Text(text) = value { text.chars().count() } else { 24 };
        self.text(values.iter().map(length).max().unwrap_or(1))
    }

    fn insert_into(&mut self, rows: &[Row]) -> Result<(), GenerateError> {
        let head = format!("INSERT INTO {} {} VALUES ", self.name, self.columns);
        let mut text = head.clone();
        for row in rows {
            text.push_str(if text.len() > head.len() { ", (" } else { "(" });
            text.push_str(&row.key.to_string());
            for ((_, value), field) in row.values.iter().zip(&self.schema.fields) {
                text.push_str(", ");
                literal(&as_column(value, &field.kind), self.dialect, &mut text);
            }
            text.push(')');
            if text.len() >= INSERT_BYTES {
                self.client.execute("the rows", std::mem::replace(&mut text, head.clone()))?;
            }
        }
        if text.len() > head.len() { self.client.execute("the rows", text) } else { Ok(()) }
    }

    fn copy_in(&mut self, rows: &[Row]) -> Result<(), GenerateError> {
        let statement = format!("COPY {} {} FROM STDIN", self.name, self.columns);
        let mut bytes = Vec::new();
        for row in rows {
            bytes.extend(row.key.to_string().as_bytes());
            for ((_, value), field) in row.values.iter().zip(&self.schema.fields) {
                bytes.push(b'\t');
                copied(&as_column(value, &field.kind), &mut bytes);
            }
            bytes.push(b'\n');
            if bytes.len() >= COPY_BYTES {
                self.client.copy(statement.clone(), std::mem::take(&mut bytes))?;
            }
        }
        if bytes.is_empty() { Ok(()) } else { self.client.copy(statement, bytes) }
    }
}

/// A choice among values of several kinds is a column of texts.
fn as_column(value: &Value, kind: &Kind) -> Value {
    let Kind::Choice(choices) = kind else { return value.clone() };
    let has_text = choices.iter().any(|(choice, _)| matches!(choice, Value::Text(_)));
    match value {
        Value::Int(number) if has_text => Value::Text(number.to_string()),
        Value::Double(number) if has_text => Value::Text(number.to_string()),
        Value::Bool(is_true) if has_text => Value::Text(is_true.to_string()),
        other => other.clone(),
    }
}

impl Store for Table<'_> {
    fn create(&mut self) -> Result<(), GenerateError> {
        if self.exists()? {
            return Ok(());
        }
        let quote = if self.dialect == Dialect::Mysql { '`' } else { '"' };
        let fields = self.schema.fields.iter();
        let columns: Vec<String> =
            fields.map(|field| format!("{quote}{}{quote} {}", field.name, self.column(field))).collect();
        let text = format!("CREATE TABLE {} ({} BIGINT PRIMARY KEY, {})", self.name, self.key, columns.join(", "));
        self.client.execute("CREATE TABLE", text)
    }

    fn last_key(&mut self) -> Result<Option<String>, GenerateError> {
        if !self.exists()? {
            return Ok(None);
        }
        self.ask("the last key", format!("SELECT MAX({}) FROM {}", self.key, self.name))
    }

    fn count(&mut self, below: Option<u64>) -> Result<u64, GenerateError> {
        let only = below.map_or_else(String::new, |below| format!(" WHERE {} < {below}", self.key));
        self.number("the count", format!("SELECT COUNT(*) FROM {}{only}", self.name))
    }

    fn keys(&mut self, from: u64, to: u64) -> Result<Vec<u64>, GenerateError> {
        let (key, name) = (&self.key, &self.name);
        let text = format!("SELECT {key} FROM {name} WHERE {key} BETWEEN {from} AND {to}");
        let mut found = Vec::new();
        self.client.query("the keys", text, &mut |values| found.extend(number(values.first().copied().flatten())))?;
        Ok(found)
    }

    fn has(&mut self, row: &Row) -> Result<bool, GenerateError> {
        let mut text = format!("SELECT COUNT(*) FROM {} WHERE {} = {}", self.name, self.key, row.key);
        let quote = if self.dialect == Dialect::Mysql { '`' } else { '"' };
        for ((name, value), field) in row.values.iter().zip(&self.schema.fields) {
            match as_column(value, &field.kind) {
                // Servers write JSON in a form of their own.
                Value::Map(_) | Value::List(_) => {}
                Value::Null => text.push_str(&format!(" AND {quote}{name}{quote} IS NULL")),
                value => {
                    text.push_str(&format!(" AND {quote}{name}{quote} = "));
                    literal(&value, self.dialect, &mut text);
                }
            }
        }
        Ok(self.number("a row", text)? == 1)
    }

    fn insert(&mut self, rows: &[Row]) -> Result<(), GenerateError> {
        match self.dialect {
            Dialect::Postgres => self.copy_in(rows),
            _ => self.insert_into(rows),
        }
    }
}
