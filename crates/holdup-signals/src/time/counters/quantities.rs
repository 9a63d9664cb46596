//! What causes are judged by: sums and ratios of signals, each under one name.

use crate::time::counters::effect::Quantity;
use crate::time::counters::signal::Signal::*;

/// Idle CPU time.
pub const IDLE: Quantity = Quantity::sum("idle share of the CPU", &[CpuIdle]);
/// CPU time in use.
pub const BUSY: Quantity = Quantity::sum("busy share of the CPU", &[CpuUser, CpuSystem]);
/// CPU time of the server.
pub const SERVER_CPU: Quantity = Quantity::sum("CPU time of the server", &[ServerCpu]);
/// The server's share of the machine's CPU time.
pub const SERVER_SHARE: Quantity =
    Quantity::per("server's share of the CPU time in use", &[ServerCpu], &[CpuUser, CpuSystem]);
/// The server's CPU time per transaction.
pub const CPU_PER_COMMIT: Quantity = Quantity::per("CPU time of the server a commit", &[ServerCpu], &[Commits]);
/// Threads that want a CPU.
pub const RUN_QUEUE: Quantity = Quantity::sum("threads that want a CPU", &[RunQueue]);
/// Waits for a disk.
pub const IOWAIT: Quantity = Quantity::sum("share of the CPU waiting for a disk", &[CpuIowait]);
/// Waits for a disk as a share of unused CPU time: a process that takes the CPU does not hide them.
pub const IOWAIT_OF_UNUSED: Quantity =
    Quantity::per("share of the unused CPU time that waits for a disk", &[CpuIowait], &[CpuIowait, CpuIdle]);
/// Bytes written to disks.
pub const DISK_WRITES: Quantity = Quantity::sum("bytes written to disks", &[DiskWriteBytes]);
/// Bytes written to disks per byte that the server wrote.
pub const DISK_BEYOND_SERVER: Quantity =
    Quantity::per("bytes written to disks for a byte that the server wrote", &[DiskWriteBytes], &[ServerWriteBytes]);
/// Bytes the server wrote.
pub const SERVER_WRITES: Quantity = Quantity::sum("bytes that the server wrote", &[ServerWriteBytes]);
/// Bytes from clients.
pub const RECEIVED: Quantity = Quantity::sum("bytes from clients", &[NetReceivedBytes]);
/// Bytes to clients.
pub const SENT: Quantity = Quantity::sum("bytes to clients", &[NetSentBytes]);
/// Bytes to clients per transaction.
pub const SENT_PER_COMMIT: Quantity = Quantity::per("bytes to clients a commit", &[NetSentBytes], &[Commits]);
/// Open files.
pub const FILES: Quantity = Quantity::sum("open file handles", &[FileHandles]);

/// Sessions that are connected.
pub const CONNECTED: Quantity = Quantity::sum("sessions connected", &[SessionsConnected]);
/// Sessions that execute something.
pub const RUNNING: Quantity = Quantity::sum("sessions running", &[SessionsRunning]);
/// Running sessions that do not wait for a row lock.
pub const WORKING: Quantity =
    Quantity::less("sessions running that don't wait for row locks", &[SessionsRunning], &[LockWaiting]);
/// Connected sessions that do nothing.
pub const IDLE_SESSIONS: Quantity =
    Quantity::less("sessions that do nothing", &[SessionsConnected], &[SessionsRunning]);
/// Waiters for row locks.
pub const WAITING: Quantity = Quantity::sum("sessions waiting for row locks", &[LockWaiting]);
/// The share of running sessions that wait for row locks.
pub const WAITING_OF_RUNNING: Quantity =
    Quantity::per("share of the running sessions that wait for row locks", &[LockWaiting], &[SessionsRunning]);

/// Transactions.
pub const COMMITS: Quantity = Quantity::sum("commits", &[Commits]);
/// Little's law: sessions in the server over its throughput.
pub const TIME_IN_SYSTEM: Quantity =
    Quantity::per("time in the system (sessions running over commits)", &[SessionsRunning], &[Commits]);
/// Rows changed.
pub const CHANGED: Quantity = Quantity::sum("rows changed", &[RowsChanged]);
/// Rows inserted.
pub const INSERTED: Quantity = Quantity::sum("rows inserted", &[RowsInserted]).in_bursts();
/// Rows changed per transaction.
pub const CHANGED_PER_COMMIT: Quantity = Quantity::per("rows changed a commit", &[RowsChanged], &[Commits]);
/// Rows read by scanning tables or walking indexes.
pub const SCANNED: Quantity = Quantity::sum("rows scanned", &[RowsScanned, RowsNext]).in_bursts();
/// The same per transaction.
pub const SCANNED_PER_COMMIT: Quantity =
    Quantity::per("rows scanned a commit", &[RowsScanned, RowsNext], &[Commits]).in_bursts();
/// Rows found by key per transaction.
pub const KEYED_PER_COMMIT: Quantity = Quantity::per("rows read by key a commit", &[RowsKeyed], &[Commits]);

