//! Redis' slow log as its client prints it: entries of numbered parts, the fourth of which are the command's words. Keys and
//! values are left out.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use holdup_recording::words::ms;
use holdup_recording::{Labels, events};
use regex::Regex;

use super::{Context, Kind, Line, number, redis, text};

pub(super) const KIND: Kind = Kind::lines("SLOWLOG GET", |lines| entry(lines).is_some(), read);

/// Lines of the longest entry: a command may have thousands of words.
const LINES: usize = 5_000;

struct Entry {
    /// When it began, seconds since 1970.
    at_s: f64,
    took_ms: f64,
    command: String,
    used: usize,
}

/// The integer of a part: ` 1) 1) (integer) 731`, `    2) (integer) 1693922468`.
fn part(line: &str, place: u8) -> Option<f64> {
    let (before, value) = line.split_once("(integer) ")?;
    let before = before.trim();
    let is_place = before.strip_suffix(')')?.rsplit([' ', ')']).next()? == place.to_string();
    number(value.trim()).filter(|_| is_place)
}

/// The entry that begins here.
fn entry(lines: &[Line]) -> Option<Entry> {
    static BEGIN: OnceLock<Option<Regex>> = OnceLock::new();
    let begins = |line: &str| {
        BEGIN
            .get_or_init(|| Regex::new(r"^\s*\d+\) 1\) \(integer\) \d+$").ok())
            .as_ref()
            .is_some_and(|of| of.is_match(line))
    };
    if !begins(text(lines, 0).trim_end()) {
        return None;
    }
    let (at_s, took_us) = (part(text(lines, 1), 2)?, part(text(lines, 2), 3)?);
    let word = text(lines, 3).trim().strip_prefix("4) 1) ")?.trim_matches('"');
    let is_name = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let command = if is_name(word) && word.len() <= 40 { word.to_ascii_uppercase() } else { "?".to_owned() };
    let rest = lines.iter().skip(4).take(LINES);
    let used = 4 + rest.take_while(|line| !line.is_blank() && !begins(line.text.trim_end())).count();
    Some(Entry { at_s, took_ms: took_us / 1e3, command, used })
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let mut used = 0;
    let mut commands: BTreeMap<String, (usize, f64, i64)> = BTreeMap::new();
    while let Some(entry) = lines.get(used..).and_then(entry) {
        let (count, longest_ms, last) = commands.entry(entry.command).or_default();
        *count += 1;
        *longest_ms = longest_ms.max(entry.took_ms);
        *last = (*last).max((entry.at_s.min(4e9) * 1e9) as i64);
        used += entry.used;
    }
    for (command, (count, longest_ms, at)) in commands {
        context.out.setting(at, redis::SOURCE, format!("slowlog.{command}"), count.to_string());
        let text = format!("{command} kept the server's one thread for up to {}", ms(longest_ms));
        let labels = Labels::new([("error", events::SLOW_COMMAND)]).with(events::COUNT, count.to_string());
        context.out.event(at, events::ERROR, text, labels);
    }
    used.max(1)
}

#[cfg(test)]
mod tests {
    use super::super::super::paste;
    use super::*;

    #[test]
    fn entries_are_counted_by_command_without_keys() {
        let log = " 1) 1) (integer) 71\n    2) (integer) 1693922468\n    3) (integer) 14871\n    4) 1) \"keys\"\n       2) \"canary:*\"\n    5) \"\"\n 2) 1) (integer) 70\n    2) (integer) 1693919475\n    3) (integer) 15702\n    4) 1) \"KEYS\"\n       2) \"canary:*\"\n";
        let mut context = Context::default();
        let lines = paste::lines(log.as_bytes(), |_| false);
        assert_eq!(read(&lines, &mut context), lines.len());
        let event = &context.out.batch.events[0];
        assert_eq!(
            (event.text.as_str(), event.labels.get(events::COUNT)),
            ("KEYS kept the server's one thread for up to 15.7 ms", Some("2"))
        );
        assert!(entry(&paste::lines(b" 1) 1) (integer) 3\n", |_| false)).is_none());
    }
}
