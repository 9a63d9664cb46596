//! The mechanisms and contributions, as tables.

use crate::case::Case;
use crate::resources::{checkpoints, connections, locks, probe, statements, tickets, workers};
use crate::rules::RuleFinding;

/// Causes outside of the service: nothing inside leads to them, and they are not its fault. CPUs that
/// holdup shares with others are the exception: they make it send late.
pub(super) const OUTSIDE: &[&str] = &[GENERATOR, "workload_spike"];

/// The generator itself: its delay is not a wait for the service.
pub(super) const GENERATOR: &str = "load_generator_limit";

/// A full accept queue, which shows as [`SEEN_AS`] in its packets.
pub(super) const OVERFLOW: &str = "accept_queue_overflow";

/// A named limit of the network: packets beyond it are lost or late.
pub(super) const LIMIT: &str = "network_limit";

/// The app's runtime stands still: its workers are held, and it accepts no connection.
pub(super) const PAUSE: &str = "runtime_pause";

/// A process that something stops: none of its threads, workers or locks goes on meanwhile.
pub(super) const STOPPED: &str = "process_stopped";

/// More load: if a resource has run out and no closer cause raises its demand, nothing is broken.
pub(super) const LOAD: &[&str] = &["workload_spike"];

/// A statement that runs more often, or came.
pub(super) const GREW: &str = "statement_mix_changed";

/// A statement that reads more rows than before.
pub(super) const REGRESSION: &str = "statement_regression";

/// Demand on memory and disks beyond what the work needs: the roots of waits for a disk.
pub(super) const DEMANDS: &[&str] = &[
    TEMPORARY,
    "readahead_too_large",
    "working_set_exceeds_memory",
    "atime_updates",
    "memory_pressure",
    "flush_storm",
    "missing_index",
    "plan_changed",
    REGRESSION,
    "backup_or_bulk_load",
];

/// Limits of a disk that demand can reach.
pub(super) const CEILINGS: &[&str] = &["throughput_ceiling", "iops_ceiling"];

/// The end of a time in which a disk may do more than its limit.
pub(super) const BURST: &str = "burst_exhausted";

/// Findings on a disk at full capacity.
pub(super) const DISKS: &[&str] = &["throughput_ceiling", "iops_ceiling", "disk_saturated"];

/// Findings on CPUs that are full.
pub(super) const CPUS: &[&str] = &["cpu_saturated"];

/// Demands that exist all along: if a limit came down, they exceed it but did not change.
pub(super) const STANDING: &[&str] =
    &["readahead_too_large", "working_set_exceeds_memory", "atime_updates", "memory_pressure", "flush_storm"];

/// Sizes that did not change: with more load alone they are what the load meets, not the change.
pub(super) const SIZES: &[&str] = &["working_set_exceeds_memory"];

/// Causes within the time of a single statement: a holder of a lock or of a pool's thread is held
/// up by them too.
pub(super) const WITHIN_STATEMENTS: &[&str] =
    &["plan_changed", "missing_index", REGRESSION, "commit_log_bound", "flush_storm", BULK, FULL];

/// A disk without room: writes wait for it.
pub(super) const FULL: &str = "disk_full";

/// Temporary tables and files.
pub(super) const TEMPORARY: &str = "on_disk_temporary_tables";

/// A bulk change, or a copy of much data.
pub(super) const BULK: &str = "backup_or_bulk_load";

/// Causes for which requests wait in line. Others are what they work on.
pub(super) const QUEUES: &[&str] = &[
    "thread_pool_queue",
    "tickets_exhausted",
    "connection_pool_exhausted",
    "worker_pool_exhausted",
    "connection_limit",
    "lock_contention",
    "cpu_throttled",
    "cpu_saturated",
    "throughput_ceiling",
    "iops_ceiling",
    BURST,
    "disk_saturated",
    "uninterruptible_pileup",
];

/// Waits in line behind one that waits for the cause itself: of the sessions in commit only the one
/// that writes the log waits for the disk, and the disk's own measure does not see the others.
pub(super) const LINES: &[&str] = &["commit_log_bound"];

/// Queues for what a request holds: they are symptoms if it is held longer.
pub(super) const POOLS: &[&str] = &["connection_pool_exhausted", "worker_pool_exhausted"];

