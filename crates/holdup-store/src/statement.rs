//! A statement and its parameters. Values go beside the text (`{name:Type}` and `param_name`), never
//! into it. A server that is too old for that gets them as hex digits and numbers, which need no
//! quotes and end no literal.

use crate::address::encoded;
use crate::dialect::Dialect;

/// A value of a parameter.
#[derive(Clone, Debug)]
enum Value {
    Text(String),
    Number(u64),
}

/// A statement of fixed text, its parameters and the settings it runs with.
#[derive(Clone, Debug)]
pub struct Statement {
    sql: String,
    parameters: Vec<(&'static str, Value)>,
    settings: Vec<(&'static str, String)>,
}

impl Statement {
    /// A statement without parameters.
    pub fn new(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), parameters: Vec::new(), settings: Vec::new() }
    }

    /// With the text for `{name:String}`.
    #[must_use]
    pub fn text(mut self, name: &'static str, value: &str) -> Self {
        self.parameters.push((name, Value::Text(value.to_owned())));
        self
    }

    /// With the number for `{name:UInt64}`.
    #[must_use]
    pub fn number(mut self, name: &'static str, value: u64) -> Self {
        self.parameters.push((name, Value::Number(value)));
        self
    }

    /// With a setting of the server or of its HTTP interface.
    #[must_use]
    pub fn setting(mut self, name: &'static str, value: impl ToString) -> Self {
        self.settings.push((name, value.to_string()));
        self
    }

    /// The query part of the URL that runs it in a server of `dialect`.
    pub(crate) fn url(&self, dialect: Dialect) -> String {
        let mut sql = self.sql.clone();
        let mut url = String::new();
        for (name, value) in &self.parameters {
            match (dialect, value) {
                (Dialect::Current, Value::Text(text)) => add(&mut url, &format!("param_{name}"), &escaped(text)),
                (Dialect::Current, Value::Number(number)) => {
                    add(&mut url, &format!("param_{name}"), &number.to_string());
                }
                (Dialect::Old, Value::Text(text)) => {
                    sql = sql.replace(&format!("{{{name}:String}}"), &format!("unhex('{}')", hex(text)));
                }
                (Dialect::Old, Value::Number(number)) => {
                    sql = sql.replace(&format!("{{{name}:UInt64}}"), &number.to_string());
                }
            }
        }
        for (name, value) in &self.settings {
            add(&mut url, name, value);
        }
        format!("query={}{url}", encoded(&sql))
    }
}

fn add(url: &mut String, name: &str, value: &str) {
    url.push('&');
    url.push_str(name);
    url.push('=');
    url.push_str(&encoded(value));
}

/// The server reads values of parameters as it reads fields of its TabSeparated format.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0' => out.push_str("\\0"),
            c => out.push(c),
        }
    }
    out
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(name: &str) -> Statement {
        Statement::new("SELECT 1 FROM t WHERE r = {recording:String} AND s = {segment:UInt64}")
            .text("recording", name)
            .number("segment", 7)
            .setting("async_insert", 0)
    }

    #[test]
    fn values_go_beside_the_text() {
        let url = ask("a' OR 1 = 1 --\\\n\0&query=x").url(Dialect::Current);
        let (query, rest) = url.split_once("&param_recording=").unwrap();
        assert_eq!(
            query,
            format!("query={}", encoded("SELECT 1 FROM t WHERE r = {recording:String} AND s = {segment:UInt64}"))
        );
        assert_eq!(rest, "a%27%20OR%201%20%3D%201%20--%5C%5C%5Cn%5C0%26query%3Dx&param_segment=7&async_insert=0");
    }

    #[test]
    fn an_old_server_gets_hex_digits() {
        let url = ask("a'{segment:UInt64}").url(Dialect::Old);
        let sql = "SELECT 1 FROM t WHERE r = unhex('61277B7365676D656E743A55496E7436347D') AND s = 7";
        assert_eq!(url, format!("query={}&async_insert=0", encoded(sql)));
    }
}
