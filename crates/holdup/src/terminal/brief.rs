//! The verdict on one screen: at most 40 lines, with culprit, time, fix and command in the first
//! half. `--verbose` prints the rest.

use std::fmt::Write as _;
use std::path::Path;

use holdup_collect::watch::is_source;
use holdup_diagnose::Diagnosis;
use holdup_diagnose::causes::Trait;
use holdup_diagnose::stages::table as stage_table;
use holdup_diagnose::verdict::{
    Answer, Cleared, CoverageEntry, Finding, NAMED, ObjectiveReport, ServiceRow, SnapshotReport, Span, StageRow, State,
};
use holdup_recording::words::{capital, ms};
use holdup_recording::{CoverageState, clock};

use super::fleet;
use super::objectives::what;
use super::search::search;
use super::visible::one_line;
use super::{BOLD, DIM, answer, command, gains, kernel, parts_of_time, words, wrap};

/// Most pieces of evidence, and most fixes.
const SHOWN: usize = 3;

/// Most stages of a pipeline.
const STAGES: usize = 5;

/// Most lines of one text.
const LINES_EACH: usize = 2;

/// A cause is very likely from this confidence (0-1) on.
const VERY_LIKELY: f64 = 0.7;

/// Below this confidence (0-1) the verdict names the measurement that would raise it.
const SURE: f64 = 0.75;

/// The brief verdict; `dir` is its recording's directory, if it is on disk.
pub fn brief(d: &Diagnosis, dir: Option<&Path>) -> String {
    let mut out = String::new();
    let likeliest = d.likeliest();
    let root = likeliest.filter(|_| d.is_named());
    title(&mut out, d, likeliest);
    sentence(&mut out, d, root);
    warnings(&mut out, d);
    search(&mut out, d);
    if let Some(finding) = likeliest {
        // The whole recording and one table of it may have the same text.
        let mut told: Vec<String> = finding.evidence.iter().map(fleet::told).collect();
        told.dedup();
        for text in told.into_iter().take(SHOWN) {
            cut(&mut out, "  - ", &text);
        }
        chain(&mut out, d);
        fixes(&mut out, d, finding);
    }
    objectives(&mut out, d);
    if let Some(of) = &d.fleet {
        cut(&mut out, "Hosts: ", &fleet::line(of));
    }
    load(&mut out, d);
    time(&mut out, d);
    services(&mut out, d);
    stages(&mut out, d);
    if let Some(line) = gains::line(d) {
        cut(&mut out, "A fix gives back: ", &line);
    }
    for dear in d.level.iter().flat_map(|level| &level.dear).filter(|_| root.is_none()) {
        let command = dear.command.as_ref().map_or_else(String::new, |command| format!(": {command}"));
        cut(&mut out, "Dear at this level: ", &format!("{}{command}", dear.text));
    }
    if let Some(next) =
        d.next.as_ref().filter(|next| d.level.iter().all(|l| l.dear.iter().all(|dear| dear.cause != next.cause)))
    {
        let line = format!("{} ({}), {} of an average request", next.title, next.cause, ms(next.explains_ms));
        cut(&mut out, "Will bind next: ", &line);
    }
    match &d.snapshot {
        Some(snapshot) => instant(&mut out, d, snapshot),
        None => split(&mut out, d, root),
    }
    cleared(&mut out, d);
    not_watched(&mut out, d);
    not_checked(&mut out, d);
    more(&mut out, d, dir);
    out
}

