//! What a field of the schema holds: one value for a row, drawn from the row's random numbers.

use std::sync::Arc;

use holdup_load::script::Random;

use crate::words::WORDS;
use crate::zipf::Zipf;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Double(f64),
    /// A text.
    Text(String),
    /// Milliseconds since 1970.
    Time(i64),
    /// Values with names.
    Map(Vec<(Arc<str>, Value)>),
    /// A list.
    List(Vec<Value>),
}

/// How the values of a field come about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// `from + step * (n - 1)` for row `n`.
    Sequence {
        from: i64,
        step: i64,
    },
    /// Whole numbers, both ends included.
    Uniform {
        from: i64,
        to: i64,
    },
    /// The same, divided by this.
    Decimal {
        from: i64,
        to: i64,
        by: f64,
    },
    Zipf(Zipf),
    /// Values with the sum of their weights and those before.
    Choice(Vec<(Value, u64)>),
    /// So many letters.
    Text {
        from: u64,
        to: u64,
    },
    /// So many words.
    Words {
        from: u64,
        to: u64,
    },
    /// Milliseconds since 1970.
    Date {
        from: i64,
        to: i64,
    },
    /// True with this probability.
    Chance(f64),
    Uuid,
    Constant(Value),
    Nested(Vec<Field>),
    Array {
        from: u64,
        to: u64,
        item: Box<Field>,
    },
}

/// A field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: Arc<str>,
    pub(crate) kind: Kind,
    /// The share of rows in which it is null.
    pub(crate) nulls: f64,
}

impl Field {
    /// Its value in row `number`, from 1.
    pub(crate) fn value(&self, number: u64, random: &mut Random) -> Value {
        if self.nulls > 0.0 && random.unit() < self.nulls {
            return Value::Null;
        }
        match &self.kind {
            Kind::Sequence { from, step } => Value::Int(from.wrapping_add(step.wrapping_mul((number - 1) as i64))),
            Kind::Uniform { from, to } => Value::Int(between(*from, *to, random)),
            Kind::Decimal { from, to, by } => Value::Double(between(*from, *to, random) as f64 / by),
            Kind::Zipf(zipf) => Value::Int(zipf.draw(random) as i64),
            Kind::Choice(choices) => choose(choices, random),
            Kind::Text { from, to } => {
                let length = below(*from, *to, random);
                Value::Text((0..length).map(|_| char::from(b'a' + random.below(26) as u8)).collect())
            }
            Kind::Words { from, to } => {
                let mut text = String::new();
                for place in 0..below(*from, *to, random) {
                    text.push_str(if place > 0 { " " } else { "" });
                    text.push_str(WORDS.get(random.below(WORDS.len() as u64) as usize).unwrap_or(&""));
                }
                Value::Text(text)
            }
            Kind::Date { from, to } => Value::Time(between(*from, *to, random)),
            Kind::Chance(share) => Value::Bool(random.unit() < *share),
            Kind::Uuid => Value::Text(uuid(random)),
            Kind::Constant(value) => value.clone(),
            Kind::Nested(fields) => {
                Value::Map(fields.iter().map(|f| (Arc::clone(&f.name), f.value(number, random))).collect())
            }
            Kind::Array { from, to, item } => {
                let length = below(*from, *to, random);
                Value::List((0..length).map(|_| item.value(number, random)).collect())
            }
        }
    }
}

fn between(from: i64, to: i64, random: &mut Random) -> i64 {
    let width = to.wrapping_sub(from) as u64;
    from.wrapping_add(random.below(width.saturating_add(1)) as i64)
}

fn below(from: u64, to: u64, random: &mut Random) -> u64 {
    from + random.below(to - from + 1)
}

fn choose(choices: &[(Value, u64)], random: &mut Random) -> Value {
    let sum = choices.last().map_or(0, |(_, sum)| *sum);
    let at = random.below(sum);
    choices.iter().find(|(_, sum)| at < *sum).map_or(Value::Null, |(value, _)| value.clone())
}

/// A UUID of version 4, from the row's own numbers.
fn uuid(random: &mut Random) -> String {
    let (high, low) = (random.next(), random.next());
    let high = high & 0xffff_ffff_ffff_0fff | 0x4000;
    let low = low & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}
