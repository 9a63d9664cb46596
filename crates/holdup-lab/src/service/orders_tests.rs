//! The order service over real sockets, as a session goes through it.

use serde_json::{Value, json};

use crate::service::service_tests::{Client, metric, start};

fn json_of(answer: (u16, String)) -> Value {
    assert_eq!(answer.0, 200, "{}", answer.1);
    serde_json::from_str(&answer.1).expect("JSON")
}

#[test]
fn a_token_opens_the_orders() {
    let server = start(&["--orders"]);
    let mut client = Client::connect(server.listen);
    let mut auth = |body: &str| client.ask("POST", "/auth", "Content-Type: application/json\r\n", body);
    let first = json_of(auth(r#"{"user":"a","password":"right"}"#));
    let second = json_of(auth(r#"{"user":"a","password":"right"}"#));
    assert_eq!(first["expires_in"], 3_600);
    let token = first["access_token"].as_str().expect("a text").to_owned();
    assert_ne!(first["access_token"], second["access_token"]);
    assert_eq!(auth(r#"{"user":"a","password":"wrong"}"#).0, 401);
    assert_eq!(auth(r#"{"password":"right"}"#).0, 401);
    assert_eq!(auth("user=a").0, 400);
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let order = json_of(client.ask("GET", "/orders/17?full=1", &bearer, ""));
    let items = json!([{ "sku": "a", "qty": 1 }, { "sku": "b", "qty": 2 }]);
    assert_eq!(order, json!({ "id": 17, "items": items, "total": 12.5 }));
    for (fields, path, status) in [
        ("", "/orders/17", 401),
        ("Authorization: Bearer t1-0000000000000000\r\n", "/orders/17", 401),
        (&bearer, "/orders/x", 404),
        (&bearer, "/elsewhere", 404),
    ] {
        assert_eq!(client.ask("GET", path, fields, "").0, status, "{path}");
    }
    assert_eq!(client.ask("DELETE", "/orders/17", &bearer, "").0, 405);
    assert_eq!(client.get("/auth").0, 405);
    // All orders are one route of the metrics.
    let seen = "http_server_request_duration_seconds_count{http_route=\"/orders/{id}\",http_request_method=\"GET\",http_response_status_code=\"200\"}";
    assert_eq!(metric(&server, seen), 1.0);
    server.stop();
}

#[test]
fn a_form_sets_a_cookie() {
    let server = start(&["--orders"]);
    let mut client = Client::connect(server.listen);
    let (status, page) = client.get("/login");
    let csrf =
        page.split_once("name=\"csrf\" value=\"").and_then(|(_, rest)| rest.split_once('"')).map(|(csrf, _)| csrf);
    let csrf = csrf.filter(|_| status == 200).expect("a hidden field").to_owned();
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let mut login = |body: &str| client.ask_whole("POST", "/login", form, body);
    let (head, _) = login(&format!("csrf={csrf}&user=a%40b&password=x+y"));
    assert!(head.starts_with("HTTP/1.1 302 Found\r\n") && head.contains("\r\nLocation: /home\r\n"), "{head}");
    let cookie = head.split_once("\r\nSet-Cookie: ").and_then(|(_, rest)| rest.split_once(';')).expect("a cookie").0;
    assert!(login("user=a&password=y").0.contains("Set-Cookie"), "the hidden field may be left out");
    assert!(login("csrf=c1-0&user=a&password=y").0.starts_with("HTTP/1.1 403"));
    assert!(login("user=a&password=wrong").0.starts_with("HTTP/1.1 401"));
    assert_eq!(client.get("/home").0, 401);
    assert_eq!(client.ask("GET", "/home", "Cookie: session=s9-1\r\n", "").0, 401);
    let (status, page) = client.ask("GET", "/home", &format!("Cookie: other=1; {cookie}\r\n"), "");
    assert!(status == 200 && page.contains("Welcome"), "{page}");
}

#[test]
fn a_mirror_says_what_arrived() {
    let server = start(&["--orders"]);
    let mut client = Client::connect(server.listen);
    let body = "x".repeat(20_000);
    let echo = json_of(client.ask("PUT", "/echo?a=b", "X-One: 1\r\n", &body));
    let headers = json!({ "host": "x", "content-length": "20000", "x-one": "1" });
    assert_eq!(echo, json!({ "method": "PUT", "path": "/echo", "query": "a=b", "headers": headers, "body": body }));
    // Without the option these paths do not exist.
    let other = start(&[]);
    assert_eq!(Client::connect(other.listen).get("/echo").0, 404);
}
