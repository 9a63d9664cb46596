//! A row of a schema.

use std::sync::Arc;

use crate::field::Value;
use crate::random::of_row;
use crate::schema::{Ids, Schema};
use crate::text::json;

/// A row: its key, which is its number, and its values in the order of the schema's fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) key: u64,
    pub(crate) values: Vec<(Arc<str>, Value)>,
}

impl Row {
    /// Row `number`, from 1.
    pub(crate) fn new(schema: &Schema, number: u64) -> Self {
        let mut random = of_row(schema.seed, number);
        let values = schema.fields.iter().map(|field| (Arc::clone(&field.name), field.value(number, &mut random)));
        Self { key: number, values: values.collect() }
    }
}

impl Schema {
    /// Rows as JSON, for a look at them.
    pub fn sample(&self, count: u64) -> impl Iterator<Item = String> + '_ {
        (1..=count.min(self.rows)).map(move |number| {
            let row = Row::new(self, number);
            let key = match self.ids {
                Ids::Number => Value::Int(number as i64),
                Ids::ObjectId => Value::Map(vec![(Arc::from("$oid"), Value::Text(format!("{number:024}")))]),
            };
            let key = (Arc::from(self.key.as_deref().unwrap_or("_id")), key);
            json(&Value::Map([key].into_iter().chain(row.values).collect()))
        })
    }
}
