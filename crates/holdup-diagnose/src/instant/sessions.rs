//! Sampled sessions of a database: rows that were read, or a provider's means.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::Labels;
use holdup_signals::View;
use holdup_signals::evidence::Evidence;

use super::load::{BY_WAIT, Load, WaitKind, kind};

/// Sampled sessions, on average.
pub(crate) struct Sessions {
    /// By what they really do and the server's words.
    by_state: BTreeMap<(String, String), f64>,
    /// Seconds that idle sessions have been idle, as far as the server says.
    pub idle_s: Vec<f64>,
    view_window: holdup_signals::Window,
    /// They are means of a managed database's load, and no rows.
    pub is_load: bool,
    pub is_postgresql: bool,
}

impl Sessions {
    pub(super) fn read(view: &View<'_>) -> Option<Self> {
        let columns = ["observed_at", "true_state", "state", "command"];
        // Operations of MongoDB are sessions, too; its own count of them is another metric.
        let pasted = || {
            let rows = view.recording.tables.sessions.with_columns(&columns).ok()?;
            let rows = rows.iter().filter(|row| view.window.contains(row.observed_at));
            Some(rows.collect::<Vec<_>>())
        };
        let rows = view.sessions(&columns).ok().or_else(pasted)?;
        let times: BTreeSet<i64> = rows.iter().map(|row| row.observed_at).collect();
        let instants = match view.session_instants() {
            0 => times.len().max(1) as f64,
            counted => counted as f64,
        };
        let mut by_state: BTreeMap<(String, String), f64> = BTreeMap::new();
        let mut idle_s = Vec::new();
        // The server's own threads serve no client.
        for row in rows.into_iter().filter(|row| row.command != "Daemon") {
            let state = row.state.as_deref().unwrap_or_default().to_owned();
            if row.true_state == "idle" {
                idle_s.extend(row.age_ns.map(|age_ns| age_ns as f64 / 1e9));
            }
            *by_state.entry((row.true_state.to_string(), state)).or_default() += 1.0 / instants;
        }
        let (is_load, is_postgresql) = (false, false);
        (!by_state.is_empty()).then_some(Self { by_state, idle_s, view_window: view.window, is_load, is_postgresql })
    }

    /// Active sessions by a provider's samples of them.
    pub(super) fn of_load(view: &View<'_>) -> Option<Self> {
        let Load { by_event, window, is_postgresql } = Load::read(view)?;
        let state = |event: &str| if kind(event) == WaitKind::Lock { "lock_wait" } else { "executing" };
        let by_state = by_event.into_iter().map(|(event, mean)| ((state(&event).to_owned(), event), mean)).collect();
        Some(Self { by_state, idle_s: Vec::new(), view_window: window, is_load: true, is_postgresql })
    }

    /// How many for which `is` holds of the true state and the server's words.
    pub fn count(&self, is: impl Fn(&str, &str) -> bool) -> f64 {
        self.by_state.iter().filter(|((of, state), _)| is(of, state)).fold(0.0, |sum, (_, n)| sum + n)
    }

    /// Share (0-1) of the idle sessions that were in use no longer than this ago; 0 if nothing says.
    pub fn lately_idle(&self, seconds: f64) -> f64 {
        let lately = self.idle_s.iter().filter(|idle_s| **idle_s <= seconds).count();
        lately as f64 / self.idle_s.len().max(1) as f64
    }

    /// Those that do not sleep.
    pub fn active(&self) -> f64 {
        self.count(|of, _| of != "idle")
    }

    /// Evidence that points at the most frequent of them.
    pub fn evidence(&self, is: impl Fn(&str, &str) -> bool, expected: &str, text: String) -> Option<Evidence> {
        let those = self.by_state.iter().filter(|((of, state), _)| is(of, state));
        let ((of, state), _) = those.max_by(|a, b| a.1.total_cmp(b.1))?;
        if self.is_load {
            let observed = format!("{:.0} sessions", self.count(is));
            let labels = Labels::new([("metric", BY_WAIT)]);
            let text = format!("{text}, most for {state}");
            return Some(Evidence::new("samples", "value", labels, self.view_window, observed, expected, text));
        }
        let mut labels = Labels::new([("true_state", of.as_str())]);
        if !state.is_empty() {
            labels = labels.with("state", state.as_str());
        }
        let observed = format!("{:.0} sessions", self.count(is));
        Some(Evidence::new("sessions", "state", labels, self.view_window, observed, expected, text))
    }
}