/// The word, the cause and its confidence.
fn title(out: &mut String, d: &Diagnosis, likeliest: Option<&Finding>) {
    let (word, style) = answer(d);
    let Some(finding) = likeliest else {
        let _ = writeln!(out, "{style}{word}{style:#}");
        return;
    };
    let (lead, grade) = match (d.is_named(), finding.confidence) {
        (false, confidence) => ("likeliest: ", format!("({confidence:.2})")),
        (true, confidence) if confidence >= VERY_LIKELY => ("", format!("very likely ({confidence:.2})")),
        (true, confidence) => ("", format!("likely ({confidence:.2})")),
    };
    // Two tied causes stand in the sentence; one number beside one of them would seem to decide.
    let is_tied = !d.is_named() && finding.confidence >= NAMED;
    let grade = if is_tied { String::new() } else { format!("  {grade}") };
    let place = fleet::place(finding);
    let (name, cause) = (one_line(&finding.title), format!("{}{}", finding.cause, one_line(&place)));
    let taken = [word, lead, &name, &cause, &grade].iter().map(|text| text.chars().count()).sum::<usize>();
    // The blanks and the colon between them.
    let gap = if taken + 4 <= super::width() { " ".to_owned() } else { format!("\n{}", " ".repeat(word.len() + 2)) };
    let _ = writeln!(out, "{style}{word}{style:#}  {lead}{BOLD}{name}{BOLD:#}:{gap}{cause}{DIM}{grade}{DIM:#}");
}

/// Its cost and since when; or the headline, if the cost is not in milliseconds.
fn sentence(out: &mut String, d: &Diagnosis, root: Option<&Finding>) {
    let when = d.episode.map(|episode| format!("From {}", clock_span(d, episode)));
    let cost = root.filter(|f| f.explains_ms > 0.0 && f.explains_ratio > 0.0 && d.search.is_none()).map(|f| {
        let lost = ms(f.explains_ms / f.explains_ratio);
        let whole = if d.level.is_some() { "that an average request takes" } else { "that the average request lost" };
        format!("It accounts for {} of the {lost} {whole}.", ms(f.explains_ms))
    });
    let symptom = d.symptom.as_deref();
    let suffered = match (when, symptom) {
        (Some(when), Some(symptom)) => Some(format!("{when}: {symptom}.")),
        (Some(when), None) => Some(format!("{when}.")),
        (None, Some(symptom)) => Some(format!("{}.", capital(symptom))),
        (None, None) => None,
    };
    let all: Vec<String> = std::iter::once(cost.unwrap_or_else(|| d.headline.clone())).chain(suffered).collect();
    // A sentence that stands alone has the room of the second.
    let most = if all.len() == 1 { 2 * LINES_EACH + 1 } else { LINES_EACH + 1 };
    for text in all {
        lines(out, "", &text, most);
    }
}

/// Seconds of a day: in longer recordings a time of day is not unique.
const DAY_S: f64 = 86_400.0;

/// `10:31:14 to 10:31:24 UTC (14 s to 24 s)`; with the date in recordings of a day or more.
fn clock_span(d: &Diagnosis, span: Span) -> String {
    let seconds = format!("{:.0} s to {:.0} s", span.from_s, span.to_s);
    let Some(start) = clock::parse_rfc3339(&d.started_at) else { return seconds };
    let at = |s: f64| {
        let text = clock::rfc3339(start + (s * 1e9) as i64).replace('T', " ");
        let from = if span.to_s >= DAY_S { 0 } else { "2026-11-25 ".len() };
        text.get(from.."2026-11-25 10:31:14".len()).unwrap_or_default().to_owned()
    };
    format!("{} to {} UTC ({seconds})", at(span.from_s), at(span.to_s))
}

/// Reservations: another recording as baseline, further episodes, a disturbed machine, unfinished
/// old work.
fn warnings(out: &mut String, d: &Diagnosis) {
    if let Some(against) = &d.against {
        cut(out, "", &format!("It was {}.", against.text));
    }
    for lacking in fleet::warnings(d) {
        cut(out, "", &lacking);
    }
    if let Some(read) = &d.read {
        let often = if read.step_s > 0.0 { format!(" every {:.0} s", read.step_s) } else { String::new() };
        let rest = format!("of the rest holdup read response time and counters{often}");
        cut(out, "", &format!("Causes were judged from {} only; {rest}.", clock_span(d, read.window)));
    }
    if d.episodes.len() > 1 {
        cut(out, "", &format!("This is one of {} episodes; --verbose lists them.", d.episodes.len()));
    }
    if let (Some(disturbed), true) = (&d.load.disturbed, d.verdict != Answer::Undecided) {
        cut(out, "", &format!("But {disturbed}; what was measured then is not the service's."));
    }
    if let Some(aborted) = &d.load.aborted {
        cut(out, "", &format!("The load was {aborted}."));
    }
    if let Some(debt) = &d.debt {
        let about = debt.seconds.map_or_else(String::new, |s| format!(", about {s:.0} s of it"));
        cut(out, "", &format!("The database still has work left{about}: measure a fix after that (holdup settle)."));
    }
}

