//! The stages of a pipeline beside the verdict, as data and as text: how much comes in, how much is done,
//! how far behind each is, and when its backlog is gone.

use std::fmt::Write as _;

use holdup_recording::words::{self, round, thousands};
use holdup_signals::app::pipeline::{Course, Outlook, courses};
use serde::{Deserialize, Serialize};

use crate::case::Case;

/// Stages that a table of unnamed stages shows at most: those that are furthest behind.
const ROWS: usize = 15;

/// A backlog that needs longer than this is not worked off, seconds: a week.
const LONGEST_S: f64 = 604_800.0;

/// One stage in the last minute of the recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageRow {
    /// The user's name for it, or group and topic.
    pub stage: String,
    /// What is counted: `records`, `bytes` or `items`.
    pub unit: String,
    /// How much comes in a second; none if it is not known.
    pub in_per_second: Option<f64>,
    /// How much is done a second; none if it is not known.
    pub out_per_second: Option<f64>,
    /// How much it makes a second, in the unit of what counts that; none if nothing does.
    pub made_per_second: Option<f64>,
    /// What waits at the end.
    pub backlog: f64,
    /// Time since the oldest of it came, seconds.
    pub lag_s: f64,
    /// The longest such time of the recording, seconds.
    pub lag_max_s: f64,
    /// How long what comes now will wait at the present pace (Little's law), seconds; none if nothing is done.
    pub wait_s: Option<f64>,
    /// What becomes of the backlog: `keeps_up`, `gone`, `grows`, `stays` or `unknown`.
    pub outlook: String,
    /// When the backlog is gone at the present pace, seconds from the end; none unless `outlook` is `gone`.
    pub gone_in_s: Option<f64>,
}

/// The stages: named ones in the user's order, others by how far they are behind; empty without figures.
pub fn report(case: &Case<'_>) -> Vec<StageRow> {
    let view = case.view(case.whole());
    let mut rows: Vec<StageRow> = courses(&view).iter().filter_map(row).collect();
    if case.recording.manifest.pipeline.is_empty() {
        rows.sort_by(|a, b| b.lag_s.total_cmp(&a.lag_s));
        rows.truncate(ROWS);
    }
    rows
}

fn row(of: &Course<'_>) -> Option<StageRow> {
    let (from, to) = of.present()?;
    let rates = of.rates(from, to);
    let backlog = of.backlog.last()?.1;
    let outlook = of.outlook();
    let (word, gone_in_s) = match outlook {
        Outlook::KeepsUp => ("keeps_up", None),
        Outlook::Gone(seconds) if seconds <= LONGEST_S => ("gone", Some(round(seconds, 1))),
        Outlook::Gone(_) | Outlook::Stays => ("stays", None),
        Outlook::Grows => ("grows", None),
        Outlook::Unknown => ("unknown", None),
    };
    let rounded = |value: f64| round(value, 3);
    Some(StageRow {
        stage: of.name.clone(),
        unit: of.unit.to_owned(),
        in_per_second: rates.map(|(comes, _)| rounded(comes)),
        out_per_second: rates.map(|(_, goes)| rounded(goes)),
        made_per_second: of.made_per_second(from, to).map(rounded),
        backlog: rounded(backlog),
        lag_s: rounded(of.lag_at(to)),
        lag_max_s: rounded(of.lag.iter().map(|point| point.1).fold(0.0, f64::max)),
        wait_s: rates.filter(|(_, goes)| *goes > 0.0).map(|(_, goes)| rounded(backlog / goes)),
        outlook: word.to_owned(),
        gone_in_s,
    })
}

/// `; at this pace its backlog is gone in 12 min`; empty if it keeps up, or nothing tells.
pub(crate) fn outlook(of: &Course<'_>) -> String {
    match of.outlook() {
        Outlook::KeepsUp => "; it has caught up since".to_owned(),
        Outlook::Gone(seconds) if seconds <= LONGEST_S => {
            format!("; at this pace its backlog is gone in {}", span(seconds))
        }
        Outlook::Gone(_) | Outlook::Stays => "; its backlog is not worked off".to_owned(),
        Outlook::Grows => "; its backlog still grows".to_owned(),
        Outlook::Unknown => String::new(),
    }
}

/// `120/s`, `2.1 MB/s`.
pub(crate) fn per_second(of: &Course<'_>, rate: f64) -> String {
    rate_text(of.unit, rate)
}

fn rate_text(unit: &str, rate: f64) -> String {
    if unit == "bytes" { words::bytes_per_second(rate) } else { format!("{}/s", thousands(rate)) }
}

/// `40 s`, `12 min`, `3.5 h`.
fn span(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{} s", thousands(s)),
        s if s < 7_200.0 => format!("{} min", thousands(s / 60.0)),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

/// The table of the stages, a line each under a header; empty without any.
pub fn table(rows: &[StageRow]) -> String {
    let mut text = String::new();
    if rows.is_empty() {
        return text;
    }
    let name = rows.iter().map(|row| row.stage.chars().count()).max().unwrap_or(0).clamp(5, 36);
    let _ = writeln!(text, "{:<name$} {:>10} {:>10} {:>11} {:>9}  backlog", "stage", "in", "done", "waiting", "behind");
    for row in rows {
        let shown: String = row.stage.chars().map(|c| if c.is_control() { '?' } else { c }).take(name).collect();
        let amount = |value: f64| if row.unit == "bytes" { words::bytes(value) } else { thousands(value) };
        let each = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| rate_text(&row.unit, rate));
        let outlook = match (row.outlook.as_str(), row.gone_in_s) {
            (_, Some(seconds)) => format!("gone in {}", span(seconds)),
            ("keeps_up", _) => "keeps up".to_owned(),
            (word, _) => word.to_owned(),
        };
        let _ = writeln!(
            text,
            "{shown:<name$} {:>10} {:>10} {:>11} {:>9}  {outlook}",
            each(row.in_per_second),
            each(row.out_per_second),
            amount(row.backlog),
            span(row.lag_s),
        );
    }
    text
}
