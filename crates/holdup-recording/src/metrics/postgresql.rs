//! Metrics of PostgreSQL. Columns of its statistics views are a family; those with a constant are read by rules.

/// Numeric columns of the statistics views that identify a row and count nothing: no member of the
/// family has their name.
pub const IDENTITIES: [&str; 12] = [
    "datid",
    "pid",
    "leader_pid",
    "current_locker_pid",
    "usesysid",
    "userid",
    "dbid",
    "relid",
    "indexrelid",
    "index_relid",
    "cluster_index_relid",
    "current_child_table_relid",
];

metrics! {
    "postgresql", "PostgreSQL", "postgresql_";

    Gauge SESSIONS: Count = "postgresql_sessions", "Sessions of clients, by the server's `state` and `true_state`";
    Gauge ACTIVITY_SESSIONS: Count = "postgresql_activity_sessions", "Processes of the server, by `state`, `wait_event_type`, `wait_event` and `backend_type`";
    Gauge CONNECTIONS: Count = "postgresql_connections", "Connections of clients";
    Gauge CONNECTIONS_MAX: Count = "postgresql_connections_max", "Connections that ordinary users may have";
    Gauge LOCKS: Count = "postgresql_locks", "Locks, by `kind`, `mode` and whether they are `granted`";
    Gauge OLDEST_XMIN_AGE_TRANSACTIONS: Count = "postgresql_oldest_xmin_age_transactions", "Age in transactions of what keeps dead rows, by `holder` and `name`";
    Gauge OLDEST_TRANSACTION: Seconds = "postgresql_oldest_transaction_seconds", "Age of the oldest transaction";
    Gauge STAT_STATEMENTS_ENTRIES: Count = "postgresql_stat_statements_entries", "Entries of `pg_stat_statements`";
    Counter STAT_STATEMENTS_DEALLOC: Count = "postgresql_stat_statements_dealloc", "Times that `pg_stat_statements` dropped entries for lack of room";
    Gauge REPLICATION_SLOT_RETAINED_BYTES: Bytes = "postgresql_replication_slot_retained_bytes", "Write-ahead log that a `slot` keeps; `active` is 1 while a reader is connected, `wal_status` is the server's word for the log's state, `plugin` and `database` those of a logical slot";
    Gauge REPLICATION_SLOT_UNCONFIRMED_BYTES: Bytes = "postgresql_replication_slot_unconfirmed_bytes", "Of it, the log that the reader of a logical `slot` has not confirmed (confirmed_flush_lsn)";
    Gauge REPLICATION_SLOT_INACTIVE: Seconds = "postgresql_replication_slot_inactive_seconds", "Time for which a `slot` has had no reader, from 17 on";
    Gauge REPLICATION_SLOT_ACTIVE: Count = "postgresql_replication_slot_active", "1 while a `slot` has a reader, 0 while it has none; pasted outputs have it";
    Gauge REPLICATION_SLOT_SAFE_WAL_SIZE: Bytes = "postgresql_replication_slot_safe_wal_size", "Log that may still be written before a `slot` loses what it needs (max_slot_wal_keep_size)";
    Gauge REPLICA_REPLAYED_AGE: Seconds = "postgresql_replica_replayed_age_seconds", "Age of the last transaction that this replica has replayed";
    Gauge REPLICA_REPLAY_LAG_BYTES: Bytes = "postgresql_replica_replay_lag_bytes", "Log that this replica has received and not replayed";
    Gauge STAT_REPLICATION_REPLAY_LAG: Seconds = "postgresql_stat_replication_replay_lag_seconds", "How long the primary's latest log took until a replica (`application_name`) had replayed it";
    Gauge STAT_REPLICATION_SENT_LAG_BYTES: Bytes = "postgresql_stat_replication_sent_lag_bytes", "Log that was not sent to a reader (`application_name`, with its `slot`)";
    Gauge STAT_REPLICATION_FLUSH_LAG_BYTES: Bytes = "postgresql_stat_replication_flush_lag_bytes", "Log that a reader has not flushed";
    Gauge STAT_REPLICATION_REPLAY_LAG_BYTES: Bytes = "postgresql_stat_replication_replay_lag_bytes", "Log that a replica (`application_name`) has not replayed";
    Counter WAL_POSITION_BYTES: Bytes = "postgresql_wal_position_bytes", "Position in the write-ahead log";

    Gauge TABLE_SIZE_BYTES: Bytes = "postgresql_table_size_bytes", "Size of a `table`";
    Gauge TABLE_ROWS: Count = "postgresql_table_rows", "Rows of a `table` by the server's estimate";
    Gauge TABLE_FROZEN_AGE_TRANSACTIONS: Count = "postgresql_table_frozen_age_transactions", "Age in transactions of a table's oldest row that is not frozen";
    Gauge TABLE_MULTIXACT_AGE: Count = "postgresql_table_multixact_age", "Age of a table's oldest multixact";
    Gauge TABLE_INDEXES: Count = "postgresql_table_indexes", "Indexes of a `table`";
    Gauge TABLE_FREE_BYTES: Bytes = "postgresql_table_free_bytes", "Estimated room in a `table` that holds no row, by `estimate`";
    Gauge INDEX_SIZE_BYTES: Bytes = "postgresql_index_size_bytes", "Size of an `index`";
    Counter STAT_INDEXES_IDX_SCAN: Count = "postgresql_stat_indexes_idx_scan", "Scans of an `index`";
    Counter STAT_INDEXES_IDX_TUP_READ: Count = "postgresql_stat_indexes_idx_tup_read", "Entries that scans of an `index` returned";
    Counter STAT_INDEXES_IDX_TUP_FETCH: Count = "postgresql_stat_indexes_idx_tup_fetch", "Live rows that scans of an `index` fetched";
    Counter STAT_TABLES_N_TUP_INS: Count = "postgresql_stat_tables_n_tup_ins", "Rows inserted into a `table`";
    Counter STAT_TABLES_N_TUP_DEL: Count = "postgresql_stat_tables_n_tup_del", "Rows of a `table` deleted";
    Counter STAT_TABLES_N_TUP_UPD: Count = "postgresql_stat_tables_n_tup_upd", "Rows of a `table` updated";
    Counter STAT_TABLES_N_TUP_HOT_UPD: Count = "postgresql_stat_tables_n_tup_hot_upd", "Of them, those that changed no index";
    Gauge STAT_TABLES_N_LIVE_TUP: Count = "postgresql_stat_tables_n_live_tup", "Live rows of a `table` by the server's estimate";
    Gauge TABLE_VACUUMED_AGE: Seconds = "postgresql_table_vacuumed_age_seconds", "Time from the last vacuum of a `table` to the newest one of those that are shown; pasted outputs have it";
    Gauge STAT_TABLES_N_DEAD_TUP: Count = "postgresql_stat_tables_n_dead_tup", "Dead rows of a `table` by the server's estimate";
    Counter STAT_TABLES_SEQ_SCAN: Count = "postgresql_stat_tables_seq_scan", "Sequential scans of a `table`";
    Counter STAT_TABLES_SEQ_TUP_READ: Count = "postgresql_stat_tables_seq_tup_read", "Rows that sequential scans of a `table` read";
    Counter STAT_TABLES_IDX_TUP_FETCH: Count = "postgresql_stat_tables_idx_tup_fetch", "Live rows of a `table` that index scans fetched";
    Counter STATIO_TABLES_HEAP_BLKS_READ: Count = "postgresql_statio_tables_heap_blks_read", "Blocks of a `table` read from outside shared buffers";
    Counter STATIO_TABLES_IDX_BLKS_READ: Count = "postgresql_statio_tables_idx_blks_read", "Blocks of a table's indexes read from outside shared buffers";

    Counter STAT_BGWRITER_BUFFERS_BACKEND: Count = "postgresql_stat_bgwriter_buffers_backend", "Blocks that sessions wrote themselves (until 16)";
    Counter STAT_BGWRITER_BUFFERS_CHECKPOINT: Count = "postgresql_stat_bgwriter_buffers_checkpoint", "Blocks that checkpoints wrote (until 16)";
    Counter STAT_BGWRITER_BUFFERS_CLEAN: Count = "postgresql_stat_bgwriter_buffers_clean", "Blocks that the background writer wrote";
    Counter STAT_BGWRITER_CHECKPOINTS_REQ: Count = "postgresql_stat_bgwriter_checkpoints_req", "Checkpoints that were requested (until 16)";
    Counter STAT_BGWRITER_CHECKPOINTS_TIMED: Count = "postgresql_stat_bgwriter_checkpoints_timed", "Checkpoints that were due by time (until 16)";
    Counter STAT_CHECKPOINTER_BUFFERS_WRITTEN: Count = "postgresql_stat_checkpointer_buffers_written", "Blocks that checkpoints wrote (since 17)";
    Counter STAT_CHECKPOINTER_NUM_REQUESTED: Count = "postgresql_stat_checkpointer_num_requested", "Checkpoints that were requested (since 17)";
    Counter STAT_CHECKPOINTER_NUM_TIMED: Count = "postgresql_stat_checkpointer_num_timed", "Checkpoints that were due by time (since 17)";
    Counter STAT_DATABASE_BLKS_HIT: Count = "postgresql_stat_database_blks_hit", "Blocks found in shared buffers, by `database`";
    Counter STAT_DATABASE_BLKS_READ: Count = "postgresql_stat_database_blks_read", "Blocks read from outside shared buffers, by `database`";
    Counter STAT_DATABASE_DEADLOCKS: Count = "postgresql_stat_database_deadlocks", "Deadlocks, by `database`";
    Counter STAT_DATABASE_IDLE_IN_TRANSACTION_TIME: Milliseconds = "postgresql_stat_database_idle_in_transaction_time", "Time that sessions stood inside a transaction without a statement, by `database` (PostgreSQL 14 or later)";
    Counter STAT_DATABASE_SESSIONS: Count = "postgresql_stat_database_sessions", "Sessions established, by `database` (PostgreSQL 14 or later)";
    Counter STAT_DATABASE_TEMP_BYTES: Bytes = "postgresql_stat_database_temp_bytes", "Bytes written to temporary files, by `database`";
    Counter STAT_DATABASE_TUP_DELETED: Count = "postgresql_stat_database_tup_deleted", "Rows deleted, by `database`";
    Counter STAT_DATABASE_TUP_FETCHED: Count = "postgresql_stat_database_tup_fetched", "Rows that index scans fetched, by `database`";
    Counter STAT_DATABASE_TUP_INSERTED: Count = "postgresql_stat_database_tup_inserted", "Rows inserted, by `database`";
    Counter STAT_DATABASE_TUP_RETURNED: Count = "postgresql_stat_database_tup_returned", "Rows and index entries that scans returned, by `database`";
    Counter STAT_DATABASE_TUP_UPDATED: Count = "postgresql_stat_database_tup_updated", "Rows updated, by `database`";
    Counter STAT_DATABASE_XACT_COMMIT: Count = "postgresql_stat_database_xact_commit", "Transactions committed, by `database`";
    Counter STAT_DATABASE_XACT_ROLLBACK: Count = "postgresql_stat_database_xact_rollback", "Transactions rolled back, by `database`";
    Counter STAT_IO_READS: Count = "postgresql_stat_io_reads", "Reads (since 16)";
    Counter STAT_IO_WRITES: Count = "postgresql_stat_io_writes", "Writes (since 16)";
    Counter STAT_IO_EXTENDS: Count = "postgresql_stat_io_extends", "Extensions of files (since 16)";
    Counter STAT_IO_READ_BYTES: Bytes = "postgresql_stat_io_read_bytes", "Bytes read (since 18)";
    Counter STAT_IO_WRITE_BYTES: Bytes = "postgresql_stat_io_write_bytes", "Bytes written (since 18)";
    Counter STAT_IO_EXTEND_BYTES: Bytes = "postgresql_stat_io_extend_bytes", "Bytes by which files were extended (since 18)";
    Counter STAT_WAL_WAL_BYTES: Bytes = "postgresql_stat_wal_wal_bytes", "Write-ahead log generated";
    Counter STAT_WAL_WAL_SYNC: Count = "postgresql_stat_wal_wal_sync", "Syncs of the write-ahead log (14 to 17)";
    Counter STAT_WAL_WAL_WRITE: Count = "postgresql_stat_wal_wal_write", "Writes of the write-ahead log (14 to 17)";
    Gauge PROGRESS_BASEBACKUP_BACKUP_STREAMED: Bytes = "postgresql_progress_basebackup_backup_streamed", "Bytes that a running base backup has sent";
    Gauge PROGRESS_COPY_BYTES_PROCESSED: Bytes = "postgresql_progress_copy_bytes_processed", "Bytes that a running COPY has processed";
    Gauge PROGRESS_VACUUM_HEAP_BLKS_TOTAL: Count = "postgresql_progress_vacuum_heap_blks_total", "Blocks of the table that a running vacuum works on";
    Gauge PROGRESS_VACUUM_HEAP_BLKS_SCANNED: Count = "postgresql_progress_vacuum_heap_blks_scanned", "Blocks that a running vacuum has scanned";
    Gauge PROGRESS_VACUUM_HEAP_BLKS_VACUUMED: Count = "postgresql_progress_vacuum_heap_blks_vacuumed", "Blocks that a running vacuum has vacuumed";

    @family STAT_TABLES: "count, or milliseconds" = "postgresql_stat_tables_", "Columns of `pg_stat_all_tables` by `database` and `table`";
    @family STATIO_TABLES: "count" = "postgresql_statio_tables_", "Columns of `pg_statio_all_tables` by `database` and `table`";
    @family STAT_IO: "count, bytes or milliseconds" = "postgresql_stat_io_", "Columns of `pg_stat_io` by `backend_type`, `object` and `context`";
    @family VIEWS: "as PostgreSQL's manual says of the column" = "postgresql_", "All other numeric columns of the views that are read, as VIEW_COLUMN without the view's `pg_`";
}
