//! What users do, against a real nginx, in both versions of HTTP, in clear text and over TLS.

use holdup_load::scenario::Scenario;

use crate::play::{Played, at_once, play, scenario};
use crate::servers::nginx::{LARGE, Nginx};

fn run(target: &str, load: &str, more: &str, operation: &str) -> Played {
    play(&scenario(target, load, &format!("{more}\noperations: [{operation}]")), None)
}

const FEW: &str = "rate: 50, duration: 100ms, connections: 2";

#[test]
fn redirects_are_followed() {
    let Some(nginx) = Nginx::start() else { return };
    at_once(nginx.targets(""), |(target, more)| {
        for (operation, status) in [
            ("{get: /relative}", 200),
            ("{get: /absolute}", 200),
            ("{get: /other}", 302),
            ("{post: /see, body: five5}", 200),
            ("{post: /again, body: five5}", 200),
            ("{head: /relative}", 405),
        ] {
            let played = run(&target, FEW, &more, operation);
            assert!(
                played.rows.iter().all(|r| r.status == Some(status)),
                "{target} {more} {operation}: {:?}",
                played.rows
            );
        }
        run(&target, FEW, &more, "{get: /loop}").all("too_many_redirects");
    });
}

#[test]
fn cookies_are_sent_back_and_compression_is_asked_for() {
    let Some(nginx) = Nginx::start() else { return };
    at_once(nginx.targets("cookies: true, compression: true"), |(target, more)| {
        // nginx names the connection in the cookie, and refuses whoever brings another's.
        run(&target, FEW, &more, "{get: /login}").all("ok");
        run(&target, FEW, &more, "{get: /packed}").all("ok");
    });
    at_once(nginx.targets(""), |(target, more)| {
        run(&target, FEW, &more, "{get: /login}").all("http_status");
        run(&target, FEW, &more, "{get: /packed}").all("http_status");
    });
}

#[test]
fn sessions_capture_check_and_follow_over_either_version() {
    const STEPS: &str = "
steps:
  - {name: token, get: /token, capture: {token: json /token, number: header X-Number}, check: 'header content-type contains json'}
  - repeat: 4
    steps:
      - name: asked
        get: /asked?q=${number}-${token}
        headers: {Authorization: 'Bearer ${token}'}
        check: [json /q == 7-abc, json /packed == identity, 'size > 20']
  - {name: again, post: /again, body: '${token}de', check: 'body contains ok'}
  - {name: see, post: /see, json: {a: 1}, check: 'body == ok'}
  - {name: small, get: /token, check: 'size < 10', on_failure: go_on}
  - {name: followed, post: /see, json: {a: 1}, check: 'size == 2', on_failure: go_on}
  - {name: login, get: /login, on_failure: go_on}
  - {name: missed, get: /token, capture: {x: header X-Nothing}, on_failure: go_on}
";
    let Some(nginx) = Nginx::start() else { return };
    at_once(nginx.targets("compression: true"), |(target, more)| {
        let text = format!(
            "target: {target}\nload: {{rate: 20, duration: 500ms, of: sessions, connections: 20}}\n{more}\n{STEPS}"
        );
        let played = play(&Scenario::parse(&text, "test.yaml").unwrap_or_else(|e| panic!("{e}\n{text}")), None);
        for operation in &played.summary.operations {
            let (name, errors) = (operation.operation.as_str(), &operation.failures);
            match name {
                // Neither head nor body is kept for it: the size alone is looked at.
                "small" => assert_eq!(errors.get("check_failed"), Some(&10), "{target} {more}: {errors:?}"),
                "missed" => assert_eq!(errors.get("capture_missed"), Some(&10), "{target} {more}: {errors:?}"),
                // The cookie is the session's, and nginx names the connection in it.
                "login" => assert!(errors.keys().all(|kind| kind == "http_status"), "{target} {more}: {errors:?}"),
                _ => assert!(errors.is_empty(), "{target} {more} {name}: {errors:?}"),
            }
            let expected = if name == "asked" { 40 } else { 10 };
            assert_eq!(operation.offered, expected, "{target} {more} {name}");
        }
    });
}

#[test]
fn connections_that_nginx_ends_cost_no_request() {
    let Some(nginx) = Nginx::start() else { return };
    for (target, more) in nginx.targets("") {
        // It closes each after a hundred, in HTTP/2 by GOAWAY; several streams are open then.
        let streams =
            if more.contains("version: 2") { more.replace("version: 2", "version: 2, streams: 25") } else { more };
        let played = run(&target, "rate: 3000, duration: 400ms, connections: 3", &streams, "{get: /}");
        played.all("ok");
        let played = run(&target, "users: 30, duration: 400ms", &streams, "{get: /}");
        played.all("ok");
        assert!(played.offered() > 100, "{}", played.offered());
    }
}

#[test]
fn uploads_as_nginx_takes_them() {
    let Some(nginx) = Nginx::start() else { return };
    for (target, more) in nginx.targets("") {
        let more = format!("{more}\noperations: [{{post: /upload, body: x}}]");
        let mut scenario = scenario(&target, FEW, &more);
        scenario.operations[0].body = Some("x".repeat(3_000_000));
        play(&scenario, None).all("ok");
    }
}

#[test]
fn large_responses_are_read_whole() {
    let Some(nginx) = Nginx::start() else { return };
    for (target, more) in nginx.targets("") {
        // Over HTTP/2 on one connection, more than its window of 1 GiB may hold at once.
        let count = if more.contains("version: 2") && target.starts_with("http:") { 6 } else { 1 };
        let load = format!("rate: {count}, duration: 1s, connections: 1");
        let played = run(&target, &load, &more, "{get: /large}");
        played.all("ok");
        assert_eq!(played.rows.len(), count);
        assert!(played.rows.iter().all(|r| (r.response_bytes as u64).abs_diff(LARGE) < 500), "{:?}", played.rows);
    }
}
