//! Parses text into nodes. Every name is looked up here, so that a mistake is found before anything
//! is sent.

use std::sync::Arc;

use super::TemplateError;
use super::cursor::Cursor;
use super::function::FUNCTIONS;
use super::late::LateNames;
use super::tree::Node;
use crate::script::Names;
use holdup_recording::nearest::nearest;

/// How deep functions and vars may be nested.
const MAX_NESTING: usize = 32;
/// Most bytes that inlined vars may produce in one template, 1 MiB.
const MAX_INLINED_BYTES: usize = 1 << 20;
/// Least cost of inlining one var.
const INLINED_BYTES: usize = 64;
/// Most names that a message lists.
const MAX_LISTED: usize = 12;

/// The known names while a text is parsed, and the ones it used.
pub(crate) struct Scope<'n> {
    names: &'n Names,
    /// For the function `template`.
    late: LateNames<'n>,
    /// The vars that are being inlined, each nested in the one before it, by index.
    chain: Vec<usize>,
    /// Where the first of them is used.
    used_at: usize,
    /// Where the text begins, for errors.
    pub(crate) base: usize,
    nesting: usize,
    room: usize,
    pub(crate) secret: bool,
    feeders: Vec<u32>,
}

impl<'n> Scope<'n> {
    pub(crate) fn new(names: &'n Names) -> Self {
        Self {
            names,
            late: LateNames::new(names, parse_late),
            chain: Vec::new(),
            used_at: 0,
            base: 0,
            nesting: 0,
            room: MAX_INLINED_BYTES,
            secret: false,
            feeders: Vec::new(),
        }
    }

