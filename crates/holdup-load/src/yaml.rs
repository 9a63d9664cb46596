//! YAML with the place of every value, so that an error can give the file, line, key and the way
//! out. Values stay text until a number, a duration or a rate is read from them. It knows nothing
//! about scenarios.

mod emit;
mod read;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

pub use holdup_recording::duration::parse as parse_duration;

/// An error in a file: `scenario.yaml:7: unknown key "duraton"; did you mean "duration"?`
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct YamlError {
    /// The file's name as given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub message: String,
}

/// One value and its place.
#[derive(Clone, Debug)]
pub struct Node {
    file: Arc<str>,
    line: usize,
    /// Its last step from the top; none at the top.
    place: Option<Arc<Step>>,
    value: Value,
    /// A text without quotes, which could be a number or the like.
    is_plain: bool,
}

/// One step of the path from the top to a value. Values share them: a whole path in each would
/// multiply long keys.
#[derive(Debug)]
struct Step {
    above: Option<Arc<Step>>,
    name: Name,
}

#[derive(Debug)]
enum Name {
    Key(Box<str>),
    Item(usize),
}

#[derive(Clone, Debug)]
enum Value {
    Empty,
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Parses `text`, the contents of `file`, which must contain one document.
    ///
    /// # Errors
    /// If it is not YAML, repeats a key, is nested too deep, or contains no document or several.
    pub fn parse(text: &str, file: &str) -> Result<Self, YamlError> {
        read::parse(text, file)
    }

    /// An error about this value.
    pub fn error(&self, message: impl fmt::Display) -> YamlError {
        let path = self.path();
        let message = if path.is_empty() { message.to_string() } else { format!("{path}: {message}") };
        YamlError { file: self.file.to_string(), line: self.line, message }
    }

    /// Its path, e.g. `load.duration`, `operations[2]`.
    pub fn path(&self) -> String {
        let mut steps: Vec<&Step> =
            std::iter::successors(self.place.as_deref(), |step| step.above.as_deref()).collect();
        steps.reverse();
        let mut path = String::new();
        for step in steps {
            match &step.name {
                Name::Item(number) => path.push_str(&format!("[{number}]")),
                Name::Key(key) => {
                    path.push_str(if path.is_empty() { "" } else { "." });
                    path.push_str(key);
                }
            }
        }
        path
    }

