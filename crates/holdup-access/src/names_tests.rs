//! JSON and `key=value` lines as servers write them, with exact values.

use super::*;

/// 3 November 2026, 08:09:10.250 UTC.
const AT_MS: i64 = 1_793_693_350_250;

type Facts = (String, u16, Option<i64>, Option<i64>, i64);

fn facts(entry: Entry<'_>) -> Facts {
    let us = |ns: Option<i64>| ns.map(|ns| ns / 1_000);
    let request = format!("{} {}", entry.method, entry.target);
    let at = entry.started_at().unwrap() / 1_000_000;
    (request, entry.status, us(entry.whole_ns), us(entry.upstream_ns), at)
}

#[test]
fn json_of_servers() {
    let get = || "GET /cart/17".to_owned();
    for (line, whole, upstream, at) in [
        // nginx
        (
            r#"{"time":"2026-11-03T08:09:10.250Z","request":"GET /cart/17 HTTP/1.1","status":"200","request_time":"0.412","upstream_response_time":"0.100, 0.300"}"#,
            412_000,
            Some(400_000),
            AT_MS - 412,
        ),
        // Caddy
        (
            r#"{"ts":1793693350.250,"request":{"method":"GET","uri":"/cart/17"},"duration":0.412,"status":200}"#,
            412_000,
            None,
            AT_MS - 412,
        ),
        // Traefik
        (
            r#"{"Duration":412000000,"OriginDuration":400000000,"RequestMethod":"GET","RequestPath":"/cart/17","StartUTC":"2026-11-03T08:09:10.250Z","DownstreamStatus":200,"time":"2026-11-03T08:09:11Z"}"#,
            412_000,
            Some(400_000),
            AT_MS,
        ),
        // Envoy
        (
            r#"{"start_time":"2026-11-03T08:09:10.250Z","method":"GET","path":"/cart/17","response_code":200,"duration":412,"upstream_service_time":"400"}"#,
            412_000,
            Some(400_000),
            AT_MS,
        ),
        // pino
        (
            r#"{"time":1793693350250,"req":{"method":"GET","url":"/cart/17"},"res":{"statusCode":200},"responseTime":412}"#,
            412_000,
            None,
            AT_MS - 412,
        ),
        // Elastic Common Schema
        (
            r#"{"@timestamp":"2026-11-03T08:09:10.250Z","http":{"request":{"method":"GET"},"response":{"status_code":200}},"url":{"path":"/cart/17"},"event":{"duration":412000000}}"#,
            412_000,
            None,
            AT_MS - 412,
        ),
        // Google's load balancer
        (
            r#"{"timestamp":"2026-11-03T08:09:10.250Z","httpRequest":{"requestMethod":"GET","requestUrl":"/cart/17","status":200,"latency":"0.412s"}}"#,
            412_000,
            None,
            AT_MS - 412,
        ),
        (
            r#"{"time":"2026-11-03T08:09:10.250Z","method":"GET","path":"/cart/17","status":200,"duration_us":412000}"#,
            412_000,
            None,
            AT_MS - 412,
        ),
    ] {
        let entry = json(line).unwrap_or_else(|why| panic!("{line}: {why}"));
        assert_eq!(facts(entry), (get(), 200, Some(whole), upstream, at), "{line}");
        for end in 0..line.len() {
            assert!(json(&line[..end]).is_err());
        }
    }
}

#[test]
fn the_router_of_heroku() {
    let line = r#"2026-11-03T08:09:10.250000+00:00 heroku[router]: at=info method=GET path="/cart/17?q=a b" host=shop.example dyno=web.1 connect=2ms service=410ms status=200 bytes=9"#;
    let entry = pairs(line).unwrap();
    assert_eq!((entry.connect_ns, &*entry.server), (Some(2_000_000), "web.1"));
    assert_eq!(facts(entry), ("GET /cart/17?q=a b".into(), 200, Some(412_000), Some(410_000), AT_MS - 412));
    let syslog = line.replace("2026", "<158>1 2026").replace("heroku[router]:", "host heroku router -");
    assert_eq!(pairs(&syslog).unwrap().whole_ns, Some(412_000_000));
    let timeout = line.replace("connect=2ms service=410ms status=200", "connect= service= status=503");
    assert_eq!(pairs(&timeout).unwrap().whole_ns, None);
    for end in 0..line.len() {
        let _ = pairs(&line[..end]);
    }
}

