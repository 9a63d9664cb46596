//! Values by schema: its example, else a made-up value that fits.

use serde_json::{Map, Value as Json};

use super::{Description, plain};
use crate::content::hide;
use crate::document::{Node, Value};
use crate::template::literal;

/// Deepest nesting of a sample: a schema may contain itself.
const DEEPEST: usize = 12;

impl<'a> Description<'a> {
    /// A body from the description of a media type; its texts are templates. It has at most
    /// `budget` values.
    pub(super) fn sample_of(&mut self, media: &'a Node, mut budget: usize) -> Json {
        let examples = media.get("examples").map_or(&[][..], Node::entries);
        let first = examples.first().and_then(|(_, e)| self.resolve(e)).and_then(|e| e.get("value"));
        let mut json = match media.get("example").or(first) {
            Some(example) => templates(example.json(&mut budget)),
            None => match media.get("schema") {
                Some(schema) => self.sample(schema, "", DEEPEST, &mut budget),
                None => Json::Object(Map::new()),
            },
        };
        let (secrets, notes, line) = (&mut self.secrets, &mut self.notes, media.line);
        hide(&mut json, &mut |name, value| secrets.name(name, value, &format!("field {name}"), line, notes));
        json
    }

    /// A value that fits a schema; `name` is the field that it is for.
    fn sample(&mut self, schema: &'a Node, name: &str, depth: usize, budget: &mut usize) -> Json {
        let Some(at) = self.resolve(schema) else { return Json::Null };
        let is_within_itself = self.open.iter().any(|open| std::ptr::eq(*open, at));
        if depth == 0 || *budget == 0 || is_within_itself {
            return Json::Null;
        }
        *budget -= 1;
        self.open.push(at);
        let value = self.fitting(at, name, depth, budget);
        self.open.pop();
        value
    }

    fn fitting(&mut self, at: &'a Node, name: &str, depth: usize, budget: &mut usize) -> Json {
        let listed = at.get("examples").and_then(|e| e.items().first());
        let given = at.get("example").or(listed).or(at.get("default")).or(at.get("const"));
        if let Some(given) = given.or_else(|| at.get("enum").and_then(|e| e.items().first())) {
            return templates(given.json(budget));
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(first) = at.get(key).and_then(|list| list.items().first()) {
                return self.sample(first, name, depth - 1, budget);
            }
        }
        let mut object = Map::new();
        for part in at.get("allOf").map_or(&[][..], Node::items) {
            match self.sample(part, name, depth - 1, budget) {
                Json::Object(fields) => object.extend(fields),
                other if at.get("properties").is_none() && !other.is_null() => return other,
                _ => {}
            }
        }
        for (key, property) in at.get("properties").map_or(&[][..], Node::entries) {
            let is_read_only = self.resolve(property).is_some_and(|p| p.get("readOnly").is_some_and(Node::is_true));
            if !is_read_only && *budget > 0 {
                let value = self.sample(property, key, depth - 1, budget);
                // A value that is nested too deep is left out rather than sent as null.
                if !value.is_null() {
                    object.insert(key.clone(), value);
                }
            }
        }
        if !object.is_empty() || kind(at) == "object" || at.get("allOf").is_some() {
            return Json::Object(object);
        }
        match kind(at) {
            "array" => match at.get("items") {
                Some(items) => match self.sample(items, name, depth - 1, budget) {
                    Json::Null => Json::Array(Vec::new()),
                    item => Json::Array(vec![item]),
                },
                None => Json::Array(Vec::new()),
            },
            "integer" => Json::from(whole(at)),
            "number" => number(at),
            "boolean" => Json::Bool(true),
            "null" => Json::Null,
            _ => Json::String(text(at, name)),
        }
    }

