//! Sessions against a little shop of real sockets: tokens are captured and used, ratios come out, every kind of failure
//! is counted as what it is, and what was sent is what was meant.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use holdup_load::engine::Engine;
use holdup_load::scenario::Scenario;

use crate::play::{Played, patient, play};
use crate::servers::{http1, server};

/// A request with its body.
#[derive(Clone, Debug)]
struct Got {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Got {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct Shop {
    tokens: AtomicU64,
    got: Mutex<Vec<Got>>,
}

impl Shop {
    fn of(&self, path: &str) -> Vec<Got> {
        self.got.lock().unwrap().iter().filter(|got| got.path.starts_with(path)).cloned().collect()
    }
}

fn with_body(stream: &mut (impl Read + Write)) -> Option<Got> {
    let http1::Asked { method, path, headers, body } = http1::read_head(stream)?;
    let mut bytes = vec![0; body];
    stream.read_exact(&mut bytes).ok()?;
    Some(Got { method, path, headers, body: String::from_utf8(bytes).unwrap() })
}

fn response(status: &str, fields: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// `/auth` gives a token, `/orders` wants it, `/flaky` fails two times of three, `/text` is no JSON, `/cookie` sets and `/home` wants one.
fn shop(work: Duration) -> (u16, Arc<Shop>) {
    let shop = Arc::new(Shop::default());
    let own = Arc::clone(&shop);
    let port = server(move |mut stream| {
        while let Some(got) = with_body(&mut stream) {
            let number = own.got.lock().unwrap().len();
            let answer = match got.path.split(['/', '?']).nth(1).unwrap_or("") {
                "auth" if got.body.contains("wrong") => response("401 Unauthorized", "", "{}"),
                "auth" => {
                    let token = own.tokens.fetch_add(1, Ordering::SeqCst);
                    response(
                        "200 OK",
                        "X-Kind: \"auth\"\r\n",
                        &format!("{{\"access_token\":\"t{token}\",\"list\":[3,1,2]}}"),
                    )
                }
                "orders" if got.header("authorization").is_some_and(|a| a.starts_with("Bearer t")) => {
                    response("200 OK", "Content-Type: application/json\r\n", "{\"id\":7,\"total\":12.50}")
                }
                "orders" => response("401 Unauthorized", "", "who?"),
                "flaky" if number % 3 != 2 => response("503 Service Unavailable", "", "{}"),
                "gone" => response("404 Not Found", "", "gone"),
                "text" => response("200 OK", "", "plain words"),
                "cookie" => response("302 Found", "Set-Cookie: s=abc; Path=/\r\nLocation: /home\r\n", ""),
                "home" if got.header("cookie") == Some("s=abc") => response("200 OK", "", "{\"in\":true}"),
                "home" => response("403 Forbidden", "", "{}"),
                _ => response("200 OK", "", "{\"a\":1}"),
            };
            own.got.lock().unwrap().push(got);
            thread::sleep(work);
            if stream.write_all(&answer).is_err() {
                return;
            }
        }
    });
    (port, shop)
}

fn run(port: u16, rest: &str) -> Played {
    play(&read(port, rest), None)
}

fn read(port: u16, rest: &str) -> Scenario {
    let text = patient(&format!("target: http://127.0.0.1:{port}\n{rest}"));
    Scenario::parse(&text, "test.yaml").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Counts by operation and outcome, `ok` among them.
fn counts(played: &Played) -> HashMap<(String, String), u64> {
    let mut counts = HashMap::new();
    for operation in &played.summary.operations {
        counts.insert((operation.operation.clone(), "ok".to_owned()), operation.completed);
        for (kind, count) in &operation.failures {
            counts.insert((operation.operation.clone(), kind.clone()), *count);
        }
    }
    counts
}

fn count(played: &Played, operation: &str, outcome: &str) -> u64 {
    counts(played).get(&(operation.to_owned(), outcome.to_owned())).copied().unwrap_or(0)
}

const LOGIN: &str = "
steps:
  - name: auth
    post: /auth
    json: {user: u1, password: ok}
    capture: {token: json /access_token}
  - repeat: 20
    steps:
      - name: order
        get: /orders/${random(1, 50)}
        headers: {Authorization: 'Bearer ${token}'}
        check: [status == 200, json /id == 7, json /total > 12]
";

#[test]
fn a_session_logs_in_once_and_uses_its_token_at_the_rate_that_was_asked() {
    let (port, shop) = shop(Duration::from_millis(2));
    let played = run(port, &format!("load: {{rate: 420, duration: 2s}}\n{LOGIN}"));
    let (auths, orders) = (count(&played, "auth", "ok"), count(&played, "order", "ok"));
    assert_eq!(auths + orders, 840, "{:?}", counts(&played));
    // 1 : 20, but for sessions that had not come to their end; a server that stalls makes more of them.
    assert!(auths >= 840 / 21 && orders > auths, "{auths} auths");
    let tokens: HashMap<String, usize> = shop.of("/orders").iter().fold(HashMap::new(), |mut all, got| {
        *all.entry(got.header("authorization").unwrap().to_owned()).or_default() += 1;
        all
    });
    assert!(tokens.len() as u64 <= auths && tokens.values().all(|n| *n <= 20), "{tokens:?}");
    let body = &shop.of("/auth")[0];
    assert_eq!(
        (body.body.as_str(), body.header("content-type")),
        ("{\"user\":\"u1\",\"password\":\"ok\"}", Some("application/json"))
    );
}

#[test]
fn each_arrival_is_a_session_if_the_rate_is_of_sessions() {
    let (port, _) = shop(Duration::from_millis(1));
    let played = run(port, &format!("load: {{rate: 20, duration: 1s, of: sessions}}\n{LOGIN}"));
    assert_eq!((count(&played, "auth", "ok"), count(&played, "order", "ok")), (20, 400), "{:?}", counts(&played));
}

#[test]
fn users_go_through_their_iterations_and_keep_to_them() {
    let (port, _) = shop(Duration::from_millis(1));
    let played = run(port, &format!("load: {{users: 3, iterations: 7}}\n{LOGIN}"));
    assert_eq!((count(&played, "auth", "ok"), count(&played, "order", "ok")), (7, 140), "{:?}", counts(&played));
    assert!(!played.summary.interrupted);
}

#[test]
fn every_failure_is_of_its_own_kind() {
    let (port, shop) = shop(Duration::ZERO);
    let played = run(
        port,
        "
load: {rate: 100, duration: 1s}
feeders: {ids: {list: [1, 2, 3, 4, 5], order: unique}}
vars: {fixed: yes}
operations:
  - {name: checked, get: /text, check: 'body contains \"nothing\"'}
  - {name: missed, get: /auth, capture: {x: json /nowhere}}
  - {name: broken, get: /text, capture: {y: json /a}}
  - {name: dry, get: '/item/${ids.value}'}
  - {name: unset, get: '/item/${x}', on_failure: go_on}
  - {name: wanted, get: /gone, check: status == 404}
  - {name: status, get: /gone}
  - {name: fine, get: '/item/${uuid()}?t=${fixed}', check: [json /a == 1, 'size < 100', 'header Content-Length exists']}
  - {name: late, get: /x, check: json /missing exists}
  - {name: again, get: '/deep/${template(\"${uuid()}\")}'}
",
    );
    let own = |operation: &str, outcome: &str| count(&played, operation, outcome);
    for (operation, outcome) in [
        ("checked", "check_failed"),
        ("missed", "capture_missed"),
        ("broken", "bad_json"),
        ("unset", "template_failed"),
        ("wanted", "ok"),
        ("status", "http_status"),
        ("fine", "ok"),
        ("late", "check_failed"),
        ("again", "ok"),
    ] {
        let n = own(operation, outcome);
        assert!((9..=11).contains(&n), "{operation} {outcome}: {n} of {:?}", counts(&played));
    }
    assert_eq!(own("dry", "ok"), 5);
    assert!(own("dry", "feeder_dry") >= 4);
    // What could not be filled in was not sent.
    assert!(shop.of("/item/").iter().all(|got| !got.path.contains('$')));
    assert_eq!(shop.of("/item/").iter().filter(|got| !got.path.contains("t=")).count(), 5);
}

#[test]
fn the_run_goes_on_or_stops_as_was_said() {
    let (port, shop) = shop(Duration::ZERO);
    let played = run(
        port,
        "
load: {rate: 50, duration: 20s}
steps:
  - {name: first, get: /a}
  - {name: wrong, get: /text, check: json /a == 1, on_failure: stop}
",
    );
    assert!(count(&played, "wrong", "bad_json") >= 1, "{:?}", counts(&played));
    // Of a thousand.
    assert!(played.offered() < 500 && shop.of("/a").len() < 500, "{:?}", counts(&played));
}

#[test]
fn retries_conditions_loops_and_lists() {
    let (port, shop) = shop(Duration::ZERO);
    let played = run(
        port,
        "
load: {users: 1, iterations: 1}
steps:
  - post: /auth
    name: auth
    body: x
    capture: {items: {json: /list/*, pick: all}, kind: 'regex X-Kind', none: {json: /none, default: nothing}}
    on_failure: go_on
",
    );
    // A regular expression looks at the body, which has no such header.
    assert_eq!(count(&played, "auth", "capture_missed"), 1, "{:?}", counts(&played));
    let played = run(
        port,
        "
load: {users: 1, iterations: 1}
define:
  enter:
    - {name: auth, post: /auth, capture: {items: {json: '/list/*', pick: all}, n: {json: '/list/*', pick: count}}}
steps:
  - call: enter
  - for_each: items
    as: item
    steps: [{name: each, get: '/each/${item}'}]
  - repeat: ${n}
    as: i
    steps: [{name: round, get: '/round/${i}'}]
  - if: ${n} == 3 and not (i == 7)
    steps: [{name: yes, get: /yes}]
    else: [{name: no, get: /no}]
  - retry: 5
    steps: [{name: flaky, get: /flaky}]
  - set: {k: '${add(n, 1)}'}
  - while: ${k} < 7
    steps:
      - {name: while, get: '/while/${k}'}
      - set: {k: '${add(k, 1)}'}
  - group: checkout
    steps: [{get: /pay}]
  - choose: [{weight: 1, steps: [{name: chosen, get: /chosen}]}]
  - in_turn: [{steps: [{name: turn, get: /turn}]}]
  - end: session
  - {name: never, get: /never}
",
    );
    let paths = |prefix: &str| shop.of(prefix).iter().map(|g| g.path.clone()).collect::<Vec<_>>();
    assert_eq!(paths("/each"), ["/each/3", "/each/1", "/each/2"]);
    assert_eq!(paths("/round"), ["/round/0", "/round/1", "/round/2"]);
    assert_eq!(paths("/while"), ["/while/4", "/while/5", "/while/6"]);
    assert_eq!((paths("/yes").len(), paths("/no").len(), paths("/never").len()), (1, 0, 0));
    let tries = paths("/flaky").len();
    assert!((1..=3).contains(&tries), "{tries}");
    assert_eq!((count(&played, "flaky", "ok"), count(&played, "flaky", "http_status")), (1, tries as u64 - 1));
    assert_eq!(count(&played, "checkout/pay", "ok"), 1, "{:?}", counts(&played));
    assert_eq!((count(&played, "chosen", "ok"), count(&played, "turn", "ok")), (1, 1));
}

#[test]
fn cookies_belong_to_the_session_and_follow_redirects() {
    let (port, shop) = shop(Duration::ZERO);
    let played = run(
        port,
        "
load: {rate: 40, duration: 1s, of: sessions, connections: 2}
steps:
  - {name: before, get: /home, check: status == 403}
  - {name: login, post: /cookie, form: {user: 'a b', q: 'x&y=ü'}}
  - {name: home, get: /home, check: json /in == true}
",
    );
    for name in ["before", "login", "home"] {
        assert_eq!(count(&played, name, "ok"), 40, "{name}: {:?}", counts(&played));
    }
    assert_eq!(shop.of("/cookie")[0].body, "user=a+b&q=x%26y%3D%C3%BC");
}

#[test]
fn think_time_makes_as_many_sessions_as_the_rate_needs() {
    let (port, shop) = shop(Duration::ZERO);
    let played = run(
        port,
        "
load: {rate: 100, duration: 2s}
steps:
  - {name: auth, post: /auth, capture: {token: json /access_token}}
  - repeat: 1000
    steps:
      - think: 300ms
      - {name: order, get: /orders/1, headers: {Authorization: 'Bearer ${token}'}}
",
    );
    // 100 a second, and each comes back after 300 ms: about 30 sessions, and more of them if it stalls.
    let auths = count(&played, "auth", "ok");
    assert!((25..150).contains(&auths), "{:?}", counts(&played));
    assert_eq!(auths + count(&played, "order", "ok"), 200);
    assert_eq!(shop.of("/").len(), 200);
}

#[test]
fn a_set_up_goes_first_and_its_values_are_every_sessions() {
    let (port, shop) = shop(Duration::ZERO);
    let scenario = read(
        port,
        "
load: {rate: 50, duration: 1s}
setup:
  - {name: seed, post: /auth, capture: {token: json /access_token}}
steps:
  - {name: order, get: /orders/1, headers: {Authorization: 'Bearer ${token}'}}
teardown:
  - {name: tidy, delete: '/tidy/${token}'}
",
    );
    let sessions = scenario.sessions.clone().unwrap();
    let stop = AtomicBool::new(false);
    let engine = Engine::prepare(&scenario).unwrap();
    let values = engine.once(sessions.setup.unwrap(), &stop).unwrap();
    sessions.script.initial.set(values).unwrap();
    let played = play(&scenario, None);
    assert_eq!(count(&played, "order", "ok"), 50, "{:?}", counts(&played));
    engine.once(sessions.teardown.unwrap(), &stop).unwrap();
    let tidied: Vec<String> = shop.of("/tidy/t0").into_iter().map(|got| got.method).collect();
    assert_eq!((shop.of("/auth").len(), tidied), (1, vec!["DELETE".to_owned()]));
    // What goes before and after is in no figure.
    assert_eq!(played.summary.operations.len(), 1);
}

#[test]
fn a_set_up_that_fails_says_which_step() {
    let (port, _) = shop(Duration::ZERO);
    let scenario = read(
        port,
        "
load: {rate: 50, duration: 1s}
setup: [{name: seed, post: /auth, body: wrong, capture: {token: json /access_token}}]
steps: [{name: order, get: /orders/1}]
",
    );
    let engine = Engine::prepare(&scenario).unwrap();
    let sessions = scenario.sessions.clone().unwrap();
    let error = engine.once(sessions.setup.unwrap(), &AtomicBool::new(false)).unwrap_err().to_string();
    assert_eq!(error, "seed failed: http_status");
}

#[test]
fn captured_text_can_not_break_out_of_a_request() {
    let port = server(|mut stream| {
        while let Some(got) = with_body(&mut stream) {
            let answer = match got.path.as_str() {
                "/evil" => response(
                    "200 OK",
                    "",
                    "{\"x\":\"a\\r\\nEvil: 1\\r\\n\\r\\nGET /smuggled HTTP/1.1\",\"p\":\"a b/../c?d\"}",
                ),
                "/smuggled" => panic!("a request was smuggled"),
                _ => response("200 OK", "", if got.header("evil").is_some() { "bad" } else { "good" }),
            };
            if stream.write_all(&answer).is_err() {
                return;
            }
        }
    });
    let played = run(
        port,
        "
load: {users: 1, iterations: 3}
steps:
  - {name: evil, get: /evil, capture: {x: json /x, p: json /p}}
  - {name: path, get: '/p/${x}', check: 'body contains \"good\"'}
  - {name: odd, get: '/p/${p}', check: 'body contains \"good\"'}
  - {name: header, get: /h, headers: {X: '${x}'}, on_failure: go_on}
  - {name: body, post: /b, body: '${x}', check: 'body contains \"good\"'}
",
    );
    for name in ["evil", "path", "odd", "body"] {
        assert_eq!(count(&played, name, "ok"), 3, "{name}: {:?}", counts(&played));
    }
    assert_eq!(count(&played, "header", "template_failed"), 3);
}

#[test]
fn a_session_that_thinks_first_asks_when_it_has_thought() {
    let (port, _) = shop(Duration::ZERO);
    // Two connections, so that what has not thought yet must take none.
    let played = run(
        port,
        "
load: {rate: 40, duration: 500ms, of: sessions, connections: 2}
steps:
  - think: 1200ms
  - {name: a, get: /a}
",
    );
    assert_eq!((count(&played, "a", "ok"), played.offered()), (20, 20), "{:?}", counts(&played));
    // The first is due 1.2 s after the start.
    let first = played.rows.iter().map(|row| row.intended_at).min().unwrap() - played.summary.started_at;
    assert!(first >= 1_200_000_000, "due {first} ns after the start");
    assert_eq!(played.seconds[0].waiting, 0, "nothing is due in the first second");
}

#[test]
fn a_session_that_ends_without_a_request_makes_none() {
    let (port, shop) = shop(Duration::ZERO);
    let played = run(
        port,
        "
load: {rate: 40, duration: 1s, of: sessions, connections: 2}
feeders: {turns: {list: [1, 0]}}
steps:
  - feed: turns
  - if: ${turns.value} == 1
    steps: [{name: a, get: /a}]
",
    );
    assert_eq!(
        (count(&played, "a", "ok"), played.offered(), shop.of("/a").len()),
        (20, 20, 20),
        "{:?}",
        counts(&played)
    );
}

#[test]
fn users_think_between_sessions_however_one_ended() {
    const THINK_NS: i64 = 300_000_000;
    let (port, _) = shop(Duration::ZERO);
    for steps in [
        "[{name: end, get: /a}]",
        "[{name: end, get: /gone, on_failure: end_session}]",
        "[{name: before, get: /a}, {name: end, get: /gone, on_failure: end_session}]",
        // It can't be filled in.
        "[{name: before, get: /a},
          {if: '1 == 2', steps: [{name: never, get: /a, capture: {x: json /a}}]},
          {name: end, get: '/item/${x}', on_failure: end_session}]",
    ] {
        let played = run(port, &format!("load: {{users: 1, iterations: 3, think: 300ms}}\nsteps: {steps}\n"));
        let mut rows: Vec<_> = played.rows.iter().collect();
        rows.sort_by_key(|row| row.intended_at);
        let first_of_each =
            |row: &&&holdup_recording::rows::Request| !steps.contains("before") || row.operation == "before";
        let begun: Vec<i64> = rows.iter().filter(first_of_each).map(|row| row.intended_at).collect();
        let ended: Vec<i64> = rows.iter().filter(|row| row.operation == "end").map(|row| row.done_at).collect();
        assert_eq!((begun.len(), ended.len()), (3, 3), "{steps}: {rows:?}");
        for (ended, begun) in ended.iter().zip(&begun[1..]) {
            assert!(begun - ended >= THINK_NS, "{steps}: {} ns between two sessions", begun - ended);
        }
    }
}
