//! Two processes that send one recording: a row arrives once, because the token of an insert is that of
//! its rows and not of who sends them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdup_recording::clock;
use holdup_store::{Address, Client, Statement};

use super::hostile::record;
use super::proxy::{Fate, Proxy};
use super::server::Kind;
use super::{DATABASE, stored, with_tables};
use crate::program::{Running, holdup};

/// The answer that says which rows of the first table are there, after the version and the list of recordings.
const LOOK: usize = 3;

fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Only a current server drops a repeated insert; an old one merges equal keys later.
#[test]
fn rows_sent_by_another_process_are_dropped() {
    let Some(server) = with_tables(Kind::Engine) else { return };
    let (dir, url) = (tempfile::tempdir().unwrap(), server.url(DATABASE));
    let folder = dir.path().join("shared").display().to_string();
    record(folder.as_ref(), &["x"; 3], clock::now_ns());
    let client = Client::connect(&Address::parse(&url).unwrap()).unwrap();
    // A merge would drop equal keys, too.
    client.execute(&Statement::new("SYSTEM STOP MERGES")).unwrap();
    let push = |url: &str| Running::start(&mut holdup(["store", "push", &folder, url, "--json"]));

    // The first process says that rows are coming, and dies.
    let first = Proxy::start(server.port(), |answer| match answer.is_insert {
        true => Fate::Late(Duration::from_secs(120)),
        false => Fate::Arrives,
    });
    let announced = push(&first.url(DATABASE));
    let list = || stored(&["ls", &url, "--json"]).json();
    until("an entry", || list()[0]["recording"] == "shared");
    drop(announced);

    // The second one learns that no rows are there, and hears it only when a third one has sent all.
    let (has_looked, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let second = Proxy::start(server.port(), {
        let (has_looked, is_over) = (Arc::clone(&has_looked), Arc::clone(&is_over));
        move |answer| {
            if answer.number == LOOK {
                has_looked.store(true, Ordering::SeqCst);
                until("the other process", || is_over.load(Ordering::SeqCst));
            }
            Fate::Arrives
        }
    });
    let late = push(&second.url(DATABASE));
    until("a look", || has_looked.load(Ordering::SeqCst));
    assert_eq!(stored(&["push", &folder, &url, "--json"]).json()["rows_sent"], 6);
    is_over.store(true, Ordering::SeqCst);
    let late = late.finish(Duration::from_secs(60));
    assert_eq!(late.code(), Some(0), "{}", late.stderr);
    assert_eq!(late.json()["rows_sent"], 3, "it did not look at the right time: {}", late.stdout);
    for table in ["events", "settings"] {
        let rows = server.ask(DATABASE, &format!("SELECT count(), uniqExact(row) FROM {table}"));
        assert_eq!(rows, "3\t3", "{table}");
    }
}
