//! Statements wait at their commit until the log is on the disk.

mod advice;

use super::parts::clearing;
use super::{Doc, Judge, MATTERS, Occurs, Outcome, Role, Rule, RuleFinding, ms, percent};
use crate::case::Case;
use crate::strength::STRONG;
use holdup_recording::metrics;
use holdup_signals::database::DATABASE;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Disk, Missing, SessionGroup, View};

pub const RULE: Rule = Rule {
    cause: "commit_log_bound",
    occurs: Occurs::Anywhere,
    doc: Doc {
        title: "Commits wait for the log",
        what: "A transaction is committed once its log is on the disk: a flush of the log file, and of the binary log beside it. Transactions that commit at once share a flush (group commit); each waits for the one in progress and for its own.",
        hurts: "The disk's time for a flush is a floor below every transaction, and locks are held through it, whatever the disk's throughput. The queue of the disk may be empty all along.",
        needs: "Sampled sessions of the database (--watch mysql://… or postgresql://…) and its durability settings; for the time per flush the host's disk counters (--watch host).",
        predicts: "Sessions are in commit (\"Commit\", \"waiting for handler commit\", \"query end\", \"Waiting for prior transaction to commit\", a COMMIT that starts; PostgreSQL: LWLock:WALWrite, IO:WALSync) for most of the excess; flushes follow one another without a pause, each as long as a commit takes.",
        clears: "Few sessions are in commit; or by the settings commits do not wait for a flush; or a flush is too short to delay a commit.",
        looks_like: "A disk with a queue (disk_saturated: reads and writes wait, too; this then follows from it). A backup that holds the commit lock (\"Waiting for commit lock\": a lock). Semi-synchronous replication (\"Waiting for semi-sync ACK\": the replica).",
        fix: "Fewer commits (several rows each), a disk with a protected write cache for the log; or, if losing a second of transactions is acceptable, a log that is flushed once a second.",
        prove: "The same load again: hardly a session is in commit, and flushes have pauses.",
        references: "MySQL Reference Manual: innodb_flush_log_at_trx_commit, sync_binlog, General Thread States (query end, waiting for handler commit); MariaDB documentation: Group Commit for the Binary Log; PostgreSQL documentation: synchronous_commit, commit_delay, Wait Events; Linux: Documentation/admin-guide/iostats.rst (flush requests).",
    },
    judge: Judge::Alone(judge),
};

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

/// Most disk operations that a commit waits for: the flush in progress and its own, each with data
/// and journal in front of it, for the log, the binary log and the log again.
const OPERATIONS: f64 = 2.0 * 3.0;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    match from_server(case) {
        Err(missing) => clearing::by_statements(case, "including commits").ok_or(missing),
        outcome => outcome,
    }
}

fn from_server(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let busy = view.busy_sessions()?;
    let completed = case.completed_in(view.window)?.max(1.0);
    let is_commit = |g: &&SessionGroup| {
        let state = g.state.to_lowercase();
        let statement = g.statement.trim_start().to_uppercase();
        g.true_state != "queued" && (STATES.contains(&state.as_str()) || statement.starts_with("COMMIT"))
    };
    let committing: Vec<&SessionGroup> = busy.groups.iter().filter(is_commit).collect();
    let mean = committing.iter().map(|g| g.mean).fold(0.0, |sum, m| sum + m);
    // Little's law: sessions in commit = rate x time in it.
    let explains_ms = mean / (completed / view.window.seconds()) * 1e3;
    let counted = seen(&view, &committing, mean, explains_ms)?;
    if !crate::resources::is_felt(case, explains_ms) {
        return Ok(Outcome::Cleared(vec![counted]));
    }
    let durable = durability(&view)?;
    if !durable.waits {
        return Ok(Outcome::Cleared(vec![durable.evidence, counted]));
    }
    let disk = log_disk(&view);
    let flush = disk.as_ref().and_then(|disk| flushes(&view, disk));
    let mut evidence = vec![counted, durable.evidence];
    // Few sightings may be chance: of n the error is the root of n.
    let sightings = mean * busy.instants as f64;
    let mut weights = vec![STRONG * (1.0 - 1.0 / (1.0 + sightings).sqrt())];
    if let Some(flush) = flush {
        let per_commit = explains_ms / commits_each(&view, completed).max(1e-9);
        let most = OPERATIONS * flush.each_ms;
        evidence.push(flush.evidence);
        // I/O delayed by a cgroup's limit never reaches the device that counts.
        let held_back = view.throttles().ok().and_then(|t| t.into_iter().next()).is_some_and(|t| t.is_reached());
        if most < MATTERS * per_commit && !held_back {
            return Ok(Outcome::Cleared(evidence));
        }
        weights.push(STRONG * flush.busy_ratio.min(1.0));
    }
    evidence.extend(grouped(&view));
    Ok(Outcome::Found(RuleFinding {
        explains_ms,
        evidence,
        weights,
        fixes: advice::fixes(&view, durable.is_postgresql),
        prove: format!("Run the same scenario again: hardly any of the {mean:.1} sessions in commit is left."),
        role: Role::Root,
    }))
}

