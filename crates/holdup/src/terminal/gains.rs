//! What a fix of each part gives back, from the critical paths of traced requests.

use std::fmt::Write as _;

use holdup_diagnose::verdict::{Answer, CriticalPathReport, Diagnosis, PathPartReport};
use holdup_recording::words::{count, ms};

use super::{BOLD, DIM, wrap};

/// Parts in the brief line.
const SHOWN: usize = 2;
/// Longest name of a part there, in characters.
const NAME: usize = 48;
/// A part from this share (0-1) of the operation's time on is worth a word if it saves nothing.
const LONG: f64 = 0.1;

/// The line of the brief verdict: the operation that took the most time, with the two parts that save
/// the most, or with the one that does and the longest one that saves nothing. A healthy service has
/// it where a part saves nothing, and nowhere else.
pub(super) fn line(d: &Diagnosis) -> Option<String> {
    let path = d.critical_path.first()?;
    let idle = path.parts.iter().find(|part| part.saves_nothing(path) && part.ms >= LONG * path.mean_ms);
    if d.verdict == Answer::Healthy && idle.is_none() {
        return None;
    }
    let mut saving: Vec<&PathPartReport> = path.parts.iter().filter(|part| !part.saves_nothing(path)).collect();
    saving.sort_by(|a, b| b.saves_ms.total_cmp(&a.saves_ms));
    let saves = |part: &&PathPartReport| {
        let p99 = part.saves_p99_ms.map_or_else(String::new, |saved| format!(" and {} of p99", ms(saved)));
        format!("{} faster in {} saves {} of the mean{p99}", ms(part.faster_ms), name(part), ms(part.saves_ms))
    };
    let nothing = idle.map(|part| format!("{} faster in {} saves nothing", ms(part.faster_ms), name(part)));
    let shown = if nothing.is_some() { 1 } else { SHOWN };
    let told: Vec<String> = saving.iter().take(shown).map(saves).chain(nothing).collect();
    (!told.is_empty()).then(|| format!("{} ({} traced): {}", path.operation, count(path.requests), told.join("; ")))
}

fn name(part: &PathPartReport) -> String {
    let short: String = part.what.chars().take(NAME).collect();
    let more = if short.len() < part.what.len() { "…" } else { "" };
    match part.part.as_str() {
        // A step's own time is not that of what it calls.
        "app" => format!("{short}{more} itself"),
        // A call may queue in front of the statement.
        "database" => format!("calls of {short}{more}"),
        _ => short + more,
    }
}

/// All operations with all of their parts.
pub(super) fn all(out: &mut String, d: &Diagnosis) {
    for path in &d.critical_path {
        let p99 = path.p99_ms.map_or_else(String::new, |value| format!(", p99 {}", ms(value)));
        let _ = writeln!(
            out,
            "\n{BOLD}What a fix gives back{BOLD:#} {DIM}({} of {}, {} traced requests: mean {}{p99}){DIM:#}",
            path.operation,
            path.service,
            count(path.requests),
            ms(path.mean_ms)
        );
        for part in &path.parts {
            let text = format!("{} of {}: {}", ms(part.ms), part.what, part.text);
            wrap(out, &format!("  {:<26} ", part.part), &text);
        }
        reservations(out, path);
    }
}

fn reservations(out: &mut String, path: &CriticalPathReport) {
    if path.not_awaited > 0 {
        let text = format!("{} spans ended after their parents, which did not wait for them.", count(path.not_awaited));
        wrap(out, "  ", &text);
    }
    if path.clipped > 0 {
        let text = format!("{} spans stuck out of their parents and were moved or cut.", count(path.clipped));
        wrap(out, "  ", &text);
    }
}
