//! A server whose accept queue overflows, over real sockets.

use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::service::running::Running;
use crate::service::service_tests::{Client, options};

#[test]
fn each_connection_is_answered_once_and_takes_a_worker() {
    let server = Running::start(&options(&["--blocking-workers", "2", "--service-time", "50ms"])).expect("it starts");
    let begun = Instant::now();
    let mut clients: Vec<_> = (0..5).map(|_| Client::connect(server.listen())).collect();
    for client in &mut clients {
        client.send(b"GET / HTTP/1.1\r\n\r\n");
    }
    for client in &mut clients {
        assert_eq!(client.response(), (200, "{}".to_owned()));
        assert!(client.is_closed());
    }
    assert!(begun.elapsed() >= Duration::from_millis(150), "two, two and one");
    let mut client = Client::connect(server.listen());
    client.send(b"nonsense\r\n\r\n");
    assert_eq!(client.response().0, 400);
    server.stop();
}

/// Times that the kernel of this network found an accept queue full.
fn overflows() -> u64 {
    let text = std::fs::read_to_string("/proc/net/netstat").expect("Linux");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt: "));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let at = names.split(' ').position(|name| name == "ListenOverflows").expect("it is counted");
    values.split(' ').nth(at).and_then(|value| value.parse().ok()).expect("a number")
}

#[test]
fn the_accept_queue_overflows() {
    // Nothing is answered before the test ends.
    let arguments = ["--blocking-workers", "1", "--service-time", "10m", "--backlog", "3"];
    let server = Running::start(&options(&arguments)).expect("it starts");
    let listen: SocketAddr = server.listen();
    let before = overflows();
    // One worker, and a queue of three and one more: of so many the others are not even let in.
    let attempts: Vec<_> = (0..30)
        .map(|_| thread::spawn(move || TcpStream::connect_timeout(&listen, Duration::from_millis(700))))
        .collect();
    let results: Vec<_> = attempts.into_iter().map(|attempt| attempt.join().expect("no panic")).collect();
    let connected = results.iter().filter(|result| result.is_ok()).count();
    assert!((1..=6).contains(&connected), "{connected} connected");
    let refused = results.iter().filter_map(|result| result.as_ref().err());
    assert!(refused.clone().count() > 0);
    for error in refused {
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "nobody says no");
    }
    assert!(overflows() > before, "the kernel counts them");
}
