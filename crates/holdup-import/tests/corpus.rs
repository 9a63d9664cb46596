//! A corpus of pasted outputs: `corpus/*.txt`. Each case has its text and what holdup must make of
//! it: exact values with their units, or the lines that it must name as not understood. Every case
//! is read in several disguises, which must not change a value.
//!
//! A case begins with `=== NAME`, its expectations begin with `--- `:
//!
//! - `METRIC{label=value,…} = VALUE`: the last sample of this series, `-` for a series without samples
//! - `setting NAME = VALUE`, `session FIELD = VALUE` (of the first) or `session FIELD@ID = VALUE`,
//!   `statement …`, `plan …`, `thread …`
//! - `event KIND{label=value,…} = SECONDS`: the time of an event, in seconds of the day
//! - `kinds = A, B`, `unread = NUMBERS`, `note = PART`

use holdup_import::text::{Pasted, Understood};

/// 2026-11-26 00:00:00 UTC.
const DAY: i64 = 1_795_651_200_000_000_000;

/// Cases that the corpus has at least.
const CASES_MIN: usize = 300;

struct Case<'t> {
    name: &'t str,
    text: String,
    expected: Vec<&'t str>,
}

fn cases(file: &str) -> Vec<Case<'_>> {
    let one = |part| {
        let (name, rest): (&str, &str) = str::split_once(part, '\n').unwrap_or((part, ""));
        let mut text = String::new();
        let mut expected = Vec::new();
        for line in rest.lines() {
            match line.strip_prefix("--- ") {
                Some(words) => expected.push(words),
                None if expected.is_empty() => text.extend([line, "\n"]),
                None => assert!(line.is_empty(), "{name}: {line} after its expectations"),
            }
        }
        Case { name: name.trim(), text, expected }
    };
    file.split("=== ").skip(1).map(one).collect()
}

fn read(bytes: &[u8]) -> Understood {
    let mut pasted = Pasted::new(None);
    pasted.read("paste", bytes, DAY);
    pasted.finish()
}

/// `{a=b,c=d}`
fn labels(text: &str) -> Vec<(String, String)> {
    let inner = text.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}')).map_or("", |(inner, _)| inner);
    inner.split(',').filter_map(|pair| pair.split_once('=')).map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
}

fn as_text(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}

/// The first session, or the one with the id behind `@`.
fn session<'a>(all: &'a Understood, field: &str) -> Option<&'a holdup_recording::rows::Session> {
    match field.split_once('@') {
        Some((_, id)) => all.batch.sessions.iter().find(|row| row.session_id.to_string() == id),
        None => all.batch.sessions.first(),
    }
}

