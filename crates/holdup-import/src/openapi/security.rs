//! Security schemes as credentials that the user gives when the scenario runs.

use super::Description;
use crate::content::{Field, is_header};
use crate::document::Node;
use crate::note::Kind;
use crate::scenario::Request;
use crate::template::{label, literal};

impl<'a> Description<'a> {
    /// Adds the credentials of the operation's first alternative.
    pub(super) fn credentials(
        &mut self,
        request: &mut Request,
        operation: &'a Node,
        query: &mut Vec<Field>,
        cookies: &mut Vec<String>,
        title: &str,
    ) {
        let Some(alternatives) = operation.get("security").or(self.root.get("security")) else { return };
        let Some(first) = alternatives.items().iter().find(|a| !a.entries().is_empty()) else { return };
        for (name, _) in first.entries() {
            let found = self.root.at(&["components", "securitySchemes"]).and_then(|all| all.get(name));
            let Some(scheme) = found.and_then(|s| self.resolve(s)) else {
                self.notes.left_out(format!("{title}: security {}", label(name)), first.line, "it is not described");
                continue;
            };
            let text = |key: &str| scheme.get(key).and_then(Node::text).unwrap_or_default();
            let element = format!("security scheme {}", label(name));
            match text("type") {
                "http" if text("scheme").eq_ignore_ascii_case("basic") => {
                    let pair = self.basic(name, &element, scheme.line);
                    request.headers.push(("Authorization".to_owned(), format!("Basic ${{base64({pair})}}")));
                }
                "http" if text("scheme").eq_ignore_ascii_case("bearer") => {
                    let own = self.secret(name, "TOKEN", &element, scheme.line);
                    request.headers.push(("Authorization".to_owned(), format!("Bearer ${{secret.{own}}}")));
                }
                kind @ ("oauth2" | "openIdConnect") => {
                    let own = self.secret(name, "TOKEN", &element, scheme.line);
                    let why = format!("the scenario does not fetch a token of {kind}, you give it");
                    self.notes.add(Kind::Changed, &element, scheme.line, why, "or fetch it in setup: and capture it");
                    request.headers.push(("Authorization".to_owned(), format!("Bearer ${{secret.{own}}}")));
                }
                "apiKey" => {
                    let own = self.secret(name, "KEY", &element, scheme.line);
                    let (key, value) = (text("name").to_owned(), format!("${{secret.{own}}}"));
                    match text("in") {
                        "query" => query.push(Field { name: literal(&key), value, is_encoded: false }),
                        "cookie" => cookies.push(format!("{}={value}", literal(&key))),
                        _ if is_header(&key) => request.headers.push((key, value)),
                        _ => self.notes.left_out(&element, scheme.line, "its name is not a valid header name"),
                    }
                }
                other => {
                    let other = label(if other == "http" { text("scheme") } else { other });
                    self.notes.left_out(&element, scheme.line, format!("holdup can't log in with {other}"));
                }
            }
        }
    }

    /// The secret of a scheme.
    fn secret(&mut self, scheme: &str, end: &str, element: &str, line: usize) -> String {
        let upper = scheme.to_ascii_uppercase();
        let wanted = if upper.contains(end) { scheme.to_owned() } else { format!("{scheme}_{end}") };
        self.secrets.name(&wanted, &format!("\0{scheme}"), element, line, &mut self.notes)
    }

    /// The text `user:password`.
    fn basic(&mut self, scheme: &str, element: &str, line: usize) -> String {
        let own =
            self.secrets.name(&format!("{scheme}_PASSWORD"), &format!("\0{scheme}"), element, line, &mut self.notes);
        let value = format!("user:${{secret.{own}}}");
        match self.vars.iter().find(|var| var.value == value) {
            Some(var) => var.name.clone(),
            None => self.var("basic", value),
        }
    }
}
