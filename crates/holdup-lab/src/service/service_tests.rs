//! The whole service over real sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;

use crate::service::server::Server;
use crate::service::{Options, ServiceError};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

pub fn try_options(arguments: &[&str]) -> Result<Options, clap::Error> {
    Line::try_parse_from([&["service"], arguments].concat()).map(|line| line.options)
}

pub fn options(arguments: &[&str]) -> Options {
    try_options(arguments).expect("good options")
}

pub fn start(arguments: &[&str]) -> Server {
    Server::start(&options(&[&["--admin", "127.0.0.1:0"], arguments].concat())).expect("it starts")
}

pub struct Client(TcpStream);

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
        Self(stream)
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("it reads");
    }

    pub fn get(&mut self, path: &str) -> (u16, String) {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        self.response()
    }

    /// Asks with header fields, each with its line end, and a body.
    pub fn ask(&mut self, method: &str, path: &str, fields: &str, body: &str) -> (u16, String) {
        let (head, body) = self.ask_whole(method, path, fields, body);
        (head[9..12].parse().expect("a status"), body)
    }

    /// The same, and the head of the answer as it is.
    pub fn ask_whole(&mut self, method: &str, path: &str, fields: &str, body: &str) -> (String, String) {
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{fields}Content-Length: {length}\r\n\r\n");
        self.send((head + body).as_bytes());
        self.whole_response()
    }

    /// Reads exactly one response, so that what follows on the connection stays unread.
    pub fn response(&mut self) -> (u16, String) {
        let (head, body) = self.whole_response();
        (head[9..12].parse().expect("a status"), body)
    }

    /// The next response, unless the connection ends.
    pub fn answer(&mut self) -> Option<u16> {
        if self.0.peek(&mut [0]).is_ok_and(|count| count > 0) { Some(self.response().0) } else { None }
    }

    /// Whether something has come that was not read.
    pub fn has_answer(&self) -> bool {
        self.0.set_nonblocking(true).expect("set");
        let has = self.0.peek(&mut [0]).is_ok_and(|count| count > 0);
        self.0.set_nonblocking(false).expect("set");
        has
    }

    fn whole_response(&mut self) -> (String, String) {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            self.0.read_exact(&mut byte).expect("a whole head");
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).expect("text");
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
        let mut body = vec![0; length.parse().expect("a number")];
        self.0.read_exact(&mut body).expect("a whole body");
        (head, String::from_utf8(body).expect("text"))
    }

    pub fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0))
    }
}

/// The value of the metric line that begins with `name`.
pub fn metric(server: &Server, name: &str) -> f64 {
    let (status, text) = Client::connect(server.admin.expect("an admin side")).get("/metrics");
    assert_eq!(status, 200);
    let line = text.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in\n{text}"));
    line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
}

fn sqlite(folder: &tempfile::TempDir) -> String {
    format!("sqlite:{}", folder.path().join("vacancy.sqlite").display())
}

#[test]
fn a_small_pool_that_is_held_too_long_queues() {
    const CLIENTS: u32 = 8;
    const REQUESTS: u32 = 10;
    let folder = tempfile::tempdir().expect("a folder");
    let server = start(&["--database", &sqlite(&folder), "--rows", "500", "--pool", "2", "--hold-ms", "50"]);
    let begun = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut client = Client::connect(server.listen);
            thread::spawn(move || (0..REQUESTS).for_each(|_| assert_eq!(client.get("/vacancy").0, 200)))
        })
        .collect();
    // A client may be between two requests at one look, but most of them are not at every one.
    let used =
        "db_client_connection_count{db_client_connection_pool_name=\"main\",db_client_connection_state=\"used\"}";
    let mut most = [0.0_f64; 3];
    while clients.iter().any(|client| !client.is_finished()) {
        for (most, name) in
            most.iter_mut().zip(["db_client_connection_pending_requests", used, "http_server_active_requests"])
        {
            *most = most.max(metric(&server, name));
        }
        thread::sleep(Duration::from_millis(20));
    }
    let [pending, used, active] = most;
    assert!((3.0..=6.0).contains(&pending), "{pending} pending");
    assert!(used == 2.0 && (5.0..=8.0).contains(&active), "{used} used, {active} active");
    for client in clients {
        client.join().expect("all answered");
    }
    let elapsed = begun.elapsed().as_secs_f64();

    let sum = |name: &str| metric(&server, &format!("{name}_sum"));
    let requests = f64::from(CLIENTS * REQUESTS);
    assert_eq!(metric(&server, "db_client_connection_use_time_seconds_count"), requests);
    // Little's law at the pool: connections in use, and requests waiting, on average over the run.
    let used = sum("db_client_connection_use_time_seconds") / elapsed;
    let waiting = sum("db_client_connection_wait_time_seconds") / elapsed;
    assert!((1.0..=2.01).contains(&used), "{used} in use");
    assert!((2.0..=6.05).contains(&waiting), "{waiting} waiting");
    // The request is the wait, the use, and little else.
    let parts = sum("db_client_connection_wait_time_seconds") + sum("db_client_connection_use_time_seconds");
    let whole = sum("http_server_request_duration_seconds");
    assert!(whole >= parts && whole < 2.0 * parts, "request {whole} s, parts {parts} s");
    let downstream = sum("http_client_request_duration_seconds");
    let held = sum("db_client_connection_use_time_seconds");
    assert!(downstream / requests >= 0.05 && downstream <= held, "{downstream} s in all, of {held} s");
    server.stop();
}

