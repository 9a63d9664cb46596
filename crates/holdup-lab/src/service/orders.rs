//! An order service, for scenarios with a login: a token that every later request must carry, a
//! form that sets a cookie, and an echo of the request. It stores nothing: the service recognises
//! its own tokens and sessions from their content, so any number of users can log in. It does not
//! show how to do that safely.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::StatusCode;
use serde_json::{Value, json};

use crate::service::answer::Answer;
use crate::service::http::Request;
use crate::service::seed::mix;

/// The password that is always wrong.
const WRONG_PASSWORD: &str = "wrong";

/// Lifetime of a token as reported, seconds.
const EXPIRES_IN: u32 = 3_600;

/// See the module.
#[derive(Debug, Default)]
pub struct Orders {
    issued: AtomicU64,
}

impl Orders {
    /// Answers one request, if its path belongs to this service.
    pub fn answer(&self, request: &Request) -> Option<Answer> {
        let path = request.path.as_str();
        let method = request.method.as_str();
        Some(match (path, method) {
            ("/auth", "POST") => self.auth(request),
            ("/login", "GET" | "HEAD") => self.form(),
            ("/login", "POST") => self.login(request),
            ("/home", "GET" | "HEAD") => home(request),
            ("/echo", _) => json_answer(StatusCode::OK, echo(request), "/echo"),
            ("/auth" | "/login" | "/home", _) => error(StatusCode::METHOD_NOT_ALLOWED, "not with this method", path),
            _ => {
                let number = path.strip_prefix("/orders/")?;
                if matches!(method, "GET" | "HEAD") {
                    order(request, number)
                } else {
                    error(StatusCode::METHOD_NOT_ALLOWED, "orders can only be read", ORDER)
                }
            }
        })
    }

    /// A token or session that was never handed out before.
    fn issue(&self, kind: char) -> String {
        let number = self.issued.fetch_add(1, Ordering::Relaxed) + 1;
        sealed(kind, number)
    }

    fn auth(&self, request: &Request) -> Answer {
        let Ok(Value::Object(given)) = serde_json::from_slice(&request.body) else {
            return error(StatusCode::BAD_REQUEST, "the body is not a JSON object", "/auth");
        };
        let text = |key: &str| given.get(key).and_then(Value::as_str).unwrap_or_default();
        if !may_enter(text("user"), text("password")) {
            return error(StatusCode::UNAUTHORIZED, "user or password is wrong", "/auth");
        }
        let body = json!({ "access_token": self.issue('t'), "token_type": "Bearer", "expires_in": EXPIRES_IN });
        json_answer(StatusCode::OK, body, "/auth")
    }

    /// A page with a form whose hidden field has to be sent back.
    fn form(&self) -> Answer {
        let csrf = self.issue('c');
        page(
            &format!(
                "<form method=\"post\" action=\"/login\"><input type=\"hidden\" name=\"csrf\" value=\"{csrf}\">\
                 <input name=\"user\"><input name=\"password\" type=\"password\"></form>"
            ),
            "/login",
        )
    }

    fn login(&self, request: &Request) -> Answer {
        let given: BTreeMap<_, _> = form_urlencoded::parse(&request.body).collect();
        let text = |key: &str| given.get(key).map_or("", |value| value.as_ref());
        if given.get("csrf").is_some_and(|csrf| !is_own('c', csrf)) {
            return error(StatusCode::FORBIDDEN, "this form was not handed out here", "/login");
        }
        if !may_enter(text("user"), text("password")) {
            return error(StatusCode::UNAUTHORIZED, "user or password is wrong", "/login");
        }
        let fields = format!("Location: /home\r\nSet-Cookie: session={}; Path=/; HttpOnly\r\n", self.issue('s'));
        Answer { fields, ..json_answer(StatusCode::FOUND, json!({}), "/login") }
    }
}

/// The route of all orders.
const ORDER: &str = "/orders/{id}";

fn order(request: &Request, number: &str) -> Answer {
    let token = request.field("authorization").and_then(|value| value.strip_prefix("Bearer "));
    if !token.is_some_and(|token| is_own('t', token)) {
        return error(StatusCode::UNAUTHORIZED, "a token of /auth is needed", ORDER);
    }
    let Ok(id) = number.parse::<u32>() else { return error(StatusCode::NOT_FOUND, "no such order", ORDER) };
    let body = json!({ "id": id, "items": [{ "sku": "a", "qty": 1 }, { "sku": "b", "qty": 2 }], "total": 12.5 });
    json_answer(StatusCode::OK, body, ORDER)
}

fn home(request: &Request) -> Answer {
    let cookies = request.field("cookie").unwrap_or_default();
    let session = cookies.split(';').find_map(|cookie| cookie.trim().strip_prefix("session="));
    if session.is_some_and(|session| is_own('s', session)) {
        page("<h1>Welcome</h1>", "/home")
    } else {
        error(StatusCode::UNAUTHORIZED, "log in first", "/home")
    }
}

fn echo(request: &Request) -> Value {
    let headers: serde_json::Map<String, Value> =
        request.fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.as_str().into())).collect();
    let body = String::from_utf8_lossy(&request.body);
    json!({ "method": request.method, "path": request.path, "query": request.query, "headers": headers, "body": body })
}

fn may_enter(user: &str, password: &str) -> bool {
    !user.is_empty() && password != WRONG_PASSWORD
}

/// A number, sealed so that only this service (or a reader of this file) can make it.
fn sealed(kind: char, number: u64) -> String {
    format!("{kind}{number}-{:016x}", mix(number ^ (u64::from(kind) << 56)))
}

/// Whether a token was made by [`sealed`].
fn is_own(kind: char, token: &str) -> bool {
    let number = token.strip_prefix(kind).and_then(|rest| rest.split_once('-')).and_then(|(n, _)| n.parse().ok());
    number.is_some_and(|number| sealed(kind, number) == token)
}

fn json_answer(status: StatusCode, body: Value, route: &str) -> Answer {
    Answer::json(status, &body, route.to_owned())
}

fn error(status: StatusCode, why: &str, route: &str) -> Answer {
    json_answer(status, json!({ "error": why }), route)
}

fn page(content: &str, route: &str) -> Answer {
    let body = format!("<!doctype html><title>Orders</title>{content}");
    Answer { content_type: "text/html; charset=utf-8", body, ..json_answer(StatusCode::OK, json!({}), route) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_ours_is_told_from_others() {
        let orders = Orders::default();
        let (one, two) = (orders.issue('t'), orders.issue('t'));
        assert!(one != two && is_own('t', &one) && is_own('t', &two));
        for other in [&orders.issue('s'), "", "t", "t1", "t1-", "t1-0000000000000000", &format!("{one}0"), &one[1..]] {
            assert!(!is_own('t', other), "{other}");
        }
    }
}
