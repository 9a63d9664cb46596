//! The queue over real sockets. A busy machine makes things late, never early: what is checked is "at least", order,
//! and counts; and a rate once, beside a witness, with slack and tries.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use holdup_witness::{ON_THE_WHOLE, Patience};

use crate::service::running::Running;
use crate::service::service_tests::{Client, options};

fn start(arguments: &[&str]) -> Running {
    Running::start(&options(arguments)).expect("it starts")
}

/// Sends `count` requests at once, a connection each.
fn ask(listen: SocketAddr, count: usize) -> Vec<Client> {
    let mut clients: Vec<_> = (0..count).map(|_| Client::connect(listen)).collect();
    for client in &mut clients {
        client.send(b"GET / HTTP/1.1\r\n\r\n");
    }
    clients
}

/// Waits until so many of them have an answer.
fn answered(clients: &[Client], count: usize) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while clients.iter().filter(|client| client.has_answer()).count() < count {
        assert!(Instant::now() < deadline, "less than {count} answers");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn so_many_servers_take_so_long() {
    let queue = start(&["--servers", "3", "--service-time", "50ms"]);
    for round in 1..=2 {
        let begun = Instant::now();
        let mut clients = ask(queue.listen(), 7);
        for client in &mut clients {
            assert_eq!(client.response(), (200, "{}".to_owned()));
        }
        // Three, three and one: in no less time than three after each other, whatever the machine does.
        assert!(begun.elapsed() >= Duration::from_millis(150), "{:?} in round {round}", begun.elapsed());
        // The connections live on, and pipelined requests are taken one by one.
        let client = &mut clients[0];
        let begun = Instant::now();
        client.send(b"POST /x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcHEAD / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n");
        assert_eq!([client.response().0, client.response().0, client.response().0], [200; 3]);
        assert!(begun.elapsed() >= Duration::from_millis(150));
    }
    queue.stop();
}

/// Several clients that ask again at once keep it busy: what it answers a second is servers over time.
#[test]
fn its_rate_is_its_capacity() {
    let often = Patience { limits: ON_THE_WHOLE, misses: 5, attempts: 12, within: Duration::from_secs(30) };
    often.judge(|_| {
        let queue = start(&["--servers", "2", "--service-time", "2ms"]);
        let listen = queue.listen();
        let begun = Instant::now();
        let clients: Vec<_> = (0..40)
            .map(|_| {
                thread::spawn(move || {
                    let mut client = Client::connect(listen);
                    (0..20).for_each(|_| assert_eq!(client.get("/").0, 200));
                })
            })
            .collect();
        for client in clients {
            client.join().expect("all answered");
        }
        let rate = 800.0 / begun.elapsed().as_secs_f64();
        queue.stop();
        assert!(rate < 1_010.0, "{rate} a second is more than two servers can");
        if rate > 900.0 { Ok(()) } else { Err(format!("a capacity of 1,000 a second, and no more than {rate}")) }
    });
}

#[test]
fn without_room_a_request_is_refused_at_once() {
    // Nothing is served before the test ends: one is with the server, two have room.
    let queue = start(&["--servers", "1", "--service-time", "10m", "--room", "2"]);
    let mut clients = ask(queue.listen(), 6);
    answered(&clients, 3);
    let refused: Vec<u16> =
        clients.iter_mut().filter(|client| client.has_answer()).filter_map(Client::answer).collect();
    assert_eq!(refused, [503; 3]);
    // What is served makes room again.
    let queue = start(&["--servers", "1", "--service-time", "20ms", "--room", "2"]);
    for _ in 0..2 {
        ask(queue.listen(), 3).iter_mut().for_each(|client| assert_eq!(client.response().0, 200));
    }
}

#[test]
fn a_request_too_many_may_be_closed_or_dropped() {
    let queue = |how| start(&["--servers", "1", "--service-time", "1s", "--room", "0", "--overflow", how]);
    let closing = queue("close");
    let mut clients = ask(closing.listen(), 4);
    assert_eq!(clients.iter_mut().filter_map(Client::answer).count(), 1, "the others are closed");
    let dropping = queue("drop");
    let clients = ask(dropping.listen(), 4);
    answered(&clients, 1);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(clients.iter().filter(|client| client.has_answer()).count(), 1);
    // Those that were dropped can go, and a new one is served.
    drop(clients);
    assert_eq!(Client::connect(dropping.listen()).get("/").0, 200);
}

#[test]
fn invalid_requests_are_refused_and_clients_may_leave() {
    let queue = start(&["--servers", "1", "--service-time", "50ms", "--max-connections", "2"]);
    let mut client = Client::connect(queue.listen());
    client.send(b"nonsense\r\n\r\n");
    assert_eq!(client.response().0, 400);
    assert!(client.is_closed());
    let mut client = Client::connect(queue.listen());
    client.send(format!("GET / HTTP/1.1\r\nA: {}\r\n", "x".repeat(9_000)).as_bytes());
    assert_eq!(client.response().0, 431);
    let mut client = Client::connect(queue.listen());
    client.send(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(client.response().0, 200);
    assert!(client.is_closed());
    // One that goes while it is served is answered by nobody, and its successor in the same place only once.
    for _ in 0..5 {
        drop(ask(queue.listen(), 1));
    }
    let mut client = Client::connect(queue.listen());
    assert_eq!(client.get("/").0, 200);
    thread::sleep(Duration::from_millis(100));
    assert!(!client.has_answer());
    // Only two connections are accepted at once: a third waits in the kernel.
    let mut third = [Client::connect(queue.listen()), Client::connect(queue.listen())];
    third[1].send(b"GET / HTTP/1.1\r\n\r\n");
    thread::sleep(Duration::from_millis(200));
    assert!(!third[1].has_answer());
    drop(client);
    assert_eq!(third[1].response().0, 200);
}

#[test]
fn two_thousand_connections() {
    crate::service::process::raise_file_limit();
    let queue = start(&["--servers", "1000", "--service-time", "1ms", "--max-connections", "5000"]);
    let mut clients: Vec<_> = (0..2_000).map(|_| Client::connect(queue.listen())).collect();
    for _ in 0..2 {
        for client in &mut clients {
            client.send(b"GET / HTTP/1.1\r\n\r\n");
        }
        for client in &mut clients {
            assert_eq!(client.response().0, 200);
        }
    }
}

#[test]
fn it_slows_down_as_the_law_says() {
    // Ten in the service at once: each takes 1 + 0.5 * 9 + 0.1 * 90 = 14.5 times as long as one alone.
    let queue = start(&["--servers", "10", "--service-time", "4ms", "--contention", "0.5", "--coherency", "0.1"]);
    let begun = Instant::now();
    let listen = queue.listen();
    let clients: Vec<_> = (0..10)
        .map(|_| {
            thread::spawn(move || {
                let mut client = Client::connect(listen);
                (0..10).for_each(|_| assert_eq!(client.get("/").0, 200));
            })
        })
        .collect();
    for client in clients {
        client.join().expect("all answered");
    }
    // A hundred requests alone would take 400 ms, and 40 ms with ten servers that don't disturb each other.
    assert!(begun.elapsed() > Duration::from_millis(250), "{:?}", begun.elapsed());
}

#[test]
fn options_that_contradict_each_other() {
    for bad in [
        &["--servers", "2"][..],
        &["--servers", "0", "--service-time", "1ms"],
        &["--servers", "2", "--blocking-workers", "2", "--service-time", "1ms"],
        &["--servers", "2", "--service-time", "1ms", "--contention", "2"],
        &["--servers", "2", "--service-time", "1ms", "--admin", "127.0.0.1:0"],
        &["--servers", "2", "--service-time", "1ms", "--orders"],
        &["--servers", "2", "--service-time", "1ms", "--backlog", "1"],
        &["--blocking-workers", "2", "--service-time", "1ms", "--room", "1"],
        &["--room", "2"],
        &["--overflow", "close"],
        &["--contention", "0.1"],
        &["--backlog", "1"],
        &["--servers", "2", "--service-time", "1"],
        &["--servers", "2", "--service-time", "1ms", "--overflow", "explode"],
    ] {
        assert!(crate::service::service_tests::try_options(bad).is_err(), "{bad:?}");
    }
    assert!(Running::start(&options(&["--service-time", "1ms"])).is_err());
}
