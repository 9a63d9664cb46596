//! The differences between servers, in one table: by topic, kind of server and the version from
//! which an entry holds. No other code checks a version number. A server of unknown kind or version
//! is treated like the nearest older one.

use super::release::{Flavour, Release};

/// A version-dependent fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    /// Statement for pairs of transactions: waiter and blocker of a row lock.
    LockWaits,
    /// Statement for pairs of sessions: waiter and blocker of a metadata lock; empty without such a
    /// table.
    MetadataLocks,
    /// Statement for the state of replication, one row per channel.
    ReplicaStatus,
    /// The privilege that [`Topic::ReplicaStatus`] needs.
    ReplicaPrivilege,
    /// Statement for the length of InnoDB's history list; empty if a status variable of that name
    /// has it.
    HistoryList,
    /// Source of the checkpoint's age: the status variables `Innodb_` + a name, or the difference
    /// of two, as `a-b`; empty if only `SHOW ENGINE INNODB STATUS` has it.
    CheckpointAge,
    /// The redo log's size in bytes, as an expression of global variables.
    LogCapacity,
    /// Statement for the port outside the thread pool; empty for servers without one.
    ExtraPort,
    /// Setting that limits a session's statements to two seconds; empty for servers without one.
    TimeLimit,
    /// `shown` or `hidden`: the connection ids in the thread pool's queue; empty without a table of
    /// the queue.
    QueuedConnections,
    /// Whether status variables `Threadpool_threads` and `Threadpool_idle_threads` count the pool's threads: `yes` or empty.
    PoolThreads,
}

const MARIADB: &[Flavour] = &[Flavour::MariaDb];
const MYSQL: &[Flavour] = &[Flavour::MySql];
const PERCONA: &[Flavour] = &[Flavour::Percona];
/// Percona Server is MySQL with additions.
const BOTH: &[Flavour] = &[Flavour::MySql, Flavour::Percona];
const ALL: &[Flavour] = &[Flavour::MariaDb, Flavour::MySql, Flavour::Percona];
const ANY: (u16, u16, u16) = (0, 0, 0);

const OLD_LOCK_WAITS: &str =
    "SELECT requesting_trx_id, blocking_trx_id FROM information_schema.INNODB_LOCK_WAITS LIMIT 10000";
const NEW_LOCK_WAITS: &str = "SELECT REQUESTING_ENGINE_TRANSACTION_ID, BLOCKING_ENGINE_TRANSACTION_ID \
     FROM performance_schema.data_lock_waits LIMIT 10000";
const METADATA_LOCKS: &str = "SELECT holdup_w.PROCESSLIST_ID, holdup_h.PROCESSLIST_ID \
     FROM performance_schema.metadata_locks AS holdup_p \
     JOIN performance_schema.metadata_locks AS holdup_g ON holdup_g.LOCK_STATUS = 'GRANTED' \
     AND holdup_g.OBJECT_TYPE = holdup_p.OBJECT_TYPE AND holdup_g.OBJECT_SCHEMA <=> holdup_p.OBJECT_SCHEMA \
     AND holdup_g.OBJECT_NAME <=> holdup_p.OBJECT_NAME AND holdup_g.OWNER_THREAD_ID <> holdup_p.OWNER_THREAD_ID \
     JOIN performance_schema.threads AS holdup_w ON holdup_w.THREAD_ID = holdup_p.OWNER_THREAD_ID \
     JOIN performance_schema.threads AS holdup_h ON holdup_h.THREAD_ID = holdup_g.OWNER_THREAD_ID \
     WHERE holdup_p.LOCK_STATUS = 'PENDING' LIMIT 1000";
const HISTORY_METRIC: &str = "SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'";

/// Topic, kinds of server, first version, and the value.
type Row = (Topic, &'static [Flavour], (u16, u16, u16), &'static str);

