//! A real HAProxy between holdup's load and a service that takes as long for each request, whatever their number: the
//! wait for a slot of HAProxy is found in its own row of the ledger.

use std::path::Path;
use std::process::Command;

use holdup_testing::{Process, free_port, program};

use crate::program::{finish, holdup};
use crate::service::Service;

const USERS: usize = 8;

/// HAProxy with so many slots for the service at `url`, its stats socket in `folder`; and its address.
fn haproxy(folder: &Path, service: &str, slots: usize) -> (Process, String) {
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
    command.args(["-db", "-f", "options"]).current_dir(folder);
    let mut process = Process::start(&mut command, &folder.join("log"), libc::SIGKILL);
    process.wait_for_port(port);
    (process, format!("http://127.0.0.1:{port}/"))
}

/// The answer of a run through HAProxy with so many slots.
fn answer(slots: usize) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::with(&["--servers=100", "--service-time=50ms"]);
    let (_proxy, url) = haproxy(folder.path(), &service.url(), slots);
    let watch = format!("haproxy:{}/stats", folder.path().display());
    let users = USERS.to_string();
    let arguments = ["run", "--url", &url, "--closed", "--connections", &users, "--duration", "5s"];
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
    if program("haproxy", "haproxy").is_none() {
        return;
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