/// Findings in front of the app and of all that it calls: they lead to nothing behind them.
pub(super) const IN_FRONT: &[&str] = &["worker_pool_exhausted", "accept_queue_overflow", "liveness_probe_kill"];

/// What a full accept queue looks like from outside: the same packets.
pub(super) const SEEN_AS: &str = "network_loss";

/// Causes that make statements themselves long, so that connections are held longer.
pub(super) const LONG_STATEMENTS: &[&str] = &[
    "plan_changed",
    "missing_index",
    REGRESSION,
    "flush_storm",
    "commit_log_bound",
    "disk_saturated",
    "iops_ceiling",
    "throughput_ceiling",
    "cpu_saturated",
    "cpu_throttled",
    TEMPORARY,
    "working_set_exceeds_memory",
    "memory_pressure",
    "table_cache_small",
    BULK,
    FULL,
    "too_many_indexes",
    "old_snapshot",
];

/// Many clients that connect at once.
pub(super) const STORM: &str = "connection_storm";

/// Causes that make statements long and do not come of connections themselves: pools then open more.
pub(super) const GROW_POOLS: &[&str] = &[
    "plan_changed",
    "missing_index",
    REGRESSION,
    "flush_storm",
    "commit_log_bound",
    "disk_saturated",
    "iops_ceiling",
    "throughput_ceiling",
    TEMPORARY,
    "readahead_too_large",
    "working_set_exceeds_memory",
    "memory_pressure",
    "table_cache_small",
    BULK,
    FULL,
    "too_many_indexes",
    "old_snapshot",
];

/// What makes an operation of MongoDB keep its ticket: the disk, the cache, the CPUs, its own reads.
pub(super) const HOLD_TICKETS: &[&str] = &[
    "missing_index",
    "flush_storm",
    "disk_saturated",
    "iops_ceiling",
    "throughput_ceiling",
    "readahead_too_large",
    "working_set_exceeds_memory",
    "memory_pressure",
    "cpu_saturated",
    "cpu_throttled",
    BULK,
    FULL,
];

/// Causes on the way between app and database: the app holds what it has for as long as a statement
/// takes there and back.
pub(super) const ON_THE_WAY: &[&str] = &["network_delay", SEEN_AS, "network_bandwidth", LIMIT];

