//! What the host's own counts show: packets and connections that were dropped, tasks that stalled, files of
//! temporary tables, a load average beside idle CPUs, and the queue of a proxy.

use holdup_recording::words::percent;
use holdup_recording::{Labels, metrics};
use holdup_signals::View;
use holdup_signals::evidence::Evidence;

use super::Share;
use crate::strength::{FAIR, STRONG, Strength, WEAK};

/// A sign with its worth.
pub(crate) type Sign = (Strength, Evidence);

/// The host's counts of one stretch.
#[derive(Default)]
pub(crate) struct Counts {
    /// Connections that a full accept queue refused.
    pub overflows: Option<Sign>,
    /// Segments sent again.
    pub again: Option<Sign>,
    /// Connections that the kernel tracks, if its table is full.
    pub tracked: Option<Sign>,
    /// Connections that wait for late packets, if they hold many ports.
    pub closed: Option<Sign>,
    /// Files of temporary tables in a folder.
    pub temporary: Option<Sign>,
    /// Stalls for memory, for disks and for CPUs.
    pub stalled: [Option<Sign>; 3],
    /// A process had no descriptor left.
    pub descriptors: Option<Sign>,
    /// A client had no port left.
    pub ports: Option<Sign>,
    /// Requests that wait in a proxy's queue, and their share of its response time.
    pub proxy_queue: Option<(Sign, Share)>,
    /// Clients that a proxy's limit keeps out.
    pub proxy_limit: Option<Sign>,
}

impl Counts {
    pub(super) fn read(view: &View<'_>) -> Self {
        Self {
            overflows: overflows(view),
            again: again(view),
            tracked: tracked(view),
            closed: closed(view),
            temporary: temporary(view),
            stalled: ["memory", "io", "cpu"].map(|resource| stalled(view, resource)),
            descriptors: said(view, "file_descriptors_exhausted"),
            ports: said(view, "ports_exhausted"),
            proxy_queue: proxy_queue(view),
            proxy_limit: proxy_limit(view),
        }
    }
}

/// A counter's growth in the stretch; none for one reading, which counts since boot.
fn growth(view: &View<'_>, metric: &str) -> Option<f64> {
    view.counter(metric, &[], "").ok().map(|counter| counter.delta)
}

/// The only reading of a counter since boot.
fn since_boot(view: &View<'_>, metric: &str) -> Option<f64> {
    if growth(view, metric).is_some() {
        return None;
    }
    view.gauge(metric, &[], "").ok().map(|gauge| gauge.max)
}

fn overflows(view: &View<'_>) -> Option<Sign> {
    /// So many since boot are not those of one deploy …
    const MANY: f64 = 1_000.0;
    /// … if they are this share (0-1) of all connections at least.
    const RATIO: f64 = 0.001;
    let metric = metrics::tcp::LISTEN_OVERFLOWS.name;
    let gauge = view.gauge(metric, &[], "").ok()?;
    if let Some(grown) = growth(view, metric) {
        let text = format!("{grown:.0} connections were refused because an accept queue was full");
        // A queue shows that requests wait, and not for what.
        let strength = if grown >= 10.0 { FAIR } else { WEAK };
        return (grown >= 1.0).then(|| (strength, gauge.evidence(format!("{grown:.0}"), "0", text)));
    }
    let count = since_boot(view, metric)?;
    let opened = since_boot(view, metrics::tcp::PASSIVE_OPENS.name).unwrap_or(0.0);
    let text = format!("{count:.0} connections were refused since boot because an accept queue was full: count again");
    let is_much = count >= MANY && count >= RATIO * opened;
    is_much.then(|| (WEAK, gauge.evidence(format!("{count:.0} since boot"), "about 0", text)))
}