/// Contributors, the root and its consequences, in one line.
fn chain(out: &mut String, d: &Diagnosis) {
    if let Some(parts) = kernel::chain_of(d) {
        cut(out, "chain: ", &parts.join(" -> "));
    }
}

/// The fixes of the culprit, then the first one of each contributor, each with its command and its
/// risk.
fn fixes(out: &mut String, d: &Diagnosis, root: &Finding) {
    let adds = |f: &&Finding| f.adds_to.is_some() && f.cause != root.cause;
    let mut contributors: Vec<&Finding> = d.findings.iter().filter(adds).collect();
    // What is left of a burst is the limit, whose own fix stands above.
    contributors.sort_by_key(|f| f.cause.is(Trait::DiskBurst));
    let contributed = contributors.into_iter().filter_map(|f| Some((f.cause.slug(), f.fixes.first()?)));
    let own = root.fixes.iter().map(|fix| ("", fix));
    let all: Vec<_> = own.chain(contributed).take(SHOWN).collect();
    if all.is_empty() {
        return;
    }
    let safest = if all.len() > 1 { format!(" {DIM}(safest first){DIM:#}") } else { String::new() };
    let _ = writeln!(out, "{BOLD}What to do{BOLD:#}{safest}");
    for (i, (cause, fix)) in all.iter().enumerate() {
        let of = if cause.is_empty() { String::new() } else { format!("{cause}: ") };
        cut(out, &format!("  {}. ", i + 1), &format!("{of}{}", fix.text));
        if let Some(text) = &fix.command {
            command(out, "     ", text, "");
        }
        if let Some(risk) = &fix.risk {
            cut(out, "     risk: ", risk);
        }
    }
}

/// Objectives by result; if the service looks healthy without any, it says so.
fn objectives(out: &mut String, d: &Diagnosis) {
    let all = |state: State, tell: fn(&ObjectiveReport) -> String| {
        let told: Vec<String> = d.objectives.iter().filter(|o| o.state == state).map(tell).collect();
        told.join(", ")
    };
    let with_value = |o: &ObjectiveReport| format!("{}: {}", o.text, what(o));
    let is_healthy = d.verdict == Answer::Healthy;
    let met = if is_healthy { all(State::Met, |o| o.text.clone()) } else { String::new() };
    for (lead, objectives) in [
        ("Objectives missed: ", all(State::Missed, with_value)),
        ("Objectives met: ", met),
        ("Objectives not judged: ", all(State::NotJudged, with_value)),
    ] {
        if !objectives.is_empty() {
            cut(out, lead, &objectives);
        }
    }
    if is_healthy && d.objectives.is_empty() && d.search.is_none() {
        cut(out, "", "No objective was given: healthy means that no part of the recording was slower than the rest.");
    }
}

/// Total rates and failures of the load, and whether the generator kept up.
fn load(out: &mut String, d: &Diagnosis) {
    let of = &d.load;
    if of.operations.is_empty() {
        return;
    }
    let offered: f64 = of.operations.iter().map(|o| o.offered).sum();
    let achieved: f64 = of.operations.iter().map(|o| o.achieved).sum();
    let named = of.operations.iter().filter_map(|o| Some((&o.operation, o.failed.as_ref()?)));
    let named: Vec<String> = named
        .map(
            |(operation, failed)| {
                if of.operations.len() > 1 { format!("{operation} {failed}") } else { failed.clone() }
            },
        )
        .collect();
    let failed = if named.is_empty() { "0 failed".to_owned() } else { format!("failed: {}", named.join("; ")) };
    let validity = of.validity.text.as_ref().map_or_else(String::new, |text| format!("; {text}"));
    let rates = format!("{offered:.0}/s offered, {achieved:.0}/s achieved, {failed}{validity}");
    cut(out, "Load: ", &rates);
}

