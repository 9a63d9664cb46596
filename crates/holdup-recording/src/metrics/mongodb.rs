//! Metrics of MongoDB, from the live source and from pasted outputs of its shells. Figures of
//! `serverStatus` are a family; those that a judge needs first have a constant.

metrics! {
    "mongodb", "MongoDB", "mongodb_";

    Gauge SESSIONS: Count = "mongodb_sessions", "Operations of `currentOp` by `command` and `true_state` (queued, lock_wait, executing, idle)";
    Gauge ACTIVE_OPERATIONS: Count = "mongodb_active_operations", "Operations in progress by what they wait for (`wait`: lock, latch, ticket, flow_control, none)";
    Counter OPERATIONS: Count = "mongodb_operations_total", "Operations completed, by `kind` (reads, writes, commands, transactions)";
    Counter OPERATION_TIME: Seconds = "mongodb_operation_time_seconds_total", "Time that completed operations took, summed up, by `kind`";
    Gauge MEMORY_RESIDENT_BYTES: Bytes = "mongodb_memory_resident_bytes", "Resident memory of the server";
    Gauge UPTIME: Seconds = "mongodb_uptime_seconds", "Time since the server started";
    Gauge DATABASE_DATA_BYTES: Bytes = "mongodb_database_data_bytes", "Documents of a `database`, uncompressed";
    Gauge DATABASE_STORAGE_BYTES: Bytes = "mongodb_database_storage_bytes", "Files of a `database` with documents";
    Gauge DATABASE_INDEX_BYTES: Bytes = "mongodb_database_index_bytes", "Indexes of a `database`";
    Gauge DATABASE_OBJECTS: Count = "mongodb_database_objects", "Documents of a `database`";

    Counter COLLECTION_OPERATIONS: Count = "mongodb_collection_operations_total", "Operations on a `collection` of a `database`, by `kind` (reads, writes), as `top` counts them";
    Counter COLLECTION_TIME: Seconds = "mongodb_collection_time_seconds_total", "Time of those operations, waits for locks and disk included";
    Gauge COLLECTION_DATA_BYTES: Bytes = "mongodb_collection_data_bytes", "Documents of a `collection` of a `database`, uncompressed";
    Gauge COLLECTION_STORAGE_BYTES: Bytes = "mongodb_collection_storage_bytes", "Its file with documents";
    Gauge COLLECTION_FREE_BYTES: Bytes = "mongodb_collection_free_bytes", "Space in that file that new documents may take";
    Gauge COLLECTION_INDEX_BYTES: Bytes = "mongodb_collection_index_bytes", "All its indexes";
    Gauge COLLECTION_OBJECTS: Count = "mongodb_collection_objects", "Its documents";
    Gauge COLLECTION_CACHE_BYTES: Bytes = "mongodb_collection_cache_bytes", "Bytes of it in the storage engine's cache";
    Counter COLLECTION_CACHE_READ_BYTES: Bytes = "mongodb_collection_cache_read_bytes_total", "Bytes of it read into that cache";
    Gauge INDEX_BYTES: Bytes = "mongodb_index_bytes", "Size of an `index` of a `collection`";
    Counter INDEX_USES: Count = "mongodb_index_uses_total", "Operations that used an `index` since the server started or the index was made";
    Gauge INDEX_BUILDS: Count = "mongodb_index_builds", "Index builds in progress, by `collection` and `phase` (scan, insert, drain, other) as `currentOp` shows them; 0 without labels in each sample";
    Gauge INDEX_BUILD_PROGRESS_RATIO: Ratio = "mongodb_index_build_progress_ratio", "How much of its phase an index build has done, by `collection` and `phase`";
    Gauge REPLICA_OPTIME: Seconds = "mongodb_replica_optime_seconds", "Time of the last operation that a `member` (in `state`) of the replica set has reached, by `stage` (written, applied, durable, committed), since 1970";
    Gauge REPLICA_HEALTH: Boolean = "mongodb_replica_health", "Whether this server reaches a `member` of the replica set";

    Gauge SERVER_STATUS_CONNECTIONS_CURRENT: Count = "mongodb_server_status_connections_current", "Open connections";
    Gauge SERVER_STATUS_CONNECTIONS_AVAILABLE: Count = "mongodb_server_status_connections_available", "Connections that the server would still accept";
    Counter SERVER_STATUS_CONNECTIONS_REJECTED: Count = "mongodb_server_status_connections_rejected", "Connections that the server refused because it had as many as it accepts (6.3 and later)";
    Gauge SERVER_STATUS_CONNECTIONS_ACTIVE: Count = "mongodb_server_status_connections_active", "Connections with an operation in progress";
    Counter SERVER_STATUS_CONNECTIONS_TOTAL_CREATED: Count = "mongodb_server_status_connections_total_created", "Connections that clients opened";
    Gauge SERVER_STATUS_GLOBAL_LOCK_CURRENT_QUEUE_READERS: Count = "mongodb_server_status_global_lock_current_queue_readers", "Operations that wait to read";
    Gauge SERVER_STATUS_GLOBAL_LOCK_CURRENT_QUEUE_WRITERS: Count = "mongodb_server_status_global_lock_current_queue_writers", "Operations that wait to write";
    Gauge SERVER_STATUS_GLOBAL_LOCK_ACTIVE_CLIENTS_READERS: Count = "mongodb_server_status_global_lock_active_clients_readers", "Clients that read";
    Gauge SERVER_STATUS_GLOBAL_LOCK_ACTIVE_CLIENTS_WRITERS: Count = "mongodb_server_status_global_lock_active_clients_writers", "Clients that write";
    Gauge SERVER_STATUS_WIRED_TIGER_CONCURRENT_TRANSACTIONS_READ_OUT: Count = "mongodb_server_status_wired_tiger_concurrent_transactions_read_out", "Read tickets in use";
    Gauge SERVER_STATUS_WIRED_TIGER_CONCURRENT_TRANSACTIONS_READ_AVAILABLE: Count = "mongodb_server_status_wired_tiger_concurrent_transactions_read_available", "Read tickets left";
    Gauge SERVER_STATUS_WIRED_TIGER_CONCURRENT_TRANSACTIONS_WRITE_OUT: Count = "mongodb_server_status_wired_tiger_concurrent_transactions_write_out", "Write tickets in use";
    Gauge SERVER_STATUS_WIRED_TIGER_CONCURRENT_TRANSACTIONS_WRITE_AVAILABLE: Count = "mongodb_server_status_wired_tiger_concurrent_transactions_write_available", "Write tickets left";
    Gauge SERVER_STATUS_WIRED_TIGER_CACHE_BYTES_CURRENTLY_IN_THE_CACHE: Bytes = "mongodb_server_status_wired_tiger_cache_bytes_currently_in_the_cache", "Bytes in the storage engine's cache";
    Gauge SERVER_STATUS_WIRED_TIGER_CACHE_MAXIMUM_BYTES_CONFIGURED: Bytes = "mongodb_server_status_wired_tiger_cache_maximum_bytes_configured", "Size of that cache";
    Gauge SERVER_STATUS_WIRED_TIGER_CACHE_TRACKED_DIRTY_BYTES_IN_THE_CACHE: Bytes = "mongodb_server_status_wired_tiger_cache_tracked_dirty_bytes_in_the_cache", "Changed bytes in it that are not on disk yet";
    Counter SERVER_STATUS_WIRED_TIGER_CACHE_PAGES_READ_INTO_CACHE: Pages = "mongodb_server_status_wired_tiger_cache_pages_read_into_cache", "Pages read into that cache";
    Counter SERVER_STATUS_WIRED_TIGER_BLOCK_MANAGER_BLOCKS_READ: Count = "mongodb_server_status_wired_tiger_block_manager_blocks_read", "Reads that the storage engine asked of files";
    Counter SERVER_STATUS_WIRED_TIGER_BLOCK_MANAGER_BYTES_READ: Bytes = "mongodb_server_status_wired_tiger_block_manager_bytes_read", "Bytes of these reads";
    Counter SERVER_STATUS_WIRED_TIGER_CACHE_BYTES_READ_INTO_CACHE: Bytes = "mongodb_server_status_wired_tiger_cache_bytes_read_into_cache", "Bytes read into that cache, uncompressed";
    Counter SERVER_STATUS_WIRED_TIGER_CACHE_APPLICATION_THREADS_PAGE_READ_FROM_DISK_TO_CACHE_TIME_USECS: Count = "mongodb_server_status_wired_tiger_cache_application_threads_page_read_from_disk_to_cache_time_usecs", "Microseconds for which operations read pages";
    Counter SERVER_STATUS_WIRED_TIGER_CACHE_APPLICATION_THREADS_PAGE_WRITE_FROM_CACHE_TO_DISK_TIME_USECS: Count = "mongodb_server_status_wired_tiger_cache_application_threads_page_write_from_cache_to_disk_time_usecs", "Microseconds for which operations wrote pages";
    Counter SERVER_STATUS_WIRED_TIGER_THREAD_YIELD_APPLICATION_THREAD_TIME_EVICTING_USECS: Count = "mongodb_server_status_wired_tiger_thread_yield_application_thread_time_evicting_usecs", "Microseconds for which operations evicted pages to make room in that cache";
    Counter SERVER_STATUS_WIRED_TIGER_THREAD_YIELD_APPLICATION_THREAD_TIME_WAITING_FOR_CACHE_USECS: Count = "mongodb_server_status_wired_tiger_thread_yield_application_thread_time_waiting_for_cache_usecs", "Microseconds for which operations waited for room in that cache, their evictions included";
    Counter SERVER_STATUS_WIRED_TIGER_CACHE_PAGES_EVICTED_BY_APPLICATION_THREADS: Pages = "mongodb_server_status_wired_tiger_cache_pages_evicted_by_application_threads", "Pages that operations had to evict themselves";
    Gauge SERVER_STATUS_WIRED_TIGER_TRANSACTION_TRANSACTION_CHECKPOINT_MOST_RECENT_TIME_MSECS: Milliseconds = "mongodb_server_status_wired_tiger_transaction_transaction_checkpoint_most_recent_time_msecs", "Time of the last checkpoint";
    Counter SERVER_STATUS_WIRED_TIGER_TRANSACTION_TRANSACTION_CHECKPOINT_TOTAL_TIME_MSECS: Milliseconds = "mongodb_server_status_wired_tiger_transaction_transaction_checkpoint_total_time_msecs", "Time of all checkpoints that have ended";
    Gauge SERVER_STATUS_WIRED_TIGER_TRANSACTION_TRANSACTION_CHECKPOINT_CURRENTLY_RUNNING: Count = "mongodb_server_status_wired_tiger_transaction_transaction_checkpoint_currently_running", "0 while no checkpoint runs (8.0 and later: the number of its step)";
    Counter SERVER_STATUS_EXTRA_INFO_PAGE_FAULTS: Count = "mongodb_server_status_extra_info_page_faults", "Page faults of the server that had to read from a disk";
    Counter SERVER_STATUS_OPCOUNTERS_INSERT: Count = "mongodb_server_status_opcounters_insert", "Inserts received";
    Counter SERVER_STATUS_OPCOUNTERS_QUERY: Count = "mongodb_server_status_opcounters_query", "Queries received";
    Counter SERVER_STATUS_OPCOUNTERS_UPDATE: Count = "mongodb_server_status_opcounters_update", "Updates received";
    Counter SERVER_STATUS_OPCOUNTERS_DELETE: Count = "mongodb_server_status_opcounters_delete", "Deletes received";
    Counter SERVER_STATUS_OPCOUNTERS_GETMORE: Count = "mongodb_server_status_opcounters_getmore", "Requests for more of a result";
    Counter SERVER_STATUS_OPCOUNTERS_COMMAND: Count = "mongodb_server_status_opcounters_command", "Other commands received";
    Counter SERVER_STATUS_FLOW_CONTROL_TIME_ACQUIRING_MICROS: Count = "mongodb_server_status_flow_control_time_acquiring_micros", "Microseconds that writes waited because the secondaries lagged";
    Counter SERVER_STATUS_METRICS_QUERY_EXECUTOR_SCANNED: Count = "mongodb_server_status_metrics_query_executor_scanned", "Index entries scanned";
    Counter SERVER_STATUS_METRICS_QUERY_EXECUTOR_SCANNED_OBJECTS: Count = "mongodb_server_status_metrics_query_executor_scanned_objects", "Documents scanned";
    Counter SERVER_STATUS_METRICS_QUERY_EXECUTOR_COLLECTION_SCANS: Count = "mongodb_server_status_metrics_query_executor_collection_scans_total", "Queries that read a whole collection (4.4 and later)";
    Counter SERVER_STATUS_METRICS_DOCUMENT_RETURNED: Count = "mongodb_server_status_metrics_document_returned", "Documents returned";
    Counter SERVER_STATUS_METRICS_DOCUMENT_UPDATED: Count = "mongodb_server_status_metrics_document_updated", "Documents updated";
    Counter SERVER_STATUS_METRICS_DOCUMENT_DELETED: Count = "mongodb_server_status_metrics_document_deleted", "Documents deleted";
    Counter SERVER_STATUS_METRICS_GET_LAST_ERROR_WTIME_TOTAL_MILLIS: Count = "mongodb_server_status_metrics_get_last_error_wtime_total_millis", "Milliseconds for which writes waited until as many members had them as they asked for";
    Counter SERVER_STATUS_METRICS_OPERATION_WRITE_CONFLICTS: Count = "mongodb_server_status_metrics_operation_write_conflicts", "Writes that met another write on the same document and were made again";
    Counter SERVER_STATUS_INDEX_BUILDS: Count = "mongodb_server_status_index_builds_total", "Index builds that began (7.0 and later)";
    Counter SERVER_STATUS_INDEX_BUILDS_PHASES_COMMIT: Count = "mongodb_server_status_index_builds_phases_commit", "Index builds that reached their commit (7.0 and later)";
    Counter SERVER_STATUS_NETWORK_BYTES_IN: Bytes = "mongodb_server_status_network_bytes_in", "Bytes received from clients";
    Counter SERVER_STATUS_NETWORK_BYTES_OUT: Bytes = "mongodb_server_status_network_bytes_out", "Bytes sent to clients";

    @family SERVER_STATUS: "as MongoDB's manual says of the field" = "mongodb_server_status_", "Every other number of `serverStatus`: its path in lower case";
}
