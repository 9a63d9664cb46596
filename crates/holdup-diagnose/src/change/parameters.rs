//! The parameters of databases that holdup would change: what each counts, what it may be, and how
//! each platform takes it. Bounds and whether a parameter is dynamic are from the vendors' manuals;
//! what Amazon's groups offer is from its user guides. Where those leave it open the entry says
//! [`Amazon::No`], so that no command is printed that may be refused.

use super::{Bounds, Unit};

/// Whose parameter it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// MySQL, MariaDB, Percona Server.
    MySql,
    /// PostgreSQL.
    PostgreSql,
}

/// From which version on a server takes a new value while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// All do.
    Always,
    /// MySQL and MariaDB from these versions on.
    From {
        /// Of MySQL.
        mysql: (u32, u32, u32),
        /// Of MariaDB.
        mariadb: (u32, u32, u32),
    },
    /// None does.
    Never,
}

/// How a parameter is changed in Amazon's managed databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amazon {
    /// In the instance's group, at once.
    Instance,
    /// In the instance's group, at the next reboot.
    Reboot,
    /// In the cluster's group, at once.
    Cluster,
    /// Not, or not that we know.
    No,
}

/// One parameter.
#[derive(Debug)]
pub struct Parameter {
    /// The server's name for it.
    pub name: &'static str,
    /// Whose it is.
    pub engine: Engine,
    /// What its values count.
    pub unit: Unit,
    /// What it may be.
    pub bounds: Bounds,
    /// Which servers change it while they run.
    pub live: Live,
    /// In RDS.
    pub rds: Amazon,
    /// In Aurora.
    pub aurora: Amazon,
    /// The value that stands for no limit at all, if there is one.
    pub unlimited: Option<f64>,
}

/// No version does: later than any.
const NONE: (u32, u32, u32) = (u32::MAX, 0, 0);

const fn mysql(name: &'static str, unit: Unit, least: f64, most: f64, rds: Amazon, aurora: Amazon) -> Parameter {
    let bounds = Bounds { least, most };
    Parameter { name, engine: Engine::MySql, unit, bounds, live: Live::Always, rds, aurora, unlimited: None }
}

const fn postgresql(name: &'static str, unit: Unit, least: f64, most: f64, rds: Amazon, aurora: Amazon) -> Parameter {
    let bounds = Bounds { least, most };
    Parameter { name, engine: Engine::PostgreSql, unit, bounds, live: Live::Always, rds, aurora, unlimited: None }
}

const GIB: f64 = 1_073_741_824.0;

/// More connections than this no server carries, whatever it lets one set.
const MOST_CONNECTIONS: f64 = 100_000.0;

/// Most sessions of all users.
pub static MYSQL_CONNECTIONS: Parameter =
    mysql("max_connections", Unit::Count, 10.0, MOST_CONNECTIONS, Amazon::Instance, Amazon::Instance);
/// Most sessions of one user.
pub static USER_CONNECTIONS: Parameter =
    mysql("max_user_connections", Unit::Count, 1.0, MOST_CONNECTIONS, Amazon::Instance, Amazon::Instance);
/// MariaDB's and Percona Server's, which change it while they run; MySQL's own pool calls itself
/// otherwise.
pub static POOL_SIZE: Parameter = mysql("thread_pool_size", Unit::Count, 1.0, 100_000.0, Amazon::Reboot, Amazon::No);
/// How long a worker of the pool may run one statement before another one starts.
pub static POOL_STALL_LIMIT: Parameter =
    mysql("thread_pool_stall_limit", Unit::Milliseconds, 10.0, 60_000.0, Amazon::Reboot, Amazon::No);
/// MariaDB's: threads of all groups together. At the limit no group gets another one, however long it stalls.
pub static POOL_MAX_THREADS: Parameter =
    mysql("thread_pool_max_threads", Unit::Count, 1.0, 65_536.0, Amazon::No, Amazon::No);
/// MariaDB's and Percona Server's: threads of a group that may be active beside its first, once it stalled.
pub static POOL_OVERSUBSCRIBE: Parameter =
    mysql("thread_pool_oversubscribe", Unit::Count, 1.0, 1_000.0, Amazon::No, Amazon::No);
/// Tables that stay open.
pub static TABLE_OPEN_CACHE: Parameter =
    mysql("table_open_cache", Unit::Count, 1.0, 524_288.0, Amazon::Reboot, Amazon::Reboot);
