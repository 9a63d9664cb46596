//! What `holdup doctor` sends to servers of this machine.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::program::{finish, holdup, skip};

/// Prints its port, then the first line of what each connection sends.
const SERVER: &str = "
import socket
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    connection.settimeout(10)
    print('asked:', connection.recv(100).split(b'\\r\\n')[0].decode(), flush=True)
    connection.close()
";

/// A server whose process has a name of its own.
struct Named {
    process: Child,
    said: std::path::PathBuf,
}

impl Named {
    fn start(dir: &Path, name: &str) -> Self {
        let program = dir.join(name);
        std::os::unix::fs::symlink("/usr/bin/python3", &program).unwrap();
        let said = dir.join(format!("{name}.said"));
        let out = std::fs::File::create(&said).unwrap();
        let process = Command::new(program).args(["-c", SERVER]).stdin(Stdio::null()).stdout(out).spawn().unwrap();
        let begun = Instant::now();
        let own = Self { process, said };
        while own.lines().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{name} does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        own
    }

    fn lines(&self) -> Vec<String> {
        let file = BufReader::new(std::fs::File::open(&self.said).unwrap());
        file.lines().map_while(Result::ok).collect()
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn servers_that_dislike_a_stray_request_get_none() {
    if !Path::new("/usr/bin/python3").exists() {
        skip("python3 is not installed; run: cargo xtask setup");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [shy, open] = ["redis-server", "an-app"].map(|name| Named::start(dir.path(), name));
    let done = finish(holdup(["doctor"]), 120);
    assert!(done.stdout.contains(&open.lines()[0]), "{}", done.stdout);
    let asked = open.lines()[1..].to_vec();
    assert!(asked.iter().any(|line| line == "asked: GET /metrics HTTP/1.1"), "{asked:?}");
    assert_eq!(shy.lines().len(), 1, "{:?}", shy.lines());
}
