//! Recordings in which a rule finds something, with random measurements: one for every rule, or
//! kind of server, whose fixes move a setting.

mod locks;

use crate::cause::Cause;
use holdup_recording::Labels;
use holdup_recording::rows::{Event, Session};

use super::Random;
use crate::testing::SyntheticRecording;
use holdup_signals::app::accounts::testing as accounts;
use locks::{mysql_locks, postgresql_locks};

/// A recording in the making.
pub(super) struct Base {
    pub name: &'static str,
    pub rule: Cause,
    /// The database's source.
    pub source: &'static str,
    /// The source of what a limit is on.
    pub service: &'static str,
    /// Whether some of its commands move a setting.
    pub moves: bool,
    pub make: fn(&mut Random) -> SyntheticRecording,
}

const MYSQL: &str = "mysql://db";
const POSTGRESQL: &str = "postgresql://db";
const APP: &str = "prometheus:http://app";
const FAULT: &str = "folio_wait_bit_common < filemap_fault < __do_fault < exc_page_fault";
const READ: &str = "io_schedule < __iomap_dio_rw < vfs_read";
const READ_LABELS: [(&str, &str); 2] = [("device", "vda"), ("direction", "read")];

const fn base(
    name: &'static str,
    rule: Cause,
    source: &'static str,
    make: fn(&mut Random) -> SyntheticRecording,
) -> Base {
    Base { name, rule, source, service: "pid:7", moves: true, make }
}

pub(super) const BASES: &[Base] = &[
    base("thread_pool_queue", Cause::ThreadPoolQueue, accounts_source(), thread_pool),
    base("connection_limit", Cause::ConnectionLimit, MYSQL, mysql_connections),
    base("connection_limit of a user", Cause::ConnectionLimit, MYSQL, user_connections),
    base("connection_limit, PostgreSQL", Cause::ConnectionLimit, POSTGRESQL, postgresql_connections),
    Base { moves: false, ..base("connection_pool_exhausted", Cause::ConnectionPoolExhausted, MYSQL, pool) },
    Base { service: "server:8080", ..base("worker_pool_exhausted", Cause::WorkerPoolExhausted, POSTGRESQL, workers) },
    base("table_cache_small", Cause::TableCacheSmall, MYSQL, table_cache),
    Base { moves: false, ..base("on_disk_temporary_tables", Cause::OnDiskTemporaryTables, MYSQL, tables) },
    base("commit_log_bound", Cause::CommitLogBound, MYSQL, commits),
    base("commit_log_bound, PostgreSQL", Cause::CommitLogBound, POSTGRESQL, postgresql_commits),
    base("flush_storm", Cause::FlushStorm, MYSQL, storm),
    base("flush_storm, PostgreSQL", Cause::FlushStorm, POSTGRESQL, checkpoints),
    base("cpu_throttled", Cause::CpuThrottled, MYSQL, throttled),
    base("out_of_memory_kill", Cause::OutOfMemoryKill, MYSQL, killed),
    base("autovacuum_pressure", Cause::AutovacuumPressure, POSTGRESQL, vacuum),
    base("memory_pressure", Cause::MemoryPressure, MYSQL, reclaim),
    base("working_set_exceeds_memory", Cause::WorkingSetExceedsMemory, MYSQL, page_cache),
    base("working_set of InnoDB", Cause::WorkingSetExceedsMemory, MYSQL, buffer_pool),
    base("readahead_too_large", Cause::ReadaheadTooLarge, MYSQL, readahead),
    Base { moves: false, ..base("atime_updates", Cause::AtimeUpdates, MYSQL, atime) },
    Base { service: "server:8080", ..base("accept_queue_overflow", Cause::AcceptQueueOverflow, MYSQL, accept_queue) },
    base("network_bandwidth", Cause::NetworkBandwidth, MYSQL, shaped),
    base("iops_ceiling", Cause::IopsCeiling, MYSQL, cgroup_iops),
    base("file_descriptor_limit", Cause::FileDescriptorLimit, MYSQL, files),
    base("lock_contention", Cause::LockContention, MYSQL, mysql_locks),
    base("lock_contention, PostgreSQL", Cause::LockContention, POSTGRESQL, postgresql_locks),
    base("liveness_probe_kill", Cause::LivenessProbeKill, MYSQL, probe),
];

