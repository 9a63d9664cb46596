//! `holdup import ACCESS.LOG ...`: turns access logs into a recording of response times. holdup
//! reads all files as one service's log, once, as a stream.

use std::io::{BufReader, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use holdup_access::lines::{Line, Lines};
use holdup_access::{AccessLog, Account, Family, Format, SAMPLE_LINES};
use holdup_recording::rows::Sample;
use holdup_recording::words::ms;
use holdup_recording::{Batch, Coverage, clock};

use super::writer::Writer;
use super::{InputFile, Report, short};
use crate::failure::Failure;
use crate::recorded::coverage;

/// Rows that are passed on at once.
const ROWS_AT_ONCE: usize = 10_000;

/// Interval between reports of progress.
const REPORT_EVERY: Duration = Duration::from_secs(5);
/// Lines between looks at the clock.
const LINES_BETWEEN: u64 = 1 << 16;

/// Share of lines (0-1) that may be unreadable: above it, the format is the wrong one.
const UNREADABLE_RATIO_MAX: f64 = 0.5;

const ENABLE: &str =
    "log the response time: nginx log_format with $request_time $upstream_response_time, Apache LogFormat with %D";

/// Whether a file that begins like this is an access log: its format reads at least half of the
/// lines.
pub(super) fn is_one(head: &[u8]) -> bool {
    detect(head).is_some()
}

fn detect(head: &[u8]) -> Option<Format> {
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}');
    let mut lines: Vec<&str> = text.lines().collect();
    // The last one may be cut off; a line alone is taken as it is.
    if lines.len() > 1 && !text.ends_with('\n') {
        lines.pop();
    }
    lines.retain(|line| !line.trim().is_empty());
    lines.truncate(SAMPLE_LINES);
    let rows = lines.iter().filter(|line| !line.starts_with('#')).count();
    let (format, read) = Format::detect(&lines)?;
    (2 * read >= rows.max(1)).then_some(format)
}

/// Reads access logs into a recording, and reports what they contain.
pub(super) fn import(files: Vec<InputFile>, dir: &Path, log_format: Option<&str>) -> Result<Report, Failure> {
    let format = match log_format {
        Some(text) => Format::from_user(text).map_err(|why| Failure::Unusable(format!("--log-format: {why}")))?,
        None => common_format(&files)?,
    };
    let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
    let mut log = AccessLog::new(format);
    let mut progress = Progress::new();
    for file in files {
        read(file, &mut log, &mut progress)?;
    }
    let account = log.finish();
    refuse_unreadable(&account)?;
    record(&account, &names, dir)?;
    let next = vec![format!("next: holdup diagnose {}", dir.display())];
    Ok(Report { text: summary_text(&account, dir), json: summary_json(&account, dir), next, ..Report::default() })
}

/// The format of all files; they count as parts of one log.
fn common_format(files: &[InputFile]) -> Result<Format, Failure> {
    let mut common: Option<(Format, &str)> = None;
    for file in files {
        let Some(format) = detect(&file.head) else {
            let why = "not an access log as the other files are; import it separately, or give --log-format";
            return Err(Failure::Unusable(format!("{}: {why}", file.shown)));
        };
        match &common {
            Some((known, first)) if known.name != format.name => {
                let (one, other) = (&known.name, &format.name);
                let why = format!("{one} in {first}, but {other} here; import logs of different formats separately");
                return Err(Failure::Unusable(format!("{}: {why}", file.shown)));
            }
            Some(_) => {}
            None => common = Some((format, &file.shown)),
        }
    }
    common.map(|(format, _)| format).ok_or_else(|| Failure::Unusable("which file?".to_owned()))
}

fn read(file: InputFile, log: &mut AccessLog, progress: &mut Progress) -> Result<(), Failure> {
    let InputFile { shown, head, rest, .. } = file;
    let unreadable = |e: std::io::Error| Failure::Unusable(format!("{shown}: {e}"));
    if head.starts_with(&[0x1f, 0x8b]) {
        return Err(Failure::Unusable(format!(
            "{shown}: it is compressed; give it as: zcat {shown} | holdup import -"
        )));
    }
    let mut lines = Lines::new(BufReader::with_capacity(1 << 18, head.chain(rest)));
    loop {
        let number = lines.number + 1;
        let Some(line) = lines.next_line().map_err(unreadable)? else { return Ok(()) };
        if let Line::Whole(bytes) = &line {
            progress.bytes += bytes.len() as u64 + 1;
        }
        log.line(&shown, number, line);
        progress.line(&shown, number);
    }
}

fn refuse_unreadable(account: &Account) -> Result<(), Failure> {
    let counts = &account.counts;
    let Some(first) = counts.first_unreadable.first() else {
        return if counts.lines > 0 { Ok(()) } else { Err(Failure::Unusable("the log holds no requests".to_owned())) };
    };
    if counts.unreadable as f64 <= UNREADABLE_RATIO_MAX * counts.lines as f64 {
        return Ok(());
    }
    let (unread, lines, format) = (counts.unreadable, counts.lines, &account.format);
    Err(Failure::Unusable(format!(
        "{}:{}: {}; read as {format}, {unread} of {lines} lines cannot be read: give the server's format with --log-format",
        first.file, first.line, first.why
    )))
}

