//! What is seen of pools that report nothing, instant by instant: by the app's sockets, by the
//! database's sessions beside holdup's own requests, and by both with a pool between them.

use std::collections::BTreeSet;

use holdup_recording::{Labels, metrics};
use holdup_signals::View;
use holdup_signals::app::app_server::{DownstreamService, Levels};
use holdup_signals::database::ports::watched_database_ports;
use holdup_signals::evidence::Evidence;

use super::sessions::{Clients, InFlight, Instant, at_of, near, sessions_by_client, stands};
use crate::case::Case;
use crate::resources::connections::{ENOUGH, GREW};
use crate::resources::workers::{Pool, request_threads};

/// Where a pool is, and who sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the app, to its database, by the app's sockets.
    Database,
    /// In the app, to another service, by the same.
    Service,
    /// In the app, to its database, by the database's sessions and holdup's own requests.
    Sessions,
    /// Between the app and its database, by the app's sockets and the database's sessions.
    Pooler,
}

impl Place {
    /// The requests beyond its connections, in words.
    pub(super) fn requests(self) -> &'static str {
        match self {
            Self::Database | Self::Service => "requests were with the app",
            Self::Sessions => "requests were in flight",
            Self::Pooler => "of the app's connections awaited an answer from the pool in front of the database",
        }
    }

    /// Requests that must wait for each connection, as a factor.
    pub(super) fn least_behind(self) -> f64 {
        match self {
            Self::Database => 0.0,
            Self::Service | Self::Pooler => 0.3,
            // Those in flight may be anywhere.
            Self::Sessions => 1.0,
        }
    }
}

/// A pool, as seen.
pub(super) struct Sightings {
    pub place: Place,
    pub open: f64,
    pub instants: Vec<Instant>,
    /// Threads that take requests; none if they do not limit them, or if unknown.
    pub threads: Option<f64>,
    /// Whether requests and connections are counted by the same source.
    pub is_sure: bool,
    /// Whose connections did what, in words.
    pub words: String,
    pub app: String,
    pub processes: Option<f64>,
    pub evidence: Evidence,
}

impl Sightings {
    /// All that are seen; none if the load asks the database without an app.
    pub(super) fn all(case: &Case<'_>) -> Vec<Self> {
        if case.asks_statements() {
            return Vec::new();
        }
        let view = case.view(case.whole());
        let groups = sessions_by_client(&view);
        let Some(source) = view.outside().ok().filter(|o| o.has_processes()).map(|o| o.source) else {
            return own_requests(case, groups).into_iter().collect();
        };
        let services = view.downstream_services(&source).unwrap_or_default();
        let app = App { case, view, source, services, groups };
        let ports: BTreeSet<&str> = app.services.iter().map(|service| service.port.as_str()).collect();
        ports.into_iter().filter_map(|port| app.sockets(port)).chain(app.pooler()).collect()
    }
}

/// The sessions of the app beside the requests that holdup has in flight, where nothing watches the
/// app: those of the client that has most, if they stand at one number.
fn own_requests(case: &Case<'_>, groups: Vec<Clients>) -> Option<Sightings> {
    let view = case.view(case.episode());
    let in_episode = |clients: &Clients| -> Levels {
        clients.all.iter().filter(|(at, _)| view.window.contains(**at)).map(|(at, n)| (*at, *n)).collect()
    };
    let clients = groups.into_iter().filter(|clients| stands(&in_episode(clients), clients.open));
    let clients = clients.max_by(|a, b| a.open.total_cmp(&b.open))?;
    let flying = InFlight::count(&case.requests_in(case.whole()).ok()?);
    let evidence = clients.evidence(view.window);
    Some(Sightings {
        open: clients.open,
        instants: clients.instants(&|at| flying.at(at)),
        words: format!("sessions of {} were busy", clients.name),
        ..Sightings::empty(evidence)
    })
}

/// The app by its port.
struct App<'c, 'a> {
    case: &'c Case<'a>,
    view: View<'c>,
    source: String,
    services: Vec<DownstreamService>,
    groups: Vec<Clients>,
}

impl App<'_, '_> {
    fn levels(&self, metric: &str, port: &str) -> Levels {
        self.view.levels(&self.source, metric, &[("peer_port", port)])
    }

    fn pending(&self, port: &str) -> Levels {
        self.levels(metrics::server::OUTGOING_PENDING_CONNECTIONS.name, port)
    }

