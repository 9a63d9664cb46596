//! The way between the database and its clients. At any instant clients await some answers, and the
//! server works on some statements. The difference is under way, or has arrived and is not read yet.
//! Over the rate of requests these mean numbers are milliseconds of a request (Little's law).
//!
//! The server's own sockets see the way too: what it has sent stays unacknowledged for one round
//! trip, whichever direction is slow.

mod clients;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdup_recording::{Labels, metrics};
use holdup_signals::app::app_server::waited_ms;
use holdup_signals::database::ports::watched_database_ports;
use holdup_signals::evidence::Evidence;
use holdup_signals::time::requests::service_ms;
use holdup_signals::{Missing, View, app::timing};

pub use self::clients::{is_local, is_there};
use crate::case::Case;

/// What to record for it.
pub const ENABLE: &str = "--watch server:PORT of the app, beside --watch mysql://USER@HOST:PORT or postgresql://USER@HOST:PORT/DATABASE; and --watch host on the database's machine, for the round trips of its connections";

/// Connections on which the app awaits an answer, by the kernel of its machine.
const PENDING: &str = metrics::server::OUTGOING_PENDING_CONNECTIONS.name;

/// A statement that ran at less than this share (0-1) of its rate before came with the episode: it
/// is not what the app awaited before, and its time does not shorten the way.
const KNOWN: f64 = 0.1;

/// Deviations within which nineteen of twenty means lie, on one side.
const DEVIATIONS: f64 = 1.645;

/// States of sessions whose answer does not leave the server: the way is their wait.
const SENDING: &[&str] = &["writing to net", "sending to client", "client:clientwrite"];

/// States of sessions that wait for their client's next message, also within a transaction: the way
/// is their wait, too.
const RECEIVING: &[&str] = &["reading from net", "receiving from client", "client:clientread"];

/// The way in the episode, beside the baseline.
#[derive(Debug)]
pub struct DatabasePath {
    now: Moment,
    before: Moment,
    /// Who knows how many answers are awaited.
    pub awaited_by: AwaitedBy,
    /// Evidence of that.
    pub awaited: Evidence,
    /// The server's own time of a statement, milliseconds, and before; none if it tells none.
    pub statement_ms: Option<(f64, f64)>,
    /// The port of the database; empty if unknown.
    pub port: String,
}

/// The source of awaited answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwaitedBy {
    /// The kernel: connections of the app that await an answer.
    Kernel,
    /// The app's own timing of its calls, which includes its waits for a CPU.
    App,
    /// The load's own statements.
    Client,
}

/// Milliseconds of a request: mean numbers over the rate.
#[derive(Clone, Debug, Default)]
struct Moment {
    awaited_ms: f64,
    /// One deviation of it.
    error_ms: f64,
    /// What the server works on: the least and the most that a source says.
    worked_ms: (f64, f64),
    unread_ms: Option<f64>,
    /// Sent by the server and not acknowledged, and one deviation of it.
    unacked_ms: Option<(f64, f64)>,
    /// Round trip of the slowest connection.
    round_trip_ms: Option<f64>,
}

impl DatabasePath {
    /// Measured once for a case.
    ///
    /// # Errors
    /// If it is unknown what is awaited, or what the server works on.
    pub fn for_case(case: &Case<'_>) -> Result<Arc<Self>, Missing> {
        case.measured(Self::measure)
    }

    fn measure(case: &Case<'_>) -> Result<Self, Missing> {
        let (slow, baseline) = (case.slow(), case.baseline());
        let (awaited_by, awaited) = await_source(case, &slow)?;
        let before = baseline.as_ref().map(|view| digests(view)).unwrap_or_default();
        let statement_ms = statement_ms(&digests(&slow), &before);
        let is_known = |digest: &str, per_second: f64| {
            baseline.is_none() || before.get(digest).is_some_and(|(rate, _)| *rate >= KNOWN * per_second)
        };
        let ports = watched_database_ports(&slow);
        let moment = |view: &View<'_>| Moment::measure(case, view, awaited_by, &ports, &is_known);
        Ok(Self {
            now: moment(&slow)?,
            before: baseline.as_ref().map(moment).transpose()?.unwrap_or_default(),
            awaited_by,
            awaited,
            statement_ms,
            port: ports.into_iter().next().unwrap_or_default(),
        })
    }

    /// Milliseconds for which a request awaits the database, and before.
    pub fn awaited_ms(&self) -> (f64, f64) {
        (self.now.awaited_ms, self.before.awaited_ms)
    }