/// Says on stderr how far a long import is.
struct Progress {
    begun: Instant,
    reported: Instant,
    bytes: u64,
}

impl Progress {
    fn new() -> Self {
        Self { begun: Instant::now(), reported: Instant::now(), bytes: 0 }
    }

    fn line(&mut self, file: &str, number: u64) {
        if number.is_multiple_of(LINES_BETWEEN) && self.reported.elapsed() >= REPORT_EVERY {
            self.reported = Instant::now();
            let mb = self.bytes as f64 / 1e6;
            errln!("{file}: {number} lines, {mb:.0} MB read, {:.0} MB/s", mb / self.begun.elapsed().as_secs_f64());
        }
    }
}

fn record(account: &Account, names: &[String], dir: &Path) -> Result<(), Failure> {
    let source = format!("access_log:{}", names.first().map_or("", String::as_str));
    let Some((from, to)) = account.timeline.span() else {
        return Err(Failure::Unusable("the log holds no requests".to_owned()));
    };
    let mut writer = Writer::new(&names.join(", "), dir);
    let (mut written, mut rows) = (Ok(()), Vec::new());
    let mut put = |rows: &mut Vec<Sample>| {
        if written.is_ok() {
            written = writer.put(from, Batch { samples: std::mem::take(rows), ..Batch::default() });
        }
    };
    account.timeline.samples(&source, &mut |sample| {
        rows.push(sample);
        if rows.len() >= ROWS_AT_ONCE {
            put(&mut rows);
        }
    });
    put(&mut rows);
    written?;
    let counts = &account.counts;
    let enable = (counts.untimed > 0).then(|| ENABLE.to_owned());
    let coverage = Coverage { enable, ..coverage(&source, &losses(account), counts.lines, counts.unreadable) };
    writer.finish((from, Some(to)), vec![coverage])
}

/// What the recording lacks.
fn losses(account: &Account) -> Vec<String> {
    let counts = &account.counts;
    let requests = counts.lines - counts.unreadable;
    let mut why = Vec::new();
    if counts.untimed > 0 && counts.untimed == requests {
        why.push("the log has no response times".to_owned());
    } else if counts.untimed > 0 {
        why.push(format!("{} of {requests} requests have no response time", counts.untimed));
    }
    if counts.unreadable > 0 {
        why.push(format!("{} of {} lines could not be read", counts.unreadable, counts.lines));
    }
    if counts.strays > 0 {
        why.push(format!("{} requests lie more than a day from all others and were left out", counts.strays));
    }
    why
}

/// The families that the summary shows.
const SHOWN: [(Family, &str); 4] = [
    (Family::Server, "response time"),
    (Family::Client, "upstream"),
    (Family::Connect, "connecting to it"),
    (Family::Queue, "proxy's queue"),
];

fn summary_text(account: &Account, dir: &Path) -> String {
    let counts = &account.counts;
    let mut text = format!("{} requests, taken for: {}", counts.lines - counts.unreadable, account.format);
    if let Some((from, to)) = account.timeline.span() {
        let every = account.timeline.width_ns() / 1_000_000_000;
        text += &format!("\nfrom {} to {}, by intervals of {every} s", clock::rfc3339(from), clock::rfc3339(to));
    }
    text += &format!(" -> {}\n", dir.display());
    for (family, name) in SHOWN {
        if let Some((mean, count)) = account.timeline.mean_ms(family) {
            text += &format!("{name}: mean {} of {count}\n", ms(mean));
        }
    }
    text += &format!("status 500 or above: {}\n", counts.failed);
    for one in account.timeline.counts(Family::Failed) {
        let (first, last, most) = (short(one.first_at), short(one.last_at), short(one.most_at));
        let (name, count) = (one.name.replace('_', " "), one.count);
        text += &format!("{count:>8}  {name}, from {first} to {last}, most at {most}: {}\n", one.most);
    }
    for lost in losses(account) {
        text += &format!("note: {lost}\n");
    }
    for one in &counts.first_unreadable {
        text += &format!("{}:{}: {}\n", one.file, one.line, one.why);
    }
    if counts.untimed == counts.lines - counts.unreadable {
        text += &format!("to have them: {ENABLE}\n");
    }
    text
}

fn summary_json(account: &Account, dir: &Path) -> serde_json::Value {
    let means = SHOWN.iter().filter_map(|(family, name)| {
        let (mean_ms, count) = account.timeline.mean_ms(*family)?;
        Some(serde_json::json!({"of": name, "metric": family.metric().name, "mean_ms": mean_ms, "count": count}))
    });
    let failed = account.timeline.counts(Family::Failed).into_iter().map(|one| {
        serde_json::json!({
            "error_type": one.name, "count": one.count, "from": clock::rfc3339(one.first_at),
            "to": clock::rfc3339(one.last_at), "most_at": clock::rfc3339(one.most_at), "most": one.most,
        })
    });
    let span = account.timeline.span();
    serde_json::json!({
        "recording": dir.display().to_string(),
        "format": account.format,
        "from": span.map(|(from, _)| clock::rfc3339(from)),
        "to": span.map(|(_, to)| clock::rfc3339(to)),
        "interval_s": account.timeline.width_ns() / 1_000_000_000,
        "lines": account.counts,
        "times": means.collect::<Vec<_>>(),
        "failed": failed.collect::<Vec<_>>(),
        "notes": losses(account),
    })
}
