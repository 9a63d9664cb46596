//! Lines of any log that say that a disk is full: a write that failed with ENOSPC. MySQL waits until
//! there is room, and PostgreSQL fails the statement, or stops where it cannot write its log.

use holdup_recording::Labels;

use super::{Context, Kind, Line, text};

pub(super) const KIND: Kind = Kind::lines("log: no space", recognises, read);

/// What servers and the C library say.
const SAID: [&str; 6] =
    ["No space left on device", "Disk is full writing", "ENOSPC", "errno: 28 ", "errno 28 ", "Disk quota exceeded"];

/// Longest name of a file that is kept.
const FILE_CHARS: usize = 120;

fn recognises(lines: &[Line]) -> bool {
    is_one(text(lines, 0))
}

fn is_one(line: &str) -> bool {
    SAID.iter().any(|said| line.contains(said)) || line.contains("The table '") && line.contains("' is full")
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
    let at = line.stamp.unwrap_or_else(|| context.instant());
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
