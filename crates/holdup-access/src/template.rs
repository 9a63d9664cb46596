//! A log's format as its server's configuration has it, and lines read by it: nginx' `log_format`,
//! Apache's `LogFormat`, Envoy's text format. A field ends where the text behind it in the format
//! begins, so a format whose fields touch is refused.

use super::entry::{Edge, Entry, Field, Part, Scale};

/// A compiled format: literal text and fields in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    parts: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Literal(String),
    Field(Field),
}

/// Whose configuration a format is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `$request_time`
    Nginx,
    /// `%D`
    Apache,
    /// `%DURATION%`
    Envoy,
}

impl Syntax {
    /// The server's name.
    pub fn words(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Apache => "Apache",
            Self::Envoy => "Envoy",
        }
    }

    fn detect(text: &str) -> Option<Self> {
        let is_name = |part: &str| part.len() > 2 && part.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        let head = |part: &str| part.split('(').next().is_some_and(is_name);
        match () {
            () if text.split('%').skip(1).step_by(2).any(head) => Some(Self::Envoy),
            () if text.contains('$') => Some(Self::Nginx),
            () if text.contains('%') => Some(Self::Apache),
            () => None,
        }
    }
}

impl Template {
    /// Compiles a format as an operator gives it: the text itself, or the whole directive
    /// (`log_format name '…' '…';`, `LogFormat "…" name`).
    ///
    /// # Errors
    /// What is wrong with it, and what to give instead.
    pub fn from_user(text: &str) -> Result<(Self, Syntax), String> {
        let text = directive(text.trim());
        let syntax = Syntax::detect(&text).ok_or_else(|| {
            format!("\"{text}\" has no variables; give nginx' log_format, Apache's LogFormat or Envoy's format")
        })?;
        let template = match syntax {
            Syntax::Nginx => Self::nginx(&text, &nginx_variable),
            Syntax::Apache => Self::apache(&text),
            Syntax::Envoy => Self::envoy(&text),
        }?;
        if !template.has(|field| matches!(field, Field::Moment(_))) {
            let example = match syntax {
                Syntax::Nginx => "$time_iso8601 or $msec",
                Syntax::Apache => "%t",
                Syntax::Envoy => "%START_TIME%",
            };
            return Err(format!("the format has no time; log {example}"));
        }
        Ok((template, syntax))
    }

    /// Compiles nginx' syntax, with fields by the names of `field`.
    ///
    /// # Errors
    /// If two fields touch.
    pub fn nginx(text: &str, field: &dyn Fn(&str) -> Field) -> Result<Self, String> {
        let mut pieces = Pieces::default();
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            pieces.literal(&rest[..dollar]);
            rest = &rest[dollar + 1..];
            let name;
            if let Some(braced) = rest.strip_prefix('{') {
                let end = braced.find('}').ok_or("a ${ without }")?;
                (name, rest) = (&braced[..end], &braced[end + 1..]);
            } else {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                (name, rest) = rest.split_at(end);
            }
            pieces.field(name, field(name))?;
        }
        pieces.literal(rest);
        Ok(Self { parts: pieces.parts })
    }

    fn apache(text: &str) -> Result<Self, String> {
        let text = text.replace("\\\"", "\"").replace("\\t", "\t");
        let mut pieces = Pieces::default();
        let mut rest = text.as_str();
        while let Some(percent) = rest.find('%') {
            pieces.literal(&rest[..percent]);
            rest = &rest[percent + 1..];
            if let Some(after) = rest.strip_prefix('%') {
                pieces.literal("%");
                rest = after;
                continue;
            }
            let begin = rest;
            rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '!' | ',' | '<' | '>'));
            let mut argument = "";
            if let Some(braced) = rest.strip_prefix('{') {
                let end = braced.find('}').ok_or("a %{ without }")?;
                (argument, rest) = (&braced[..end], &braced[end + 1..]);
            }
            let letters = if rest.starts_with('^') { 3 } else { 1 };
            let letter = rest.get(..letters).ok_or_else(|| format!("the format ends inside \"%{begin}\""))?;
            rest = &rest[letters..];
            pieces.field(&format!("%{letter}"), apache_directive(letter, argument))?;
        }
        pieces.literal(rest);
        Ok(Self { parts: pieces.parts })
    }

    /// Compiles Envoy's syntax.
    ///
    /// # Errors
    /// If two fields touch or one is not closed.
    pub fn envoy(text: &str) -> Result<Self, String> {
        let text = text.replace("\\n", "");
        let mut pieces = Pieces::default();
        let mut rest = text.trim_end();
        while let Some(percent) = rest.find('%') {
            pieces.literal(&rest[..percent]);
            rest = &rest[percent + 1..];
            let closes = match rest.find(['(', '%']) {
                Some(at) if rest[at..].starts_with('(') => rest.find(")%").map(|at| at + 1),
                other => other,
            };
            let end = closes.ok_or("a % without the one that closes it")?;
            pieces.field(&rest[..end], envoy_command(&rest[..end]))?;
            rest = &rest[end + 1..];
        }
        pieces.literal(rest);
        Ok(Self { parts: pieces.parts })
    }

    /// Whether a field is among them.
    pub fn has(&self, wanted: impl Fn(Field) -> bool) -> bool {
        self.parts.iter().any(|piece| matches!(piece, Piece::Field(field) if wanted(*field)))
    }

    /// Reads a line.
    ///
    /// # Errors
    /// What does not fit.
    pub fn read<'a>(&self, line: &'a str) -> Result<Entry<'a>, &'static str> {
        let mut entry = Entry::default();
        let mut rest = line;
        let mut parts = self.parts.iter().peekable();
        while let Some(piece) = parts.next() {
            match piece {
                Piece::Literal(literal) => {
                    rest = rest.strip_prefix(literal.as_str()).ok_or("it does not have the format's shape")?;
                }
                Piece::Field(field) => {
                    let end = match parts.peek() {
                        Some(Piece::Literal(literal)) => {
                            end_of(rest, literal).ok_or("it ends before the format does")?
                        }
                        _ => rest.len(),
                    };
                    entry.put(*field, &rest[..end])?;
                    rest = &rest[end..];
                }
            }
        }
        if !rest.is_empty() {
            return Err("it goes on after the format's end");
        }
        Ok(entry)
    }
}