/// Bytes of log.
pub const LOG: Quantity = Quantity::sum("bytes of log", &[LogBytes]);
/// Bytes of log per changed row: the cost of one change.
pub const LOG_PER_CHANGE: Quantity = Quantity::per("bytes of log a changed row", &[LogBytes], &[RowsChanged]);
/// Bytes of log per transaction.
pub const LOG_PER_COMMIT: Quantity = Quantity::per("bytes of log a commit", &[LogBytes], &[Commits]);
/// Pages written.
pub const PAGES: Quantity = Quantity::sum("pages written", &[PagesWritten]);
/// Pages written per changed row.
pub const PAGES_PER_CHANGE: Quantity = Quantity::per("pages written a changed row", &[PagesWritten], &[RowsChanged]);
/// Pages requested from the pool per changed row.
pub const REQUESTS_PER_CHANGE: Quantity =
    Quantity::per("pages asked for a changed row", &[PoolRequests], &[RowsChanged]);
/// Pages written per transaction: what continues when transactions stop.
pub const PAGES_PER_COMMIT: Quantity = Quantity::per("pages written a commit", &[PagesWritten], &[Commits]);
/// Pages requested from the buffer pool.
pub const REQUESTS: Quantity = Quantity::sum("pages asked of the buffer pool", &[PoolRequests]);
/// Pages requested from the buffer pool per transaction.
pub const REQUESTS_PER_COMMIT: Quantity =
    Quantity::per("pages asked of the buffer pool a commit", &[PoolRequests], &[Commits]);
/// Transactions per page requested from the buffer pool: the more, the less a transaction touches.
pub const COMMITS_PER_REQUEST: Quantity =
    Quantity::per("commits for a page asked of the buffer pool", &[Commits], &[PoolRequests]);
/// The share of requested pages that had to be read.
pub const MISS_RATIO: Quantity =
    Quantity::per("share of the pages asked for that had to be read", &[PoolMisses], &[PoolRequests]);
/// Bytes read from files.
pub const SERVER_READS: Quantity = Quantity::sum("bytes that the server read", &[ServerReadBytes]);
/// Bytes read from files per page that the pool missed: readahead.
pub const READ_AHEAD: Quantity =
    Quantity::per("bytes that the server read for a page the pool missed", &[ServerReadBytes], &[PoolMisses]);
/// The setting.
pub const POOL: Quantity = Quantity::sum("size of the buffer pool", &[PoolBytes]);

/// Context switches per transaction.
pub const SWITCHES_PER_COMMIT: Quantity = Quantity::per("context switches a commit", &[ContextSwitches], &[Commits]);
/// Bytes from clients per transaction.
pub const RECEIVED_PER_COMMIT: Quantity = Quantity::per("bytes from clients a commit", &[NetReceivedBytes], &[Commits]);
/// Bytes from clients per byte to them: rows sent in bulk get a short answer.
pub const PER_SENT: Quantity =
    Quantity::per("bytes from clients for a byte to them", &[NetReceivedBytes], &[NetSentBytes]);
/// Rows inserted per transaction.
pub const INSERTED_PER_COMMIT: Quantity = Quantity::per("rows inserted a commit", &[RowsInserted], &[Commits]);
/// CPU time in the kernel.
pub const KERNEL: Quantity = Quantity::sum("share of the CPU in the kernel", &[CpuSystem]);
/// Disk writes per page that the server wrote.
pub const DISK_OPERATIONS_BEYOND_SERVER: Quantity =
    Quantity::per("disk writes for a page that the server wrote", &[DiskWrites], &[PagesWritten]);
/// Disk writes.
pub const DISK_OPERATIONS: Quantity = Quantity::sum("disk writes", &[DiskWrites]);
/// CPU time of the machine per transaction: stands for the server's if that is unknown.
pub const BUSY_PER_COMMIT: Quantity = Quantity::per("CPU time in use a commit", &[CpuUser, CpuSystem], &[Commits]);

/// All of them, to look up the metric behind a figure.
pub const ALL: &[Quantity] = &[
    IDLE,
    BUSY,
    SERVER_CPU,
    SERVER_SHARE,
    CPU_PER_COMMIT,
    RUN_QUEUE,
    IOWAIT,
    IOWAIT_OF_UNUSED,
    DISK_WRITES,
    DISK_BEYOND_SERVER,
    SERVER_WRITES,
    RECEIVED,
    SENT,
    SENT_PER_COMMIT,
    FILES,
    CONNECTED,
    RUNNING,
    WAITING,
    WAITING_OF_RUNNING,
    COMMITS,
    TIME_IN_SYSTEM,
    CHANGED,
    INSERTED,
    CHANGED_PER_COMMIT,
    SCANNED,
    SCANNED_PER_COMMIT,
    KEYED_PER_COMMIT,
    LOG,
    LOG_PER_CHANGE,
    LOG_PER_COMMIT,
    PAGES,
    PAGES_PER_CHANGE,
    REQUESTS_PER_CHANGE,
    PAGES_PER_COMMIT,
    REQUESTS,
    REQUESTS_PER_COMMIT,
    COMMITS_PER_REQUEST,
    MISS_RATIO,
    SERVER_READS,
    READ_AHEAD,
    POOL,
    SWITCHES_PER_COMMIT,
    RECEIVED_PER_COMMIT,
    PER_SENT,
    INSERTED_PER_COMMIT,
    KERNEL,
    DISK_OPERATIONS_BEYOND_SERVER,
    DISK_OPERATIONS,
    WORKING,
    IDLE_SESSIONS,
    BUSY_PER_COMMIT,
];
