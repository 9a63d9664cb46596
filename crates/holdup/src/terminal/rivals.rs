//! What would tell causes apart that the recording does not tell apart, as text.

use std::fmt::Write as _;

use super::style::AnsiColor;
use super::visible::one_line;
use holdup_diagnose::Diagnosis;

use super::{BOLD, wrap};

/// The rivals, what to measure and the command; nothing if there is nothing to split.
pub(super) fn split(out: &mut String, d: &Diagnosis) {
    let Some(split) = &d.split else { return };
    let head = if d.culprit.is_some() { "What would make it surer" } else { "What would tell" };
    let _ = writeln!(out, "\n{BOLD}{head}{BOLD:#}");
    wrap(out, "  - ", &format!("{}: measure {}", split.rivals.join(" or "), split.measure));
    if let Some(command) = &split.command {
        let style = AnsiColor::Cyan.on_default();
        let command = one_line(command);
        let _ = writeln!(out, "    {style}{command}{style:#}");
    }
    if split.watch.is_some() {
        wrap(out, "    ", "holdup doctor --for-verdict RECORDING takes it where that is safe");
    }
}