#[test]
fn rows_come_by_bound_id_and_connections_live_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let route = "/vacancy=SELECT id, title FROM vacancy WHERE id = {id}";
    let server =
        start(&["--database", &sqlite(&folder), "--rows", "50", "--route", route, "--route", "/bad=SELECT nonsense"]);
    let mut client = Client::connect(server.listen);
    let (status, body) = client.get("/vacancy?id=7");
    assert_eq!(status, 200);
    assert!(body.contains("\"id\":7") && body.contains("\"title\":"), "{body}");
    assert_eq!(client.get("/vacancy?id=7").1, body);
    assert!(client.get("/vacancy?id=51").1.contains("\"rows\":[]"));
    assert_eq!(client.get("/vacancy?id=7%20or%201").0, 400);
    assert_eq!(client.get("/nowhere").0, 404);
    assert_eq!(client.get("/bad").0, 500);
    // Two at once on one connection are answered in order.
    client.send(b"GET /vacancy?id=1 HTTP/1.1\r\n\r\nGET /vacancy?id=2 HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert!(client.response().1.contains("\"id\":1"));
    assert!(client.response().1.contains("\"id\":2"));
    assert!(client.is_closed());
    let (status, text) = Client::connect(server.admin.expect("an admin side")).get("/metrics");
    assert_eq!(status, 200);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let family = name.split('{').next().expect("a name");
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| family.strip_suffix(end)).unwrap_or(family);
        assert!(
            text.contains(&format!("# TYPE {family} ")) || text.contains(&format!("# TYPE {family}_count ")),
            "{line}"
        );
    }
}

#[test]
fn invalid_requests_are_refused() {
    let server = start(&["--database", "none"]);
    for (sent, status) in [
        ("nonsense\r\n\r\n".to_owned(), 400),
        ("GET /vacancy HTTP/1.1\r\nContent-Length: ten\r\n\r\n".to_owned(), 400),
        (format!("GET /vacancy HTTP/1.1\r\nLong: {}\r\n\r\n", "x".repeat(20_000)), 431),
        (format!("GET /vacancy HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(100)), 431),
        ("POST /vacancy HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(), 501),
    ] {
        let mut client = Client::connect(server.listen);
        client.send(sent.as_bytes());
        assert_eq!(client.response().0, status, "{sent:.60}");
        assert!(client.is_closed());
    }
    let mut client = Client::connect(server.listen);
    client.send(b"POST /vacancy HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
    assert_eq!(client.response().0, 405);
    client.send(b"HEAD /vacancy HTTP/1.1\r\n\r\n");
    assert_eq!(client.response().0, 405);
    assert_eq!(client.get("/vacancy").0, 200);
}

#[test]
fn the_pool_gives_up_in_time_and_the_admin_side_answers_meanwhile() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = sqlite(&folder);
    let server = start(&[
        "--database",
        &database,
        "--rows",
        "10",
        "--pool",
        "1",
        "--hold-ms",
        "2000",
        "--pool-timeout",
        "100ms",
    ]);
    let mut clients: Vec<_> = (0..3).map(|_| Client::connect(server.listen)).collect();
    for client in &mut clients {
        client.send(b"GET /vacancy HTTP/1.1\r\n\r\n");
    }
    assert_eq!(Client::connect(server.admin.expect("an admin side")).get("/health"), (200, "ok\n".to_owned()));
    assert!(clients.iter().any(|client| !client.has_answer()), "health waited for a handler");
    let mut statuses: Vec<u16> = clients.iter_mut().map(|client| client.response().0).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 503, 503]);
    assert_eq!(metric(&server, "db_client_connection_timeouts_total"), 2.0);
}

#[test]
fn beyond_the_limit_connections_wait_unaccepted() {
    let server = start(&["--max-connections", "1"]);
    let mut first = Client::connect(server.listen);
    assert_eq!(first.get("/vacancy").0, 200);
    let mut second = Client::connect(server.listen);
    second.send(b"GET /vacancy HTTP/1.1\r\n\r\n");
    second.0.set_read_timeout(Some(Duration::from_millis(150))).expect("a timeout");
    assert!(second.0.read(&mut [0]).is_err(), "answered beyond the limit");
    drop(first);
    second.0.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
    assert_eq!(second.response().0, 200);
}

#[test]
fn wrong_addresses_are_refused() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    assert!(matches!(Server::start(&options(&["--listen", &address])), Err(ServiceError::Listen { .. })));
    assert!(matches!(Server::start(&options(&["--listen", "0.0.0.0:0"])), Err(ServiceError::BadOption { .. })));
    let missing = options(&["--database", "sqlite:/nowhere/at/all.sqlite"]);
    assert!(matches!(Server::start(&missing), Err(ServiceError::Database { .. })));
}
