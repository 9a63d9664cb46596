//! What can go wrong with TLS and with agreeing on a version of HTTP; and how it is said before anything is sent.

use std::io::Read as _;

use holdup_load::Engine;

use crate::play::{Played, keep_going, play, scenario};
use crate::servers::http1::{self, OK};
use crate::servers::tls::{authority_server, tls_server, trusting};
use crate::servers::{closed_port, server};

fn run(port: u16, more: &str) -> Played {
    let target = format!("https://127.0.0.1:{port}");
    let load = "rate: 200, duration: 100ms, connections: 10";
    play(&keep_going(scenario(&target, load, more)), None)
}

/// What is said to someone who has not asked to go on.
fn refusal(target: &str, more: &str) -> String {
    let scenario = scenario(target, "rate: 200, duration: 100ms", more);
    Engine::prepare(&scenario).err().expect("it refuses").to_string()
}

fn of_port(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}

#[test]
fn a_certificate_that_is_trusted_or_need_not_be() {
    let port = tls_server(&["http/1.1"], |s| http1::answer(s, OK, || ()));
    run(port, &trusting("")).all("ok");
    run(port, "http: {tls: {insecure: true}}").all("ok");
    // A server that knows nothing of ALPN speaks HTTP/1.1.
    run(tls_server(&[], |s| http1::answer(s, OK, || ())), &trusting("")).all("ok");
}

#[test]
fn a_certificate_that_does_not_verify() {
    let port = tls_server(&[], |s| http1::answer(s, OK, || ()));
    run(port, "").all("tls_certificate");
    let said = refusal(&of_port(port), "");
    for way_out in ["certificate", "--tls-ca", "--insecure", "--keep-going"] {
        assert!(said.contains(way_out), "{said}");
    }
}

#[test]
fn an_authority_that_signed_itself_is_trusted_only_if_it_is_named() {
    let (port, named, _dir) = authority_server(|s| http1::answer(s, OK, || ()));
    run(port, &named).all("ok");
    // Another authority than the one that was named.
    run(port, &trusting("")).all("tls_certificate");
    assert!(refusal(&of_port(port), "").contains("does not verify"));
}

#[test]
fn a_certificate_of_another_name() {
    let port = tls_server(&[], |s| http1::answer(s, OK, || ()));
    let other = format!("https://127.0.0.2:{port}");
    // Loopback is all of 127/8, but the server listens on one address only: the name is what counts here.
    let said = refusal(&other, &trusting(""));
    assert!(said.contains("does not accept connections"), "{said}");
    let port = {
        // The same certificate, reached by an address it is not for.
        let listener = std::net::TcpListener::bind("127.0.0.2:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut inner in listener.incoming().map_while(Result::ok) {
                let mut outer = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
                std::thread::spawn(move || {
                    let (mut inner2, mut outer2) = (inner.try_clone().unwrap(), outer.try_clone().unwrap());
                    std::thread::spawn(move || std::io::copy(&mut inner2, &mut outer2));
                    std::io::copy(&mut outer, &mut inner)
                });
            }
        });
        own
    };
    let target = format!("https://127.0.0.2:{port}");
    assert!(refusal(&target, &trusting("")).contains("certificate"));
    let scenario = scenario(&target, "rate: 200, duration: 100ms", &trusting(""));
    play(&keep_going(scenario), None).all("tls_certificate");
}

#[test]
fn a_server_without_tls() {
    let plain = server(|s| http1::answer(s, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", || ()));
    run(plain, &trusting("")).all("tls_failed");
    let said = refusal(&of_port(plain), &trusting(""));
    assert!(said.contains("TLS") && said.contains("http://"), "{said}");
}

#[test]
fn a_handshake_that_is_cut() {
    let port = server(|mut stream| {
        // Enough of it that closing is no reset.
        let _ = stream.read(&mut [0; 16 * 1024]);
    });
    run(port, &trusting("")).all("tls_failed");
}

#[test]
fn http2_refused_by_a_server_that_only_speaks_http1() {
    // One that says no by an alert, and one that does not know ALPN and goes on in HTTP/1.1.
    for protocols in [&["http/1.1"][..], &[]] {
        let port = tls_server(protocols, |s| http1::answer(s, OK, || ()));
        run(port, &trusting("version: 2")).all("http2_refused");
        let said = refusal(&of_port(port), &trusting("version: 2"));
        assert!(said.contains("HTTP/2") && said.contains("--http 1.1"), "{said}");
    }
}

#[test]
fn http1_refused_by_a_server_that_only_speaks_http2() {
    let port = tls_server(&["h2"], |s| http1::answer(s, OK, || ()));
    run(port, &trusting("")).all("tls_failed");
    let said = refusal(&of_port(port), &trusting(""));
    assert!(said.contains("HTTP/1.1") && said.contains("version: 2"), "{said}");
}

#[test]
fn errors_of_names_and_ports_give_the_reason() {
    let said = refusal("http://holdup.invalid", "");
    assert!(said.contains("does not resolve") && said.contains("--keep-going"), "{said}");
    let port = closed_port();
    let said = refusal(&format!("http://127.0.0.1:{port}"), "");
    assert!(said.contains("does not accept connections") && said.contains("port"), "{said}");
}
