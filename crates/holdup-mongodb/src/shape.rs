//! The shape of an operation of MongoDB: its name, its collection and the names of the fields it
//! asks for. Every value is replaced by `?`.

use crate::value::Value;

/// Bytes of a shape.
const BYTES_MAX: usize = 2_000;

/// Parts of a command whose field names tell what is asked for.
const PARTS: [&str; 12] =
    ["filter", "query", "q", "pipeline", "sort", "projection", "updates", "deletes", "u", "update", "key", "collation"];

/// `find shop.orders filter { status: ?, total: { $gt: ? } }`; none if the command is unknown.
#[must_use]
pub fn shape(operation: &Value, namespace: &str) -> Option<String> {
    let command = operation.get("command").or_else(|| operation.get("query"))?;
    let original = operation.at(&["cursor", "originatingCommand"]).filter(|it| !it.entries().is_empty());
    let operation_name = operation.get("op").and_then(Value::text).unwrap_or("command");
    shape_of(command, original.unwrap_or(command), (operation_name, namespace))
}

/// The same for a command by itself.
#[must_use]
pub fn command_shape(command: &Value, namespace: &str) -> Option<String> {
    shape_of(command, command, ("command", namespace))
}

fn shape_of(command: &Value, asked: &Value, (operation_name, namespace): (&str, &str)) -> Option<String> {
    let (name, _) = command.entries().first()?;
    let is_name = !name.is_empty() && name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    // The old form of a write has the filter itself here.
    let is_command = is_name && !PARTS.contains(&name.as_str());
    let mut text = format!("{} {namespace}", if is_command { name.as_str() } else { operation_name });
    for part in PARTS {
        if let Some(value) = asked.get(part) {
            text.push_str(&format!(" {part} "));
            put(value, &mut text);
        }
    }
    let end = (0..=BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.truncate(end);
    Some(text)
}

/// The names in a value, in order. Lists of plain values are one `?`.
fn put(value: &Value, into: &mut String) {
    if into.len() > BYTES_MAX {
        return;
    }
    match value {
        Value::Map(entries) if !entries.is_empty() => {
            into.push_str("{ ");
            for (place, (name, value)) in entries.iter().enumerate() {
                into.push_str(if place > 0 { ", " } else { "" });
                into.push_str(name);
                into.push_str(": ");
                put(value, into);
            }
            into.push_str(" }");
        }
        Value::List(items) if items.iter().any(|item| !item.entries().is_empty()) => {
            into.push('[');
            for (place, item) in items.iter().enumerate() {
                into.push_str(if place > 0 { ", " } else { "" });
                put(item, into);
            }
            into.push(']');
        }
        _ => into.push('?'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bson::Document;
    use crate::writer::Writer;

    #[test]
    fn names_stay_and_values_go() {
        let filter = Writer::new().text("email", "canary@example").document("total", Writer::new().int("$gt", 5));
        let command = Writer::new().text("find", "orders").document("filter", filter).text("comment", "canary");
        let bytes = Writer::new().text("op", "query").document("command", command).finish();
        let operation = Document::read(&bytes).unwrap().value().unwrap();
        let text = shape(&operation, "shop.orders").unwrap();
        assert_eq!(text, "find shop.orders filter { email: ?, total: { $gt: ? } }");
    }
}
