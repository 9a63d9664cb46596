//! `--watch redis:` on a real server, with accounts of its own.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use holdup_recording::{Batch, CoverageState};
use holdup_testing::{Process, free_port};

use super::programs::{are_here, launch};
use super::{PATIENCE, probed, refused, sum, watch};

/// A server in `folder`; memory is its only place.
fn start(folder: &Path, port: u16) -> Process {
    let text = port.to_string();
    let options =
        ["--port", &text, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--enable-debug-command", "local"];
    let mut server = launch(folder, Command::new("redis-server").args(options));
    server.wait("answer", || say(port, "PING").is_some_and(|answer| answer.contains("PONG")));
    server
}

/// What the server answers to a line.
fn say(port: u16, line: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(format!("{line}\r\nQUIT\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn sampled(source: &mut dyn holdup_collect::Collector) -> Batch {
    let mut batch = Batch::default();
    source.sample(&mut batch).unwrap();
    batch
}

/// Calls and nanoseconds of the statements with this text.
fn took(batch: &Batch, kind: &str, text: &str) -> Vec<(i64, i64)> {
    let rows = batch.statements.iter().filter(|row| row.kind == kind && row.digest_text == text);
    rows.map(|row| (row.calls, row.duration_ns)).collect()
}

#[test]
fn a_slow_command_is_an_execution_without_its_keys() {
    if !are_here(&["redis-server"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let _server = start(folder.path(), port);
    say(port, "DEBUG SLEEP 0.05");
    let mut source = probed(&format!("redis://127.0.0.1:{port}"));
    let quiet = sampled(&mut *source);
    assert!(took(&quiet, "execution", "DEBUG ? ?").is_empty(), "from before");
    say(port, "SET user:7 s3cret");
    say(port, "DEBUG SLEEP 0.2");
    let after = sampled(&mut *source);
    let executed = took(&after, "execution", "DEBUG ? ?");
    assert!(matches!(executed[..], [(1, ns)] if ns >= 200_000_000), "{executed:?}");
    assert!(took(&sampled(&mut *source), "execution", "DEBUG ? ?").is_empty(), "told once");
    // Its time grew by what the log says, and the keys by one.
    let total = |batch| took(batch, "digest_total", "DEBUG")[0];
    let ((calls, ns), (calls_before, ns_before)) = (total(&after), total(&quiet));
    assert_eq!(calls - calls_before, 1);
    assert!((ns - ns_before).abs_diff(executed[0].1) < 50_000_000, "{ns} {ns_before} {executed:?}");
    assert_eq!(sum(&after, "redis_keys", &[("database", "db0")]), Some(1.0));
    assert!(sum(&after, "redis_info_used_memory", &[]).unwrap() > 100_000.0);
    let text = format!("{:?}{:?}", after.statements, after.samples);
    assert!(!text.contains("s3cret") && !text.contains("user:7"));
    let mut settings = Batch::default();
    source.settings(&mut settings).unwrap();
    assert!(settings.settings.iter().any(|row| row.name == "redis_version"), "{:?}", settings.settings);
}

#[test]
fn accounts_and_what_each_may_not() {
    if !are_here(&["redis-server"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let _server = start(folder.path(), port);
    for rights in [
        "holdup on >canary resetkeys -@all +info +slowlog|get +quit",
        "half on >canary resetkeys -@all +info +quit",
        "none on >canary resetkeys -@all +ping",
    ] {
        assert!(say(port, &format!("ACL SETUSER {rights}")).unwrap().contains("+OK"), "{rights}");
    }
    say(port, "ACL SETUSER default off");
    let address = |user: &str| format!("redis://{user}@127.0.0.1:{port}");
    let whole = watch(&address("holdup:canary")).probe().unwrap();
    assert!(whole.iter().all(|line| line.state == CoverageState::Complete), "{whole:?}");
    let half = watch(&address("half:canary")).probe().unwrap();
    let lacking = half.iter().find(|line| line.source.ends_with("slow log")).unwrap();
    assert!(lacking.enable.as_ref().unwrap().contains("+slowlog|get"), "{lacking:?}");
    assert!(probed(&address("half:canary")).sample(&mut Batch::default()).is_ok());
    for (user, said) in
        [("none:canary", "ACL SETUSER holdup"), ("holdup:wrong", "WRONGPASS"), ("", "HOLDUP_REDIS_PASSWORD")]
    {
        let error = refused(&address(user).replace("//@", "//")).to_string();
        assert!(error.contains(said) && !error.contains("canary"), "{user}: {error}");
    }
}

#[test]
fn a_server_that_was_killed_is_a_gap_until_it_is_back() {
    if !are_here(&["redis-server"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let server = start(folder.path(), port);
    let mut source = probed(&format!("redis://127.0.0.1:{port}"));
    drop(server);
    let mut gap = Batch::default();
    assert!(source.sample(&mut gap).is_err() && gap.samples.is_empty());
    let _again = start(folder.path(), port);
    say(port, "DEBUG SLEEP 0.02");
    let back = sampled(&mut *source);
    assert_eq!(took(&back, "execution", "DEBUG ? ?").len(), 1, "numbers began anew");
    // Another server is named as such.
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("redis://{}", other.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut line in other.incoming().flatten() {
            let _ = line.read(&mut [0; 512]);
            let _ = line.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    assert!(refused(&address).to_string().contains("not in the protocol of Redis"));
}
