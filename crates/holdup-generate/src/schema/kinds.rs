//! The kinds of fields as the file writes them: `uniform: 1..5000`, `choice: {paid: 9, open: 1}`, ….

use std::str::FromStr;
use std::sync::Arc;

use holdup_load::YamlError;
use holdup_load::script::encoding::is_json_literal;
use holdup_load::yaml::{Map, Node};
use holdup_recording::clock;

use crate::field::{Field, Kind, Value};
use crate::zipf::Zipf;

/// The keys of a field, one of which it has.
const KINDS: [&str; 13] = [
    "sequence", "uniform", "zipf", "choice", "text", "words", "date", "chance", "uuid", "value", "nested", "array",
    "nulls",
];

/// Deepest nesting of `nested` and `array`.
const DEPTH_MAX: usize = 50;

/// Longest text, letters, and most items of a list.
const LENGTH_MAX: u64 = 1 << 20;

/// Most fields, so that a row stays one.
const FIELDS_MAX: usize = 1_000;

/// The fields of a schema.
pub(super) fn fields(node: &Node) -> Result<Vec<Field>, YamlError> {
    fields_at(node, 0)
}

fn fields_at(node: &Node, depth: usize) -> Result<Vec<Field>, YamlError> {
    let entries = node.entries()?;
    if entries.is_empty() {
        return Err(node.error("there must be at least one field, e.g. total: {uniform: 1..500}"));
    }
    if entries.len() > FIELDS_MAX {
        return Err(node.error(format!("more than {FIELDS_MAX} fields")));
    }
    entries.iter().map(|(name, node)| field(name, node, depth)).collect()
}

fn field(name: &str, node: &Node, depth: usize) -> Result<Field, YamlError> {
    if name.is_empty() || name.starts_with('$') || name.contains(['\0', '.']) {
        return Err(node.error(format!("\"{name}\" cannot be the name of a field: no $ before it, and no dot in it")));
    }
    if depth > DEPTH_MAX {
        return Err(node.error(format!("fields are nested more than {DEPTH_MAX} deep")));
    }
    let name: Arc<str> = name.into();
    // The short form for kinds that need nothing.
    if !node.is_map() {
        let kind = match node.text()? {
            "sequence" => Kind::Sequence { from: 1, step: 1 },
            "uuid" => Kind::Uuid,
            other => {
                let kinds = KINDS.join(", ");
                return Err(node.error(format!(
                    "\"{other}\" is not a kind of field; e.g. {{uniform: 1..500}}; there are {kinds}"
                )));
            }
        };
        return Ok(Field { name, kind, nulls: 0.0 });
    }
    let map = node.map(&KINDS)?;
    let mut given = node.entries()?.iter().filter(|(key, _)| key != "nulls");
    let (key, value) = given.next().ok_or_else(|| node.error("say what it holds, e.g. uniform: 1..500"))?;
    if let Some((other, value)) = given.next() {
        return Err(value.error(format!("a field has one kind, and here are {key} and {other}")));
    }
    let nulls = map.get("nulls").map_or(Ok(0.0), |node| node.number("a share of the rows", 0.0..=1.0))?;
    Ok(Field { name, kind: kind(key, value, &map, depth)?, nulls })
}

fn kind(key: &str, node: &Node, map: &Map<'_>, depth: usize) -> Result<Kind, YamlError> {
    Ok(match key {
        "sequence" => {
            let map = node.map(&["from", "step"])?;
            let part =
                |key: &str| map.get(key).map_or(Ok(1), |node| number::<i64>(node, node.text()?, "a whole number"));
            Kind::Sequence { from: part("from")?, step: part("step")? }
        }
        "uniform" => uniform(node)?,
        "zipf" => {
            let map = node.map(&["of", "exponent"])?;
            let exponent = map.get("exponent").map_or(Ok(1.0), |node| node.number("the exponent", 0.0..=10.0))?;
            Kind::Zipf(Zipf::new(map.need("of")?.integer("ranks", 1..=1 << 53)?, exponent))
        }
        "choice" => Kind::Choice(choices(node)?),
        "text" => lengths(node).map(|(from, to)| Kind::Text { from, to })?,
        "words" => lengths(node).map(|(from, to)| Kind::Words { from, to })?,
        "date" => {
            let (from, to) = ends(node)?;
            let ms = |text: &str| {
                let ns = clock::parse_rfc3339(text).or_else(|| clock::parse_rfc3339(&format!("{text}T00:00:00Z")));
                ns.map(|ns| ns.div_euclid(1_000_000)).ok_or_else(|| {
                    node.error(format!("\"{text}\" is not a date such as 2026-01-31 or 2026-01-31T08:49:37Z"))
                })
            };
            let (from, to) = (ms(from)?, ms(to)?);
            ordered(node, &from, &to)?;
            Kind::Date { from, to }
        }
        "chance" => Kind::Chance(node.number("a probability", 0.0..=1.0)?),
        "uuid" => Kind::Uuid,
        "value" => Kind::Constant(plain(node)?),
        "nested" => Kind::Nested(fields_at(node, depth + 1)?),
        "array" => {
            let map = node.map(&["length", "of"])?;
            let (from, to) = lengths(map.need("length")?)?;
            Kind::Array { from, to, item: Box::new(field("item", map.need("of")?, depth + 1)?) }
        }
        _ => return Err(map.node().error("say what it holds, e.g. uniform: 1..500")),
    })
}

