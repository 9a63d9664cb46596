//! The command to paste next for each cause: one that only reads, that anyone on call can run, and
//! whose output tells the cause from its rivals. `holdup import` reads most of the outputs; the
//! others are for the reader.

use std::collections::BTreeSet;

/// The machine that a command would run on, by what was pasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// Its own outputs were pasted.
    Reached,
    /// Amazon's: RDS or Aurora.
    Amazon,
    /// Azure's.
    Azure,
    /// Google's: Cloud SQL.
    Google,
    /// Nothing says whose it is.
    Unknown,
}

/// The figures of a managed database's volume, by provider.
#[derive(Clone, Copy, Debug)]
pub struct Managed {
    amazon: &'static str,
    azure: &'static str,
    google: &'static str,
}

/// A command and its use.
#[derive(Clone, Copy, Debug)]
pub struct PasteNext {
    /// The causes that it tells apart from others.
    pub causes: &'static [&'static str],
    /// The command, on the machine that the cause is on; for a database, in its client.
    pub command: &'static str,
    /// The same for PostgreSQL, where the command is a statement for MySQL.
    pub postgresql: Option<&'static str>,
    /// The same for a managed database, whose machine nothing can be run on.
    pub managed: Option<Managed>,
    /// How long it takes, seconds.
    pub seconds: u32,
    /// What its output shows.
    pub shows: &'static str,
}

impl PasteNext {
    /// The command for a database on `machine`.
    #[must_use]
    pub fn command_on(&self, machine: Machine, is_postgresql: bool) -> &'static str {
        let of_provider = self.managed.and_then(|managed| match machine {
            Machine::Amazon => Some(managed.amazon),
            Machine::Azure => Some(managed.azure),
            Machine::Google => Some(managed.google),
            Machine::Reached | Machine::Unknown => None,
        });
        of_provider.or(self.postgresql.filter(|_| is_postgresql)).unwrap_or(self.command)
    }

    /// What its output shows. A machine that may be a provider's has no shell.
    #[must_use]
    pub fn shows_on(&self, machine: Machine) -> String {
        let may_be_managed = machine == Machine::Unknown && self.managed.is_some();
        let otherwise =
            if may_be_managed { "; if a provider runs the database, import its figures instead" } else { "" };
        format!("{}{otherwise}", self.shows)
    }
}

const fn anywhere(
    causes: &'static [&'static str],
    command: &'static str,
    seconds: u32,
    shows: &'static str,
) -> PasteNext {
    PasteNext { causes, command, postgresql: None, managed: None, seconds, shows }
}

const fn statement(
    causes: &'static [&'static str],
    command: &'static str,
    postgresql: &'static str,
    shows: &'static str,
) -> PasteNext {
    PasteNext { causes, command, postgresql: Some(postgresql), managed: None, seconds: 1, shows }
}

/// A provider's figures of a volume.
const VOLUME: Managed = Managed {
    amazon: "aws cloudwatch get-metric-data with ReadThroughput, WriteThroughput, ReadIOPS, WriteIOPS and DiskQueueDepth of the last day (holdup import --help)",
    azure: "az monitor metrics list with read_throughput, write_throughput, read_iops, write_iops, disk_queue_depth and disk_bandwidth_consumed_percentage of the last day (holdup import --help)",
    google: "gcloud monitoring time-series list of cloudsql.googleapis.com/database/disk of the last day (holdup import --help)",
};

/// A provider's figures of free space.
const ROOM: Managed = Managed {
    amazon: "aws cloudwatch get-metric-data with FreeStorageSpace of the last day (holdup import --help)",
    azure: "az monitor metrics list with storage_percent of the last day (holdup import --help)",
    google: "gcloud monitoring time-series list of cloudsql.googleapis.com/database/disk of the last day (holdup import --help)",
};

