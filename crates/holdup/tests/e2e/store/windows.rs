//! A window of a long recording: what is judged of the store's is byte for byte what is judged of the folder's, and only the
//! rows of the window and next to it are fetched.

use std::path::Path;

use holdup_recording::Recording;
use holdup_store::{Address, Client, Statement};

use super::server::Kind;
use super::{DATABASE, fixture, push, with_tables};
use crate::program::{Finished, finish, holdup};

#[path = "../../../../holdup-diagnose/tests/judge/long/grow.rs"]
mod grow;

/// Long enough that some tables have several segments, and that a window leaves much of it out.
const SECONDS: i64 = 170;
const SECONDS_ENGINE: i64 = 90;

fn done(words: &[&str]) -> Finished {
    let done = finish(holdup(words), 120);
    assert_eq!(done.code(), Some(0), "{words:?}: {}", done.stderr);
    done
}

/// The answer on the store's recording, which is that on the folder; how many rows it took.
fn both(command: &str, folder: &str, url: &str, more: &[&str]) -> (u64, String) {
    let there = done(&[&[command, "--json", url], more].concat());
    assert_eq!(there.stdout, done(&[&[command, "--json", folder], more].concat()).stdout, "{more:?}");
    let line = there.stderr.lines().find(|line| line.contains(" rows fetched from ")).unwrap();
    let rows = line.split_once(": ").unwrap().1.split_once(' ').unwrap().0.replace(',', "");
    (rows.parse().unwrap(), there.stdout)
}

fn reports_and_comparisons(dir: &Path, folder: &str, url: &str, window: &[&str]) {
    let [here, there] = ["here.html", "there.html"].map(|name| dir.join(name));
    for (recording, file) in [(folder, &here), (url, &there)] {
        done(&[&["report", recording, "-o", &file.display().to_string()], window].concat());
    }
    assert!(std::fs::read(&here).unwrap() == std::fs::read(&there).unwrap(), "the reports differ");
    let compared = |recording: &str| {
        let words = ["compare", "--json", "--across-machines", &format!("a={recording}"), &format!("b={folder}")];
        done(&[&words[..], window].concat()).stdout.replace(recording, "RECORDING")
    };
    assert_eq!(compared(url), compared(folder).replace(folder, "RECORDING"));
}

fn a_window(kind: Kind, seconds: i64) {
    let Some(server) = with_tables(kind) else { return };
    let dir = tempfile::tempdir().unwrap();
    let long = dir.path().join("long");
    let made = grow::Grown::of(&fixture("hidden-queue-fixed"), &fixture("hidden-queue-faulty"), seconds).unwrap();
    made.write(&long).unwrap();
    push(&long, &server.url(DATABASE), "long");
    let (folder, url) = (long.display().to_string(), format!("{}/long", server.url(DATABASE)));
    let manifest = Recording::manifest(&long).unwrap();
    assert!(manifest.tables["samples"] > 65_536, "{:?}", manifest.tables);

    let all = manifest.tables.values().sum::<u64>();
    let (from, to) = (format!("{}s", made.fault().start - 10), format!("{}s", made.fault().start + 10));
    let window = ["--from", &from, "--to", &to];
    let (rows, verdict) = both("diagnose", &folder, &url, &window);
    assert!(verdict.contains("\"culprit\": \"thread_pool_queue\""), "{verdict}");
    assert!(rows < all * 3 / 4, "{rows} of {all} rows for 20 s of {seconds}");
    let (rows, _) = both("diagnose", &folder, &url, &["--last", "5s"]);
    assert!(rows < all * 2 / 3, "{rows} of {all} rows for the last 5 s");
    if kind == Kind::Debian {
        reports_and_comparisons(dir.path(), &folder, &url, &window);
    } else {
        // A row that is gone is missed, also next to the window.
        let client = Client::connect(&Address::parse(&server.url(DATABASE)).unwrap()).unwrap();
        let removal = Statement::new("ALTER TABLE samples DELETE WHERE row = 5").setting("mutations_sync", 2);
        client.execute(&removal).unwrap();
        let refused = finish(holdup(["diagnose", &url, "--last", "5s"]), 60);
        assert_eq!(refused.code(), Some(2), "{}", refused.stdout);
        assert!(refused.stderr.contains("of a segment of samples of long: rows were removed"), "{}", refused.stderr);
    }
}

#[test]
fn a_window_is_fetched_alone_on_debian() {
    a_window(Kind::Debian, SECONDS);
}

#[test]
fn a_window_is_fetched_alone_on_the_engine() {
    a_window(Kind::Engine, SECONDS_ENGINE);
}