    /// Its connections to `port`.
    fn sockets(&self, port: &str) -> Option<Sightings> {
        let service = self.services.iter().find(|service| service.port == port)?;
        let connections = self.levels(metrics::server::OUTGOING_CONNECTIONS.name, port);
        let open = connections.values().copied().reduce(f64::max)?;
        let threads = self.threads(open);
        let place = if service.is_database { Place::Database } else { Place::Service };
        // Without a limit on connections of its own, each thread has one.
        let is_capped = || stands(&connections, open) && !threads.is_some_and(|threads| threads <= (1.0 + GREW) * open);
        if place == Place::Service && !is_capped() {
            return None;
        }
        let kept = |at: i64| match self.is_watched(port) {
            true => self.groups.iter().map(|clients| near(&clients.kept, at).unwrap_or(0.0)).sum(),
            false => 0.0,
        };
        let others: Vec<Levels> =
            self.services.iter().filter(|of| of.port != port).map(|of| self.pending(&of.port)).collect();
        let pending = self.pending(port);
        let with_app = self.view.levels(&self.source, metrics::server::ANSWERING_CONNECTIONS.name, &[]);
        let instants = with_app.iter().map(|(at, requests)| {
            let (pending, beside) = (at_of(&pending, *at), others.iter().map(|levels| at_of(levels, *at)).sum::<f64>());
            let kept = f64::min(kept(*at), (open - pending).max(0.0));
            let beside = (beside - kept).max(0.0);
            Instant { at: *at, busy: pending + kept, kept, requests: *requests, beside }
        });
        let pointer = [("metric", metrics::server::OUTGOING_PENDING_CONNECTIONS.name), ("peer_port", port)];
        let whose = if place == Place::Database { "the database" } else { service.name.as_str() };
        Some(Sightings {
            place,
            open,
            instants: instants.collect(),
            threads,
            is_sure: place == Place::Database,
            words: format!("of the app's connections to {whose} awaited an answer"),
            evidence: self.pointer(&pointer),
            ..self.named()
        })
    }

    /// The connections of a pool in front of the database, which has more of the app's to serve.
    fn pooler(&self) -> Option<Sightings> {
        let reported = [metrics::pgbouncer::WAITING_CLIENTS.name, metrics::proxysql::WAITING_CLIENTS.name];
        if reported.iter().any(|metric| !self.view.sources_of(metric).is_empty()) {
            return None;
        }
        let databases = || self.services.iter().filter(|service| service.is_database);
        let service = databases().find(|service| !self.is_watched(&service.port))?;
        // The app goes to the database itself.
        if databases().any(|service| self.is_watched(&service.port)) {
            return None;
        }
        let clients = self.groups.iter().max_by(|a, b| a.open.total_cmp(&b.open))?;
        let pending = self.pending(&service.port);
        Some(Sightings {
            place: Place::Pooler,
            instants: clients.instants(&|at| near(&pending, at).unwrap_or(0.0)),
            evidence: clients.evidence(self.case.episode()),
            open: clients.open,
            words: format!("sessions of {} were busy", clients.name),
            ..self.named()
        })
    }

    /// Threads that may have a request, at most; none if requests are not bound to threads: there are
    /// fewer of these than of connections, or it is unknown.
    fn threads(&self, open: f64) -> Option<f64> {
        let pool = Pool::for_case(self.case).ok();
        let reported = pool.as_ref().and_then(|pool| pool.workers.as_ref()).filter(|of| of.backend.is_none());
        let counted = || request_threads(&self.view, &self.source);
        reported.map(|workers| workers.most).or_else(counted).filter(|threads| *threads >= ENOUGH * open)
    }

    fn is_watched(&self, port: &str) -> bool {
        watched_database_ports(&self.view).contains(port)
    }

    fn pointer(&self, labels: &[(&str, &str)]) -> Evidence {
        let labels = Labels::new(labels.iter().copied());
        Evidence::new("samples", "value", labels, self.case.episode(), "", "", "")
    }

    /// Nothing but whose it is.
    fn named(&self) -> Sightings {
        let setting = |name: &str| self.view.setting_of(&self.source, name);
        Sightings {
            app: setting("server.name").unwrap_or_default().to_owned(),
            processes: setting("server.workers").and_then(|count| count.parse().ok()),
            ..Sightings::empty(self.pointer(&[]))
        }
    }
}

impl Sightings {
    pub(super) fn empty(evidence: Evidence) -> Self {
        Self {
            place: Place::Sessions,
            open: 0.0,
            instants: Vec::new(),
            threads: None,
            is_sure: false,
            words: String::new(),
            app: String::new(),
            processes: None,
            evidence,
        }
    }
}
