//! The command to paste next for each cause: one that only reads, that anyone on call can run, and
//! whose output tells the cause from its rivals. `holdup import` reads most of the outputs; the
//! others are for the reader.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;

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
    pub(crate) amazon: &'static str,
    pub(crate) azure: &'static str,
    pub(crate) google: &'static str,
}

/// A command and its use.
#[derive(Clone, Copy, Debug)]
pub struct NextCommand {
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

/// A command whose output decides between causes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PasteNextReport {
    /// The causes that it tells apart from others.
    pub causes: Vec<Cause>,
    /// The command.
    pub command: String,
    /// How long it takes, seconds.
    pub seconds: u32,
    /// What its output shows.
    pub shows: String,
}

impl NextCommand {
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

    /// A command of a shell, the same on every machine.
    pub(crate) const fn anywhere(command: &'static str, seconds: u32, shows: &'static str) -> Self {
        Self { command, postgresql: None, managed: None, seconds, shows }
    }

    /// A command of a shell on the database's machine. A provider's machine has none: there its figures
    /// stand for it.
    pub(crate) const fn on_machine(command: &'static str, seconds: u32, shows: &'static str) -> Self {
        Self { managed: Some(FIGURES), ..Self::anywhere(command, seconds, shows) }
    }

    /// A statement for MySQL and MariaDB, and its form for PostgreSQL.
    pub(crate) const fn statement(command: &'static str, postgresql: &'static str, shows: &'static str) -> Self {
        Self { command, postgresql: Some(postgresql), managed: None, seconds: 1, shows }
    }
}

/// A provider's figures of a database and its machine.
const FIGURES: Managed = Managed {
    amazon: "aws pi get-resource-metrics with db.load.avg by db.wait_event and by db.sql_tokenized; aws cloudwatch get-metric-data with CPUUtilization, FreeableMemory, SwapUsage and NetworkTransmitThroughput of the last day (holdup import --help)",
    azure: "az monitor metrics list with cpu_percent, memory_percent, active_connections and network_bytes_egress of the last day (holdup import --help)",
    google: "gcloud monitoring time-series list of cloudsql.googleapis.com/database of the last day (holdup import --help)",
};

/// A provider's figures of a volume.
const VOLUME: Managed = Managed {
    amazon: "aws cloudwatch get-metric-data with ReadThroughput, WriteThroughput, ReadIOPS, WriteIOPS and DiskQueueDepth of the last day (holdup import --help)",
    azure: "az monitor metrics list with read_throughput, write_throughput, read_iops, write_iops, disk_queue_depth and disk_bandwidth_consumed_percentage of the last day (holdup import --help)",
    google: "gcloud monitoring time-series list of cloudsql.googleapis.com/database/disk of the last day (holdup import --help)",
};

/// The statements that take the time.
pub(crate) const HEAVIEST_STATEMENTS: NextCommand = NextCommand::statement(
    "SELECT digest_text, count_star, sum_timer_wait FROM performance_schema.events_statements_summary_by_digest ORDER BY sum_timer_wait DESC LIMIT 20;",
    "SELECT query, calls, total_exec_time FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 20;",
    "which statements take the time, and how often they run",
);

/// The statements that read far more rows than they return.
pub(crate) const ROWS_READ: NextCommand = NextCommand::statement(
    "SELECT digest_text, count_star, sum_rows_examined, sum_rows_sent FROM performance_schema.events_statements_summary_by_digest ORDER BY sum_rows_examined DESC LIMIT 20;",
    "SELECT relname, seq_scan, seq_tup_read, idx_scan FROM pg_stat_user_tables ORDER BY seq_tup_read DESC LIMIT 20;",
    "which statements read far more rows than they return",
);

/// Accept queues, and what the threads behind them do.
pub(crate) const ACCEPT_QUEUES: NextCommand = NextCommand::anywhere(
    "ss -ltn; netstat -s | grep -i listen; ps -eTo pid,stat,comm,wchan:32",
    1,
    "whether connections wait for the app to accept them (Recv-Q), and whether its threads run or sleep meanwhile",
);

/// The log, and pages that are not written yet.
pub(crate) const LOG_AND_PAGES: NextCommand = NextCommand::statement(
    "SHOW ENGINE INNODB STATUS\\G",
    "SELECT * FROM pg_stat_bgwriter; SELECT wait_event, count(*) FROM pg_stat_activity GROUP BY 1;",
    "whether the log is full of changes whose pages are not written yet",
);

/// CPUs and memory.
pub(crate) const CPUS_AND_MEMORY: NextCommand =
    NextCommand::on_machine("vmstat 1 10", 10, "whether threads wait for a CPU (r) or pages are swapped (si, so)");

/// What disks read for each page that a thread waited for.
pub(crate) const READ_PER_FAULT: NextCommand = NextCommand::on_machine(
    "blockdev --report; sar -B 1 10",
    10,
    "KiB read for each page that a thread waited for (pgpgin/s divided by majflt/s): about 4 means that data does not fit in memory, far more means readahead",
);

/// Disks, or the provider's figures of a volume.
pub(crate) const DISKS: NextCommand = NextCommand {
    managed: Some(VOLUME),
    ..NextCommand::anywhere(
        "iostat -x 1 10",
        10,
        "whether the disk is full all the time, with a queue, and whether its rate stays at one level",
    )
};

/// What vacuum works on, and dead rows.
pub(crate) const VACUUM: NextCommand = NextCommand::anywhere(
    "SELECT * FROM pg_stat_progress_vacuum; SELECT relname, n_tup_upd, n_dead_tup, last_autovacuum FROM pg_stat_all_tables ORDER BY n_dead_tup DESC LIMIT 10;",
    1,
    "which table vacuum works on, for how long, and how many dead rows it has",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_providers_machine_has_no_shell() {
        let tools = ["blockdev", "iostat", "vmstat", "pidstat", "dmesg", "sar ", "df ", "/proc/", "/sys/", "mount"];
        for cause in Cause::ALL {
            for machine in [Machine::Amazon, Machine::Azure, Machine::Google] {
                let command = cause.definition().next.command_on(machine, true);
                assert!(tools.iter().all(|tool| !command.contains(tool)), "{cause}: {command}");
            }
        }
    }

    #[test]
    fn commands_only_read_and_say_how_long_they_take() {
        for cause in Cause::ALL {
            let next = cause.definition().next;
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