/// Whole numbers, or numbers with as many digits after the point as the ends have.
fn uniform(node: &Node) -> Result<Kind, YamlError> {
    let (from, to) = ends(node)?;
    let digits = |text: &str| text.split_once('.').map_or(0, |(_, digits)| digits.len());
    let digits = digits(from).max(digits(to));
    if digits == 0 {
        let (from, to) = (number(node, from, "a whole number")?, number(node, to, "a whole number")?);
        ordered(node, &from, &to)?;
        return Ok(Kind::Uniform { from, to });
    }
    if digits > 9 {
        return Err(node.error("at most 9 digits after the point"));
    }
    let by = 10_f64.powi(digits as i32);
    let scaled = |text: &str| {
        let scaled = (number::<f64>(node, text, "a number")? * by).round();
        if scaled.abs() < 9e15 { Ok(scaled as i64) } else { Err(node.error(format!("{text} is too large"))) }
    };
    let (from, to) = (scaled(from)?, scaled(to)?);
    ordered(node, &from, &to)?;
    Ok(Kind::Decimal { from, to, by })
}

/// A list of values, or values with weights.
fn choices(node: &Node) -> Result<Vec<(Value, u64)>, YamlError> {
    let mut sum = 0;
    let mut add = |value, weight: u64| {
        sum += weight;
        (value, sum)
    };
    let found: Vec<(Value, u64)> = if node.is_map() {
        let entries = node.entries()?.iter();
        entries
            .map(|(name, weight)| Ok(add(as_plain(name), weight.integer("a weight", 0..=1_000_000)?)))
            .collect::<Result<_, YamlError>>()?
    } else {
        node.list().iter().map(|node| Ok(add(plain(node)?, 1))).collect::<Result<_, YamlError>>()?
    };
    if sum == 0 {
        return Err(node.error("there must be at least one value, e.g. [red, green] or {paid: 9, open: 1}"));
    }
    Ok(found)
}

/// A value as it is written: a number, true, false or null where it has no quotes.
fn plain(node: &Node) -> Result<Value, YamlError> {
    if node.is_empty() {
        return Ok(Value::Null);
    }
    let text = node.text()?;
    Ok(if node.is_plain() { as_plain(text) } else { Value::Text(text.to_owned()) })
}

fn as_plain(text: &str) -> Value {
    match text {
        "true" | "false" => Value::Bool(text == "true"),
        "null" => Value::Null,
        _ if is_json_literal(text.as_bytes()) => match (text.parse(), text.parse()) {
            (Ok(int), _) => Value::Int(int),
            (_, Ok(double)) => Value::Double(double),
            _ => Value::Text(text.to_owned()),
        },
        _ => Value::Text(text.to_owned()),
    }
}

/// `A..B`, or one number for both.
fn ends(node: &Node) -> Result<(&str, &str), YamlError> {
    let text = node.text()?;
    Ok(text.split_once("..").unwrap_or((text, text)))
}

fn lengths(node: &Node) -> Result<(u64, u64), YamlError> {
    let (from, to) = ends(node)?;
    let (from, to) = (number(node, from, "a whole number")?, number(node, to, "a whole number")?);
    ordered(node, &from, &to)?;
    if to > LENGTH_MAX {
        return Err(node.error(format!("{to} is out of range: at most {LENGTH_MAX}")));
    }
    Ok((from, to))
}

fn ordered<T: PartialOrd>(node: &Node, from: &T, to: &T) -> Result<(), YamlError> {
    if from > to { Err(node.error("the first end is above the second; swap them")) } else { Ok(()) }
}

fn number<T: FromStr>(node: &Node, text: &str, what: &str) -> Result<T, YamlError> {
    text.trim().parse().map_err(|_| node.error(format!("expected {what}, or two as in 1..500, found \"{text}\"")))
}
