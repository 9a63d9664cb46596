//! One recorded request as a scenario's: without what the browser or the connection adds, with
//! secrets replaced, and with variables where it sends back a value of a response.

use std::collections::{BTreeMap, BTreeSet};

use super::Recording;
use super::chosen::Entry;
use super::thread::Threads;
use crate::content::{self, Field};
use crate::document::Node;
use crate::note::Kind;
use crate::scenario::{Content, Request};
use crate::secret::{is_secret, scheme};
use crate::target::path_part;
use crate::template::literal;

/// Header fields that belong to the connection, the browser, or holdup.
const LEFT_OUT: [&str; 22] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "keep-alive",
    "proxy-connection",
    "upgrade",
    "te",
    "accept-encoding",
    "cookie",
    "upgrade-insecure-requests",
    "dnt",
    "priority",
    "pragma",
    "cache-control",
    "if-none-match",
    "if-modified-since",
    "expect",
    "trailer",
    "save-data",
    "purpose",
    "alt-used",
];

impl Recording {
    /// The request; `index` is its place among the chosen ones.
    pub(super) fn request(&mut self, entry: &Entry<'_>, index: usize, threads: &Threads, prefix: &str) -> Request {
        let mut request = Request { method: entry.method.clone(), line: entry.line, ..Request::default() };
        request.path = format!("{prefix}{}", self.path(entry, index, threads));
        for header in entry.request.get("headers").map_or(&[][..], Node::items) {
            let text = |key: &str| header.get(key).and_then(Node::text).unwrap_or_default();
            self.header(&mut request, entry, (text("name").trim(), text("value").trim()), (index, threads));
        }
        if index == 0 && entry.request.get("headers").is_some_and(|h| h.items().iter().any(|h| is_named(h, "cookie"))) {
            let why = "it sent cookies from before the recording; a session begins without cookies";
            self.notes.add(
                Kind::Changed,
                "first request",
                entry.line,
                why,
                "record from a private window, with the login",
            );
        }
        self.carry(&mut request, entry, index, threads);
        if entry.status >= 400 {
            request.checks.push(format!("status == {}", entry.status));
        }
        request
    }

    /// Path and query.
    fn path(&mut self, entry: &Entry<'_>, index: usize, threads: &Threads) -> String {
        let (path, query) = entry.path.split_once('?').map_or((entry.path.as_str(), None), |(p, q)| (p, Some(q)));
        let parts: Vec<String> = path.split('/').map(|part| self.piece(part, index, threads)).collect();
        let mut out = path_part(&parts.join("/"));
        if let Some(query) = query {
            let fields: Vec<String> = query
                .split('&')
                .map(|field| match field.split_once('=') {
                    Some((name, value)) => {
                        let filled = self.value(name, value, entry, index, threads);
                        format!("{}={filled}", path_part(&literal(name)))
                    }
                    None => path_part(&literal(field)),
                })
                .collect();
            out = format!("{out}?{}", fields.join("&"));
        }
        out
    }

    fn piece(&mut self, part: &str, index: usize, threads: &Threads) -> String {
        let plain = content::decoded(&part.replace('+', "%2B")).unwrap_or_default();
        match threads.variable(&plain, index, self) {
            Some(name) => format!("${{url({name})}}"),
            None => literal(part),
        }
    }

    /// The value of a parameter of the query, encoded.
    fn value(&mut self, name: &str, value: &str, entry: &Entry<'_>, index: usize, threads: &Threads) -> String {
        let plain = content::decoded(value).unwrap_or_default();
        if let Some(variable) = threads.variable(&plain, index, self) {
            return format!("${{url({variable})}}");
        }
        if is_secret(name) && !plain.is_empty() {
            let own = self.secrets.name(name, &plain, &format!("parameter {name}"), entry.line, &mut self.notes);
            return format!("${{url(secret.{own})}}");
        }
        path_part(&literal(value))
    }

