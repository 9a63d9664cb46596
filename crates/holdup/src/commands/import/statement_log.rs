//! `holdup import slow.log`: turns databases' own logs of statements into a recording: what each
//! statement took, over time, and the server's messages about itself. The reader is that of `holdup
//! digest`; files are streams, and memory is bounded.

mod heard;
mod rows;
mod zone;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use holdup_logs::digest::format::Format;
use holdup_logs::digest::input::unpacked;
use holdup_logs::digest::run::{Options, Outcome, run_streams};
use holdup_recording::{Batch, Coverage, clock, words};

use self::heard::Heard;
use self::rows::Course;
use self::zone::Zone;
use super::writer::Writer;
use super::{InputFile, Report, guard};
use crate::failure::Failure;
use crate::recorded::coverage;

/// Memory for statements, bytes: some 10,000 different ones.
const MOST_BYTES: u64 = 256 << 20;

/// Statements that the summary names.
const SHOWN: usize = 5;

/// The logs of one server.
struct Server {
    source: String,
    outcome: Outcome,
    course: Course,
    heard: Heard,
    zone: Zone,
}

impl Server {
    /// Its first and last moment, in UTC.
    fn span(&self) -> Option<(i64, i64)> {
        let (from, to) = self.course.span?;
        Some((from.saturating_sub(self.zone.ahead_ns), to.saturating_sub(self.zone.ahead_ns)))
    }
}

/// Whether a file that begins like this is a log of statements.
pub(super) fn is_one(head: &[u8]) -> bool {
    scheme(head).is_some()
}

/// The scheme of the server whose log begins like this.
fn scheme(head: &[u8]) -> Option<&'static str> {
    let input = unpacked(Box::new(std::io::Cursor::new(head.to_vec()))).ok()?;
    let format = Format::detect(&input.head)?;
    let scheme = match format {
        Format::SlowLog => "mysql",
        Format::Mongod => "mongodb",
        Format::PostgresStderr | Format::PostgresCsv | Format::PostgresJson | Format::PostgresSyslog => "postgresql",
        _ => return None,
    };
    let options = Options { format: Some(format), ..Options::default() };
    let begin: Box<dyn Read + Send> = Box::new(std::io::Cursor::new(input.head.clone()));
    let read = run_streams(vec![(PathBuf::new(), begin)], &options).ok()?.tally;
    let is_certain = match format {
        // Apps write `ERROR: ` as well; the server has two blanks, and a time before them.
        Format::PostgresStderr => heard::is_log(&input.head),
        Format::Mongod => read.events > 0 || holdup_logs::digest::mongod::is_log(&input.head),
        _ => read.events > 0 || !read.server.is_empty(),
    };
    is_certain.then_some(scheme)
}

/// Reads logs into a recording, and reports what they contain.
pub(super) fn import(files: Vec<InputFile>, dir: &Path) -> Result<Report, Failure> {
    let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
    let mut by_scheme: BTreeMap<&'static str, Vec<InputFile>> = BTreeMap::new();
    for file in files {
        by_scheme.entry(scheme(&file.head).unwrap_or("mysql")).or_default().push(file);
    }
    let mut servers = Vec::new();
    for (scheme, files) in by_scheme {
        servers.push(read(scheme, files)?);
    }
    let spans = servers.iter().filter_map(Server::span);
    let Some(span) = spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))) else {
        return Err(Failure::Unusable(format!("{}: the log has no statement with its time", names.join(", "))));
    };
    let mut writer = Writer::new(&names.join(", "), dir).reported();
    let mut all = Vec::new();
    for server in &mut servers {
        let mut written = Ok(());
        let ahead_ns = server.zone.ahead_ns;
        server.course.rows(&server.source, &server.outcome.tally, &mut |mut batch: Batch| {
            batch.move_times(-ahead_ns);
            if written.is_ok() {
                written = writer.put(span.0, batch);
            }
        });
        written?;
        server.heard.batch.move_times(-ahead_ns);
        writer.put(span.0, std::mem::take(&mut server.heard.batch))?;
        all.push(covered(server));
    }
    writer.finish((span.0, Some(span.1)), all)?;
    let next = vec![format!("next: holdup diagnose {}", dir.display())];
    Ok(Report { text: text(&servers, span, dir), json: json(&servers, span, dir), next, ..Report::default() })
}