/// Where the accounts' recordings have their database.
const fn accounts_source() -> &'static str {
    "mysql://db:3306"
}

fn thread_pool(random: &mut Random) -> SyntheticRecording {
    let queue = accounts::Injected { admission: random.scaled(100.0, 400.0), ..accounts::NONE };
    accounts::made(queue, accounts::ALL)
}

/// Every second request fails.
fn failing() -> SyntheticRecording {
    SyntheticRecording::new(12)
        .requests(50, 20)
        .each_request(|n, r| r.outcome = if n % 2 == 0 { "ok" } else { "http_status" }.into())
}

fn mysql_connections(random: &mut Random) -> SyntheticRecording {
    let most = random.scaled(10.0, 200_000.0).round();
    failing()
        .gauge(MYSQL, "mysql_global_status_threads_connected", &[], most)
        .counter(MYSQL, "mysql_global_status_connection_errors_max_connections", &[], random.scaled(5.0, 500.0))
        .setting(MYSQL, "max_connections", &most.to_string())
}

fn user_connections(random: &mut Random) -> SyntheticRecording {
    let most = random.below(9) as i64 + 1;
    let sessions = (0..=12 * most).map(|i| Session {
        observed_at: i / most * 1_000_000_000,
        source: MYSQL.into(),
        session_id: i % most,
        user: Some("shop".into()),
        true_state: "executing".into(),
        ..Default::default()
    });
    failing()
        .session_rows(sessions.collect())
        .gauge(MYSQL, "mysql_global_status_threads_connected", &[], most as f64)
        .counter(MYSQL, "mysql_global_status_connection_errors_max_connections", &[], 0.0)
        .setting(MYSQL, "max_connections", "1000")
        .setting(MYSQL, "max_user_connections", &most.to_string())
}

fn postgresql_connections(random: &mut Random) -> SyntheticRecording {
    let most = random.scaled(10.0, 150_000.0).round();
    let made = failing()
        .gauge(POSTGRESQL, "postgresql_sessions", &[("true_state", "idle")], most)
        .setting(POSTGRESQL, "max_connections", &(most + 3.0).to_string())
        .setting(POSTGRESQL, "superuser_reserved_connections", "3");
    // A database or a role has a lower limit of its own at times.
    if random.one_in(3) {
        let less = (most / random.scaled(1.0, 100.0)).round();
        return made.gauge(POSTGRESQL, "postgresql_connections_max", &[], less);
    }
    made
}

fn pool(random: &mut Random) -> SyntheticRecording {
    let (most, held) = (random.scaled(1.0, 500.0).round(), random.scaled(0.001, 2.0));
    SyntheticRecording::new(12)
        .requests(50, 400)
        .counter(APP, "db_client_connection_wait_time_seconds_sum", &[], 15.0)
        .counter(APP, "db_client_connection_wait_time_seconds_count", &[], 50.0)
        .counter(APP, "db_client_connection_use_time_seconds_sum", &[], 50.0 * held)
        .counter(APP, "db_client_connection_use_time_seconds_count", &[], 50.0)
        .gauge(APP, "db_client_connection_pending_requests", &[], 15.0)
        .gauge(APP, "db_client_connection_max", &[], most)
        .gauge(APP, "db_client_connection_count", &[("state", "used")], most)
}