fn again(view: &View<'_>) -> Option<Sign> {
    /// A segment in a hundred is more than a sound network loses; one in twenty stalls requests.
    const SOME: f64 = 0.01;
    const MUCH: f64 = 0.05;
    /// So few segments show no ratio.
    const LEAST: f64 = 1_000.0;
    let (again, sent) = (metrics::tcp::RETRANSMITTED_SEGMENTS.name, metrics::tcp::SENT_SEGMENTS.name);
    let gauge = view.gauge(again, &[], "").ok()?;
    let of = |count: &dyn Fn(&View<'_>, &str) -> Option<f64>| {
        let (again, sent) = (count(view, again)?, count(view, sent)?);
        (sent >= LEAST).then(|| again / sent)
    };
    let (ratio, is_since_boot) = of(&growth).map(|ratio| (ratio, false)).or_else(|| Some((of(&since_boot)?, true)))?;
    let strength = match (is_since_boot, ratio >= MUCH) {
        (false, true) => STRONG,
        (false, false) => FAIR,
        (true, true) => WEAK,
        (true, false) => WEAK * 0.5,
    };
    let when = if is_since_boot { " since boot" } else { "" };
    let text = format!("{} of the segments{when} were sent again", percent(ratio));
    (ratio >= SOME).then(|| (strength, gauge.evidence(percent(ratio), "well below 1 %", text)))
}

fn tracked(view: &View<'_>) -> Option<Sign> {
    const FULL: f64 = 0.95;
    let gauge = |metric: &str| view.gauge(metric, &[], "").ok();
    let count = gauge(metrics::host::NETWORK_CONNTRACK_COUNT.name)?;
    let limit = gauge(metrics::host::NETWORK_CONNTRACK_MAX.name)?.max;
    let text = format!("the kernel tracked {:.0} connections, and its table takes {limit:.0}", count.max);
    (limit > 0.0 && count.max >= FULL * limit)
        .then(|| (STRONG, count.evidence(format!("{:.0} of {limit:.0}", count.max), "well below the limit", text)))
}

fn closed(view: &View<'_>) -> Option<Sign> {
    /// Ports for outgoing connections by Linux' default: 32768 to 60999.
    const PORTS: f64 = 28_232.0;
    /// This share (0-1) of them runs out for one address and port of a server.
    const NEARLY: f64 = 0.9;
    const MANY: f64 = 10_000.0;
    /// So many for each open connection show that connections live for less than a minute.
    const EACH: f64 = 10.0;
    const SOME: f64 = 1_000.0;
    let range = view.setting("net.ipv4.ip_local_port_range", "").ok().and_then(|range| {
        let mut ends = range.split_whitespace().map(str::parse::<f64>);
        let (first, last) = (ends.next()?.ok()?, ends.next()?.ok()?);
        (last >= first).then_some(last - first + 1.0)
    });
    let ports = range.unwrap_or(PORTS);
    let waiting = view.gauge(metrics::tcp::SOCKETS.name, &[("state", "TIME-WAIT")], "").ok()?;
    // Those that a server closed hold its own port, which is not a shortage.
    let strength = if waiting.max >= NEARLY * ports { FAIR } else { WEAK };
    let text = format!(
        "{:.0} closed connections held a port each (TIME_WAIT), of {ports:.0} for connections to one server",
        waiting.max
    );
    let open = view.gauge(metrics::tcp::SOCKETS.name, &[("state", "ESTAB")], "").ok();
    let is_short = open.is_some_and(|open| waiting.max >= SOME && waiting.max >= EACH * open.max);
    (is_short || waiting.max >= MANY.min(NEARLY * ports))
        .then(|| (strength, waiting.evidence(format!("{:.0}", waiting.max), "hundreds", text)))
}

fn temporary(view: &View<'_>) -> Option<Sign> {
    /// A few stay as long as a statement; dozens are more than that, hundreds come and go.
    const MANY: f64 = 100.0;
    const SOME: f64 = 50.0;
    const GONE: f64 = 2.0;
    let metric = metrics::host::TEMPORARY_TABLE_FILES.name;
    let paths = view.label_values(metric, "path");
    let signs = paths.iter().filter_map(|path| {
        let label = [("path", path.as_str())];
        let files = view.gauge(metric, &label, "").ok()?;
        let gone = view.gauge(metrics::host::TEMPORARY_TABLE_FILES_VANISHED.name, &label, "").ok();
        let gone = gone.map_or(0.0, |gone| gone.max);
        let place = if path.is_empty() { "a folder" } else { path };
        let went = if gone >= GONE { format!("; {gone:.0} were gone before ls read them") } else { String::new() };
        let text = format!("{place} held {:.0} files of temporary tables{went}", files.max);
        let strength = match files.max {
            _ if gone >= GONE => STRONG,
            MANY.. => FAIR,
            _ => WEAK,
        };
        (gone >= GONE || files.max >= SOME)
            .then(|| (strength, files.evidence(format!("{:.0} files", files.max), "a few", text)))
    });
    signs.max_by(|(a, _), (b, _)| a.chance().total_cmp(&b.chance()))
}