/// Where the field that `rest` begins with ends: before `literal`. A quote behind a backslash ends
/// nothing, and neither does a blank in a list of servers (`a, b : c`).
fn end_of(rest: &str, literal: &str) -> Option<usize> {
    let is_blank = literal.starts_with(' ');
    let mut from = 0;
    loop {
        let at = from + rest[from..].find(literal)?;
        let before = &rest[..at];
        let slashes = before.bytes().rev().take_while(|b| *b == b'\\').count();
        let is_escaped = literal.starts_with('"') && slashes % 2 == 1;
        let is_in_list = is_blank && (before.ends_with(',') || before.ends_with(" :") || rest[at..].starts_with(" : "));
        if !is_escaped && !is_in_list {
            return Some(at);
        }
        // A literal begins with a whole character, and this is its first.
        from = at + literal.chars().next().map_or(1, char::len_utf8);
    }
}

#[derive(Default)]
struct Pieces {
    parts: Vec<Piece>,
}

impl Pieces {
    fn literal(&mut self, text: &str) {
        match self.parts.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Literal(literal)) => literal.push_str(text),
            _ => self.parts.push(Piece::Literal(text.to_owned())),
        }
    }

    fn field(&mut self, name: &str, field: Field) -> Result<(), String> {
        if let Some(Piece::Field(before)) = self.parts.last() {
            // A query behind its path, and the like: the first has both texts.
            if field == Field::Other && matches!(before, Field::Other | Field::Target) {
                return Ok(());
            }
            return Err(format!("{name} follows another variable with nothing between them"));
        }
        self.parts.push(Piece::Field(field));
        Ok(())
    }
}

/// The format in a directive; any other text is the format itself.
fn directive(text: &str) -> String {
    let Some(rest) = text.strip_prefix("log_format").or_else(|| text.strip_prefix("LogFormat")) else {
        return text.to_owned();
    };
    let mut format = String::new();
    let mut quote = None;
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        match quote {
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None => {}
            Some(open) if c == open => quote = None,
            Some(open) if c == '\\' => match chars.next() {
                Some(next) if next == open => format.push(next),
                next => format.extend(['\\'].into_iter().chain(next)),
            },
            Some(_) => format.push(c),
        }
    }
    format
}

/// nginx' variables.
pub fn nginx_variable(name: &str) -> Field {
    match name {
        "time_local" | "time_iso8601" | "msec" => Field::Moment(Edge::End),
        "request" => Field::Request,
        "request_method" => Field::Method,
        "request_uri" | "uri" | "document_uri" => Field::Target,
        "status" => Field::Status,
        "upstream_addr" => Field::Server,
        "request_time" => Field::Spent(Part::Whole, Scale::DecimalSeconds),
        "upstream_response_time" => Field::Spent(Part::Upstream, Scale::DecimalSeconds),
        "upstream_connect_time" => Field::Spent(Part::Connect, Scale::DecimalSeconds),
        "upstream_queue_time" => Field::Spent(Part::Queue, Scale::DecimalSeconds),
        _ => Field::Other,
    }
}

/// Apache's directives.
fn apache_directive(letter: &str, argument: &str) -> Field {
    match letter {
        "t" => match argument.strip_prefix("end:") {
            Some(_) => Field::Moment(Edge::End),
            None if argument.ends_with("_frac") => Field::Other,
            None => Field::Moment(Edge::Start),
        },
        "r" => Field::Request,
        "m" => Field::Method,
        "U" => Field::Target,
        "s" => Field::Status,
        "D" => Field::Spent(Part::Whole, Scale::Microseconds),
        "T" => Field::Spent(
            Part::Whole,
            match argument {
                "ms" => Scale::Milliseconds,
                "us" => Scale::Microseconds,
                _ => Scale::Seconds,
            },
        ),
        _ => Field::Other,
    }
}

/// Envoy's command operators.
fn envoy_command(text: &str) -> Field {
    let upper = text.to_ascii_uppercase();
    match upper.as_str() {
        "RESPONSE_CODE" => Field::Status,
        "DURATION" => Field::Spent(Part::Whole, Scale::Milliseconds),
        "UPSTREAM_HOST" => Field::Server,
        "REQ(:METHOD)" => Field::Method,
        "REQ(:PATH)" | "REQ(X-ENVOY-ORIGINAL-PATH?:PATH)" | "PATH" => Field::Target,
        "RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)" => Field::Spent(Part::Upstream, Scale::Milliseconds),
        _ if upper.starts_with("START_TIME") => Field::Moment(Edge::Start),
        _ => Field::Other,
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