fn workers(random: &mut Random) -> SyntheticRecording {
    let (server, most, processes) = ("server:8080", random.scaled(1.0, 64.0).round(), random.below(4) + 1);
    let worker = [("pid", "7"), ("role", "worker")];
    let peer = [("peer_port", "9300"), ("peer", "10.0.0.5")];
    let mut made = SyntheticRecording::new(12).requests(100, 500).target("http://127.0.0.1:8080/orders");
    for n in 0..processes {
        let label = n.to_string();
        let labels = [("worker", label.as_str())];
        made = made
            .gauge("puma:127.0.0.1:9293", "puma_pool_capacity", &labels, 0.0)
            .gauge("puma:127.0.0.1:9293", "puma_max_threads", &labels, most)
            .gauge("puma:127.0.0.1:9293", "puma_running", &labels, most)
            .gauge("puma:127.0.0.1:9293", "puma_backlog", &labels, 0.0)
            .counter("puma:127.0.0.1:9293", "puma_requests_total", &labels, 100.0 / processes as f64);
    }
    let busy = most * processes as f64;
    made.gauge(server, "tcp_accept_queue_length", &[("port", "8080")], 45.0)
        .gauge(server, "tcp_accept_queue_limit", &[("port", "8080")], 64.0)
        .gauge(server, "tcp_listen_overflows_total", &[], 7.0)
        .gauge(server, "server_answering_connections", &worker, busy)
        .gauge(server, "server_accepted_connections", &worker, busy)
        .gauge(server, "server_memory_usage_bytes", &worker, 100e6)
        .gauge(server, "server_threads", &[("pid", "7"), ("state", "S")], busy + 2.0)
        .counter(server, "server_thread_cpu_time_seconds_total", &[("pid", "7"), ("cpu_mode", "user")], 0.5)
        .gauge(server, "server_outgoing_pending_connections", &peer, 0.6 * busy)
        .gauge(server, "server_outgoing_connections", &peer, busy)
        .setting(POSTGRESQL, "max_connections", "100")
}

fn table_cache(random: &mut Random) -> SyntheticRecording {
    let opened = random.scaled(1.0, 50.0);
    SyntheticRecording::new(10)
        .requests(50, 400)
        .counter(MYSQL, "mysql_global_status_questions", &[], 50.0)
        .counter(MYSQL, "mysql_global_status_opened_tables", &[], 50.0 * opened)
        .gauge(MYSQL, "mysql_global_status_open_tables", &[], 1_048_576.0)
        .gauge(MYSQL, "mysql_global_status_open_table_definitions", &[], random.scaled(10.0, 100_000.0))
        .setting(MYSQL, "table_open_cache", "100")
        .sessions(15, "Opening tables")
}

fn tables(random: &mut Random) -> SyntheticRecording {
    let unlink = "do_unlinkat < __x64_sys_unlink < do_syscall_64";
    SyntheticRecording::new(10)
        .requests(100, 1_000)
        .counter(MYSQL, "mysql_global_status_created_tmp_disk_tables", &[], 100.0)
        .counter("pid:7", "process_io_calls_bytes_total", &[("direction", "write")], random.scaled(1e4, 1e10))
        .gauge("host", "system_memory_available_bytes", &[], random.scaled(1e7, 1e10))
        .setting(MYSQL, "tmpdir", random.pick(&["/t/tmp/", "/t/tmp/:/t/b:/t/c:/t/d"]))
        .setting(MYSQL, "tmp_table_size", "33554432")
        .setting(MYSQL, "max_heap_table_size", "33554432")
        .setting("pid:7", "mount[/t].fstype", "ext4")
        .setting("pid:7", "mount[/t].options", random.pick(&["dirsync,rw", "rw"]))
        .setting("pid:7", "mount[/t].device", "vdb")
        .asleep(90, "do_unlinkat", unlink, Some("/t/tmp/#sql_?.MYI"))
}

