//! The results of the objectives, one per line.

use std::fmt::Write as _;

use holdup_diagnose::Diagnosis;
use holdup_diagnose::verdict::{ObjectiveReport, Span, State, Unit};

use super::{BOLD, item};

/// Writes them after a heading, if there are any.
pub fn objectives(out: &mut String, d: &Diagnosis) {
    if d.objectives.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{BOLD}Objectives{BOLD:#}");
    for objective in &d.objectives {
        let word = match objective.state {
            State::Met => "met",
            State::Missed => "missed",
            State::NotJudged => "not judged",
        };
        item(out, word, &format!("{}: {}", objective.text, what(objective)));
    }
}

/// `812 ms from 12 s to 42 s; first from 10 s to 40 s; in 5 of 21 windows; it ended the run`.
pub(super) fn what(o: &ObjectiveReport) -> String {
    let Some(value) = o.value else { return o.why.clone().unwrap_or_default() };
    let mut text = match o.unit {
        Unit::Ms => format!("{value:.1} ms"),
        Unit::Ratio => format!("{:.3} %", value * 100.0),
        Unit::PerSecond => format!("{value:.1}/s"),
    };
    let when = |span: Span| format!("from {:.0} s to {:.0} s", span.from_s, span.to_s);
    if let Some(worst) = o.worst_window {
        let which = if o.state == State::Met { "at worst, " } else { "" };
        let _ = write!(text, " {which}{}", when(worst));
    }
    if let Some(first) = o.first_window.filter(|first| Some(*first) != o.worst_window) {
        let _ = write!(text, "; first {}", when(first));
    }
    if o.windows_missed > 0 {
        let _ = write!(text, "; in {} of {} windows", o.windows_missed, o.windows);
    }
    if o.aborted {
        text.push_str("; it ended the run");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_objective_in_a_line() {
        let span = |from_s: f64| Some(Span { from_s, to_s: from_s + 30.0 });
        let missed = ObjectiveReport {
            text: "p99 < 500ms for 30s".to_owned(),
            state: State::Missed,
            value: Some(812.25),
            limit: 500.0,
            unit: Unit::Ms,
            first_window: span(10.0),
            worst_window: span(12.0),
            windows: 21,
            windows_missed: 5,
            aborted: true,
            why: Some("…".to_owned()),
        };
        assert_eq!(
            what(&missed),
            "812.2 ms from 12 s to 42 s; first from 10 s to 40 s; in 5 of 21 windows; it ended the run"
        );
        let met = ObjectiveReport {
            state: State::Met,
            value: Some(0.0125),
            unit: Unit::Ratio,
            first_window: None,
            windows_missed: 0,
            aborted: false,
            why: None,
            ..missed.clone()
        };
        assert_eq!(what(&met), "1.250 % at worst, from 12 s to 42 s");
        let open = ObjectiveReport { state: State::NotJudged, value: None, why: Some("no".to_owned()), ..met };
        assert_eq!(what(&open), "no");
    }
}
