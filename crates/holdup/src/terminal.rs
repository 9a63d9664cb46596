//! The verdict as text: on one screen in [`brief`], and in full here.

use holdup_diagnose::Cause;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use holdup_diagnose::Diagnosis;
use holdup_diagnose::ledger::LedgerRow;
use holdup_diagnose::verdict::{Answer, Finding, Role};
use holdup_recording::manifest::Model;

mod accounts;
mod brief;
pub mod capacity;
mod comparison;
mod counters;
mod fleet;
mod gains;
mod history;
mod kernel;
mod objectives;
pub mod outlet;
pub mod processes;
mod rivals;
mod search;
pub mod size;
mod statements;
pub mod style;
mod timeline;
pub mod visible;
pub mod words;

use self::outlet::Stream;
use self::style::{AnsiColor, Style};
use self::visible::{one_line, sent};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Widest line, in columns.
const WIDTH: usize = 100;

/// Narrowest line, in columns: tables need them even on a narrower terminal.
const NARROWEST: usize = 60;

/// Cells of the longest bar in the ledger.
const BAR: usize = 30;

/// Whether an output owns stdout, see [`print_on_stderr`].
static ON_STDERR: AtomicBool = AtomicBool::new(false);

/// Sends all printed text to stderr from now on, because an output owns stdout.
pub fn print_on_stderr() {
    ON_STDERR.store(true, Ordering::Relaxed);
}

/// Whether an output owns a stdout that is a terminal: then nothing may be drawn there.
pub fn is_taken() -> bool {
    ON_STDERR.load(Ordering::Relaxed) && std::io::stdout().is_terminal()
}

/// Whether text on stderr can be drawn again: it is a terminal that moves its cursor, and stdout's is free.
pub fn can_redraw() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    std::io::stderr().is_terminal() && !is_dumb && !is_taken()
}

/// Whether the printed text goes to a terminal.
pub fn is_seen() -> bool {
    !ON_STDERR.load(Ordering::Relaxed) && std::io::stdout().is_terminal()
}

/// Prints on stdout, without colours unless it is a terminal. A closed reader (`| head`) is not an
/// error: the results are on disk.
pub fn print(text: &str) {
    if ON_STDERR.load(Ordering::Relaxed) {
        print_error(text);
        return;
    }
    send(Stream::Out, AutoStream::choice(&std::io::stdout()), text);
}

fn send(stream: Stream, choice: ColorChoice, text: &str) {
    let text = sent(text);
    let has_colors = choice != ColorChoice::Never;
    outlet::send(stream, if has_colors { text } else { strip_str(&text).to_string() });
}

/// Prints a file's content on stdout; unchanged unless it is a terminal, because a program may read
/// it.
pub fn print_document(text: &str) {
    if std::io::stdout().is_terminal() {
        return print(text);
    }
    outlet::send(Stream::Out, text.to_owned());
}

/// Prints on stderr, as [`print`] does on stdout.
pub fn print_error(text: &str) {
    send(Stream::Err, AutoStream::choice(&std::io::stderr()), text);
}

/// Prints a line on stdout, as [`print`] does.
macro_rules! outln {
    ($($text:tt)*) => { $crate::terminal::print(&(format!($($text)*) + "\n")) };
}

/// Prints a line on stderr, without colours unless it is a terminal. A closed stderr is not an
/// error.
macro_rules! errln {
    ($($text:tt)*) => { $crate::terminal::print_error(&(format!($($text)*) + "\n")) };
}

pub use accounts::request;
pub use brief::brief;
pub use comparison::comparison;
pub use history::history;
pub use statements::statements;
pub use timeline::timeline;

