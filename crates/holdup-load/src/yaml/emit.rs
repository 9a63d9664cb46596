//! Writes a tree as YAML: values and their order stay, comments and layout do not.

use super::{Node, Value};

/// Spaces per level of indentation.
const STEP: usize = 2;

impl Node {
    /// As YAML that reads as the same tree. A text without quotes here had none in the source.
    pub fn to_yaml(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, 0);
        out.trim_start().to_owned()
    }

    /// Writes the value after a key or a dash: a scalar on its line, a list or a map below it.
    fn write(&self, out: &mut String, indent: usize) {
        match &self.value {
            Value::Empty => out.push_str(" ~\n"),
            Value::Text(text) => out.push_str(&format!(" {}\n", scalar(text, self.is_plain))),
            Value::List(items) if items.is_empty() => out.push_str(" []\n"),
            Value::Map(entries) if entries.is_empty() => out.push_str(" {}\n"),
            Value::List(items) => {
                out.push('\n');
                for item in items {
                    out.push_str(&format!("{}-", " ".repeat(indent)));
                    item.write(out, indent + STEP);
                }
            }
            Value::Map(entries) => {
                out.push('\n');
                for (key, value) in entries {
                    out.push_str(&format!("{}{}:", " ".repeat(indent), scalar(key, true)));
                    value.write(out, indent + STEP);
                }
            }
        }
    }
}

/// A text in YAML: bare only if it cannot contain YAML's special characters, else in JSON's quotes,
/// which YAML allows, too.
fn scalar(text: &str, is_plain: bool) -> String {
    let is_bare = text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-'))
        && text
            .split(' ')
            .all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_./-".contains(&b)))
        && !text.starts_with("- ")
        && !matches!(text, "-" | "--" | "---" | "..." | "null");
    if is_plain && is_bare { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_yaml_reads_the_same() {
        let text = "a: 1\nb: '1'\nc: [x y, {d: 'q\"u: #', e: ~, f: []}, [g, -1]]\n\"h:i\": |\n  two\n  lines\nj: {}\n";
        let once = Node::parse(text, "s.yaml").unwrap().to_yaml();
        assert_eq!(
            once,
            "a: 1\nb: \"1\"\nc:\n  - x y\n  -\n    d: \"q\\\"u: #\"\n    e: ~\n    f: []\n  -\n    - g\n    - -1\n\"h:i\": \"two\\nlines\\n\"\nj: {}\n"
        );
        assert_eq!(Node::parse(&once, "s.yaml").unwrap().to_yaml(), once);
    }
}
