//! Kinds of events that several sources write and that judges read, with the labels that each may
//! have. Like a metric, a kind is a constant, so that a misspelt one does not compile. An event
//! stands for one happening, or for as many as its label [`COUNT`] says. Every label may be absent.

/// The label with the number of happenings that an event stands for.
pub const COUNT: &str = "count";

/// The kernel killed a process for lack of memory. Labels: `process`, `pid`, `anonymous_bytes` (its
/// memory), `scope` (`cgroup` or `host`), `cgroup` (the group whose limit was reached),
/// `limit_bytes`, `asked_by` (the process whose request for memory led to it).
pub const OUT_OF_MEMORY_KILL: &str = "out_of_memory_kill";

/// A thread was in uninterruptible sleep for minutes. Labels: `process`, `pid`, `seconds`,
/// `function` (where it slept). Its stack is a row of `threads`.
pub const HUNG_TASK: &str = "hung_task";

/// A thread kept a CPU in the kernel. Labels: `process`, `pid`, `cpu`, `seconds`.
pub const SOFT_LOCKUP: &str = "soft_lockup";

/// A device returned an error. Labels: `device`, `operation`.
pub const IO_ERROR: &str = "io_error";

/// A request to a device timed out, or the kernel reset the device or its link. Label: `device`.
pub const IO_TIMEOUT: &str = "io_timeout";

/// A file system reported an error, or was remounted read-only. Label: `device`.
pub const FILE_SYSTEM_ERROR: &str = "file_system_error";

/// A listening socket's queue of new connections was full. Labels: `port`, `action` (`dropped` or
/// `cookies`).
pub const SYN_FLOODING: &str = "syn_flooding";

/// A write failed for lack of space. Labels: `server`, `file`.
pub const DISK_FULL: &str = "disk_full";

/// A server began anew. Labels: `server` (its name), `why` ([`WHY`] lists the words).
pub const RESTART: &str = "restart";

/// Why a server began anew, in the label `why` of [`RESTART`]: it had crashed, a standby took over,
/// it was requested, or the reason is not known.
pub const WHY: [&str; 4] = [CRASH, FAILOVER, REQUESTED, UNKNOWN];
/// The server had not shut down: it recovered from its log.
pub const CRASH: &str = "crash";
/// A standby took over, or the server was made primary.
pub const FAILOVER: &str = "failover";
/// It was shut down in an orderly way, e.g. for a deployment or maintenance.
pub const REQUESTED: &str = "requested";
/// Not known.
pub const UNKNOWN: &str = "unknown";

/// An object of a database's catalog or a setting is another than at the last reading. Labels: `what`
/// (the kind of object), `object`, `on` (its table, role or database), `from`, `to`, `restore` (the
/// statement that undoes it), `since_ns` (when it was last read as it had been, nanoseconds since 1970).
pub const CHANGED: &str = "changed";

/// Members of a Kafka group came or went, or their partitions were given out anew. Labels: `group`,
/// `state`, `members`.
pub const REBALANCE: &str = "rebalance";

/// A container began anew, according to Kubernetes. Labels: `container`, `reason`, `exit_code`,
/// `signal`, `restarts`.
pub const CONTAINER_RESTARTED: &str = "container_restarted";

/// A probe of a container failed. Labels: `probe`, `reason`.
pub const PROBE_FAILED: &str = "probe_failed";

/// Kubernetes killed a container. Labels: `container`, `why`.
pub const CONTAINER_KILLED: &str = "container_killed";

/// Sessions waited for each other's locks in a circle, and one was rolled back. Labels: `waits`,
/// `session`, `digest`, `table`.
pub const DEADLOCK: &str = "deadlock";

/// A thread of InnoDB waited for a semaphore (a latch inside of the server). Labels: `seconds` (how
/// long it has waited), `place` (file and line), `latch` (its name).
pub const SEMAPHORE_WAIT: &str = "semaphore_wait";

/// The app's runtime stood still, by its own log: for a collection of garbage, or at a safepoint. Labels:
/// `runtime`, `seconds` (the longest of them), `total_s` (all of them), `span_s` (the time in which they
/// were), `why`, `distress` (the collector's own word for heap that ran out).
pub const RUNTIME_PAUSE: &str = "runtime_pause";

/// A server stood still, by its own monitor. Labels: `what` (the server's word for what it did),
/// `seconds`.
pub const SERVER_STALL: &str = "server_stall";