fn seen(view: &View<'_>, committing: &[&SessionGroup], mean: f64, explains_ms: f64) -> Result<Evidence, Missing> {
    let Some(most) = committing.first() else {
        let counted = [metrics::mysql::SESSIONS.name, metrics::postgresql::SESSIONS.name]
            .iter()
            .find_map(|m| view.gauge(m, &[], DATABASE).ok());
        let counted = counted.ok_or_else(|| Missing::new("samples of all database sessions", DATABASE))?;
        return Ok(counted.evidence(
            "0 in commit",
            "most of them, if the log were the cause",
            "no session was seen in commit",
        ));
    };
    let labels = [("true_state", most.true_state.as_str()), ("state", most.state.as_str())];
    let labels = holdup_recording::Labels::new(labels.into_iter().filter(|(_, value)| !value.is_empty()));
    let text = format!(
        "{mean:.1} sessions on average were in commit, {} per request; most of them in \"{}\" with: {}",
        ms(explains_ms),
        most.state,
        if most.statement.is_empty() { "(no statement shown)" } else { &most.statement }
    );
    Ok(Evidence::new("sessions", "state", labels, view.window, format!("{mean:.1} on average"), "none or few", text))
}

/// Whether commits wait for a flush, by the settings.
struct Durability {
    waits: bool,
    is_postgresql: bool,
    evidence: Evidence,
}

