//! One operation: path, parameters, body.

use super::{Description, plain};
use crate::content::{self, Field, encoded};
use crate::document::{Node, Value};
use crate::note::Kind;
use crate::scenario::{Content, Request};
use crate::secret::is_secret;
use crate::target::path_part;
use crate::template::{label, literal};

const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// Most values of a body in all.
const MOST_VALUES: usize = 2_000;

/// Parameters of an operation that are sent.
#[derive(Default)]
struct Parameters {
    query: Vec<Field>,
    headers: Vec<(String, String)>,
    cookies: Vec<String>,
    /// Names of optional ones without an example.
    optional: Vec<String>,
}

impl<'a> Description<'a> {
    /// The operations of a path.
    pub(super) fn path(&mut self, path: &str, item: &'a Node, prefix: &str) -> Vec<Request> {
        let Some(item) = self.resolve(item) else {
            self.notes.left_out(label(path), item.line, "the target of its reference is not in the file");
            return Vec::new();
        };
        let mut all = Vec::new();
        for (key, node) in item.entries() {
            let method = key.as_str();
            if METHODS.contains(&method) {
                all.extend(self.operation(method, path, node, item, prefix));
            } else if method == "trace" {
                self.notes.left_out(format!("TRACE {}", label(path)), node.line, "scenarios do not have its method");
            }
        }
        all
    }

    fn operation(&mut self, method: &str, path: &str, node: &'a Node, item: &'a Node, prefix: &str) -> Option<Request> {
        let title = format!("{} {}", method.to_uppercase(), label(path));
        let id = node.get("operationId").and_then(Node::text).map(label).filter(|id| !id.is_empty());
        let mut name = id.unwrap_or_else(|| title.clone());
        if !self.names.insert(name.clone()) {
            name = format!("{name} ({title})");
            while !self.names.insert(name.clone()) {
                name.push('+');
            }
        }
        for (key, where_is) in [("servers", node.get("servers")), ("servers", item.get("servers"))] {
            if let Some(servers) = where_is {
                self.notes.changed(
                    format!("{title}: {key}"),
                    servers.line,
                    "it names another server; the scenario sends it to the target",
                );
            }
        }
        if let Some(callbacks) = node.get("callbacks") {
            self.notes.left_out(
                format!("{title}: callbacks"),
                callbacks.line,
                "they are requests of the service, not to it",
            );
        }
        let mut request = Request { name, method: method.to_owned(), line: node.line, ..Request::default() };
        let mut parameters = Parameters::default();
        request.path = self.parameters(path, node, item, &mut parameters, &title);
        request.headers.append(&mut parameters.headers);
        if let Some(body) = node.get("requestBody")
            && !self.body(&mut request, body, &title)
        {
            return None;
        }
        self.credentials(&mut request, node, &mut parameters.query, &mut parameters.cookies, &title);
        if !parameters.cookies.is_empty() {
            request.headers.push(("Cookie".to_owned(), parameters.cookies.join("; ")));
        }
        let query: Vec<String> = parameters.query.iter().map(Field::in_query).collect();
        let path = format!("{prefix}{}", path_part(&request.path));
        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        request.path = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
        let mut comment = Vec::new();
        if node.get("deprecated").is_some_and(Node::is_true) {
            comment.push("deprecated".to_owned());
        }
        if !parameters.optional.is_empty() {
            comment.push(format!("further parameters: {}", parameters.optional.join(", ")));
        }
        request.comment = comment.join("; ");
        Some(request)
    }

    /// Fills in the path and collects the other parameters.
    fn parameters(&mut self, path: &str, node: &'a Node, item: &'a Node, into: &mut Parameters, title: &str) -> String {
        let lists = [node.get("parameters"), item.get("parameters")];
        let mut seen: Vec<(String, String)> = Vec::new();
        let mut blanks: Vec<(String, String)> = Vec::new();
        for parameter in lists.into_iter().flatten().flat_map(Node::items) {
            let Some(at) = self.resolve(parameter) else {
                self.notes.left_out(
                    format!("{title}: parameter"),
                    parameter.line,
                    "the target of its reference is not in the file",
                );
                continue;
            };
            let text = |key: &str| at.get(key).and_then(Node::text).unwrap_or_default().to_owned();
            let (name, place) = (text("name"), text("in"));
            // An operation's own parameter wins over its path's.
            if name.is_empty() || seen.contains(&(name.clone(), place.clone())) {
                continue;
            }
            seen.push((name.clone(), place.clone()));
            let is_required = place == "path" || at.get("required").is_some_and(Node::is_true);
            let example = self.example(at);
            if !is_required && example.is_none() {
                into.optional.push(format!("{} ({place})", label(&name)));
                continue;
            }
            let mut value = match example {
                Some(value) => value,
                None => self.made_up(at, &name),
            };
            if is_secret(&name) && !value.contains("${") {
                let own =
                    self.secrets.name(&name, &value, &format!("parameter {}", label(&name)), at.line, &mut self.notes);
                value = format!("${{secret.{own}}}");
            }
            match place.as_str() {
                "path" => blanks.push((name, encoded(&value))),
                "query" => into.query.push(Field { name: literal(&name), value, is_encoded: false }),
                "header" if content::is_header(&name) => {
                    let is_own = ["accept", "content-type", "authorization"].contains(&name.to_lowercase().as_str());
                    if !is_own {
                        into.headers.push((name, value.replace(['\r', '\n', '\0'], " ")));
                    }
                }
                "cookie" => into.cookies.push(format!("{}={value}", literal(&name))),
                _ => self.notes.left_out(
                    format!("{title}: parameter {}", label(&name)),
                    at.line,
                    "its place (in) is unknown",
                ),
            }
        }
        self.filled(path, &blanks, (title, node.line))
    }

