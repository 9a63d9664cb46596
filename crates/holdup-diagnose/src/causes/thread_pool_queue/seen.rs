//! The queue as the pool's own tables and the sockets show it, and as the gap between two accounts
//! of the same statements.

use holdup_recording::metrics;
use holdup_signals::Gauge;
use holdup_signals::app::accounts::Owner;
use holdup_signals::database::ports::database_ports;
use holdup_signals::evidence::Evidence;

use super::ENABLE;
use super::gap::{self, Gap};
use crate::case::Case;
use crate::resources::other_users::OtherUsers;
use crate::resources::statements;
use crate::strength::{CERTAIN, FAIR, STRONG, Strength};

/// The sources that show a queue.
pub(super) struct QueueSources {
    /// Whether the server is known to have a pool.
    pub(super) handling: bool,
    queue: Option<Gauge>,
    unread: Option<Gauge>,
    /// Packets on the server's machine, against the server's own timing.
    pub(super) wire: Option<Gap>,
    /// The app's timing, against the server's own.
    app: Option<Gap>,
}

impl QueueSources {
    pub(super) fn find(case: &Case<'_>, handling: bool, completed: f64) -> Self {
        let view = case.slow();
        Self {
            handling,
            queue: view.gauge(metrics::mysql::THREAD_POOL_QUEUE_LENGTH.name, &[], ENABLE).ok(),
            unread: gap::unread(&view, &database_ports(&view)),
            wire: gap::of_wire(case, completed),
            app: gap::of_app(case, completed),
        }
    }

    /// Milliseconds that a request waits in the queue; none if no source shows it.
    pub(super) fn request_ms(&self, case: &Case<'_>, completed: f64) -> Option<f64> {
        let view = case.slow();
        // Statements per second, for Little's law, from the source that counts them.
        let questions = view.status(metrics::mysql::GLOBAL_STATUS_QUESTIONS).map(|counted| counted.rate());
        let rate = questions.unwrap_or(completed / view.window.seconds().max(1e-9)).max(1e-9);
        let per_request = statements::calls_per_request(case, completed).unwrap_or(1.0);
        // Where requests' sessions are known, theirs alone; else each statement is as good as
        // another.
        let others = OtherUsers::for_case(case).ok().filter(|others| !others.is_empty());
        let little = self.waiting().map(|waiting| match &others {
            Some(others) => waiting * others.own_queued_ratio * view.window.seconds() / completed * 1e3,
            None => waiting / rate * 1e3 * per_request,
        });
        // The closest source first: one without a network, then one with it, then counts alone.
        let gaps = self.wire.as_ref().or(self.app.as_ref()).map(|gap| gap.per_request_ms);
        // Counts cover all statements, including other users'; single requests do not.
        let followed = case.accounts().mean_ms(Owner::AdmissionQueue).filter(|ms| self.wire.is_some() || *ms > 0.0);
        // Of the app's timing and the server's one is a mean over others' statements, too.
        let largest = gaps.into_iter().chain(little).reduce(f64::max);
        let counted = if others.is_some() && self.wire.is_none() { largest } else { gaps.or(little) };
        followed.or(counted)
    }

    /// Mean number of waiting statements, from the pool's own tables or from the sockets. A statement
    /// is read by the thread that executes it, so what is queued is unread, too. More are unread if
    /// the group's listener executes one itself: until it ends, none of the others is put in the queue.
    pub(super) fn waiting(&self) -> Option<f64> {
        let unread = self.unread.as_ref().filter(|u| self.handling && u.max > 0.0).map(|gauge| gauge.mean);
        let queue = self.queue.as_ref().map(|gauge| gauge.mean);
        if self.is_empty_queue() { queue } else { queue.into_iter().chain(unread).reduce(f64::max) }
    }

    pub(super) fn is_empty_queue(&self) -> bool {
        self.queue.as_ref().is_some_and(|q| q.max == 0.0)
    }

    pub(super) fn is_queue_seen(&self) -> bool {
        [&self.queue, &self.unread].into_iter().flatten().any(|seen| seen.max > 0.0)
    }

    pub(super) fn evidence(&self) -> Vec<Evidence> {
        let of = |gauge: &Gauge, what: &str| {
            gauge.evidence(
                format!("{:.1} on average, {:.0} at most", gauge.mean, gauge.max),
                "0",
                format!("{:.0} {what} on average, {:.0} at most", gauge.mean, gauge.max),
            )
        };
        let queue = self.queue.as_ref().map(|q| of(q, "statements waited in the thread pool's queue"));
        let unread = self.unread.as_ref().filter(|u| u.max > 0.0);
        let unread = unread.map(|u| of(u, "connections had an unread statement"));
        let gaps = [&self.wire, &self.app].into_iter().flatten().flat_map(|gap| gap.evidence.iter().cloned());
        queue.into_iter().chain(unread).chain(gaps).collect()
    }

    pub(super) fn weights(&self) -> Vec<Strength> {
        let queue = self.queue.as_ref().map(|q| CERTAIN * q.positive_ratio);
        let unread = self.unread.as_ref().map(|u| FAIR * u.positive_ratio);
        let wire = self.wire.as_ref().map(|_| if self.handling { STRONG } else { FAIR });
        let app = self.app.as_ref().map(|_| if self.is_queue_seen() { STRONG } else { FAIR });
        [queue, unread, wire, app].into_iter().flatten().collect()
    }
}
