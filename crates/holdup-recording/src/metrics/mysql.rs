//! Metrics of MariaDB and MySQL. Status variables are a family; those with a constant are read by
//! rules.

metrics! {
    "mysql", "MariaDB and MySQL", "mysql_";

    Gauge SESSIONS: Count = "mysql_sessions", "Sessions by `command` and `true_state` (queued, lock_wait, executing, idle)";
    Gauge REPLICA_LAG: Seconds = "mysql_replica_lag_seconds", "How far a replica is behind, by its own account";
    Gauge REPLICA_IO_RUNNING: Boolean = "mysql_replica_io_running", "Whether the replica receives";
    Gauge REPLICA_SQL_RUNNING: Boolean = "mysql_replica_sql_running", "Whether the replica applies what it received";
    Gauge INNODB_HISTORY_LIST_LENGTH: Count = "mysql_innodb_history_list_length", "Undo logs that are not purged yet";
    Gauge INNODB_CHECKPOINT_AGE_BYTES: Bytes = "mysql_innodb_checkpoint_age_bytes", "Redo log written since the last checkpoint";
    Gauge INNODB_LOG_CAPACITY_BYTES: Bytes = "mysql_innodb_log_capacity_bytes", "Size of the redo log";
    Gauge STATEMENT_TIMER_ERROR: Seconds = "mysql_statement_timer_error_seconds", "Uncertainty of the server's clock against ours";
    Gauge STATEMENT_HISTORY_OVERRUN: Boolean = "mysql_statement_history_overrun", "Whether statements left the history before they were read";
    Gauge STATEMENT_HISTORY_READ_RATIO: Ratio = "mysql_statement_history_read_ratio", "Share of the statements in the history that is read";

    Gauge THREAD_POOL_THREADS: Count = "mysql_thread_pool_threads", "Threads of the pool";
    Gauge THREAD_POOL_IDLE_THREADS: Count = "mysql_thread_pool_idle_threads", "Of them, idle ones";
    Gauge THREAD_POOL_QUEUE_LENGTH: Count = "mysql_thread_pool_queue_length", "Requests in the queues of all groups";
    Gauge THREAD_POOL_QUEUED_CONNECTIONS: Count = "mysql_thread_pool_queued_connections", "Connections in a queue";
    Gauge THREAD_POOL_QUEUED_UNKNOWN_CONNECTIONS: Count = "mysql_thread_pool_queued_unknown_connections", "Of them, those whose number the server does not show";
    Gauge THREAD_POOL_QUEUEING_TIME_MAX: Seconds = "mysql_thread_pool_queueing_time_seconds_max", "Longest wait in a queue so far";
    Counter THREAD_POOL_WAITS: Count = "mysql_thread_pool_waits_total", "Waits of the pool's threads, by `reason`";
    Counter THREAD_POOL_THREAD_CREATIONS: Count = "mysql_thread_pool_thread_creations_total", "Threads started";
    Counter THREAD_POOL_THREAD_CREATIONS_DUE_TO_STALL: Count = "mysql_thread_pool_thread_creations_due_to_stall_total", "Threads started because a group stalled";
    Counter THREAD_POOL_WAKES: Count = "mysql_thread_pool_wakes_total", "Standby threads woken";
    Counter THREAD_POOL_WAKES_DUE_TO_STALL: Count = "mysql_thread_pool_wakes_due_to_stall_total", "Standby threads woken because a group stalled";
    Counter THREAD_POOL_THROTTLES: Count = "mysql_thread_pool_throttles_total", "Starts of threads that were put off";
    Counter THREAD_POOL_STALLS: Count = "mysql_thread_pool_stalls_total", "Stalls of groups";
    Counter THREAD_POOL_POLLS_BY_LISTENER: Count = "mysql_thread_pool_polls_by_listener_total", "Polls for requests by listeners";
    Counter THREAD_POOL_POLLS_BY_WORKER: Count = "mysql_thread_pool_polls_by_worker_total", "Polls for requests by workers";
    Counter THREAD_POOL_DEQUEUES_BY_LISTENER: Count = "mysql_thread_pool_dequeues_by_listener_total", "Requests taken from a queue by listeners";
    Counter THREAD_POOL_DEQUEUES_BY_WORKER: Count = "mysql_thread_pool_dequeues_by_worker_total", "Requests taken from a queue by workers";
    Gauge THREAD_POOL_GROUP_CONNECTIONS: Count = "mysql_thread_pool_group_connections", "Connections of a `group`";
    Gauge THREAD_POOL_GROUP_THREADS: Count = "mysql_thread_pool_group_threads", "Threads of a `group`";
    Gauge THREAD_POOL_GROUP_ACTIVE_THREADS: Count = "mysql_thread_pool_group_active_threads", "Threads of a `group` with a request";
    Gauge THREAD_POOL_GROUP_STANDBY_THREADS: Count = "mysql_thread_pool_group_standby_threads", "Threads of a `group` on standby";
    Gauge THREAD_POOL_GROUP_QUEUE_LENGTH: Count = "mysql_thread_pool_group_queue_length", "Requests in the queue of a `group`";
    Gauge THREAD_POOL_GROUP_STALLED: Boolean = "mysql_thread_pool_group_stalled", "Whether a `group` has stalled";

    Counter GLOBAL_STATUS_ABORTED_CONNECTS: Count = "mysql_global_status_aborted_connects", "Attempts to connect that failed";
    Counter GLOBAL_STATUS_BINLOG_COMMITS: Count = "mysql_global_status_binlog_commits", "Transactions committed to the binary log (MariaDB)";
    Counter GLOBAL_STATUS_BINLOG_GROUP_COMMITS: Count = "mysql_global_status_binlog_group_commits", "Groups in which they were committed (MariaDB)";
    Counter GLOBAL_STATUS_COM_COMMIT: Count = "mysql_global_status_com_commit", "COMMIT statements";
    Counter GLOBAL_STATUS_COM_DELETE: Count = "mysql_global_status_com_delete", "DELETE statements";
    Counter GLOBAL_STATUS_COM_INSERT: Count = "mysql_global_status_com_insert", "INSERT statements";
    Counter GLOBAL_STATUS_COM_REPLACE: Count = "mysql_global_status_com_replace", "REPLACE statements";
    Counter GLOBAL_STATUS_COM_ROLLBACK: Count = "mysql_global_status_com_rollback", "ROLLBACK statements";
    Counter GLOBAL_STATUS_COM_UPDATE: Count = "mysql_global_status_com_update", "UPDATE statements";
    Counter GLOBAL_STATUS_CONNECTION_ERRORS_MAX_CONNECTIONS: Count = "mysql_global_status_connection_errors_max_connections", "Connections refused by `max_connections`";
    Counter GLOBAL_STATUS_CONNECTIONS: Count = "mysql_global_status_connections", "Attempts to connect";
    Counter GLOBAL_STATUS_CREATED_TMP_DISK_TABLES: Count = "mysql_global_status_created_tmp_disk_tables", "Temporary tables that statements wrote to disk";
    Counter GLOBAL_STATUS_CREATED_TMP_TABLES: Count = "mysql_global_status_created_tmp_tables", "Temporary tables of statements";
    Counter GLOBAL_STATUS_HANDLER_COMMIT: Count = "mysql_global_status_handler_commit", "Commits inside storage engines";
    Counter GLOBAL_STATUS_HANDLER_DELETE: Count = "mysql_global_status_handler_delete", "Rows deleted";
    Counter GLOBAL_STATUS_HANDLER_READ_KEY: Count = "mysql_global_status_handler_read_key", "Reads of a row by a key";
    Counter GLOBAL_STATUS_HANDLER_READ_NEXT: Count = "mysql_global_status_handler_read_next", "Reads of the next row of an index";
    Counter GLOBAL_STATUS_HANDLER_READ_RND_NEXT: Count = "mysql_global_status_handler_read_rnd_next", "Reads of the next row of a table";
    Counter GLOBAL_STATUS_HANDLER_TMP_WRITE: Count = "mysql_global_status_handler_tmp_write", "Rows written to temporary tables (MariaDB)";
    Counter GLOBAL_STATUS_HANDLER_UPDATE: Count = "mysql_global_status_handler_update", "Rows updated";
    Counter GLOBAL_STATUS_HANDLER_WRITE: Count = "mysql_global_status_handler_write", "Rows inserted";
    Gauge GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_DIRTY: Pages = "mysql_global_status_innodb_buffer_pool_pages_dirty", "Changed pages in the buffer pool";
    Counter GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_FLUSHED: Pages = "mysql_global_status_innodb_buffer_pool_pages_flushed", "Pages written from the buffer pool";
    Gauge GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_FREE: Pages = "mysql_global_status_innodb_buffer_pool_pages_free", "Free pages in the buffer pool";
    Gauge GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_TOTAL: Pages = "mysql_global_status_innodb_buffer_pool_pages_total", "Pages of the buffer pool";
    Counter GLOBAL_STATUS_INNODB_BUFFER_POOL_READ_REQUESTS: Count = "mysql_global_status_innodb_buffer_pool_read_requests", "Reads of a page, from the pool or from disk";
    Counter GLOBAL_STATUS_INNODB_BUFFER_POOL_READS: Count = "mysql_global_status_innodb_buffer_pool_reads", "Of them, those from disk";
    Counter GLOBAL_STATUS_INNODB_BUFFER_POOL_WAIT_FREE: Count = "mysql_global_status_innodb_buffer_pool_wait_free", "Waits for a free page";
    Gauge GLOBAL_STATUS_INNODB_CHECKPOINT_AGE: Bytes = "mysql_global_status_innodb_checkpoint_age", "Redo log written since the last checkpoint (MariaDB)";
    Gauge GLOBAL_STATUS_INNODB_CHECKPOINT_MAX_AGE: Bytes = "mysql_global_status_innodb_checkpoint_max_age", "Largest age of a checkpoint that the redo log allows (MariaDB)";
    Counter GLOBAL_STATUS_INNODB_DATA_READ: Bytes = "mysql_global_status_innodb_data_read", "Bytes read from files";
    Counter GLOBAL_STATUS_INNODB_DATA_READS: Count = "mysql_global_status_innodb_data_reads", "Reads of files";
    Counter GLOBAL_STATUS_INNODB_DATA_WRITTEN: Bytes = "mysql_global_status_innodb_data_written", "Bytes written to files";
    Counter GLOBAL_STATUS_INNODB_LOG_WRITES: Count = "mysql_global_status_innodb_log_writes", "Writes of the redo log";
    Counter GLOBAL_STATUS_INNODB_LSN_CURRENT: Bytes = "mysql_global_status_innodb_lsn_current", "Position in the redo log";
    Counter GLOBAL_STATUS_INNODB_OS_LOG_FSYNCS: Count = "mysql_global_status_innodb_os_log_fsyncs", "Syncs of the redo log";
    Counter GLOBAL_STATUS_INNODB_OS_LOG_WRITTEN: Bytes = "mysql_global_status_innodb_os_log_written", "Bytes written to the redo log";
    Counter GLOBAL_STATUS_INNODB_PAGES_WRITTEN: Pages = "mysql_global_status_innodb_pages_written", "Pages written";
    Gauge GLOBAL_STATUS_INNODB_ROW_LOCK_CURRENT_WAITS: Count = "mysql_global_status_innodb_row_lock_current_waits", "Row locks waited for now";
    Counter GLOBAL_STATUS_INNODB_ROW_LOCK_TIME: Milliseconds = "mysql_global_status_innodb_row_lock_time", "Time waited for row locks";
    Counter GLOBAL_STATUS_INNODB_ROW_LOCK_WAITS: Count = "mysql_global_status_innodb_row_lock_waits", "Waits for row locks";
    Counter GLOBAL_STATUS_INNODB_ROWS_DELETED: Count = "mysql_global_status_innodb_rows_deleted", "Rows deleted from InnoDB's tables";
    Counter GLOBAL_STATUS_INNODB_DEADLOCKS: Count = "mysql_global_status_innodb_deadlocks", "Deadlocks of transactions (MariaDB and Percona Server)";
    Counter GLOBAL_STATUS_INNODB_ROWS_INSERTED: Count = "mysql_global_status_innodb_rows_inserted", "Rows inserted into InnoDB's tables";
    Counter GLOBAL_STATUS_INNODB_ROWS_UPDATED: Count = "mysql_global_status_innodb_rows_updated", "Rows updated in InnoDB's tables";
    Gauge GLOBAL_STATUS_OPEN_TABLE_DEFINITIONS: Count = "mysql_global_status_open_table_definitions", "Table definitions that are cached";
    Gauge GLOBAL_STATUS_OPEN_TABLES: Count = "mysql_global_status_open_tables", "Tables that are open";
    Counter GLOBAL_STATUS_OPENED_TABLES: Count = "mysql_global_status_opened_tables", "Tables opened";
    Counter GLOBAL_STATUS_QUESTIONS: Count = "mysql_global_status_questions", "Statements that clients sent";
    Counter GLOBAL_STATUS_TABLE_OPEN_CACHE_HITS: Count = "mysql_global_status_table_open_cache_hits", "Tables found open";
    Counter GLOBAL_STATUS_TABLE_OPEN_CACHE_MISSES: Count = "mysql_global_status_table_open_cache_misses", "Tables not found open";
    Counter GLOBAL_STATUS_TABLE_OPEN_CACHE_OVERFLOWS: Count = "mysql_global_status_table_open_cache_overflows", "Tables opened while the cache was full";
    Gauge GLOBAL_STATUS_THREADS_CONNECTED: Count = "mysql_global_status_threads_connected", "Open connections";
    Gauge GLOBAL_STATUS_THREADS_RUNNING: Count = "mysql_global_status_threads_running", "Connections that are not idle";
    Gauge GLOBAL_STATUS_UPTIME: Seconds = "mysql_global_status_uptime", "Time since the server started";

    @family GLOBAL_STATUS: "as the server's manual says of the variable" = "mysql_global_status_", "Every numeric variable of SHOW GLOBAL STATUS, in lower case";
}
