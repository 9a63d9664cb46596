//! Limits on connections of the database, and of nginx in front of the app: how near they are, when
//! they were reached, and how many connections the server refused then.

use std::collections::BTreeMap;

use holdup_recording::metrics::nginx as metric;
use holdup_recording::rows::Event;
use holdup_recording::words::thousands;
use holdup_recording::{Labels, metrics};
use holdup_signals::database::server::DATABASE;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Gauge, Missing, View, Window};

use super::tickets::MONGODB;

const POSTGRESQL: &str = "--watch postgresql://USER@HOST:PORT";

const NGINX: &str = "--watch nginx:URL";

/// A sample speaks for this long before and after it, nanoseconds.
const REACH_NS: i64 = 1_000_000_000;

/// Most rows of idle sessions in a sample: with more, the sessions of one user are incomplete.
const IDLE_ROWS: f64 = 100.0;

/// Whose limit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedServer {
    /// MySQL or MariaDB.
    Mysql,
    /// PostgreSQL.
    Postgresql,
    /// MongoDB.
    MongoDb,
    /// nginx.
    Nginx,
}

/// A limit compared with the connections.
pub struct ConnectionLimit {
    /// `max_connections`, or `max_user_connections of NAME`.
    pub name: String,
    /// The setting's own name.
    pub setting: &'static str,
    /// The limit; infinite if the server does not say.
    pub most: f64,
    /// Most connections at one instant.
    pub had: f64,
    /// Evidence of the count.
    pub connected: Evidence,
    /// Refused connections, if the server counts them, with the evidence.
    pub refused: Option<(f64, Evidence)>,
    /// When it was reached.
    pub reached: Vec<Window>,
    /// Whose it is.
    pub server: LimitedServer,
}

impl ConnectionLimit {
    /// Every limit of the server: for all users together, and on MySQL for each; and that of nginx.
    ///
    /// # Errors
    /// If connections, a limit or refusals were not recorded. The database's are then missing, too,
    /// where nginx refused none.
    pub fn all(view: &View<'_>) -> Result<Vec<Self>, Missing> {
        let is_postgresql = !view.sources_of(metrics::postgresql::SESSIONS.name).is_empty();
        let is_mongodb = !view.sources_of(metrics::mongodb::SERVER_STATUS_CONNECTIONS_CURRENT.name).is_empty();
        let database = match () {
            () if is_postgresql => postgresql(view).map(|limit| vec![limit]),
            () if is_mongodb => mongodb(view).map(|limit| vec![limit]),
            () => mysql(view),
        };
        let nginx = nginx(view);
        let has_refused = nginx.as_ref().is_some_and(|limit| !limit.reached.is_empty());
        let database = if has_refused { Ok(database.unwrap_or_default()) } else { database };
        database.map(|limits| limits.into_iter().chain(nginx).collect())
    }
}

/// MongoDB says how many more connections it would accept. It counts refused ones from 6.3 on.
fn mongodb(view: &View<'_>) -> Result<ConnectionLimit, Missing> {
    use metrics::mongodb as of;
    let level = |metric: metrics::Metric| view.gauge(metric.name, &[], MONGODB);
    let (connected, left) =
        (level(of::SERVER_STATUS_CONNECTIONS_CURRENT)?, level(of::SERVER_STATUS_CONNECTIONS_AVAILABLE)?);
    let most = connected.mean + left.mean;
    let text = format!("at most {} connections, and the server accepts {}", thousands(connected.max), thousands(most));
    let refused = view.counter(of::SERVER_STATUS_CONNECTIONS_REJECTED.name, &[], MONGODB).ok().map(|refused| {
        let text = format!("{} connections were refused", thousands(refused.delta));
        (refused.delta, refused.evidence(thousands(refused.delta), "0", text))
    });
    Ok(ConnectionLimit {
        name: "net.maxIncomingConnections".to_owned(),
        setting: "net.maxIncomingConnections",
        most,
        had: connected.max,
        connected: connected.evidence(count_text(&connected, most), format!("below {}", thousands(most)), text),
        refused,
        reached: at_or_above(view, of::SERVER_STATUS_CONNECTIONS_CURRENT.name, most),
        server: LimitedServer::MongoDb,
    })
}

