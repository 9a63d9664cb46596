//! What causes are judged by: sums and ratios of signals, each under one name.

use holdup_signals::time::counters::effect::Quantity;
use holdup_signals::time::counters::signal::Signal::*;

/// Declares each quantity, and all of them as `ALL`.
macro_rules! quantities {
    ($($(#[$doc:meta])* $name:ident = $make:ident($($part:expr),+ $(,)?) $($bursts:ident)?;)*) => {
        $($(#[$doc])* pub const $name: Quantity = Quantity::$make($($part),+)$(.$bursts())?;)*

        /// All of them, to look up the metric behind a figure.
        pub const ALL: &[Quantity] = &[$($name),*];
    };
}

quantities! {
    /// Idle CPU time.
    IDLE = sum("idle share of the CPU", &[CpuIdle]);
    /// CPU time in use.
    BUSY = sum("busy share of the CPU", &[CpuUser, CpuSystem]);
    /// CPU time of the server.
    SERVER_CPU = sum("CPU time of the server", &[ServerCpu]);
    /// The server's share of the machine's CPU time.
    SERVER_SHARE = per("server's share of the CPU time in use", &[ServerCpu], &[CpuUser, CpuSystem]);
    /// The server's CPU time per transaction.
    CPU_PER_COMMIT = per("CPU time of the server a commit", &[ServerCpu], &[Commits]);
    /// Threads that want a CPU.
    RUN_QUEUE = sum("threads that want a CPU", &[RunQueue]);
    /// Waits for a disk.
    IOWAIT = sum("share of the CPU waiting for a disk", &[CpuIowait]);
    /// Waits for a disk as a share of unused CPU time: a process that takes the CPU does not hide them.
    IOWAIT_OF_UNUSED = per("share of the unused CPU time that waits for a disk", &[CpuIowait], &[CpuIowait, CpuIdle]);
    /// Bytes written to disks.
    DISK_WRITES = sum("bytes written to disks", &[DiskWriteBytes]);
    /// Bytes written to disks per byte that the server wrote.
    DISK_BEYOND_SERVER =
        per("bytes written to disks for a byte that the server wrote", &[DiskWriteBytes], &[ServerWriteBytes]);
    /// Bytes the server wrote.
    SERVER_WRITES = sum("bytes that the server wrote", &[ServerWriteBytes]);
    /// Bytes from clients.
    RECEIVED = sum("bytes from clients", &[NetReceivedBytes]);
    /// Bytes to clients.
    SENT = sum("bytes to clients", &[NetSentBytes]);
    /// Bytes to clients per transaction.
    SENT_PER_COMMIT = per("bytes to clients a commit", &[NetSentBytes], &[Commits]);
    /// Open files.
    FILES = sum("open file handles", &[FileHandles]);

    /// Sessions that are connected.
    CONNECTED = sum("sessions connected", &[SessionsConnected]);
    /// Sessions that execute something.
    RUNNING = sum("sessions running", &[SessionsRunning]);
    /// Running sessions that do not wait for a row lock.
    WORKING = less("sessions running that don't wait for row locks", &[SessionsRunning], &[LockWaiting]);
    /// Connected sessions that do nothing.
    IDLE_SESSIONS = less("sessions that do nothing", &[SessionsConnected], &[SessionsRunning]);
    /// Waiters for row locks.
    WAITING = sum("sessions waiting for row locks", &[LockWaiting]);
    /// The share of running sessions that wait for row locks.
    WAITING_OF_RUNNING =
        per("share of the running sessions that wait for row locks", &[LockWaiting], &[SessionsRunning]);

    /// Transactions.
    COMMITS = sum("commits", &[Commits]);
    /// Little's law: sessions in the server over its throughput.
    TIME_IN_SYSTEM = per("time in the system (sessions running over commits)", &[SessionsRunning], &[Commits]);
    /// Rows changed.
    CHANGED = sum("rows changed", &[RowsChanged]);
    /// Rows inserted.
    INSERTED = sum("rows inserted", &[RowsInserted]) in_bursts;
    /// Rows changed per transaction.
    CHANGED_PER_COMMIT = per("rows changed a commit", &[RowsChanged], &[Commits]);
    /// Rows read by scanning tables or walking indexes.
    SCANNED = sum("rows scanned", &[RowsScanned, RowsNext]) in_bursts;
    /// The same per transaction.
    SCANNED_PER_COMMIT = per("rows scanned a commit", &[RowsScanned, RowsNext], &[Commits]) in_bursts;
    /// Rows found by key per transaction.
    KEYED_PER_COMMIT = per("rows read by key a commit", &[RowsKeyed], &[Commits]);

    /// Bytes of log.
    LOG = sum("bytes of log", &[LogBytes]);
    /// Bytes of log per changed row: the cost of one change.
    LOG_PER_CHANGE = per("bytes of log a changed row", &[LogBytes], &[RowsChanged]);
    /// Bytes of log per transaction.
    LOG_PER_COMMIT = per("bytes of log a commit", &[LogBytes], &[Commits]);
    /// Pages written.
    PAGES = sum("pages written", &[PagesWritten]);
    /// Pages written per changed row.
    PAGES_PER_CHANGE = per("pages written a changed row", &[PagesWritten], &[RowsChanged]);
    /// Pages requested from the pool per changed row.
    REQUESTS_PER_CHANGE = per("pages asked for a changed row", &[PoolRequests], &[RowsChanged]);
    /// Pages written per transaction: what continues when transactions stop.
    PAGES_PER_COMMIT = per("pages written a commit", &[PagesWritten], &[Commits]);
    /// Pages requested from the buffer pool.
    REQUESTS = sum("pages asked of the buffer pool", &[PoolRequests]);
    /// Pages requested from the buffer pool per transaction.
    REQUESTS_PER_COMMIT = per("pages asked of the buffer pool a commit", &[PoolRequests], &[Commits]);
    /// Transactions per page requested from the buffer pool: the more, the less a transaction touches.
    COMMITS_PER_REQUEST = per("commits for a page asked of the buffer pool", &[Commits], &[PoolRequests]);
    /// The share of requested pages that had to be read.
    MISS_RATIO = per("share of the pages asked for that had to be read", &[PoolMisses], &[PoolRequests]);
    /// Bytes read from files.
    SERVER_READS = sum("bytes that the server read", &[ServerReadBytes]);
    /// Bytes read from files per page that the pool missed: readahead.
    READ_AHEAD = per("bytes that the server read for a page the pool missed", &[ServerReadBytes], &[PoolMisses]);
    /// The setting.
    POOL = sum("size of the buffer pool", &[PoolBytes]);

    /// Context switches per transaction.
    SWITCHES_PER_COMMIT = per("context switches a commit", &[ContextSwitches], &[Commits]);
    /// Bytes from clients per transaction.
    RECEIVED_PER_COMMIT = per("bytes from clients a commit", &[NetReceivedBytes], &[Commits]);
    /// Bytes from clients per byte to them: rows sent in bulk get a short answer.
    PER_SENT = per("bytes from clients for a byte to them", &[NetReceivedBytes], &[NetSentBytes]);
    /// Rows inserted per transaction.
    INSERTED_PER_COMMIT = per("rows inserted a commit", &[RowsInserted], &[Commits]);
    /// CPU time in the kernel.
    KERNEL = sum("share of the CPU in the kernel", &[CpuSystem]);
    /// Disk writes per page that the server wrote.
    DISK_OPERATIONS_BEYOND_SERVER = per("disk writes for a page that the server wrote", &[DiskWrites], &[PagesWritten]);
    /// Disk writes.
    DISK_OPERATIONS = sum("disk writes", &[DiskWrites]);
    /// CPU time of the machine per transaction: stands for the server's if that is unknown.
    BUSY_PER_COMMIT = per("CPU time in use a commit", &[CpuUser, CpuSystem], &[Commits]);
}
