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
    // A `getMore` is part of the query whose cursor it reads.
    let original = operation.at(&["cursor", "originatingCommand"]).filter(|it| !it.entries().is_empty());
    let operation_name = operation.get("op").and_then(Value::text).unwrap_or("command");
    shape_of(original.unwrap_or(command), (operation_name, namespace))
}

/// The same for a command by itself.
#[must_use]
pub fn command_shape(command: &Value, namespace: &str) -> Option<String> {
    shape_of(command, ("command", namespace))
}

/// Commands whose first value is a collection. Of other commands, it may be the name of a user.
const OF_COLLECTIONS: [&str; 23] = [
    "find",
    "aggregate",
    "insert",
    "update",
    "delete",
    "findAndModify",
    "findandmodify",
    "count",
    "distinct",
    "create",
    "createIndexes",
    "drop",
    "dropIndexes",
    "collMod",
    "collStats",
    "listIndexes",
    "mapReduce",
    "mapreduce",
    "validate",
    "compact",
    "reIndex",
    "killCursors",
    "convertToCapped",
];

/// The database and collection of a command as clients send it: `shop.orders`, or `shop.$cmd` if it
/// names none.
#[must_use]
pub fn namespace(command: &Value) -> String {
    let first = command.entries().first();
    let collection = match first {
        Some((name, value)) if OF_COLLECTIONS.contains(&name.as_str()) => value.text(),
        Some((name, _)) if name == "getMore" => command.get("collection").and_then(Value::text),
        Some((name, _)) if name == "bulkWrite" => {
            let first = command.get("nsInfo").and_then(|list| list.items().first()?.get("ns")?.text());
            return first.unwrap_or_default().to_owned();
        }
        _ => None,
    };
    let database = command.get("$db").and_then(Value::text);
    match (database, collection.unwrap_or("$cmd")) {
        (Some(database), collection) => format!("{database}.{collection}"),
        (None, collection) => collection.to_owned(),
    }
}

/// The shape of an operation as a log or the profiler reports it.
pub(crate) fn reported_shape(fields: &Value, namespace: &str) -> String {
    let operation_name = fields.get("type").or_else(|| fields.get("op")).and_then(Value::text).unwrap_or("command");
    // The oldest form has the query and the update beside each other.
    let (query, own) = (fields.get("query"), fields.get("command").filter(|it| !it.entries().is_empty()));
    let command = own.unwrap_or(if query.is_some() { fields } else { &Value::Null });
    let original = fields.get("originatingCommand").filter(|it| !it.entries().is_empty());
    let is_old = own.is_none();
    let shape = match () {
        () if is_old => parts(&format!("{} {namespace}", name_of(operation_name)), command),
        () => shape_of(original.unwrap_or(command), (operation_name, namespace)).unwrap_or_default(),
    };
    if shape.is_empty() { format!("{operation_name} {namespace}") } else { shape }
}

/// The name of an operation: logs and `currentOp` call a delete a remove.
fn name_of(operation_name: &str) -> &str {
    if operation_name == "remove" { "delete" } else { operation_name }
}

fn shape_of(command: &Value, (operation_name, namespace): (&str, &str)) -> Option<String> {
    let (name, value) = command.entries().first()?;
    let is_name = !name.is_empty() && name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    // The old form of a write has the filter itself here; the command `update` has its collection.
    let is_command = is_name && (!PARTS.contains(&name.as_str()) || value.text().is_some());
    let name = if is_command { name.as_str() } else { name_of(operation_name) };
    Some(parts(&format!("{name} {namespace}"), command))
}

