//! Watched processes as the recording names them, what is set for each, and which of the failed requests an event or a
//! limit can account for. What they did is in samples.

use holdup_recording::Labels;
use holdup_recording::rows::Request;

use super::client::failed;
use super::{Missing, View, Window};
use crate::case::Case;
use crate::verdict::Evidence;

/// A watched process.
#[derive(Clone, Debug, PartialEq)]
pub struct Process<'a> {
    /// Its source, `pid:N`.
    pub source: &'a str,
    /// Its name, or `pid:N` where that was not recorded.
    pub name: &'a str,
}

impl<'a> Process<'a> {
    /// Its number.
    pub fn pid(&self) -> &'a str {
        self.source.trim_start_matches("pid:")
    }
}

impl<'a> View<'a> {
    /// The last value of setting `name` of `source`.
    pub fn setting_of(&self, source: &str, name: &str) -> Option<&'a str> {
        let rows = self.recording.tables.settings.with_columns(&["source", "name", "value"]).ok()?;
        rows.iter().rev().find(|s| s.source == source && s.name == name).map(|s| s.value.as_str())
    }

    /// Evidence that points at a setting of `source`.
    pub fn setting_evidence(
        &self,
        source: &str,
        name: &str,
        expected: impl Into<String>,
        text: impl Into<String>,
    ) -> Evidence {
        let value = self.setting_of(source, name).unwrap_or_default().to_owned();
        let labels = Labels::of([("source", source), ("name", name)]);
        Evidence::new("settings", "value", labels, self.window, value, expected, text)
    }

    /// Processes that have samples of `metric`, by number.
    pub fn processes_with(&self, metric: &str) -> Vec<Process<'a>> {
        let mut sources: Vec<&str> = self.sources_of(metric).into_iter().filter(|s| s.starts_with("pid:")).collect();
        sources.sort_unstable();
        sources.dedup();
        let name = |source: &'a str| self.setting_of(source, "comm").unwrap_or(source);
        sources.into_iter().map(|source| Process { source, name: name(source) }).collect()
    }
}

/// Fewer failed requests than this share (0-1) are what there always is: they are not what is to be explained.
const FAILURES_MATTER: f64 = 0.01;

/// Of the failed requests of the degraded stretch the share (0-1) that was under way in one of `windows`; 0 if next to
/// none failed.
///
/// # Errors
/// If requests were not recorded.
pub fn failed_share(case: &Case<'_>, windows: &[Window]) -> Result<f64, Missing> {
    let rows = case.slow_requests()?;
    let count = |wanted: &dyn Fn(&Request) -> bool| rows.iter().filter(|r| wanted(r)).map(|r| r.count()).sum::<u64>();
    let (all, bad) = (count(&|_| true), count(&|r| failed(r)));
    if case.complaint.is_none() || (bad as f64) < FAILURES_MATTER * all as f64 || bad == 0 {
        return Ok(0.0);
    }
    let under_way = |r: &Request| windows.iter().any(|w| r.intended_at < w.to && w.from <= r.done_at);
    Ok(count(&|r| failed(r) && under_way(r)) as f64 / bad as f64)
}