/// The whole verdict as text with colours, which the caller strips if needed. With `with_counters`,
/// it includes the votes of the counters.
pub fn verbose(d: &Diagnosis, with_counters: bool) -> String {
    let mut out = String::new();
    let (word, style) = answer(d);
    let root = d.findings.iter().find(|f| Some(f.cause) == d.culprit);
    let confidence = root.map_or_else(String::new, |f| format!("  {DIM}confidence {:.2}{DIM:#}", f.confidence));
    let culprit = d.culprit.as_ref().map_or_else(String::new, |c| format!("  {BOLD}{c}{BOLD:#}"));
    let _ = writeln!(out, "{style}{word}{style:#}{culprit}{confidence}");
    wrap(&mut out, "", &d.headline);
    kernel::chain(&mut out, d);
    if let (Some(symptom), Some(episode)) = (&d.symptom, d.episode) {
        wrap(&mut out, "", &format!("From {:.0} s to {:.0} s: {symptom}.", episode.from_s, episode.to_s));
    }
    if let Some(against) = &d.against {
        wrap(&mut out, "", &format!("It was {}.", against.text));
    }
    if let Some(read) = &d.read {
        wrap(&mut out, "", &format!("{}.", holdup_recording::words::capital(&read.text)));
    }
    kernel::episodes(&mut out, d);
    if let Some(debt) = &d.debt {
        wrap(&mut out, "", &format!("Old work is not finished: {}.", debt.text));
    }
    if let (Some(disturbed), true) = (&d.load.disturbed, d.verdict != Answer::Undecided) {
        wrap(&mut out, "", &format!("But {disturbed}; what was measured then is not the service's."));
    }
    if let Some(aborted) = &d.load.aborted {
        wrap(&mut out, "", &format!("The load was {aborted}."));
    }
    search::search(&mut out, d);
    if d.search.is_some() {
        let _ = writeln!(out, "\n{BOLD}The load{BOLD:#}");
    }
    load(&mut out, d);
    kernel::host_load(&mut out, d);
    objectives::objectives(&mut out, d);
    for finding in d.findings.iter().chain(&d.next) {
        describe(&mut out, finding);
    }
    rivals::split(&mut out, d);
    counters::counters(&mut out, d, with_counters);
    ledger(&mut out, d);
    if !d.services.is_empty() {
        let _ = writeln!(out, "\n{BOLD}Services{BOLD:#} {DIM}(of a mean request, by traces){DIM:#}");
        out.push_str(&holdup_diagnose::services::table(&d.services));
    }
    if !d.stages.is_empty() {
        let _ = writeln!(out, "\n{BOLD}Stages{BOLD:#} {DIM}(in the last minute){DIM:#}");
        out.push_str(&holdup_diagnose::stages::table(&d.stages));
    }
    accounts::accounts(&mut out, d);
    gains::all(&mut out, d);
    // Without a symptom there is nothing to clear causes of.
    if !d.cleared.is_empty() && (d.symptom.is_some() || d.snapshot.is_some()) {
        let _ = writeln!(out, "\n{BOLD}Cleared{BOLD:#}");
        for cleared in &d.cleared {
            // The last piece of evidence decides; the report has the others.
            let why = cleared.evidence.last().map_or_else(String::new, fleet::told);
            item(&mut out, cleared.cause.slug(), &why);
        }
    }
    if !d.not_judged.is_empty() {
        let _ = writeln!(out, "\n{BOLD}Not checked{BOLD:#}");
        for one in &d.not_judged {
            item(&mut out, one.cause.slug(), &format!("needs {}; turn on: {}", words::told(&one.missing), one.enable));
        }
    }
    kernel::notes(&mut out, &d.notes);
    out
}

/// The word of the answer and its style.
fn answer(d: &Diagnosis) -> (&'static str, Style) {
    let (word, color) = match d.verdict {
        Answer::Found => ("FOUND", AnsiColor::Red),
        Answer::Healthy => ("HEALTHY", AnsiColor::Green),
        Answer::Undecided => ("UNDECIDED", AnsiColor::Yellow),
    };
    (word, color.on_default().bold())
}

fn load(out: &mut String, d: &Diagnosis) {
    let load = &d.load;
    for o in &load.operations {
        let ms = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), |v| format!("{v:.1}"));
        let _ = writeln!(
            out,
            "{DIM}{}: {:.0}/s offered, {:.0}/s achieved, {} failed; response p50 {} p99 {} max {} ms{DIM:#}",
            o.operation,
            o.offered,
            o.achieved,
            o.failed.as_deref().unwrap_or("0"),
            ms(o.response_ms.p50),
            ms(o.response_ms.p99),
            ms(o.response_ms.max)
        );
    }
    if let Some(text) = &load.validity.text {
        let model = if load.model == Some(Model::Closed) { "closed model" } else { "open model" };
        let protocol = load.protocol.as_ref().map_or_else(String::new, |p| format!(", {p}"));
        let loops = if load.loops > 1 { format!(", {} loops", load.loops) } else { String::new() };
        let shard = load.shard.as_ref().map_or_else(String::new, |s| format!(", shard {s} of the schedule"));
        dim(out, &format!("load: {model}{protocol}{loops}{shard}; {text}"));
    }
    // If the generator is a finding, its reasons and fixes are printed with that.
    if d.findings.iter().all(|f| f.cause != GENERATOR) {
        for reason in &load.validity.reasons {
            wrap(out, "  - ", &reason.text);
        }
        for fix in &load.validity.fixes {
            let command = fix.command.as_ref().map_or_else(String::new, |c| format!(" {c}"));
            wrap(out, "  > ", &format!("{}{command}", fix.text));
        }
    }
    if load.model == Some(Model::Closed) {
        dim(out, CLOSED);
    }
    if let Some(text) = &load.warm_up.text {
        dim(out, &format!("warm-up: {text}; counts cover the whole run"));
    }
}

/// The cause that stands for the generator itself.
const GENERATOR: Cause = Cause::LoadGeneratorLimit;

/// The blind spot of a closed model.
const CLOSED: &str = "closed model: a slow service gets fewer requests, so response times miss the waits of users who would have come meanwhile";

/// Writes `text` dimmed, wrapped as [`wrap`] does.
fn dim(out: &mut String, text: &str) {
    styled(out, DIM, text);
}

