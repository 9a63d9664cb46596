//! The app's sessions as its database lists them, by client, and the requests that holdup has in
//! flight meanwhile.

use std::collections::BTreeMap;

use holdup_recording::Labels;
use holdup_recording::rows::{Request, Session};
use holdup_signals::app::app_server::Levels;
use holdup_signals::evidence::Evidence;
use holdup_signals::{View, Window};

/// Samples of two sources within this of each other show one instant, nanoseconds.
const TOGETHER_NS: i64 = 1_500_000_000;

/// A pool's connections stand at its most at this share (0-1) of instants.
const STANDS: f64 = 0.8;

/// What is seen at one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instant {
    pub(super) at: i64,
    /// Connections that await an answer or are within a transaction.
    pub(super) busy: f64,
    /// Of them, those within a transaction without a statement.
    pub(super) kept: f64,
    /// Requests that may need a connection.
    pub(super) requests: f64,
    /// Of them, those that wait for another service and hold no connection.
    pub(super) beside: f64,
}

/// Sessions of one user from one address in one database.
pub(super) struct Clients {
    pub(super) name: String,
    pub(super) open: f64,
    busy: Levels,
    pub(super) kept: Levels,
    pub(super) all: Levels,
}

impl Clients {
    pub(super) fn instants(&self, requests: &dyn Fn(i64) -> f64) -> Vec<Instant> {
        let instant = |at: i64| Instant {
            at,
            busy: at_of(&self.busy, at),
            kept: at_of(&self.kept, at),
            requests: requests(at),
            beside: 0.0,
        };
        self.all.keys().map(|at| instant(*at)).collect()
    }

    pub(super) fn evidence(&self, window: Window) -> Evidence {
        Evidence::new("sessions", "true_state", Labels::none(), window, "", "", "")
    }
}

/// All sessions, by their clients, where these stand at one number.
pub(super) fn sessions_by_client(view: &View<'_>) -> Vec<Clients> {
    let Ok(rows) = view.sessions(&["source", "user", "client", "database", "true_state"]) else { return Vec::new() };
    let times = view.session_times();
    let mut by_client: BTreeMap<_, Vec<&Session>> = BTreeMap::new();
    for row in rows {
        let address = row.client.as_deref().unwrap_or_default();
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        by_client.entry((&*row.source, row.user.as_deref(), host, row.database.as_deref())).or_default().push(row);
    }
    let clients = by_client.into_iter().map(|((_, user, host, _), rows)| {
        let of = |is: &dyn Fn(&str) -> bool| {
            let mut levels: Levels = times.iter().map(|at| (*at, 0.0)).collect();
            rows.iter()
                .filter(|row| is(&row.true_state))
                .for_each(|row| *levels.entry(row.observed_at).or_default() += 1.0);
            levels
        };
        let all = of(&|_| true);
        let from = if host.is_empty() { String::new() } else { format!(" from {host}") };
        Clients {
            name: format!("{}{from}", user.unwrap_or("a user")),
            open: all.values().copied().fold(0.0, f64::max),
            busy: of(&|state| state != "idle"),
            kept: of(&|state| state == "idle_in_transaction"),
            all,
        }
    });
    clients.collect()
}

/// Whether `levels` are at their `most` nearly always.
pub(super) fn stands(levels: &Levels, most: f64) -> bool {
    let at_most = levels.values().filter(|level| **level >= most).count() as f64;
    most >= 1.0 && at_most >= STANDS * levels.len() as f64
}

pub(super) fn at_of(levels: &Levels, at: i64) -> f64 {
    levels.get(&at).copied().unwrap_or(0.0)
}

/// The level nearest to `at`; none if none is near.
pub(super) fn near(levels: &Levels, at: i64) -> Option<f64> {
    let around = levels.range(at - TOGETHER_NS..=at + TOGETHER_NS);
    around.min_by_key(|(other, _)| other.abs_diff(at)).map(|(_, level)| *level)
}

/// Requests in flight at any instant.
pub(super) struct InFlight {
    /// When the number changed, and what it was from then on.
    changes: Vec<(i64, f64)>,
}

impl InFlight {
    pub(super) fn count(rows: &[&Request]) -> Self {
        let mut changes: Vec<(i64, f64)> = Vec::new();
        for row in rows {
            let Some(sent_at) = row.sent_at else { continue };
            changes.extend([(sent_at, row.count() as f64), (row.done_at, -(row.count() as f64))]);
        }
        changes.sort_by_key(|change| change.0);
        let mut sum = 0.0;
        for (_, change) in &mut changes {
            sum += *change;
            *change = sum;
        }
        Self { changes }
    }

    pub(super) fn at(&self, at: i64) -> f64 {
        let before = self.changes.partition_point(|(since, _)| *since <= at);
        before.checked_sub(1).and_then(|i| self.changes.get(i)).map_or(0.0, |(_, number)| *number)
    }
}