/// A server reported an error. Labels: `error` (one of the words below, or others), `sqlstate`,
/// `errno`, `severity`.
pub const ERROR: &str = "error";
/// `error` of [`ERROR`]: a connection was refused because the limit of connections was reached.
pub const TOO_MANY_CONNECTIONS: &str = "too many connections";
/// `error` of [`ERROR`]: a proxy could not connect to the server behind it. Further label: `why`
/// (`refused`, `timed out`, `reset`).
pub const UPSTREAM_UNREACHABLE: &str = "upstream unreachable";
/// `error` of [`ERROR`]: a replica's receiver or applier stopped. Further labels: `thread` (`io` or
/// `sql`), `errno`, `channel`.
pub const REPLICATION_STOPPED: &str = "replication stopped";
/// `error` of [`ERROR`]: the server had no memory for a statement.
pub const OUT_OF_MEMORY: &str = "out of memory";
/// `error` of [`ERROR`]: a request got no connection from an app's or a pooler's pool in time.
pub const POOL_TIMEOUT: &str = "pool time-out";
/// `error` of [`ERROR`]: every worker of an app server was busy.
pub const WORKERS_BUSY: &str = "workers busy";
/// `error` of [`ERROR`]: a statement gave up waiting for a lock.
pub const LOCK_TIMEOUT: &str = "lock time-out";
/// `error` of [`ERROR`]: a server waited long until its log was on the disk.
pub const SLOW_FLUSH: &str = "slow flush";
/// `error` of [`ERROR`]: a database flushed its pages too often, or could not keep up.
pub const CHECKPOINTS: &str = "checkpoints";
/// `error` of [`ERROR`]: a server's queue of new connections was full.
pub const QUEUE_FULL: &str = "queue full";
/// `error` of [`ERROR`]: a proxy gave up waiting for an answer of the server behind it.
pub const UPSTREAM_TIMEOUT: &str = "upstream time-out";
/// `error` of [`ERROR`]: a statement sorted or hashed on disk.
pub const SPILLED: &str = "spilled";
/// `error` of [`ERROR`]: an operation read a whole collection or table.
pub const SCANNED: &str = "scanned";
/// `error` of [`ERROR`]: vacuum could not remove dead rows that an old snapshot may see.
pub const ROWS_KEPT: &str = "dead rows kept";
/// `error` of [`ERROR`]: one request ran the same statement many times.
pub const REPEATED_STATEMENTS: &str = "repeated statements";
/// `error` of [`ERROR`]: an app's heap is full, and its collector frees hardly anything.
pub const HEAP_FULL: &str = "heap full";
/// `error` of [`ERROR`]: a statement found the one lock of an embedded database taken, and gave up.
pub const WRITER_WAITED: &str = "writer waited";
/// `error` of [`ERROR`]: a flush took seconds because the disk was busy.
pub const DISK_BUSY: &str = "disk busy";
/// `error` of [`ERROR`]: a monitor saw a quota of CPU run out in much of its periods.
pub const QUOTA_RAN_OUT: &str = "CPU quota ran out";
/// `error` of [`ERROR`]: the kernel's thread that frees memory was busy.
pub const RECLAIMING: &str = "memory reclaimed";
/// `error` of [`ERROR`]: a command kept the one thread of a server for longer than its slow log allows.
pub const SLOW_COMMAND: &str = "slow command";
/// `error` of [`ERROR`]: a volume's credits for bursts are nearly used up.
pub const CREDITS_LOW: &str = "burst credits low";
/// `error` of [`ERROR`]: transaction ids ran short.
pub const WRAPAROUND: &str = "wraparound";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_errors_are_distinct() {
        let all = [
            OUT_OF_MEMORY_KILL,
            HUNG_TASK,
            SOFT_LOCKUP,
            IO_ERROR,
            IO_TIMEOUT,
            FILE_SYSTEM_ERROR,
            SYN_FLOODING,
            DISK_FULL,
            RESTART,
            CHANGED,
            CONTAINER_RESTARTED,
            PROBE_FAILED,
            CONTAINER_KILLED,
            REBALANCE,
            DEADLOCK,
            SEMAPHORE_WAIT,
            RUNTIME_PAUSE,
            SERVER_STALL,
            ERROR,
            TOO_MANY_CONNECTIONS,
            UPSTREAM_UNREACHABLE,
            REPLICATION_STOPPED,
            OUT_OF_MEMORY,
            POOL_TIMEOUT,
            WORKERS_BUSY,
            LOCK_TIMEOUT,
            SLOW_FLUSH,
            CHECKPOINTS,
            QUEUE_FULL,
            UPSTREAM_TIMEOUT,
            SPILLED,
            SCANNED,
            ROWS_KEPT,
            REPEATED_STATEMENTS,
            HEAP_FULL,
            WRITER_WAITED,
            DISK_BUSY,
            QUOTA_RAN_OUT,
            RECLAIMING,
            SLOW_COMMAND,
            CREDITS_LOW,
            WRAPAROUND,
        ];
        let distinct: std::collections::BTreeSet<&str> = all.into_iter().chain(WHY).collect();
        assert_eq!(distinct.len(), all.len() + WHY.len());
    }
}
