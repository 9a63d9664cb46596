//! One element of Amazon's lists: a result, a series, an instance. Its few facts stay as they are,
//! its points become numbers; both are bounded.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::shown;

/// Most bytes of one element, without its points.
const LARGEST: usize = 16 << 20;
/// Memory of a value in addition to its text, bytes, roughly.
const VALUE_BYTES: usize = 64;
/// Most points of one element.
const MOST_POINTS: usize = 4_000_000;

/// An element.
#[derive(Debug, Default)]
pub(super) struct Element {
    pub facts: Map<String, Value>,
    /// `Timestamps` of `get-metric-data`, nanoseconds.
    pub timestamps: Vec<i64>,
    /// `Values` of it; not a number if a value is missing.
    pub values: Vec<f64>,
    /// `DataPoints` of Performance Insights, likewise.
    pub points: Vec<(i64, f64)>,
}

impl Element {
    pub fn text(&self, key: &str) -> Option<&str> {
        self.facts.get(key)?.as_str()
    }

    fn check(&self) -> Result<(), String> {
        let (times, values) = (self.timestamps.len(), self.values.len());
        if times == values {
            return Ok(());
        }
        let (id, label) = (shown(self.text("Id").unwrap_or_default()), shown(self.text("Label").unwrap_or_default()));
        Err(format!(
            "result {id} ({label}) has {times} Timestamps and {values} Values, so they cannot be paired; save the output of aws cloudwatch get-metric-data again, unchanged"
        ))
    }
}

/// Reads an element.
pub(super) struct ElementSeed;

impl<'de> DeserializeSeed<'de> for ElementSeed {
    type Value = Element;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Element, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ElementSeed {
    type Value = Element;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, as aws prints it")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Element, A::Error> {
        let left = Cell::new(LARGEST);
        let mut element = Element::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "Timestamps" => element.timestamps = map.next_value_seed(Many(|text: Value| moment(&text)))?,
                "Values" => {
                    element.values = map.next_value_seed(Many(|value: Value| Ok(figure(&value).unwrap_or(f64::NAN))))?
                }
                "DataPoints" => element.points = map.next_value_seed(Many(|value: Value| point(&value)))?,
                _ => {
                    left.set(left.get().saturating_sub(key.len() + VALUE_BYTES));
                    let value = map.next_value_seed(Small(&left))?;
                    element.facts.insert(key, value);
                }
            }
        }
        // Here, where the value's place in the file is known.
        element.check().map_err(A::Error::custom)?;
        Ok(element)
    }
}

/// A list of small values, each converted at once.
struct Many<F>(F);

impl<'de, T, F: FnMut(Value) -> Result<T, String>> DeserializeSeed<'de> for Many<F> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T, F: FnMut(Value) -> Result<T, String>> Visitor<'de> for Many<F> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut all = Vec::new();
        loop {
            let left = Cell::new(LARGEST);
            let Some(value) = list.next_element_seed(Small(&left))? else { return Ok(all) };
            all.push((self.0)(value).map_err(A::Error::custom)?);
            if all.len() > MOST_POINTS {
                let why = format!("a series has more than {MOST_POINTS} points; request a shorter period");
                return Err(A::Error::custom(why));
            }
        }
    }
}

/// Any value that fits into the rest of a bound.
pub(super) struct Small<'a>(pub &'a Cell<usize>);

impl Small<'_> {
    /// The bound on a value that stands alone.
    pub fn bound() -> Cell<usize> {
        Cell::new(LARGEST)
    }

    fn take<E: Error>(&self, bytes: usize) -> Result<(), E> {
        let left = self.0.get().checked_sub(bytes + VALUE_BYTES);
        self.0.set(left.unwrap_or(0));
        left.map(drop).ok_or_else(|| E::custom(format!("one element is larger than {LARGEST} bytes")))
    }
}

impl<'de> DeserializeSeed<'de> for Small<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Small<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.take(0).map(|()| Value::Null)
    }

    fn visit_bool<E: Error>(self, is: bool) -> Result<Value, E> {
        self.take(0).map(|()| Value::Bool(is))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        self.take(0).map(|()| number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        self.take(0).map(|()| number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        self.take(0).map(|()| Number::from_f64(number).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.take(text.len()).map(|()| Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = list.next_element_seed(Small(self.0))? {
            all.push(value);
        }
        self.take(0).map(|()| Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            self.take(key.len())?;
            let value = map.next_value_seed(Small(self.0))?;
            all.insert(key, value);
        }
        Ok(Value::Object(all))
    }
}

/// Reads a list of any length, one element at a time.
pub(super) struct Each<F>(pub F);

impl<'de, F: FnMut(Element) -> Result<(), String>> DeserializeSeed<'de> for Each<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(Element) -> Result<(), String>> Visitor<'de> for Each<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects, as aws prints it")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element_seed(ElementSeed)? {
            (self.0)(element).map_err(A::Error::custom)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // Read to its end, so that the message has a place.
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Err(A::Error::custom("expected a list here, found an object"))
    }
}

/// A number, if it is one; a missing value is a gap.
pub(super) fn figure(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|number| number.is_finite())
}

/// Nanoseconds since the Unix epoch, from an RFC 3339 text or a number of seconds, or of
/// milliseconds if it is too large for seconds.
///
/// # Errors
///
/// In words, if it is neither.
pub(super) fn moment(value: &Value) -> Result<i64, String> {
    let found = match value {
        Value::String(text) if text.trim().parse::<f64>().is_err() => {
            crate::moment::unix_ms(text).and_then(|ms| ms.checked_mul(1_000_000))
        }
        _ => figure(value).and_then(epoch),
    };
    // Nothing was measured in 1970 or after 2260.
    found.filter(|ns| (1_000_000_000..9_100_000_000_000_000_000).contains(ns)).ok_or_else(|| {
        let text = shown(&value.to_string());
        format!("{text} is not a time; expected e.g. 2026-11-22T10:00:00+00:00 or 1795341600 (seconds since 1970)")
    })
}

/// Nanoseconds from a number of seconds or milliseconds.
fn epoch(number: f64) -> Option<i64> {
    /// This is the year 5138 in seconds, and 1973 in milliseconds.
    const SECONDS_MAX: f64 = 1e11;
    let ns = if number.abs() < SECONDS_MAX { number * 1e9 } else { number * 1e6 };
    // A number of today's seconds with a fraction is exact to microseconds.
    (ns.abs() < 9.2e18).then(|| (ns / 1e3).round() as i64 * 1_000)
}

/// A point of Performance Insights; not a number if its value is missing.
fn point(value: &Value) -> Result<(i64, f64), String> {
    let at = moment(value.get("Timestamp").unwrap_or(&Value::Null))?;
    Ok((at, value.get("Value").and_then(figure).unwrap_or(f64::NAN)))
}
