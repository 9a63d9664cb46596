//! Watched processes as the recording names them, their settings, and which of the failed requests
//! an event or a limit can account for. What they did is in samples.

use holdup_recording::Labels;
use holdup_recording::rows::Request;

use crate::Evidence;
use crate::View;

/// Schemes of sources that are the service or a part of it.
const SERVICES: &[&str] = &["pid:", "server:", "cgroup:"];

/// Whether `source` is the service or a part of it.
pub fn is_service(source: &str) -> bool {
    SERVICES.iter().any(|scheme| source.starts_with(scheme))
}

/// A watched process, or a source that stands for several.
#[derive(Clone, Debug, PartialEq)]
pub struct Process<'a> {
    /// Its source, e.g. `pid:N`.
    pub source: &'a str,
    /// Its name, or its source if the name was not recorded.
    pub name: &'a str,
}

impl<'a> Process<'a> {
    /// Its process id.
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
        let labels = Labels::new([("source", source), ("name", name)]);
        Evidence::new("settings", "value", labels, self.window, value, expected, text)
    }

    /// Processes that have samples of `metric`, by number.
    pub fn processes_with(&self, metric: &str) -> Vec<Process<'a>> {
        self.watched_with(metric, &["pid:"])
    }

    /// The same for all sources that are the service or a part of it: processes, servers by their
    /// port, cgroups by their path.
    pub fn services_with(&self, metric: &str) -> Vec<Process<'a>> {
        self.watched_with(metric, SERVICES)
    }

    /// The same for those with `setting`.
    pub fn services_set(&self, setting: &str) -> Vec<Process<'a>> {
        let rows = self.recording.tables.settings.with_columns(&["source", "name", "value"]).unwrap_or_default();
        let has = rows.iter().filter(|s| s.name == setting).map(|s| s.source.as_str());
        self.named(has.filter(|source| is_service(source)).collect())
    }

    fn watched_with(&self, metric: &str, schemes: &[&str]) -> Vec<Process<'a>> {
        let is_watched = |source: &&str| schemes.iter().any(|scheme| source.starts_with(scheme));
        self.named(self.sources_of(metric).into_iter().filter(is_watched).collect())
    }

    fn named(&self, mut sources: Vec<&'a str>) -> Vec<Process<'a>> {
        sources.sort_unstable();
        sources.dedup();
        let name = |source: &'a str| {
            self.setting_of(source, "comm").or_else(|| self.setting_of(source, "server.name")).unwrap_or(source)
        };
        sources.into_iter().map(|source| Process { source, name: name(source) }).collect()
    }

    /// The only container with `setting` at `value`, according to Kubernetes; none if several have
    /// it.
    pub fn container_with(&self, setting: &str, value: f64) -> Option<&'a str> {
        let rows = self.recording.tables.settings.with_columns(&["source", "name", "value"]).ok()?;
        let named = |name: &'a str| name.strip_prefix("container.")?.strip_suffix(setting)?.strip_suffix('.');
        let is_so = |text: &str| text.parse::<f64>().is_ok_and(|number| (number - value).abs() < 1e-6 * value.max(1.0));
        let mut found: Vec<&str> = rows
            .iter()
            .filter(|s| s.source.starts_with("kubernetes:") && is_so(&s.value))
            .filter_map(|s| named(&s.name))
            .collect();
        found.sort_unstable();
        found.dedup();
        if let [one] = found[..] { Some(one) } else { None }
    }
}

/// Whether a request got no answer.
pub fn is_unanswered(request: &Request) -> bool {
    UNANSWERED.contains(&request.outcome.as_str())
}

/// Outcomes of requests that got no answer.
const UNANSWERED: &[&str] =
    &["timeout", "never_sent", "connect_failed", "connection_closed", "connection_reset", "stream_reset"];
