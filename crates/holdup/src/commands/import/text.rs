//! `holdup import FILE…`, `holdup import -`: turns pasted outputs of standard tools into one
//! recording.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::UNIX_EPOCH;

use holdup_import::text::{Pasted, Understood, recognises};
use holdup_recording::manifest::{Host, Manifest, RunState};
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
        let name = file.name.clone();
        match guard::caught(&file.shown.clone(), || read(file, &mut pasted, at)) {
            Ok(is_read) => (if is_read? { &mut names } else { &mut left_out }).push(name),
            Err(failure) => broken.push((name, failure)),
        }
    }
    let found = pasted.finish();
    let Some(span) = found.span else {
        let nothing = || Failure::Unusable(nothing(&names, &left_out, &found));
        return Err(broken.pop().map_or_else(nothing, |(_, failure)| failure));
    };
    let name = names
        .first()
        .map_or("paste", |name| name.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or(name));
    let dir = dir.map_or_else(|| default_dir(name), Path::to_owned);
    let (text, answer) = (summary(&found, &left_out, &dir), answer(&found, &left_out, &dir));
    let failed = broken.iter().map(|(name, failure)| guard::failed(name, failure, 0)).collect();
    record(found, span, failed, &names.join(", "), &dir)?;
    let all: Vec<String> = broken.into_iter().map(|(_, failure)| failure.to_string()).collect();
    let failed =
        (!all.is_empty()).then(|| format!("{}; the other files are kept in {}", all.join("; "), dir.display()));
    let next = vec![format!("next: holdup diagnose {}", dir.display())];
    Ok(Report { text, json: answer, next, failed, segments: None })
}

/// Reads a file; returns whether it holds an output that is known.
fn read(mut file: InputFile, pasted: &mut Pasted, at: Option<i64>) -> Result<bool, Failure> {
    if file.is_listed && !is_one(&mut file)? {
        return Ok(false);
    }
    let (name, modified_at, is_listed) = (file.name.clone(), file.modified_at, file.is_listed);
    let bytes = file.whole("cut it to the minutes that matter")?;
    let at = at.or_else(|| named_at(&name)).or(modified_at).unwrap_or_else(clock::now_ns);
    match is_listed {
        true => pasted.read_output(&name, &bytes, at),
        false => pasted.read(&name, &bytes, at),
    }
    Ok(true)
}

fn nothing(names: &[String], left_out: &[String], found: &Understood) -> String {
    let all = if names.is_empty() { left_out } else { names };
    let shown = all.iter().take(LEFT_OUT_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if !found.parts.is_empty() {
        let mut kinds: Vec<&str> = found.parts.iter().map(|part| part.kind).collect();
        kinds.dedup();
        kinds.truncate(LEFT_OUT_SHOWN);
        return format!(
            "{shown}: read as {}, but nothing in it is a figure, a setting or a known event",
            kinds.join(", ")
        );
    }
    let first =
        found.unread.first().map_or_else(String::new, |line| format!(", e.g. line {}: {}", line.line, line.text));
    format!(
        "{shown}: no output of a known tool in it{first}; paste it with its header, e.g. from top -b -n 1, iostat -x 5 2, \
         SHOW FULL PROCESSLIST"
    )
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

/// Writes what was found; `failed` is the coverage of files that were not read to their end.
fn record(found: Understood, span: (i64, i64), failed: Vec<Coverage>, title: &str, dir: &Path) -> Result<(), Failure> {
    let state = if failed.is_empty() { RunState::Complete } else { RunState::Interrupted };
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
    manifest.coverage = all.chain(failed).collect();
    let recorder = Recorder::create(dir, &manifest).map_err(Failure::unusable)?;
    recorder.sink().push(found.batch);
    // The recording ends just after its last row.
    end_at(recorder, manifest, state, Some(span.1.saturating_add(1)), dir)
}

fn summary(found: &Understood, left_out: &[String], dir: &Path) -> String {
    let (from, to) = found.span.unwrap_or_default();
    let mut text = format!(
        "{} outputs, {} rows from {} to {} -> {}\n",
        found.parts.len(),
        found.batch.len(),
        short(from),
        short(to),
        dir.display()
    );
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
        let shown = left_out.iter().take(LEFT_OUT_SHOWN).cloned().collect::<Vec<_>>().join(", ");
        let more = left_out.len().saturating_sub(LEFT_OUT_SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        text += &format!("left out: {} files without a known output: {shown}{more}\n", left_out.len());
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

fn answer(found: &Understood, left_out: &[String], dir: &Path) -> serde_json::Value {
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
        "left_out_files": left_out,
        "not_understood_lines": found.unread_total,
        "not_understood": unread.collect::<Vec<_>>(),
    })
}