fn mysql(view: &View<'_>) -> Result<Vec<ConnectionLimit>, Missing> {
    let connected = view.status_level(metrics::mysql::GLOBAL_STATUS_THREADS_CONNECTED)?;
    let refused = view.status(metrics::mysql::GLOBAL_STATUS_CONNECTION_ERRORS_MAX_CONNECTIONS)?;
    let most = view.setting_number("max_connections")?;
    let mut reached = at_or_above(view, metrics::mysql::GLOBAL_STATUS_THREADS_CONNECTED.name, most);
    let refusals = view.growths(|_| true, metrics::mysql::GLOBAL_STATUS_CONNECTION_ERRORS_MAX_CONNECTIONS.name, &[]);
    reached.extend(refusals.into_iter().filter(|g| g.delta > 0.0).map(|g| g.window));
    // The server admits one connection more than max_connections, to leave room for a superuser.
    // Any other user is rejected at login, which MariaDB counts as aborted, and MySQL as both.
    let turned_away: f64 = view
        .growths(|_| true, metrics::mysql::GLOBAL_STATUS_ABORTED_CONNECTS.name, &[])
        .iter()
        .filter(|g| reached.iter().any(|r| r.from < g.window.to && g.window.from < r.to))
        .map(|g| g.delta)
        .sum();
    let count = refused.delta.max(turned_away);
    let text = format!(
        "{} connections were refused: {} before login, {} logins aborted while the limit was reached",
        thousands(count),
        thousands(refused.delta),
        thousands(turned_away)
    );
    let refused = (count, refused.evidence(thousands(count), "0", text));
    let text =
        format!("at most {} connections, and max_connections allows {}", thousands(connected.max), thousands(most));
    let mut limits = vec![ConnectionLimit {
        name: "max_connections".to_owned(),
        setting: "max_connections",
        most,
        had: connected.max,
        connected: connected.evidence(count_text(&connected, most), format!("below {}", thousands(most)), text),
        refused: Some(refused),
        reached,
        server: LimitedServer::Mysql,
    }];
    // 0 means unlimited.
    if let Ok(of_user) = view.setting_number("max_user_connections")
        && of_user > 0.0
    {
        limits.push(of_one_user(view, of_user)?);
    }
    Ok(limits)
}

/// The user with the most sessions at an instant, compared with the limit per user.
fn of_one_user(view: &View<'_>, most: f64) -> Result<ConnectionLimit, Missing> {
    let sessions = view.sessions(&["observed_at", "source", "user"])?;
    let mut counts: BTreeMap<(&str, i64), f64> = BTreeMap::new();
    for session in &sessions {
        *counts.entry((session.user.as_deref().unwrap_or_default(), session.observed_at)).or_default() += 1.0;
    }
    let idle = view.gauge(metrics::mysql::SESSIONS.name, &[("true_state", "idle")], DATABASE)?;
    let (user, had) = counts.iter().max_by(|a, b| a.1.total_cmp(b.1)).map_or(("", 0.0), |((user, _), n)| (user, *n));
    if had < most && idle.max > IDLE_ROWS {
        return Err(Missing::new(
            format!("all sessions of one user: {} were idle, of which {IDLE_ROWS:.0} were recorded", idle.max),
            "SELECT user, COUNT(*) FROM information_schema.PROCESSLIST GROUP BY user",
        ));
    }
    let reached =
        counts.iter().filter(|((u, _), n)| *u == user && **n >= most).map(|((_, at), _)| around(*at)).collect();
    let text =
        format!("{user} had at most {} sessions, and max_user_connections allows {}", thousands(had), thousands(most));
    let labels = Labels::new(if sessions.is_empty() { None } else { Some(("user", user)) });
    let observed = format!("{} of {}", thousands(had), thousands(most));
    let connected = if sessions.is_empty() {
        idle.evidence(observed, "", text)
    } else {
        Evidence::new("sessions", "user", labels, view.window, observed, format!("below {}", thousands(most)), text)
    };
    let name = format!("max_user_connections of {user}");
    Ok(ConnectionLimit {
        name,
        setting: "max_user_connections",
        most,
        had,
        connected,
        refused: None,
        reached,
        server: LimitedServer::Mysql,
    })
}

