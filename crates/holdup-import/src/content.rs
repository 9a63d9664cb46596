//! Contents of requests: texts, forms, JSON, each in the clearest form that means the same.

use serde_json::Value as Json;

use crate::scenario::{Content, Request};
use crate::secret;
use crate::target::{path_part, template_end};

/// Largest body that is written as a JSON structure rather than as text, bytes.
const LARGEST_JSON_BYTES: usize = 64 << 10;

/// A field of a form or a query; both are templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub value: String,
    /// It is sent as it stands.
    pub is_encoded: bool,
}

impl Field {
    /// As a part of a query or an urlencoded body.
    pub fn in_query(&self) -> String {
        let value = if self.is_encoded { path_part(&self.value).replace('#', "%23") } else { encoded(&self.value) };
        format!("{}={value}", encoded(&self.name))
    }
}

/// A template whose texts are percent-encoded here, and whose expressions are encoded when they are
/// filled in.
pub fn encoded(template: &str) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("$${") {
            out.push_str("%24%7B");
            rest = &rest[3..];
        } else if rest.starts_with("${")
            && let Some(end) = template_end(rest)
        {
            let inner = &rest[2..end - 1];
            // A default of an environment variable cannot stand within a function.
            let is_whole = inner.contains(":-") || is_safe(inner);
            out.push_str(&if is_whole { format!("${{{inner}}}") } else { format!("${{url({inner})}}") });
            rest = &rest[end..];
        } else {
            if c.is_ascii_alphanumeric() || "-._~".contains(c) {
                out.push(c);
            } else {
                let mut bytes = [0; 4];
                c.encode_utf8(&mut bytes).bytes().for_each(|b| out.push_str(&format!("%{b:02X}")));
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// Whether the result of an expression never needs encoding.
fn is_safe(expression: &str) -> bool {
    let plain =
        ["uuid()", "random(", "random_text(", "random_hex(", "number()", "session()", "url(", "now('ms')", "now('s')"];
    plain.iter().any(|start| expression.starts_with(start))
}

/// Decodes `+` and `%20` to blanks, and so on; none if the result is not text.
pub fn decoded(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let hex = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
        match (bytes[at], bytes.get(at + 1).copied().and_then(hex), bytes.get(at + 2).copied().and_then(hex)) {
            (b'%', Some(high), Some(low)) => {
                out.push(high << 4 | low);
                at += 3;
            }
            (b'+', ..) => {
                out.push(b' ');
                at += 1;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).ok()
}

/// A form: as fields if their names differ, else as the text that is sent.
pub fn put_form(request: &mut Request, fields: Vec<Field>) {
    let names: std::collections::HashSet<&str> = fields.iter().map(|f| f.name.as_str()).collect();
    let is_map = names.len() == fields.len() && names.iter().all(|name| !name.is_empty() && !name.contains("${"));
    if is_map {
        let plain = |field: Field| {
            let is_text = !field.value.contains("${");
            let value =
                if field.is_encoded && is_text { decoded(&field.value).unwrap_or(field.value) } else { field.value };
            (field.name, value)
        };
        // A form sets its content type itself.
        request
            .headers
            .retain(|(n, v)| !(n.eq_ignore_ascii_case("content-type") && v == "application/x-www-form-urlencoded"));
        request.content = Content::Form(fields.into_iter().map(plain).collect());
        return;
    }
    let text: Vec<String> = fields.iter().filter(|f| !f.name.is_empty()).map(Field::in_query).collect();
    if !request.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case("content-type")) {
        request.headers.push(("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned()));
    }
    request.content = Content::Text(text.join("&"));
}

/// A text: as JSON if its header says so and it is valid. Values of fields that are likely to be
/// secrets are replaced; `secret` returns the name for a field and its value.
pub fn put_text(request: &mut Request, text: String, secret: &mut dyn FnMut(&str, &str) -> String) {
    if text.is_empty() {
        return;
    }
    let is_json = request.headers.iter().any(|(n, v)| {
        n.eq_ignore_ascii_case("content-type") && v.split(';').next().is_some_and(|kind| kind.trim().ends_with("json"))
    });
    let parsed =
        if is_json && text.len() <= LARGEST_JSON_BYTES { serde_json::from_str::<Json>(&text).ok() } else { None };
    match parsed.filter(|json| json.is_object() || json.is_array()) {
        Some(mut json) => {
            hide(&mut json, secret);
            request.headers.retain(|(n, v)| !(n.eq_ignore_ascii_case("content-type") && v == "application/json"));
            request.content = Content::Json(json);
        }
        None => request.content = Content::Text(text),
    }
}

/// Replaces texts of fields that are likely to be secrets.
pub fn hide(json: &mut Json, secret: &mut dyn FnMut(&str, &str) -> String) {
    match json {
        Json::Array(items) => items.iter_mut().for_each(|item| hide(item, secret)),
        Json::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Json::String(text) if secret::is_secret(name) && !text.is_empty() && !text.contains("${") => {
                        *text = format!("${{secret.{}}}", secret(name, text));
                    }
                    other => hide(other, secret),
                }
            }
        }
        _ => {}
    }
}

/// Whether `name` can be the name of a header field (RFC 9110, section 5.1).
pub fn is_header(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, value: &str, is_encoded: bool) -> Field {
        Field { name: name.into(), value: value.into(), is_encoded }
    }

    #[test]
    fn queries() {
        assert_eq!(field("a b", "x&${user} y", false).in_query(), "a%20b=x%26${url(user)}%20y");
        assert_eq!(field("a", "x%20y+z#", true).in_query(), "a=x%20y+z%23");
        assert_eq!(decoded("a%20b+c%2").as_deref(), Some("a b c%2"));
    }

    #[test]
    fn forms_and_json_are_said_as_such() {
        let mut request = Request::default();
        put_form(&mut request, vec![field("a", "x%20y", true), field("b", "z w", false)]);
        assert_eq!(request.content, Content::Form(vec![("a".into(), "x y".into()), ("b".into(), "z w".into())]));
        put_form(&mut request, vec![field("a", "1", false), field("a", "2", false)]);
        assert_eq!(request.content, Content::Text("a=1&a=2".into()));
        let mut request =
            Request { headers: vec![("Content-Type".into(), "application/json".into())], ..Request::default() };
        put_text(&mut request, "{\"password\": \"x\", \"id\": 1}".into(), &mut |name, _| name.to_uppercase());
        assert_eq!(request.content, Content::Json(serde_json::json!({"password": "${secret.PASSWORD}", "id": 1})));
        assert!(request.headers.is_empty());
    }
}
