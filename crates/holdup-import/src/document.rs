//! JSON and YAML documents as one tree with line numbers, so that a note can name the place. Depth
//! and number of nodes are bounded; aliases of YAML count as often as they are used.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::io::Read;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

use crate::error::ImportError;

/// Deepest nesting of YAML; `serde_json` has the same bound for JSON.
const DEEPEST: usize = 128;

/// Most values in a document.
const MOST_NODES: usize = 5_000_000;

/// One value and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Line, from 1.
    pub line: usize,
    pub value: Value,
}

/// The value.
#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Bool(bool),
    /// As written.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// The value of a key, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        // If a key occurs twice the last one counts, as in most readers of JSON.
        self.entries().iter().rev().find(|(k, _)| k == key).map(|(_, node)| node)
    }

    /// The value at the end of a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Its entries; none if it is not a map.
    pub fn entries(&self) -> &[(String, Node)] {
        if let Value::Map(entries) = &self.value { entries } else { &[] }
    }

    /// Its items; none if it is not a list.
    pub fn items(&self) -> &[Node] {
        if let Value::List(items) = &self.value { items } else { &[] }
    }

    /// Its text, if it is one.
    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    /// A plain value as text.
    pub fn as_text(&self) -> Option<String> {
        match &self.value {
            Value::Text(text) | Value::Number(text) => Some(text.clone()),
            Value::Bool(b) => Some(b.to_string()),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }

    pub fn is_true(&self) -> bool {
        matches!(self.value, Value::Bool(true))
    }

    /// As JSON, with at most `budget` values, which it takes from.
    pub fn json(&self, budget: &mut usize) -> Json {
        if *budget == 0 {
            return Json::Null;
        }
        *budget -= 1;
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(b) => Json::Bool(*b),
            Value::Number(text) => serde_json::from_str(text).unwrap_or_else(|_| Json::String(text.clone())),
            Value::Text(text) => Json::String(text.clone()),
            Value::List(items) => Json::Array(items.iter().map(|item| item.json(budget)).collect()),
            Value::Map(entries) => {
                Json::Object(entries.iter().map(|(key, node)| (key.clone(), node.json(budget))).collect())
            }
        }
    }

    /// How many values it counts as when it is repeated: a long text counts as the values that fill
    /// the same memory.
    fn size(&self) -> usize {
        1 + match &self.value {
            Value::List(items) => items.iter().map(Self::size).sum(),
            Value::Map(entries) => entries.iter().map(|(key, node)| key.len() / size_of::<Self>() + node.size()).sum(),
            Value::Text(text) | Value::Number(text) => text.len() / size_of::<Self>(),
            Value::Null | Value::Bool(_) => 0,
        }
    }

    fn depth(&self) -> usize {
        1 + match &self.value {
            Value::List(items) => items.iter().map(Self::depth).max().unwrap_or(0),
            Value::Map(entries) => entries.iter().map(|(_, node)| node.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }
}

/// Reads JSON or YAML, whichever it is.
pub fn any(text: &str, file: &str) -> Result<Node, ImportError> {
    if text.trim_start().starts_with(['{', '[']) { json(text, file) } else { yaml(text, file) }
}

/// Reads JSON.
pub fn json(text: &str, file: &str) -> Result<Node, ImportError> {
    let line = Cell::new(1);
    let nodes = Cell::new(0);
    let reader = CountLines { text: text.as_bytes(), line: &line };
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    let seed = Seed { line: &line, nodes: &nodes };
    let wrong = |e: serde_json::Error| ImportError::new(file, e.line(), format!("this is not JSON: {e}"));
    let node = seed.deserialize(&mut deserializer).map_err(wrong)?;
    deserializer.end().map_err(wrong)?;
    Ok(node)
}

/// Counts the lines read so far. `serde_json` takes its bytes one by one and looks at most one
/// ahead.
struct CountLines<'a> {
    text: &'a [u8],
    line: &'a Cell<usize>,
}

impl Read for CountLines<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.text.read(into)?;
        let breaks = into[..count].iter().filter(|b| **b == b'\n').count();
        self.line.set(self.line.get() + breaks);
        Ok(count)
    }
}

#[derive(Clone, Copy)]
struct Seed<'a> {
    line: &'a Cell<usize>,
    nodes: &'a Cell<usize>,
}