    /// A value for a parameter without an example, as a template.
    pub(super) fn made_up(&mut self, parameter: &'a Node, name: &str) -> String {
        let content =
            parameter.get("content").and_then(|c| c.entries().first()).and_then(|(_, media)| media.get("schema"));
        let Some(schema) = parameter.get("schema").or(content).and_then(|s| self.resolve(s)) else {
            return "${random(1, 1000)}".to_owned();
        };
        let schema = ["oneOf", "anyOf", "allOf"]
            .iter()
            .find_map(|key| schema.get(key)?.items().first())
            .and_then(|first| self.resolve(first))
            .unwrap_or(schema);
        if let Some(all) = schema.get("enum") {
            let all: Vec<String> = all.items().iter().filter_map(Node::as_text).collect();
            return match &all[..] {
                [] => String::new(),
                [one] => literal(one),
                _ => format!(
                    "${{pick({})}}",
                    all.iter().map(|v| crate::template::quoted(v)).collect::<Vec<_>>().join(", ")
                ),
            };
        }
        match kind(schema) {
            "integer" => {
                let low = bound(schema, "minimum").unwrap_or(1);
                let high = bound(schema, "maximum").unwrap_or(low.saturating_add(999)).max(low);
                format!("${{random({low}, {high})}}")
            }
            "number" => number(schema).to_string(),
            "boolean" => "${pick('true', 'false')}".to_owned(),
            "array" => {
                let item = schema.get("items").and_then(|i| self.resolve(i));
                let given =
                    item.and_then(|i| i.get("example").or(i.get("default")).or_else(|| i.get("enum")?.items().first()));
                given.and_then(plain).unwrap_or_else(|| {
                    item.map_or_else(
                        || "1".to_owned(),
                        |i| if kind(i) == "integer" { "1".to_owned() } else { text(i, name) },
                    )
                })
            }
            "object" => {
                let mut budget = 200;
                let sample = self.sample(schema, name, DEEPEST, &mut budget);
                sample.to_string()
            }
            _ => text(schema, name),
        }
    }
}

/// The type of a schema; of several (version 3.1) the first that is not null.
fn kind(schema: &Node) -> &str {
    match schema.get("type").map(|t| &t.value) {
        Some(Value::Text(kind)) => kind,
        Some(Value::List(all)) => all.iter().filter_map(Node::text).find(|k| *k != "null").unwrap_or("string"),
        _ if schema.get("items").is_some() => "array",
        _ if schema.get("properties").is_some() => "object",
        _ => "string",
    }
}

fn bound(schema: &Node, key: &str) -> Option<i64> {
    let number: f64 = schema.get(key)?.as_text()?.parse().ok()?;
    (number.abs() < 9e15).then_some(number.ceil() as i64)
}

fn whole(schema: &Node) -> i64 {
    let low = bound(schema, "minimum").or_else(|| bound(schema, "exclusiveMinimum").map(|n| n.saturating_add(1)));
    let high = bound(schema, "maximum").or_else(|| bound(schema, "exclusiveMaximum").map(|n| n.saturating_sub(1)));
    let step = bound(schema, "multipleOf").filter(|n| *n > 0).unwrap_or(1);
    let start = low.unwrap_or(1).min(high.unwrap_or(i64::MAX));
    let rest = start.rem_euclid(step);
    if rest == 0 { start } else { start + step - rest }
}

fn number(schema: &Node) -> Json {
    let text = |key: &str| schema.get(key).and_then(Node::as_text).and_then(|t| t.parse::<f64>().ok());
    let low = text("minimum").or(text("exclusiveMinimum").map(|n| n + 0.5)).unwrap_or(1.5);
    let value = text("maximum").map_or(low, |high| low.min(high));
    Json::from(if value.is_finite() { value } else { 1.5 })
}

/// A text of the schema's format and length, as a template.
fn text(schema: &Node, name: &str) -> String {
    match schema.get("format").and_then(Node::text).unwrap_or_default() {
        "uuid" => "${uuid()}".to_owned(),
        "date-time" => "${now('rfc3339')}".to_owned(),
        "date" => "2026-01-31".to_owned(),
        "time" => "12:30:00Z".to_owned(),
        "duration" => "P1D".to_owned(),
        "email" => "user${random(1, 1000000)}@example.com".to_owned(),
        "uri" | "url" | "uri-reference" => "https://example.com/${random_hex(8)}".to_owned(),
        "hostname" => "example.com".to_owned(),
        "ipv4" => "192.0.2.1".to_owned(),
        "ipv6" => "2001:db8::1".to_owned(),
        "byte" => "${base64(random_text(12))}".to_owned(),
        "password" => "${random_text(12)}".to_owned(),
        _ => {
            let length = |key: &str| schema.get(key).and_then(Node::as_text).and_then(|t| t.parse::<u32>().ok());
            let low = length("minLength").unwrap_or(1).min(1_000);
            let high = length("maxLength").unwrap_or(1_000).max(low).max(1);
            let looks_like_id = name.eq_ignore_ascii_case("id") || name.ends_with("Id") || name.ends_with("_id");
            if looks_like_id && low <= 1 && schema.get("pattern").is_none() {
                return "${random(1, 1000)}".to_owned();
            }
            format!("${{random_text({})}}", 8.clamp(low, high))
        }
    }
}

/// Texts of an example are not templates, so they are escaped.
fn templates(json: Json) -> Json {
    match json {
        Json::String(text) => Json::String(literal(&text)),
        Json::Array(items) => Json::Array(items.into_iter().map(templates).collect()),
        Json::Object(fields) => {
            Json::Object(fields.into_iter().map(|(name, value)| (name, templates(value))).collect())
        }
        other => other,
    }
}
