//! Threads of the server that wait for a latch: where in the code, and for how long.

use std::collections::BTreeMap;

use holdup_recording::rows::Event;
use holdup_recording::{Labels, events};

use crate::text::kinds::processlist::SOURCE;
use crate::text::kinds::{Context, Line, number};

/// The threads at one place in the code.
#[derive(Default)]
struct Place {
    threads: usize,
    longest_s: f64,
    latch: Option<String>,
}

/// `--Thread 140 has waited at row0purge.cc line 862 for 241.00 seconds the semaphore:`
fn waits(text: &str) -> Option<(String, f64)> {
    let (_, rest) = text.split_once("--Thread ")?.1.split_once(" has waited at ")?;
    let (place, rest) = rest.split_once(" for ")?;
    let seconds = number(rest.split_whitespace().next()?).filter(|seconds| (0.0..1e8).contains(seconds))?;
    Some((place.trim().replace(" line ", ":"), seconds))
}

/// Whether a line of the server's log is a wait, or belongs to one: the log repeats this part of the status
/// while latches are waited for.
pub(super) fn is_logged(line: &str) -> bool {
    const DETAILS: [&str; 9] = [
        "A long semaphore wait",
        "-lock on RW-latch",
        "-lock on RW-lock",
        "Mutex at 0x",
        "a writer (thread id",
        "number of readers ",
        "Last time read locked",
        "Last time write locked",
        "Holder thread ",
    ];
    waits(line).is_some() || DETAILS.iter().any(|words| line.contains(words))
}

/// The latch in the line below: the mutex's name, or where it was made.
fn latch(text: &str) -> Option<String> {
    let name = text.strip_prefix("Mutex ").filter(|rest| !rest.starts_with("at "))?.split([' ', ',']).next();
    name.map(str::to_owned)
}

fn made_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("created ")?;
    let rest = rest.trim_start_matches("in ").trim_start_matches("file ");
    let mut words = rest.split([' ', ',']);
    let file = words.next()?;
    match words.next() {
        Some("line") => Some(format!("{file}:{}", words.next()?)),
        _ => Some(file.to_owned()),
    }
}

pub(super) fn read(lines: &[Line], at: i64, context: &mut Context) {
    let mut places: BTreeMap<String, Place> = BTreeMap::new();
    for (number, line) in lines.iter().enumerate() {
        let Some((place, seconds)) = waits(line.text.trim()) else { continue };
        let below = lines.get(number + 1).map_or("", |line| line.text.trim());
        let place = places.entry(place).or_default();
        place.threads += 1;
        place.longest_s = place.longest_s.max(seconds);
        place.latch = place.latch.take().or_else(|| latch(below).or_else(|| made_in(below)));
    }
    for (name, Place { threads, longest_s, latch }) in places {
        let text = format!("{threads} threads of InnoDB waited for a latch at {name}, for up to {longest_s:.0} s");
        let mut labels = Labels::new([
            ("place", name),
            ("seconds", format!("{longest_s:.0}")),
            (events::COUNT, threads.to_string()),
        ]);
        if let Some(latch) = latch {
            labels = labels.with("latch", latch);
        }
        let (source, kind) = (SOURCE.to_owned(), events::SEMAPHORE_WAIT.to_owned());
        context.out.batch.events.push(Event { observed_at: at, source, kind, text, labels });
    }
}