/// Tasks that stalled for `resource`. All of them did for the kind `full`.
fn stalled(view: &View<'_>, resource: &str) -> Option<Sign> {
    // Some tasks wait for a CPU on any busy host.
    let (kind, least, strength) = match resource {
        // Pages that a cache lost and reads again are stalls, too, as of a working set that does not fit.
        "memory" => ("full", 0.1, FAIR),
        "io" => ("full", 0.3, FAIR),
        _ => ("some", 0.6, WEAK),
    };
    let labels = [("resource", resource), ("kind", kind)];
    let time = view.counter(metrics::host::PRESSURE.name, &labels, "").ok()?;
    let who = if kind == "full" { "all tasks" } else { "some task" };
    let what = if resource == "io" { "I/O" } else { resource };
    let text = format!("{who} stalled for {what} in {} of the time", percent(time.rate()));
    (time.rate() >= least).then(|| (strength, time.evidence(percent(time.rate()), "near 0 %", text)))
}

/// What a log said outright.
fn said(view: &View<'_>, event: &str) -> Option<Sign> {
    let rows = view.recording.tables.events.with_columns(&["observed_at", "kind", "text"]).ok()?;
    let mut events = rows.iter().filter(|row| row.kind == event && view.window.contains(row.observed_at));
    let first = events.next()?;
    let count = 1 + events.count();
    let often = if count > 1 { format!(" ({count} lines)") } else { String::new() };
    let (observed, text) = (format!("{count} lines"), format!("{}{often}", first.text));
    let evidence = Evidence::new("events", "kind", Labels::none(), view.window, observed, "none", text);
    Some((STRONG, evidence))
}

fn proxy_queue(view: &View<'_>) -> Option<(Sign, Share)> {
    use metrics::haproxy as of;
    let backends = view.label_values(of::QUEUE_TIME.name, "backend");
    let queues = backends.iter().filter_map(|backend| {
        let label = [("backend", backend.as_str())];
        let gauge = |metric: &str| view.gauge(metric, &label, "").ok();
        let (waited, whole) = (gauge(of::QUEUE_TIME.name)?, gauge(of::TOTAL_TIME.name));
        let servers = gauge(of::RESPONSE_TIME.name).map_or(0.0, |time| time.max);
        let whole = whole.map_or(waited.max + servers, |whole| whole.max).max(waited.max);
        Some((backend, waited, servers, whole))
    });
    let (backend, waited, servers, whole) = queues.max_by(|a, b| a.1.max.total_cmp(&b.1.max))?;
    // The mean covers the last 1,024 requests.
    let ratio = waited.max / whole.max(1e-9);
    if waited.max < 0.1 || ratio < 0.3 {
        return None;
    }
    let text = format!(
        "requests waited {:.2} s in the proxy's queue for backend {backend}, and its servers answered in {servers:.2} s",
        waited.max
    );
    let share = Share { ratio, of: "of the response time at the proxy".to_owned() };
    let strength = if ratio >= 0.5 { STRONG } else { FAIR };
    Some(((strength, waited.evidence(format!("{:.2} s", waited.max), "0 s", text)), share))
}

fn proxy_limit(view: &View<'_>) -> Option<Sign> {
    use metrics::haproxy as of;
    const AT: f64 = 0.98;
    let gauge = |metric: &str, labels: &[(&str, &str)]| view.gauge(metric, labels, "").ok();
    let frontends = view.label_values(of::FRONTEND_SESSIONS.name, "frontend");
    frontends.iter().find_map(|frontend| {
        let label = [("frontend", frontend.as_str())];
        let sessions = gauge(of::FRONTEND_SESSIONS.name, &label)?;
        let limit = gauge(of::FRONTEND_SESSIONS_LIMIT.name, &label)?.max;
        let text = format!("frontend {frontend} of the proxy had {:.0} sessions and takes {limit:.0}", sessions.max);
        (limit > 0.0 && sessions.max >= AT * limit)
            .then(|| (FAIR, sessions.evidence(format!("{:.0} of {limit:.0}", sessions.max), "well below", text)))
    })
}
