//! Commits: whether they wait until the log is on its disk, how long a flush of that takes, and how
//! many transactions share one.

use holdup_recording::metrics::{self, Metric};
use holdup_recording::words::{ms, percent};
use holdup_signals::database::server::DATABASE;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Disk, Missing, SessionGroup, View};

/// The servers' own words for a session in commit, in lower case. For a statement without a
/// transaction, MySQL 5.6 and 5.7 commit in `query end`, 8.0 in `waiting for handler commit`,
/// MariaDB in `Commit`; with a binary log MariaDB's followers wait for their leader. PostgreSQL:
/// the lock on writing the log, and the flush itself.
const STATES: &[&str] = &[
    "commit",
    "commit implicit",
    "committing",
    "query end",
    "waiting for handler commit",
    "waiting for prior transaction to commit",
    "waiting for prior transaction to start commit before starting next transaction",
    "lwlock:walwrite",
    "lwlock:walwritelock",
    "io:walsync",
    "io:walwrite",
    "io:wal_sync",
    "io:wal_write",
];

/// Sessions in commit.
pub struct Committing {
    /// By state and statement, most first.
    pub groups: Vec<SessionGroup>,
    /// How many on average.
    pub mean: f64,
    /// Instants at which sessions were looked at.
    pub instants: usize,
}

impl Committing {
    /// Those of `view`.
    ///
    /// # Errors
    /// If sessions were not recorded.
    pub fn measure(view: &View<'_>) -> Result<Self, Missing> {
        let busy = view.busy_sessions()?;
        let is_commit = |g: &SessionGroup| {
            let state = g.state.to_lowercase();
            let statement = g.statement.trim_start().to_uppercase();
            g.true_state != "queued" && (STATES.contains(&state.as_str()) || statement.starts_with("COMMIT"))
        };
        let instants = busy.instants;
        let groups: Vec<SessionGroup> = busy.groups.into_iter().filter(is_commit).collect();
        let mean = groups.iter().map(|g| g.mean).fold(0.0, |sum, m| sum + m);
        Ok(Self { groups, mean, instants })
    }

    /// Milliseconds of each of `completed` requests, by Little's law: sessions in commit = rate x
    /// time in it.
    pub fn request_ms(&self, view: &View<'_>, completed: f64) -> f64 {
        self.mean / (completed / view.window.seconds()) * 1e3
    }
}

/// Transactions that say that they commit.
const COMMITS: Metric = metrics::mysql::GLOBAL_STATUS_COM_COMMIT;

/// Statements that change rows: each is a transaction unless it is part of one.
const CHANGES: [Metric; 3] = [
    metrics::mysql::GLOBAL_STATUS_COM_INSERT,
    metrics::mysql::GLOBAL_STATUS_COM_UPDATE,
    metrics::mysql::GLOBAL_STATUS_COM_DELETE,
];

/// Whether commits wait for a flush, by the settings.
pub struct Durability {
    /// Whether they do.
    pub waits: bool,
    /// Whether the server is PostgreSQL.
    pub is_postgresql: bool,
    /// The settings.
    pub evidence: Evidence,
}

impl Durability {
    /// From the settings of `view`.
    ///
    /// # Errors
    /// If they were not recorded.
    pub fn read(view: &View<'_>) -> Result<Self, Missing> {
        if let Ok(commit) = view.setting("synchronous_commit", "") {
            let fsync = view.setting("fsync", "").unwrap_or("on");
            let waits = commit != "off" && fsync != "off";
            let text =
                format!("synchronous_commit is {commit}, fsync is {fsync}: a commit {} its log", waits_or_not(waits));
            let evidence = view.variable_evidence("synchronous_commit", "", text);
            return Ok(Self { waits, is_postgresql: true, evidence });
        }
        let at_commit = view.setting("innodb_flush_log_at_trx_commit", DATABASE)?;
        let is_on = |value: &str| matches!(value.to_ascii_uppercase().as_str(), "ON" | "1");
        let has_binlog = view.setting("log_bin", "").is_ok_and(is_on);
        let sync_binlog = view.setting_number("sync_binlog").unwrap_or(0.0);
        // MariaDB's 3 flushes twice. 0 and 2 flush once a second, regardless of commits.
        let waits = matches!(at_commit, "1" | "3") || has_binlog && sync_binlog > 0.0;
        let binlog = if has_binlog { format!(", sync_binlog {sync_binlog:.0}") } else { String::new() };
        let text =
            format!("innodb_flush_log_at_trx_commit is {at_commit}{binlog}: a commit {} its log", waits_or_not(waits));
        let evidence = view.variable_evidence("innodb_flush_log_at_trx_commit", "", text);
        Ok(Self { waits, is_postgresql: false, evidence })
    }
}