/// One way in which a cause leads to another.
pub(super) struct Mechanism {
    /// The consequence.
    pub(super) consequence: &'static str,
    /// Possible causes, nearest tier first; within a tier, the one that explains most is nearest.
    /// An empty tier stands for every cause of the service except those [`IN_FRONT`] of it.
    pub(super) causes: &'static [&'static [&'static str]],
    /// Milliseconds of a request of which a cause must make up the share [`BRINGS_ABOUT`]; none if
    /// unknown.
    pub(super) magnitude: fn(&RuleFinding, &Case<'_>) -> Option<f64>,
    /// Whether the consequence's time comes on top of its cause's, in front of it, rather than
    /// being the same time seen again.
    pub(super) is_added: bool,
}

/// A cause that raises the demand on a resource whose limit binds: a contributor, unless it began
/// with the episode and makes up most of the growth.
pub(super) struct Contribution {
    pub(super) cause: &'static str,
    /// What it adds to, nearest tier first; within a tier, the one that explains most is nearest.
    pub(super) adds_to: &'static [&'static [&'static str]],
    /// Share (0-1) of its own time that this must explain.
    pub(super) least: f64,
}

/// Every contribution.
pub(super) const CONTRIBUTIONS: &[Contribution] = &[
    // Which statement grew, and what it makes the server do or waits for, are two answers about the
    // same time.
    Contribution { cause: GREW, adds_to: &[&["toast_rewrite", TEMPORARY, BULK]], least: 0.5 },
    Contribution { cause: GREW, adds_to: &[&["lock_contention"]], least: 0.0 },
    // A handler that sleeps with a connection of the pool holds it from others: most wait for the pool.
    Contribution { cause: "wait_in_app", adds_to: &[&["connection_pool_exhausted"]], least: 0.0 },
    // Rewritten values leave dead rows for vacuum to remove, and are written to the same disk.
    Contribution {
        cause: "toast_rewrite",
        adds_to: &[&["autovacuum_pressure"], CEILINGS, &["disk_saturated"], &["commit_log_bound"]],
        least: 0.0,
    },
    Contribution {
        cause: "too_many_indexes",
        adds_to: &[CEILINGS, &["disk_saturated"], &["commit_log_bound"]],
        least: 0.0,
    },
    Contribution {
        cause: "autovacuum_pressure",
        adds_to: &[CEILINGS, &["disk_saturated"], &["commit_log_bound"]],
        least: 0.0,
    },
];

/// Every mechanism, consequences after their possible causes.
pub(super) const MECHANISMS: &[Mechanism] = &[
    // More load makes more packets and more connections.
    Mechanism { consequence: LIMIT, causes: &[LOAD], magnitude: its_own, is_added: false },
    // To the app, a database that is stopped is a long way: its kernel acknowledges, and no answer comes.
    // What exceeds a limit of the network waits in front of it.
    Mechanism { consequence: "network_delay", causes: &[&[STOPPED], &[LIMIT]], magnitude: its_own, is_added: false },
    // A dropped index is a missing one: the statement's plan changed when it went.
    Mechanism { consequence: "missing_index", causes: &[&["plan_changed"]], magnitude: its_own, is_added: false },
    // More changes fill the log sooner. Not if the log was cut, or a session asks for checkpoints.
    Mechanism {
        consequence: "flush_storm",
        causes: &[&[BULK]],
        magnitude: |storm, case| (!checkpoints::are_forced(case)).then_some(storm.explains_ms),
        is_added: false,
    },
    // More statements at a time keep more tables open; a cache that was as small before did not change.
    Mechanism { consequence: "table_cache_small", causes: &[LOAD], magnitude: its_own, is_added: false },
    Mechanism { consequence: "iops_ceiling", causes: &[DEMANDS, LOAD], magnitude: its_own, is_added: false },
    Mechanism { consequence: "throughput_ceiling", causes: &[DEMANDS, LOAD], magnitude: its_own, is_added: false },
    // The end of a burst explains how the ceiling was reached, not why the demand exceeds it.
    Mechanism { consequence: BURST, causes: &[CEILINGS], magnitude: its_own, is_added: false },
    Mechanism {
        consequence: "disk_saturated",
        causes: &[CEILINGS, DEMANDS, LOAD],
        magnitude: its_own,
        is_added: false,
    },
    Mechanism { consequence: "network_bandwidth", causes: &[&[LIMIT], LOAD], magnitude: its_own, is_added: false },
    Mechanism {
        consequence: "uninterruptible_pileup",
        causes: &[&["disk_saturated"], CEILINGS, DEMANDS],
        magnitude: its_own,
        is_added: false,
    },
    // A flush waits behind all other work of the disk, including pages that have to be written.
    Mechanism {
        consequence: "commit_log_bound",
        causes: &[&[FULL], &["disk_saturated", "iops_ceiling", "throughput_ceiling"], &["flush_storm"]],
        magnitude: its_own,
        is_added: false,
    },
    // Waiters for a lock stand in front of the same time of its holder.
    Mechanism {
        consequence: "lock_contention",
        causes: &[WITHIN_STATEMENTS],
        magnitude: |_, case| locks::held_ms(case),
        is_added: true,
    },
    // Else a bulk change holds its locks for as long as it works, and what began is the change.
    Mechanism {
        consequence: "lock_contention",
        causes: &[&[BULK]],
        magnitude: |_, case| locks::are_held_by_bulk(case).then_some(0.0),
        is_added: true,
    },
    // Where operations take longer, pools open further connections, and clients that time out connect
    // again.
    Mechanism {
        consequence: STORM,
        causes: &[&[STOPPED], &["lock_contention"], ON_THE_WAY, &["replication_wait"], GROW_POOLS, LOAD],
        // All of the delay is booked to a storm that comes with it: a part of it is enough.
        magnitude: |storm, case| its_own(storm, case).map(|ms| 0.5 * ms),
        is_added: false,
    },
    // Threads of a group that has used up its quota stand in the run queue until its next period.
    // Opening and closing tables is CPU work, so are statements that run once for each row, temporary
    // tables, and the dump of a backup: where CPUs mostly do that, it explains most of the shortage.
    Mechanism {
        consequence: "cpu_saturated",
        causes: &[
            &["cpu_throttled"],
            &[
                "table_cache_small",
                "plan_changed",
                "missing_index",
                REGRESSION,
                "n_plus_one_queries",
                TEMPORARY,
                BULK,
                "old_snapshot",
                STORM,
            ],
            &[GREW],
            LOAD,
        ],
        magnitude: its_own,
        is_added: false,
    },
    // A loop of holdup's that stands in the run queue of full CPUs sends late.
    Mechanism { consequence: GENERATOR, causes: &[&["cpu_saturated"]], magnitude: its_own, is_added: false },
    // A runtime that gets no CPU takes longer to collect, is late in its event loop, and lets its
    // goroutines wait. A collector touches the whole heap, pages that are swapped out, too.
    Mechanism {
        consequence: PAUSE,
        causes: &[&["cpu_throttled", STOPPED], &["cpu_saturated"], &["memory_pressure"], LOAD],
        magnitude: its_own,
        is_added: false,
    },
    // A statement holds its thread of the pool throughout, including lock waits.
    Mechanism {
        consequence: "thread_pool_queue",
        causes: &[&[STOPPED], &["lock_contention"], WITHIN_STATEMENTS, LOAD],
        magnitude: |_, case| statements::executed_ms(case),
        is_added: true,
    },
    // An operation keeps its ticket while it reads, writes or waits for a lock.
    Mechanism {
        consequence: "tickets_exhausted",
        causes: &[&[STOPPED], &["lock_contention"], HOLD_TICKETS, LOAD],
        magnitude: |_, case| tickets::held_ms(case),
        is_added: true,
    },
    // More connections are open at once if each is used longer; the server refuses them by their
    // number.
    Mechanism {
        consequence: "connection_limit",
        causes: &[
            &["thread_pool_queue", "tickets_exhausted", "lock_contention"],
            ON_THE_WAY,
            &["replication_wait"],
            LONG_STATEMENTS,
            &[STORM],
        ],
        magnitude: |_, case| Some(case.excess_ms()),
        is_added: false,
    },
    Mechanism {
        consequence: "connection_pool_exhausted",
        causes: &[&[], LOAD],
        magnitude: |_, case| connections::to_explain_ms(case),
        is_added: true,
    },
    // A request holds its worker throughout, whatever it waits for.
    Mechanism {
        consequence: "worker_pool_exhausted",
        causes: &[
            &["cpu_throttled", STOPPED],
            &[PAUSE],
            &[
                "downstream_slow",
                "connection_pool_exhausted",
                "thread_pool_queue",
                "tickets_exhausted",
                "lock_contention",
            ],
            &[],
            LOAD,
        ],
        magnitude: |_, case| workers::held_ms(case),
        is_added: true,
    },
    // Connections are not accepted: all workers are busy, or the process has no descriptor left.
    Mechanism {
        consequence: "accept_queue_overflow",
        causes: &[
            &["worker_pool_exhausted", "file_descriptor_limit"],
            &["cpu_throttled", "cpu_saturated", PAUSE, STOPPED],
        ],
        // Those who are never let in make the queue longer than any request waits.
        magnitude: |_, case| Some(workers::queued_ms(case).unwrap_or(0.0).min(case.excess_in_service_ms())),
        is_added: true,
    },
    // A full queue or table drops packets, which are resent by the same timers as lost ones.
    Mechanism { consequence: SEEN_AS, causes: &[&[OVERFLOW, LIMIT]], magnitude: its_own, is_added: false },
    // The probe comes through the same queue, and waits no longer than its timeout.
    Mechanism {
        consequence: "liveness_probe_kill",
        causes: &[&["accept_queue_overflow"], &["worker_pool_exhausted"], &["cpu_throttled", "cpu_saturated"], &[]],
        magnitude: |_, case| probe::timeout_ms(case),
        is_added: true,
    },
];

/// What it explains, at most what there is to explain.
fn its_own(consequence: &RuleFinding, case: &Case<'_>) -> Option<f64> {
    Some(consequence.explains_ms.min(case.excess_ms()))
}