    pub(crate) fn names(&self) -> &'n Names {
        self.names
    }

    /// Feeders that were used, each once, in order.
    pub(crate) fn used(&mut self) -> Box<[u32]> {
        self.feeders.sort_unstable();
        self.feeders.dedup();
        self.feeders.as_slice().into()
    }

    /// An error at a place of the text that is being parsed.
    pub(crate) fn error(&self, at: usize, message: impl Into<String>) -> TemplateError {
        let message = message.into();
        match self.chain.last() {
            Some(&var) => {
                let message = format!("in var {}: {message}", self.names.texts()[var].0);
                TemplateError { message, at: self.base + self.used_at }
            }
            None => TemplateError { message, at: self.base + at },
        }
    }

    /// Nodes of the whole text.
    pub(crate) fn all_of(&mut self, text: &str) -> Result<Vec<Node>, TemplateError> {
        self.pieces(&mut Cursor::new(text), |_| false)
    }

    /// Nodes up to the end or, outside of expressions, to a character that ends them.
    pub(crate) fn pieces(
        &mut self,
        cursor: &mut Cursor<'_>,
        ends: fn(char) -> bool,
    ) -> Result<Vec<Node>, TemplateError> {
        let mut pieces = Pieces::default();
        loop {
            let at = cursor.at();
            if cursor.eat("$${") {
                pieces.literal.push_str("${");
            } else if cursor.eat("${") {
                let node = self.expression(cursor, Inside::Braces)?;
                cursor.skip_spaces();
                if !cursor.eat("}") {
                    return Err(match cursor.peek() {
                        None => self.error(at, "${ without a closing }; write $${ for a literal ${"),
                        Some(c) => self.error(cursor.at(), format!("expected }} and not \"{c}\"")),
                    });
                }
                pieces.push(node);
            } else {
                match cursor.peek() {
                    Some(c) if !ends(c) => pieces.literal.push(c),
                    _ => return Ok(pieces.all()),
                }
                cursor.next();
            }
        }
    }

    /// One expression, without the braces around it.
    pub(crate) fn expression(&mut self, cursor: &mut Cursor<'_>, inside: Inside) -> Result<Node, TemplateError> {
        cursor.skip_spaces();
        let at = cursor.at();
        if cursor.peek().is_some_and(|c| c == '\'' || c == '"') {
            let text = cursor.quoted().ok_or_else(|| self.error(at, "a quoted text has no closing quote"))?;
            return Ok(Node::Literal(text.into()));
        }
        if let Some(number) = cursor.number() {
            return Ok(Node::Literal(number.into()));
        }
        let word = cursor.word();
        if word.is_empty() {
            let found = cursor.peek().map_or("its end".to_owned(), |c| format!("\"{c}\""));
            return Err(self.error(at, format!("expected a name, a function or a quoted text, found {found}")));
        }
        if cursor.eat(".") {
            return self.dotted(word, at, cursor, inside);
        }
        let after = cursor.at();
        cursor.skip_spaces();
        if cursor.eat("(") {
            return self.call(word, at, cursor);
        }
        cursor.back_to(after);
        self.name(word, at)
    }

    fn name(&mut self, name: &str, at: usize) -> Result<Node, TemplateError> {
        let names = self.names;
        let text = names.texts().iter().position(|(known, _)| known == name);
        let text = text.map(|index| self.inlined(index, at)).transpose()?;
        if let Some(slot) = names.slot(name) {
            return Ok(Node::Variable { slot: slot.0, first: text.map(Box::new) });
        }
        if let Some(text) = text {
            return Ok(text);
        }
        // A feeder with a single column is enough of a name.
        let feeder = names.feeders().iter().position(|(known, columns)| known == name && columns.len() == 1);
        match feeder {
            Some(feeder) => Ok(self.cell(feeder, 0)),
            None => Err(self.unknown(name, at)),
        }
    }

    fn cell(&mut self, feeder: usize, column: usize) -> Node {
        let (feeder, column) = (feeder as u32, column as u32);
        self.feeders.push(feeder);
        Node::Cell { feeder, column }
    }

    /// The nodes of a var.
    fn inlined(&mut self, index: usize, at: usize) -> Result<Node, TemplateError> {
        let texts = self.names.texts();
        if self.chain.is_empty() {
            self.used_at = at;
        }
        if let Some(begin) = self.chain.iter().position(|&var| var == index) {
            let circle: Vec<&str> = self.chain[begin..].iter().map(|&var| texts[var].0.as_str()).collect();
            return Err(TemplateError { message: circle_message(&circle), at: self.base + self.used_at });
        }
        let text = &texts[index].1;
        let room = self.room.checked_sub(text.len().max(INLINED_BYTES));
        self.room = room.ok_or_else(|| self.error(at, "vars expand to more than 1 MiB"))?;
        let nodes = self.nested(at, |scope| {
            scope.chain.push(index);
            let nodes = scope.all_of(text);
            scope.chain.pop();
            nodes
        });
        nodes.map(Node::joined)
    }

    fn nested<T>(
        &mut self,
        at: usize,
        parse: impl FnOnce(&mut Self) -> Result<T, TemplateError>,
    ) -> Result<T, TemplateError> {
        if self.nesting == MAX_NESTING {
            return Err(self.error(at, format!("nested deeper than {MAX_NESTING}")));
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    fn call(&mut self, name: &str, at: usize, cursor: &mut Cursor<'_>) -> Result<Node, TemplateError> {
        let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) else {
            let hint = nearest(name, FUNCTIONS.iter().map(|function| function.name)).map_or_else(
                || format!("there are: {}", FUNCTIONS.iter().map(|f| f.name).collect::<Vec<_>>().join(", ")),
                |near| format!("did you mean {near}()?"),
            );
            return Err(self.error(at, format!("unknown function {name}(); {hint}")));
        };
        let arguments = self.nested(at, |scope| scope.arguments(name, at, cursor))?;
        let takes = |scope: &Self| scope.error(at, format!("{name}({}) takes {}", function.arguments, function.takes));
        if !(function.least..=function.most).contains(&arguments.len()) {
            return Err(takes(self));
        }
        (function.node)(arguments, &mut self.late).ok_or_else(|| takes(self))
    }

    fn arguments(&mut self, name: &str, at: usize, cursor: &mut Cursor<'_>) -> Result<Vec<Node>, TemplateError> {
        let mut arguments = Vec::new();
        cursor.skip_spaces();
        if cursor.eat(")") {
            return Ok(arguments);
        }
        loop {
            cursor.skip_spaces();
            let (from, is_quoted) = (cursor.at(), cursor.peek().is_some_and(|c| c == '\'' || c == '"'));
            arguments.push(self.expression(cursor, Inside::Call)?);
            // It would be sent literally, which is never intended.
            if is_quoted && name != "template" && cursor.since(from).contains("${") {
                return Err(
                    self.error(from, "a text in quotes is not filled in; put it into vars, and use its name here")
                );
            }
            cursor.skip_spaces();
            if cursor.eat(")") {
                return Ok(arguments);
            }
            if !cursor.eat(",") {
                return Err(match cursor.peek() {
                    None => self.error(at, "( without its )"),
                    Some(c) => self.error(cursor.at(), format!("expected , or ) and not \"{c}\"")),
                });
            }
        }
    }

    /// The part after the dot that follows `word`.
    fn dotted(
        &mut self,
        word: &str,
        at: usize,
        cursor: &mut Cursor<'_>,
        inside: Inside,
    ) -> Result<Node, TemplateError> {
        match word {
            "secret" => self.secret(at, cursor.word()),
            "env" => self.environment(at, cursor, inside),
            _ => self.column(word, at, cursor),
        }
    }

    fn secret(&mut self, at: usize, name: &str) -> Result<Node, TemplateError> {
        self.secret = true;
        let whole = format!("secret.{name}");
        match self.names.from_outside(&whole) {
            Some(value) => Ok(Node::Literal(value.into())),
            None => {
                let near =
                    nearest(&whole, self.names.all().iter().map(String::as_str).filter(|n| n.starts_with("secret.")))
                        .map(|near| format!("did you mean {near}? else "));
                let near = near.unwrap_or_default();
                Err(self.error(
                    at,
                    format!("{whole} is not known; {near}name {name} under secrets and set that environment variable"),
                ))
            }
        }
    }

    fn environment(&mut self, at: usize, cursor: &mut Cursor<'_>, inside: Inside) -> Result<Node, TemplateError> {
        let name = cursor.word();
        let value = self.names.from_outside(&format!("env.{name}"));
        if !cursor.eat(":-") {
            return value.map(|value| Node::Literal(value.into())).ok_or_else(|| {
                let way_out = format!("set it, or give a default: env.{name}:-text");
                self.error(at, format!("the environment variable {name} is not set; {way_out}"))
            });
        }
        let default_at = cursor.at();
        let default = match inside {
            Inside::Braces => cursor.run(|c| c != '}').into(),
            Inside::Call if cursor.peek().is_some_and(|c| c == '\'' || c == '"') => {
                cursor.quoted().ok_or_else(|| self.error(default_at, "a quoted text has no closing quote"))?
            }
            Inside::Call => cursor.run(|c| !matches!(c, ',' | ')' | '}')).trim().into(),
        };
        // As in a shell, which has the same notation, an empty value counts as missing.
        Ok(Node::Literal(value.filter(|value| !value.is_empty()).map_or(default.into(), Box::from)))
    }

    fn column(&mut self, feeder: &str, at: usize, cursor: &mut Cursor<'_>) -> Result<Node, TemplateError> {
        let column_at = cursor.at();
        let column = match cursor.peek() {
            Some('\'' | '"') => {
                cursor.quoted().ok_or_else(|| self.error(column_at, "a quoted text has no closing quote"))?
            }
            _ => cursor.run(|c| super::cursor::is_of_word(c) || c == '.').into(),
        };
        let Some(index) = self.names.feeders().iter().position(|(name, _)| name == feeder) else {
            if self.names.slot(feeder).is_some() || self.names.texts().iter().any(|(name, _)| name == feeder) {
                return Err(self.error(at, format!("{feeder} is a variable and has no columns; write ${{{feeder}}}")));
            }
            return Err(self.unknown(&format!("{feeder}.{column}"), at));
        };
        let columns = &self.names.feeders()[index].1;
        match columns.iter().position(|name| *name == column) {
            Some(column) => Ok(self.cell(index, column)),
            None => {
                let near = nearest(&column, columns.iter().map(String::as_str));
                let hint = hint(near, columns.iter().map(String::as_str));
                Err(self.error(column_at, format!("the feeder {feeder} has no column \"{column}\"{hint}")))
            }
        }
    }

    fn unknown(&self, name: &str, at: usize) -> TemplateError {
        if FUNCTIONS.iter().any(|function| function.name == name) {
            return self.error(at, format!("{name} is a function: write {name}()"));
        }
        let all = self.names.all();
        let known = all.iter().map(String::as_str);
        let near = nearest(name, known.clone().chain(FUNCTIONS.iter().map(|function| function.name)));
        let functions = FUNCTIONS
            .iter()
            .any(|function| Some(function.name) == near && !all.iter().any(|n| Some(n.as_str()) == near));
        let hint = match near {
            Some(near) if functions => format!("; did you mean {near}()?"),
            near => hint(near, known.filter(|name| !name.starts_with("env."))),
        };
        self.error(at, format!("unknown name \"{name}\"{hint}"))
    }
}

