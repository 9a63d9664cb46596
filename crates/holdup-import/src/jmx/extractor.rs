//! Extractors -> captures.

use super::Plan;
use super::element::Element;
use super::names::Counterpart;
use crate::json_path::{self, Pointer};
use crate::pattern;
use crate::scenario::{Capture, Request};
use crate::template::literal;

/// Which match is taken: JMeter's match number.
#[derive(Clone, Copy)]
struct Pick {
    number: i64,
}

impl Pick {
    fn parse(text: &str) -> Self {
        Self { number: text.trim().parse().unwrap_or(1) }
    }

    fn word(self) -> Option<&'static str> {
        match self.number {
            0 => Some("random"),
            -1 => Some("all"),
            _ => None,
        }
    }
}

impl Plan<'_> {
    /// Adds the extractor's capture, unless a nearer extractor already sets the variable.
    pub(super) fn extractor(&mut self, at: &Element<'_>, request: &mut Request) {
        if at.filled("Sample.scope").is_some_and(|scope| scope == "variable") {
            self.left_out(at, "it reads a variable, not the response", "capture it from the response");
            return;
        }
        match at.class.as_str() {
            "RegexExtractor" => self.regex(at, request),
            "BoundaryExtractor" => self.boundary(at, request),
            "JSONPostProcessor" => self.json(at, request),
            "JMESPathExtractor" => {
                let path = at.filled("JMESExtractor.jmesPathExpr").unwrap_or_default();
                match json_path::jmes_pointer(path) {
                    Some(pointer) => {
                        let default = at.text("JMESExtractor.defaultValue").unwrap_or_default();
                        let pick = Pick::parse(at.text("JMESExtractor.matchNumber").unwrap_or("1"));
                        let name = at.filled("JMESExtractor.referenceName").unwrap_or_default();
                        self.json_one(at, request, name, pointer, pick, default);
                    }
                    None => self.left_out(
                        at,
                        &format!("\"{path}\" searches or computes"),
                        "write the place as a JSON pointer",
                    ),
                }
            }
            // XPath and CSS extractors, and those of plug-ins: the walk over the plan lists them.
            _ => {}
        }
    }

    fn keep(&mut self, request: &mut Request, name: &str, capture: Capture) {
        let Some(Counterpart::Value(own) | Counterpart::List(own)) = self.names.meaning(name.trim()).cloned() else {
            return;
        };
        if request.captures.iter().all(|(known, _)| *known != own) {
            request.captures.push((own, capture));
        }
    }

    /// Notes a later match, for which the first one stands.
    fn takes_first(&mut self, at: &Element<'_>, pick: Pick, advice: &str) {
        if pick.number > 1 {
            self.changed(at, format!("it takes match {}; the scenario takes the first", pick.number), advice);
        }
    }

    fn regex(&mut self, at: &Element<'_>, request: &mut Request) {
        let name = at.filled("RegexExtractor.refname").unwrap_or_default();
        let expression = at.text("RegexExtractor.regex").unwrap_or_default();
        let template = at.filled("RegexExtractor.template").unwrap_or("$1$");
        let pick = Pick::parse(at.text("RegexExtractor.match_number").unwrap_or("1"));
        let text = at.text("RegexExtractor.default").unwrap_or_default();
        let is_empty_default = at.flag("RegexExtractor.default_empty_value");
        let default = (!text.is_empty() || is_empty_default).then(|| literal(text));
        let group = template.strip_prefix('$').and_then(|t| t.strip_suffix('$')).and_then(|t| t.parse::<u32>().ok());
        let Some(group) = group else {
            self.left_out(
                at,
                &format!("it puts \"{name}\" together from several groups ({template})"),
                "capture each group by itself",
            );
            return;
        };
        let (from, what) = match at.filled("RegexExtractor.useHeaders").unwrap_or("false") {
            "false" | "as_document" => match self.fitting(at, expression, group) {
                Some(pattern) => ("regex", pattern),
                None => return,
            },
            "true" => match header_of(expression, group) {
                Some(header) => ("header", header),
                None => {
                    self.left_out(at, "a capture takes only the whole value of a header", "capture: header NAME");
                    return;
                }
            },
            "code" => ("status", String::new()),
            other => {
                self.left_out(at, &format!("captures do not read {other}"), "");
                return;
            }
        };
        self.takes_first(at, pick, "write a narrower pattern");
        self.keep(request, name, Capture { from, what, pick: pick.word(), default });
    }

    fn fitting(&mut self, at: &Element<'_>, expression: &str, group: u32) -> Option<String> {
        if expression.contains("${") {
            self.left_out(at, "its pattern changes while the plan runs", "write a pattern that does not");
            return None;
        }
        match pattern::with_group(expression, group) {
            Ok(pattern) => Some(pattern),
            Err(why) => {
                self.left_out(at, &format!("holdup can't use its pattern: {why}"), "write another pattern");
                None
            }
        }
    }

    fn boundary(&mut self, at: &Element<'_>, request: &mut Request) {
        let text = |key: &str| at.text(key).unwrap_or_default();
        if !matches!(text("BoundaryExtractor.useHeaders"), "" | "false") {
            self.left_out(at, "it reads something other than the body", "");
            return;
        }
        let (left, right) = (text("BoundaryExtractor.lboundary"), text("BoundaryExtractor.rboundary"));
        if left.contains("${") || right.contains("${") {
            self.left_out(at, "its boundaries change while the plan runs", "");
            return;
        }
        let Ok(what) = pattern::between(left, right) else {
            self.left_out(at, "its boundaries have line breaks or are too long", "capture it with a pattern");
            return;
        };
        let pick = Pick::parse(text("BoundaryExtractor.match_number"));
        self.takes_first(at, pick, "use a nearer boundary");
        let default = text("BoundaryExtractor.default");
        let default =
            (!default.is_empty() || at.flag("BoundaryExtractor.default_empty_value")).then(|| literal(default));
        self.keep(
            request,
            text("BoundaryExtractor.refname"),
            Capture { from: "regex", what, pick: pick.word(), default },
        );
    }

    fn json(&mut self, at: &Element<'_>, request: &mut Request) {
        let parts = |key: &str| -> Vec<String> {
            at.text(key).unwrap_or_default().split(';').map(|p| p.trim().to_owned()).collect()
        };
        let (names, paths) = (parts("JSONPostProcessor.referenceNames"), parts("JSONPostProcessor.jsonPathExprs"));
        let (numbers, defaults) = (parts("JSONPostProcessor.match_numbers"), parts("JSONPostProcessor.defaultValues"));
        if names.len() != paths.len() {
            self.left_out(at, "its numbers of names and paths differ", "");
            return;
        }
        if at.flag("JSONPostProcessor.compute_concat") {
            self.changed(at, "the variables with all values in one (_ALL) are missing", "");
        }
        for (index, (name, path)) in names.iter().zip(&paths).enumerate() {
            match json_path::pointer(path) {
                Some(pointer) => {
                    let pick = Pick::parse(numbers.get(index).map_or("1", String::as_str));
                    let default = defaults.get(index).map_or("", String::as_str);
                    self.json_one(at, request, name, pointer, pick, default);
                }
                None => {
                    self.left_out(at, &format!("\"{path}\" searches or filters"), "write the place as a JSON pointer")
                }
            }
        }
    }

    fn json_one(
        &mut self,
        at: &Element<'_>,
        request: &mut Request,
        name: &str,
        pointer: Pointer,
        pick: Pick,
        default: &str,
    ) {
        let mut what = pointer.text;
        let mut word = if pointer.is_last { Some("last") } else { pick.word() };
        if pick.number == 0 && !what.contains('*') {
            word = None;
        }
        let index = u32::try_from(pick.number.saturating_sub(1)).ok().filter(|index| *index > 0);
        match index.and_then(|index| json_path::nth(&what, index)) {
            Some(nth) => what = nth,
            None => self.takes_first(at, pick, ""),
        }
        let default = (!default.is_empty()).then(|| literal(default));
        self.keep(request, name, Capture { from: "json", what, pick: word, default });
    }
}

/// `Location: (.+)` means the whole header.
fn header_of(expression: &str, group: u32) -> Option<String> {
    let (name, pattern) = expression.split_once(':')?;
    let name = name.trim().trim_start_matches('^');
    let pattern = pattern.trim_start_matches("\\s*").trim_start_matches("\\s+").trim_start_matches(' ');
    let pattern = pattern.trim_end_matches("\\n").trim_end_matches("\\r").trim_end_matches('$');
    let is_whole = matches!(pattern, "(.*)" | "(.+)" | "(.*?)" | "(.+?)" | "([^\\r\\n]+)" | "(\\S+)");
    (group == 1 && is_whole && crate::content::is_header(name)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::header_of;

    #[test]
    fn a_pattern_of_a_whole_header_is_the_header() {
        assert_eq!(header_of("Location: (.+?)\\r\\n", 1).as_deref(), Some("Location"));
        assert_eq!(header_of("X-Token:\\s*(\\S+)", 1).as_deref(), Some("X-Token"));
        assert_eq!(header_of("Location: .*id=(\\d+)", 1), None);
        assert_eq!(header_of("(.*)", 1), None);
    }
}