fn commits(random: &mut Random) -> SyntheticRecording {
    let labels = [("device", "vda")];
    SyntheticRecording::new(12)
        .requests(50, 400)
        .setting(MYSQL, "innodb_flush_log_at_trx_commit", random.pick(&["1", "3"]))
        .setting(MYSQL, "log_bin", random.pick(&["OFF", "ON"]))
        .counter(MYSQL, "mysql_global_status_com_update", &[], 50.0)
        .disk("vda", (0.0, 0.0, 0.0), (20.0, 4096.0, 0.2))
        .counter("host", "system_disk_flushes_total", &labels, 8.0)
        .counter("host", "system_disk_flush_time_seconds_total", &labels, 0.96)
        .sessions(15, "Commit")
}

fn postgresql_commits(_: &mut Random) -> SyntheticRecording {
    SyntheticRecording::new(12)
        .requests(50, 400)
        .disk("vda", (0.0, 0.0, 0.0), (20.0, 4096.0, 0.2))
        .sessions(15, "IO:WALSync")
        .setting(POSTGRESQL, "synchronous_commit", "on")
}

/// Sessions that pile up in every second half of eight seconds.
fn piling_up(source: &'static str) -> SyntheticRecording {
    let rows = (0..=24).flat_map(move |s| {
        (0..if s % 8 >= 4 { 32 } else { 2 }).map(move |i| Session {
            observed_at: s * 1_000_000_000,
            source: source.into(),
            session_id: i,
            true_state: "executing".into(),
            state: Some("Updating".into()),
            ..Session::default()
        })
    });
    SyntheticRecording::new(24).requests(50, 400).session_rows(rows.collect())
}

fn grown(storm: f64, baseline: f64) -> impl Fn(i64) -> f64 {
    move |s: i64| (1..=s).map(|t| if t % 8 >= 4 { storm } else { baseline }).sum::<f64>()
}

fn storm(random: &mut Random) -> SyntheticRecording {
    let capacity = random.scaled(1e7, 1e12);
    piling_up(MYSQL)
        .counted(MYSQL, "mysql_innodb_checkpoint_age_bytes", &[], move |s| {
            if s % 8 >= 4 { 0.95 * capacity } else { 0.2 * capacity }
        })
        .gauge(MYSQL, "mysql_innodb_log_capacity_bytes", &[], capacity)
        .counter(MYSQL, "mysql_global_status_innodb_buffer_pool_wait_free", &[], 0.0)
        .counter(MYSQL, "mysql_global_status_innodb_buffer_pool_pages_flushed", &[], 500.0)
        .counted(MYSQL, "mysql_global_status_innodb_os_log_written", &[], grown(1e6, 1e7))
}

fn checkpoints(_: &mut Random) -> SyntheticRecording {
    piling_up(POSTGRESQL)
        .without("mysql_sessions")
        .gauge(POSTGRESQL, "postgresql_sessions", &[("true_state", "executing")], 2.0)
        .counted(POSTGRESQL, "postgresql_stat_bgwriter_buffers_checkpoint", &[], grown(1_000.0, 0.0))
        .counter(POSTGRESQL, "postgresql_stat_bgwriter_checkpoints_req", &[], 0.125)
        .counter(POSTGRESQL, "postgresql_stat_bgwriter_checkpoints_timed", &[], 0.0)
        .counted(POSTGRESQL, "postgresql_wal_position_bytes", &[], grown(1e6, 1e7))
        .setting(POSTGRESQL, "max_wal_size", "1GB")
}

fn throttled(random: &mut Random) -> SyntheticRecording {
    let cpus = random.scaled(0.05, 64.0);
    SyntheticRecording::new(12)
        .requests(50, 900)
        .setting("pid:7", "cgroup.cpu_quota_us_per_period_us", &format!("{:.0} 100000", cpus * 1e5))
        .setting("pid:7", "cgroup.path", "/shop")
        .setting("pid:7", "cgroup.version", random.pick(&["1", "2"]))
        .counter("pid:7", "cgroup_cpu_periods_total", &[], 10.0)
        .counter("pid:7", "cgroup_cpu_throttled_periods_total", &[], 9.5)
        .counter("pid:7", "cgroup_cpu_throttled_time_seconds_total", &[], 0.7 * cpus.max(1.0))
        .counter("pid:7", "cgroup_cpu_usage_seconds_total", &[], 0.99 * cpus)
}

