//! Metrics of Elasticsearch and OpenSearch, by `_nodes/stats` and `_cluster/health`. `node` is a node's
//! own name, with its id where several have it.

metrics! {
    "elasticsearch", "Elasticsearch and OpenSearch", "elasticsearch_";

    Counter OPERATIONS: Count = "elasticsearch_operations_total", "Work done on shards by `node` and `operation`: indexing (documents), query, fetch, merge, refresh, flush";
    Counter OPERATION_TIME: Seconds = "elasticsearch_operation_time_seconds_total", "Time that this work took, by `node` and `operation`: of all threads, so more than a second in a second";
    Gauge OPERATIONS_ACTIVE: Count = "elasticsearch_operations_active", "Indexing, query, fetch and merge under way, by `node` and `operation`";
    Counter INDEXING_FAILED: Count = "elasticsearch_indexing_failed_total", "Documents that could not be indexed, by `node`";
    Counter INDEXING_THROTTLED_TIME: Seconds = "elasticsearch_indexing_throttled_time_seconds_total", "Time for which a shard indexed with one thread, because merges were behind, by `node`";
    Counter MERGE_THROTTLED_TIME: Seconds = "elasticsearch_merge_throttled_time_seconds_total", "Time for which merges slept to keep their limit of bytes a second, by `node`";
    Gauge POOL_SIZE: Count = "elasticsearch_pool_size", "Most threads of a thread `pool`, by `node`";
    Gauge POOL_THREADS: Count = "elasticsearch_pool_threads", "Threads of a thread `pool` so far, by `node`";
    Gauge POOL_ACTIVE: Count = "elasticsearch_pool_active", "Of them, those at work";
    Gauge POOL_QUEUE: Count = "elasticsearch_pool_queue", "Tasks that wait for a thread of a `pool`, by `node`";
    Gauge POOL_QUEUE_LIMIT: Count = "elasticsearch_pool_queue_limit", "Most tasks that may wait there; further ones are rejected";
    Counter POOL_COMPLETED: Count = "elasticsearch_pool_completed_total", "Tasks that a `pool` has done, by `node`";
    Counter POOL_REJECTED: Count = "elasticsearch_pool_rejected_total", "Tasks that a `pool` rejected, by `node`: its queue was full";
    Counter POOL_WAIT_TIME: Seconds = "elasticsearch_pool_wait_time_seconds_total", "Time that tasks waited in the queue of a `pool`, by `node`; OpenSearch counts it for searches";
    Gauge INDEXING_PRESSURE_BYTES: Bytes = "elasticsearch_indexing_pressure_bytes", "Memory of the writes that a `node` has in flight";
    Gauge INDEXING_PRESSURE_LIMIT_BYTES: Bytes = "elasticsearch_indexing_pressure_limit_bytes", "Limit of that memory; a `node` rejects writes beyond it";
    Counter INDEXING_PRESSURE_REJECTIONS: Count = "elasticsearch_indexing_pressure_rejections_total", "Writes rejected by this limit, by `node` and `stage`: coordinating, primary, replica";
    Gauge BREAKER_BYTES: Bytes = "elasticsearch_breaker_bytes", "Memory that a circuit `breaker` counts, by `node`";
    Gauge BREAKER_LIMIT_BYTES: Bytes = "elasticsearch_breaker_limit_bytes", "Limit at which it refuses requests";
    Counter BREAKER_TRIPS: Count = "elasticsearch_breaker_trips_total", "Requests that a circuit `breaker` refused, by `node`";
    Gauge HEAP_USED_BYTES: Bytes = "elasticsearch_heap_used_bytes", "Heap in use, by `node`";
    Gauge HEAP_MAX_BYTES: Bytes = "elasticsearch_heap_max_bytes", "Largest heap, by `node`";
    Counter COLLECTIONS: Count = "elasticsearch_collections_total", "Garbage collections by `node` and `collector`";
    Counter COLLECTION_TIME: Seconds = "elasticsearch_collection_time_seconds_total", "Time that they took, by `node` and `collector`";
    Gauge UPTIME: Seconds = "elasticsearch_uptime_seconds", "Time since a `node` started";
    Gauge DISK_SIZE_BYTES: Bytes = "elasticsearch_disk_size_bytes", "Size of the file systems with data, by `node`";
    Gauge DISK_AVAILABLE_BYTES: Bytes = "elasticsearch_disk_available_bytes", "Of it, what the `node` may still use";
    Counter DISK_READS: Count = "elasticsearch_disk_reads_total", "Reads of the disks with data, by any process, by `node`; on Linux";
    Counter DISK_WRITES: Count = "elasticsearch_disk_writes_total", "Writes of these disks, by `node`";
    Counter DISK_READ_BYTES: Bytes = "elasticsearch_disk_read_bytes_total", "Bytes read from these disks, by `node`";
    Counter DISK_WRITTEN_BYTES: Bytes = "elasticsearch_disk_written_bytes_total", "Bytes written to these disks, by `node`";
    Counter DISK_BUSY_TIME: Seconds = "elasticsearch_disk_busy_time_seconds_total", "Time for which these disks had a request in flight, by `node`";
    Gauge NODES: Count = "elasticsearch_nodes", "Nodes of the cluster";
    Gauge STATUS: Count = "elasticsearch_status", "The cluster's state: 0 green, 1 yellow (copies are missing), 2 red (data is missing)";
    Gauge UNASSIGNED_SHARDS: Count = "elasticsearch_unassigned_shards", "Shards and copies that no node has";
    Gauge INITIALIZING_SHARDS: Count = "elasticsearch_initializing_shards", "Shards and copies that are being made";
    Gauge RELOCATING_SHARDS: Count = "elasticsearch_relocating_shards", "Shards that move to another node";
    Gauge PENDING_TASKS: Count = "elasticsearch_pending_tasks", "Changes of the cluster that wait for its elected node";
    Gauge PENDING_TASK_AGE: Seconds = "elasticsearch_pending_task_age_seconds", "Age of the oldest of them";
}
