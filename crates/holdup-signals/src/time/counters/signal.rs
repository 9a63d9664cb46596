//! The vocabulary of counters: one name for each counter of a host or a database, whatever a
//! collector calls it, with its unit and its family of telemetry. Callers read and map files.

/// Signals that are lost together when one source of telemetry is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// The operating system: CPU, disk, network, memory, run queue.
    Host,
    /// How many sessions there are and what they do.
    Sessions,
    /// Row locks counted by the server.
    Locks,
    /// Executed work: transactions, statements, rows, handler calls.
    Statements,
    /// The storage engine's work: log, pages, buffer pool.
    Storage,
    /// What clients saw.
    Latency,
    /// The server's configuration, and the size of its data.
    Settings,
}

impl Family {
    /// Every family, in the order in which they are reported.
    pub const ALL: [Self; 7] =
        [Self::Host, Self::Sessions, Self::Locks, Self::Statements, Self::Storage, Self::Latency, Self::Settings];

    /// The word for it on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Sessions => "sessions",
            Self::Locks => "locks",
            Self::Statements => "statements",
            Self::Storage => "storage",
            Self::Latency => "latency",
            Self::Settings => "settings",
        }
    }
}

/// How a signal's values lie in time, which decides how they are summed and which values are
/// impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A share of capacity, 0-1.
    Ratio,
    /// Events or bytes a second, from a counter.
    Rate,
    /// A level at an instant.
    Level,
    /// A configured value.
    Setting,
}

macro_rules! signals {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $family:ident, $kind:ident, $nothing:literal;)+) => {
        /// One thing that is counted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Signal { $($(#[doc = $doc])+ $variant,)+ }

        impl Signal {
            /// Every signal, in the order of their families.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in verdicts and files; the unit is its last word.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Its family of telemetry.
            #[must_use]
            pub const fn family(self) -> Family {
                match self { $(Self::$variant => Family::$family,)+ }
            }

            /// An amount of it that counts as none, in its own unit.
            #[must_use]
            pub const fn nothing(self) -> f64 {
                match self { $(Self::$variant => $nothing,)+ }
            }

            /// How its values lie in time.
            #[must_use]
            pub const fn kind(self) -> Kind {
                match self { $(Self::$variant => Kind::$kind,)+ }
            }
        }
    };
}

