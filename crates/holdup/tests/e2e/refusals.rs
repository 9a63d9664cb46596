//! Bad input: each time exit code 2, one message that says what to do, and nothing half-written.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use crate::mariadb::{self, CANARY, POOR, USER};
use crate::program::{Finished, finish, free_port, holdup};
use crate::service::Service;

/// Everything under `dir`, with lengths.
fn listing(dir: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(listing(&path));
        }
        let length = path.metadata().unwrap().len();
        found.push((path, length));
    }
    found.sort();
    found
}

/// Runs holdup in `dir`, where it must refuse, say all of `words`, and leave everything as it was.
fn refused(dir: &Path, arguments: &[&str], words: &[&str]) -> Finished {
    let before = listing(dir);
    let done = finish(holdup(arguments).current_dir(dir), 60);
    let message = &done.stderr;
    assert_eq!(done.code(), Some(2), "{arguments:?}: {message}{}", done.stdout);
    for word in words {
        assert!(message.contains(word), "{arguments:?} does not say \"{word}\": {message}");
    }
    assert_eq!(message.lines().filter(|line| line.starts_with("error:")).count(), 1, "{arguments:?}: {message}");
    // Sources that do not answer yet are named before that.
    let first = message.lines().find(|line| !line.starts_with("waiting for "));
    assert!(first.is_some_and(|line| line.starts_with("error:")), "{arguments:?}: {message}");
    for inside in ["panicked", "RUST_BACKTRACE", "Os {", "Custom {", "Error {", CANARY] {
        assert!(!message.contains(inside), "{arguments:?} shows its inside: {message}");
    }
    assert!(done.stdout.is_empty(), "{arguments:?}: {}", done.stdout);
    assert_eq!(listing(dir), before, "{arguments:?} left something");
    done
}

