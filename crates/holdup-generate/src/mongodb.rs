//! A collection of MongoDB. The key is `_id`, which is unique and indexed by itself.

use std::sync::Arc;

use holdup_mongodb::Writer;
use holdup_protocol::database::mongodb::Command;

use crate::client::{Client, number};
use crate::error::GenerateError;
use crate::field::Value;
use crate::row::Row;
use crate::schema::{Ids, Schema};
use crate::store::Store;

/// The only name that a key can have.
const KEY: &str = "_id";

/// Documents are sent in commands of about this size.
const COMMAND_BYTES: usize = 4 << 20;

pub(crate) struct Collection<'s> {
    client: Client,
    name: &'s str,
    ids: Ids,
    database: String,
}

impl<'s> Collection<'s> {
    pub(crate) fn new(client: Client, schema: &'s Schema, database: String) -> Result<Self, GenerateError> {
        if schema.key.as_deref().is_some_and(|key| key != KEY) {
            return Err(GenerateError::Unfit("key: MongoDB's documents have the key _id; remove it".to_owned()));
        }
        if schema.table.contains(['$', '\0']) || schema.table.starts_with("system.") {
            return Err(GenerateError::Unfit(format!("{} cannot be the name of a collection", schema.table)));
        }
        Ok(Self { client, name: &schema.table, ids: schema.ids, database })
    }

    fn command(&self, name: &str) -> Command {
        let document = Writer::new().text(name, self.name);
        Command { database: self.database.clone(), name: name.to_owned(), document, ..Command::default() }
    }

    fn send(&mut self, documents: Writer) -> Result<(), GenerateError> {
        let mut command = self.command("insert");
        // One that is refused does not hold up the others.
        command.document = command.document.bool("ordered", false).list_of("documents", documents);
        self.client.command("the documents", command, &mut |_, _| {})
    }

    fn counted(&mut self, query: Option<Writer>) -> Result<u64, GenerateError> {
        let mut command = self.command("count");
        if let Some(query) = query {
            command.document = command.document.document("query", query);
        }
        let mut found = None;
        self.client.command("the count", command, &mut |names, values| {
            let at = names.iter().position(|name| name == "n");
            found = at.and_then(|at| number(values.get(at).copied().flatten()));
        })?;
        found.ok_or_else(|| GenerateError::Unfit("the server's answer to count has no number".to_owned()))
    }
}

impl Store for Collection<'_> {
    fn create(&mut self) -> Result<(), GenerateError> {
        // It begins to exist with its first document.
        Ok(())
    }

    fn last_key(&mut self) -> Result<Option<String>, GenerateError> {
        let mut command = self.command("find");
        let order = Writer::new().int(KEY, -1);
        command.document = command.document.document("sort", order).int("limit", 1);
        let mut found = None;
        self.client.command("the last document", command, &mut |names, values| {
            // The key of another client may be a document, which has none of this name.
            let at = names.iter().position(|name| name == KEY);
            let value = at.and_then(|at| values.get(at).copied().flatten());
            found = Some(value.map_or_else(String::new, |value| String::from_utf8_lossy(value).into_owned()));
        })?;
        Ok(found)
    }

    fn count(&mut self, below: Option<u64>) -> Result<u64, GenerateError> {
        let query = below.map(|below| Writer::new().document(KEY, id(Writer::new(), "$lt", self.ids, below)));
        self.counted(query)
    }

    fn keys(&mut self, from: u64, to: u64) -> Result<Vec<u64>, GenerateError> {
        let mut command = self.command("find");
        let range = id(id(Writer::new(), "$gte", self.ids, from), "$lte", self.ids, to);
        command.document = command
            .document
            .document("filter", Writer::new().document(KEY, range))
            .document("projection", Writer::new().int(KEY, 1));
        let mut found = Vec::new();
        self.client.command("the keys", command, &mut |_, values| {
            found.extend(number(values.first().copied().flatten()));
        })?;
        Ok(found)
    }

    fn has(&mut self, row: &Row) -> Result<bool, GenerateError> {
        Ok(self.counted(Some(document(row, self.ids)))? == 1)
    }

    fn insert(&mut self, rows: &[Row]) -> Result<(), GenerateError> {
        let (mut list, mut place) = (Writer::new(), 0);
        for row in rows {
            list = list.document(&place.to_string(), document(row, self.ids));
            place += 1;
            if list.size() >= COMMAND_BYTES {
                self.send(std::mem::take(&mut list))?;
                place = 0;
            }
        }
        if place > 0 { self.send(list) } else { Ok(()) }
    }
}

fn document(row: &Row, ids: Ids) -> Writer {
    entries(&row.values, id(Writer::new(), KEY, ids, row.key))
}

/// The key of row `number`.
fn id(out: Writer, name: &str, ids: Ids, number: u64) -> Writer {
    match ids {
        Ids::Number => put(out, name, &Value::Int(number as i64)),
        Ids::ObjectId => out.id(name, &object_id(number)),
    }
}

/// The `ObjectId` whose hexadecimal digits are the decimal ones of `number`.
fn object_id(mut number: u64) -> [u8; 12] {
    let mut bytes = [0; 12];
    for byte in bytes.iter_mut().rev() {
        let two = (number % 100) as u8;
        *byte = ((two / 10) << 4) | (two % 10);
        number /= 100;
    }
    bytes
}

fn entries(values: &[(Arc<str>, Value)], out: Writer) -> Writer {
    values.iter().fold(out, |out, (name, value)| put(out, name, value))
}

/// Whole numbers get 32 bits where those are enough, as drivers do it.
fn put(out: Writer, name: &str, value: &Value) -> Writer {
    match value {
        Value::Null => out.null(name),
        Value::Bool(is_true) => out.bool(name, *is_true),
        Value::Int(number) => match i32::try_from(*number) {
            Ok(int) => out.int(name, int),
            Err(_) => out.long(name, *number),
        },
        Value::Double(number) => out.double(name, *number),
        Value::Text(text) => out.text(name, text),
        Value::Time(ms) => out.time(name, *ms),
        Value::Map(values) => out.document(name, entries(values, Writer::new())),
        Value::List(items) => {
            let items = items.iter().enumerate();
            out.list_of(name, items.fold(Writer::new(), |list, (place, item)| put(list, &place.to_string(), item)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_the_types_that_drivers_give() {
        let named = |name: &str, value| (Arc::from(name), value);
        let inner = vec![named("zip", Value::Int(99_177))];
        let values = vec![
            named("large", Value::Int(1 << 40)),
            named("at", Value::Time(1_500)),
            named("address", Value::Map(inner)),
            named("items", Value::List(vec![Value::Text("x".to_owned()), Value::Null])),
        ];
        let rest = |key: Writer| {
            let list = Writer::new().text("0", "x").null("1");
            let key = key.long("large", 1 << 40).time("at", 1_500);
            key.document("address", Writer::new().int("zip", 99_177)).list_of("items", list)
        };
        let row = Row { key: 4_711, values };
        assert_eq!(document(&row, Ids::Number), rest(Writer::new().int("_id", 4_711)));
        let id = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x47, 0x11];
        assert_eq!(document(&row, Ids::ObjectId), rest(Writer::new().id("_id", &id)));
    }
}
