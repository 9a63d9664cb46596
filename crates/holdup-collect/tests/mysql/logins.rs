//! Ways to log in: the methods of accounts, and servers that never finish the login.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use holdup_collect::ProbeError;
use holdup_collect::watch::{Options, collector};

use crate::server::mariadb;

/// The password of the accounts here: it must not come out.
const PASSWORD: &str = "login-canary";

fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    [&length[..3], &[number], body].concat()
}

/// The first packet of a server whose accounts log in with `caching_sha2_password`.
fn greeting(offers_tls: bool) -> Vec<u8> {
    let capabilities: u32 = if offers_tls { 0x0008_aa00 } else { 0x0008_a200 };
    let capabilities = capabilities.to_le_bytes();
    let body = [
        b"\x0a8.4.2\0\x07\0\0\0".as_slice(),
        b"12345678\0",
        &capabilities[..2],
        &[45, 2, 0],
        &capabilities[2..],
        &[21],
        &[0; 10],
        b"abcdefghijkl\0",
        b"caching_sha2_password\0",
    ];
    packet(0, &body.concat())
}

fn read_packet(stream: &mut TcpStream) -> Vec<u8> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).unwrap();
    let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    stream.read_exact(&mut body).unwrap();
    body
}

/// What the collector says of a server that `serve` plays, and all that the server got from it.
fn refusal(query: &str, serve: impl FnOnce(&mut TcpStream) + Send) -> (ProbeError, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("mysql://watcher:{PASSWORD}@{}{query}", listener.local_addr().unwrap());
    let mut watcher = collector(&address, &Options::default()).unwrap();
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            serve(&mut stream);
            let mut rest = Vec::new();
            // The collector hangs up, or breaks off.
            let _ = stream.read_to_end(&mut rest);
            rest
        });
        let error = watcher.probe().expect_err("it is not a whole server");
        drop(watcher);
        (error, server.join().unwrap())
    })
}

#[test]
fn a_password_is_not_sent_without_tls_and_the_error_names_the_way_out() {
    let (error, rest) = refusal("", |stream| {
        stream.write_all(&greeting(true)).unwrap();
        let proof = read_packet(stream);
        assert!(!String::from_utf8_lossy(&proof).contains(PASSWORD));
        // The account is not cached: the password itself, please.
        stream.write_all(&packet(2, &[1, 4])).unwrap();
    });
    let words = error.to_string();
    assert!(matches!(error, ProbeError::Denied { .. }), "{words}");
    assert!(words.contains("caching_sha2_password") && words.contains("tls_ca=PATH"), "{words}");
    assert!(!words.contains("canary") && rest.is_empty(), "{words}: {rest:?}");
}

#[test]
fn the_account_does_not_leave_before_tls_where_tls_is_wanted() {
    let (error, _) = refusal("?tls=require", |stream| {
        stream.write_all(&greeting(false)).unwrap();
        assert_eq!(stream.read(&mut [0; 64]).unwrap(), 0, "nothing is sent to a server without TLS");
    });
    assert!(error.to_string().contains("the server offers no TLS"), "{error}");
    let (_, rest) = refusal("?tls=require", |stream| {
        stream.write_all(&greeting(true)).unwrap();
        assert_eq!(read_packet(stream).len(), 32, "the request for TLS");
        // In the clear, where the handshake should begin.
        stream.write_all(&packet(2, &[1, 4])).unwrap();
    });
    let rest = String::from_utf8_lossy(&rest).into_owned();
    assert!(!rest.contains("watcher") && !rest.contains(PASSWORD), "{rest}");
}

#[test]
fn a_method_that_is_not_known_is_named() {
    let (error, _) = refusal("", |stream| {
        stream.write_all(&greeting(true)).unwrap();
        read_packet(stream);
        stream.write_all(&packet(2, b"\xfedialog\0Password: ")).unwrap();
    });
    let words = error.to_string();
    assert!(words.contains("the authentication method dialog") && !words.contains("canary"), "{words}");
}

/// The collector gives up a server that sends what `begin` returns byte for byte, each in time: the whole has a limit,
/// too.
fn given_up(query: &str, begin: impl FnOnce(&mut TcpStream) -> Vec<u8> + Send) {
    let begun = Instant::now();
    let (error, _) = refusal(query, |stream| {
        for byte in begin(stream) {
            if stream.write_all(&[byte]).is_err() || begun.elapsed() > Duration::from_secs(40) {
                return;
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    });
    assert!(error.to_string().contains("no complete answer"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn a_login_in_drops_is_given_up() {
    given_up("", |_| greeting(false));
}

/// A record of TLS cannot be read before its last byte.
#[test]
fn an_encrypted_login_in_drops_is_given_up() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    given_up("?tls=require", |stream| {
        stream.write_all(&greeting(true)).unwrap();
        read_packet(stream);
        let mut tls = rustls::ServerConnection::new(config.into()).unwrap();
        while tls.is_handshaking() {
            tls.complete_io(stream).unwrap();
        }
        tls.writer().write_all(&packet(3, &[0; 1_000])).unwrap();
        let mut record = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut record).unwrap();
        }
        record
    });
}

#[test]
fn an_account_of_mariadbs_ed25519_is_watched() {
    let Some(server) = mariadb(&["--plugin-load-add=auth_ed25519"]) else { return };
    let mut root = server.root().unwrap();
    for statement in [
        format!("CREATE USER 'signer'@'127.0.0.1' IDENTIFIED VIA ed25519 USING PASSWORD('{PASSWORD}')"),
        "GRANT PROCESS ON *.* TO 'signer'@'127.0.0.1'".to_owned(),
    ] {
        root.query_drop(statement).unwrap();
    }
    let watch = |password: &str| {
        let address = format!("mysql://signer:{password}@127.0.0.1:{}", server.port);
        collector(&address, &Options { partial: true, ..Options::default() }).unwrap().probe()
    };
    assert!(watch(PASSWORD).is_ok());
    assert!(matches!(watch("wrong"), Err(ProbeError::Denied { .. })));
}
