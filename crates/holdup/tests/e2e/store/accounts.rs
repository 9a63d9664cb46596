//! Who may do what: a reader needs SELECT alone, a writer INSERT alone, and a refused account reads why and what to do.

use super::server::{Account, Kind, Server};
use super::{DATABASE, assert_equal, fixture, push, store, stored, with_tables};
use crate::program::{finish, free_port, holdup};

/// It is refused with one error that has all of `said`, and no password.
fn refused(words: &[&str], said: &[&str]) {
    let done = store(words);
    assert_eq!(done.code(), Some(2), "{words:?}: {}{}", done.stderr, done.stdout);
    for part in said {
        assert!(done.stderr.contains(part), "{words:?} does not say \"{part}\": {}", done.stderr);
    }
    assert_eq!(done.stderr.lines().count(), 1, "{words:?}: {}", done.stderr);
    for secret in ["r3aderW0rd", "wr1terW0rd", "wr0ngW0rd"] {
        assert!(!done.stderr.contains(secret), "{words:?}: {}", done.stderr);
    }
}

/// Reads by an account that may only read.
fn reads(server: &mut Server, folder: &str) {
    let url = server.url_for(Account::Reader, DATABASE);
    stored(&["ls", &url]);
    let done = finish(holdup(["diagnose", "--json", &format!("{url}/one")]), 120);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert_eq!(done.stdout, finish(holdup(["diagnose", "--json", folder]), 120).stdout);
    refused(&["push", folder, &url, "--as", "two"], &["docs/store.md lists the grants"]);
    refused(&["query", &url, "INSERT INTO events (recording) VALUES ('x')"], &["docs/store.md lists the grants"]);
    let wrong = url.replace("r3aderW0rd", "wr0ngW0rd");
    refused(&["ls", &wrong], &["HOLDUP_CLICKHOUSE_PASSWORD", "password_file=PATH"]);
}

/// Errors that do not depend on the account.
fn says_what_to_do(server: &Server, folder: &str) {
    refused(&["ls", &server.url("nowhere")], &["nowhere", "holdup store init URL"]);
    refused(&["push", folder, &server.url("nowhere")], &["nowhere", "holdup store init URL"]);
    refused(
        &["pull", &format!("{}/nothing", server.url(DATABASE)), "copy"],
        &["no recording nothing", "holdup store ls"],
    );
    let closed = format!("clickhouse://127.0.0.1:{}/{DATABASE}", free_port());
    refused(&["ls", &closed], &["refused", "is ClickHouse running there"]);
}

#[test]
fn a_reader_on_debian() {
    let Some(mut server) = with_tables(Kind::Debian) else { return };
    let folder = fixture("demo-fixed");
    push(&folder, &server.url(DATABASE), "one");
    reads(&mut server, &folder.display().to_string());
    says_what_to_do(&server, &folder.display().to_string());
}

#[test]
fn a_reader_and_a_writer_on_the_engine() {
    let Some(mut server) = with_tables(Kind::Engine) else { return };
    let folder = fixture("demo-fixed");
    says_what_to_do(&server, &folder.display().to_string());
    let url = server.url_for(Account::Writer, DATABASE);
    let first = push(&folder, &url, "one");
    assert_eq!(first["checked"], false, "{first}");
    // It cannot see what is there and sends all again.
    let second = push(&folder, &url, "one");
    assert_eq!(second["rows_sent"], first["rows_sent"], "{second}");
    refused(&["ls", &url], &["docs/store.md lists the grants"]);
    reads(&mut server, &folder.display().to_string());
    server.url_for(Account::All, DATABASE);
    assert_equal(&server, &folder, &["one"]);
}