/// Every cause's command.
pub const ALL: &[PasteNext] = &[
    anywhere(
        &["load_generator_limit"],
        "top -b -n 1 on the load generator",
        1,
        "whether the generator itself is short of CPUs",
    ),
    PasteNext {
        seconds: 10,
        ..statement(
            &["workload_spike"],
            "SHOW GLOBAL STATUS LIKE 'Questions'; SELECT SLEEP(10); SHOW GLOBAL STATUS LIKE 'Questions';",
            "SELECT sum(xact_commit) FROM pg_stat_database; SELECT pg_sleep(10); SELECT sum(xact_commit) FROM pg_stat_database;",
            "whether more statements arrive than usual",
        )
    },
    statement(
        &["statement_mix_changed", "n_plus_one_queries"],
        "SELECT digest_text, count_star, sum_timer_wait FROM performance_schema.events_statements_summary_by_digest ORDER BY sum_timer_wait DESC LIMIT 20;",
        "SELECT query, calls, total_exec_time FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 20;",
        "which statements take the time, and how often they run",
    ),
    statement(
        &["missing_index", "plan_changed", "statement_regression"],
        "SELECT digest_text, count_star, sum_rows_examined, sum_rows_sent FROM performance_schema.events_statements_summary_by_digest ORDER BY sum_rows_examined DESC LIMIT 20;",
        "SELECT relname, seq_scan, seq_tup_read, idx_scan FROM pg_stat_user_tables ORDER BY seq_tup_read DESC LIMIT 20;",
        "which statements read far more rows than they return",
    ),
    anywhere(
        &["out_of_memory_kill"],
        "dmesg -T | grep -iE 'out of memory|killed process'",
        1,
        "whether the kernel killed a process",
    ),
    anywhere(
        &["file_descriptor_limit"],
        "ls /proc/PID/fd | wc -l; grep 'open files' /proc/PID/limits",
        1,
        "whether the process is at its limit of open files",
    ),
    anywhere(
        &["network_loss"],
        "nstat -az; sleep 10; nstat -az",
        10,
        "whether segments are sent again (TcpRetransSegs, TcpExtTCPTimeouts)",
    ),
    anywhere(
        &["network_limit"],
        "dmesg -T | tail -n 200; ethtool -S DEVICE | grep -E 'allowance|ratelimit'",
        1,
        "whether the table of tracked connections was full, and what exceeded a cloud's allowance",
    ),
    anywhere(&["network_bandwidth"], "sar -n DEV 1 10", 10, "whether an interface stays at its speed"),
    anywhere(&["network_delay"], "ping -c 10 DATABASE on the app's machine", 10, "how long the way to the database is"),
    anywhere(
        &["accept_queue_overflow", "worker_pool_exhausted"],
        "ss -ltn; netstat -s | grep -i listen; ps -eTo pid,stat,comm,wchan:32",
        1,
        "whether connections wait for the app to accept them (Recv-Q), and whether its threads run or sleep meanwhile",
    ),
    anywhere(
        &["liveness_probe_kill"],
        "kubectl get events -n NAMESPACE -o json",
        1,
        "whether probes failed and containers were restarted",
    ),
    anywhere(
        &["process_stopped"],
        "ps -eo pid,stat,comm,wchan:32",
        1,
        "whether a process is stopped (state T or t) or frozen (do_freezer_trap)",
    ),
    anywhere(
        &["wait_in_app"],
        "ps -L -o tid,stat,wchan:32 -p PID",
        1,
        "how many of the app's threads sleep in a timer (hrtimer_nanosleep) or wait for a lock (futex)",
    ),
    anywhere(&["runtime_pause"], "jstat -gcutil PID 1000 10", 10, "how long collections stop the app"),
    anywhere(
        &["connection_pool_exhausted"],
        "ss -tnp | grep -c ':3306' on the app's machine, beside its pool's maximum",
        1,
        "whether the app has all the connections that its pool allows",
    ),
    anywhere(
        &["downstream_slow"],
        "ss -tnp state established on the app's machine",
        1,
        "which service the app's connections wait for",
    ),
    statement(
        &["connection_limit"],
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Max_used_connections', 'Connection_errors_max_connections'); SHOW GLOBAL VARIABLES LIKE 'max_connections';",
        "SELECT count(*), current_setting('max_connections') FROM pg_stat_activity;",
        "whether connections are at their limit",
    ),
    PasteNext {
        seconds: 10,
        ..statement(
            &["connection_per_request"],
            "SHOW GLOBAL STATUS LIKE 'Connections'; SELECT SLEEP(10); SHOW GLOBAL STATUS LIKE 'Connections';",
            "SELECT sum(sessions) FROM pg_stat_database; SELECT pg_sleep(10); SELECT sum(sessions) FROM pg_stat_database;",
            "how many connections are opened, beside the requests of the same time",
        )
    },
    anywhere(
        &["connection_storm"],
        "db.serverStatus().connections",
        1,
        "how many connections are open and, asked twice, how many were opened between",
    ),
    anywhere(
        &["thread_pool_queue"],
        "SELECT * FROM information_schema.THREAD_POOL_GROUPS; SELECT * FROM information_schema.THREAD_POOL_QUEUES;",
        1,
        "whether connections that look idle wait for a thread of the pool (QUEUE_LENGTH)",
    ),
    anywhere(
        &["tickets_exhausted"],
        "db.serverStatus(); db.currentOp({active: true})",
        1,
        "whether tickets are left, how many operations wait for one, and what those at work do",
    ),
    anywhere(
        &["replication_wait"],
        "rs.printSecondaryReplicationInfo(); db.serverStatus().flowControl",
        1,
        "which secondary is behind, and whether the primary holds writes back for it",
    ),
    statement(
        &["lock_contention"],
        "SELECT * FROM sys.innodb_lock_waits\\G",
        "SELECT pid, pg_blocking_pids(pid), state, query FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0;",
        "which session holds the lock that others wait for",
    ),
    anywhere(
        &["table_cache_small"],
        "SHOW GLOBAL STATUS LIKE 'Open%tables'; SHOW GLOBAL VARIABLES LIKE 'table_open_cache';",
        1,
        "whether tables are opened again and again",
    ),
    statement(
        &["on_disk_temporary_tables"],
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('Created_tmp_tables', 'Created_tmp_disk_tables', 'Created_tmp_files', 'Questions'); SHOW GLOBAL VARIABLES LIKE 'tmpdir';",
        "SELECT datname, temp_files, temp_bytes FROM pg_stat_database;",
        "how many statements make a temporary table on disk, and where",
    ),
    anywhere(
        &["uninterruptible_pileup"],
        "ps -eTo pid,stat,comm,wchan:32",
        1,
        "in which kernel function the threads sleep (as root: cat /proc/PID/stack)",
    ),
    statement(
        &["commit_log_bound", "flush_storm"],
        "SHOW ENGINE INNODB STATUS\\G",
        "SELECT * FROM pg_stat_bgwriter; SELECT wait_event, count(*) FROM pg_stat_activity GROUP BY 1;",
        "whether the log is full of changes whose pages are not written yet",
    ),
    anywhere(
        &["cpu_throttled"],
        "cat /sys/fs/cgroup/cpu.stat; sleep 10; cat /sys/fs/cgroup/cpu.stat",
        10,
        "whether the container runs into its quota (nr_throttled)",
    ),
    anywhere(
        &["cpu_saturated", "memory_pressure"],
        "vmstat 1 10",
        10,
        "whether threads wait for a CPU (r) or pages are swapped (si, so)",
    ),
    anywhere(
        &["readahead_too_large", "working_set_exceeds_memory"],
        "blockdev --report; sar -B 1 10",
        10,
        "KiB read for each page that a thread waited for (pgpgin/s divided by majflt/s): about 4 means that data does not fit in memory, far more means readahead",
    ),
    anywhere(
        &["atime_updates"],
        "mount",
        1,
        "whether each read of a file is written down (relatime and noatime avoid it)",
    ),
    anywhere(&["backup_or_bulk_load"], "pidstat -d 1 10", 10, "which process reads and writes"),
    PasteNext {
        managed: Some(ROOM),
        ..anywhere(
            &["disk_full"],
            "df -P; df -i; dmesg -T | tail -20",
            1,
            "which file system has no bytes or no inodes left",
        )
    },
    PasteNext {
        managed: Some(VOLUME),
        ..anywhere(
            &["disk_saturated", "throughput_ceiling", "iops_ceiling", "burst_exhausted"],
            "iostat -x 1 10",
            10,
            "whether the disk is full all the time, with a queue, and whether its rate stays at one level",
        )
    },
    anywhere(
        &["toast_rewrite", "autovacuum_pressure"],
        "SELECT * FROM pg_stat_progress_vacuum; SELECT relname, n_tup_upd, n_dead_tup, last_autovacuum FROM pg_stat_all_tables ORDER BY n_dead_tup DESC LIMIT 10;",
        1,
        "which table vacuum works on, for how long, and how many dead rows it has",
    ),
    anywhere(
        &["old_snapshot"],
        "SELECT pid, state, age(backend_xmin), now() - xact_start AS open FROM pg_stat_activity WHERE backend_xmin IS NOT NULL ORDER BY age(backend_xmin) DESC LIMIT 5;",
        1,
        "which session holds the oldest snapshot, and for how long",
    ),
    statement(
        &["too_many_indexes"],
        "SELECT * FROM sys.schema_unused_indexes;",
        "SELECT relname, indexrelname, idx_scan FROM pg_stat_user_indexes ORDER BY idx_scan LIMIT 20;",
        "which indexes are written and never read",
    ),
];

