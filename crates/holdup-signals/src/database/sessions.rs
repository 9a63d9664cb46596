//! Database sessions by state: the server's own state text and the statement, how many on average.
//! The server's words differ in case between versions, so the comparison ignores it.

use std::collections::BTreeMap;

use holdup_recording::Labels;

use crate::Evidence;
use crate::{Missing, View, Window};

/// Sessions in one state with one statement.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionGroup {
    /// The server's state text, verbatim; empty where it gave none.
    pub state: String,
    /// The statement, literals replaced; empty where there was none.
    pub statement: String,
    /// How many on average.
    pub mean: f64,
    /// What the session really does, e.g. `executing`.
    pub true_state: String,
}

/// Sessions that were not idle, over a window.
#[derive(Clone, Debug)]
pub struct Busy {
    /// Groups, most first.
    pub groups: Vec<SessionGroup>,
    /// Most at one instant.
    pub max: f64,
    /// Instants at which sessions were read.
    pub instants: usize,
    window: Window,
}

impl Busy {
    /// How many on average were in one of `states` (lower case).
    pub fn mean_in(&self, states: &[&str]) -> f64 {
        // An empty sum is -0, which would be printed so.
        self.groups.iter().filter(|g| is_in(g, states)).map(|g| g.mean).fold(0.0, |sum, mean| sum + mean)
    }

    /// How many on average.
    pub fn mean(&self) -> f64 {
        self.groups.iter().map(|g| g.mean).fold(0.0, |sum, mean| sum + mean)
    }

    /// Evidence of the sessions in one of `states` (lower case): how many of which statement. None if there were none.
    pub fn evidence(&self, states: &[&str]) -> Option<Evidence> {
        let mut by_state: BTreeMap<&str, f64> = BTreeMap::new();
        for group in self.groups.iter().filter(|g| is_in(g, states)) {
            *by_state.entry(&group.state).or_default() += group.mean;
        }
        let most = self.groups.iter().find(|g| is_in(g, states))?;
        let mut named: Vec<(&str, f64)> = by_state.into_iter().collect();
        named.sort_by(|a, b| b.1.total_cmp(&a.1));
        let named: Vec<String> = named.iter().map(|(state, n)| format!("{n:.1} in \"{state}\"")).collect();
        let text = format!(
            "on average {:.1} sessions were busy, of them {}; most of these ran: {}",
            self.mean(),
            named.join(", "),
            if most.statement.is_empty() { "(no statement shown)" } else { &most.statement }
        );
        let labels = Labels::new([("true_state", most.true_state.as_str()), ("state", most.state.as_str())]);
        Some(Evidence::new("sessions", "state", labels, self.window, named.join(", "), "none or few", text))
    }
}

fn is_in(group: &SessionGroup, states: &[&str]) -> bool {
    let state = group.state.to_lowercase();
    states.iter().any(|s| *s == state)
}

impl View<'_> {
    /// Sessions that were not idle, by state and statement.
    ///
    /// # Errors
    /// If sessions were not recorded.
    pub fn busy_sessions(&self) -> Result<Busy, Missing> {
        let rows = self.sessions(&["observed_at", "true_state", "state", "digest_text"])?;
        let instants = self.session_instants();
        let mut groups: BTreeMap<(&str, &str, &str), f64> = BTreeMap::new();
        let mut at_once: BTreeMap<i64, f64> = BTreeMap::new();
        for row in rows.into_iter().filter(|r| r.true_state != "idle") {
            let key = (row.state.as_deref().unwrap_or(""), row.digest_text.as_deref().unwrap_or(""), &*row.true_state);
            *groups.entry(key).or_default() += 1.0 / instants as f64;
            *at_once.entry(row.observed_at).or_default() += 1.0;
        }
        let mut groups: Vec<SessionGroup> = groups
            .into_iter()
            .map(|((state, statement, true_state), mean)| SessionGroup {
                state: state.to_owned(),
                statement: statement.to_owned(),
                mean,
                true_state: true_state.to_owned(),
            })
            .collect();
        groups.sort_by(|a, b| b.mean.total_cmp(&a.mean));
        Ok(Busy { groups, max: at_once.into_values().fold(0.0, f64::max), instants, window: self.window })
    }
}
