//! `--store`: the store has rows while the recording goes on, all of them at its end, and when it comes back after it was away.
//! A store that never answers costs the recording nothing but words.

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use super::server::{Kind, Server};
use super::{DATABASE, assert_equal, fixture, stored, with_tables};
use crate::program::{Finished, Running, finish, holdup, manifest, root};

/// Starts to watch this machine, and sends it to `url`.
fn watch(out: &Path, url: &str, more: &[&str]) -> Running {
    let mut command = holdup(["watch", "--watch", "host", "--interval", "100ms", "--store", url, "-o"]);
    Running::start(command.arg(out).args(more))
}

/// Rows of samples in the store, each once.
fn rows(server: &Server) -> u64 {
    server.ask(DATABASE, "SELECT uniqExact(row) FROM samples WHERE recording = 'watched'").parse().unwrap()
}

/// Waits until the store has more than so many rows.
fn more_than(server: &Server, known: u64) -> u64 {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let now = rows(server);
        if now > known {
            return now;
        }
        assert!(Instant::now() < deadline, "no new rows after {known}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn ended_well(done: &Finished) {
    assert_eq!(done.code(), Some(0), "{}{}", done.stderr, done.stdout);
}

fn while_it_goes_on(kind: Kind) {
    let Some(mut server) = with_tables(kind) else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("watched");
    let watching = watch(&out, &server.url(DATABASE), &[]);
    let before = more_than(&server, 0);
    // It goes away, long enough for an attempt to fail, and comes back.
    server.kill();
    std::thread::sleep(Duration::from_secs(5));
    server.again();
    more_than(&server, before);
    let list = stored(&["ls", &server.url(DATABASE), "--json"]).json();
    assert_eq!((&list[0]["recording"], &list[0]["complete"]), (&"watched".into(), &false.into()), "{list}");
    // Without a length, Ctrl-C is the normal end.
    watching.signal(libc::SIGINT);
    let done = watching.finish(Duration::from_secs(60));
    ended_well(&done);
    for said in ["; the recording goes on in", "rows are in clickhouse://127.0.0.1"] {
        assert!(done.stderr.contains(said), "\"{said}\": {}", done.stderr);
    }
    // It may end before it has said that the store is back.
    let said = done.stderr.matches("store: ").count();
    assert!(said == 1 || said == 2 && done.stderr.contains("takes rows again after"), "once each: {}", done.stderr);
    assert_eq!(manifest(&out)["state"], "complete");
    assert_equal(&server, &out, &["watched"]);
    let list = stored(&["ls", &server.url(DATABASE), "--json"]).json();
    assert_eq!(list[0]["complete"], true, "{list}");
    let verdict = |recording: &str| finish(holdup(["diagnose", "--json", recording]), 60).stdout;
    assert_eq!(verdict(&format!("{}/watched", server.url(DATABASE))), verdict(&out.display().to_string()));
}

#[test]
fn a_watch_is_in_the_store_while_it_goes_on_on_debian() {
    while_it_goes_on(Kind::Debian);
}

#[test]
fn a_watch_is_in_the_store_while_it_goes_on_on_the_engine() {
    while_it_goes_on(Kind::Engine);
}

/// What a watch of two seconds says that could not send all, and the command that sends the rest.
fn unsent(out: &Path, url: &str) -> Vec<String> {
    let done = watch(out, url, &["--for", "2s"]).finish(Duration::from_secs(60));
    ended_well(&done);
    assert_eq!(manifest(out)["state"], "complete", "{}", done.stderr);
    assert!(done.stderr.contains("rows were not sent") && !done.stderr.contains("c4nary"), "{}", done.stderr);
    let command = done.stderr.lines().rev().find_map(|line| line.split_once("send the rest: ")).unwrap().1;
    command.split(' ').skip(1).map(str::to_owned).collect()
}

#[test]
fn a_store_that_never_answers_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // It accepts connections and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("clickhouse://u:c4nary@{}/kept", silent.local_addr().unwrap());
    let out = dir.path().join("watched");
    let sends = unsent(&out, &url);
    let at = silent.local_addr().unwrap();
    assert_eq!(sends, ["store", "push", &out.display().to_string(), &format!("clickhouse://u@{at}/kept")]);
}

#[test]
fn unsent_rows_are_sent_later() {
    let Some(mut server) = with_tables(Kind::Engine) else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("watched");
    server.kill();
    let sends = unsent(&out, &server.url(DATABASE));
    server.again();
    let done = finish(holdup(sends), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert_equal(&server, &out, &["watched"]);
}

#[test]
fn an_import_goes_to_the_store() {
    let Some(server) = with_tables(Kind::Engine) else { return };
    let dir = tempfile::tempdir().unwrap();
    let paste = root().join("crates/holdup-import/tests/pastes/readahead.txt");
    let out = dir.path().join("pasted");
    let url = server.url(DATABASE);
    let words = ["import", &paste.display().to_string(), "-o", &out.display().to_string(), "--store", &url];
    let done = finish(holdup(words), 60);
    ended_well(&done);
    assert!(done.stderr.contains("rows sent to"), "{}", done.stderr);
    assert_equal(&server, &out, &["pasted"]);
    // Into a store that is away it fails, keeps the recording, and says what to do.
    let closed = format!("clickhouse://127.0.0.1:{}/kept", crate::program::free_port());
    let other = dir.path().join("other");
    let words = ["import", &paste.display().to_string(), "-o", &other.display().to_string(), "--store", &closed];
    let done = finish(holdup(words), 60);
    assert_eq!(done.code(), Some(2), "{}", done.stderr);
    assert!(done.stderr.contains("send it with: holdup store push") && other.join("manifest.json").exists());
}

#[test]
fn compare_and_report_take_addresses() {
    let Some(server) = with_tables(Kind::Engine) else { return };
    let (url, dir) = (server.url(DATABASE), tempfile::tempdir().unwrap());
    for name in ["demo-faulty", "demo-fixed"] {
        super::push(&fixture(name), &url, name);
    }
    let compared = |a: &str, b: &str| {
        let done = finish(holdup(["compare", "--json", a, b]).current_dir(root()), 120);
        ended_well(&done);
        done.stdout
    };
    let here = compared("fixtures/demo-faulty", "fixtures/demo-fixed");
    let there = compared(&format!("{url}/demo-faulty"), &format!("demo-fixed={url}/demo-fixed"));
    assert_eq!(there.replace(&format!("{url}/"), "fixtures/"), here);
    let file = dir.path().join("report.html");
    let report = holdup(["report", &format!("{url}/demo-faulty"), "-o", &file.display().to_string()]);
    ended_well(&finish(report, 60));
    assert!(std::fs::read_to_string(&file).unwrap().contains("</html>"));
    let without = finish(holdup(["report", &format!("{url}/demo-faulty")]), 60);
    assert_eq!((without.code(), without.stderr.contains("-o first.html")), (Some(2), true), "{}", without.stderr);
    let against = |healthy: &str| {
        let words = ["diagnose", "--json", &format!("{url}/demo-faulty"), "--against", healthy];
        let done = finish(holdup(words).current_dir(root()), 120);
        ended_well(&done);
        done.stdout
    };
    assert_eq!(against(&format!("{url}/demo-fixed")), against("fixtures/demo-fixed"));
}
