//! Evaluates the recording of one search for capacity: its knee, and the resources that were used
//! up when the service could not keep up.

use holdup_recording::{Recording, metrics};
use serde::{Deserialize, Serialize};

use holdup_diagnose::case::Case;
use holdup_diagnose::search::{BreakingPoint, Interval, Purpose, SearchReport};
use holdup_diagnose::verdict::Diagnosis;
use holdup_recording::quota::{self, CpuQuota};
use holdup_recording::words::round;
use holdup_signals::host::cpu::CpuTime;
use holdup_signals::{View, Window};

/// Steps that offered at least this share of the knee show the limit.
const NEAR_THE_KNEE: f64 = 0.9;

/// Ports of databases, if the recording does not name the database: PostgreSQL, PgBouncer, MySQL,
/// ProxySQL.
const DATABASE_PORTS: [&str; 4] = ["5432", "6432", "3306", "6033"];

/// One search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The value of the varied setting; none if there was none.
    pub value: Option<f64>,
    /// The number of the repeat, counted from 1.
    pub round: u32,
    /// Its recording.
    pub path: String,
    /// See [`SearchReport`].
    pub knee: Option<Interval>,
    /// See [`SearchReport`].
    pub breaking_point: Option<BreakingPoint>,
    /// See [`SearchReport`].
    pub capacity: Option<Interval>,
    /// Why it found no knee; none if it did.
    pub no_knee: Option<String>,
    /// The root cause beyond the knee.
    pub culprit: Option<String>,
    /// CPU use of the service, in steps near the knee and beyond.
    pub cpu: Option<CpuUse>,
    /// Connections that an instance opens to a database.
    pub connections: Option<Connections>,
    /// Connections that the database accepts, without those it reserves.
    pub connection_budget: Option<f64>,
}

/// CPU time in use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuUse {
    /// The source that it belongs to, e.g. `server:8080`; `host` is the whole machine.
    pub source: String,
    /// CPUs in use on average; none if only the quota's own counters were read.
    pub cpus: Option<f64>,
    /// Available CPUs, by the quota or on the host.
    pub of_cpus: f64,
    /// Their ratio, 0-1.
    pub ratio: Option<f64>,
    /// Whether a quota limits the available CPUs.
    pub is_quota: bool,
    /// Share (0-1) of the quota's periods that were throttled; none without a quota.
    pub throttled_ratio: Option<f64>,
}

/// Connections of one instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connections {
    /// The number.
    pub count: f64,
    /// The source of the number.
    pub known_by: String,
}

/// Evaluates `recording`, whose verdict is `diagnosis`.
pub fn run(recording: &Recording, diagnosis: &Diagnosis, value: Option<f64>, round: u32, path: &str) -> Run {
    let case = Case::new(recording, None);
    let whole = case.view(case.whole());
    let search = diagnosis.search.as_ref();
    let loaded = search.and_then(|search| loaded(search, recording));
    let knee = search.and_then(|search| search.knee);
    let view = loaded.map_or(whole, |window| case.view(window));
    Run {
        value,
        round,
        path: path.to_owned(),
        knee,
        breaking_point: search.and_then(|search| search.breaking_point).filter(|_| knee.is_some()),
        capacity: search.and_then(|search| search.capacity).filter(|_| knee.is_some()),
        no_knee: knee.is_none().then(|| no_knee(search)),
        culprit: diagnosis.culprit.map(|cause| cause.slug().to_owned()),
        cpu: cpu(&view),
        connections: connections(&whole),
        connection_budget: connection_budget(&whole),
    }
}

fn no_knee(search: Option<&SearchReport>) -> String {
    let Some(search) = search else {
        return "the recording holds no search (load: search in the scenario, or --search)".to_owned();
    };
    let unresolved = || search.unresolved.first().cloned();
    search.refused.clone().or_else(unresolved).unwrap_or_else(|| "the search was too short to find one".to_owned())
}

/// The longest step near the knee or beyond it, because a long window of one rate has the most
/// samples.
fn loaded(search: &SearchReport, recording: &Recording) -> Option<Window> {
    let from = NEAR_THE_KNEE * search.knee.or(search.capacity)?.value;
    // The load began with its first phase, from which steps count.
    let start = recording.manifest.phases.first().map_or(recording.manifest.started_at, |phase| phase.from);
    let steps = search.points.iter().filter(|step| step.offered >= from && step.purpose != Purpose::Recover);
    let longest = steps.max_by(|a, b| (a.to_s - a.from_s).total_cmp(&(b.to_s - b.from_s)))?;
    let at = |seconds: f64| start + (seconds * 1e9) as i64;
    Some(Window { from: at(longest.from_s), to: at(longest.to_s) })
}

/// Counters of a source's CPU time, the most exact first.
const CPU_TIME: [&str; 3] =
    [metrics::cgroup::CPU_USAGE.name, metrics::server::THREAD_CPU_TIME.name, metrics::process::CPU_TIME.name];

