//! `holdup import FILE…`, `holdup import -`: turns pasted outputs of standard tools into one
//! recording.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::UNIX_EPOCH;

use holdup_import::nearest;
use holdup_import::text::{Pasted, Understood, recognises};
use holdup_recording::manifest::{CoverageState, Host, Manifest, PASTED, RunState};
use holdup_recording::writer::Recorder;
use holdup_recording::{Coverage, clock};

use super::{InputFile, Report, guard, short};
use crate::failure::Failure;
use crate::recorded::{coverage, end_at};
use crate::session::default_dir;

/// Lines that were not understood, as far as they are printed.
const SHOWN: usize = 8;

/// Files without a known output, as far as they are printed.
const LEFT_OUT_SHOWN: usize = 12;

/// Bytes at the beginning of a file that show its kind.
const HEAD_BYTES: usize = 256 << 10;

/// Whether a file's beginning holds an output that can be read; reads on in it for that.
pub(super) fn is_one(file: &mut InputFile) -> Result<bool, Failure> {
    file.read_to(HEAD_BYTES)?;
    Ok(recognises(&file.head))
}

/// Reads outputs into one recording, and reports what they contain. `at` is the time of outputs without a time
/// stamp, nanoseconds since the epoch.
pub(super) fn import(
    files: Vec<InputFile>,
    dir: Option<&Path>,
    at: Option<i64>,
    cpus: Option<u32>,
) -> Result<Report, Failure> {
    let mut pasted = Pasted::new(cpus);
    let (mut names, mut left_out, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    for file in files {
        let (name, unreadable) = (file.name.clone(), unreadable(&file));
        match guard::caught(&file.shown.clone(), || read(file, &mut pasted, at)) {
            Ok(Ok(0)) => left_out.push(unreadable),
            Ok(Ok(_)) => names.push(name),
            Ok(Err(failure)) | Err(failure) => broken.push((name, failure)),
        }
    }
    let found = pasted.finish();
    let Some(span) = found.span else {
        let nothing = nothing(&names, &left_out, &found);
        let left_out = kinds(&found).into_iter().chain(folded(left_out)).collect();
        return match broken.pop() {
            Some((_, failure)) => Err(failure),
            None => Ok(Report { nothing: Some(nothing), left_out, ..Report::default() }),
        };
    };
    let name = names
        .first()
        .map_or("paste", |name| name.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or(name));
    let dir = dir.map_or_else(|| default_dir(name), Path::to_owned);
    let (text, answer) = (summary(&found, &left_out, &dir), answer(&found, &left_out, &dir));
    let failed: Vec<Coverage> = broken.iter().map(|(name, failure)| guard::failed(name, failure, 0)).collect();
    let state = if failed.is_empty() { RunState::Complete } else { RunState::Interrupted };
    let coverage = failed.into_iter().chain(folded(left_out)).collect();
    record(found, span, state, coverage, &names.join(", "), &dir)?;
    let all: Vec<String> = broken.into_iter().map(|(_, failure)| failure.to_string()).collect();
    let failed =
        (!all.is_empty()).then(|| format!("{}; the other files are kept in {}", all.join("; "), dir.display()));
    let next = vec![format!("next: holdup diagnose {}", dir.display())];
    Ok(Report { text, json: answer, next, failed, ..Report::default() })
}

/// Reads a file; returns how many known outputs it holds.
fn read(mut file: InputFile, pasted: &mut Pasted, at: Option<i64>) -> Result<usize, Failure> {
    if !is_one(&mut file)? && (file.is_listed || file.head.contains(&0)) {
        return Ok(0);
    }
    let (name, modified_at, is_listed) = (file.name.clone(), file.modified_at, file.is_listed);
    let bytes = file.whole("cut it to the minutes that matter")?;
    let at = at.or_else(|| named_at(&name)).or(modified_at).unwrap_or_else(clock::now_ns);
    Ok(match is_listed {
        true => pasted.read_output(&name, &bytes, at),
        false => pasted.read(&name, &bytes, at),
    })
}

/// The coverage of a file that no reader knows: what it looks like, and what would make it readable.
pub(super) fn unreadable(file: &InputFile) -> Coverage {
    let nearest = nearest(&file.head);
    let why =
        nearest.map_or("no output of a known tool in it".to_owned(), |found| format!("it looks like {}", found.kind));
    let remedy = nearest.map_or("paste each output with its header, e.g. from top -b -n 1", |found| found.remedy);
    let enable = Some(remedy.replace("FILE", &file.shown));
    Coverage { enable, ..Coverage::new(file.name.as_str(), CoverageState::Absent, Some(why)) }
}

/// A line for each file that was left out, as far as they are shown, and one for the others.
fn folded(mut left_out: Vec<Coverage>) -> Vec<Coverage> {
    let more = left_out.len().saturating_sub(LEFT_OUT_SHOWN);
    left_out.truncate(LEFT_OUT_SHOWN);
    if more > 0 {
        let why = Some("no output of a known tool in them".to_owned());
        left_out.push(Coverage::new(format!("{more} more files"), CoverageState::Absent, why));
    }
    left_out
}

fn nothing(names: &[String], left_out: &[Coverage], found: &Understood) -> String {
    if !found.parts.is_empty() {
        let shown = names.iter().take(LEFT_OUT_SHOWN).cloned().collect::<Vec<_>>().join(", ");
        let mut kinds: Vec<&str> = found.parts.iter().map(|part| part.kind).collect();
        kinds.dedup();
        kinds.truncate(LEFT_OUT_SHOWN);
        return format!(
            "{shown}: read as {}, but nothing in it is a figure, a setting or a known event",
            kinds.join(", ")
        );
    }
    let first = found.unread.first().map_or_else(String::new, |line| format!(" (line {}: {})", line.line, line.text));
    let said = left_out.iter().take(LEFT_OUT_SHOWN).map(left_out_words).collect::<Vec<_>>().join("; ");
    format!("{said}{first}")
}

/// Why a file was left out, and what would make it readable.
pub(super) fn left_out_words(file: &Coverage) -> String {
    let why = file.why.as_deref().unwrap_or_default();
    let remedy = file.enable.as_deref().map_or_else(String::new, |remedy| format!("; {remedy}"));
    format!("{}: {why}{remedy}", file.source)
}

/// The time in a name such as `2026_11_26_10_11_12-vmstat`, as pt-stalk makes it, read as UTC.
fn named_at(name: &str) -> Option<i64> {
    let name = name.rsplit('/').next()?;
    let parts: Vec<&str> = name.get(..19)?.split('_').collect();
    let [year, month, day, hour, minute, second] = parts.as_slice() else { return None };
    clock::parse_rfc3339(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

/// When a file was changed last.
pub(super) fn modified_at(path: &Path) -> Option<i64> {
    let modified = std::fs::metadata(path).ok()?.modified().ok()?;
    i64::try_from(modified.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// Writes what was found; `others` is the coverage of files that were not read, or not to their end.
fn record(
    found: Understood,
    span: (i64, i64),
    state: RunState,
    others: Vec<Coverage>,
    title: &str,
    dir: &Path,
) -> Result<(), Failure> {
    let mut rows: BTreeMap<String, u64> = BTreeMap::new();
    let batch = &found.batch;
    let sources = batch.samples.iter().map(|row| row.source.as_str());
    let sources = sources.chain(batch.sessions.iter().map(|row| row.source.as_ref()));
    let sources = sources.chain(batch.threads.iter().map(|row| row.source.as_str()));
    for source in sources.chain(batch.settings.iter().map(|row| row.source.as_str())) {
        *rows.entry(source.to_owned()).or_default() += 1;
    }
    let mut manifest = Manifest::starting(title, span.0, Host::default());
    let why = ["only what was pasted".to_owned()];
    let all = rows.into_iter().map(|(source, rows)| coverage(&source, &why, rows, 0));
    manifest.coverage = all.chain(kinds(&found)).chain(others).collect();
    let recorder = Recorder::create(dir, &manifest).map_err(Failure::unusable)?;
    recorder.sink().push(found.batch);
    // The recording ends just after its last row.
    end_at(recorder, manifest, state, Some(span.1.saturating_add(1)), dir)
}

/// The coverage of each kind of output that was pasted, by the name of its tool.
fn kinds(found: &Understood) -> Vec<Coverage> {
    let mut kinds: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    for part in &found.parts {
        let (outputs, rows) = kinds.entry(part.kind).or_default();
        *outputs += 1;
        *rows += part.rows;
    }
    let none = ["nothing in it is a figure, a setting or a known event".to_owned()];
    let coverage = |(kind, (outputs, rows))| {
        let lacks: &[String] = if rows == 0 { &none } else { &[] };
        coverage(&format!("{PASTED}{kind}"), lacks, outputs, 0)
    };
    kinds.into_iter().map(coverage).collect()
}

fn summary(found: &Understood, left_out: &[Coverage], dir: &Path) -> String {
    let (from, to) = found.span.unwrap_or_default();
    let outputs = match found.parts.len() {
        1 => "1 output".to_owned(),
        many => format!("{many} outputs"),
    };
    let mut text =
        format!("{outputs}, {} rows from {} to {} -> {}\n", found.batch.len(), short(from), short(to), dir.display());
    for part in &found.parts {
        let lines = format!("{}:{}-{}", part.file, part.first_line, part.last_line);
        let span = part.span.map_or_else(String::new, |(from, to)| match to - from {
            0 => short(from),
            _ => format!("{} to {}", short(from), short(to)),
        });
        text += format!("  {lines:<24} {:<26} {:>5} facts  {span}", part.kind, part.rows).trim_end();
        text.push('\n');
    }
    for note in &found.notes {
        text += &format!("note: {note}\n");
    }
    if !left_out.is_empty() {
        text += &format!("left out: {} files without a known output\n", left_out.len());
        for file in folded(left_out.to_vec()) {
            text += &format!("  {}\n", left_out_words(&file));
        }
    }
    if found.unread_total > 0 {
        text += &format!("not understood: {} lines\n", found.unread_total);
        for line in found.unread.iter().take(SHOWN) {
            text += &format!("  {}:{}: {}\n", line.file, line.line, line.text);
        }
        if found.unread_total > SHOWN {
            text += &format!("  and {} more: --json has up to 1,000\n", found.unread_total - SHOWN);
        }
    }
    text
}

fn answer(found: &Understood, left_out: &[Coverage], dir: &Path) -> serde_json::Value {
    let parts = found.parts.iter().map(|part| {
        serde_json::json!({
            "file": part.file, "kind": part.kind, "first_line": part.first_line, "last_line": part.last_line,
            "facts": part.rows,
            "from": part.span.map(|(from, _)| clock::rfc3339(from)),
            "to": part.span.map(|(_, to)| clock::rfc3339(to)),
        })
    });
    let unread =
        found.unread.iter().map(|line| serde_json::json!({ "file": line.file, "line": line.line, "text": line.text }));
    serde_json::json!({
        "recording": dir.display().to_string(),
        "rows": found.batch.len(),
        "from": found.span.map(|(from, _)| clock::rfc3339(from)),
        "to": found.span.map(|(_, to)| clock::rfc3339(to)),
        "understood": parts.collect::<Vec<_>>(),
        "notes": found.notes,
        "left_out_files": left_out.iter().map(|file| file.source.as_str()).collect::<Vec<_>>(),
        "left_out": left_out.iter().map(left_out_words).collect::<Vec<_>>(),
        "not_understood_lines": found.unread_total,
        "not_understood": unread.collect::<Vec<_>>(),
    })
}
