//! The app's pool of database connections as the kernel sees it, where the app reports none: while
//! all open connections await an answer and more requests are with the app, the others wait for a
//! connection. By Little's law their number over the rate is the wait of a request.

use std::sync::Arc;

use holdup_recording::words::{ms, percent};
use holdup_recording::{Labels, metrics};
use holdup_signals::app::app_server::waited_ms;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View};

use super::{ENOUGH, GREW};
use crate::case::Case;
use crate::resources::workers::{answered_per_second, stretch};

const ENABLE: &str = "--watch server:PORT of the app, or its metrics of the pool";

/// The pool in one stretch.
#[derive(Clone, Copy, Debug)]
struct PoolMoment {
    /// Connections awaiting an answer, for a request, milliseconds.
    held_ms: f64,
    /// Requests that wait for a connection, the same.
    queued_ms: f64,
    /// Share (0-1) of instants at which nearly all connections awaited an answer.
    full_ratio: f64,
    /// Most requests with the app while they did.
    most: f64,
}

/// The pool in the episode, beside the baseline.
#[derive(Debug)]
pub struct UnreportedPool {
    now: PoolMoment,
    before: Option<PoolMoment>,
    /// Most connections that were open.
    open: f64,
    evidence: Evidence,
}

impl UnreportedPool {
    /// Measured once for a case.
    ///
    /// # Errors
    /// If the kernel was not asked for the app's connections, or if requests are not counted.
    pub fn for_case(case: &Case<'_>) -> Result<Arc<Self>, Missing> {
        case.measured(Self::measure)
    }

    fn measure(case: &Case<'_>) -> Result<Self, Missing> {
        let view = stretch(case);
        let missing = || Missing::new("the app's connections to its database", ENABLE);
        let source = view.outside().ok().filter(|o| o.has_processes()).map(|o| o.source).ok_or_else(missing)?;
        let services = view.downstream_services(&source).ok_or_else(missing)?;
        let database = services.iter().find(|service| service.is_database).ok_or_else(missing)?;
        let labels = [("peer_port", database.port.as_str())];
        let connections = case.view(case.whole()).levels(&source, metrics::server::OUTGOING_CONNECTIONS.name, &labels);
        let open = connections.into_values().reduce(f64::max).ok_or_else(missing)?;
        let moment = |view: &View<'_>| moment(case, view, &source, &labels, open);
        let pointer = Labels::new([("metric", metrics::server::OUTGOING_PENDING_CONNECTIONS.name), labels[0]]);
        Ok(Self {
            now: moment(&view).ok_or_else(missing)?,
            before: case.baseline().as_ref().and_then(moment),
            open,
            evidence: Evidence::new("samples", "value", pointer, view.window, "", "", ""),
        })
    }

    /// Most connections that were open at an instant.
    pub fn open(&self) -> f64 {
        self.open
    }

    /// Milliseconds for which a request waits for a connection: at least, because one may be held
    /// without awaiting an answer.
    pub fn queued_ms(&self) -> f64 {
        self.now.queued_ms
    }

    /// What a cause must explain to be why connections ran out, milliseconds: the growth of the time
    /// for which they await an answer. Infinite if it did not grow, none without a baseline window.
    pub fn to_explain_ms(&self) -> Option<f64> {
        let before_ms = self.before?.held_ms;
        let grown_ms = self.now.held_ms - before_ms;
        Some(if grown_ms >= GREW * before_ms { grown_ms } else { f64::INFINITY })
    }

    /// Evidence of the queue.
    pub fn evidence(&self) -> Evidence {
        let PoolMoment { queued_ms, full_ratio, most, .. } = self.now;
        let open = self.open;
        let text = format!(
            "all {open:.0} of the app's connections to the database awaited an answer in {} of the samples, while up to {most:.0} requests were with the app: a request waited {} for one",
            percent(full_ratio),
            ms(queued_ms)
        );
        let mut evidence = self.evidence.clone().saying("fewer than there are", text);
        evidence.observed = format!("all {open:.0}");
        evidence
    }
}

fn moment(case: &Case<'_>, view: &View<'_>, source: &str, labels: &[(&str, &str)], open: f64) -> Option<PoolMoment> {
    let pending = view.levels(source, metrics::server::OUTGOING_PENDING_CONNECTIONS.name, labels);
    let with_app = view.levels(source, metrics::server::ANSWERING_CONNECTIONS.name, &[]);
    let per_second = answered_per_second(case, view).filter(|rate| *rate > 0.0)?;
    let instants = with_app.len() as f64;
    let full = |at: &i64| pending.get(at).copied().filter(|pending| *pending >= ENOUGH * open);
    let waiting: Vec<(f64, f64)> = with_app
        .iter()
        .filter_map(|(at, requests)| Some((*requests, requests - full(at)?)))
        .filter(|(_, waiting)| *waiting > 0.0)
        .collect();
    (instants > 0.0).then(|| PoolMoment {
        held_ms: waited_ms(pending.values().sum::<f64>() / instants, per_second),
        queued_ms: waited_ms(waiting.iter().map(|(_, waiting)| waiting).sum::<f64>() / instants, per_second),
        full_ratio: waiting.len() as f64 / instants,
        most: waiting.iter().map(|(requests, _)| *requests).fold(0.0, f64::max),
    })
}