fn durability(view: &View<'_>) -> Result<Durability, Missing> {
    if let Ok(commit) = view.setting("synchronous_commit", "") {
        let fsync = view.setting("fsync", "").unwrap_or("on");
        let waits = commit != "off" && fsync != "off";
        let text =
            format!("synchronous_commit is {commit}, fsync is {fsync}: a commit {} its log", waits_or_not(waits));
        let evidence = view.variable_evidence("synchronous_commit", "", text);
        return Ok(Durability { waits, is_postgresql: true, evidence });
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
    Ok(Durability { waits, is_postgresql: false, evidence })
}

fn waits_or_not(waits: bool) -> &'static str {
    if waits { "waits for the flush of" } else { "does not wait for the flush of" }
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

struct Flushes {
    /// Milliseconds of a flush with one write in front of it.
    each_ms: f64,
    /// Share (0-1) of the time with a flush in progress, if they follow one another.
    busy_ratio: f64,
    evidence: Evidence,
}

fn flushes(view: &View<'_>, disk: &Disk) -> Option<Flushes> {
    let labels = [("device", disk.device.as_str())];
    let count = view.counter(metrics::host::DISK_FLUSHES.name, &labels, "").ok()?;
    let time = view.counter(metrics::host::DISK_FLUSH_TIME.name, &labels, "").ok()?;
    let flush_ms = if count.delta > 0.0 { time.delta / count.delta * 1e3 } else { 0.0 };
    let each_ms = flush_ms + disk.write.await_ms();
    // A disk without a volatile cache gets no flushes: only writes count. Its reads are for others.
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
    Some(Flushes { each_ms, busy_ratio, evidence })
}

/// Commits per request; 1 if the server does not count them.
fn commits_each(view: &View<'_>, completed: f64) -> f64 {
    // A statement that is its own transaction does not count as Com_commit.
    let changes = [
        metrics::mysql::GLOBAL_STATUS_COM_INSERT,
        metrics::mysql::GLOBAL_STATUS_COM_UPDATE,
        metrics::mysql::GLOBAL_STATUS_COM_DELETE,
        metrics::mysql::GLOBAL_STATUS_COM_REPLACE,
    ];
    let own: f64 = changes.into_iter().filter_map(|variable| view.status(variable).ok()).map(|c| c.delta).sum();
    let said = view.status(metrics::mysql::GLOBAL_STATUS_COM_COMMIT).map_or(0.0, |c| c.delta);
    let commits = if said > 0.0 { said } else { own };
    if commits > 0.0 { commits / completed } else { 1.0 }
}

/// How many transactions shared a flush, if the server counts that.
fn grouped(view: &View<'_>) -> Option<Evidence> {
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
    let changes = [
        metrics::mysql::GLOBAL_STATUS_COM_COMMIT,
        metrics::mysql::GLOBAL_STATUS_COM_INSERT,
        metrics::mysql::GLOBAL_STATUS_COM_UPDATE,
        metrics::mysql::GLOBAL_STATUS_COM_DELETE,
    ];
    let commits: f64 = changes.into_iter().filter_map(|variable| view.status(variable).ok()).map(|c| c.delta).sum();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "mysql://db";
    const NONE: (f64, f64, f64) = (0.0, 0.0, 0.0);
    const WRITES: (f64, f64, f64) = (20.0, 4096.0, 0.2);

    /// 50 requests of 400 ms a second, `count` sessions in `state`, a disk whose flushes take `flush_ms`.
    fn server(count: i64, state: &str, flush_ms: f64) -> SyntheticRecording {
        on_disk(NONE, WRITES, flush_ms).sessions(count, state)
    }

    /// A server whose disk reads, writes and flushes like that, without its sessions.
    fn on_disk(read: (f64, f64, f64), write: (f64, f64, f64), flush_ms: f64) -> SyntheticRecording {
        let labels = [("device", "vda")];
        SyntheticRecording::new(12)
            .requests(50, 400)
            .setting(DB, "innodb_flush_log_at_trx_commit", "1")
            .setting(DB, "log_bin", "OFF")
            .counter(DB, "mysql_global_status_com_update", &[], 50.0)
            .disk("vda", read, write)
            .counter("host", "system_disk_flushes_total", &labels, 8.0)
            .counter("host", "system_disk_flush_time_seconds_total", &labels, 8.0 * flush_ms / 1e3)
    }

    #[test]
    fn sessions_in_commit_behind_slow_flushes_are_its_doing() {
        for state in ["Commit", "waiting for handler commit", "query end", "Waiting for prior transaction to commit"] {
            let made = server(15, state, 120.0);
            assert!((made.explains(&RULE).unwrap() - 300.0).abs() < 30.0, "{state}");
        }
        let diagnosis = server(15, "Commit", 120.0).diagnose();
        assert_eq!(diagnosis.culprit.as_deref(), Some("commit_log_bound"));
        let text = diagnosis.findings[0].evidence.iter().map(|e| e.text.as_str()).collect::<Vec<_>>().join("\n");
        assert!(text.contains("8 flushes/s of 120 ms") && text.contains("waits for the flush"), "{text}");
    }

    #[test]
    fn other_states_quick_flushes_and_lazy_logs_clear_it() {
        assert_eq!(server(15, "Updating", 120.0).explains(&RULE), Some(0.0));
        assert_eq!(server(15, "Waiting for commit lock", 120.0).explains(&RULE), Some(0.0));
        assert_eq!(server(15, "Commit", 0.1).explains(&RULE), Some(0.0));
        let lazy = server(15, "Commit", 120.0).setting(DB, "innodb_flush_log_at_trx_commit", "2");
        assert_eq!(lazy.explains(&RULE), Some(0.0));
        let binlog = lazy.setting(DB, "log_bin", "ON").setting(DB, "sync_binlog", "1");
        assert!(binlog.explains(&RULE).unwrap() > 250.0);
    }

    #[test]
    fn a_disk_that_is_busy_with_reads_is_not_busy_for_the_log() {
        let weight = |made: SyntheticRecording| {
            let diagnosis = made.sessions(15, "Commit").diagnose();
            diagnosis.findings.into_iter().find(|f| f.cause == RULE.cause).map_or(0.0, |f| f.confidence)
        };
        let busy = (900.0, 4096.0, 1.0);
        let (reads, writes) = (weight(on_disk(busy, WRITES, 40.0)), weight(on_disk(NONE, busy, 40.0)));
        assert!(reads > 0.0 && reads < writes, "{reads} {writes}");
    }

    #[test]
    fn postgresql_says_it_by_its_wait_events() {
        let made = |commit: &str| {
            SyntheticRecording::new(12).requests(50, 400).sessions(15, "IO:WALSync").setting(
                "postgresql://db",
                "synchronous_commit",
                commit,
            )
        };
        assert!(made("on").explains(&RULE).unwrap() > 250.0);
        assert_eq!(made("off").explains(&RULE), Some(0.0));
    }

    #[test]
    fn without_a_fact_it_is_not_judged() {
        let made = server(15, "Commit", 120.0);
        assert_eq!(made.clone().without("mysql_sessions").explains(&RULE), None);
        for column in ["state", "true_state", "observed_at"] {
            assert_eq!(made.clone().without_column("sessions", column).explains(&RULE), None, "{column}");
        }
        assert_eq!(made.without_setting("innodb_flush_log_at_trx_commit").explains(&RULE), None);
    }
}