/// CPU use of the service: the source that used most of its quota, otherwise the host.
fn cpu(view: &View<'_>) -> Option<CpuUse> {
    let metrics = CPU_TIME.into_iter().chain([metrics::cgroup::CPU_PERIODS.name]);
    let mut sources: Vec<&str> = metrics.flat_map(|metric| view.sources_of(metric)).collect();
    sources.sort_unstable();
    sources.dedup();
    // The cgroup that `host` reads is holdup's own.
    let used = sources.into_iter().filter(|source| *source != "host").filter_map(|source| quota_use(view, source));
    let most = used.max_by(|a, b| a.bound().total_cmp(&b.bound()));
    // If the quota is not used up but the host's CPUs are, the host is the limit.
    match (most, host_use(view)) {
        (Some(quota), Some(host)) if !quota.is_bound() && host.is_bound() => Some(host),
        (quota, host) => quota.or(host),
    }
}

fn quota_use(view: &View<'_>, source: &str) -> Option<CpuUse> {
    let of_cpus = CpuQuota::parse(view.setting_of(source, quota::SETTING)?)?.cpus();
    let counter = |metric: &str| view.counter_where(|s| s == source, metric, &[], "").ok();
    let throttled =
        counter(metrics::cgroup::CPU_THROTTLED_PERIODS.name).zip(counter(metrics::cgroup::CPU_PERIODS.name));
    let throttled = throttled.filter(|(_, periods)| periods.delta > 0.0);
    let cpus = CPU_TIME.iter().find_map(|metric| counter(metric)).map(|time| time.rate());
    let throttled_ratio = throttled.map(|(throttled, periods)| round(throttled.delta / periods.delta, 3));
    let known = cpus.is_some() || throttled_ratio.is_some();
    known.then(|| CpuUse { throttled_ratio, ..CpuUse::new(source, cpus, of_cpus, true) })
}

fn host_use(view: &View<'_>) -> Option<CpuUse> {
    let cpus = view.gauge(metrics::host::CPU_LOGICAL_COUNT.name, &[], "").ok()?.mean.max(1.0);
    let time = CpuTime::measure(view).ok()?.seconds;
    (time.all > 0.0).then(|| CpuUse::new("host", Some(time.share(time.used()) * cpus), cpus, false))
}

/// From this share (0-1) on the CPUs are the limit even if no rule named them, because queues are
/// long by then.
const BUSY: f64 = 0.85;

impl CpuUse {
    /// Whether practically nothing was left.
    pub fn is_bound(&self) -> bool {
        self.bound() >= BUSY
    }

    /// Share (0-1) of the available CPUs in use: by time, or by how often the quota was used up.
    pub fn bound(&self) -> f64 {
        self.ratio.unwrap_or(0.0).max(self.throttled_ratio.unwrap_or(0.0))
    }

    fn new(source: &str, cpus: Option<f64>, of_cpus: f64, is_quota: bool) -> Self {
        Self {
            source: source.to_owned(),
            cpus: cpus.map(|cpus| round(cpus, 3)),
            of_cpus: round(of_cpus, 3),
            ratio: cpus.map(|cpus| round(cpus / of_cpus.max(1e-9), 3)),
            is_quota,
            throttled_ratio: None,
        }
    }
}

/// The maximum of the app's pool; otherwise the most connections to a database that the kernel saw
/// open.
fn connections(view: &View<'_>) -> Option<Connections> {
    for metric in [metrics::app::DB_CLIENT_CONNECTION_MAX.name, metrics::app::HIKARICP_CONNECTIONS_MAX.name] {
        if let Ok(most) = view.gauge(metric, &[], "")
            && most.max > 0.0
        {
            return Some(Connections { count: most.max, known_by: format!("its pool's own maximum, {metric}") });
        }
    }
    let metric = metrics::server::OUTGOING_CONNECTIONS.name;
    let watched: Vec<&str> = view
        .recording
        .manifest
        .coverage
        .iter()
        .filter(|coverage| {
            ["mysql:", "postgresql:", "postgres:"].iter().any(|scheme| coverage.source.starts_with(scheme))
        })
        .filter_map(|coverage| port_of(&coverage.source))
        .collect();
    let is_database = |port: &String| watched.contains(&port.as_str()) || DATABASE_PORTS.contains(&port.as_str());
    let ports = view.label_values(metric, "peer_port").into_iter().filter(is_database);
    let open = ports.filter_map(|port| Some((view.gauge(metric, &[("peer_port", &port)], "").ok()?.max, port)));
    let (count, port) = open.filter(|(count, _)| *count > 0.0).max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Connections { count, known_by: format!("the most that were open to port {port}") })
}

/// The port in `scheme://user@host:port/database`.
fn port_of(source: &str) -> Option<&str> {
    let authority = source.split_once("://").map_or(source, |(_, rest)| rest).split(['/', '?']).next()?;
    let port = authority.rsplit_once(':')?.1;
    port.chars().all(|c| c.is_ascii_digit()).then_some(port).filter(|port| !port.is_empty())
}

/// `max_connections` of the watched database, less those that PostgreSQL reserves for superusers.
fn connection_budget(view: &View<'_>) -> Option<f64> {
    let number = |name: &str| view.setting(name, "").ok().and_then(|value| value.parse::<f64>().ok());
    let most = number("max_connections")?;
    let kept = number("superuser_reserved_connections").unwrap_or(0.0) + number("reserved_connections").unwrap_or(0.0);
    Some((most - kept).max(0.0))
}