/// `head` with the parts that tell what is asked for.
fn parts(head: &str, asked: &Value) -> String {
    let mut text = head.to_owned();
    for part in PARTS {
        let is_first = asked.entries().first().is_some_and(|(name, value)| name == part && value.text().is_some());
        let Some(value) = asked.get(part).filter(|_| !is_first) else { continue };
        let mut shape = String::new();
        put(value, &mut shape);
        match value.items().first() {
            // A batch of writes of one shape reads as one of them, as the server reports it.
            Some(write) if matches!(part, "updates" | "deletes") && shape == one_item(write) => {
                text = parts(&text, write);
            }
            _ => text.push_str(&format!(" {part} {shape}")),
        }
    }
    let end = (0..=BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.truncate(end);
    text
}

/// The shape of a list that has this item alone.
fn one_item(item: &Value) -> String {
    let mut shape = String::from("[");
    put(item, &mut shape);
    shape.push(']');
    shape
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
            // Items of one shape are written once: a batch of ten updates has the shape of one.
            let (mut last, mut is_first) = (String::new(), true);
            for item in items {
                let mut text = String::new();
                put(item, &mut text);
                if text != last {
                    into.push_str(if is_first { "" } else { ", " });
                    into.push_str(&text);
                    (last, is_first) = (text, false);
                }
                if into.len() > BYTES_MAX {
                    break;
                }
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

    #[test]
    fn a_get_more_has_the_shape_of_the_query_behind_it() {
        let query = || Writer::new().text("find", "orders").document("filter", Writer::new().text("email", "canary"));
        let more = || Writer::new().long("getMore", 7).text("collection", "orders");
        let read = |writer: Writer| Document::read(&writer.finish()).unwrap().value().unwrap();
        let head = || Writer::new().text("op", "getmore").document("command", more());
        let operation = read(head().document("cursor", Writer::new().document("originatingCommand", query())));
        assert_eq!(shape(&operation, "shop.orders").unwrap(), "find shop.orders filter { email: ? }");
        // Without the query, as a router shows it, it stays what it is.
        let operation = read(head().document("cursor", Writer::new().long("cursorId", 7)));
        assert_eq!(shape(&operation, "shop.orders").unwrap(), "getMore shop.orders");
        let reported = read(head().document("originatingCommand", query()));
        assert_eq!(reported_shape(&reported, "shop.orders"), "find shop.orders filter { email: ? }");
    }

    #[test]
    fn a_batch_has_the_shape_of_its_items() {
        let update = |field: &str| {
            let set = Writer::new().document("$set", Writer::new().int(field, 7));
            Writer::new().document("q", Writer::new().int("_id", 1)).document("u", set)
        };
        let text = |fields: &[&str]| {
            let list = fields.iter().fold(Writer::new(), |list, field| list.document("0", update(field)));
            let bytes = Writer::new().text("update", "t").list_of("updates", list).text("$db", "shop").finish();
            let command = Document::read(&bytes).unwrap().value().unwrap();
            command_shape(&command, &namespace(&command)).unwrap()
        };
        let [one, two] = ["a", "b"].map(|name| format!("{{ q: {{ _id: ? }}, u: {{ $set: {{ {name}: ? }} }} }}"));
        assert_eq!(text(&["a"]), "update shop.t q { _id: ? } u { $set: { a: ? } }");
        assert_eq!(text(&["a", "a", "a"]), text(&["a"]));
        assert_eq!(text(&["a", "b", "b", "a"]), format!("update shop.t updates [{one}, {two}, {one}]"));
    }

    #[test]
    fn a_namespace_is_of_a_collection_and_of_no_user() {
        let of = |command: Writer| namespace(&Document::read(&command.finish()).unwrap().value().unwrap());
        let admin = |name: &str| of(Writer::new().text(name, "canary").text("$db", "admin"));
        assert_eq!((admin("createUser"), admin("count")), ("admin.$cmd".to_owned(), "admin.canary".to_owned()));
        let more = Writer::new().long("getMore", 7).text("collection", "orders").text("$db", "shop");
        assert_eq!(of(more), "shop.orders");
        let names = Writer::list(|list| list.document("0", Writer::new().text("ns", "shop.a")));
        assert_eq!(of(Writer::new().int("bulkWrite", 1).list_of("nsInfo", names)), "shop.a");
    }
}
