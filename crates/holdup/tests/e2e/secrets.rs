//! A password or a token in an address is nowhere: not in the recording, the report, what is printed, or the process list.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::mariadb::{self, CANARY, USER};
use crate::program::{Running, finish, holdup};
use crate::python;
use crate::service::Service;

#[test]
fn a_password_is_nowhere() {
    if !mariadb::is_here() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server = mariadb::start();
    let service = Service::start();
    let address = server.address(USER, CANARY);

    let url = service.url();
    let [(mut flag, by_flag), (mut file, by_file)] = by_flag_and_by_file(&url, &address, dir.path());
    for (command, out) in [(&mut flag, &by_flag), (&mut file, &by_file)] {
        shows_nothing(command, out);
        // It did watch the server, or there would be nothing to hide.
        let manifest = std::fs::read_to_string(out.join("manifest.json")).unwrap();
        assert!(manifest.contains("mysql://127.0.0.1:"), "{manifest}");
        python::check("absent.py", &[CANARY.as_ref(), out.as_path()]);
        let again = finish(holdup(["diagnose"]).arg(out), 60);
        assert!(!again.stdout.contains(CANARY), "{}", again.stdout);
    }
    let manifest = std::fs::read_to_string(by_file.join("manifest.json")).unwrap();
    assert!(manifest.contains("mysql://holdup:***@127.0.0.1:"), "the rest of the scenario is kept: {manifest}");
    let doctor = finish(holdup(["doctor", "--json", "--watch", &address]), 60);
    assert_eq!(doctor.code(), Some(0), "{}", doctor.stderr);
    assert!(!doctor.stdout.contains(CANARY) && !doctor.stderr.contains(CANARY), "{}", doctor.stdout);
}

/// The token of Puma's control server, which stands in the address' query.
#[test]
fn a_token_is_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let (service, control) = (Service::start(), control());
    let address = format!("puma:http://127.0.0.1:{control}?token={CANARY}");
    let url = service.url();
    let [(mut flag, by_flag), (mut file, by_file)] = by_flag_and_by_file(&url, &address, dir.path());
    for (command, out) in [(&mut flag, &by_flag), (&mut file, &by_file)] {
        shows_nothing(command, out);
        let manifest = std::fs::read_to_string(out.join("manifest.json")).unwrap();
        assert!(manifest.contains(&format!("\"puma:127.0.0.1:{control}\"")), "{manifest}");
    }
    let doctor = finish(holdup(["doctor", "--json", "--watch", &address.replace(CANARY, &format!("x{CANARY}"))]), 60);
    assert!(doctor.stdout.contains("rejects this token"), "{}", doctor.stdout);
    assert!(!doctor.stdout.contains(CANARY) && !doctor.stderr.contains(CANARY), "{}", doctor.stdout);
}

/// What answers like Puma's control server, to whoever has the token; its port.
fn control() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut line in listener.incoming().flatten() {
            let mut bytes = [0; 4096];
            let length = line.read(&mut bytes).unwrap_or(0);
            let may = String::from_utf8_lossy(&bytes[..length]).starts_with(&format!("GET /stats?token={CANARY} "));
            let body = r#"{"backlog":0,"running":5,"pool_capacity":5,"max_threads":5}"#;
            let (status, body) = if may { ("200 OK", body) } else { ("403 Forbidden", "Invalid auth token") };
            let _ = write!(line, "HTTP/1.0 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    port
}

/// Runs that watch `address`: told on the command line, and in a scenario, whose text is kept in the recording; each with its folder.
fn by_flag_and_by_file(url: &str, address: &str, dir: &Path) -> [(Command, PathBuf); 2] {
    let scenario = dir.join("scenario.yaml");
    let target = url.trim_end_matches('/');
    let text = format!(
        "target: {target}\nload: {{rate: 20, duration: 4s}}\noperations: [get: /]\nwatch: [host, \"{address}\"]\n"
    );
    std::fs::write(&scenario, text).unwrap();
    let (by_flag, by_file) = (dir.join("flag"), dir.join("file"));
    let mut flag = holdup(["run", "--url", url, "--rate=20", "--duration=4s", "--watch", address, "-o"]);
    flag.arg(&by_flag);
    let mut file = holdup(["run"]);
    file.arg(&scenario).arg("-o").arg(&by_file);
    [(flag, by_flag), (file, by_file)]
}

/// Runs it, for some seconds: the password is not in the process list meanwhile, not in what it prints, nor in a file under
/// `out`.
pub fn shows_nothing(command: &mut Command, out: &Path) {
    let run = Running::start(command);
    std::thread::sleep(Duration::from_millis(1_500));
    let pid = run.pid().to_string();
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    assert!(line.contains("run") && !line.contains(CANARY), "the process list shows it: {line}");
    if let Ok(ps) = Command::new("ps").args(["-ww", "-o", "args=", "-p", &pid]).output() {
        assert!(!String::from_utf8_lossy(&ps.stdout).contains(CANARY));
    }
    let done = run.finish(Duration::from_secs(60));
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert!(!done.stdout.contains(CANARY) && !done.stderr.contains(CANARY), "{}\n{}", done.stdout, done.stderr);
    nowhere(out, CANARY);
}

/// No file under `dir` has `secret` in its bytes.
pub fn nowhere(dir: &Path, secret: &str) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            nowhere(&path, secret);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{} has the password", path.display());
        }
    }
}