/// Where the time of the most frequent operation went, in one sentence.
fn time(out: &mut String, d: &Diagnosis) {
    let Some((row, parts)) = parts_of_time(d) else { return };
    let shown = parts.iter().map(|(name, part, share)| format!("{name} {} ({:.0} %)", ms(*part), share * 100.0));
    let shown: Vec<String> = shown.collect();
    let whole = format!("an average request of \"{}\" took {}", row.operation, ms(row.response_ms));
    cut(out, "Time: ", &format!("{whole}: {}", shown.join(", ")));
}

/// Own times of the services that traces show: of those that lost most time, in one sentence.
fn services(out: &mut String, d: &Diagnosis) {
    let one = |row: &ServiceRow| {
        let before = row.own_before_ms.map_or_else(String::new, |before| format!(" (before {})", ms(before)));
        format!("{} {}{before}", row.service, ms(row.own_ms))
    };
    let all: Vec<String> = d.services.iter().take(SHOWN).map(one).collect();
    let rest = d.services.len().saturating_sub(SHOWN);
    let rest = if rest > 0 { format!(", and {rest} more") } else { String::new() };
    if all.len() > 1 {
        cut(out, "Services: ", &format!("own time of a mean request: {}{rest}", all.join(", ")));
    }
}

/// The stages of a pipeline, as many as fit on the screen: those furthest behind.
fn stages(out: &mut String, d: &Diagnosis) {
    if d.stages.is_empty() {
        return;
    }
    let mut furthest: Vec<&StageRow> = d.stages.iter().collect();
    furthest.sort_by(|a, b| b.lag_s.total_cmp(&a.lag_s));
    let least = furthest.get(STAGES - 1).map_or(0.0, |row| row.lag_s);
    let shown: Vec<StageRow> = d.stages.iter().filter(|row| row.lag_s >= least).take(STAGES).cloned().collect();
    let rest = d.stages.len() - shown.len();
    let rest = if rest > 0 { format!(", and {rest} more") } else { String::new() };
    let _ = writeln!(out, "{BOLD}Stages{BOLD:#} {DIM}(in the last minute{rest}){DIM:#}");
    stage_table(&shown).lines().for_each(|line| {
        let _ = writeln!(out, "  {line}");
    });
}

/// The one measurement that would decide.
fn split(out: &mut String, d: &Diagnosis, root: Option<&Finding>) {
    if root.is_some_and(|f| d.is_named() && f.confidence >= SURE) {
        return;
    }
    let Some(split) = &d.split else { return };
    cut(out, "To be surer: ", &format!("measure {}", words::told(&split.measure)));
    if let Some(text) = &split.command {
        command(out, "     ", text, "");
    }
}

/// What an instant settles beside the headline, and the commands to paste next.
fn instant(out: &mut String, d: &Diagnosis, snapshot: &SnapshotReport) {
    for settled in snapshot.settles.iter().filter(|settled| !d.headline.contains(settled.as_str())) {
        cut(out, "Settled: ", settled);
    }
    if !d.headline.contains(&snapshot.open) {
        cut(out, "Not settled: ", &snapshot.open);
    }
    if snapshot.paste_next.is_empty() {
        return;
    }
    let _ = writeln!(out, "{BOLD}Paste next{BOLD:#} {DIM}(they only read){DIM:#}");
    for next in &snapshot.paste_next {
        command(out, "     ", &next.command, &format!("  {DIM}({} s){DIM:#}", next.seconds));
        cut(out, "       ", &next.shows);
    }
}