    /// The path with its parameters' values; one that is not described becomes a number.
    fn filled(&mut self, path: &str, blanks: &[(String, String)], (title, line): (&str, usize)) -> String {
        let mut out = String::new();
        let mut rest = path;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else { break };
            out.push_str(&literal(before));
            match blanks.iter().find(|(n, _)| n == name) {
                Some((_, value)) => out.push_str(value),
                None => {
                    self.notes.changed(
                        format!("{title}: {{{}}}", label(name)),
                        line,
                        "it is not described; the scenario sends a number",
                    );
                    out.push_str("${random(1, 1000)}");
                }
            }
            rest = after;
        }
        out.push_str(&literal(rest));
        out
    }

    /// An example or default of a parameter.
    fn example(&self, at: &'a Node) -> Option<String> {
        let schema = at.get("schema").and_then(|s| self.resolve(s));
        let examples = at.get("examples").map_or(&[][..], Node::entries);
        let first = examples.first().and_then(|(_, e)| self.resolve(e)).and_then(|e| e.get("value"));
        let of_schema = |key: &str| schema.and_then(|s| s.get(key));
        let listed = of_schema("examples").and_then(|e| e.items().first());
        let all = [at.get("example"), first, of_schema("example"), listed, of_schema("default"), of_schema("const")];
        all.into_iter().flatten().find_map(|node| match &node.value {
            Value::List(items) => {
                let items: Option<Vec<String>> = items.iter().map(plain).collect();
                items.map(|items| items.join(","))
            }
            _ => plain(node),
        })
    }

    /// Adds the body. Returns whether the request can be sent.
    fn body(&mut self, request: &mut Request, body: &'a Node, title: &str) -> bool {
        let Some(at) = self.resolve(body) else {
            self.notes.left_out(format!("{title}: body"), body.line, "the target of its reference is not in the file");
            return true;
        };
        let kinds = at.get("content").map_or(&[][..], Node::entries);
        let bare = |kind: &str| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_json =
            |kind: &str| bare(kind).ends_with("/json") || bare(kind).ends_with("+json") || bare(kind) == "*/*";
        let is_form = |kind: &str| bare(kind) == "application/x-www-form-urlencoded";
        let is_text = |kind: &str| bare(kind).starts_with("text/") || bare(kind).ends_with("xml");
        let find = |is_it: &dyn Fn(&str) -> bool| kinds.iter().find(|(kind, _)| is_it(kind));
        if let Some((kind, media)) = find(&is_json) {
            let sample = self.sample_of(media, MOST_VALUES);
            if !matches!(bare(kind).as_str(), "application/json" | "*/*") {
                request.headers.push(("Content-Type".to_owned(), literal(&kind.replace(['\r', '\n', '\0'], " "))));
            }
            request.content = Content::Json(sample);
            return true;
        }
        if let Some((_, media)) = find(&is_form) {
            let sample = self.sample_of(media, MOST_VALUES);
            let field = |(name, value): (&String, &serde_json::Value)| {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                Field { name: literal(name), value, is_encoded: false }
            };
            let fields: Vec<Field> = sample.as_object().map(|o| o.iter().map(field).collect()).unwrap_or_default();
            if !fields.is_empty() {
                content::put_form(request, fields);
            }
            return true;
        }
        if let Some((kind, media)) = find(&is_text)
            && let Some(text) = self.example(media)
        {
            request.headers.push(("Content-Type".to_owned(), literal(&kind.replace(['\r', '\n', '\0'], " "))));
            request.content = Content::Text(text);
            return true;
        }
        let is_required = at.get("required").is_some_and(Node::is_true);
        let named: Vec<&str> = kinds.iter().map(|(kind, _)| kind.as_str()).take(5).collect();
        let why = format!(
            "a body of {} can't be made up",
            if named.is_empty() { "no kind".to_owned() } else { label(&named.join(", ")) }
        );
        if is_required {
            self.notes.add(
                Kind::LeftOut,
                title,
                at.line,
                format!("{why}, and it needs one"),
                "write the operation with body_file",
            );
        } else {
            self.notes.changed(format!("{title}: body"), at.line, format!("{why}; it is sent without"));
        }
        !is_required
    }
}
