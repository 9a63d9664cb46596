//! Assertions -> checks and objectives.

use super::Plan;
use super::element::Element;
use crate::content::is_header;
use crate::json_path;
use crate::load::seconds;
use crate::pattern;
use crate::scenario::Request;
use crate::template::{double_quoted as quoted, literal};

// Bits of `Assertion.test_type`.
const MATCH: u32 = 1;
const CONTAINS: u32 = 2;
const NOT: u32 = 4;
const EQUALS: u32 = 8;
const SUBSTRING: u32 = 16;
const OR: u32 = 32;

impl Plan<'_> {
    /// Adds the assertion's requirements on the response.
    pub(super) fn assertion(&mut self, at: &Element<'_>, request: &mut Request) {
        if at.filled("Assertion.scope").is_some_and(|scope| scope == "variable") {
            self.left_out(at, "it checks a variable, not the response", "");
            return;
        }
        match at.class.as_str() {
            "ResponseAssertion" => self.response(at, request),
            "JSONPathAssertion" => self.json_path(at, request),
            "DurationAssertion" => {
                let limit = at.filled("DurationAssertion.duration").and_then(|text| self.names.number(text));
                match limit.and_then(|ms| seconds(ms / 1e3)).filter(|d| !d.is_zero()) {
                    Some(limit) => {
                        request.slowest = Some(request.slowest.map_or(limit, |known| known.min(limit)));
                        self.changed(
                            at,
                            "a slow response misses an objective of the run, and the request itself does not fail",
                            "",
                        );
                    }
                    None => self.left_out(at, "its limit is computed while the plan runs", "write it under thresholds"),
                }
            }
            "SizeAssertion" => self.size(at, request),
            _ => {}
        }
    }

    fn response(&mut self, at: &Element<'_>, request: &mut Request) {
        let kind: u32 = at.filled("Assertion.test_type").and_then(|t| t.parse().ok()).unwrap_or(CONTAINS);
        let field = at.filled("Assertion.test_field").unwrap_or("Assertion.response_data");
        // JMeter has always misspelt the collection's name; newer versions read both spellings.
        let mut texts: Vec<&str> = ["Asserion.test_strings", "Assertion.test_strings"]
            .iter()
            .flat_map(|key| at.items(key))
            .map(|item| item.text.as_str())
            .collect();
        texts.dedup();
        let mut all = Vec::new();
        for text in texts {
            let one = match field {
                "Assertion.response_code" => self.fixed_text(text).and_then(|code| status(&code, kind)),
                "Assertion.response_data" | "Assertion.response_data_as_document" => self.body(text, kind, at),
                "Assertion.response_headers" => self.fixed_text(text).and_then(|t| header(&t, kind)),
                _ => None,
            };
            match one {
                Some(check) => all.push(check),
                None => {
                    let what = field.trim_start_matches("Assertion.").replace('_', " ");
                    let text: String = text.chars().take(60).collect();
                    self.left_out(
                        at,
                        &format!("\"{text}\" in the {what} can't be checked in this way"),
                        "write a check of status, header or body",
                    );
                }
            }
        }
        if at.flag("Assertion.assume_success") && !request.checks.iter().any(|c| c.contains("status")) {
            request.checks.push("status >= 100".to_owned());
        }
        let negated = |check: String| if kind & NOT != 0 { format!("not ({check})") } else { check };
        if kind & OR != 0 && all.len() > 1 {
            request.checks.push(all.into_iter().map(negated).collect::<Vec<_>>().join(" or "));
        } else {
            all.reverse();
            request.checks.extend(all.into_iter().map(negated));
        }
    }

    fn fixed_text(&self, text: &str) -> Option<String> {
        self.names.fixed(text)
    }

    fn body(&mut self, text: &str, kind: u32, at: &Element<'_>) -> Option<String> {
        if kind & SUBSTRING != 0 {
            // Such a text may hold variables.
            let template = self.template(text, at, &mut Vec::new());
            return Some(format!("body contains {}", quoted(&template)));
        }
        let text = self.fixed_text(text)?;
        let pattern = match kind & (MATCH | CONTAINS | EQUALS) {
            EQUALS => pattern::checked(pattern::exactly(&text)).ok()?,
            MATCH => pattern::checked(format!("(?s)^(?:{text})$")).ok()?,
            _ => pattern::checked(text).ok()?,
        };
        Some(format!("body matches {}", quoted(&literal(&pattern))))
    }

    fn json_path(&mut self, at: &Element<'_>, request: &mut Request) {
        let path = at.filled("JSON_PATH").unwrap_or_default();
        let Some(pointer) = json_path::pointer(path).filter(|p| !p.is_last) else {
            self.left_out(at, &format!("\"{path}\" is not a plain path in JSON"), "write the place as a JSON pointer");
            return;
        };
        let place = if is_bare(&pointer.text) { pointer.text } else { quoted(&pointer.text) };
        let check = if !at.flag("JSONVALIDATION") {
            Some(format!("json {place} exists"))
        } else if at.flag("EXPECT_NULL") {
            None
        } else {
            let wanted = at.text("EXPECTED_VALUE").unwrap_or_default();
            if at.text("ISREGEX").is_none_or(|t| t.trim() == "true") {
                let pattern = self.fixed_text(wanted).and_then(|t| pattern::checked(format!("(?s)^(?:{t})$")).ok());
                pattern.map(|p| format!("json {place} matches {}", quoted(&literal(&p))))
            } else {
                let template = self.template(wanted, at, &mut Vec::new());
                Some(format!("json {place} == {}", quoted(&template)))
            }
        };
        match check {
            Some(check) if at.flag("INVERT") => request.checks.push(format!("not ({check})")),
            Some(check) => request.checks.push(check),
            None => self.left_out(at, "its expectation can't be written as a check", ""),
        }
    }

    fn size(&mut self, at: &Element<'_>, request: &mut Request) {
        let limit = at
            .filled("SizeAssertion.size")
            .and_then(|text| self.names.number(text))
            .filter(|n| (0.0..1e15).contains(n));
        let operator = match at.filled("SizeAssertion.operator").unwrap_or("1") {
            "1" => "==",
            "2" => "!=",
            "3" => ">",
            "4" => "<",
            "5" => ">=",
            _ => "<=",
        };
        let field = at.filled("Assertion.test_field").unwrap_or("SizeAssertion.response_network_size");
        match (limit, field) {
            (Some(limit), "SizeAssertion.response_data") => {
                request.checks.push(format!("size {operator} {}", limit as u64))
            }
            (Some(limit), "SizeAssertion.response_network_size") => {
                self.changed(at, "JMeter counts head and body, the check only the body", "");
                request.checks.push(format!("size {operator} {}", limit as u64));
            }
            _ => self.left_out(at, "a check can't measure the same", "check: [size < BYTES] measures the body"),
        }
    }
}

