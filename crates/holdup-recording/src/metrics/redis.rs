//! Metrics of Redis and Valkey, by `INFO`. Its fields are a family; those that
//! a judge needs first have a constant.

metrics! {
    "redis", "Redis and Valkey", "redis_";

    Counter COMMAND_CALLS: Count = "redis_command_calls_total", "Calls by `command`";
    Counter COMMAND_TIME: Seconds = "redis_command_time_seconds_total", "CPU time of calls, by `command`";
    Gauge KEYS: Count = "redis_keys", "Keys by `database`";
    Gauge KEYS_EXPIRING: Count = "redis_keys_expiring", "Of them, those with an expiry";
    Counter ERRORS: Count = "redis_errors_total", "Errors that the server answered, by `error`, its first word";
    Gauge LATEST_FORK: Seconds = "redis_latest_fork_seconds", "Time for which the latest fork stopped the server";
    Gauge REPLICA_LAG: Seconds = "redis_replica_lag_seconds", "Time since a `replica` last acknowledged";

    Gauge INFO_CONNECTED_CLIENTS: Count = "redis_info_connected_clients", "Open connections of clients";
    Gauge INFO_BLOCKED_CLIENTS: Count = "redis_info_blocked_clients", "Clients in a blocking call";
    Gauge INFO_USED_MEMORY: Bytes = "redis_info_used_memory", "Memory that the server allocated";
    Gauge INFO_USED_MEMORY_RSS: Bytes = "redis_info_used_memory_rss", "Resident memory";
    Gauge INFO_MAXMEMORY: Bytes = "redis_info_maxmemory", "Limit of memory; 0 for none";
    Counter INFO_EVICTED_KEYS: Count = "redis_info_evicted_keys", "Keys evicted for lack of memory";
    Counter INFO_KEYSPACE_HITS: Count = "redis_info_keyspace_hits", "Look-ups that found a key";
    Counter INFO_KEYSPACE_MISSES: Count = "redis_info_keyspace_misses", "Look-ups that found no key";
    Counter INFO_REJECTED_CONNECTIONS: Count = "redis_info_rejected_connections", "Connections refused by `maxclients`";
    Counter INFO_TOTAL_COMMANDS_PROCESSED: Count = "redis_info_total_commands_processed", "Commands processed";
    Counter INFO_USED_CPU_SYS: Seconds = "redis_info_used_cpu_sys", "CPU time in the kernel";
    Counter INFO_USED_CPU_USER: Seconds = "redis_info_used_cpu_user", "CPU time outside of it";
    Gauge INFO_UPTIME_IN: Seconds = "redis_info_uptime_in_seconds", "Time since the server started";
    Counter INFO_AOF_DELAYED_FSYNC: Count = "redis_info_aof_delayed_fsync", "Syncs of the append-only file that waited for the one before";

    Counter INFO_TOTAL_FORKS: Count = "redis_info_total_forks", "Forks: for a snapshot, a rewrite of the append-only file, a replica";
    Counter INFO_CLIENT_OUTPUT_BUFFER_LIMIT_DISCONNECTIONS: Count = "redis_info_client_output_buffer_limit_disconnections", "Clients disconnected because their answers were not read";

    @family INFO: "as the field's name ends; memory in bytes" = "redis_info_", "Every other number of `INFO`: the field's name";
}