fn waits_or_not(waits: bool) -> &'static str {
    if waits { "waits for the flush of" } else { "does not wait for the flush of" }
}

/// Flushes of the disk below the server's log.
pub struct LogFlushes {
    /// Milliseconds of a flush with one write in front of it.
    pub each_ms: f64,
    /// Share (0-1) of the time with a flush in progress, if they follow one another.
    pub busy_ratio: f64,
    /// How often the disk flushed, and how long that took.
    pub evidence: Evidence,
}

impl LogFlushes {
    /// Of the log's disk in `view`; none if it is unknown or its flushes were not recorded.
    pub fn measure(view: &View<'_>) -> Option<Self> {
        let disk = log_disk(view)?;
        let labels = [("device", disk.device.as_str())];
        let count = view.counter(metrics::host::DISK_FLUSHES.name, &labels, "").ok()?;
        let time = view.counter(metrics::host::DISK_FLUSH_TIME.name, &labels, "").ok()?;
        let flush_ms = if count.delta > 0.0 { time.delta / count.delta * 1e3 } else { 0.0 };
        let each_ms = flush_ms + disk.write.await_ms();
        // A disk without a volatile cache gets no flushes: only writes count. Its reads are for
        // others.
        let written = disk.write.seconds / disk.operation_seconds().max(1e-9);
        let busy_ratio = time.rate().max(disk.utilization * written.min(1.0)).min(1.0);
        let text = format!(
            "{} did {:.0} flushes/s of {} each, behind writes of {}: these took {} of the time, with {:.1} operations in the queue",
            disk.name(),
            count.rate(),
            ms(flush_ms),
            ms(disk.write.await_ms()),
            percent(busy_ratio),
            disk.queue
        );
        let evidence = time.evidence(ms(each_ms), "well below 1 ms, with a protected write cache", text);
        Some(Self { each_ms, busy_ratio, evidence })
    }
}

/// The disk below the server's log if known; else the one with the most flushes.
fn log_disk(view: &View<'_>) -> Option<Disk> {
    let disks = view.disks().ok()?;
    let folder = ["innodb_log_group_home_dir", "datadir", "data_directory"]
        .iter()
        .filter_map(|name| view.setting(name, "").ok())
        .find(|path| path.starts_with('/'));
    let device = folder.and_then(|f| view.mount_of(f)).map(|m| view.whole_device(&m.device));
    let flushes = |d: &Disk| {
        view.counter(metrics::host::DISK_FLUSHES.name, &[("device", &d.device)], "").map_or(0.0, |c| c.delta)
    };
    let named = device.and_then(|device| disks.named(&device).cloned());
    named.or_else(|| disks.tops().max_by(|a, b| flushes(a).total_cmp(&flushes(b))).cloned())
}

/// Commits per request; 1 if the server does not count them.
pub fn per_request(view: &View<'_>, completed: f64) -> f64 {
    // A statement that is its own transaction does not count as Com_commit.
    let said = together(view, &[COMMITS]);
    let own = together(view, &CHANGES) + together(view, &[metrics::mysql::GLOBAL_STATUS_COM_REPLACE]);
    let commits = if said > 0.0 { said } else { own };
    if commits > 0.0 { commits / completed } else { 1.0 }
}

/// How often these counters grew, together.
fn together(view: &View<'_>, counters: &[Metric]) -> f64 {
    counters.iter().filter_map(|counter| view.status(*counter).ok()).map(|counted| counted.delta).sum()
}

/// How many transactions shared a flush, if the server counts that.
pub fn grouped(view: &View<'_>) -> Option<Evidence> {
    if let (Ok(commits), Ok(groups)) = (
        view.status(metrics::mysql::GLOBAL_STATUS_BINLOG_COMMITS),
        view.status(metrics::mysql::GLOBAL_STATUS_BINLOG_GROUP_COMMITS),
    ) && groups.delta > 0.0
    {
        let ratio = commits.delta / groups.delta;
        let text =
            format!("{ratio:.1} transactions on average shared a commit (binary log): {:.0} groups/s", groups.rate());
        return Some(groups.evidence(format!("{ratio:.1} per group"), "many, if many commit at once", text));
    }
    let fsyncs = view.status(metrics::mysql::GLOBAL_STATUS_INNODB_OS_LOG_FSYNCS).ok()?;
    let commits = together(view, &[COMMITS]) + together(view, &CHANGES);
    (fsyncs.delta > 0.0).then(|| {
        let text = format!(
            "the log was flushed {:.0} times/s, {:.2} times per statement that changes or commits",
            fsyncs.rate(),
            fsyncs.delta / commits.max(1.0)
        );
        fsyncs.evidence(
            format!("{:.0} a second", fsyncs.rate()),
            "far fewer than commits, if many commit at once",
            text,
        )
    })
}
