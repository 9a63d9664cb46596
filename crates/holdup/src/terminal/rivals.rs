//! The measurement that would tell rival causes apart, as text.

use holdup_diagnose::Cause;
use std::fmt::Write as _;

use holdup_diagnose::Diagnosis;
use holdup_diagnose::verdict::SnapshotReport;

use super::{BOLD, command, words, wrap};

/// The rivals, the measurement and its command; nothing if there are none.
pub(super) fn split(out: &mut String, d: &Diagnosis) {
    if let Some(snapshot) = &d.snapshot {
        return instant(out, snapshot);
    }
    let Some(split) = &d.split else { return };
    let head = if d.culprit.is_some() { "What would make it surer" } else { "What would decide" };
    let _ = writeln!(out, "\n{BOLD}{head}{BOLD:#}");
    let between = if split.rivals.is_empty() { String::new() } else { Cause::join(&split.rivals, " or ") + ": " };
    wrap(out, "  - ", &format!("{between}measure {}", words::told(&split.measure)));
    if let Some(text) = &split.command {
        command(out, "    ", text, "");
    }
    if split.watch.is_some() {
        wrap(out, "    ", "holdup doctor --for-verdict RECORDING takes this measurement if that is safe");
    }
}

/// What an instant settles, what it leaves open, and what to paste next.
fn instant(out: &mut String, snapshot: &SnapshotReport) {
    let _ = writeln!(out, "\n{BOLD}One instant{BOLD:#}");
    for settled in &snapshot.settles {
        wrap(out, "  - ", settled);
    }
    wrap(out, "  - ", &snapshot.open);
    for next in &snapshot.paste_next {
        wrap(out, "  paste next: ", &format!("{} ({} s, only reads): {}", next.command, next.seconds, next.shows));
    }
}