    /// Milliseconds by which it awaits the database longer than before, whatever for.
    pub fn awaited_more_ms(&self) -> f64 {
        self.now.awaited_ms - self.before.awaited_ms
    }

    /// Milliseconds by which a request is under way longer than before: what the server works on,
    /// and what it has not read, left out. The most that any source allows.
    pub fn at_most_ms(&self) -> f64 {
        let of = |moment: &Moment| (moment.awaited_ms - moment.worked_ms.0).max(0.0);
        of(&self.now) - of(&self.before)
    }

    /// The same, by the sources that say most of the server's work.
    pub fn ms(&self) -> f64 {
        let of = |moment: &Moment| (moment.awaited_ms - moment.worked_ms.1 - moment.unread_ms.unwrap_or(0.0)).max(0.0);
        (of(&self.now) - of(&self.before)).max(0.0)
    }

    /// Whether chance alone does not give [`Self::ms`].
    pub fn is_significant(&self) -> bool {
        self.ms() > self.error_ms()
    }

    /// What chance adds to either in one case of twenty.
    pub fn error_ms(&self) -> f64 {
        DEVIATIONS * self.now.error_ms.hypot(self.before.error_ms)
    }

    /// Milliseconds of a request for which requests stand unread in the server's sockets, and
    /// before; none if its machine is not watched.
    pub fn unread_ms(&self) -> Option<(f64, f64)> {
        Some((self.now.unread_ms?, self.before.unread_ms.unwrap_or(0.0)))
    }

    /// The least and the most by which answers stay unacknowledged longer than before, milliseconds
    /// of a request; none if the server's sockets are not watched.
    pub fn unacked_more_ms(&self) -> Option<(f64, f64)> {
        let (now, before) = (self.now.unacked_ms?, self.before.unacked_ms.unwrap_or_default());
        let error = DEVIATIONS * now.1.hypot(before.1);
        Some((now.0 - before.0 - error, now.0 - before.0 + error))
    }

    /// The round trip of the slowest connection, and before, milliseconds.
    pub fn round_trip_ms(&self) -> Option<(f64, f64)> {
        Some((self.now.round_trip_ms?, self.before.round_trip_ms.unwrap_or(0.0)))
    }
}

impl Moment {
    fn measure(
        case: &Case<'_>,
        view: &View<'_>,
        by: AwaitedBy,
        ports: &BTreeSet<String>,
        is_known: &dyn Fn(&str, f64) -> bool,
    ) -> Result<Self, Missing> {
        let seconds = view.window.seconds().max(1e-9);
        let per_second = case.completed_in(view.window)? / seconds;
        let (awaited, error) = awaited(case, view, by, ports).unwrap_or_default();
        let ms = |number: f64| waited_ms(number, per_second);
        let of_port = |metric: &str, side: &[(&str, &str)]| {
            let gauges = ports.iter().filter_map(|port| {
                let labels: Vec<(&str, &str)> =
                    std::iter::once(("port", port.as_str())).chain(side.iter().copied()).collect();
                view.gauge_where(|source| source == "host", metric, &labels, "").ok()
            });
            gauges.max_by(|a, b| a.mean.total_cmp(&b.mean))
        };
        let server = [("side", "server")];
        let unread = of_port(metrics::tcp::CONNECTIONS_UNREAD.name, &server)
            .or_else(|| of_port(metrics::tcp::SERVER_UNREAD_CONNECTIONS.name, &[]));
        let unacked = of_port(metrics::tcp::UNACKED_SEGMENTS.name, &server);
        let round_trip = of_port(metrics::tcp::ROUND_TRIP.name, &[("side", "server"), ("stat", "max")]);
        let (least, most) = worked(view, is_known)?;
        Ok(Self {
            awaited_ms: ms(awaited),
            error_ms: ms(error),
            worked_ms: (ms(least), ms(most)),
            unread_ms: unread.map(|gauge| ms(gauge.mean)),
            unacked_ms: unacked.map(|gauge| (ms(gauge.mean), ms((gauge.mean / gauge.count.max(1) as f64).sqrt()))),
            round_trip_ms: round_trip.map(|gauge| gauge.mean * 1e3),
        })
    }
}

