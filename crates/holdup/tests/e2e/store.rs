//! `holdup store` with real servers: Debian's ClickHouse of 2018 over its own HTTP, and the engine of 2026 behind
//! `labs/kit/clickhouse-engine.py`. What a unit test can see of statements and bytes is tested in `holdup-store`.

mod accounts;
mod breaks;
mod case;
mod cluster;
mod copies;
mod dashboard;
mod disturbed;
mod encrypted;
mod hostile;
mod live;
mod proxy;
mod senders;
mod server;
mod views;
mod windows;

use std::path::{Path, PathBuf};

use self::server::Server;
use crate::program::{Finished, finish, holdup, root};
use crate::python;

/// The database of the tests.
const DATABASE: &str = "kept";

/// A recording that every checkout has.
fn fixture(name: &str) -> PathBuf {
    root().join("fixtures").join(name)
}

/// Runs `holdup store` with these words, without a word on stderr but its own.
fn store(words: &[&str]) -> Finished {
    finish(holdup([&["store"], words].concat()), 120)
}

/// The same; it must succeed.
fn stored(words: &[&str]) -> Finished {
    let done = store(words);
    assert_eq!(done.code(), Some(0), "{words:?}: {}{}", done.stderr, done.stdout);
    done
}

/// Sends `folder` under `name`; what it says as JSON.
fn push(folder: &Path, url: &str, name: &str) -> serde_json::Value {
    stored(&["push", &folder.display().to_string(), url, "--as", name, "--json"]).json()
}

/// A server with the tables; none, with a reason, where it cannot be.
fn with_tables(kind: server::Kind) -> Option<Server> {
    let server = Server::start(kind)?;
    stored(&["init", &server.url(DATABASE)]);
    Some(server)
}

/// The rows of each recording in the store are those of the folder's Parquet files, in count and hash. Without Python it
/// says so and looks at nothing.
fn assert_equal(server: &Server, folder: &Path, recordings: &[&str]) {
    let port = server.port().to_string();
    let folder = folder.display().to_string();
    let names = recordings.iter().map(|name| percent(name));
    let words: Vec<String> = [port, DATABASE.to_owned(), folder].into_iter().chain(names).collect();
    python::check("stored.py", &words);
}

/// `text` with every byte that is not a letter or digit as `%XX`.
fn percent(text: &str) -> String {
    let escaped = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(escaped).collect()
}
