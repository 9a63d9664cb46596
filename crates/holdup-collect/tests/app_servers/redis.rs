//! `--watch redis:` on a real server, with accounts of its own.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use holdup_recording::{Batch, CoverageState};
use holdup_testing::{Process, free_port};

use super::programs::{are_here, launch};
use super::{PATIENCE, probed, refused, sum, until, watch};

/// A server in `folder`, which also listens at `more`; memory is its only place.
fn start_with(folder: &Path, port: u16, more: &[&str]) -> Process {
    let text = port.to_string();
    let options =
        ["--port", &text, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--enable-debug-command", "local"];
    let mut server = launch(folder, Command::new("redis-server").args(options).args(more));
    server.wait("answer", || say(port, "PING").is_some_and(|answer| answer.contains("PONG")));
    server
}

fn start(folder: &Path, port: u16) -> Process {
    start_with(folder, port, &[])
}

/// What the server answers to a line.
fn say(port: u16, line: &str) -> Option<String> {
    let answer = send(port, format!("{line}\r\nQUIT\r\n").as_bytes())?;
    Some(String::from_utf8_lossy(&answer).into_owned())
}

/// What it answers to these bytes, which end with QUIT.
fn send(port: u16, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(bytes).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
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

/// The least that an account needs, as the documents have it.
const RIGHTS: &str = "resetkeys -@all +info +slowlog|get +latency|latest +latency|history";

#[test]
fn the_least_rights_show_slow_commands_evictions_forks_and_stops() {
    if !are_here(&["redis-server"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let _server = start(folder.path(), port);
    say(port, &format!("ACL SETUSER holdup on >canary {RIGHTS}"));
    say(port, "CONFIG SET latency-monitor-threshold 50");
    say(port, "DEBUG SLEEP 0.05");
    let mut source = watch(&format!("redis://holdup:canary@127.0.0.1:{port}"));
    let coverage = source.probe().unwrap();
    assert!(coverage.iter().all(|line| line.state == CoverageState::Complete), "{coverage:?}");
    let quiet = sampled(&mut *source);
    assert!(took(&quiet, "execution", "DEBUG ? ?").is_empty() && quiet.events.is_empty(), "from before");

    say(port, "SET user:7 s3cret");
    say(port, "DEBUG SLEEP 0.2");
    // Keys and names that are no text, and one that looks like a line of the protocol.
    say(port, "CONFIG SET slowlog-log-slower-than 0");
    send(port, b"*3\r\n$3\r\nSET\r\n$9\r\n\xff\x00\r\n$3\r\nx\r\n$6\r\ns3cret\r\n*1\r\n$10\r\ns3cret cmd\r\nQUIT\r\n");
    say(port, "CONFIG SET slowlog-log-slower-than 10000");
    let after = sampled(&mut *source);
    let executed = took(&after, "execution", "DEBUG ? ?");
    assert!(matches!(executed[..], [(1, ns)] if ns >= 200_000_000), "{executed:?}");
    assert_eq!(took(&after, "execution", "SET ? ?").len(), 1, "{:?}", after.statements);
    assert!(took(&sampled(&mut *source), "execution", "DEBUG ? ?").is_empty(), "told once");
    // Its time grew by what the log says, and the keys by two.
    let total = |batch| took(batch, "digest_total", "DEBUG")[0];
    let ((calls, ns), (calls_before, ns_before)) = (total(&after), total(&quiet));
    assert_eq!(calls - calls_before, 1);
    assert!((ns - ns_before).abs_diff(executed[0].1) < 50_000_000, "{ns} {ns_before} {executed:?}");
    assert_eq!(sum(&after, "redis_keys", &[("database", "db0")]), Some(2.0));
    assert_eq!(sum(&after, "redis_errors_total", &[("error", "ERR")]), Some(1.0));
    let stop = after.events.iter().find(|row| row.labels.get("what") == Some("command")).unwrap();
    assert!(stop.kind == "server_stall" && stop.labels.get("seconds").unwrap().parse::<f64>().unwrap() >= 0.2);
    let text = format!("{:?}{:?}{:?}", after.statements, after.samples, after.events);
    assert!(!text.contains("s3cret") && !text.contains("user:7"));

    // More than fits: 4,000 values of 1 KiB, then as many look-ups.
    say(port, "CONFIG SET maxmemory-policy allkeys-random");
    let used = sum(&after, "redis_info_used_memory", &[]).unwrap();
    say(port, &format!("CONFIG SET maxmemory {}", used as u64 + (2 << 20)));
    let value = "v".repeat(1_024);
    let all = |line: &dyn Fn(usize) -> String| (0..4_000).map(line).collect::<String>() + "QUIT\r\n";
    send(port, all(&|key| format!("SET page:{key} {value}\r\n")).as_bytes());
    send(port, all(&|key| format!("GET page:{key}\r\n")).as_bytes());
    say(port, "BGSAVE");
    let full = sampled(&mut *source);
    let grown = |metric: &str| sum(&full, metric, &[]).unwrap() - sum(&after, metric, &[]).unwrap();
    let (evicted, missed) = (grown("redis_info_evicted_keys"), grown("redis_info_keyspace_misses"));
    assert!(evicted > 1_000.0 && missed > 1_000.0 && missed <= evicted + 2.0, "{evicted} {missed}");
    assert_eq!(grown("redis_info_keyspace_hits"), 4_000.0 - missed);
    assert_eq!(grown("redis_info_total_forks"), 1.0);
    assert!(sum(&full, "redis_latest_fork_seconds", &[]).is_some_and(|s| s > 0.0 && s < 1.0));
    let mut settings = Batch::default();
    source.settings(&mut settings).unwrap();
    let has = |name: &str, value: &str| settings.settings.iter().any(|row| row.name == name && row.value == value);
    assert!(has("maxmemory_policy", "allkeys-random"), "{:?}", settings.settings);
}

/// A slow command on many keys: what the server says of it, and the command's share of the thread.
#[test]
fn a_walk_through_all_keys_takes_the_thread_by_the_servers_account() {
    if !are_here(&["redis-server"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let _server = start(folder.path(), port);
    say(port, "CONFIG SET slowlog-log-slower-than 1000");
    say(port, "DEBUG POPULATE 50000");
    let mut source = probed(&format!("redis://127.0.0.1:{port}"));
    (0..3).for_each(|_| drop(say(port, "KEYS nothing:*")));
    let walked = sampled(&mut *source);
    let slow = took(&walked, "execution", "KEYS ?");
    assert_eq!(slow.len(), 3, "{:?}", walked.statements);
    let keys = [("command", "keys")];
    assert_eq!(sum(&walked, "redis_command_calls_total", &keys), Some(3.0));
    let taken = sum(&walked, "redis_command_time_seconds_total", &keys).unwrap();
    let logged = slow.iter().map(|(_, ns)| *ns as f64 / 1e9).sum::<f64>();
    assert!((taken / logged - 1.0).abs() < 0.05, "{taken} {logged}");
    say(port, "CLIENT KILL TYPE normal");
    assert_eq!(sum(&sampled(&mut *source), "redis_command_calls_total", &keys), Some(3.0), "on a new connection");
}

#[test]
fn certificates_are_checked_over_tls() {
    if !are_here(&["redis-server"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (certificate, key) = (file("cert.pem", made.cert.pem()), file("key.pem", made.signing_key.serialize_pem()));
    let (port, encrypted) = (free_port(), free_port());
    let text = encrypted.to_string();
    let options = ["--tls-port", &text, "--tls-cert-file", &certificate, "--tls-key-file", &key];
    let options = [&options[..], &["--tls-auth-clients", "no"]].concat();
    let _server = start_with(folder.path(), port, &options);
    let mut trusted = probed(&format!("rediss://localhost:{encrypted}?ssl_ca_certs={certificate}"));
    assert!(sum(&sampled(&mut *trusted), "redis_info_uptime_in_seconds", &[]).is_some());
    probed(&format!("rediss://127.0.0.1:{encrypted}?ssl_cert_reqs=none"));
    let strange = refused(&format!("rediss://localhost:{encrypted}")).to_string();
    assert!(strange.contains("TLS") || strange.contains("certificate"), "{strange}");
    assert!(refused(&format!("redis://localhost:{encrypted}")).to_string().contains("rediss://"));
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
        &format!("holdup on >canary {RIGHTS}"),
        "half on >canary resetkeys -@all +info",
        "none on >canary resetkeys -@all +ping",
    ] {
        assert!(say(port, &format!("ACL SETUSER {rights}")).unwrap().contains("+OK"), "{rights}");
    }
    say(port, "ACL SETUSER default off");
    let address = |user: &str| format!("redis://{user}@127.0.0.1:{port}");
    let whole = watch(&address("holdup:canary")).probe().unwrap();
    assert!(whole.iter().all(|line| line.state == CoverageState::Complete), "{whole:?}");
    let half = watch(&address("half:canary")).probe().unwrap();
    for (part, right) in [("slow log", "+slowlog|get"), ("latency monitor", "+latency|latest")] {
        let lacking = half.iter().find(|line| line.source.ends_with(part)).unwrap();
        assert!(lacking.enable.as_ref().unwrap().contains(right), "{lacking:?}");
    }
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
    let back = until(&mut *source, "server", |batch| !batch.samples.is_empty());
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
