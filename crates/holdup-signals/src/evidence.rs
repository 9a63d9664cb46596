//! What a claim rests on: pointers into the recording, with the observed value and the one expected
//! otherwise. Also what to do about a cause. Other modules make the claims.

use holdup_recording::rows::Sample;
use holdup_recording::{Labels, Recording};
use serde::{Deserialize, Serialize};

use crate::{Window, host::mounts};

/// A stretch of time, seconds from the start of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Start.
    pub from_s: f64,
    /// End.
    pub to_s: f64,
}

/// A pointer into the recording, and what it shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Table of the recording.
    pub table: String,
    /// Its column.
    pub column: String,
    /// The rows: column values, or for `samples` the metric (as `metric`) and its labels.
    pub labels: Labels,
    /// When; none means the whole recording.
    pub window: Option<Span>,
    /// The observed value.
    pub observed: String,
    /// The value expected otherwise.
    pub expected: String,
    /// A sentence.
    pub text: String,
    /// Chart of the report that shows it.
    #[serde(default)]
    pub chart: Option<String>,
    /// Whether it points into the baseline recording; `window` then lies in that one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub against: bool,
    /// The host that it is of, of several that were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The window as given, until the verdict's pieces are gathered.
    #[serde(skip)]
    pub at: Option<Window>,
}

impl Evidence {
    /// Points at rows of `table` with `labels` in `window`.
    pub fn new(
        table: &str,
        column: &str,
        labels: Labels,
        window: Window,
        observed: impl Into<String>,
        expected: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            table: table.to_owned(),
            column: column.to_owned(),
            labels,
            window: None,
            observed: observed.into(),
            expected: expected.into(),
            text: text.into(),
            chart: None,
            against: false,
            host: None,
            at: Some(window),
        }
    }

    /// The same pointer with other words.
    pub fn saying(mut self, expected: impl Into<String>, text: impl Into<String>) -> Self {
        self.expected = expected.into();
        self.text = text.into();
        self
    }

    /// Whether rows of the time `at`, nanoseconds since the Unix epoch, are meant.
    fn is_within(&self, at: i64, recording: &Recording) -> bool {
        self.window.is_none_or(|span| {
            let s = (at - recording.manifest.started_at) as f64 / 1e9;
            // A counter's growth belongs to the samples on both sides of the window.
            span.from_s - 2.5 <= s && s <= span.to_s + 2.5
        })
    }

    /// The rows of `samples` that it points at; none if it points at another table.
    pub fn samples<'r>(&'r self, recording: &'r Recording) -> impl Iterator<Item = &'r Sample> {
        let is_meant = move |row: &&Sample| {
            let wanted: Vec<(&str, &str)> = self.labels.iter().filter(|(name, _)| *name != "metric").collect();
            self.labels.get("metric").is_none_or(|metric| row.metric == metric)
                && row.labels.contains(&wanted)
                && self.is_within(row.observed_at, recording)
        };
        let rows = if self.table == "samples" { recording.tables.samples.rows.as_slice() } else { &[] };
        rows.iter().filter(is_meant)
    }

    /// Whether it points at one row at least.
    pub fn resolves(&self, recording: &Recording) -> bool {
        let tables = &recording.tables;
        let within = |at: i64| self.is_within(at, recording);
        let label = |name: &str| self.labels.get(name);
        let is = |name: &str, value: &str| label(name).is_none_or(|l| l == value);
        match self.table.as_str() {
            "samples" => self.samples(recording).next().is_some(),
            "requests" => tables.requests.rows.iter().any(|r| is("operation", &r.operation) && within(r.intended_at)),
            "sessions" => tables.sessions.rows.iter().any(|r| {
                is("true_state", &r.true_state)
                    && is("command", &r.command)
                    && label("state").is_none_or(|state| r.state.as_deref() == Some(state))
                    && within(r.observed_at)
            }),
            "statements" => tables
                .statements
                .rows
                .iter()
                .any(|r| is("kind", &r.kind) && is("digest", &r.digest) && within(r.observed_at)),
            "threads" => tables.threads.rows.iter().any(|r| {
                let in_directory = |d: &str| r.path.as_deref().is_some_and(|path| mounts::is_at_or_above(d, path));
                is("state", &r.state)
                    && is("process", &r.process)
                    && label("wchan").is_none_or(|wchan| r.wchan.as_deref() == Some(wchan))
                    && label("directory").is_none_or(in_directory)
                    && within(r.observed_at)
            }),
            "stages" => tables
                .stages
                .rows
                .iter()
                .any(|r| is("stage", &r.stage) && is("digest", &r.digest) && within(r.observed_at)),
            "spans" => tables
                .spans
                .rows
                .iter()
                .any(|r| is("resource", &r.resource) && is("service", &r.service) && within(r.started_at)),
            "exchanges" => {
                tables.exchanges.rows.iter().any(|r| is("kind", &r.kind) && is("side", &r.side) && within(r.request_at))
            }
            "plans" => tables.plans.rows.iter().any(|r| {
                is("kind", &r.kind) && is("digest", &r.digest) && is("shape", &r.shape) && within(r.observed_at)
            }),
            "settings" => tables.settings.rows.iter().any(|r| is("name", &r.name) && is("source", &r.source)),
            "events" => tables.events.rows.iter().any(|r| is("kind", &r.kind)),
            _ => false,
        }
    }
}