#[test]
fn arguments() {
    let dir = tempfile::tempdir().unwrap();
    let quick = ["run", "--url", "http://127.0.0.1:9/", "--rate=1"];
    let with = |more: &[&'static str]| [&quick[..], more].concat();
    refused(dir.path(), &["explain", "thread_pool_que"], &["thread_pool_que", "did you mean thread_pool_queue?"]);
    refused(dir.path(), &["explain", "entropy"], &["there are:", "cpu_saturated"]);
    refused(dir.path(), &with(&["--duration=20"]), &["--duration", "20s"]);
    refused(dir.path(), &with(&["--duration=0s"]), &["--duration"]);
    refused(dir.path(), &with(&["--threshold", "median < 1s"]), &["median", "p50, p99, p99.9"]);
    refused(dir.path(), &with(&["--threshold", "p99 > 1s"]), &["write p99 < VALUE"]);
    refused(dir.path(), &with(&["--watch", "hosst"]), &["hosst", "did you mean host?"]);
    refused(dir.path(), &with(&["--watch", "oracle:x"]), &["oracle", "supported: host, pid:", "holdup doctor"]);
    refused(dir.path(), &["watch", "--for=1s", "--watch", "pid:4194304999"], &["4194304999"]);
    refused(
        dir.path(),
        &with(&["--watch", "mysql://u:s3cr3t-canary@127.0.0.1:9", "--interval=20ms"]),
        &["--interval 20ms", "mysql:…", "100ms"],
    );
    refused(dir.path(), &["watch", "--for=1s", "--watch=host", "--interval=1ms"], &["--interval 1ms", "host", "10ms"]);
    refused(dir.path(), &with(&["--connexions=5"]), &["--connexions", "--connections"]);
    refused(dir.path(), &["run", "--url", "127.0.0.1:80", "--rate=1"], &["http://127.0.0.1:80"]);
    refused(dir.path(), &["run", "--url", "ftp://127.0.0.1/", "--rate=1"], &["unknown scheme", "http://"]);
    refused(dir.path(), &["run", "--url", "http://127.0.0.1/", "--rate=-5"], &["--rate", "requests per second"]);
    refused(
        dir.path(),
        &["run", "--url", "http://127.0.0.1/", "--rate", "-5"],
        &["'-5' for '--rate <N>'", "requests per second"],
    );
    refused(dir.path(), &["run", "--url", "http://127.0.0.1/", "--rate=0"], &["--rate", "from 0.001"]);
    let pg = format!("postgresql://me:{CANARY}@127.0.0.1:{}/app", free_port());
    refused(dir.path(), &["digest", &pg], &["pg_stat_statements' | holdup digest -", "holdup top postgresql://"]);
    refused(dir.path(), &["top", &pg, "--once"], &["refused", "is the server running"]);
    refused(dir.path(), &["top", "oracle://h"], &["mysql://USER@HOST:PORT", "postgresql://USER@HOST:PORT"]);
    refused(dir.path(), &["run", "--url", "http://127.0.0.1/"], &["--rate 500"]);
    refused(dir.path(), &["watch", "--for=1s"], &["--watch"]);
    std::fs::write(dir.path().join("p.yaml"), "pipeline:\n- {name: a, in: {topic: t}}\n").unwrap();
    let stages = |file| ["watch", "--for=1s", "--watch=host", "--pipeline", file];
    refused(dir.path(), &stages("p.yaml"), &["--pipeline", "p.yaml:2: pipeline[0].in: \"group\" is missing"]);
    refused(dir.path(), &stages("none.yaml"), &["--pipeline", "none.yaml"]);
    refused(dir.path(), &["lab", "no-such-lab"], &["no-such-lab"]);
    refused(dir.path(), &["settle", "mysql://u:p@127.0.0.1:3306"], &["holdup settle postgresql://"]);
    let nobody = format!("postgresql://me:{CANARY}@127.0.0.1:{}/app", free_port());
    refused(dir.path(), &["settle", &nobody], &["refused"]);
    for (hardware, words) in [("volume:gp3:big", ["big", "a size, e.g. 500G"]), ("disk:gp3", ["disk:gp3", "volume:"])] {
        refused(dir.path(), &with(&["--watch", hardware]), &[words[1]]);
    }
}

#[test]
fn scenarios() {
    let dir = tempfile::tempdir().unwrap();
    let mut number = 0;
    let mut scenario = |text: &str, words: &[&str]| {
        number += 1;
        let name = format!("s{number}.yaml");
        std::fs::write(dir.path().join(&name), text).unwrap();
        refused(dir.path(), &["run", &name], words);
    };
    let good = "target: http://127.0.0.1:9\nload:\n  rate: 5\n  duration: 1s\noperations:\n  - get: /\n";
    scenario(&good.replace("  duration:", "  durration:"), &[":4:", "\"durration\"", "did you mean \"duration\"?"]);
    scenario(&good.replace("  - get:", "  - git:"), &[":6:", "\"git\"", "did you mean \"get\"?"]);
    scenario(&format!("{good}wach: host\n"), &[":7:", "\"wach\"", "did you mean \"watch\"?"]);
    scenario(&good.replace("rate: 5", "rate: fast"), &[":3:", "requests per second", "fast"]);
    scenario(&good.replace("  rate: 5\n", ""), &[":2:", "\"rate\", \"steps\", \"ramp\""]);
    scenario("load: [1, 2\n", &[".yaml:"]);
    scenario("", &["empty"]);
    refused(dir.path(), &["run", "missing.yaml"], &["missing.yaml", "No such file", "holdup init"]);
    std::fs::write(dir.path().join("shop.yaml"), good).unwrap();
    refused(dir.path(), &["run", "shop.yml"], &["No such file", "did you mean shop.yaml?"]);
}

#[test]
fn targets() {
    let dir = tempfile::tempdir().unwrap();
    let down = format!("http://127.0.0.1:{}/", free_port());
    let run = |url: &'static str| ["run", "--url", url, "--rate=1", "--duration=1s"];
    let done = refused(dir.path(), &["run", "--url", &down, "--rate=1", "--duration=1s"], &["refused"]);
    assert!(done.stderr.contains(down.trim_start_matches("http://").trim_end_matches('/')), "{}", done.stderr);
    refused(dir.path(), &run("http://no-such-host.invalid/"), &["no-such-host.invalid"]);

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("--listen={}", taken.local_addr().unwrap());
    let port = taken.local_addr().unwrap().port().to_string();
    refused(dir.path(), &["service", "--database=none", "--route=/=", &listen], &[&port, "in use"]);
    let admin = format!("--admin={}", taken.local_addr().unwrap());
    refused(dir.path(), &["service", "--database=none", "--route=/=", &admin], &[&port, "in use"]);
    refused(
        dir.path(),
        &["watch", "--for=1s", "--watch", &format!("prometheus:http://127.0.0.1:{}/metrics", free_port())],
        &["refused"],
    );
}

#[test]
fn recordings() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let url = service.url();
    let run =
        |out: &str| ["run", "--url", &url, "--rate=50", "--duration=1s", "--no-collect", "-o", out].map(str::to_owned);
    let made = finish(holdup(run("good")).current_dir(dir.path()), 30);
    assert_eq!(made.code(), Some(0), "{}", made.stderr);

    // Occupied: by that recording, by a file.
    std::fs::write(dir.path().join("file"), "x").unwrap();
    for occupied in ["good", "file"] {
        let again = run(occupied);
        refused(dir.path(), &again.each_ref().map(String::as_str), &[occupied, "-o"]);
    }

    let below = run("file/below");
    refused(dir.path(), &below.each_ref().map(String::as_str), &["file/below", "-o"]);
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    for (path, words) in [
        ("file", &["a file, not a recording", "holdup run -o"][..]),
        ("good/report.html", &["give its directory: good"]),
        ("empty", &["no manifest.json", "holdup watch -o"]),
        (".", &["it holds recordings, name one", "good"]),
    ] {
        refused(dir.path(), &["diagnose", path], words);
        refused(dir.path(), &["report", path, "-o", "page.html"], words);
    }

    let damaged = |name: &str, damage: &dyn Fn(&Path)| {
        let copy = dir.path().join(name);
        std::fs::create_dir(&copy).unwrap();
        for (path, _) in listing(&dir.path().join("good")) {
            std::fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
        }
        damage(&copy);
    };
    let edit = |from: &'static str, to: &'static str| {
        move |copy: &Path| {
            let path = copy.join("manifest.json");
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains(from));
            std::fs::write(path, text.replacen(from, to, 1)).unwrap();
        }
    };
    damaged("none", &|copy| std::fs::remove_file(copy.join("manifest.json")).unwrap());
    damaged("newer", &edit("\"major\": 1", "\"major\": 2"));
    damaged("broken", &edit("{", "["));
    damaged("cut", &|copy| {
        let path = copy.join("requests.parquet");
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    });
    damaged("emptied", &|copy| std::fs::write(copy.join("samples.parquet"), "").unwrap());
    damaged("foreign", &|copy| std::fs::write(copy.join("events.parquet"), "at,text\n1,x\n".repeat(50)).unwrap());
    damaged("bent", &|copy| {
        // The first page: behind the four magic bytes.
        let path = copy.join("requests.parquet");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4..200].fill(0xff);
        std::fs::write(path, bytes).unwrap();
    });
    let words: [(&str, &[&str]); 8] = [
        ("nowhere", &["nowhere", "no such recording"]),
        ("none", &["none", "manifest.json"]),
        ("newer", &["format 2", "newer holdup"]),
        ("broken", &["manifest.json"]),
        ("cut", &["requests.parquet"]),
        ("emptied", &["samples.parquet"]),
        ("foreign", &["events.parquet"]),
        ("bent", &["requests.parquet"]),
    ];
    for (name, words) in words {
        refused(dir.path(), &["diagnose", "--json", name], words);
        refused(dir.path(), &["report", name, "-o", "page.html"], words);
    }
    refused(dir.path(), &["diagnose", "good", "--from=10s", "--to=5s"], &["--to"]);

    // No mistake, but worth a line: what has no end yet.
    damaged("running", &edit("\"complete\"", "\"running\""));
    let done = finish(holdup(["diagnose", "--json", "running"]).current_dir(dir.path()), 30);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert!(done.stderr.starts_with("running: still being recorded, or its holdup was killed"), "{}", done.stderr);
}

