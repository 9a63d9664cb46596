//! Translates conditions of If and While controllers: comparisons joined by `&&` and `||`, in the
//! form that JavaScript, JEXL and Groovy share. Does not guess at anything else.

use super::Plan;
use super::expression;
use super::piece::{Piece, pieces};
use crate::template::{double_quoted, literal};

/// Deepest nesting; holdup's own bound is larger.
const DEEPEST: usize = 16;

/// Longest condition that is parsed, bytes.
const LONGEST_BYTES: usize = 4_096;

impl Plan<'_> {
    /// The condition as holdup's, if it can be translated.
    pub(super) fn condition(&mut self, text: &str, line: usize) -> Option<String> {
        let text = text.trim();
        if text.is_empty() || text.len() > LONGEST_BYTES {
            return None;
        }
        let inner = match &pieces(text)[..] {
            // The script's text. JMeter fills in references before it runs the script.
            [Piece::Call { name, written, .. }]
                if matches!(name.as_str(), "__groovy" | "__jexl3" | "__jexl2" | "__javaScript") =>
            {
                let start = written.find('(')? + 1;
                let end = written.rfind(')')?;
                written.get(start..end)?.replace("\\,", ",")
            }
            _ => text.to_owned(),
        };
        let mut tokens = tokens(&inner)?;
        // A last argument of the function: the variable that gets the result.
        if let Some(at) = tokens.iter().position(|t| *t == Token::Comma) {
            tokens.truncate(at);
        }
        let mut out = Vec::new();
        let mut at = 0;
        let mut open = 0;
        let mut nots = 0;
        while at < tokens.len() {
            if open + nots > DEEPEST {
                return None;
            }
            match &tokens[at] {
                Token::Open => {
                    open += 1;
                    out.push("(".to_owned());
                    at += 1;
                }
                Token::Not if tokens.get(at + 1) == Some(&Token::Open) => {
                    nots += 1;
                    out.push("not".to_owned());
                    at += 1;
                }
                Token::Value(_) | Token::Not => {
                    at += self.comparison(&tokens[at..], &mut out, line)?;
                    while tokens.get(at) == Some(&Token::Close) && open > 0 {
                        open -= 1;
                        out.push(")".to_owned());
                        at += 1;
                    }
                    match tokens.get(at) {
                        None => break,
                        Some(Token::And) => out.push("and".to_owned()),
                        Some(Token::Or) => out.push("or".to_owned()),
                        Some(_) => return None,
                    }
                    at += 1;
                    if at == tokens.len() {
                        return None;
                    }
                }
                _ => return None,
            }
        }
        if open > 0 || out.is_empty() {
            return None;
        }
        Some(out.join(" ").replace("( ", "(").replace(" )", ")"))
    }

    /// Reads one comparison; returns how many tokens it takes.
    fn comparison(&mut self, tokens: &[Token], out: &mut Vec<String>, line: usize) -> Option<usize> {
        let (negated, rest) = match tokens {
            [Token::Not, rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        let Some(Token::Value(left)) = rest.first() else { return None };
        let subject = self.side(left, true, line)?;
        let (text, count) = match rest.get(1) {
            Some(Token::Compare(operator)) if !negated => {
                let Some(Token::Value(right)) = rest.get(2) else { return None };
                (format!("{subject} {operator} {}", self.side(right, false, line)?), 3)
            }
            Some(Token::Compare(_)) => return None,
            // A value alone is true if it is "true".
            _ => (format!("{subject} {} true", if negated { "!=" } else { "==" }), 1),
        };
        out.push(text);
        Some(count + usize::from(negated))
    }

    fn side(&mut self, text: &str, is_left: bool, line: usize) -> Option<String> {
        if text.contains("JMeterThread.") {
            return None;
        }
        let all = pieces(text);
        if let [Piece::Text(text)] = &all[..] {
            let is_number = is_number(text);
            return match (is_number, is_left) {
                (true, _) => Some(text.clone()),
                (false, true) => None,
                (false, false) => Some(double_quoted(&literal(text))),
            };
        }
        if all.is_empty() {
            return (!is_left).then(|| "\"\"".to_owned());
        }
        let translated = expression::expression(text, &mut self.names, &mut self.notes, ("a condition", line));
        Some(format!("${{{translated}}}"))
    }
}

/// Whether it is a number in a condition of holdup's.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, rest) = digits.split_once('.').unwrap_or((digits, "0"));
    [whole, rest].iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// Text with JMeter's references in it.
    Value(String),
    Compare(&'static str),
    And,
    Or,
    Not,
    Open,
    Close,
    Comma,
}

const OPERATORS: [(&str, Token); 17] = [
    ("===", Token::Compare("==")),
    ("!==", Token::Compare("!=")),
    ("==", Token::Compare("==")),
    ("!=", Token::Compare("!=")),
    ("<=", Token::Compare("<=")),
    (">=", Token::Compare(">=")),
    ("<", Token::Compare("<")),
    (">", Token::Compare(">")),
    ("&&", Token::And),
    ("||", Token::Or),
    ("and ", Token::And),
    ("or ", Token::Or),
    ("!", Token::Not),
    ("not ", Token::Not),
    ("(", Token::Open),
    (")", Token::Close),
    (",", Token::Comma),
];

fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut all = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if let Some((written, token)) = OPERATORS.iter().find(|(written, _)| rest.starts_with(written)) {
            all.push(token.clone());
            rest = rest[written.len()..].trim_start();
            continue;
        }
        let (value, after) = value(rest)?;
        all.push(Token::Value(value));
        rest = after.trim_start();
    }
    Some(all)
}