fn read(scheme: &'static str, files: Vec<InputFile>) -> Result<Server, Failure> {
    let name = files.first().map_or("", |file| file.name.rsplit('/').next().unwrap_or(&file.name));
    let (source, shown) = (format!("{scheme}://{name}"), name.to_owned());
    let (listener, heard) = heard::listener(&source);
    let options = Options {
        most_bytes: Some(MOST_BYTES),
        has_course: true,
        listener: (scheme == "postgresql").then_some(listener),
        ..Options::default()
    };
    let zone = match scheme {
        // A slow log has seconds since 1970 as well.
        "mysql" => Zone::default(),
        _ => files.first().map_or_else(Zone::default, |file| Zone::find(&file.head)),
    };
    let stream = |file: InputFile| -> (PathBuf, Box<dyn Read + Send>) {
        (PathBuf::from(file.shown), Box::new(std::io::Cursor::new(file.head).chain(file.rest)))
    };
    let streams = files.into_iter().map(stream).collect();
    let outcome = guard::reading(&shown, || run_streams(streams, &options).map_err(Failure::unusable))?;
    let heard = heard::finished(&heard);
    let course = Course::of(&outcome.tally, heard.span());
    Ok(Server { source, outcome, course, heard, zone })
}

/// The coverage of a server: what its log lacks, and how to have it.
fn covered(server: &Server) -> Coverage {
    let tally = &server.outcome.tally;
    let mut why: Vec<String> = tally
        .problems
        .all()
        .map(|(problem, count, _)| format!("{} {}", words::count(count), problem.words()))
        .collect();
    if server.heard.left_out > 0 {
        why.push(format!("{} messages were left out", words::count(server.heard.left_out)));
    }
    why.extend(server.zone.note());
    let problems = tally.problems.all().map(|(_, count, _)| count).sum();
    let enable = rows::enable(&server.source, tally).map(str::to_owned);
    Coverage { enable, ..coverage(&server.source, &why, tally.events, problems) }
}

fn text(servers: &[Server], (from, to): (i64, i64), dir: &Path) -> String {
    let mut text = String::new();
    for Server { source, outcome, heard, zone, .. } in servers {
        let tally = &outcome.tally;
        text += &format!(
            "{source}: {} executions of {} statements, {} messages",
            words::count(tally.events),
            words::count(tally.shapes.len() as u64),
            words::count(heard.total),
        );
        text += &format!(", from {} to {} -> {}\n", clock::rfc3339(from), clock::rfc3339(to), dir.display());
        for heaviest in rows::heaviest(tally, SHOWN) {
            text += &format!("{heaviest}\n");
        }
        if let Some(note) = zone.note() {
            text += &format!("note: {note}\n");
        }
        for (problem, count, _) in tally.problems.all() {
            text += &format!("note: {} {}\n", words::count(count), problem.words());
        }
    }
    text
}

fn json(servers: &[Server], (from, to): (i64, i64), dir: &Path) -> serde_json::Value {
    let logs = servers.iter().map(|server| {
        serde_json::json!({
            "source": server.source,
            "files": server.outcome.files.iter().map(|file| file.path.display().to_string()).collect::<Vec<_>>(),
            "executions": server.outcome.tally.events,
            "statements": server.outcome.tally.shapes.len(),
        })
    });
    serde_json::json!({
        "recording": dir.display().to_string(),
        "from": clock::rfc3339(from),
        "to": clock::rfc3339(to),
        "logs": logs.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests;
