//! Commands of MongoDB as a scenario writes them: YAML becomes documents whose values may be templates.
//! Types that YAML lacks are written in MongoDB's extended JSON. What a command means is the server's
//! affair; only what cannot be right is refused here.

#[cfg(test)]
mod tests;

use holdup_mongodb::{Value, Writer, command_shape};

use crate::script::Template;
use crate::script::document::{DocumentValue, Kind};
use crate::script::encoding::is_json_literal;
use crate::script::program::Command;
use crate::yaml::{Node, YamlError};

/// Types in extended JSON.
const TYPES: [&str; 12] = [
    "$numberInt",
    "$numberLong",
    "$numberDouble",
    "$numberDecimal",
    "$oid",
    "$date",
    "$uuid",
    "$binary",
    "$regularExpression",
    "$timestamp",
    "$minKey",
    "$maxKey",
];

/// Methods of drivers, and the command that each sends.
const METHODS: [(&str, &str); 12] = [
    ("findOne", "{find: orders, filter: {...}, limit: 1}"),
    ("insertOne", "{insert: orders, documents: [{...}]}"),
    ("insertMany", "{insert: orders, documents: [{...}, {...}]}"),
    ("updateOne", "{update: orders, updates: [{q: {...}, u: {$set: {...}}}]}"),
    ("updateMany", "{update: orders, updates: [{q: {...}, u: {$set: {...}}, multi: true}]}"),
    ("replaceOne", "{update: orders, updates: [{q: {...}, u: {...}}]}"),
    ("deleteOne", "{delete: orders, deletes: [{q: {...}, limit: 1}]}"),
    ("deleteMany", "{delete: orders, deletes: [{q: {...}, limit: 0}]}"),
    ("findOneAndUpdate", "{findAndModify: orders, query: {...}, update: {$set: {...}}}"),
    ("findOneAndDelete", "{findAndModify: orders, query: {...}, remove: true}"),
    ("countDocuments", "{count: orders, query: {...}}"),
    ("bulkWrite", "{insert: ...}, {update: ...} or {delete: ...}"),
];

/// Fields that belong to a transaction.
const OF_TRANSACTION: [&str; 4] = ["lsid", "txnNumber", "startTransaction", "autocommit"];

/// Reads the template of a value.
pub type ReadTemplate<'t> = dyn FnMut(&Node, &str) -> Result<Template, YamlError> + 't;

/// Reads a command; `has_database` tells whether the target names one. The command's shape, which has none
/// of its values, comes with it.
///
/// # Errors
/// What is wrong, with its line and what would be right.
pub fn command(
    node: &Node,
    has_database: bool,
    template: &mut ReadTemplate<'_>,
) -> Result<(Command, String), YamlError> {
    let entries = if node.is_map() { node.entries()? } else { &[] };
    let (name, first) =
        entries.first().ok_or_else(|| node.error("expected a command, e.g. {find: orders, filter: {_id: 1}}"))?;
    if let Some((method, instead)) = METHODS.iter().find(|(method, _)| method == name) {
        return Err(node.error(format!("{method} is a method of drivers; the command for it is {instead}")));
    }
    if let Some((key, value)) = entries.iter().find(|(key, _)| OF_TRANSACTION.contains(&key.as_str())) {
        return Err(value.error(format!("{key} belongs to a transaction; write transaction: [{{command: ...}}]")));
    }
    if name == "aggregate" && !node.has("cursor") && !node.has("explain") {
        return Err(node.error("MongoDB requires a cursor here: add cursor: {}"));
    }
    let (mut database, mut values) = (None, Vec::new());
    for (key, value) in entries {
        if key == "$db" {
            let text = template(value, value.text()?)?;
            let text = text.constant().ok_or_else(|| value.error("the database is the same for every request"))?;
            database = Some(text.to_owned());
            continue;
        }
        values.push((field_name(key, value)?, read(value, template)?));
    }
    if database.is_none() && !has_database {
        let way_out = "the target names no database: add one after the slash (mongodb://HOST/shop), or $db here";
        return Err(node.error(way_out));
    }
    // `ping: 1` has no collection, and a number would be a value in a name.
    let is_value = |text: &str| first.is_plain() && is_json_literal(text.as_bytes());
    let collection = first.text().ok().filter(|text| !is_value(text)).unwrap_or_default();
    let document = DocumentValue::Map(values);
    let shape = command_shape(&shape_value(&document), &super::statement::blanked(collection)).unwrap_or_default();
    let batch = if name == "find" { Some(node) } else { entry(node, "cursor") };
    let batch = batch.and_then(|node| entry(node, "batchSize")).and_then(|size| size.text().ok()?.parse().ok());
    let command = Command { database, name: name.clone(), batch, has_comment: node.has("comment"), document };
    Ok((command, shape.trim_end().to_owned()))
}