#[test]
fn accounts() {
    if !mariadb::is_here() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server = mariadb::start();
    let service = Service::start();
    let url = service.url();
    for command in [&["run", "--url", &url, "--rate=1", "--duration=1s"][..], &["watch", "--for=1s"]] {
        let with = |address: &str| -> Vec<String> {
            command.iter().copied().chain(["--watch", address]).map(str::to_owned).collect()
        };
        let refused = |address: String, words: &[&str]| {
            let arguments = with(&address);
            let done = refused(dir.path(), &arguments.iter().map(String::as_str).collect::<Vec<_>>(), words);
            assert!(!done.stderr.contains("c4nary"), "{}", done.stderr);
        };
        refused(server.address(USER, "c4nary-wr0ng"), &["Access denied", USER, "HOLDUP_MYSQL_PASSWORD"]);
        refused(server.address(POOR, CANARY), &["GRANT PROCESS ON *.* TO 'poor'@'%'", "--partial"]);
        refused(format!("mysql://{USER}:{CANARY}@127.0.0.1:{}", free_port()), &["refused"]);
        refused(format!("mysql://{USER}:{CANARY}@127.0.0.1:notaport"), &["mysql://"]);
    }
    // With a part of what it needs it goes on if told to, and says what is missing.
    let partial = holdup(["watch", "--for=1s", "--partial", "--json", "-o", "partial", "--watch"]);
    let done = finish({ partial }.arg(server.address(POOR, CANARY)).current_dir(dir.path()), 30);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let verdict = done.json();
    let mysql = verdict["coverage"].as_array().unwrap().iter().find(|c| c["state"] == "partial").unwrap();
    assert!(mysql["enable"].as_str().unwrap().contains("GRANT PROCESS"), "{mysql}");
}