impl Seed<'_> {
    fn node<E: serde::de::Error>(self, line: usize, value: Value) -> Result<Node, E> {
        self.nodes.set(self.nodes.get() + 1);
        if self.nodes.get() > MOST_NODES {
            return Err(E::custom(format!("there are more than {MOST_NODES} values")));
        }
        Ok(Node { line, value })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Node, E> {
        self.node(self.line.get(), Value::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, b: bool) -> Result<Node, E> {
        self.node(self.line.get(), Value::Bool(b))
    }

    fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<Node, E> {
        self.node(self.line.get(), Value::Number(n.to_string()))
    }

    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<Node, E> {
        self.node(self.line.get(), Value::Number(n.to_string()))
    }

    fn visit_f64<E: serde::de::Error>(self, n: f64) -> Result<Node, E> {
        self.node(self.line.get(), Value::Number(Json::from(n).to_string()))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Node, E> {
        self.node(self.line.get(), Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let line = self.line.get();
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self)? {
            items.push(item);
        }
        self.node(line, Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let line = self.line.get();
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            // Readers look at the key's line, as in YAML.
            let line = self.line.get();
            let mut value = map.next_value_seed(self)?;
            value.line = line;
            entries.push((key, value));
        }
        self.node(line, Value::Map(entries))
    }
}

/// A list or map that is being read.
struct Open {
    anchor: usize,
    node: Node,
    /// The key whose value is next, its line, and whether it is the plain `<<`.
    key: Option<(String, usize, bool)>,
}

/// Reads YAML: its first document.
pub fn yaml(text: &str, file: &str) -> Result<Node, ImportError> {
    let wrong = |line: usize, why: String| ImportError::new(file, line, why);
    let mut open: Vec<Open> = Vec::new();
    let mut anchors: HashMap<usize, Node> = HashMap::new();
    let mut nodes = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|e| wrong(e.marker().line(), format!("this is not YAML: {}", e.info())))?;
        let line = span.start.line();
        let mut is_plain = false;
        let (anchor, node) = match event {
            Event::Scalar(text, style, anchor, _) => {
                is_plain = style == ScalarStyle::Plain;
                let value = if style == ScalarStyle::Plain { plain(&text) } else { Value::Text(text.into_owned()) };
                (anchor, Node { line, value })
            }
            Event::SequenceStart(anchor, _) => {
                open.push(Open { anchor, node: Node { line, value: Value::List(Vec::new()) }, key: None });
                check_depth(open.len()).map_err(|why| wrong(line, why))?;
                continue;
            }
            Event::MappingStart(anchor, _) => {
                open.push(Open { anchor, node: Node { line, value: Value::Map(Vec::new()) }, key: None });
                check_depth(open.len()).map_err(|why| wrong(line, why))?;
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(done) => (done.anchor, done.node),
                None => continue,
            },
            Event::Alias(anchor) => {
                let node = anchors.get(&anchor).ok_or_else(|| wrong(line, "an alias without an anchor".to_owned()))?;
                nodes += node.size();
                check_depth(open.len() + node.depth()).map_err(|why| wrong(line, why))?;
                if nodes > MOST_NODES {
                    return Err(wrong(line, format!("there are more than {MOST_NODES} values, aliases included")));
                }
                (0, Node { line, ..node.clone() })
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                continue;
            }
        };
        nodes += 1;
        if nodes > MOST_NODES {
            return Err(wrong(line, format!("there are more than {MOST_NODES} values")));
        }
        if anchor > 0 {
            nodes += node.size();
            anchors.insert(anchor, node.clone());
        }
        let Some(Open { node: parent, key, .. }) = open.last_mut() else { return Ok(node) };
        match &mut parent.value {
            Value::List(items) => items.push(node),
            Value::Map(entries) => match key.take() {
                Some((_, line, true)) => merge(entries, Node { line, ..node }),
                Some((key, line, _)) => entries.push((key, Node { line, ..node })),
                None => {
                    let name = match node.value {
                        Value::Null => String::new(),
                        _ => node.as_text().ok_or_else(|| wrong(line, "a key must be a plain text".to_owned()))?,
                    };
                    let is_merge = is_plain && name == "<<";
                    *key = Some((name, line, is_merge));
                }
            },
            _ => {}
        }
    }
    Err(wrong(1, "the file is empty".to_owned()))
}

/// Merges the entries of another map (`<<`); the map's own entries win.
fn merge(entries: &mut Vec<(String, Node)>, node: Node) {
    let sources = if let Value::List(items) = node.value { items } else { vec![node] };
    for source in sources {
        if let Value::Map(more) = source.value {
            let more: Vec<_> = more.into_iter().filter(|(key, _)| !entries.iter().any(|(k, _)| k == key)).collect();
            entries.extend(more);
        }
    }
}

fn check_depth(depth: usize) -> Result<(), String> {
    if depth > DEEPEST { Err(format!("values are nested deeper than {DEEPEST}")) } else { Ok(()) }
}

/// A plain scalar by the core schema of YAML 1.2.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ if text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
            && serde_json::from_str::<serde_json::Number>(text).is_ok() =>
        {
            Value::Number(text.to_owned())
        }
        _ => Value::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_document_in_json_and_yaml() {
        let a = json("{\n \"a\": [1, \"x\", null],\n \"b\": {\"c\": true}\n}", "f").unwrap();
        let b = yaml("#\na: [1, 'x', ~]\nb: {c: true}\n", "f").unwrap();
        assert_eq!(a.json(&mut 100), b.json(&mut 100));
        assert_eq!((a.get("b").unwrap().line, b.get("b").unwrap().line), (3, 3));
        assert_eq!(a.get("a").unwrap().line, 2);
    }

    #[test]
    fn aliases_are_filled_in_and_merged() {
        let node = yaml("x: &x {a: 1}\ny: {<<: *x, b: 2}\nz: *x\n", "f").unwrap();
        assert_eq!(node.at(&["y", "a"]).unwrap().as_text().as_deref(), Some("1"));
        assert_eq!(node.at(&["z", "a"]).unwrap().as_text().as_deref(), Some("1"));
    }

    #[test]
    fn bombs_do_not_go_off() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..12 {
            let inside = vec![format!("*a{}", n - 1); 10].join(", ");
            bomb.push_str(&format!("a{n}: &a{n} [{inside}]\n"));
        }
        assert!(yaml(&bomb, "f").unwrap_err().message.contains("more than"));
        // 1 MiB, 5,000 times.
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(5_000));
        assert!(yaml(&long, "f").unwrap_err().message.contains("more than"));
        assert!(json(&"[".repeat(100_000), "f").is_err());
        assert!(yaml(&"[".repeat(1_000), "f").is_err());
        assert!(yaml(&"- ".repeat(1_000), "f").is_err());
    }

    #[test]
    fn mistakes_name_their_line() {
        assert_eq!(json("{\n\"a\": }", "f").unwrap_err().line, 2);
        assert!(yaml("a: [1\nb: 2\n", "f").is_err());
        assert_eq!(yaml("", "f").unwrap_err().message, "the file is empty");
    }
}