/// For each topic the last row with a matching kind and version holds. Sources: the vendors'
/// manuals and release notes.
#[rustfmt::skip]
const TABLE: &[Row] = &[
    (Topic::LockWaits,         ALL,     ANY,          OLD_LOCK_WAITS),
    (Topic::LockWaits,         BOTH,    (8, 0, 1),    NEW_LOCK_WAITS),
    (Topic::MetadataLocks,     ALL,     ANY,          ""),
    (Topic::MetadataLocks,     BOTH,    (5, 7, 3),    METADATA_LOCKS),
    (Topic::MetadataLocks,     MARIADB, (10, 5, 2),   METADATA_LOCKS),
    (Topic::ReplicaStatus,     BOTH,    ANY,          "SHOW SLAVE STATUS"),
    (Topic::ReplicaStatus,     BOTH,    (8, 0, 22),   "SHOW REPLICA STATUS"),
    // Covers several masters; the plain statement shows only one.
    (Topic::ReplicaStatus,     MARIADB, ANY,          "SHOW ALL SLAVES STATUS"),
    (Topic::ReplicaPrivilege,  ALL,     ANY,          "REPLICATION CLIENT"),
    (Topic::ReplicaPrivilege,  MARIADB, (10, 5, 2),   "REPLICATION SLAVE ADMIN"),
    (Topic::ReplicaPrivilege,  MARIADB, (10, 5, 9),   "SLAVE MONITOR"),
    (Topic::HistoryList,       ALL,     ANY,          HISTORY_METRIC),
    (Topic::HistoryList,       MARIADB, (10, 5, 0),   ""),
    (Topic::CheckpointAge,     MYSQL,   ANY,          ""),
    (Topic::CheckpointAge,     PERCONA, ANY,          "checkpoint_age"),
    (Topic::CheckpointAge,     BOTH,    (8, 0, 30),   "redo_log_current_lsn-redo_log_checkpoint_lsn"),
    // InnoDB of 10.2 to 10.4 was MySQL's, not XtraDB, and lacked the counter.
    (Topic::CheckpointAge,     MARIADB, ANY,          ""),
    (Topic::CheckpointAge,     MARIADB, (10, 5, 0),   "checkpoint_age"),
    (Topic::LogCapacity,       ALL,     ANY,          "@@global.innodb_log_file_size * @@global.innodb_log_files_in_group"),
    (Topic::LogCapacity,       BOTH,    (8, 0, 30),   "@@global.innodb_redo_log_capacity"),
    // One file since 10.5; 10.6 removed the variable for the number of files.
    (Topic::LogCapacity,       MARIADB, (10, 5, 0),   "@@global.innodb_log_file_size"),
    (Topic::ExtraPort,         MYSQL,   ANY,          ""),
    (Topic::ExtraPort,         MARIADB, ANY,          "SELECT @@extra_port"),
    (Topic::ExtraPort,         PERCONA, (5, 5, 29),   "SELECT @@extra_port"),
    (Topic::TimeLimit,         ALL,     ANY,          ""),
    (Topic::TimeLimit,         MARIADB, (10, 1, 1),   "max_statement_time = 2"),
    (Topic::TimeLimit,         PERCONA, (5, 6, 13),   "max_statement_time = 2000"),
    (Topic::TimeLimit,         BOTH,    (5, 7, 8),    "max_execution_time = 2000"),
    (Topic::QueuedConnections, ALL,     ANY,          ""),
    (Topic::QueuedConnections, MARIADB, (10, 5, 0),   "hidden"),
    (Topic::QueuedConnections, MARIADB, (10, 5, 13),  "shown"),
    (Topic::QueuedConnections, MARIADB, (10, 6, 0),   "hidden"),
    (Topic::QueuedConnections, MARIADB, (10, 6, 5),   "shown"),
    (Topic::PoolThreads,       MYSQL,   ANY,          ""),
    (Topic::PoolThreads,       MARIADB, (5, 5, 0),    "yes"),
    (Topic::PoolThreads,       PERCONA, (5, 5, 29),   "yes"),
];