    fn header(
        &mut self,
        request: &mut Request,
        entry: &Entry<'_>,
        (name, value): (&str, &str),
        (index, threads): (usize, &Threads),
    ) {
        let lower = name.to_ascii_lowercase();
        if !content::is_header(name)
            || LEFT_OUT.contains(&lower.as_str())
            || lower.starts_with("sec-")
            || lower.starts_with(':')
        {
            return;
        }
        let value = value.replace(['\r', '\n', '\0'], " ");
        let (before, rest) = scheme(&value);
        let filled = if let Some(variable) = threads.variable(rest, index, self) {
            format!("{}${{{variable}}}", literal(before))
        } else if is_secret(name) && !rest.is_empty() {
            let own = self.secrets.name(name, rest, &format!("header {name}"), entry.line, &mut self.notes);
            format!("{}${{secret.{own}}}", literal(before))
        } else {
            literal(&value)
        };
        if !request.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name)) {
            request.headers.push((name.to_owned(), filled));
        }
    }

    fn carry(&mut self, request: &mut Request, entry: &Entry<'_>, index: usize, threads: &Threads) {
        let Some(data) = entry.request.get("postData") else { return };
        let text = data.get("text").and_then(Node::text).unwrap_or_default();
        let kind = data.get("mimeType").and_then(Node::text).unwrap_or_default();
        let bare = kind.split(';').next().unwrap_or_default().trim();
        if bare == "application/x-www-form-urlencoded" {
            let fields = form(text, data);
            let fields: Vec<Field> = fields.into_iter().map(|field| self.field(field, entry, index, threads)).collect();
            if !fields.is_empty() {
                content::put_form(request, fields);
            }
            return;
        }
        if data.get("encoding").is_some() {
            self.notes.add(
                Kind::LeftOut,
                "body",
                entry.line,
                "it is binary, and the scenario does not send it",
                "put it into a file and use body_file",
            );
            return;
        }
        if text.is_empty() {
            if bare.starts_with("multipart/") {
                let why = "the recording lacks the parts of its form, so the scenario does not send them";
                self.notes.add(Kind::LeftOut, "body", entry.line, why, "put the body into a file and use body_file");
            }
            return;
        }
        if !kind.is_empty() && !request.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case("content-type")) {
            request.headers.push(("Content-Type".to_owned(), literal(&kind.replace(['\r', '\n', '\0'], " "))));
        }
        let (secrets, notes) = (&mut self.secrets, &mut self.notes);
        content::put_text(request, literal(text), &mut |name, value| {
            secrets.name(name, value, &format!("field {name}"), entry.line, notes)
        });
        if let Content::Json(json) = &mut request.content {
            self.thread_json(json, index, threads);
        }
    }

    /// Texts of a body that an earlier response returned.
    fn thread_json(&mut self, json: &mut serde_json::Value, index: usize, threads: &Threads) {
        match json {
            serde_json::Value::String(text) => {
                if let Some(name) = threads.variable(text, index, self) {
                    *text = format!("${{{name}}}");
                }
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(|item| self.thread_json(item, index, threads)),
            serde_json::Value::Object(fields) => {
                fields.values_mut().for_each(|value| self.thread_json(value, index, threads))
            }
            _ => {}
        }
    }

    fn field(&mut self, field: Field, entry: &Entry<'_>, index: usize, threads: &Threads) -> Field {
        let plain =
            if field.is_encoded { content::decoded(&field.value).unwrap_or_default() } else { field.value.clone() };
        if let Some(variable) = threads.variable(&plain, index, self) {
            return Field { value: format!("${{{variable}}}"), is_encoded: false, ..field };
        }
        if is_secret(&field.name) && !plain.is_empty() {
            let own =
                self.secrets.name(&field.name, &plain, &format!("field {}", field.name), entry.line, &mut self.notes);
            return Field { value: format!("${{secret.{own}}}"), is_encoded: false, ..field };
        }
        Field { name: literal(&field.name), value: literal(&field.value), is_encoded: field.is_encoded }
    }
}

fn is_named(header: &Node, name: &str) -> bool {
    header.get("name").and_then(Node::text).is_some_and(|n| n.eq_ignore_ascii_case(name))
}

/// Fields of a form: from its text, which is as it was sent, else from its parameters.
fn form(text: &str, data: &Node) -> Vec<Field> {
    if !text.is_empty() {
        let field = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Field { name: content::decoded(name).unwrap_or_default(), value: value.to_owned(), is_encoded: true }
        };
        return text.split('&').filter(|pair| !pair.is_empty()).map(field).collect();
    }
    let param = |node: &Node| {
        let text = |key: &str| node.get(key).and_then(Node::as_text).unwrap_or_default();
        Field { name: text("name"), value: text("value"), is_encoded: false }
    };
    data.get("params").map_or(&[][..], Node::items).iter().map(param).collect()
}

/// Names requests whose path alone is not enough: paths with numbers in them, and those with
/// several methods.
pub fn name(requests: &mut [Request]) {
    let plain = |request: &Request| -> String {
        let path = crate::template::label(request.path.split('?').next().unwrap_or("/"));
        let parts = path.split('/').map(|part| if is_id(part) { "{id}" } else { part });
        parts.collect::<Vec<_>>().join("/")
    };
    let mut methods: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for request in requests.iter() {
        methods.entry(plain(request)).or_default().insert(request.method.clone());
    }
    for request in requests.iter_mut() {
        let path = plain(request);
        let several = methods.get(&path).is_some_and(|m| m.len() > 1);
        if several {
            request.name = format!("{} {path}", request.method.to_uppercase());
        } else if path != request.path.split('?').next().unwrap_or_default() {
            request.name = path;
        }
    }
}

/// Whether a part of a path is a number, a UUID or the like.
fn is_id(part: &str) -> bool {
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    (digits > 0 && digits == part.len())
        || (part.len() >= 16 && digits > 0 && part.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_methods_apart_and_ids_not() {
        let request =
            |method: &str, path: &str| Request { method: method.into(), path: path.into(), ..Request::default() };
        let mut all = [
            request("get", "/cart"),
            request("post", "/cart"),
            request("get", "/a/12?x=1"),
            request("get", "/plain?q=1"),
        ];
        name(&mut all);
        assert_eq!(all.map(|r| r.name), ["GET /cart", "POST /cart", "/a/{id}", ""]);
    }
}