/// Causes that are ruled out, with the figure if it is zero and so needs no sentence.
fn cleared(out: &mut String, d: &Diagnosis) {
    // A healthy service has no symptom to clear causes of.
    if d.cleared.is_empty() || d.verdict == Answer::Healthy {
        return;
    }
    let one = |cause: &Cleared| {
        let figure = cause.evidence.last().map(|e| e.observed.as_str()).filter(|f| f.starts_with("0 "));
        figure.map_or_else(|| cause.cause.slug().to_owned(), |figure| format!("{} ({figure})", cause.cause))
    };
    let all: Vec<String> = d.cleared.iter().map(one).collect();
    let told = |shown: usize| {
        let rest = all.len() - shown;
        let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        let mut text = String::new();
        wrap(&mut text, "Cleared: ", &format!("{}{rest}", all[..shown].join(", ")));
        text
    };
    let shown = (1..=all.len()).rev().map(told).find(|text| text.lines().count() <= SHOWN);
    out.push_str(&shown.unwrap_or_else(|| told(1)));
}

/// Sources that never answered, each with its reason.
fn not_watched(out: &mut String, d: &Diagnosis) {
    let is_silent = |of: &&CoverageEntry| of.state == CoverageState::Absent && is_source(&of.source);
    for silent in d.coverage.iter().filter(is_silent).take(SHOWN) {
        let why = silent.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        cut(out, "Not watched: ", &one_line(&format!("{}{why}", silent.source)));
    }
}

/// How many causes could not be checked, and the sources that most of them need.
fn not_checked(out: &mut String, d: &Diagnosis) {
    if d.not_judged.is_empty() {
        return;
    }
    // `holdup doctor` prints the grants that a source needs.
    let short = |enable: &str| match enable.starts_with(char::is_uppercase) {
        // SQL, e.g. the grant for the account in use: a part of it is useless.
        true => enable.to_owned(),
        false => words::told(enable.split([',', ';']).next().unwrap_or_default()),
    };
    let mut sources: Vec<(String, usize)> = Vec::new();
    for enable in d.not_judged.iter().map(|one| short(&one.enable)) {
        match sources.iter_mut().find(|(told, _)| *told == enable) {
            Some((_, count)) => *count += 1,
            None => sources.push((enable, 1)),
        }
    }
    sources.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let told: Vec<String> = sources.iter().take(SHOWN).map(|(enable, n)| format!("{enable} ({n})")).collect();
    let (n, s) = (d.not_judged.len(), if d.not_judged.len() == 1 { "" } else { "s" });
    cut(out, "Not checked: ", &format!("{n} cause{s}, which would need {}", told.join(", or ")));
}

/// Where the rest is.
fn more(out: &mut String, d: &Diagnosis, dir: Option<&Path>) {
    let notes = d.notes.len();
    if notes > 0 {
        let s = if notes == 1 { "" } else { "s" };
        let _ =
            writeln!(out, "Settings: {notes} differ{} from the vendors' advice", if s.is_empty() { "s" } else { "" });
    }
    if let Some(dir) = dir {
        let shown = one_line(&dir.display().to_string()).into_owned();
        let _ = writeln!(out, "{DIM}More: holdup diagnose {shown} --verbose{DIM:#}");
    }
}

/// `text` behind `lead`, cut after [`LINES_EACH`] lines.
fn cut(out: &mut String, lead: &str, text: &str) {
    lines(out, lead, text, LINES_EACH);
}

/// `text` behind `lead`, in at most `most` lines; an omission shows as `…`.
fn lines(out: &mut String, lead: &str, text: &str, most: usize) {
    let mut all = String::new();
    wrap(&mut all, lead, text);
    let wrapped: Vec<&str> = all.lines().collect();
    let Some(rest) = wrapped.len().checked_sub(most).filter(|rest| *rest > 0) else {
        out.push_str(&all);
        return;
    };
    let shown = wrapped.len() - rest;
    for line in &wrapped[..shown - 1] {
        let _ = writeln!(out, "{line}");
    }
    let last = wrapped[shown - 1];
    // Room for the mark, at the end of a word.
    let fits = if last.chars().count() + 2 <= super::width() {
        last
    } else {
        last.rsplit_once(' ').map_or(last, |(most, _)| most)
    };
    let _ = writeln!(out, "{} …", fits.trim_end_matches([',', ';', ':', '.']));
}

#[cfg(test)]
mod tests;