// The last number is the negligible amount: the noise of an idle machine, or of the collector
// itself.
signals! {
    /// Share of the machine's CPU time in user mode.
    CpuUser = "cpu_user_ratio", Host, Ratio, 0.001;
    /// Share of the machine's CPU time in the kernel, interrupts included.
    CpuSystem = "cpu_system_ratio", Host, Ratio, 0.001;
    /// Share of the machine's CPU time that was idle, without waits for disks.
    CpuIdle = "cpu_idle_ratio", Host, Ratio, 0.001;
    /// Share of the machine's CPU time that was idle while a disk was busy with its I/O.
    CpuIowait = "cpu_iowait_ratio", Host, Ratio, 0.001;
    /// Threads that want a CPU.
    RunQueue = "run_queue_threads", Host, Level, 1.0;
    /// Threads in uninterruptible sleep.
    BlockedThreads = "blocked_threads", Host, Level, 1.0;
    /// Context switches.
    ContextSwitches = "context_switches_per_s", Host, Rate, 200.0;
    /// CPU time of the database server, in any unit that stays the same in one frame.
    ServerCpu = "server_cpu_per_s", Host, Rate, 0.5;
    /// Bytes read from disks.
    DiskReadBytes = "disk_read_bytes_per_s", Host, Rate, 100_000.0;
    /// Bytes written to disks.
    DiskWriteBytes = "disk_write_bytes_per_s", Host, Rate, 100_000.0;
    /// Reads that disks completed.
    DiskReads = "disk_reads_per_s", Host, Rate, 5.0;
    /// Writes that disks completed.
    DiskWrites = "disk_writes_per_s", Host, Rate, 5.0;
    /// Share of the time in which the disk was busy.
    DiskUtilization = "disk_utilization_ratio", Host, Ratio, 0.02;
    /// Bytes that came in from the network.
    NetReceivedBytes = "net_received_bytes_per_s", Host, Rate, 10_000.0;
    /// Bytes that went out to the network.
    NetSentBytes = "net_sent_bytes_per_s", Host, Rate, 10_000.0;
    /// Page faults served without a read.
    MinorFaults = "minor_faults_per_s", Host, Rate, 500.0;
    /// Open file handles of the machine.
    FileHandles = "file_handles", Host, Level, 10.0;
    /// Reads in flight at a disk.
    DiskReadsInFlight = "disk_reads_in_flight", Host, Level, 0.1;
    /// Writes in flight at a disk.
    DiskWritesInFlight = "disk_writes_in_flight", Host, Level, 0.1;
    /// Inactive memory of programs that belongs to no file; a server's shared memory counts once it
    /// was touched.
    AnonymousMemory = "anonymous_memory_bytes", Host, Level, 16_777_216.0;
    /// Share of a filesystem that is used.
    FilesystemUsed = "filesystem_used_ratio", Host, Ratio, 0.001;

    /// Sessions that are connected.
    SessionsConnected = "sessions_connected", Sessions, Level, 1.0;
    /// Sessions that execute something.
    SessionsRunning = "sessions_running", Sessions, Level, 1.0;
    /// Open connections of the host, including its own and those of its monitoring.
    TcpConnections = "tcp_connections", Sessions, Level, 1.0;
    /// Connections that clients opened.
    ConnectionsOpened = "connections_opened_per_s", Sessions, Rate, 0.5;

    /// Sessions waiting for a row lock.
    LockWaiting = "lock_waiting_sessions", Locks, Level, 1.0;
    /// Waits for row locks that began.
    LockWaits = "lock_waits_per_s", Locks, Rate, 1.0;
    /// Mean time of a wait for a row lock, or the time waited per second: only its change matters.
    LockWaitTime = "lock_wait_time_s", Locks, Level, 0.01;

    /// Transactions that were committed.
    Commits = "commits_per_s", Statements, Rate, 1.0;
    /// Transactions that were rolled back.
    Rollbacks = "rollbacks_per_s", Statements, Rate, 1.0;
    /// Rows that were inserted.
    RowsInserted = "rows_inserted_per_s", Statements, Rate, 10.0;
    /// Rows that were inserted, updated or deleted.
    RowsChanged = "rows_changed_per_s", Statements, Rate, 10.0;
    /// Rows that were updated.
    RowsUpdated = "rows_updated_per_s", Statements, Rate, 10.0;
    /// Rows that were deleted.
    RowsDeleted = "rows_deleted_per_s", Statements, Rate, 10.0;
    /// Rows that were read by walking over tables.
    RowsScanned = "rows_scanned_per_s", Statements, Rate, 500.0;
    /// Rows that were read by walking along indexes.
    RowsNext = "rows_read_next_per_s", Statements, Rate, 100.0;
    /// Rows that were read by key.
    RowsKeyed = "rows_read_by_key_per_s", Statements, Rate, 100.0;

    /// Bytes written to the transaction log.
    LogBytes = "log_bytes_per_s", Storage, Rate, 10_000.0;
    /// Writes to the transaction log.
    LogWrites = "log_writes_per_s", Storage, Rate, 1.0;
    /// Syncs of the transaction log.
    LogSyncs = "log_syncs_per_s", Storage, Rate, 1.0;
    /// Pages that the server wrote.
    PagesWritten = "pages_written_per_s", Storage, Rate, 5.0;
    /// Bytes that the server wrote, log and doubled writes included.
    ServerWriteBytes = "server_write_bytes_per_s", Storage, Rate, 100_000.0;
    /// Bytes that the server read from files.
    ServerReadBytes = "server_read_bytes_per_s", Storage, Rate, 100_000.0;
    /// Reads that the server requested from its files.
    ServerReads = "server_reads_per_s", Storage, Rate, 5.0;
    /// Pages requested from the buffer pool.
    PoolRequests = "pool_requests_per_s", Storage, Rate, 500.0;
    /// Pages that the buffer pool did not hold.
    PoolMisses = "pool_misses_per_s", Storage, Rate, 5.0;
    /// Pages changed in the buffer pool and not yet written.
    DirtyPages = "dirty_pages", Storage, Level, 100.0;
    /// Bytes of sorts and hashes that did not fit in memory.
    TempBytes = "temp_bytes_per_s", Storage, Rate, 10_000.0;
    /// Rows that were deleted or replaced and await vacuum.
    DeadRows = "dead_rows", Storage, Level, 1000.0;

    /// Mean time of a request as clients saw it; 0 if none ended.
    Latency = "latency_s", Latency, Level, 0.001;

    /// Size of the buffer pool.
    PoolBytes = "pool_bytes", Settings, Setting, 1.0;
    /// Data stored by the server, indexes included.
    DataBytes = "data_bytes", Settings, Setting, 1.0;
}