fn killed(random: &mut Random) -> SyntheticRecording {
    let at = |second: i64| move |s: i64| if s < second { 0.0 } else { 1.0 };
    SyntheticRecording::new(20)
        .requests(50, 30)
        .each_request(|n, r| {
            if n >= 8 * 50 && n % 2 == 0 {
                r.outcome = "connect_failed".into();
            }
        })
        .setting("pid:7", "cgroup.memory_limit_bytes", &random.scaled(1e7, 1e11).round().to_string())
        .setting("pid:7", "cgroup.path", "/shop")
        .setting("pid:7", "cgroup.version", random.pick(&["1", "2"]))
        .counted("pid:7", "cgroup_out_of_memory_kills_total", &[], at(8))
        .counted("host", "system_out_of_memory_kills_total", &[], at(8))
        .events(&[(8, "pid:7", "process_gone", &[])])
}

fn vacuum(random: &mut Random) -> SyntheticRecording {
    let table = [("database", "app"), ("table", "public.article")];
    let run = [("pid", "99"), ("table", "public.article"), ("phase", "scanning heap"), ("worker", "autovacuum")];
    let worker = [("backend_type", "autovacuum worker"), ("object", "relation"), ("context", "vacuum")];
    SyntheticRecording::new(30)
        .requests(50, 400)
        .asleep(40, "io_schedule", READ, None)
        .disk("vda", (60.0, 100e3, 100.0), (40.0, 100e3, 100.0))
        .gauge(POSTGRESQL, "postgresql_activity_sessions", &[("backend_type", "client backend")], 40.0)
        .counter(POSTGRESQL, "postgresql_stat_tables_n_tup_upd", &table, random.scaled(1.0, 1e4))
        .gauge(POSTGRESQL, "postgresql_stat_tables_n_live_tup", &table, random.scaled(100.0, 1e8))
        .gauge(POSTGRESQL, "postgresql_stat_tables_n_dead_tup", &table, 250_000.0)
        .gauge(POSTGRESQL, "postgresql_progress_vacuum_heap_blks_total", &run, 100_000.0)
        .counter(POSTGRESQL, "postgresql_progress_vacuum_heap_blks_scanned", &run, 0.0)
        .counter(POSTGRESQL, "postgresql_stat_io_read_bytes", &worker, random.scaled(2e6, 8e6))
}

fn reclaim(random: &mut Random) -> SyntheticRecording {
    let reclaim = "reclaim_throttle < shrink_node < try_to_free_pages < filemap_fault";
    SyntheticRecording::new(12)
        .requests(100, 200)
        .disk("vda", (100.0, 4096.0, 1.0), (0.0, 0.0, 0.0))
        .counter("host", "system_pressure_seconds_total", &[("resource", "memory"), ("kind", "some")], 0.8)
        .counter("host", "system_allocation_stalls_total", &[], 500.0)
        .counter("host", "system_paging_operations_total", &[("direction", "in")], 0.0)
        .counter("host", "system_paging_refaults_total", &[("type", "file")], 100.0)
        .gauge("host", "system_memory_total_bytes", &[], random.scaled(2e9, 5e11))
        .gauge("host", "system_memory_available_bytes", &[], 1e8)
        .gauge("host", "system_memory_usage_bytes", &[("state", "free")], 5e7)
        .setting("host", "vm.min_free_kbytes", "67584")
        .asleep(8, "reclaim_throttle", reclaim, None)
}

