//! Lines of any log that say that something ran out: room on a disk (ENOSPC), file descriptors (EMFILE),
//! ports for outgoing connections (EADDRNOTAVAIL). MySQL waits until there is room on the disk, and
//! PostgreSQL fails the statement, or stops where it cannot write its log.

use holdup_recording::Labels;

use super::{Context, Kind, Line, clock, text};

pub(super) const KIND: Kind = Kind::lines("log: no space", recognises, read);

pub(super) const LIMITS: Kind = Kind::lines("log: limit reached", |lines| limit(text(lines, 0)).is_some(), read_limit);

/// What programs and the C library say of limits: the words, the event, and a sentence.
const REACHED: [(&str, &str, &str); 5] = [
    (
        "too many open files",
        "file_descriptors_exhausted",
        "a program could not open a file or a socket: it had too many",
    ),
    ("emfile", "file_descriptors_exhausted", "a program could not open a file or a socket: it had too many"),
    ("errno: 24 ", "file_descriptors_exhausted", "a program could not open a file or a socket: it had too many"),
    ("annot assign requested address", "ports_exhausted", "a client could not connect: no local port was left"),
    ("eaddrnotavail", "ports_exhausted", "a client could not connect: no local port was left"),
];

fn limit(line: &str) -> Option<(&'static str, &'static str)> {
    // Each runtime writes them in capitals of its own.
    let line = line.to_ascii_lowercase();
    // An address that is not this host's fails a server's start so.
    let is_server = line.contains("bind");
    let (_, event, sentence) = REACHED.iter().find(|(words, ..)| line.contains(words))?;
    (!is_server || *event != "ports_exhausted").then_some((*event, *sentence))
}

fn read_limit(lines: &[Line], context: &mut Context) -> usize {
    let Some((line, (event, sentence))) = lines.first().and_then(|line| Some((line, limit(&line.text)?))) else {
        return 1;
    };
    let at = at(line, context);
    context.out.event(at, event, sentence.to_owned(), Labels::none());
    1
}

/// What servers and the C library say.
const SAID: [&str; 11] = [
    "no space left on device",
    "disk is full writing",
    "enospc",
    "errno: 28 ",
    "errno 28 ",
    "disk quota exceeded",
    "there is not enough space on the disk",
    "flood stage disk watermark",
    "read-only-allow-delete",
    "disk resource limit alarm set",
    "low on resource: ephemeral-storage",
];

/// Longest name of a file that is kept.
const FILE_CHARS: usize = 120;

fn recognises(lines: &[Line]) -> bool {
    is_one(text(lines, 0))
}

fn is_one(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    SAID.iter().any(|said| lower.contains(said)) || line.contains("The table '") && line.contains("' is full")
}

/// The server that says so, by its own words.
fn server(line: &str) -> Option<&'static str> {
    let of_mysql = ["Disk is full writing", "InnoDB", "[Server]", "mysqld", "mariadbd", "The table '", "[MY-"];
    let of_postgresql = ["could not extend file", "could not write to file", "pg_wal", "postgres", "base/pgsql_tmp"];
    let says = |words: &[&str]| words.iter().any(|word| line.contains(word));
    match () {
        () if says(&of_postgresql) => Some("postgresql"),
        () if says(&of_mysql) => Some("mysql"),
        () => None,
    }
}

/// The file that was written, the first in quotes.
fn file(line: &str) -> Option<String> {
    let quote = line.find(['\'', '"'])?;
    let (sign, rest) = line.get(quote..)?.split_at_checked(1)?;
    let (name, _) = rest.split_once(sign)?;
    let is_name = !name.is_empty() && !name.contains(' ') && name.chars().count() <= FILE_CHARS;
    is_name.then(|| name.to_owned())
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let Some(line) = lines.first() else { return 1 };
    let at = at(line, context);
    let (server, file) = (server(&line.text), file(&line.text));
    let what = file.as_deref().map_or_else(String::new, |file| format!(" {file}"));
    let said = format!("{} could not write{what}: no space was left", server.unwrap_or("a program"));
    let mut labels = Labels::none();
    for (name, value) in [("server", server), ("file", file.as_deref())] {
        if let Some(value) = value {
            labels = labels.with(name, value);
        }
    }
    context.out.event(at, "disk_full", said, labels);
    1
}

/// When a line was logged, as far as it says.
fn at(line: &Line, context: &mut Context) -> i64 {
    let of_journal = || clock::of_journal(&line.text, context.now());
    line.stamp.or_else(of_journal).unwrap_or_else(|| context.instant())
}
