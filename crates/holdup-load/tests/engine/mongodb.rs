//! MongoDB's commands as load on FerretDB, over TLS: every command that was due ends once, large documents come back
//! whole, an unsigned certificate is refused, and commands carry the ids of their traces.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use holdup_load::scenario::Scenario;
use holdup_mongodb::Writer;
use holdup_testing::ferretdb::{CANARY, Server};
use holdup_testing::{certificate, free_port};

use crate::play::{keep_going, patient, play};

/// For whatever only has to happen at some time.
const PATIENCE: Duration = Duration::from_secs(60);

fn scenario(target: &str, rest: &str) -> Scenario {
    let text = patient(&format!("target: {target}\n{rest}"));
    Scenario::parse(&text, "test.yaml").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn commands_over_tls() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    certificate(dir.path());
    let file = |name: &str| dir.path().join(name).display().to_string();
    let arguments = [
        format!("--listen-tls=127.0.0.1:{port}"),
        format!("--listen-tls-cert-file={}", file("cert.pem")),
        format!("--listen-tls-key-file={}", file("key.pem")),
    ];
    let Some(server) = Server::start_with(&arguments) else { return };
    let documents = Writer::list(|list| list.document("0", Writer::new().int("_id", 0)));
    server.client().run("shop", Writer::new().text("insert", "a").list_of("documents", documents));
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < PATIENCE, "no TLS");
        std::thread::sleep(Duration::from_millis(20));
    }
    let at = |port: u16, options: &str| {
        format!("mongodb://holdup:{CANARY}@localhost:{port}/shop?authSource=accounts{options}")
    };
    let (trusted, target) = (format!("http: {{tls: {{ca: {}}}}}", file("cert.pem")), at(port, "&tls=true"));
    let operations = "operations:
  - {name: put, command: {insert: a, documents: [{_id: '${uuid()}', text: '${random_text(300000)}'}]}, check: column n == 1}
  - {name: get, command: {find: a, limit: 3}, check: rows > 0}
";
    let played = play(
        &scenario(&target, &format!("{trusted}\nload: {{users: 4, iterations: 60, duration: 60s}}\n{operations}")),
        None,
    );
    played.all("ok");
    assert_eq!(played.offered(), 60);
    assert!(played.rows.iter().any(|row| row.operation == "get" && row.response_bytes > 600_000));
    // One connection for each command, without TLS.
    let rest = format!("http: {{keep_alive: false}}\nload: {{rate: 20, duration: 1s, connections: 5}}\n{operations}");
    // The same seed draws the same ids again, so they go elsewhere.
    play(&scenario(&at(server.port, ""), &rest.replace("insert: a", "insert: b")), None).all("ok");
    // It signed itself.
    let untrusted = scenario(&target, "load: {rate: 20, duration: 500ms}\noperations: [command: {ping: 1}]\n");
    let said = holdup_load::Engine::prepare(&untrusted).err().unwrap().to_string();
    assert!(said.contains("certificate") && said.contains("--tls-ca") && !said.contains(CANARY), "{said}");
    play(&keep_going(untrusted), None).all("tls_certificate");
}

/// A port that leads to the server's, and what clients say there.
fn overheard(to: u16) -> (u16, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, said) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(Vec::new())));
    let heard = Arc::clone(&said);
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut server = TcpStream::connect(("127.0.0.1", to)).unwrap();
            let (mut answers, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut answers, &mut back));
            let heard = Arc::clone(&heard);
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = client.read(&mut bytes) {
                    heard.lock().unwrap().extend(&bytes[..count]);
                    server.write_all(&bytes[..count]).unwrap();
                }
                server.shutdown(Shutdown::Write)
            });
        }
    });
    (port, said)
}

#[test]
fn commands_carry_their_trace_and_need_a_replica_set_for_transactions() {
    let Some(server) = Server::start() else { return };
    let (port, said) = overheard(server.port);
    let target = format!("mongodb://holdup:{CANARY}@127.0.0.1:{port}/shop?authSource=accounts");
    let load = "load: {users: 1, iterations: 4, duration: 60s}\noperations:";
    let played =
        play(&scenario(&target, &format!("{load}\n  - command: {{find: a}}\n  - command: {{ping: 1}}\n")), None);
    played.all("ok");
    let said = String::from_utf8_lossy(&said.lock().unwrap()).into_owned();
    for row in &played.rows {
        let trace = row.trace_id.as_deref().map(|id| format!("traceparent='00-{id}-"));
        // What takes no comment has none.
        assert_eq!(trace.is_some_and(|trace| said.contains(&trace)), row.operation == "find a", "{row:?}");
    }
    // FerretDB is in no replica set: it is said before, and nothing is done outside of a transaction instead.
    let insert = "[{transaction: [{command: {insert: a, documents: [{_id: 1}]}}]}]";
    let written = scenario(&target, &format!("{load} {insert}\n"));
    let refused = holdup_load::Engine::prepare(&written).err().unwrap().to_string();
    assert!(refused.contains("replica set"), "{refused}");
    play(&keep_going(written), None).all("statement_failed");
    assert_eq!(server.client().run("shop", Writer::new().text("count", "a")).get("n").unwrap().number(), Some(0.0));
}
