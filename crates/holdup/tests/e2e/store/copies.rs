//! A recording in the store is the one in the folder: its rows, its verdict, its copy.

use holdup_recording::clock;
use holdup_store::{Address, Client, Statement};

use super::hostile::record;
use super::server::{Kind, Server};
use super::{DATABASE, assert_equal, fixture, push, store, stored, with_tables};
use crate::program::{Finished, finish, holdup};

const RECORDING: &str = "hidden-queue-faulty";

const DAY_NS: i64 = 86_400_000_000_000;

fn diagnosed(recording: &str) -> Finished {
    let done = finish(holdup(["diagnose", "--json", recording]), 120);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    done
}

fn there_and_back(kind: Kind) {
    let Some(server) = with_tables(kind) else { return };
    let (folder, url) = (fixture(RECORDING), server.url(DATABASE));
    // What is there stays.
    stored(&["init", &url]);
    let pushed = push(&folder, &url, "one");
    let rows: u64 = pushed["tables"].as_object().unwrap().values().map(|table| table["rows"].as_u64().unwrap()).sum();
    assert_eq!((&pushed["rows_sent"], &pushed["checked"]), (&rows.into(), &true.into()), "{pushed}");
    assert_equal(&server, &folder, &["one"]);

    let again = push(&folder, &url, "one");
    assert_eq!((&again["rows_sent"], &again["files_sent"]), (&0.into(), &serde_json::json!([])), "{again}");

    let list = stored(&["ls", &url, "--json"]).json();
    assert_eq!((&list[0]["recording"], &list[0]["complete"]), (&"one".into(), &true.into()), "{list}");
    assert_eq!(list.as_array().unwrap().len(), 1, "{list}");
    let counted = stored(&["query", &url, "SELECT count() FROM requests WHERE recording = 'one'"]);
    let requests = pushed["tables"]["requests"]["rows"].to_string();
    assert_eq!(counted.stdout.lines().nth(1), Some(requests.as_str()), "{}", counted.stdout);

    let address = format!("{url}/one");
    let (there, here) = (diagnosed(&address), diagnosed(&folder.display().to_string()));
    assert_eq!(there.stdout, here.stdout, "the verdict on the store's recording");
    assert!(there.stderr.contains("rows fetched from"), "{}", there.stderr);

    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy");
    stored(&["pull", &address, &copy.display().to_string()]);
    assert_equal(&server, &copy, &["one"]);
    assert_eq!(
        std::fs::read(copy.join("manifest.json")).unwrap(),
        std::fs::read(folder.join("manifest.json")).unwrap()
    );
    assert_eq!(diagnosed(&copy.display().to_string()).stdout, here.stdout, "the verdict on the copy");
    let refused = store(&["pull", &address, &copy.display().to_string()]);
    assert_eq!(refused.code(), Some(2), "a folder that is there: {}", refused.stderr);

    // Another recording cannot take the name.
    let other = store(&["push", &fixture("demo-fixed").display().to_string(), &url, "--as", "one"]);
    assert_eq!(other.code(), Some(2), "{}", other.stderr);
    assert!(other.stderr.contains("another recording one") && other.stderr.contains("--as NAME"), "{}", other.stderr);
}

#[test]
fn there_and_back_on_debian() {
    there_and_back(Kind::Debian);
}

#[test]
fn there_and_back_on_the_engine() {
    there_and_back(Kind::Engine);
}

/// By `init --ttl`, and what is gone is said.
#[test]
fn the_server_removes_rows_that_are_too_old() {
    let Some(server) = Server::start(Kind::Engine) else { return };
    let (dir, url) = (tempfile::tempdir().unwrap(), server.url(DATABASE));
    stored(&["init", &url, "--ttl", "90"]);
    let (old, fresh) = (dir.path().join("old"), dir.path().join("fresh"));
    let now = clock::now_ns();
    record(&old, &["x"; 3], now - 100 * DAY_NS);
    record(&fresh, &["x"; 3], now - 80 * DAY_NS);
    push(&fresh, &url, "fresh");
    // The server may be quicker than the push, which then misses them.
    let pushed = store(&["push", &old.display().to_string(), &url]);
    assert!(pushed.code() == Some(0) || pushed.stderr.contains("by a TTL or by hand"), "{}", pushed.stderr);
    let client = Client::connect(&Address::parse(&url).unwrap()).unwrap();
    client.execute(&Statement::new("OPTIMIZE TABLE events FINAL")).unwrap();
    assert_eq!(server.ask(DATABASE, "SELECT groupUniqArray(recording), count() FROM events"), "['fresh']\t3");
    let copy = dir.path().join("copy").display().to_string();
    let refused = store(&["pull", &format!("{url}/old"), &copy]);
    assert_eq!(refused.code(), Some(2), "{}", refused.stdout);
    stored(&["pull", &format!("{url}/fresh"), &copy]);
}
