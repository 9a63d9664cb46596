//! JSON in pasted text, strict or as MongoDB's shells print it: names without quotes, `Long("7")`,
//! `ISODate(…)`, strings in single quotes. A document may be cut at the end of the paste: what was
//! open is closed there. Depth and number of values are bounded.

pub(super) use holdup_mongodb::Value;

use super::paste::Line;

/// Deepest nesting.
const DEPTH_MAX: usize = 100;

/// Most values of a document.
const VALUES_MAX: usize = 1_000_000;

/// Values that are read to recognise a document.
const HEAD_VALUES: usize = 120;

/// A document and its extent.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) value: Value,
    /// Number of lines.
    pub(super) used: usize,
    /// Whether it ended before its last bracket.
    pub(super) is_cut: bool,
}

/// Whether a line may begin a document.
fn begins(lines: &[Line]) -> bool {
    lines.first().is_some_and(|line| line.text.trim_start().starts_with(['{', '[']))
}

/// The beginning of the document that begins here, enough to recognise it.
pub(super) fn head(lines: &[Line]) -> Option<Value> {
    if !begins(lines) {
        return None;
    }
    let mut reader = Reader { lines, line: 0, at: 0, left: HEAD_VALUES, is_cut: false, is_head: true };
    reader.value(0)
}

/// The document that begins here.
pub(super) fn read(lines: &[Line]) -> Option<Document> {
    if !begins(lines) {
        return None;
    }
    let mut reader = Reader { lines, line: 0, at: 0, left: VALUES_MAX, is_cut: false, is_head: false };
    let value = reader.value(0)?;
    let used = (reader.line + usize::from(reader.at > 0)).clamp(1, lines.len());
    Some(Document { value, used, is_cut: reader.is_cut })
}

struct Reader<'a> {
    lines: &'a [Line],
    line: usize,
    at: usize,
    left: usize,
    is_cut: bool,
    /// Whether running out of values is a cut and no error.
    is_head: bool,
}

impl<'a> Reader<'a> {
    /// The rest of the present line.
    fn rest(&self) -> &'a str {
        self.lines.get(self.line).and_then(|line| line.text.get(self.at..)).unwrap_or_default()
    }

    /// The next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        while self.line < self.lines.len() {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            if let Some(c) = trimmed.chars().next() {
                self.at += rest.len() - trimmed.len();
                return Some(c);
            }
            self.line += 1;
            self.at = 0;
        }
        self.is_cut = true;
        None
    }

    fn skip(&mut self, c: char) -> bool {
        let is_next = self.peek() == Some(c);
        if is_next {
            self.at += c.len_utf8();
        }
        is_next
    }

    /// A word of characters that `is_in` holds for.
    fn word(&mut self, is_in: fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !is_in(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        let Some(next) = self.peek() else { return Some(Value::Null) };
        if self.left == 0 {
            self.is_cut = true;
            return self.is_head.then_some(Value::Null);
        }
        self.left -= 1;
        if depth > DEPTH_MAX {
            return None;
        }
        match next {
            '{' => self.map(depth),
            '[' => self.list(depth),
            '"' | '\'' | '`' => self.string().map(Value::Text),
            '/' => {
                self.at += 1;
                let pattern = self.until('/');
                self.word(|c| c.is_ascii_alphabetic());
                Some(Value::Text(pattern))
            }
            '-' | '+' | '0'..='9' => {
                let word = self.word(|c| c.is_ascii_alphanumeric() || "+-._:".contains(c));
                let number = word.parse().ok().filter(|number: &f64| number.is_finite());
                Some(number.map_or_else(|| Value::Text(word.to_owned()), Value::Number))
            }
            // `... 12 more items`
            '.' => {
                self.word(|c| !",]}".contains(c));
                Some(Value::Null)
            }
            c if c.is_alphabetic() || c == '_' || c == '$' => self.name(depth),
            _ => None,
        }
    }

    /// A constant, or a call such as `Long("7")`.
    fn name(&mut self, depth: usize) -> Option<Value> {
        let is_in = |c: char| c.is_alphanumeric() || "_$.".contains(c);
        let mut word = self.word(is_in);
        if word == "new" && self.peek().is_some_and(char::is_alphabetic) {
            word = self.word(is_in);
        }
        if self.rest().starts_with('(') {
            self.at += 1;
            let mut first = None;
            while !self.skip(')') {
                if self.line >= self.lines.len() {
                    break;
                }
                let value = self.value(depth + 1)?;
                first.get_or_insert(value);
                self.skip(',');
            }
            let first = first.unwrap_or(Value::Null);
            let is_number = matches!(
                word,
                "Long" | "NumberLong" | "NumberInt" | "Int32" | "Double" | "NumberDecimal" | "Decimal128"
            );
            return Some(match first.number().filter(|_| is_number) {
                Some(number) => Value::Number(number),
                None => first,
            });
        }
        Some(match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" | "undefined" | "NaN" | "Infinity" => Value::Null,
            other => Value::Text(other.to_owned()),
        })
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut items = Vec::new();
        while !self.skip(']') {
            if self.is_cut {
                break;
            }
            items.push(self.value(depth + 1)?);
            if !self.skip(',') && !self.is_cut && self.peek() != Some(']') {
                return None;
            }
        }
        Some(Value::List(items))
    }

    fn map(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut entries = Vec::new();
        while !self.skip('}') {
            if self.is_cut {
                break;
            }
            let key = match self.peek()? {
                '"' | '\'' => self.string()?,
                c if c.is_alphanumeric() || c == '_' || c == '$' => {
                    self.word(|c| c.is_alphanumeric() || "_$.-".contains(c)).to_owned()
                }
                _ => return None,
            };
            if !self.skip(':') {
                return self.is_cut.then_some(Value::Map(entries));
            }
            let value = self.value(depth + 1)?;
            entries.push((key, value));
            if !self.skip(',') && !self.is_cut && self.peek() != Some('}') {
                return None;
            }
        }
        Some(extended(entries))
    }

    /// A string; the shell cuts long ones into pieces with `+`.
    fn string(&mut self) -> Option<String> {
        let mut whole = String::new();
        loop {
            let quote = self.peek().filter(|c| "\"'`".contains(*c))?;
            self.at += 1;
            whole.push_str(&self.until(quote));
            if !self.skip('+') {
                return Some(whole);
            }
            if self.is_cut {
                return Some(whole);
            }
        }
    }

    /// The text up to `end` on this line, with escapes resolved.
    fn until(&mut self, end: char) -> String {
        let rest = self.rest();
        let mut text = String::new();
        let mut chars = rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n' | 't' | 'r') => text.push(' '),
                    Some('u') => {
                        let code = rest.get(at + 2..at + 6).and_then(|hex| u32::from_str_radix(hex, 16).ok());
                        text.push(code.and_then(char::from_u32).unwrap_or('?'));
                        for _ in 0..if code.is_some() { 4 } else { 0 } {
                            chars.next();
                        }
                    }
                    Some(other) => text.push(other),
                    None => {}
                },
                c if c == end => {
                    self.at += at + c.len_utf8();
                    return text;
                }
                c => text.push(c),
            }
        }
        self.at += rest.len();
        self.is_cut |= self.line + 1 >= self.lines.len();
        text
    }
}