impl Release {
    /// The value of `topic` for this release; empty if the server has no such feature.
    pub(super) fn has(self, topic: Topic) -> &'static str {
        let fits = |row: &&(Topic, &[Flavour], (u16, u16, u16), &'static str)| {
            row.0 == topic && row.1.contains(&self.flavour) && row.2 <= self.version
        };
        TABLE.iter().rev().find(fits).map_or("", |row| row.3)
    }

    /// Whether `THREAD_POOL_QUEUES.CONNECTION_ID` is always NULL: a bug of 10.5 before 10.5.13 and 10.6 before 10.6.5.
    pub(super) fn hides_queued_connections(self) -> bool {
        self.has(Topic::QueuedConnections) == "hidden"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(version: &str) -> Release {
        let comment = if version.ends_with("Percona") { "Percona Server (GPL)" } else { "" };
        Release::parse(version, comment)
    }

    #[test]
    fn connections_in_the_queue_are_hidden_by_some_versions() {
        for (version, hides) in [
            ("10.5.0-MariaDB", true),
            ("10.5.12-MariaDB", true),
            ("10.5.13-MariaDB", false),
            ("10.6.0-MariaDB", true),
            ("10.6.4-MariaDB", true),
            ("10.6.5-MariaDB", false),
            ("10.11.2-MariaDB", false),
            ("11.4.1-MariaDB", false),
            ("8.0.4", false),
        ] {
            assert_eq!(of(version).hides_queued_connections(), hides, "{version}");
        }
        assert_eq!(of("10.4.30-MariaDB").has(Topic::QueuedConnections), "", "it has no such table");
    }

    #[test]
    fn each_kind_and_version_has_its_own_words() {
        let has = |version, topic| of(version).has(topic);
        for version in ["5.6.24", "5.7.44", "5.7.44-48-Percona", "10.3.39-MariaDB", "11.4.2-MariaDB"] {
            assert!(has(version, Topic::LockWaits).contains("INNODB_LOCK_WAITS"), "{version}");
        }
        for version in ["8.0.11", "8.4.0", "8.0.36-28-Percona", "9.1.0"] {
            assert!(has(version, Topic::LockWaits).contains("data_lock_waits"), "{version}");
        }
        for (version, replica) in [
            ("5.6.24", "SHOW SLAVE STATUS"),
            ("8.0.21", "SHOW SLAVE STATUS"),
            ("8.0.22", "SHOW REPLICA STATUS"),
            ("8.4.3", "SHOW REPLICA STATUS"),
            ("10.3.39-MariaDB", "SHOW ALL SLAVES STATUS"),
            ("8.0.21-12-Percona", "SHOW SLAVE STATUS"),
        ] {
            assert_eq!(has(version, Topic::ReplicaStatus), replica, "{version}");
        }
        for (version, limit) in [
            ("5.6.24", ""),
            ("5.7.7", ""),
            ("5.7.8", "max_execution_time = 2000"),
            ("5.6.40-84.0-Percona", "max_statement_time = 2000"),
            ("8.0.36-28-Percona", "max_execution_time = 2000"),
            ("10.3.2-MariaDB", "max_statement_time = 2"),
        ] {
            assert_eq!(has(version, Topic::TimeLimit), limit, "{version}");
        }
        for (version, age) in [
            ("5.6.24", ""),
            ("8.0.29", ""),
            ("8.0.30", "redo_log_current_lsn-redo_log_checkpoint_lsn"),
            ("5.7.44-48-Percona", "checkpoint_age"),
            ("10.4.9-MariaDB", ""),
            ("10.5.1-MariaDB", "checkpoint_age"),
        ] {
            assert_eq!(has(version, Topic::CheckpointAge), age, "{version}");
        }
    }

    #[test]
    fn every_topic_is_settled_for_every_kind_or_is_empty_on_purpose() {
        for version in ["5.6.24", "8.4.0", "5.7.44-48-Percona", "10.3.39-MariaDB", "11.8.1-MariaDB"] {
            for topic in [Topic::LockWaits, Topic::ReplicaStatus, Topic::ReplicaPrivilege, Topic::LogCapacity] {
                assert!(!of(version).has(topic).is_empty(), "{version}: {topic:?}");
            }
        }
        assert_eq!(of("10.3.39-MariaDB").has(Topic::PoolThreads), "yes");
        assert_eq!(of("5.7.44").has(Topic::PoolThreads), "", "its pool is a plugin that has tables of its own");
    }
}
