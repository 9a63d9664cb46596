//! What a sentence that asks for sources says: `--watch A of the app, or --watch B, with C`. Each source with
//! the words behind it, so that those that are watched can be left out wherever they stand.

use holdup_recording::manifest::Coverage;

/// Sources of which one is enough: if it is watched, asking for it again says nothing. Of processes
/// and packets there may be others to watch.
const ENOUGH: &[&str] = &[
    "host",
    "tracepoints",
    "otlp",
    "mysql://",
    "postgresql://",
    "mongodb://",
    "pgbouncer://",
    "proxysql://",
    "server:",
];

/// Kinds of databases: where any will do, the one that is watched is meant.
const DATABASES: &[&str] = &["mysql://", "postgresql://", "mongodb://"];

/// Beginnings of the words behind a source that mean another one than that is watched.
const ANOTHER: &[&str] = &["on ", "of a newer ", "of the replica"];

/// A source, and what is said of it.
pub(super) struct Asked<'e> {
    /// As for `--watch`.
    pub address: &'e str,
    /// The words behind it, up to the next source.
    pub rest: &'e str,
    /// Those, or those of the next source that it is an alternative to: `mysql://… or postgresql://… of the
    /// replica` means the replica both times.
    meant: &'e str,
    /// What joins it to the source before: `or`, `and`, `beside`; empty for the first.
    joined_by: &'e str,
    /// From here on, in words as they are.
    onward: &'e str,
}

/// The sources that `enable` asks for, in order; empty unless it begins with one.
pub(super) fn read(enable: &str) -> Vec<Asked<'_>> {
    let mut starts: Vec<(usize, usize)> = Vec::new();
    let (mut at, mut before) = (0, "");
    for word in enable.split(' ') {
        let address = word.trim_end_matches([',', ';', ')']);
        let is_named = before == "--watch" && !address.is_empty();
        if is_named || (!starts.is_empty() && is_address(address)) {
            starts.push((at, at + address.len()));
        }
        (at, before) = (at + word.len() + 1, word);
    }
    if !enable.starts_with("--watch ") {
        return Vec::new();
    }
    let mut joined_by = "";
    let ends = starts.iter().skip(1).map(|(from, _)| *from).chain([enable.len()]);
    let each = starts.iter().zip(ends).map(|((from, to), end)| {
        let words = enable[*to..end].trim_start_matches([' ', ',', ';']).trim_end();
        let words = words.strip_suffix("--watch").unwrap_or(words).trim_end();
        let joiner = ["or", "and", "beside"].into_iter().find(|joiner| {
            end < enable.len() && words.strip_suffix(joiner).is_some_and(|rest| rest.is_empty() || rest.ends_with(' '))
        });
        let rest = joiner.map_or(words, |joiner| &words[..words.len() - joiner.len()]);
        let rest = rest.trim_end_matches([' ', ',', ';']);
        let asked = Asked { address: &enable[*from..*to], rest, meant: rest, joined_by, onward: &enable[*from..] };
        joined_by = joiner.unwrap_or("and");
        asked
    });
    let mut all: Vec<Asked<'_>> = each.collect();
    for at in (1..all.len()).rev() {
        if all[at].joined_by == "or" && all[at - 1].rest.is_empty() {
            all[at - 1].meant = all[at].meant;
        }
    }
    all
}

/// `mysql://USER@HOST:PORT`, `pid:N`.
fn is_address(word: &str) -> bool {
    let kind = word.split_once(':').filter(|(_, rest)| !rest.is_empty());
    kind.is_some_and(|(kind, _)| {
        kind.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c == '-') && !kind.is_empty()
    })
}

impl Asked<'_> {
    /// The watched source that it is; none where another one is meant.
    pub fn watched<'c>(&self, coverage: &'c [Coverage]) -> Option<&'c Coverage> {
        let kind = ENOUGH.iter().find(|kind| self.address.starts_with(**kind))?;
        if self.is_another() {
            return None;
        }
        let is_it = |entry: &&Coverage| match kind.ends_with([':', '/']) {
            true => entry.source.starts_with(kind),
            false => {
                let (source, address) = (&entry.source, self.address);
                source == address || source.starts_with(&format!("{kind}:")) && address == *kind
            }
        };
        coverage.iter().filter(|entry| !entry.source.contains(' ')).find(is_it)
    }

    fn is_another(&self) -> bool {
        ANOTHER.iter().any(|begins| self.meant.starts_with(begins))
    }

    /// Whether it is a database.
    pub fn is_database(&self) -> bool {
        DATABASES.iter().any(|kind| self.address.starts_with(kind))
    }
}

/// Those of `asked` that no watched source stands for; none if no source among them is watched.
pub(super) fn others<'a, 'e>(asked: &'a [Asked<'e>], coverage: &[Coverage]) -> Option<Vec<&'a Asked<'e>>> {
    let has = |asked: &&Asked<'_>| asked.watched(coverage).is_some();
    let has_database = asked.iter().filter(has).any(Asked::is_database);
    let is_there = |one: &&Asked<'_>| has(one) || has_database && one.is_database() && !one.is_another();
    asked.iter().any(|one| has(&one)).then(|| asked.iter().filter(|one| !is_there(one)).collect())
}

/// `others` of `asked` as a sentence that asks for them.
pub(super) fn say(others: &[&Asked<'_>], asked: &[Asked<'_>]) -> String {
    if let [first, ..] = others
        && asked.iter().rev().take(others.len()).all(|one| others.iter().any(|other| other.onward == one.onward))
    {
        return format!("--watch {}", first.onward);
    }
    let one = |(at, asked): (usize, &&Asked<'_>)| {
        let joiner = match asked.joined_by {
            _ if at == 0 => String::new(),
            "or" => " or ".to_owned(),
            _ => ", and ".to_owned(),
        };
        let rest = if asked.rest.is_empty() { String::new() } else { format!(" {}", asked.rest) };
        format!("{joiner}--watch {}{rest}", asked.address)
    };
    others.iter().enumerate().map(one).collect()
}