fn entry<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    let entries = if node.is_map() { node.entries().ok()? } else { &[] };
    entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
}

/// The name of a field, which is never a template.
fn field_name(name: &str, node: &Node) -> Result<Box<str>, YamlError> {
    if name.contains("${") {
        return Err(node.error(format!("names of fields are not filled in, only values: \"{name}\"")));
    }
    if name.contains('\0') {
        return Err(node.error("the name of a field can't hold a NUL byte"));
    }
    Ok(name.into())
}

fn read(node: &Node, template: &mut ReadTemplate<'_>) -> Result<DocumentValue, YamlError> {
    if node.is_map() {
        let entries = node.entries()?;
        if let [(name, value)] = entries
            && let Some(single) = typed(name, value, template)?
        {
            return Ok(single);
        }
        let fields = entries.iter().map(|(name, value)| Ok((field_name(name, value)?, read(value, template)?)));
        return Ok(DocumentValue::Map(fields.collect::<Result<_, YamlError>>()?));
    }
    if node.is_list() {
        return Ok(DocumentValue::List(node.list().iter().map(|item| read(item, template)).collect::<Result<_, _>>()?));
    }
    if node.is_empty() {
        return Ok(DocumentValue::Single(Kind::Plain, template(node, "null")?));
    }
    let kind = if node.is_plain() { Kind::Plain } else { Kind::Text };
    Ok(DocumentValue::Single(kind, template(node, node.text()?)?))
}

/// A value whose type is named; none if `name` is another name.
fn typed(name: &str, value: &Node, template: &mut ReadTemplate<'_>) -> Result<Option<DocumentValue>, YamlError> {
    if !TYPES.contains(&name) {
        return match TYPES.iter().find(|known| known.eq_ignore_ascii_case(name)) {
            Some(known) => Err(value.error(format!("unknown type \"{name}\"; did you mean \"{known}\"?"))),
            None => Ok(None),
        };
    }
    let part = |key: &str| {
        let part = entry(value, key).ok_or_else(|| value.error(format!("\"{key}\" is missing")))?;
        Ok::<_, YamlError>((part, part.text()?))
    };
    let (kind, (node, text)) = match name {
        "$numberInt" => (Kind::Int, (value, value.text()?)),
        "$numberLong" => (Kind::Long, (value, value.text()?)),
        "$numberDouble" => (Kind::Double, (value, value.text()?)),
        "$numberDecimal" => (Kind::Decimal, (value, value.text()?)),
        "$oid" => (Kind::Id, (value, value.text()?)),
        "$uuid" => (Kind::Uuid, (value, value.text()?)),
        "$minKey" | "$maxKey" => (Kind::EndOfOrder(name == "$maxKey"), (value, "")),
        // Canonically a date is {$date: {$numberLong: "0"}}.
        "$date" => {
            let inner = entry(value, "$numberLong").unwrap_or(value);
            (Kind::Date, (inner, inner.text()?))
        }
        "$binary" => {
            let (kind, text) = part("subType")?;
            let number = u8::from_str_radix(text, 16);
            let number = number.map_err(|_| kind.error(format!("expected two hex digits, found \"{text}\"")))?;
            (Kind::Binary(number), part("base64")?)
        }
        "$regularExpression" => (Kind::Pattern(part("options")?.1.into()), part("pattern")?),
        _ => {
            let (_, increment) = part("i")?;
            let (seconds, text) = part("t")?;
            let template = template(seconds, &format!("{text}:{increment}"))?;
            return single(seconds, name, Kind::Timestamp, template).map(Some);
        }
    };
    let template = template(node, text)?;
    single(node, name, kind, template).map(Some)
}

/// The value, if its text fits its kind or is not known yet.
fn single(node: &Node, name: &str, kind: Kind, template: Template) -> Result<DocumentValue, YamlError> {
    if let Some(text) = template.constant()
        && let Err(expected) = kind.put("", text, Writer::new())
    {
        return Err(node.error(format!("{name} is {expected}, found \"{text}\"")));
    }
    Ok(DocumentValue::Single(kind, template))
}

/// Names and nesting of a document, without its values.
fn shape_value(value: &DocumentValue) -> Value {
    match value {
        DocumentValue::Map(entries) => {
            Value::Map(entries.iter().map(|(name, value)| (name.to_string(), shape_value(value))).collect())
        }
        DocumentValue::List(items) => Value::List(items.iter().map(shape_value).collect()),
        DocumentValue::Single(..) => Value::Null,
    }
}