/// Writes `text` in `style`, wrapped as [`wrap`] does.
fn styled(out: &mut String, style: Style, text: &str) {
    let mut lines = String::new();
    wrap(&mut lines, "", text);
    for line in lines.lines() {
        let _ = writeln!(out, "{style}{line}{style:#}");
    }
}

/// Writes a command in one line, so that it can be copied, and `behind` it.
fn command(out: &mut String, lead: &str, command: &str, behind: &str) {
    let style = AnsiColor::Cyan.on_default();
    let _ = writeln!(out, "{lead}{style}{}{style:#}{behind}", one_line(command));
}

fn describe(out: &mut String, finding: &Finding) {
    let role = match finding.role {
        Role::Root => "Root cause",
        Role::Contributor => "Contributor",
        Role::Symptom => "Symptom",
        Role::Next => "Will bind next",
    };
    let name = if finding.role == Role::Root { String::new() } else { format!(": {}", finding.cause) };
    let name = format!("{name}{}", fleet::place(finding));
    let _ = writeln!(out, "\n{BOLD}{role}{BOLD:#}{name}{}", size(finding));
    for evidence in &finding.evidence {
        wrap(out, "  - ", &fleet::told(evidence));
    }
    if finding.role == Role::Symptom {
        return;
    }
    let safest = if finding.fixes.len() > 1 { format!(" {DIM}(safest first){DIM:#}") } else { String::new() };
    let _ = writeln!(out, "{BOLD}What to do{BOLD:#}{safest}");
    for (i, fix) in finding.fixes.iter().enumerate() {
        wrap(out, &format!("  {}. ", i + 1), &fix.text);
        if let Some(text) = &fix.command {
            command(out, "     ", text, "");
        }
        for (word, text) in [("keep: ", &fix.keep), ("risk: ", &fix.risk)] {
            if let Some(text) = text {
                wrap(out, &format!("     {word}"), text);
            }
        }
    }
    if finding.role == Role::Root && !finding.prove.is_empty() {
        let _ = writeln!(out, "{BOLD}How to prove it{BOLD:#}");
        wrap(out, "  ", &finding.prove);
    }
}

/// The share of the delay and its confidence, for findings beside the root; the root's are at the
/// top.
fn size(of: &Finding) -> String {
    if of.role == Role::Root || of.explains_ms <= 0.0 {
        return String::new();
    }
    format!("  {DIM}{:.0} ms of a request, confidence {:.2}{DIM:#}", of.explains_ms, of.confidence)
}

fn ledger(out: &mut String, d: &Diagnosis) {
    let Some((row, parts)) = parts_of_time(d) else { return };
    let _ = writeln!(
        out,
        "\n{BOLD}Where the time went{BOLD:#} {DIM}({}, mean of {} requests: {:.1} ms){DIM:#}",
        row.operation, row.requests, row.response_ms
    );
    for (name, ms, share) in parts {
        let line = format!("  {name:<26}{ms:>10.1} ms  {:>3.0} %  {}", share * 100.0, bar(share, BAR));
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// Smallest share (0-1) of the time that is shown: less would be an empty bar and 0 %.
const LEAST_SHARE: f64 = 0.005;

/// A part of the time: its name, milliseconds and share (0-1).
type TimePart = (String, f64, f64);

/// The ledger of the most frequent operation and its parts, the unexplained one last.
fn parts_of_time(d: &Diagnosis) -> Option<(&LedgerRow, Vec<TimePart>)> {
    let row = d.ledger.iter().filter(|r| r.band == "all").max_by_key(|r| r.requests)?;
    let owned = row.parts.iter().map(|p| (p.part.as_str(), p.ms));
    let parts = owned.chain([("unexplained", row.residual_ms)]);
    let parts = parts.map(|(name, ms)| (words::part(name), ms, ms / row.response_ms.max(1e-9)));
    Some((row, parts.filter(|(.., share)| share.abs() >= LEAST_SHARE).collect()))
}

/// A bar that fills `share` (0-1) of `cells`.
fn bar(share: f64, cells: usize) -> String {
    "#".repeat((share.clamp(0.0, 1.0) * cells as f64).round() as usize)
}

fn item(out: &mut String, name: &str, text: &str) {
    wrap(out, &format!("  {name:<26} "), text);
}

/// The width of a line: the terminal's, within bounds; [`WIDTH`] if stdout is not a terminal.
fn width() -> usize {
    if cfg!(test) || !std::io::stdout().is_terminal() {
        return WIDTH;
    }
    size::columns_and_rows(libc::STDOUT_FILENO).0.clamp(NARROWEST, WIDTH)
}

/// Writes `text` after `lead`, wrapped at [`width`] and indented below it.
fn wrap(out: &mut String, lead: &str, text: &str) {
    let (indent, width) = (lead.chars().count(), width());
    let mut line = lead.to_owned();
    let mut empty = true;
    for word in text.split_whitespace().map(one_line) {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            let _ = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(&word);
        empty = false;
    }
    let _ = writeln!(out, "{}", line.trim_end());
}