/// Reads a quoted text, a number, a reference, `vars.get("x")`, or a word.
fn value(text: &str) -> Option<(String, &str)> {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let end = text[1..].find(quote)? + 1;
        return Some((text[1..end].to_owned(), &text[end + 1..]));
    }
    if text.starts_with("${") {
        let mut depth = 0;
        for (at, c) in text.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 1 => return Some((text[..=at].to_owned(), &text[at + 1..])),
                '}' => depth -= 1,
                _ => {}
            }
        }
        return None;
    }
    if let Some(rest) = text.strip_prefix("vars.get(") {
        let (name, rest) = value(rest.trim_start())?;
        return Some((format!("${{{name}}}"), rest.trim_start().strip_prefix(')')?));
    }
    if let Some(rest) = text.strip_prefix("vars[") {
        let (name, rest) = value(rest.trim_start())?;
        return Some((format!("${{{name}}}"), rest.trim_start().strip_prefix(']')?));
    }
    let end =
        text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_' || c == '-')).unwrap_or(text.len());
    let word = &text[..end];
    let is_value = word.parse::<f64>().is_ok() || matches!(word, "true" | "false");
    is_value.then(|| (word.to_owned(), &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;

    #[test]
    fn comparisons_that_all_dialects_share() {
        let cases = [
            ("\"${a}\" == \"x\"", "${a} == \"x\""),
            ("${a} < 5 && ${b} >= 1", "${a} < 5 and ${b} >= 1"),
            ("${__jexl3(${a} < 5 || (\"${b}\" != \"y z\"),)}", "${a} < 5 or (${b} != \"y z\")"),
            ("${__groovy(vars.get(\"a\") == \"1\")}", "${a} == 1"),
            ("${__groovy(vars['a'] != 'x' && !(${b} > 2.5))}", "${a} != \"x\" and not (${b} > 2.5)"),
            ("${a}", "${a} == true"),
            ("!${a}", "${a} != true"),
        ];
        for (from, to) in cases {
            let mut plan = plan();
            plan.names.variable("a");
            plan.names.variable("b");
            assert_eq!(plan.condition(from, 1).as_deref(), Some(to), "{from}");
        }
    }

    #[test]
    fn scripts_are_not_guessed_at() {
        let odd = [
            "",
            "LAST",
            "${JMeterThread.last_sample_ok}",
            "${__groovy(vars.get('a').toInteger() < 5)}",
            "${a} <",
            "(${a} == 1",
            "x == 1",
            "${a} == 1 &&",
            "${__groovy(def x = 1; x == 1)}",
            "\"${a}",
            "== 1",
            "${a} == 1)",
            "()",
        ];
        for text in odd {
            let mut plan = plan();
            plan.names.variable("a");
            assert_eq!(plan.condition(text, 1), None, "{text}");
        }
    }
}
