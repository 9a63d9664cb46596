//! `holdup import diagnostic.data/`: turns what a mongod keeps of itself into a recording of its
//! figures and its machine's, once a second. Files are read one after the other, as streams.

use std::io::Read as _;
use std::path::Path;

use holdup_import::ftdc::{Account, Ftdc, SOURCE};
use holdup_recording::{Batch, clock, words};

use super::writer::Writer;
use super::{InputFile, Report, guard};
use crate::failure::Failure;
use crate::recorded::coverage;

/// Broken places that are named; the others are counted.
const NAMED: usize = 5;

pub(super) use holdup_import::ftdc::is_one;

/// Whether a file is one of `diagnostic.data` by its name: `metrics.interim` is empty at times, and
/// the beginning of a file may be damaged.
pub(super) fn is_named(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|own| own.starts_with("metrics."))
}

/// Reads the files of one server into a recording, and reports what they contain.
pub(super) fn import(files: Vec<InputFile>, dir: &Path) -> Result<Report, Failure> {
    let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
    let mut writer = Writer::new("diagnostic.data", dir).reported();
    let mut ftdc = Ftdc::default();
    let mut written = Ok(());
    for file in files {
        let InputFile { name, shown, head, rest, .. } = file;
        let mut put = |batch: Batch| {
            if written.is_ok() && !batch.is_empty() {
                let from = batch.samples.first().map_or_else(clock::now_ns, |sample| sample.observed_at);
                written = writer.put(from, batch);
            }
        };
        let read = guard::reading(&shown, || {
            let read = ftdc.read(&name, head.as_slice().chain(rest), &mut put);
            read.map_err(|error| Failure::Unusable(format!("{shown}: {error}")))
        });
        if let Err(failure) = read {
            return Err(writer.end_early(SOURCE, failure, ftdc.finish().chunks));
        }
        std::mem::replace(&mut written, Ok(()))?;
    }
    let account = ftdc.finish();
    let Some((from, to)) = account.span.filter(|_| account.samples > 0) else {
        let why = account.broken.first().map_or("no samples in it", String::as_str);
        return Err(Failure::Unusable(format!("{}: {why}", names.join(", "))));
    };
    let coverage = coverage(SOURCE, &losses(&account), account.samples, account.broken_total);
    writer.finish((from, Some(to)), vec![coverage])?;
    let next = vec![format!("next: holdup diagnose {}", dir.display())];
    let (text, json) = (text(&names, &account, (from, to), dir), json(&names, &account, (from, to), dir));
    Ok(Report { text, json, next, ..Report::default() })
}

/// What could not be read.
fn losses(account: &Account) -> Vec<String> {
    let mut found: Vec<String> = account.broken.iter().take(NAMED).cloned().collect();
    if account.broken_total > found.len() as u64 {
        found.push(format!("holdup could not read {} in all", counted(account.broken_total, "piece")));
    }
    if account.unknown > 0 {
        found.push(format!("holdup left out {} of a newer kind", counted(account.unknown, "document")));
    }
    found
}

/// A count and its noun.
fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", words::count(count), if count == 1 { "" } else { "s" })
}

fn text(names: &[String], account: &Account, (from, to): (i64, i64), dir: &Path) -> String {
    let mut text = format!(
        "{} in {} of {} from {} to {} -> {}\n",
        counted(account.samples, "sample"),
        counted(account.chunks, "chunk"),
        counted(names.len() as u64, "file"),
        clock::rfc3339(from),
        clock::rfc3339(to),
        dir.display()
    );
    if account.repeated > 0 {
        let repeated = counted(account.repeated, "sample");
        text += &format!("note: {repeated} of metrics.interim stood in another file as well, and count once\n");
    }
    for loss in losses(account) {
        text += &format!("note: {loss}\n");
    }
    text
}

fn json(names: &[String], account: &Account, (from, to): (i64, i64), dir: &Path) -> serde_json::Value {
    serde_json::json!({
        "recording": dir.display().to_string(),
        "files": names,
        "chunks": account.chunks,
        "samples": account.samples,
        "repeated_samples": account.repeated,
        "from": clock::rfc3339(from),
        "to": clock::rfc3339(to),
        "losses": losses(account),
    })
}
