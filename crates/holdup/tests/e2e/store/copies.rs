//! A recording in the store is the one in the folder: its rows, its verdict, its copy.

use super::server::Kind;
use super::{DATABASE, assert_equal, fixture, push, store, stored, with_tables};
use crate::program::{Finished, finish, holdup};

const RECORDING: &str = "hidden-queue-faulty";

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