    /// As a map whose keys must be among `known`.
    ///
    /// # Errors
    /// If it is not a map, or has another key: the message names the nearest of `known`.
    pub fn map(&self, known: &[&str]) -> Result<Map<'_>, YamlError> {
        let Value::Map(entries) = &self.value else {
            return Err(self.error(format!("expected keys and values ({}), found {}", known.join(", "), self.kind())));
        };
        for (key, node) in entries {
            if !known.contains(&key.as_str()) {
                let hint = hint(key, known);
                let path = self.path();
                let place = if path.is_empty() { path } else { format!(" in {path}") };
                return Err(YamlError {
                    file: node.file.to_string(),
                    line: node.line,
                    message: format!("unknown key \"{key}\"{place}; {hint}"),
                });
            }
        }
        Ok(Map { node: self, entries })
    }

    /// As a map with any keys.
    ///
    /// # Errors
    /// If it is not a map.
    pub fn entries(&self) -> Result<&[(String, Node)], YamlError> {
        match &self.value {
            Value::Map(entries) => Ok(entries),
            Value::Empty => Ok(&[]),
            _ => Err(self.error(format!("expected keys and values, found {}", self.kind()))),
        }
    }

    /// As a list. A single value is a list of one.
    pub fn list(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            Value::Empty => &[],
            Value::Text(_) | Value::Map(_) => std::slice::from_ref(self),
        }
    }

    /// As text.
    ///
    /// # Errors
    /// If it is a list, a map or empty.
    pub fn text(&self) -> Result<&str, YamlError> {
        match &self.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.error(format!("expected a text, found {}", self.kind()))),
        }
    }

    /// As a number in `range`; `what` names it with its unit, e.g. `requests per second`.
    ///
    /// # Errors
    /// If it is not a number, or out of range.
    pub fn number(&self, what: &str, range: RangeInclusive<f64>) -> Result<f64, YamlError> {
        self.within(what, "", range)
    }

    /// As an integer in `range`.
    ///
    /// # Errors
    /// If it is not an integer, or out of range.
    pub fn integer<T: FromStr + PartialOrd + fmt::Display>(
        &self,
        what: &str,
        range: RangeInclusive<T>,
    ) -> Result<T, YamlError> {
        self.within(what, ", a whole number", range)
    }

    fn within<T: FromStr + PartialOrd + fmt::Display>(
        &self,
        what: &str,
        kind: &str,
        range: RangeInclusive<T>,
    ) -> Result<T, YamlError> {
        let text = self.text()?;
        let value = text.parse().map_err(|_| self.error(format!("expected {what}{kind}, found \"{text}\"")))?;
        if range.contains(&value) {
            return Ok(value);
        }
        Err(self.error(format!("{text} is out of range: {what}, from {} to {}", range.start(), range.end())))
    }

    /// As one of the words of `known`; `what` names it.
    ///
    /// # Errors
    /// If it is another one: the message names all of `known`.
    pub fn one_of<T: Copy>(&self, what: &str, known: &[(&str, T)]) -> Result<T, YamlError> {
        let text = self.text()?;
        known.iter().find(|(word, _)| *word == text).map(|(_, meant)| *meant).ok_or_else(|| {
            let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
            self.error(format!("unknown {what} \"{text}\"; there are: {}", words.join(", ")))
        })
    }

    /// As a duration such as `250ms`, `20s`, `1m30s`, `2h`.
    ///
    /// # Errors
    /// If it is not a duration; a bare number has no unit and is refused.
    pub fn duration(&self) -> Result<Duration, YamlError> {
        let text = self.text()?;
        parse_duration(text).map_err(|why| self.error(why))
    }

    /// The file it comes from.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Whether it is a text without quotes.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Whether it is a map.
    pub fn is_map(&self) -> bool {
        matches!(self.value, Value::Map(_))
    }

    /// Whether it is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.value, Value::List(_))
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        matches!(self.value, Value::Empty)
    }

    /// Whether it is a map with this key.
    pub fn has(&self, key: &str) -> bool {
        matches!(&self.value, Value::Map(entries) if entries.iter().any(|(k, _)| k == key))
    }

    /// Replaces each text in it for which `with` returns another.
    ///
    /// # Errors
    /// The first that `with` returns.
    pub fn fill<E>(&mut self, with: &mut impl FnMut(&Self, &str) -> Result<Option<String>, E>) -> Result<(), E> {
        if let Value::Text(text) = &self.value
            && let Some(filled) = with(self, text)?
        {
            self.value = Value::Text(filled);
        }
        match &mut self.value {
            Value::List(items) => items.iter_mut().try_for_each(|item| item.fill(with)),
            Value::Map(entries) => entries.iter_mut().try_for_each(|(_, node)| node.fill(with)),
            Value::Text(_) | Value::Empty => Ok(()),
        }
    }

    /// Removes a key from a map.
    pub fn take(&mut self, key: &str) -> Option<Node> {
        let Value::Map(entries) = &mut self.value else { return None };
        let at = entries.iter().position(|(k, _)| k == key)?;
        Some(entries.remove(at).1)
    }

    /// Adds what `other` has and this lacks: keys of maps, also within keys that both have; items
    /// of lists, in front of its own.
    pub fn absorb(&mut self, other: Node) {
        match (&mut self.value, other.value) {
            (Value::Map(mine), Value::Map(theirs)) => {
                for (key, node) in theirs {
                    match mine.iter_mut().find(|(k, _)| *k == key) {
                        Some((_, own)) => own.absorb(node),
                        None => mine.push((key, node)),
                    }
                }
            }
            (Value::List(mine), Value::List(mut theirs)) => {
                theirs.append(mine);
                *mine = theirs;
            }
            _ => {}
        }
    }

    fn kind(&self) -> &'static str {
        match self.value {
            Value::Empty => "nothing",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "keys and values",
        }
    }
}

/// A map that has only allowed keys.
#[derive(Clone, Copy)]
pub struct Map<'a> {
    node: &'a Node,
    entries: &'a [(String, Node)],
}

impl<'a> Map<'a> {
    /// The value of `key`, if it is present and not empty.
    pub fn get(&self, key: &str) -> Option<&'a Node> {
        self.entries.iter().find(|(k, n)| k == key && !matches!(n.value, Value::Empty)).map(|(_, n)| n)
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// If it is missing.
    pub fn need(&self, key: &str) -> Result<&'a Node, YamlError> {
        self.get(key).ok_or_else(|| self.node.error(format!("\"{key}\" is missing")))
    }

    /// The map itself, for errors about the whole.
    pub fn node(&self) -> &'a Node {
        self.node
    }
}

/// The one of `known` that is most likely meant by `word`, if any is near.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    crate::script::nearest(word, known.iter().copied())
}

/// What to write instead of `word`, which `known` lacks.
pub fn hint(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if known.is_empty() => "none exists".to_owned(),
        None => format!("there are: {}", known.join(", ")),
    }
}
