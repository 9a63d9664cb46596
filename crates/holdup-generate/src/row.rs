//! A row of a schema.

use std::sync::Arc;

use holdup_load::script::Random;

use crate::field::Value;
use crate::schema::{Ids, Schema};
use crate::text::json;

/// Spreads row numbers: an odd number near 2^64 divided by the golden ratio's square root.
const SPREAD: u64 = 0xd1b5_4a32_d192_ed03;

/// The random numbers of row `number`: a sequence that it and the seed determine.
fn of_row(seed: u64, number: u64) -> Random {
    // Neighbouring states would give overlapping sequences: the first number of each is another's seed.
    Random::new(Random::new(seed ^ number.wrapping_mul(SPREAD)).next())
}

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
