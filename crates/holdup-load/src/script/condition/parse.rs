//! Parses text into rules. `or` binds less tightly than `and`, `and` less than `not`, and `not`
//! less than a comparison.

use std::cmp::Ordering;

use regex::bytes::Regex;

use super::Subjects;
use super::compare::{Comparison, Operand, Relation, Subject, Test};
use super::rule::Rule;
use crate::script::capture::Pointer;
use crate::script::number::Number;
use crate::script::template::cursor::Cursor;
use crate::script::template::parse::{Inside, Scope};
use crate::script::template::tree::Node;
use crate::script::{Capture, Names, Pick, TemplateError, pattern};
use holdup_recording::nearest::nearest;

/// How deep parentheses and `not` may be nested.
const MAX_NESTING: usize = 32;

const HTTP: [&str; 6] = ["status", "body", "size", "json", "header", "cookie"];
const SQL: [&str; 2] = ["rows", "column"];
const TESTS: [&str; 4] = ["exists", "contains", "matches", "in"];
const RELATIONS: [(&str, Relation); 6] = [
    ("==", Ordering::is_eq),
    ("!=", Ordering::is_ne),
    ("<=", Ordering::is_le),
    (">=", Ordering::is_ge),
    ("<", Ordering::is_lt),
    (">", Ordering::is_gt),
];
const WANTED: &str = "one of == != < <= > >= contains matches in exists";

pub(super) struct Parser<'t> {
    cursor: Cursor<'t>,
    scope: Scope<'t>,
    subjects: Subjects,
    nesting: usize,
}

