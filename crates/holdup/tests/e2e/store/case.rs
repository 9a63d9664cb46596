//! Recordings of one case lie under one name: `ls` shows them together, and `diagnose` judges all of them.

use serde_json::Value;

use super::server::Kind;
use super::{DATABASE, fixture, stored, with_tables};
use crate::fleet::apart::{Split, mark, split};
use crate::program::{finish, holdup};

/// A verdict without what the recordings are called.
fn judged(recordings: &[&str]) -> Value {
    let run = finish(holdup(["diagnose", "--json"].iter().chain(recordings)), 120);
    assert_eq!(run.code(), Some(0), "{}", run.stderr);
    let mut verdict = run.json();
    for host in verdict["fleet"]["hosts"].as_array_mut().unwrap() {
        host.as_object_mut().unwrap().remove("recording").unwrap();
    }
    verdict
}

#[test]
fn hosts_of_one_id_are_one_case_in_the_store() {
    let Some(server) = with_tables(Kind::Engine) else { return };
    let (dir, url) = (tempfile::tempdir().unwrap(), server.url(DATABASE));
    let parts = split(&fixture("hidden-queue-accounts").display().to_string(), dir.path(), &Split::default());
    let all = [&parts.app, &parts.database, &parts.generator].map(String::as_str);
    for part in all {
        mark(part, "case-7");
        stored(&["push", part, &url]);
    }
    let list = stored(&["ls", &url, "--json"]).json();
    let places = list.as_array().unwrap().iter().map(|one| (one["recording"].as_str(), one["host"].as_str()));
    let expected = ["app1", "db1", "gen1"].map(|host| (Some("case-7"), Some(host)));
    assert_eq!(places.collect::<Vec<_>>(), expected);
    let there = judged(&[&format!("{url}/case-7")]);
    assert_eq!(there["culprit"], "thread_pool_queue");
    assert_eq!(there, judged(&all));
}
