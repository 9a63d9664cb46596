//! Names and values of other people: quotes, NUL, statements, and a text of 10 MB come back as they went in, and a name that is
//! a condition removes only its own recording.

use std::path::Path;

use holdup_recording::manifest::Host;
use holdup_recording::rows::{Event, Setting};
use holdup_recording::writer::write_table;
use holdup_recording::{Labels, Manifest, RunState, clock};

use super::server::Kind;
use super::{DATABASE, assert_equal, percent, push, stored, with_tables};

const NAMES: [&str; 5] =
    ["plain", "plain' OR '1'='1", "a\\'; DROP TABLE events --\n", "\u{2028}{recording:String}`\"%00", "nul\0\t\r"];

const VALUES: [&str; 6] =
    ["", "'; DROP TABLE events; --", "\\N", "\0\n\t\r\u{1}", "`\"\\'\u{10ffff}", "{a:String} %00 $$"];

/// Makes a recording of these values that began at `now`.
pub fn record(dir: &Path, values: &[&str], now: i64) {
    let mut manifest = Manifest::starting(VALUES[1], now, Host::default());
    (manifest.state, manifest.ended_at) = (RunState::Complete, Some(now + 1_000));
    let event = |(at, text): (usize, &&str)| Event {
        observed_at: now + at as i64,
        source: VALUES[at % VALUES.len()].to_owned(),
        kind: "mark".to_owned(),
        labels: Labels::new([("a'\0", text.chars().take(9).collect::<String>())]),
        text: (*text).to_owned(),
    };
    std::fs::create_dir(dir).unwrap();
    write_table(dir, [values.iter().enumerate().map(event).collect::<Vec<Event>>()]).unwrap();
    let setting = |(at, value): (usize, &&str)| Setting {
        observed_at: now + at as i64,
        name: VALUES[1].to_owned(),
        value: (*value).to_owned(),
        ..Setting::default()
    };
    write_table(dir, [values.iter().enumerate().map(setting).collect::<Vec<Setting>>()]).unwrap();
    manifest.write(dir).unwrap();
}

fn names_and_values(kind: Kind) {
    let Some(server) = with_tables(kind) else { return };
    let (dir, url) = (tempfile::tempdir().unwrap(), server.url(DATABASE));
    let folder = dir.path().join("hostile");
    record(&folder, &VALUES, clock::now_ns());
    for name in NAMES {
        if name.contains('\0') {
            // No argument holds a NUL, but an address can say it.
            stored(&["push", &folder.display().to_string(), &format!("{url}/{}", percent(name))]);
        } else {
            push(&folder, &url, name);
        }
    }
    assert_equal(&server, &folder, &NAMES);
    let list = stored(&["ls", &url, "--json"]).json();
    let mut listed: Vec<&str> = list.as_array().unwrap().iter().map(|one| one["recording"].as_str().unwrap()).collect();
    let mut names = NAMES;
    listed.sort_unstable();
    names.sort_unstable();
    assert_eq!(listed, names);
    // Nothing that a terminal would obey.
    let shown = stored(&["ls", &url]).stdout;
    assert_eq!(shown.lines().count(), NAMES.len(), "{shown:?}");

    // A text of 10 MB, there and back.
    let (long, back) = (dir.path().join("long"), dir.path().join("back"));
    record(&long, &["x'\0\u{e4}".repeat(2_000_000).as_str()], clock::now_ns());
    push(&long, &url, "long");
    stored(&["pull", &format!("{url}/long"), &back.display().to_string()]);
    assert_equal(&server, &long, &["long"]);
    assert_equal(&server, &back, &["long"]);
    stored(&["rm", &format!("{url}/long")]);
    wait_for(|| stored(&["ls", &url]).stdout.lines().count() == NAMES.len());

    let copy = dir.path().join("copy");
    stored(&["pull", &format!("{url}/{}", percent(NAMES[4])), &copy.display().to_string()]);
    assert_equal(&server, &copy, &[NAMES[0]]);

    stored(&["rm", &format!("{url}/{}", percent(NAMES[1]))]);
    wait_for(|| stored(&["ls", &url]).stdout.lines().count() == NAMES.len() - 1);
    assert_equal(&server, &folder, &[NAMES[0], NAMES[2], NAMES[3], NAMES[4]]);
}

/// Debian's server removes in the background.
fn wait_for(is_so: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while !is_so() {
        assert!(std::time::Instant::now() < deadline, "the recording is not removed");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

#[test]
fn names_and_values_on_debian() {
    names_and_values(Kind::Debian);
}

#[test]
fn names_and_values_on_the_engine() {
    names_and_values(Kind::Engine);
}