/// A store that reads in page faults; its cgroup has `limit` bytes, of which all are in use.
fn store(reads: (f64, f64, f64), limit: f64) -> SyntheticRecording {
    SyntheticRecording::new(12)
        .requests(100, 100)
        .disk("loop0", reads, (0.0, 0.0, 0.0))
        .asleep(10, "folio_wait_bit_common", FAULT, None)
        .counter("pid:7", "process_io_calls_bytes_total", &[("direction", "read")], 30_000.0)
        .counter("pid:7", "cgroup_memory_refaults_total", &[("type", "file")], 3_000.0)
        .gauge("pid:7", "cgroup_memory_usage_bytes", &[], 0.99 * limit)
        .gauge("host", "system_memory_total_bytes", &[], 8e9)
        .gauge("host", "system_memory_usage_bytes", &[("state", "free")], 4e9)
        .setting("pid:7", "cgroup.memory_limit_bytes", &limit.round().to_string())
        .setting("pid:7", "cgroup.path", "/store")
        .setting("host", "block.loop0.read_ahead_kb", "8")
}

fn page_cache(random: &mut Random) -> SyntheticRecording {
    let made = store((2_000.0, 8_192.0, 12.0), random.scaled(1e7, 1e11)).counter(
        "host",
        "system_paging_faults_total",
        &[("type", "major")],
        2_000.0,
    );
    if random.one_in(2) {
        return made
            .setting("host", "mount[/data].fstype", "ext4")
            .setting("host", "mount[/data].device", "loop0")
            .setting("host", "mount[/data].size_bytes", "2000000000")
            .setting("host", "mount[/data].free_bytes", "1000000000");
    }
    made
}

fn buffer_pool(random: &mut Random) -> SyntheticRecording {
    let pages = random.scaled(512.0, 1e7).round();
    store((2_000.0, 8_192.0, 12.0), 1e11)
        .without("cgroup_memory_usage_bytes")
        .without_setting("cgroup.memory_limit_bytes")
        .counter("host", "system_paging_faults_total", &[("type", "major")], 2_000.0)
        .setting(MYSQL, "innodb_page_size", "8192")
        .gauge("host", "system_memory_available_bytes", &[], random.scaled(1e3, 1e11))
        .counter(MYSQL, "mysql_global_status_innodb_buffer_pool_reads", &[], 1_900.0)
        .counter(MYSQL, "mysql_global_status_innodb_buffer_pool_read_requests", &[], 19_000.0)
        .gauge(MYSQL, "mysql_global_status_innodb_buffer_pool_pages_free", &[], 10.0)
        .gauge(MYSQL, "mysql_global_status_innodb_buffer_pool_pages_total", &[], pages)
}

fn readahead(random: &mut Random) -> SyntheticRecording {
    let (reads, size) = (330.0, random.scaled(20e3, 200e3));
    store((reads, size, 24.0 / reads * 1e3), 1e11)
        .counter("host", "system_paging_faults_total", &[("type", "major")], random.scaled(200.0, 500.0))
        .disk("vda", (1.0, 4096.0, 1.0), (5.0, 4096.0, 1.0))
        .asleep(14, "folio_wait_bit_common", FAULT, Some("/data/store/data.mdb"))
        .setting("host", "mount[/data].fstype", "ext4")
        .setting("host", "mount[/data].device", "loop0")
        .setting("host", "block.loop0.read_ahead_kb", "128")
}

fn atime(_: &mut Random) -> SyntheticRecording {
    let read = "folio_wait_bit_common < filemap_update_page < filemap_read < vfs_read";
    SyntheticRecording::new(12)
        .requests(100, 200)
        .disk("vda", (100.0, 4096.0, 40.0), (300.0, 4096.0, 50.0))
        .asleep(19, "folio_wait_bit_common", read, None)
        .counter("pid:7", "process_disk_io_bytes_total", &[("direction", "write")], 0.0)
        .setting("host", "mount[/].fstype", "ext4")
        .setting("host", "mount[/].device", "vda1")
        .setting("host", "mount[/].options", "rw")
        .setting("host", "block.vda1.parent", "vda")
}