/// The commands for these causes, in order, each once; at most `most`.
pub(crate) fn for_causes<'c>(causes: impl Iterator<Item = &'c str>, most: usize) -> Vec<&'static PasteNext> {
    let mut told = BTreeSet::new();
    let mut found = Vec::new();
    for cause in causes {
        let Some(at) = ALL.iter().position(|next| next.causes.contains(&cause)) else { continue };
        if told.insert(at) && found.len() < most {
            found.push(&ALL[at]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;

    #[test]
    fn each_cause_has_one_command_and_each_command_only_reads() {
        for rule in rules::ALL {
            let count = ALL.iter().filter(|next| next.causes.contains(&rule.cause)).count();
            assert_eq!(count, 1, "{}", rule.cause);
        }
        for next in ALL {
            assert!(next.causes.iter().all(|cause| rules::by_cause(cause).is_some()), "{next:?}");
            let of_providers = next.managed.map(|of| [of.amazon, of.azure, of.google]).into_iter().flatten();
            for command in [Some(next.command), next.postgresql].into_iter().flatten().chain(of_providers) {
                let words = [" set ", "kill ", "alter ", "update ", "delete ", "analyze ", " > ", "rm ", "setra"];
                let lower = format!(" {} ", command.to_lowercase());
                assert!(
                    words.iter().all(|word| !lower.contains(word) || *word == " > " && lower.contains("cardinality")),
                    "{command}"
                );
                let takes = lower.split(['(', ')', ' ', ';']).skip_while(|word| !word.ends_with("sleep")).nth(1);
                let takes = takes.and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
                assert!(next.seconds >= takes, "{command} takes {takes} s");
            }
        }
    }
}
