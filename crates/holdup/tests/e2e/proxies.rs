//! A real HAProxy between holdup's load and a service that takes as long for each request, whatever their number: the
//! wait for a slot of HAProxy is found in its own row of the ledger.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::program::{finish, free_port, holdup, skip};
use crate::service::Service;

const USERS: usize = 8;

/// HAProxy with so many slots for the service at `url`, its stats socket in `folder`.
struct HaProxy {
    child: Child,
    url: String,
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl HaProxy {
    fn start(folder: &Path, service: &str, slots: usize) -> Self {
        let port = free_port();
        let options = format!(
            "global\n  stats socket {}/stats level user\n\
             defaults\n  mode http\n  timeout client 60s\n  timeout server 60s\n  timeout connect 10s\n\
             frontend web\n  bind 127.0.0.1:{port}\n  default_backend app\n\
             backend app\n  server one {} maxconn {slots}\n",
            folder.display(),
            service.trim_start_matches("http://").trim_end_matches('/')
        );
        std::fs::write(folder.join("options"), options).unwrap();
        let mut command = Command::new("haproxy");
        command.args(["-db", "-f", "options"]).current_dir(folder).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "HAProxy does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, url: format!("http://127.0.0.1:{port}/") }
    }
}

/// The answer of a run through HAProxy with so many slots.
fn answer(slots: usize) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::with(&["--servers=100", "--service-time=50ms"]);
    let proxy = HaProxy::start(folder.path(), &service.url(), slots);
    let watch = format!("haproxy:{}/stats", folder.path().display());
    let users = USERS.to_string();
    let arguments = ["run", "--url", &proxy.url, "--closed", "--connections", &users, "--duration", "5s"];
    let mut command = holdup(arguments);
    command.args(["--watch", &watch, "--interval", "100ms", "--json", "--quiet", "-o"]);
    finish(command.arg(folder.path().join("recording")), 60).json()
}

/// The row of all requests: its response time and its part, milliseconds.
fn queued(answer: &serde_json::Value) -> (f64, f64) {
    let rows = answer["ledger"].as_array().unwrap();
    let row = rows.iter().find(|row| row["band"] == "all").unwrap();
    let part = row["parts"].as_array().unwrap().iter().find(|part| part["part"] == "proxy_queue");
    (row["response_ms"].as_f64().unwrap(), part.map_or(0.0, |part| part["ms"].as_f64().unwrap()))
}

#[test]
fn the_wait_for_a_slot_of_haproxy_is_a_row_of_the_ledger() {
    if !["/usr/sbin/haproxy", "/usr/local/sbin/haproxy"].iter().any(|path| Path::new(path).exists()) {
        return skip("haproxy is not installed: cargo xtask setup");
    }
    let (few, enough) = (answer(2), answer(USERS));
    let ((response_ms, queued_ms), (direct_ms, free_ms)) = (queued(&few), queued(&enough));
    // Two of eight users have a slot, so a request waits for three quarters of its time.
    assert!((queued_ms / response_ms / 0.75 - 1.0).abs() < 0.05, "{queued_ms} of {response_ms} ms");
    // That is what it takes beyond a way without a queue.
    let beyond_ms = response_ms - direct_ms;
    assert!((queued_ms / beyond_ms - 1.0).abs() < 0.05, "{queued_ms} ms of {beyond_ms} ms beyond {direct_ms} ms");
    assert!(free_ms < 0.05 * direct_ms, "{free_ms} of {direct_ms} ms");
}