/// The best source of awaited answers, and evidence that points at it.
fn await_source(case: &Case<'_>, view: &View<'_>) -> Result<(AwaitedBy, Evidence), Missing> {
    let ports = watched_database_ports(view);
    let sources = [AwaitedBy::Kernel, AwaitedBy::App, AwaitedBy::Client];
    let by = sources.into_iter().find(|by| awaited(case, view, *by, &ports).is_some());
    let by = by.ok_or_else(|| Missing::new("how many answers the app awaits from the database", ENABLE))?;
    let (table, column, labels) = match by {
        AwaitedBy::Kernel => ("samples", "value", Labels::new([("metric", PENDING)])),
        AwaitedBy::App => {
            ("samples", "value", Labels::new([("metric", format!("{}_sum", timing::OPERATION).as_str())]))
        }
        AwaitedBy::Client => ("requests", "done_at", Labels::none()),
    };
    Ok((by, Evidence::new(table, column, labels, view.window, "", "", "")))
}

/// Answers awaited at an instant, and one deviation of the mean; none if that source has none.
fn awaited(case: &Case<'_>, view: &View<'_>, by: AwaitedBy, ports: &BTreeSet<String>) -> Option<(f64, f64)> {
    match by {
        AwaitedBy::Kernel => {
            let (mut pending, mut instants, mut is_seen) = (0.0, 0, false);
            for source in view.sources_of(PENDING) {
                let services = view.downstream_services(source).unwrap_or_default();
                for service in services.iter().filter(|service| ports.contains(&service.port)) {
                    (pending, is_seen) = (pending + service.pending, true);
                }
                instants = instants.max(view.levels(source, metrics::server::ACCEPTED_CONNECTIONS.name, &[]).len());
            }
            is_seen.then(|| (pending, (pending / instants.max(1) as f64).sqrt()))
        }
        AwaitedBy::App => {
            let sum = view.counter(&format!("{}_sum", timing::OPERATION), &[], timing::APP_METRICS).ok()?;
            let calls = view.counter(&format!("{}_count", timing::OPERATION), &[], timing::APP_METRICS).ok()?;
            Some((sum.rate(), sum.rate() / calls.delta.max(1.0).sqrt()))
        }
        AwaitedBy::Client => {
            let rows = case.requests_in(view.window).ok().filter(|_| case.asks_statements())?;
            let ms: f64 = rows.iter().filter_map(|r| Some(service_ms(r)? * r.count() as f64)).sum();
            let mean = ms / 1e3 / view.window.seconds().max(1e-9);
            Some((mean, mean / (rows.len().max(1) as f64).sqrt()))
        }
    }
}

/// Calls per second and seconds per second by digest; empty without counters by statement.
fn digests(view: &View<'_>) -> BTreeMap<String, (f64, f64)> {
    let seconds = view.window.seconds().max(1e-9);
    let mut all: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for of in view.executed(&[]).unwrap_or_default() {
        let sum = all.entry(of.digest).or_default();
        *sum = (sum.0 + of.calls / seconds, sum.1 + of.seconds / seconds);
    }
    all
}

/// Mean time of a statement by the server's own timing, of statements that ran before as well.
fn statement_ms(now: &BTreeMap<String, (f64, f64)>, before: &BTreeMap<String, (f64, f64)>) -> Option<(f64, f64)> {
    let (mut at, mut was) = ((0.0, 0.0), (0.0, 0.0));
    for (digest, (calls, seconds)) in now {
        let Some(old) = before.get(digest).filter(|(rate, _)| *rate >= KNOWN * calls) else { continue };
        at = (at.0 + calls, at.1 + seconds);
        was = (was.0 + old.0, was.1 + old.1);
    }
    (at.0 > 0.0 && was.0 > 0.0).then(|| (at.1 / at.0 * 1e3, was.1 / was.0 * 1e3))
}

/// Statements that the server works on at an instant: by its own timing of those that it knew
/// before, and by its sessions, which include everybody's.
fn worked(view: &View<'_>, is_known: &dyn Fn(&str, f64) -> bool) -> Result<(f64, f64), Missing> {
    let by_digest = digests(view);
    let known = by_digest.iter().filter(|(digest, (calls, _))| is_known(digest, *calls));
    let timed = (!by_digest.is_empty()).then(|| known.map(|(_, (_, seconds))| seconds).sum::<f64>());
    let busy = view.busy_sessions().ok();
    let sending = busy.as_ref().map_or(0.0, |busy| busy.mean_in(SENDING));
    let sessions = busy.map(|busy| (busy.mean() - sending - busy.mean_in(RECEIVING)).max(0.0));
    let (least, most) = match (timed, sessions) {
        (Some(timed), Some(sessions)) => ((timed - sending).max(0.0), (timed - sending).max(sessions)),
        (Some(timed), None) => (timed, timed),
        (None, Some(sessions)) => (sessions, sessions),
        (None, None) => return Err(Missing::new("what the database works on: its statements or its sessions", ENABLE)),
    };
    Ok((least, most))
}
