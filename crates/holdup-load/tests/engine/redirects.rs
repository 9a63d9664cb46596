//! Redirects, cookies and compression over HTTP/1.1, as the server sees them. The same against a real nginx, over HTTP/2
//! and TLS as well, is in `nginx`.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex};

use holdup_load::scenario::Scenario;

use crate::play::{Played, play, scenario};
use crate::servers::http1::{self, Asked, OK};
use crate::servers::server;

type Log = Arc<Mutex<Vec<(u16, Asked)>>>;

/// A server that answers with what `answer` makes of each request, and what it was asked, with the client's port.
fn logged(answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> (u16, Log) {
    let log = Log::default();
    let own = Arc::clone(&log);
    let port = server(move |stream| {
        let client = stream.peer_addr().map_or(0, |a| a.port());
        http1::serve(stream, |asked| {
            own.lock().unwrap().push((client, asked.clone()));
            answer(asked)
        });
    });
    (port, log)
}

fn to(status: &str, location: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} See\r\nLocation: {location}\r\nContent-Length: 4\r\n\r\nover").into_bytes()
}

/// One request by `operation`.
fn one(port: u16, operation: &str, http: &str) -> Scenario {
    let more = format!("http: {{{http}}}\noperations: [{operation}]");
    scenario(&format!("http://127.0.0.1:{port}"), "rate: 10, duration: 100ms", &more)
}

/// What one request by `operation` leads to: method, path and body of each that the server was asked.
fn asked(port: u16, log: &Log, operation: &str) -> (Played, Vec<String>) {
    log.lock().unwrap().clear();
    let played = play(&one(port, operation, ""), None);
    let asked = log.lock().unwrap().iter().map(|(_, a)| format!("{} {} {}", a.method, a.path, a.body)).collect();
    (played, asked)
}

#[test]
fn they_are_followed_as_users_expect() {
    let own = Arc::new(Mutex::new(0_u16));
    let known = Arc::clone(&own);
    let (port, log) = logged(move |asked| match asked.path.as_str() {
        "/relative/x" => to("302", "../end?q=1"),
        "/absolute" => to("301", &format!("http://127.0.0.1:{}/end", known.lock().unwrap())),
        "/other" => to("302", "http://127.0.0.1:1/end"),
        "/nowhere" => b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
        "/see" => to("303", "/end"),
        "/again" => to("307", "/end"),
        "/permanent" => to("308", "/end"),
        "/found" => to("302", "/end"),
        "/see-then-again" => to("303", "/again"),
        _ => OK.to_vec(),
    });
    *own.lock().unwrap() = port;
    for (operation, expected) in [
        ("{get: /relative/x}", &["GET /relative/x 0", "GET /end?q=1 0"][..]),
        ("{get: /absolute}", &["GET /absolute 0", "GET /end 0"]),
        ("{get: /other}", &["GET /other 0"]),
        ("{get: /nowhere}", &["GET /nowhere 0"]),
        ("{post: /see, body: five5}", &["POST /see 5", "GET /end 0"]),
        ("{post: /found, body: five5}", &["POST /found 5", "GET /end 0"]),
        ("{post: /again, body: five5}", &["POST /again 5", "POST /end 5"]),
        ("{put: /permanent, body: five5}", &["PUT /permanent 5", "PUT /end 5"]),
        ("{post: /see-then-again, body: five5}", &["POST /see-then-again 5", "GET /again 0", "GET /end 0"]),
        ("{delete: /again}", &["DELETE /again 0", "DELETE /end 0"]),
    ] {
        let (played, asked) = asked(port, &log, operation);
        played.all("ok");
        assert_eq!(asked, expected, "{operation}");
        assert_eq!(played.rows.len(), 1, "it is one request, whatever it led to");
        let status = if expected.len() == 1 { 302 } else { 200 };
        assert_eq!(played.rows[0].status, Some(status), "{operation}");
    }
}

#[test]
fn head_stays_head() {
    let (port, log) = logged(|asked| match asked.path.as_str() {
        "/moved" => b"HTTP/1.1 301 Moved\r\nLocation: /end\r\nContent-Length: 4\r\n\r\n".to_vec(),
        _ => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n".to_vec(),
    });
    let (played, asked) = asked(port, &log, "{head: /moved}");
    played.all("ok");
    assert_eq!(asked, ["HEAD /moved 0", "HEAD /end 0"]);
}