/// Whether a pointer can stand in a condition, between blanks.
fn is_bare(pointer: &str) -> bool {
    pointer.starts_with('/') && !pointer.contains(|c: char| c.is_whitespace() || "\"')=!<>".contains(c))
}

/// A code, or a pattern of codes as people write them, as a check.
fn status(text: &str, kind: u32) -> Option<String> {
    let text = text.trim();
    if text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit()) {
        return Some(format!("status == {text}"));
    }
    if kind & (EQUALS | SUBSTRING) != 0 {
        return (text.len() == 1 && kind & SUBSTRING != 0 && text.bytes().all(|b| (b'1'..=b'5').contains(&b)))
            .then(|| format!("status in {text}00..{text}99"));
    }
    let alternatives: Vec<&str> = text
        .trim_start_matches('^')
        .trim_end_matches('$')
        .trim_matches(['(', ')'])
        .trim_start_matches("?:")
        .split('|')
        .collect();
    let one = |text: &&str| {
        let digit = text.chars().next().filter(|c| ('1'..='5').contains(c))?;
        match &text[1..] {
            ".." | "\\d\\d" | "\\d{2}" | "[0-9]{2}" | "[0-9][0-9]" | ".*" | "xx" => {
                Some(format!("status in {digit}00..{digit}99"))
            }
            rest if rest.len() == 2 && rest.bytes().all(|b| b.is_ascii_digit()) => Some(format!("status == {text}")),
            _ => None,
        }
    };
    Some(alternatives.iter().map(one).collect::<Option<Vec<_>>>()?.join(" or "))
}

/// `Name: value` in the head.
fn header(text: &str, kind: u32) -> Option<String> {
    let (name, value) = text.split_once(':')?;
    let (name, value) = (name.trim(), value.trim());
    if !is_header(name) {
        return None;
    }
    if value.is_empty() {
        return Some(format!("header {name} exists"));
    }
    if kind & SUBSTRING != 0 {
        return Some(format!("header {name} contains {}", quoted(&literal(value))));
    }
    let pattern = pattern::checked(value.to_owned()).ok()?;
    Some(format!("header {name} matches {}", quoted(&literal(&pattern))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_as_people_write_them() {
        assert_eq!(status("200", EQUALS).as_deref(), Some("status == 200"));
        assert_eq!(status("2..", MATCH).as_deref(), Some("status in 200..299"));
        assert_eq!(
            status("200|201|3\\d\\d", CONTAINS).as_deref(),
            Some("status == 200 or status == 201 or status in 300..399")
        );
        assert_eq!(status("2", SUBSTRING).as_deref(), Some("status in 200..299"));
        assert_eq!(status("2[05]0", MATCH), None);
        assert_eq!(status("ök", MATCH), None);
    }

    #[test]
    fn heads() {
        assert_eq!(header("Content-Type: json", SUBSTRING).as_deref(), Some("header Content-Type contains \"json\""));
        assert_eq!(header("x", SUBSTRING), None);
    }
}
