//! What a replay sent and what it left out, in words and as `replay.json` beside the recording's
//! tables.

use holdup_logs::digest::time::written;
use holdup_logs::replay::shapes::{REST, RestCounts, Shape};
use holdup_logs::replay::survey::Survey;
use serde::Serialize;

use super::PlayedFacts;

/// File name of the facts in a recording.
pub const REPLAY: &str = "replay.json";

/// Facts of a replay. Times are the log's, unless they say otherwise.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// The logs, in the order they were read.
    pub logs: Vec<String>,
    /// Their format.
    pub format: &'static str,
    /// The speed, as a multiple of the log's.
    pub speed: f64,
    /// Whether statements that may write were sent, too.
    pub writes: bool,
    /// Statements in the logs.
    pub statements: u64,
    /// Statements to be sent.
    pub sent: u64,
    /// Distinct statements among those.
    pub digests: usize,
    /// Those that did not fit in memory and share one digest, `rest`; none if all did.
    pub rest: Option<RestFacts>,
    /// Statements that were left out, by reason.
    pub left_out: std::collections::BTreeMap<&'static str, u64>,
    /// Sessions.
    pub sessions: u64,
    /// Most concurrent sessions in the log.
    pub sessions_at_once: u32,
    /// Most concurrent sessions allowed.
    pub connections: u32,
    /// Time of the first statement.
    pub from: String,
    /// End of the last statement.
    pub to: String,
    /// Their distance in seconds.
    pub length_s: f64,
    /// Whether a limit ends it before the log does.
    pub is_limited: bool,
    /// Statements whose log has whole seconds only, spread over their second.
    pub spread: u64,
    /// Statements that took longer than the look-ahead, and so are sent late.
    pub too_long: u64,
    /// Records without a time.
    pub without_time: u64,
    /// Problems in the logs, with their number.
    pub problems: Vec<(&'static str, u64)>,
    /// Texts of the statements to be sent, without their values, by digest.
    pub texts: std::collections::BTreeMap<String, String>,
    /// The results; none for a mere check.
    pub played: Option<PlayedFacts>,
    #[serde(skip)]
    words: Vec<(u64, &'static str)>,
}

impl Facts {
    /// From a survey; nothing has been played yet.
    pub fn new(survey: &Survey, logs: Vec<String>, format: &'static str, speed: f64, writes: bool) -> Self {
        let left_out = &survey.left_out.statements;
        let rest = survey.shapes.rest().map(RestFacts::from_counts);
        let is_own = |shape: &&Shape| shape.sent > 0 && &*shape.digest != REST;
        let own = survey.shapes.all.iter().filter(is_own).count();
        Self {
            logs,
            format,
            speed,
            writes,
            statements: survey.statements,
            sent: survey.sent,
            digests: own + rest.as_ref().map_or(0, |rest| rest.statements),
            rest,
            left_out: left_out.iter().map(|(reason, count)| (reason.name(), *count)).collect(),
            sessions: survey.sessions,
            sessions_at_once: survey.most_sessions,
            connections: survey.most_sessions,
            from: written(survey.first_us),
            to: written(survey.last_us),
            length_s: survey.last_us.abs_diff(survey.first_us) as f64 / 1e6,
            is_limited: survey.is_limited,
            spread: survey.corrections.spread,
            too_long: survey.corrections.too_long,
            without_time: survey.corrections.without_time,
            problems: survey.problems.all().map(|(problem, count, _)| (problem.words(), count)).collect(),
            texts: survey
                .shapes
                .all
                .iter()
                .filter(|shape| shape.sent > 0)
                .map(|shape| (shape.digest.to_string(), shape.text.to_string()))
                .collect(),
            played: None,
            words: left_out.iter().map(|(reason, count)| (*count, reason.words())).collect(),
        }
    }

    /// What is sent and what is left out, line by line.
    pub fn lines(&self) -> Vec<String> {
        let share = 100.0 * self.sent as f64 / self.statements.max(1) as f64;
        let mut lines = vec![format!(
            "{} of the log's {} statements ({share:.1} %), {} distinct, in {} sessions, at most {} at once; {} to {}, {} s",
            self.sent,
            self.statements,
            self.digests,
            self.sessions,
            self.sessions_at_once,
            self.from,
            self.to,
            rounded(self.length_s),
        )];
        lines.extend(self.words.iter().map(|(count, words)| format!("left out: {count} {words}")));
        if let Some(rest) = &self.rest {
            let at_least = if rest.is_at_least { "at least " } else { "" };
            lines.push(format!(
                "{at_least}{} distinct statements did not fit in memory (--max-memory): they are sent, and share one \
                 digest, `{REST}`; {} executions took {} s in the log, none of the statements more than {} s",
                rest.statements,
                rest.sent,
                rounded(rest.took_s),
                rounded(rest.at_most_s)
            ));
        }
        if self.is_limited {
            lines.push("a limit ends it before the log does".to_owned());
        }
        if self.spread > 0 {
            lines.push(format!(
                "the log has whole seconds: {} records are spread evenly over their second, in the log's order",
                self.spread
            ));
        }
        if self.too_long > 0 {
            lines.push(format!("{} statements took longer than the look-ahead: they are sent late", self.too_long));
        }
        if self.without_time > 0 {
            lines.push(format!(
                "{} records have no time: each gets the time of the record before it",
                self.without_time
            ));
        }
        if self.connections < self.sessions_at_once {
            lines.push(format!(
                "at most {} sessions connect at once, but the log has up to {}: some wait for others to leave",
                self.connections, self.sessions_at_once
            ));
        }
        lines.extend(self.problems.iter().map(|(words, count)| format!("in the logs: {count} {words}")));
        lines.extend(self.played.iter().flat_map(PlayedFacts::lines));
        lines
    }
}

/// Statements that share one digest, because they did not fit in memory.
#[derive(Clone, Debug, Serialize)]
pub struct RestFacts {
    /// Number of different statements in the logs, including those left out.
    pub statements: usize,
    /// Whether there may be more.
    pub is_at_least: bool,
    /// Executions to be sent.
    pub sent: u64,
    /// Their time in the log, seconds.
    pub took_s: f64,
    /// Upper bound on the time of each statement, seconds.
    pub at_most_s: f64,
}

impl RestFacts {
    fn from_counts(counts: RestCounts) -> Self {
        let RestCounts { statements, is_at_least, sent, took_us, at_most_us } = counts;
        Self { statements, is_at_least, sent, took_s: took_us as f64 / 1e6, at_most_s: at_most_us as f64 / 1e6 }
    }
}

/// A number of seconds for people.
fn rounded(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.2}") } else { format!("{seconds:.0}") }
}