/// What was read, for the words on the left of an expectation.
fn found(all: &Understood, what: &str) -> String {
    let none = || "-".to_owned();
    let pairs = labels(what);
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let name = what.split('{').next().unwrap();
    let text = |text: &Option<holdup_recording::Text>| text.as_ref().map_or_else(none, |text| text.as_str().to_owned());
    match what.split_once(' ') {
        Some(("setting", name)) => {
            all.batch.settings.iter().find(|row| row.name == name).map_or_else(none, |row| row.value.clone())
        }
        Some(("event", rest)) => {
            let kind = rest.split('{').next().unwrap();
            let event = all.batch.events.iter().find(|row| row.kind == kind && row.labels.contains(&pairs));
            event.map_or_else(none, |row| as_text((row.observed_at - DAY) as f64 / 1e9))
        }
        Some(("session", "count")) => all.batch.sessions.len().to_string(),
        Some(("session", field)) => {
            session(all, field).map_or_else(none, |row| match field.split('@').next().unwrap() {
                "blocked_by" => row.blocked_by.map_or_else(none, |id| id.to_string()),
                "id" => row.session_id.to_string(),
                "state" => text(&row.state),
                "command" => row.command.as_str().to_owned(),
                "true_state" => row.true_state.as_str().to_owned(),
                "age" => row.age_ns.map_or_else(none, |ns| as_text(ns as f64 / 1e9)),
                "digest" => text(&row.digest_text),
                "user" => text(&row.user),
                "client" => text(&row.client),
                "database" => text(&row.database),
                _ => panic!("{field}"),
            })
        }
        Some(("statement", field)) => all.batch.statements.first().map_or_else(none, |row| match field {
            "digest" => row.digest_text.clone(),
            "calls" => row.calls.to_string(),
            "seconds" => as_text(row.duration_ns as f64 / 1e9),
            "rows_sent" => row.rows_sent.to_string(),
            "rows_affected" => row.rows_affected.to_string(),
            "rows_examined" => row.rows_examined.to_string(),
            "no_index" => row.no_index.to_string(),
            "disk_tables" => row.temporary_disk_tables.to_string(),
            _ => panic!("{field}"),
        }),
        Some(("plan", field)) => all.batch.plans.first().map_or_else(none, |row| {
            let tree = holdup_recording::plan::Node::from_json(&row.plan).unwrap();
            let most = tree
                .all()
                .into_iter()
                .max_by(|a, b| a.rows_removed.unwrap_or(0.0).total_cmp(&b.rows_removed.unwrap_or(0.0)));
            let worst = most.cloned().unwrap_or_default();
            match field {
                "kind" => row.kind.clone(),
                "digest" => row.digest_text.clone(),
                "structure" => tree.structure(),
                "seconds" => row.duration_ns.map_or_else(none, |ns| as_text(ns as f64 / 1e9)),
                "removes" => format!("{} {}", worst.name(), as_text(worst.rows_removed.unwrap_or(0.0))),
                "expects" => as_text(worst.rows_estimated.unwrap_or(-1.0)),
                "spills" => as_text(tree.all().iter().filter_map(|node| node.spilled_bytes).sum()),
                _ => panic!("{field}"),
            }
        }),
        Some(("thread", field)) => all.batch.threads.first().map_or_else(none, |row| match field {
            "process" => row.process.clone(),
            "state" => row.state.clone(),
            "wchan" => row.wchan.clone().unwrap_or_else(none),
            "stack" => row.stack.clone().unwrap_or_else(none),
            "count" => row.count.to_string(),
            _ => panic!("{field}"),
        }),
        _ if what == "kinds" => all.parts.iter().map(|part| part.kind).collect::<Vec<_>>().join(", "),
        _ if what == "unread" => all.unread.iter().map(|line| line.line.to_string()).collect::<Vec<_>>().join(" "),
        _ => {
            let mut rows = all.batch.samples.iter().filter(|row| row.metric == name && row.labels.contains(&pairs));
            rows.next_back().map_or_else(none, |row| as_text(row.value))
        }
    }
}

/// The case in clothes that a terminal, a mail or another system gives it.
fn disguises(case: &Case<'_>) -> Vec<(&'static str, Vec<u8>)> {
    let plain = case.text.clone();
    let is_plain_only = case.expected.contains(&"plain");
    let mut all = vec![("plain", plain.clone().into_bytes())];
    if !is_plain_only {
        let coloured: String = plain
            .lines()
            .map(|line| format!("\u{1b}[0;32m{line}\u{1b}[0m\u{1b}[K\n").replace("\u{1b}[0;32m\u{1b}[0m", ""))
            .collect();
        all.push(("CRLF", plain.replace('\n', "\r\n").into_bytes()));
        all.push(("colours", coloured.into_bytes()));
        all.push((
            "trailing spaces",
            plain.lines().map(|line| format!("{line}   \n")).collect::<String>().into_bytes(),
        ));
        all.push(("a line mark at the start", format!("\u{feff}{plain}").into_bytes()));
    }
    all
}

#[test]
fn every_case_has_its_exact_values() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files: Vec<String> = paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let cases: Vec<Case<'_>> = files.iter().flat_map(|file| cases(file)).collect();
    let mut wrong = Vec::new();
    let mut read_texts = 0;
    for case in &cases {
        assert!(!case.expected.is_empty(), "{} expects nothing", case.name);
        for (disguise, bytes) in disguises(case) {
            read_texts += 1;
            let all = read(&bytes);
            let unread = found(&all, "unread");
            let names_unread = case.expected.iter().any(|line| line.starts_with("unread"));
            if !names_unread && !unread.is_empty() {
                wrong.push(format!("{} ({disguise}): lines {unread} were not understood", case.name));
            }
            for line in case.expected.iter().filter(|line| **line != "plain") {
                let (what, expected) = line.split_once(" = ").unwrap_or((line, ""));
                let is_right = match what {
                    "note" => all.notes.iter().any(|note| note.contains(expected)),
                    _ => found(&all, what) == expected,
                };
                if !is_right {
                    let got = if what == "note" { format!("{:?}", all.notes) } else { found(&all, what) };
                    wrong.push(format!("{} ({disguise}): {what} is {got}, not {expected}", case.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {read_texts} texts:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases.len() >= CASES_MIN, "{} cases", cases.len());
}