fn accept_queue(random: &mut Random) -> SyntheticRecording {
    let (server, port) = ("server:8080", [("port", "8080")]);
    let (limit, overflows) = (random.scaled(1.0, 65_535.0).round(), random.scaled(20.0, 2_000.0));
    SyntheticRecording::new(12)
        .requests(50, 30)
        .half_connect_late()
        .gauge(server, "tcp_accept_queue_length", &port, limit)
        .gauge(server, "tcp_accept_queue_limit", &port, limit)
        .counter(server, "tcp_listen_overflows_total", &[], overflows)
        .counter("host", "tcp_listen_overflows_total", &[], overflows)
}

fn shaped(random: &mut Random) -> SyntheticRecording {
    let labels = |direction| [("device", "eth0"), ("direction", direction)];
    let rate = random.scaled(1e5, 1e9).round();
    SyntheticRecording::new(14)
        .requests(50, 400)
        .each_request(move |n, r| {
            r.response_bytes = 250_000;
            r.first_byte_at = Some(r.done_at - if n % 10 == 0 { 1 } else { 300 } * 1_000_000);
        })
        .counter("host", "system_network_io_bytes_total", &labels("transmit"), rate)
        .counter("host", "system_network_io_bytes_total", &labels("receive"), 1e4)
        .gauge("host", "system_network_qdisc_backlog_bytes", &[("device", "eth0")], 0.2 * rate)
        .setting("host", "net.eth0.shaper_bytes_per_second", &rate.to_string())
        .setting("host", "net.eth0.qdisc", "tbf")
}

fn cgroup_iops(random: &mut Random) -> SyntheticRecording {
    let limit = random.scaled(10.0, 500.0).round();
    SyntheticRecording::new(14)
        .requests(100, 200)
        .disk("vda", (limit, 4096.0, 0.3), (1.0, 4096.0, 0.3))
        .asleep(20, "io_schedule", READ, None)
        .setting("pid:7", "cgroup.path", "/db")
        .setting("pid:7", "cgroup.version", random.pick(&["1", "2"]))
        .setting("pid:7", "cgroup.disk_limit[vda].read_operations_per_second", &limit.to_string())
        .counter("pid:7", "cgroup_disk_operations_total", &READ_LABELS, 0.99 * limit)
}

fn files(random: &mut Random) -> SyntheticRecording {
    let limit = random.scaled(64.0, 2e6).round();
    let made = failing()
        .gauge("pid:7", "process_open_file_descriptors", &[], limit)
        .gauge("host", "tcp_accept_queue_length", &[("port", "8080")], 45.0)
        .setting("pid:7", "comm", random.pick(&["mysqld", "java"]))
        .setting("pid:7", "limit.nofile", &limit.to_string());
    if random.one_in(3) {
        return made;
    }
    made.setting("pid:7", "limit.nofile_hard", &(limit * random.scaled(1.0, 500.0)).round().to_string())
}

fn probe(random: &mut Random) -> SyntheticRecording {
    const PROBE: &str = "probe:http://127.0.0.1:8080/health";
    let failed = |n: i64| Event {
        observed_at: (9 + n) * 1_000_000_000,
        source: PROBE.into(),
        kind: "probe_failed".into(),
        text: String::new(),
        labels: Labels::new([("reason", "timeout".to_owned()), ("in_a_row", n.to_string())]),
    };
    SyntheticRecording::new(30)
        .requests(50, 30)
        .refused(14 * 50..18 * 50)
        .gauge(PROBE, "probe_success", &[], 1.0)
        .setting(PROBE, "probe.failures", random.pick(&["1", "2", "3"]))
        .setting(PROBE, "probe.timeout_s", random.pick(&["0.1", "1", "30"]))
        .events(&[
            (14, "server:8080", "server_stopped", &[("port", "8080"), ("pids", "7")]),
            (18, "server:8080", "server_started", &[("port", "8080"), ("pids", "9"), ("absent_ms", "4000")]),
        ])
        .tables(|tables| tables.events.rows.extend((1..=3).map(failed)))
}
