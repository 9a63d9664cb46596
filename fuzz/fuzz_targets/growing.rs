//! A log that grows: the first byte says which kind, the second how long the pieces are in which it is written, the rest is the log. Followed
//! through all of them, and gone on with from a state, it has not a record more than read at once, and of logs that end with a
//! whole record not one less.
#![no_main]

use std::io::Write as _;

use holdup_logs::digest::follow::Follow;
use holdup_logs::digest::format::Format;
use holdup_logs::digest::postgres::entry::tie;
use holdup_logs::digest::resume::State;
use holdup_logs::digest::run::{Options, run, run_on};
use holdup_logs::digest::tally::Tally;
use libfuzzer_sys::fuzz_target;

/// Kinds of logs of which a record is a line or ends with one.
const KINDS: [Format; 3] = [Format::SlowLog, Format::PostgresJson, Format::PostgresCsv];

fuzz_target!(|input: &[u8]| {
    let [first, second, log @ ..] = input else { return };
    let format = KINDS[usize::from(*first) % KINDS.len()];
    let options = Options { format: Some(format), ..Options::default() };
    // In memory, where there is a place for it.
    let memory = std::path::PathBuf::from("/dev/shm");
    let root = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = root.join(format!("holdup-growing-{}-{:?}", std::process::id(), std::thread::current().id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("log");
    std::fs::write(&path, b"").expect("a file");
    let empty = || Tally::new(format.dialect(), options.identity, options.select.clone());
    let mut state = State::default();
    let mut follow = Follow::new(std::slice::from_ref(&path), &options, &state).expect("it is there");
    let (mut followed, mut resumed) = (empty(), 0);
    let pieces = log.len() / (usize::from(*second) + 1);
    for piece in log.chunks(pieces.max(64)) {
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("a file");
        file.write_all(piece).expect("room");
        drop(file);
        let _ = follow.poll(&mut followed);
        let _ = follow.poll(&mut followed);
        if let Ok(outcome) = run_on(std::slice::from_ref(&path), &options, Some(&mut state)) {
            resumed += outcome.tally.events;
        }
    }
    follow.finish(&mut followed, &mut State::default());
    tie(&mut followed);
    let whole = run(std::slice::from_ref(&path), &options).map_or(0, |outcome| outcome.tally.events);
    let lines = log.iter().filter(|byte| **byte == b'\n').count() as u64;
    assert!(followed.events <= lines + 2 && resumed <= lines + 2, "{} and {resumed} of {lines} lines", followed.events);
    // A line is a record, and whole when it ends.
    if format == Format::PostgresJson && log.ends_with(b"\n") {
        assert_eq!((followed.events, resumed), (whole, whole));
    }
    let _ = std::fs::remove_dir_all(&folder);
});
