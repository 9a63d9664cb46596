//! MongoDB's commands as load on FerretDB, over TLS: every command that was due ends once, large documents come back
//! whole, and an unsigned certificate is refused.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use holdup_load::scenario::Scenario;
use holdup_mongodb::Writer;

use crate::play::{keep_going, patient, play};
use crate::real::process::certificate;

#[path = "../../../holdup-collect/tests/mongodb/server.rs"]
mod server;

use server::{CANARY, Server};

/// For whatever only has to happen at some time.
const PATIENCE: Duration = Duration::from_secs(60);

fn scenario(target: &str, rest: &str) -> Scenario {
    let text = patient(&format!("target: {target}\n{rest}"));
    Scenario::parse(&text, "test.yaml").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn commands_over_tls() {
    let (dir, port) = (tempfile::tempdir().unwrap(), holdup_lab::ports::free().unwrap());
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
