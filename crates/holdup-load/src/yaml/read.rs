//! Builds a tree from YAML's events. A file can be hostile. Nesting is bounded, so that walking the
//! tree cannot overflow the stack. Repetition by aliases is bounded, too, so that a short text
//! stays a small tree.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::{Name, Node, Step, Value, YamlError};

/// Deepest nesting of lists and maps. Steps within steps, the deepest part of a scenario, take
/// three levels each.
const DEPTH_MAX: usize = 256;

/// Memory that anchors and aliases may take beside the text, bytes.
const REPEATED_BYTES_MAX: usize = 16 << 20;

/// Parses `text`, the contents of `file`, which must contain one document.
pub fn parse(text: &str, file: &str) -> Result<Node, YamlError> {
    let mut tree = Tree { file: file.into(), open: Vec::new(), anchors: HashMap::new(), repeated_bytes: 0, root: None };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|e| tree.error(e.marker().line(), e.info()))?;
        tree.take(event, span)?;
    }
    let mut root = tree.root.take().ok_or_else(|| tree.error(1, "the file is empty"))?.node;
    place(&mut root, None);
    Ok(root)
}

/// A finished value.
#[derive(Clone)]
struct FinishedNode {
    node: Node,
    /// Levels of lists and maps in it, itself included.
    height: usize,
    /// Memory it takes, about.
    bytes: usize,
}

/// A list or map that is being read.
struct OpenNode {
    done: FinishedNode,
    anchor: usize,
    /// The key whose value is next, and its line.
    key: Option<(String, usize)>,
    keys: HashSet<String>,
}

struct Tree {
    file: Arc<str>,
    open: Vec<OpenNode>,
    anchors: HashMap<usize, FinishedNode>,
    repeated_bytes: usize,
    root: Option<FinishedNode>,
}

impl Tree {
    fn error(&self, line: usize, message: &str) -> YamlError {
        YamlError { file: self.file.to_string(), line, message: message.to_owned() }
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let line = span.start.line();
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(self.error(line, "a second document begins here; there may be only one"))
            }
            Event::Scalar(text, style, anchor, _) => {
                let is_plain = style == ScalarStyle::Plain;
                let is_empty = is_plain && matches!(&*text, "" | "~" | "null");
                let value = if is_empty { Value::Empty } else { Value::Text(text.into_owned()) };
                let done = self.value(line, value, is_plain);
                self.end(done, anchor)
            }
            Event::SequenceStart(anchor, _) => self.begin(line, Value::List(Vec::new()), anchor),
            Event::MappingStart(anchor, _) => self.begin(line, Value::Map(Vec::new()), anchor),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.end(open.done, open.anchor),
                None => Ok(()),
            },
            Event::Alias(anchor) => {
                let mut done = self
                    .anchors
                    .get(&anchor)
                    .cloned()
                    .ok_or_else(|| self.error(line, "an alias of an unknown anchor"))?;
                self.repeat(line, done.bytes)?;
                done.node.line = line;
                self.end(done, 0)
            }
            _ => Ok(()),
        }
    }

    fn value(&self, line: usize, value: Value, is_plain: bool) -> FinishedNode {
        let text = if let Value::Text(text) = &value { text.len() } else { 0 };
        let node = Node { file: Arc::clone(&self.file), line, place: None, value, is_plain };
        FinishedNode { node, height: 0, bytes: size_of::<Node>() + text }
    }

    fn begin(&mut self, line: usize, value: Value, anchor: usize) -> Result<(), YamlError> {
        let done = self.value(line, value, false);
        self.open.push(OpenNode { done: FinishedNode { height: 1, ..done }, anchor, key: None, keys: HashSet::new() });
        self.bounded(line, self.open.len())
    }

    fn bounded(&self, line: usize, depth: usize) -> Result<(), YamlError> {
        if depth > DEPTH_MAX {
            return Err(self.error(line, &format!("values are nested deeper than {DEPTH_MAX} levels")));
        }
        Ok(())
    }

    fn repeat(&mut self, line: usize, bytes: usize) -> Result<(), YamlError> {
        self.repeated_bytes += bytes;
        if self.repeated_bytes > REPEATED_BYTES_MAX {
            let mib = REPEATED_BYTES_MAX >> 20;
            return Err(self.error(line, &format!("anchors and aliases repeat more than {mib} MiB")));
        }
        Ok(())
    }

    /// Puts a finished value in its place.
    fn end(&mut self, done: FinishedNode, anchor: usize) -> Result<(), YamlError> {
        let line = done.node.line;
        self.bounded(line, self.open.len() + done.height)?;
        if anchor > 0 {
            self.repeat(line, done.bytes)?;
            self.anchors.insert(anchor, done.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(done);
            return Ok(());
        };
        parent.done.height = parent.done.height.max(done.height + 1);
        parent.done.bytes += done.bytes;
        let mut node = done.node;
        match (&mut parent.done.node.value, parent.key.take()) {
            (Value::Map(entries), Some((key, key_line))) => {
                if !matches!(node.value, Value::Text(_)) {
                    // A nested value starts lines below its key; errors should point at the key.
                    node.line = key_line;
                }
                parent.done.bytes += size_of::<String>() + key.len();
                entries.push((key, node));
            }
            (Value::Map(_), None) => {
                let key = match node.value {
                    Value::Text(text) => text,
                    Value::Empty => String::new(),
                    _ => return Err(self.error(line, "a key must be a plain text")),
                };
                if !parent.keys.insert(key.clone()) {
                    return Err(self.error(line, &format!("the key \"{key}\" appears twice")));
                }
                parent.key = Some((key, line));
            }
            (Value::List(items), _) => items.push(node),
            _ => {}
        }
        Ok(())
    }
}

/// Gives each value of `node` its place.
fn place(node: &mut Node, at: Option<Arc<Step>>) {
    let step = |name| Some(Arc::new(Step { above: at.clone(), name }));
    match &mut node.value {
        Value::List(items) => {
            items.iter_mut().enumerate().for_each(|(number, item)| place(item, step(Name::Item(number))));
        }
        Value::Map(entries) => {
            entries.iter_mut().for_each(|(key, node)| place(node, step(Name::Key(key.as_str().into()))));
        }
        Value::Empty | Value::Text(_) => {}
    }
    node.place = at;
}