#[test]
fn a_loop_ends_and_no_more_are_followed_than_allowed() {
    let (port, log) = logged(|asked| to("302", &format!("{}x", asked.path)));
    play(&one(port, "{get: /}", "redirects: 3"), None).all("too_many_redirects");
    assert_eq!(log.lock().unwrap().len(), 4);
    log.lock().unwrap().clear();
    play(&one(port, "{get: /}", ""), None).all("too_many_redirects");
    assert_eq!(log.lock().unwrap().len(), 11);
    log.lock().unwrap().clear();
    let played = play(&one(port, "{get: /}", "redirects: 0"), None);
    played.all("ok");
    assert_eq!((log.lock().unwrap().len(), played.rows[0].status), (1, Some(302)));
}

#[test]
fn a_server_that_redirects_and_closes() {
    for farewell in ["Connection: close\r\n", ""] {
        let port = server(move |mut stream| {
            if let Some(asked) = http1::read(&mut stream) {
                let response = match asked.path.as_str() {
                    "/" => format!("HTTP/1.1 302 Found\r\nLocation: /end\r\n{farewell}Content-Length: 0\r\n\r\n"),
                    _ => format!("HTTP/1.1 200 OK\r\n{farewell}Content-Length: 0\r\n\r\n"),
                };
                let _ = stream.write_all(response.as_bytes());
            }
        });
        let load = "rate: 400, duration: 250ms, connections: 8";
        play(&scenario(&format!("http://127.0.0.1:{port}"), load, ""), None).all("ok");
    }
}

/// Sets a cookie that names the connection, if it has none.
fn cookie_server() -> (u16, Log) {
    let log = Log::default();
    let own = Arc::clone(&log);
    let port = server(move |stream| {
        let client = stream.peer_addr().map_or(0, |a| a.port());
        http1::serve(stream, |asked| {
            own.lock().unwrap().push((client, asked.clone()));
            let cookie = match asked.header("cookie") {
                None => format!("Set-Cookie: id={client}; Path=/; HttpOnly\r\n"),
                Some(_) => String::new(),
            };
            // The login sends on: the cookie is needed there already.
            match asked.path.as_str() {
                "/login" => format!("HTTP/1.1 303 See\r\n{cookie}Location: /home\r\nContent-Length: 0\r\n\r\n"),
                _ => format!("HTTP/1.1 200 OK\r\n{cookie}Content-Length: 2\r\n\r\nok"),
            }
            .into_bytes()
        });
    });
    (port, log)
}

#[test]
fn cookies_are_kept_by_each_connection_and_sent_back() {
    let (port, log) = cookie_server();
    let load = "rate: 200, duration: 250ms, connections: 5, open_all: true";
    let target = format!("http://127.0.0.1:{port}");
    play(&scenario(&target, load, "http: {cookies: true}\noperations: [{post: /login, body: x}]"), None).all("ok");
    let mut seen: HashMap<u16, u32> = HashMap::new();
    for (client, asked) in log.lock().unwrap().iter() {
        let count = seen.entry(*client).or_default();
        let expected = (*count > 0).then(|| format!("id={client}"));
        assert_eq!(asked.header("cookie"), expected.as_deref(), "request {count} of {client}: {asked:?}");
        *count += 1;
    }
    assert_eq!((seen.len(), seen.values().sum::<u32>()), (5, 100), "{seen:?}");
}

#[test]
fn cookies_and_compression_only_if_wanted() {
    let (port, log) = cookie_server();
    let headers = |http: &str| {
        log.lock().unwrap().clear();
        let target = format!("http://127.0.0.1:{port}");
        let load = "rate: 100, duration: 100ms, connections: 1";
        play(&scenario(&target, load, &format!("http: {{{http}}}")), None).all("ok");
        let log = log.lock().unwrap();
        let with = |name: &str| log.iter().filter(|(_, asked)| asked.header(name).is_some()).count();
        (with("cookie"), with("accept-encoding"))
    };
    assert_eq!(headers("redirects: 1"), (0, 0));
    assert_eq!(headers("cookies: true"), (9, 0));
    assert_eq!(headers("compression: true"), (0, 10));
}