type Parsed<T> = Result<T, TemplateError>;

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, names: &'t Names, subjects: Subjects) -> Self {
        Self { cursor: Cursor::new(text), scope: Scope::new(names), subjects, nesting: 0 }
    }

    /// Feeders that were used.
    pub(super) fn used(&mut self) -> Box<[u32]> {
        self.scope.used()
    }

    /// The rule for the whole text.
    pub(super) fn whole(&mut self) -> Parsed<Rule> {
        let rule = self.any()?;
        self.cursor.skip_spaces();
        if self.cursor.rest().is_empty() {
            return Ok(rule);
        }
        let hint = match self.cursor.rest() {
            rest if rest.starts_with("&&") => "; write and",
            rest if rest.starts_with("||") => "; write or",
            rest if rest.starts_with(')') => "; its ( is missing",
            _ => "; a text of several words needs quotes",
        };
        Err(self.error(format!("expected and, or, or the end, found {}{hint}", self.found())))
    }

    fn any(&mut self) -> Parsed<Rule> {
        let mut rules = vec![self.all()?];
        while self.keyword("or") {
            rules.push(self.all()?);
        }
        Ok(one_or(rules, Rule::Any))
    }

    fn all(&mut self) -> Parsed<Rule> {
        let mut rules = vec![self.term()?];
        while self.keyword("and") {
            rules.push(self.term()?);
        }
        Ok(one_or(rules, Rule::All))
    }

    fn term(&mut self) -> Parsed<Rule> {
        if self.nesting == MAX_NESTING {
            return Err(self.error(format!("nested deeper than {MAX_NESTING}")));
        }
        self.nesting += 1;
        let rule = self.term_within();
        self.nesting -= 1;
        rule
    }

    fn term_within(&mut self) -> Parsed<Rule> {
        if self.keyword("not") {
            return self.term().map(|rule| Rule::Not(Box::new(rule)));
        }
        self.cursor.skip_spaces();
        let at = self.cursor.at();
        if !self.cursor.eat("(") {
            let subject = self.subject()?;
            let test = self.test()?;
            return Ok(Rule::Comparison(Box::new(Comparison { subject, test })));
        }
        let rule = self.any()?;
        self.cursor.skip_spaces();
        if self.cursor.eat(")") {
            return Ok(rule);
        }
        Err(match self.cursor.peek() {
            None => self.scope.error(at, "( without its )"),
            Some(_) => self.error(format!("expected and, or, or ), found {}", self.found())),
        })
    }

    /// Consumes the word if it is next.
    fn keyword(&mut self, keyword: &str) -> bool {
        self.cursor.skip_spaces();
        let at = self.cursor.at();
        let is_next = self.cursor.word() == keyword;
        if !is_next {
            self.cursor.back_to(at);
        }
        is_next
    }

    fn subject(&mut self) -> Parsed<Subject> {
        let at = self.cursor.at();
        match self.cursor.peek() {
            None => return Err(self.error("expected a condition, found its end")),
            Some('!') => return Err(self.error("expected a condition, found \"!\"; write not")),
            Some('$' | '\'' | '"' | '-' | '0'..='9') => return self.text(ends_operand).map(Subject::Text),
            _ => {}
        }
        let word = self.cursor.word();
        // A function or a feeder may be called `json` or `status`, too.
        let is_name = self.cursor.peek().is_some_and(|c| c == '(' || c == '.');
        let (is_http, is_sql) = (HTTP.contains(&word), SQL.contains(&word));
        if is_name || !(is_http || is_sql) {
            return self.variable(at);
        }
        if (is_http && self.subjects == Subjects::Http) || (is_sql && self.subjects == Subjects::Sql) {
            return self.response_subject(word);
        }
        if self.scope.names().slot(word).is_some() {
            return self.variable(at);
        }
        let where_to = if is_http { "a check of an HTTP response" } else { "a check of a statement" };
        Err(self.scope.error(at, format!("{word} is known only in {where_to}")))
    }

    fn variable(&mut self, at: usize) -> Parsed<Subject> {
        self.cursor.back_to(at);
        let known: &[&str] = match self.subjects {
            Subjects::None => &[],
            Subjects::Http => &HTTP,
            Subjects::Sql => &SQL,
        };
        let word = self.cursor.word();
        self.cursor.back_to(at);
        self.scope.expression(&mut self.cursor, Inside::Call).map(Subject::Text).map_err(|error| {
            match nearest(word, known.iter().copied()) {
                Some(near) if error.at == at && error.message.starts_with("unknown name") => {
                    self.scope.error(at, format!("unknown name \"{word}\"; did you mean \"{near}\"?"))
                }
                _ => error,
            }
        })
    }

    fn response_subject(&mut self, word: &str) -> Parsed<Subject> {
        Ok(match word {
            "status" => Subject::Status,
            "size" => Subject::Size,
            "rows" => Subject::Rows,
            "body" => Subject::Body,
            "header" => Subject::Header(self.name("header Content-Type")?),
            "cookie" => Subject::Cookie(self.name("cookie session")?),
            "column" => {
                let name = self.name("column id")?;
                Subject::Column(self.capture(&format!("column {name}"), Pick::First)?)
            }
            _ => self.json()?,
        })
    }

    /// The name of a field, a cookie or a column.
    fn name(&mut self, example: &str) -> Parsed<Box<str>> {
        self.cursor.skip_spaces();
        let name = self.bare_or_quoted()?;
        if name.is_empty() || TESTS.contains(&name.as_ref()) {
            return Err(self.error(format!("a name is missing, as in \"{example}\"")));
        }
        Ok(name)
    }

    fn json(&mut self) -> Parsed<Subject> {
        self.cursor.skip_spaces();
        let at = self.cursor.at();
        let word = self.cursor.word();
        self.cursor.back_to(at);
        // Without a pointer it is the whole body.
        let pointer = if TESTS.contains(&word) { Box::default() } else { self.bare_or_quoted()? };
        let parsed = Pointer::parse(&pointer);
        let parsed = parsed.map_err(|error| self.scope.error(at, format!("the JSON pointer {error}")))?;
        if pointer.split('/').any(|part| part == "*") {
            return self.capture(&format!("json {pointer}"), Pick::All).map(Subject::EveryJson);
        }
        Ok(Subject::Json(parsed))
    }

    fn capture(&self, source: &str, pick: Pick) -> Parsed<Capture> {
        Capture::new(source, pick, None).map_err(|error| self.error(error))
    }

    fn bare_or_quoted(&mut self) -> Parsed<Box<str>> {
        if self.is_quote() {
            return self.quoted().map(Box::from);
        }
        Ok(self.cursor.run(|c| !c.is_whitespace() && !matches!(c, ')' | '=' | '!' | '<' | '>')).into())
    }

    fn test(&mut self) -> Parsed<Test> {
        self.cursor.skip_spaces();
        let at = self.cursor.at();
        if let Some((_, relation)) = RELATIONS.iter().find(|(sign, _)| self.cursor.eat(sign)) {
            let node = self.operand(ends_operand)?;
            return Ok(Test::Is(*relation, Operand::new(node)));
        }
        match self.cursor.word() {
            "exists" => Ok(Test::Exists),
            "contains" => self.operand(ends_operand).map(|node| Test::Contains(Operand::needle(node))),
            "matches" => self.pattern().map(Test::Matches),
            "in" => self.within(),
            word => {
                self.cursor.back_to(at);
                let hint = match self.cursor.peek() {
                    Some('=') if self.cursor.rest().starts_with("=~") => "; write matches".to_owned(),
                    Some('=') => "; write ==".to_owned(),
                    _ => nearest(word, TESTS).map(|near| format!("; did you mean {near}?")).unwrap_or_default(),
                };
                Err(self.error(format!("expected {WANTED}, found {}{hint}", self.found())))
            }
        }
    }

    fn pattern(&mut self) -> Parsed<Regex> {
        self.cursor.skip_spaces();
        let at = self.cursor.at();
        let node = self.operand(ends_operand)?;
        let Some(pattern) = node.literal() else {
            return Err(self.scope.error(at, "a pattern must be constant: it cannot contain a variable"));
        };
        pattern::compile(pattern).map_err(|why| self.scope.error(at, why))
    }

    /// The part after `in`: a range, a list, or a variable that holds one.
    fn within(&mut self) -> Parsed<Test> {
        const WAYS: &str = "in takes a range such as 200..299, a list such as [a, b], or a list variable as ${ids}";
        self.cursor.skip_spaces();
        let at = self.cursor.at();
        for (open, close) in [("[", "]"), ("(", ")")] {
            if self.cursor.eat(open) {
                return self.list(at, close).map(|operands| Test::OneOf(operands.into()));
            }
        }
        let low = self.cursor.number();
        if let Some(low) = low
            && self.cursor.eat("..")
        {
            let high = self.cursor.number().and_then(|text| Number::parse(text.as_bytes()));
            return match (Number::parse(low.as_bytes()), high) {
                (Some(low), Some(high)) if low <= high => Ok(Test::Between(low, high)),
                _ => Err(self.scope.error(at, "the end of a range must not be below its start")),
            };
        }
        self.cursor.back_to(at);
        match self.operand(ends_operand)? {
            node @ Node::Variable { .. } => Ok(Test::InList(node)),
            _ => Err(self.scope.error(at, WAYS)),
        }
    }

    fn list(&mut self, at: usize, close: &str) -> Parsed<Vec<Operand>> {
        let mut operands = Vec::new();
        loop {
            operands.push(Operand::new(self.operand(ends_item)?));
            self.cursor.skip_spaces();
            if self.cursor.eat(close) {
                return Ok(operands);
            }
            if !self.cursor.eat(",") {
                return Err(match self.cursor.peek() {
                    None => self.scope.error(at, format!("the list has no closing {close}")),
                    Some(_) => self.error(format!("expected , or {close}, found {}", self.found())),
                });
            }
        }
    }

    /// The right side of a comparison. A bare word is text, so one that equals a name is probably a
    /// mistake.
    fn operand(&mut self, ends: fn(char) -> bool) -> Parsed<Node> {
        self.cursor.skip_spaces();
        let (at, is_quoted) = (self.cursor.at(), self.is_quote());
        let node = self.text(ends)?;
        let bare = self.cursor.since(at);
        if is_quoted || bare.contains("${") {
            return Ok(node);
        }
        if bare.is_empty() {
            return Err(self.error(format!("expected a value, found {}", self.found())));
        }
        if bare.contains('(') {
            return Err(self
                .scope
                .error(at, format!("a text with ( needs quotes; a function is written ${{{bare})}}")));
        }
        if self.scope.names().all().iter().any(|name| name == bare) {
            return Err(self
                .scope
                .error(at, format!("write ${{{bare}}} for the variable, or \"{bare}\" for the word")));
        }
        Ok(node)
    }

    /// A template, in quotes or up to a character that ends it.
    fn text(&mut self, ends: fn(char) -> bool) -> Parsed<Node> {
        if !self.is_quote() {
            return self.scope.pieces(&mut self.cursor, ends).map(Node::joined);
        }
        let base = self.cursor.at() + 1;
        let text = self.quoted()?;
        let before = std::mem::replace(&mut self.scope.base, base);
        let nodes = self.scope.all_of(&text);
        self.scope.base = before;
        nodes.map(Node::joined)
    }

    fn is_quote(&self) -> bool {
        self.cursor.peek().is_some_and(|c| c == '\'' || c == '"')
    }

    fn quoted(&mut self) -> Parsed<String> {
        let at = self.cursor.at();
        let text = self.cursor.quoted().ok_or_else(|| self.scope.error(at, "a quoted text has no closing quote"))?;
        Ok(text.into_owned())
    }

    fn error(&self, message: impl Into<String>) -> TemplateError {
        self.scope.error(self.cursor.at(), message)
    }

    /// The next characters, for messages.
    fn found(&self) -> String {
        match self.cursor.rest().split_whitespace().next() {
            Some(next) => format!("\"{next}\""),
            None => "its end".to_owned(),
        }
    }
}

fn one_or(mut rules: Vec<Rule>, join: fn(Box<[Rule]>) -> Rule) -> Rule {
    if rules.len() == 1 { rules.remove(0) } else { join(rules.into()) }
}

fn ends_operand(c: char) -> bool {
    c.is_whitespace() || c == ')'
}

fn ends_item(c: char) -> bool {
    c.is_whitespace() || matches!(c, ')' | ']' | ',')
}
