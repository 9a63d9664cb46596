//! The causes by name. This is the list that the compiler holds everything to: a cause is a line here
//! and a folder in [`crate::causes`], which says all that holdup knows of it.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Calls `$with` with the folder and the variant of each cause, in the order in which a request meets the
/// resource.
macro_rules! each_cause {
    ($with:ident) => {
        $with! {
            load_generator_limit LoadGeneratorLimit,
            workload_spike WorkloadSpike,
            statement_mix_changed StatementMixChanged,
            out_of_memory_kill OutOfMemoryKill,
            server_restart ServerRestart,
            file_descriptor_limit FileDescriptorLimit,
            network_limit NetworkLimit,
            network_loss NetworkLoss,
            network_bandwidth NetworkBandwidth,
            network_delay NetworkDelay,
            accept_queue_overflow AcceptQueueOverflow,
            liveness_probe_kill LivenessProbeKill,
            worker_pool_exhausted WorkerPoolExhausted,
            process_stopped ProcessStopped,
            runtime_pause RuntimePause,
            wait_in_app WaitInApp,
            connection_pool_exhausted ConnectionPoolExhausted,
            connection_per_request ConnectionPerRequest,
            downstream_slow DownstreamSlow,
            service_fails ServiceFails,
            n_plus_one_queries NPlusOneQueries,
            connection_storm ConnectionStorm,
            connection_limit ConnectionLimit,
            thread_pool_queue ThreadPoolQueue,
            tickets_exhausted TicketsExhausted,
            search_rejections SearchRejections,
            replication_wait ReplicationWait,
            pipeline_stage_lag PipelineStageLag,
            replica_lag ReplicaLag,
            replication_slot_keeps_log ReplicationSlotKeepsLog,
            plan_changed PlanChanged,
            missing_index MissingIndex,
            statement_regression StatementRegression,
            cache_misses CacheMisses,
            slow_command SlowCommand,
            persistence_pause PersistencePause,
            output_buffer_limit OutputBufferLimit,
            lock_contention LockContention,
            old_snapshot OldSnapshot,
            table_cache_small TableCacheSmall,
            on_disk_temporary_tables OnDiskTemporaryTables,
            commit_log_bound CommitLogBound,
            flush_storm FlushStorm,
            cpu_throttled CpuThrottled,
            cpu_saturated CpuSaturated,
            memory_pressure MemoryPressure,
            working_set_exceeds_memory WorkingSetExceedsMemory,
            readahead_too_large ReadaheadTooLarge,
            atime_updates AtimeUpdates,
            too_many_indexes TooManyIndexes,
            backup_or_bulk_load BackupOrBulkLoad,
            toast_rewrite ToastRewrite,
            autovacuum_pressure AutovacuumPressure,
            disk_full DiskFull,
            disk_errors DiskErrors,
            throughput_ceiling ThroughputCeiling,
            iops_ceiling IopsCeiling,
            burst_exhausted BurstExhausted,
            disk_saturated DiskSaturated,
            uninterruptible_pileup UninterruptiblePileup,
        }
    };
}
pub(crate) use each_cause;

macro_rules! named {
    ($($slug:ident $variant:ident,)*) => {
        /// A cause that holdup knows. The order is that in which a request meets the resource.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "the definition in each cause's folder says what it is")]
        pub enum Cause {
            $($variant,)*
        }

        impl Cause {
            /// Every cause, in order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name in commands, in JSON and in documents: that of its folder.
            #[must_use]
            pub const fn slug(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($slug),)*
                }
            }
        }
    };
}
each_cause!(named);

impl Cause {
    /// `causes` in their order, each once.
    pub(crate) fn distinct(causes: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut all = Vec::new();
        for cause in causes {
            if !all.contains(&cause) {
                all.push(cause);
            }
        }
        all
    }

    /// The names of `causes`, with `between` them.
    #[must_use]
    pub fn join(causes: &[Self], between: &str) -> String {
        causes.iter().map(|cause| cause.slug()).collect::<Vec<_>>().join(between)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.slug())
    }
}

/// A name that no cause has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown cause \"{0}\"")]
pub struct UnknownCause(pub String);

impl FromStr for Cause {
    type Err = UnknownCause;

    fn from_str(slug: &str) -> Result<Self, UnknownCause> {
        Self::ALL.iter().copied().find(|cause| cause.slug() == slug).ok_or_else(|| UnknownCause(slug.to_owned()))
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.slug())
    }
}

impl<'de> Deserialize<'de> for Cause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