#[test]
fn what_is_wrong() {
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    for line in [
        "",
        "5",
        "[]",
        "{}",
        r#"{"time":"soon","status":200}"#,
        r#"{"time":3.5,"status":200}"#,
        r#"{"time":"2026-11-03T08:09:10Z","duration":-4}"#,
        r#"{"time":"2026-11-03T08:09:10Z","request_time":"1e99"}"#,
        r#"{"time":"2026-11-03T08:09:10Z","duration":"long"}"#,
        &deep,
    ] {
        assert!(json(line).is_err(), "{line:.60}");
    }
    for line in ["", "a=1", "plain words", "a=1 b=2", "a=\"1 b=2"] {
        assert!(pairs(line).is_err(), "{line}");
    }
}

fn asked_for(line: &str) -> (i64, Option<String>) {
    let entry = arrival(line.as_bytes()).unwrap_or_else(|why| panic!("{line}: {why}"));
    (entry.at / 1_000_000, entry.request.map(|r| format!("{} {}", r.method, r.path)))
}

#[test]
fn a_replay_finds_time_and_request_of_servers_logs() {
    let ms = 971_211_336_000;
    for (line, expected) in [
        // nginx
        (
            r#"{"time_local":"10/Oct/2000:13:55:36 -0700","request":"GET /a?b=1 HTTP/1.1","request_time":0.003}"#,
            "GET /a?b=1",
        ),
        (r#"{"msec":"971211336.000","time":0.25,"request_method":"HEAD","uri":"/a","args":"b=1"}"#, "HEAD /a?b=1"),
        // Caddy
        (
            r#"{"level":"info","ts":971211336.0,"request":{"method":"GET","uri":"/x","headers":{"uri":["no"]}}}"#,
            "GET /x",
        ),
        // Traefik
        (
            r#"{"StartUTC":"2000-10-10T20:55:36Z","time":"2000-10-10T20:55:39Z","RequestMethod":"POST","RequestPath":"/p"}"#,
            "POST /p",
        ),
        // Elastic Common Schema
        (
            r#"{"@timestamp":"2000-10-10T20:55:36.000Z","http":{"request":{"method":"GET"}},"url":{"path":"/u","query":"q=1"}}"#,
            "GET /u?q=1",
        ),
        // nginx, with a field that a shipper of logs has added
        (
            r#"{"@timestamp":"2000-10-10T20:56:01.500Z","time_iso8601":"2000-10-10T13:55:36-07:00","request":"GET /s HTTP/1.1"}"#,
            "GET /s",
        ),
        // Google Cloud, Express
        (
            r#"{"timestamp":971211336000,"httpRequest":{"requestMethod":"GET","requestUrl":"https://h/x?y"}}"#,
            "GET /x?y",
        ),
        (r#"{"req":{"method":"GET","url":"/n"},"time":971211336000000000}"#, "GET /n"),
    ] {
        assert_eq!(asked_for(line), (ms, Some(expected.to_owned())), "{line}");
    }
    assert_eq!(asked_for(r#"{"ts":971211336,"msg":"started"}"#), (ms, None));
}

#[test]
fn a_replay_refuses_what_is_no_line_with_a_time() {
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    for line in ["", "{", "[]", "5", "{}", r#"{"time":"soon"}"#, r#"{"time":3.5}"#, r#"{"ts":971211336} x"#, &deep] {
        assert!(arrival(line.as_bytes()).is_err(), "{line:.40}");
    }
    assert!(arrival(b"{\"ts\":971211336,\"uri\":\"\xff\"}").is_err());
}