/// When the redo log is written and flushed: 1 at each commit.
pub static FLUSH_LOG: Parameter =
    mysql("innodb_flush_log_at_trx_commit", Unit::Count, 0.0, 2.0, Amazon::Instance, Amazon::Cluster);
/// Commits for each flush of the binary log.
pub static SYNC_BINLOG: Parameter =
    mysql("sync_binlog", Unit::Count, 0.0, 4_294_967_295.0, Amazon::Instance, Amazon::No);
/// How long a statement waits for a row lock.
pub static INNODB_LOCK_WAIT: Parameter =
    mysql("innodb_lock_wait_timeout", Unit::Seconds, 1.0, 1_073_741_824.0, Amazon::Instance, Amazon::Instance);
/// MariaDB's alone.
pub static IDLE_WRITE_TRANSACTION: Parameter = Parameter {
    live: Live::From { mysql: NONE, mariadb: (10, 3, 0) },
    unlimited: Some(0.0),
    ..mysql("idle_write_transaction_timeout", Unit::Seconds, 1.0, 31_536_000.0, Amazon::No, Amazon::No)
};
/// Memory for pages.
pub static BUFFER_POOL: Parameter = Parameter {
    live: Live::From { mysql: (5, 7, 5), mariadb: (10, 2, 2) },
    ..mysql("innodb_buffer_pool_size", Unit::Bytes, 5_242_880.0, 1_024.0 * GIB, Amazon::Reboot, Amazon::Reboot)
};
/// All of the redo log, from MySQL 8.0.30 on.
pub static REDO_CAPACITY: Parameter =
    mysql("innodb_redo_log_capacity", Unit::Bytes, 8_388_608.0, 128.0 * GIB, Amazon::No, Amazon::No);
/// Of one file. MySQL has several and reads their size when it starts.
pub static LOG_FILE_SIZE: Parameter = Parameter {
    live: Live::From { mysql: NONE, mariadb: (10, 9, 0) },
    ..mysql("innodb_log_file_size", Unit::Bytes, 4_194_304.0, 256.0 * GIB, Amazon::Reboot, Amazon::No)
};
/// Pages that may be flushed per second.
pub static IO_CAPACITY: Parameter =
    mysql("innodb_io_capacity", Unit::Count, 100.0, 1_000_000.0, Amazon::Instance, Amazon::No);
/// The same while flushing is behind.
pub static IO_CAPACITY_MAX: Parameter =
    mysql("innodb_io_capacity_max", Unit::Count, 100.0, 2_000_000.0, Amazon::Instance, Amazon::No);
/// Most sessions of all users.
pub static POSTGRESQL_CONNECTIONS: Parameter = Parameter {
    live: Live::Never,
    ..postgresql("max_connections", Unit::Count, 1.0, MOST_CONNECTIONS, Amazon::Reboot, Amazon::Reboot)
};
/// Whether a commit waits for the flush of its log.
pub static SYNCHRONOUS_COMMIT: Parameter =
    postgresql("synchronous_commit", Unit::Switch, 0.0, 1.0, Amazon::Instance, Amazon::Instance);
/// How long a statement waits for a lock.
pub static LOCK_TIMEOUT: Parameter = Parameter {
    unlimited: Some(0.0),
    ..postgresql("lock_timeout", Unit::Milliseconds, 1.0, 2_147_483_647.0, Amazon::Instance, Amazon::Instance)
};
/// How long a transaction may stay idle.
pub static IDLE_IN_TRANSACTION: Parameter = Parameter {
    unlimited: Some(0.0),
    ..postgresql(
        "idle_in_transaction_session_timeout",
        Unit::Milliseconds,
        1.0,
        2_147_483_647.0,
        Amazon::Instance,
        Amazon::Instance,
    )
};
/// Log between two checkpoints.
pub static MAX_WAL_SIZE: Parameter =
    postgresql("max_wal_size", Unit::Mebibytes, 2.0, 1_048_576.0, Amazon::Instance, Amazon::No);
/// Share of the time between two checkpoints over which one writes.
pub static COMPLETION_TARGET: Parameter =
    postgresql("checkpoint_completion_target", Unit::Fraction, 0.0, 1.0, Amazon::Instance, Amazon::No);
/// Pause of autovacuum between its portions.
pub static VACUUM_DELAY: Parameter =
    postgresql("autovacuum_vacuum_cost_delay", Unit::Milliseconds, 1.0, 100.0, Amazon::Instance, Amazon::Instance);