/// A map, or the value that extended JSON writes as one: `{"$numberLong": "7"}`.
fn extended(mut entries: Vec<(String, Value)>) -> Value {
    let is_wrapped = entries.len() == 1
        && entries.first().is_some_and(|(key, _)| {
            matches!(key.as_str(), "$numberLong" | "$numberInt" | "$numberDouble" | "$numberDecimal" | "$date" | "$oid")
        });
    match if is_wrapped { entries.pop() } else { None } {
        Some((_, value)) => value.number().map_or(value, Value::Number),
        None => Value::Map(entries),
    }
}

#[cfg(test)]
mod tests {
    use super::super::paste;
    use super::*;

    fn document(text: &str) -> Document {
        read(&paste::lines(text.as_bytes(), |_| false)).unwrap()
    }

    #[test]
    fn strict_and_shell_notation_are_one() {
        let strict = document("{\"a\": {\"b\": {\"$numberLong\": \"7\"}}, \"c\": [1.5, true, null, \"x\\\"y\"]}\nnext");
        let shell = document("{\n  a: { b: Long('7') },\n  'c': [ 1.5, true, null, `x\"` +\n 'y' ]\n}\nnext");
        assert_eq!(strict.value, shell.value);
        assert_eq!((strict.used, shell.used, strict.is_cut), (1, 5, false));
        let odd =
            document("{ at: ISODate('2026-11-26T00:00:00Z'), id: ObjectId(\"ab\"), n: NumberLong(12), r: /a'b/i }");
        assert_eq!(odd.value.get("at").and_then(Value::text), Some("2026-11-26T00:00:00Z"));
        assert_eq!(
            (odd.value.get("n").and_then(Value::number), odd.value.get("r").and_then(Value::text)),
            (Some(12.0), Some("a'b"))
        );
    }

    #[test]
    fn a_cut_document_keeps_what_it_had() {
        let cut = document("{ \"a\": 1, \"b\": { \"c\": 2, \"d\"");
        assert_eq!((cut.value.at(&["b", "c"]).and_then(Value::number), cut.is_cut), (Some(2.0), true));
        assert!(read(&paste::lines(b"{ a 1 }", |_| false)).is_none());
        let deep = "[".repeat(500);
        assert!(read(&paste::lines(deep.as_bytes(), |_| false)).is_none());
        assert_eq!(head(&paste::lines(b"x", |_| false)), None);
    }
}