fn postgresql(view: &View<'_>) -> Result<ConnectionLimit, Missing> {
    let number = |name: &str| view.setting(name, POSTGRESQL).ok().and_then(|v| v.parse::<f64>().ok());
    let reserved =
        number("superuser_reserved_connections").unwrap_or(3.0) + number("reserved_connections").unwrap_or(0.0);
    let told = view.gauge(metrics::postgresql::CONNECTIONS_MAX.name, &[], POSTGRESQL).ok().map(|g| g.max);
    let most = told
        .or_else(|| number("max_connections").map(|all| all - reserved))
        .ok_or_else(|| Missing::new("setting max_connections as a number", POSTGRESQL))?;
    // Sessions exclude those of other kinds and holdup's own.
    let metric = [metrics::postgresql::CONNECTIONS.name, metrics::postgresql::SESSIONS.name];
    let metric =
        metric.into_iter().find(|m| !view.sources_of(m).is_empty()).unwrap_or(metrics::postgresql::SESSIONS.name);
    let connected = view.gauge(metric, &[], POSTGRESQL)?;
    let text = format!(
        "at most {} sessions, and max_connections leaves {} beside {reserved:.0} reserved ones",
        thousands(connected.max),
        thousands(most)
    );
    let mut reached = at_or_above(view, metric, most);
    let refusals = refusals(view);
    reached.extend(refusals.iter().map(|(at, _)| around(*at)));
    let count: f64 = refusals.iter().map(|(_, count)| count).sum();
    let labels = Labels::new([("kind", "error")]);
    let refused = (count > 0.0).then(|| {
        // With room for more, it was not the server's own limit that was reached.
        let whose = if connected.max < most { ": a role or a database has a limit of its own" } else { "" };
        let text = format!("{} connections were refused, by the server's log{whose}", thousands(count));
        (count, Evidence::new("events", "labels", labels, view.window, thousands(count), "0", text))
    });
    Ok(ConnectionLimit {
        name: "max_connections".to_owned(),
        setting: "max_connections",
        most,
        had: connected.max,
        connected: connected.evidence(count_text(&connected, most), format!("below {}", thousands(most)), text),
        refused,
        reached,
        server: LimitedServer::Postgresql,
    })
}

/// nginx accepts a connection before it looks for a free slot (`worker_connections`). Without one it
/// closes the connection at once and does not count it as handled. How many slots it has, its page
/// does not say. A lack of file descriptors is another thing: then it does not even accept.
fn nginx(view: &View<'_>) -> Option<ConnectionLimit> {
    let growths = |metric: &str| view.growths(|_| true, metric, &[]);
    let accepted = growths(metric::ACCEPTED_CONNECTIONS.name);
    let handled = growths(metric::HANDLED_CONNECTIONS.name);
    let closed: Vec<(Window, f64)> = accepted
        .iter()
        .zip(&handled)
        .filter(|(accepted, handled)| accepted.window == handled.window && accepted.delta - handled.delta >= 1.0)
        .map(|(accepted, handled)| (accepted.window, accepted.delta - handled.delta))
        .collect();
    let count: f64 = closed.iter().map(|(_, count)| count).sum();
    let open = view.gauge(metric::ACTIVE_CONNECTIONS.name, &[], NGINX).ok()?;
    let counter = view.counter(metric::HANDLED_CONNECTIONS.name, &[], NGINX).ok()?;
    let closed_text = format!("nginx closed {} connections as soon as it had accepted them", thousands(count));
    let open_text = format!("nginx had up to {} connections open at once", thousands(open.max));
    Some(ConnectionLimit {
        name: "worker_connections".to_owned(),
        setting: "worker_connections",
        most: f64::INFINITY,
        had: open.max,
        connected: open.evidence(thousands(open.max), "fewer than its slots", open_text),
        refused: Some((count, counter.evidence(thousands(count), "0", closed_text))),
        reached: closed.into_iter().map(|(window, _)| window).collect(),
        server: LimitedServer::Nginx,
    })
}

/// When the server's log reported refused connections (SQLSTATE 53300, or the words for it where
/// `log_line_prefix` has no `%e`), and how many.
fn refusals(view: &View<'_>) -> Vec<(i64, f64)> {
    let events = view.recording.tables.events.with_columns(&["observed_at", "kind", "labels"]).unwrap_or_default();
    let is_refusal =
        |e: &Event| e.labels.get("sqlstate") == Some("53300") || e.labels.get("error") == Some("too many connections");
    let is_one = |e: &&Event| e.kind == "error" && is_refusal(e);
    let here = events.iter().filter(is_one).filter(|e| view.window.contains(e.observed_at));
    here.map(|e| (e.observed_at, e.labels.get("count").and_then(|n| n.parse().ok()).unwrap_or(1.0))).collect()
}

fn count_text(connected: &Gauge, most: f64) -> String {
    format!("{} of {}", thousands(connected.max), thousands(most))
}

/// When all series of gauge `metric` together were at `most` or above.
fn at_or_above(view: &View<'_>, metric: &str, most: f64) -> Vec<Window> {
    let mut sums: BTreeMap<(&str, i64), f64> = BTreeMap::new();
    for ((source, _), series) in view.index.series(metric, &[]) {
        for (at, value) in series.iter().filter(|(at, _)| view.window.contains(*at)) {
            *sums.entry((source, *at)).or_default() += value;
        }
    }
    sums.into_iter().filter(|(_, sum)| *sum >= most).map(|((_, at), _)| around(at)).collect()
}

/// A sample speaks for the time around it.
fn around(at: i64) -> Window {
    Window { from: at - REACH_NS, to: at + REACH_NS }
}