/// Reads a text that `template` expands; `room` bytes may be inlined. Returns how many are left,
/// too.
fn parse_late(names: &Arc<Names>, text: &str, room: usize) -> (Result<Vec<Node>, TemplateError>, usize) {
    let late = LateNames::shared(names, parse_late);
    let mut scope = Scope { late, room: room.min(MAX_INLINED_BYTES), ..Scope::new(names) };
    let nodes = scope.all_of(text);
    (nodes, scope.room)
}

/// The context of an expression.
#[derive(Clone, Copy)]
pub(crate) enum Inside {
    /// Between `${` and `}`.
    Braces,
    /// Among the arguments of a function.
    Call,
}

/// Collects nodes; adjacent literal texts become one node.
#[derive(Default)]
struct Pieces {
    nodes: Vec<Node>,
    literal: String,
}

impl Pieces {
    fn push(&mut self, node: Node) {
        match node {
            Node::Literal(text) => self.literal.push_str(&text),
            Node::Joined(nodes) => nodes.into_iter().for_each(|node| self.push(node)),
            node => {
                self.end_literal();
                self.nodes.push(node);
            }
        }
    }

    fn end_literal(&mut self) {
        if !self.literal.is_empty() {
            self.nodes.push(Node::Literal(std::mem::take(&mut self.literal).into()));
        }
    }

    fn all(mut self) -> Vec<Node> {
        self.end_literal();
        self.nodes
    }
}

fn hint<'a>(near: Option<&str>, known: impl Iterator<Item = &'a str>) -> String {
    if let Some(near) = near {
        return format!("; did you mean \"{near}\"?");
    }
    let known: Vec<&str> = known.take(MAX_LISTED + 1).collect();
    match known.len() {
        1..=MAX_LISTED => format!("; there are: {}", known.join(", ")),
        _ => String::new(),
    }
}

/// An error for vars that use each other in a circle, in the order of use.
fn circle_message(circle: &[&str]) -> String {
    match circle {
        [one] => format!("var {one} uses itself"),
        [others @ .., last] => {
            let way = circle.join(" -> ");
            format!("vars {} and {last} use each other ({way} -> {})", others.join(", "), circle[0])
        }
        [] => String::new(),
    }
}
