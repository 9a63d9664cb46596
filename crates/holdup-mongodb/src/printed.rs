//! Documents as text, strict JSON or as MongoDB's shells and logs print them: names without quotes,
//! `Long("7")`, `ISODate(…)`, strings in single quotes. A document may be cut at the end: what was
//! open is closed there. Depth and number of values are bounded.

use crate::value::Value;

/// Deepest nesting.
const DEPTH_MAX: usize = 100;

/// Most values of a document.
const VALUES_MAX: usize = 1_000_000;

/// Values that are read to recognise a document.
const HEAD_VALUES: usize = 120;

/// Names by which extended JSON marks a value that JSON does not have.
const EXTENDED: [&str; 12] = [
    "$numberLong",
    "$numberInt",
    "$numberDouble",
    "$numberDecimal",
    "$date",
    "$oid",
    "$uuid",
    "$binary",
    "$timestamp",
    "$regularExpression",
    "$minKey",
    "$maxKey",
];

/// A document and its extent.
#[derive(Debug)]
pub struct Printed {
    /// Its value.
    pub value: Value,
    /// The line on which it ends, from 0, and the first byte of that line after it.
    pub end: (usize, usize),
    /// Whether it ended before its last bracket.
    pub is_cut: bool,
}

/// The document that begins the first of these lines.
#[must_use]
pub fn printed<L: AsRef<str>>(lines: &[L]) -> Option<Printed> {
    let mut reader = Reader { lines, line: 0, at: 0, left: VALUES_MAX, is_cut: false, is_head: false };
    let value = reader.value(0)?;
    Some(Printed { value, end: (reader.line, reader.at), is_cut: reader.is_cut })
}

/// Its beginning, enough to recognise it.
#[must_use]
pub fn printed_head<L: AsRef<str>>(lines: &[L]) -> Option<Value> {
    Reader { lines, line: 0, at: 0, left: HEAD_VALUES, is_cut: false, is_head: true }.value(0)
}

struct Reader<'a, L> {
    lines: &'a [L],
    line: usize,
    at: usize,
    left: usize,
    is_cut: bool,
    /// Whether running out of values is a cut and no error.
    is_head: bool,
}

impl<'a, L: AsRef<str>> Reader<'a, L> {
    /// The rest of the present line.
    fn rest(&self) -> &'a str {
        self.lines.get(self.line).and_then(|line| line.as_ref().get(self.at..)).unwrap_or_default()
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
            match self.value(depth + 1) {
                Some(item) => items.push(item),
                // The document was cut there, and other text follows.
                None if items.is_empty() => return None,
                None => {
                    self.is_cut = true;
                    break;
                }
            }
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
                _ if entries.is_empty() => return None,
                _ => {
                    self.is_cut = true;
                    break;
                }
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
    let is_wrapped = entries.len() == 1 && entries.first().is_some_and(|(key, _)| EXTENDED.contains(&key.as_str()));
    match if is_wrapped { entries.pop() } else { None } {
        Some((_, Value::Map(_) | Value::List(_))) => Value::Null,
        Some((_, value)) => value.number().map_or(value, Value::Number),
        None => Value::Map(entries),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_logs_are_values() {
        let log =
            r#"{ lsid: { id: UUID("8f75") }, at: Timestamp(159, 3), k: BinData(0, 9A), r: /a{1}/i, n: 1.0 } next"#;
        let found = printed(&[log]).unwrap();
        assert_eq!((found.end, found.is_cut), ((0, log.len() - 5), false));
        assert_eq!(found.value.at(&["lsid", "id"]).and_then(Value::text), Some("8f75"));
        let extended = r#"{"a":{"$uuid":"x"},"b":{"$timestamp":{"t":1,"i":2}},"c":{"$gt":{"$oid":"y"}}}"#;
        let found = printed(&[extended]).unwrap().value;
        assert_eq!((found.get("a").and_then(Value::text), found.get("b")), (Some("x"), Some(&Value::Null)));
        assert!(found.at(&["c", "$gt"]).is_some_and(|value| value.text() == Some("y")));
    }
}
