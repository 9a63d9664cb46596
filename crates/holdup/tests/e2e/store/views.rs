//! The views answer as a program does that reads the Parquet files with pandas.

use super::server::Kind;
use super::{DATABASE, fixture, push, stored, with_tables};
use crate::python;

/// A recording with the accounts of app and database by trace id.
const RECORDING: &str = "hidden-queue-accounts";

fn answer(kind: Kind) {
    let Some(server) = with_tables(kind) else { return };
    let (folder, url) = (fixture(RECORDING), server.url(DATABASE));
    push(&folder, &url, "one");
    // A view counts a row once, and keeps recordings apart.
    push(&folder, &url, "other");
    let port = server.port().to_string();
    python::check("views.py", &[&port, DATABASE, &folder.display().to_string(), "one"]);
    let all = stored(&["query", &url, "SELECT uniqExact(recording) FROM database_wait"]);
    assert_eq!(all.stdout.lines().nth(1), Some("2"), "{}", all.stdout);
}

#[test]
fn views_on_debian() {
    answer(Kind::Debian);
}

#[test]
fn views_on_the_engine() {
    answer(Kind::Engine);
}
