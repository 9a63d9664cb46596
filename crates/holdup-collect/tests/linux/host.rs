//! `--watch host`.

use std::path::Path;

use holdup_collect::host::Host;
use holdup_collect::proc::Proc;
use holdup_collect::{Collector, ProbeError};
use holdup_recording::{Batch, CoverageState};

use crate::{small_tree, value};

fn sample(proc: &Proc) -> (Batch, Result<(), String>) {
    let mut batch = Batch::default();
    let result = Host::new(proc.clone()).sample(&mut batch);
    (batch, result.map_err(|e| e.to_string()))
}

/// Metric, labels, value.
type Expected<'a> = (&'a str, &'a [(&'a str, &'a str)], f64);

#[test]
fn every_section_of_the_small_tree() {
    let (_dir, proc) = small_tree();
    let (batch, result) = sample(&proc);
    assert_eq!(result, Ok(()));
    let expected: &[Expected] = &[
        ("system_load_average_1m", &[], 1.5),
        ("system_load_average_15m", &[], 0.25),
        ("system_processes_runnable", &[], 3.0),
        ("system_cpu_time_seconds_total", &[("cpu_mode", "user")], 377.66),
        ("system_cpu_time_seconds_total", &[("cpu_mode", "steal")], 16.59),
        ("system_cpu_logical_count", &[], 2.0),
        ("system_context_switches_total", &[], 533_765.0),
        ("system_memory_usage_bytes", &[("state", "used")], 420_000.0 * 1024.0),
        ("system_memory_available_bytes", &[], 600_000.0 * 1024.0),
        ("system_memory_total_bytes", &[], 1_000_000.0 * 1024.0),
        ("system_paging_usage_bytes", &[("state", "used")], 10_000.0 * 1024.0),
        ("system_paging_operations_total", &[("direction", "in")], 5.0),
        ("system_paging_operations_total", &[("direction", "out")], 7.0),
        ("system_paging_faults_total", &[("type", "major")], 1587.0),
        ("system_pressure_seconds_total", &[("resource", "cpu"), ("kind", "some")], 20.020936),
        ("system_pressure_seconds_total", &[("resource", "io"), ("kind", "full")], 6.29385),
        ("system_disk_io_bytes_total", &[("device", "vda"), ("direction", "read")], 5_502_866.0 * 512.0),
        ("system_disk_operations_total", &[("device", "vda"), ("direction", "write")], 31_476.0),
        ("system_disk_operation_time_seconds_total", &[("device", "vda"), ("direction", "write")], 22.178),
        ("system_disk_io_time_seconds_total", &[("device", "vda")], 12.392),
        ("system_disk_weighted_io_time_seconds_total", &[("device", "vda")], 46.387),
        ("system_disk_in_flight", &[("device", "vda")], 3.0),
        ("system_disk_merged_total", &[("device", "vda"), ("direction", "read")], 14_365.0),
        ("system_disk_discards_total", &[("device", "vda")], 8_898.0),
        ("system_disk_flushes_total", &[("device", "vda")], 4_748.0),
        ("system_disk_flush_time_seconds_total", &[("device", "vda")], 0.255),
        ("system_paging_refaults_total", &[("type", "file")], 46_830.0),
        ("system_paging_refaults_total", &[("type", "anon")], 3.0),
        ("system_memory_reclaim_pages_total", &[("kind", "scan_direct")], 849.0),
        ("system_memory_reclaim_pages_total", &[("kind", "scan_kswapd")], 1_571_503.0),
        ("system_memory_reclaim_pages_total", &[("kind", "steal")], 1_569_846.0),
        ("system_allocation_stalls_total", &[], 10.0),
        ("system_out_of_memory_kills_total", &[], 1.0),
        ("system_file_handles", &[], 3_104.0),
        ("cgroup_cpu_periods_total", &[("cgroup", "/")], 0.0),
        ("cgroup_memory_usage_bytes", &[("cgroup", "/")], 9_000_000.0),
        ("system_network_io_bytes_total", &[("device", "eth0"), ("direction", "receive")], 403_124_122.0),
        ("system_network_errors_total", &[("device", "eth0"), ("direction", "transmit")], 3.0),
        ("system_network_dropped_total", &[("device", "eth0"), ("direction", "receive")], 2.0),
        ("system_cpu_softirq_time_seconds_total", &[("cpu_logical_number", "1")], 0.9),
        ("system_network_softnet_processed_total", &[("cpu_logical_number", "0")], 123_456.0),
        ("system_network_softnet_dropped_total", &[("cpu_logical_number", "0")], 10.0),
        ("system_network_softnet_squeezed_total", &[("cpu_logical_number", "1")], 1.0),
        ("system_network_receive_softirqs_total", &[("cpu_logical_number", "1")], 38_279.0),
        ("system_network_conntrack_count", &[], 400.0),
        ("system_network_conntrack_max", &[], 65_536.0),
        ("system_network_conntrack_dropped_total", &[], 64.0),
        ("system_network_conntrack_early_dropped_total", &[], 5.0),
        ("system_network_conntrack_insert_failed_total", &[], 3.0),
        ("tcp_retransmitted_segments_total", &[], 17.0),
        ("tcp_retransmission_timeouts_total", &[], 12.0),
        ("tcp_syn_retransmits_total", &[], 3.0),
        ("tcp_listen_overflows_total", &[], 1474.0),
        ("tcp_listen_drops_total", &[], 1480.0),
        ("tcp_accept_queue_length", &[("port", "3306")], 59.0),
        ("tcp_server_connections", &[("port", "3306")], 3.0),
        ("tcp_server_unread_connections", &[("port", "3306")], 2.0),
        ("tcp_server_unread_bytes", &[("port", "3306")], 64.0),
        ("tcp_server_close_wait_connections", &[("port", "3306")], 1.0),
        ("tcp_server_connections", &[("port", "8080")], 0.0),
        ("system_threads", &[("state", "D")], 1.0),
        ("system_threads", &[("state", "S")], 2.0),
        ("system_threads", &[("state", "R")], 1.0),
        ("system_threads", &[("state", "Z")], 0.0),
    ];
    for (metric, labels, number) in expected {
        let found = value(&batch, metric, labels).unwrap_or_else(|| panic!("{metric} {labels:?} is missing"));
        assert!((found - number).abs() < 1e-6, "{metric} {labels:?}: {found} is not {number}");
    }
    for absent in [("device", "vda1"), ("device", "loop0"), ("device", "ifb0"), ("port", "40961")] {
        assert!(!batch.samples.iter().any(|s| s.labels.contains(&[absent])), "{absent:?}");
    }
    let blocked = &batch.threads[..];
    assert_eq!(blocked.len(), 1);
    assert_eq!((blocked[0].pid, blocked[0].tid, blocked[0].state.as_str()), (71, 72, "D"));
    assert_eq!((blocked[0].process.as_str(), blocked[0].thread.as_str()), ("mariadbd", "pool (1)"));
    assert_eq!((blocked[0].wchan.as_deref(), blocked[0].syscall), (Some("do_unlinkat"), Some(87)));
}

/// Every file of the tree, cut off at many places: never a panic, and never a number that was not there.
#[test]
fn a_cut_file_is_a_gap_and_never_another_number() {
    let (dir, proc) = small_tree();
    let whole = sample(&proc).0;
    let known = |s: &holdup_recording::rows::Sample| {
        whole.samples.iter().any(|w| w.metric == s.metric && w.labels == s.labels && w.value == s.value)
    };
    for file in [
        "loadavg",
        "stat",
        "meminfo",
        "vmstat",
        "pressure/io",
        "diskstats",
        "net/dev",
        "net/snmp",
        "net/netstat",
        "net/softnet_stat",
        "softirqs",
        "sys/fs/file-nr",
        "self/cgroup",
    ] {
        let path = dir.path().join("proc").join(file);
        let content = std::fs::read(&path).unwrap();
        for end in (0..content.len()).step_by(3) {
            std::fs::write(&path, &content[..end]).unwrap();
            let (batch, result) = sample(&proc);
            // Cut exactly behind a line it may be a shorter file of the same form.
            assert!(result.is_err() || content[end - 1] == b'\n', "{file} cut at {end}");
            assert!(batch.samples.iter().all(known), "{file} cut at {end}: another number");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(sample(&proc).1.is_err_and(|e| e.contains(file)), "{file} missing");
        std::fs::write(&path, &content).unwrap();
    }
}

#[test]
fn rubbish_is_a_gap() {
    let (dir, proc) = small_tree();
    for file in
        ["loadavg", "stat", "meminfo", "vmstat", "diskstats", "net/dev", "net/snmp", "net/tcp", "71/task/71/stat"]
    {
        let path = dir.path().join("proc").join(file);
        let content = std::fs::read(&path).unwrap();
        for rubbish in
            [&b"\n"[..], b"\n\n\n\n", b": : : :\n", b"a b c\nd e f\ng h i\n", b"\xff\n", b"cpu -1 1e999 nan\n"]
        {
            std::fs::write(&path, rubbish).unwrap();
            let (_, result) = sample(&proc);
            let lists = ["diskstats", "net/dev", "net/tcp", "vmstat"].contains(&file);
            assert!(result.is_err() || lists, "{file}: {rubbish:?}");
        }
        std::fs::write(&path, &content).unwrap();
    }
}

#[test]
fn a_missing_kernel_feature_is_reported_once_without_gaps() {
    let (dir, proc) = small_tree();
    std::fs::remove_dir_all(dir.path().join("proc/pressure")).unwrap();
    let mut host = Host::new(proc);
    let coverage = host.probe().unwrap();
    assert_eq!((coverage[0].source.as_str(), coverage[0].state), ("host", CoverageState::Partial));
    assert_eq!(coverage[0].why.as_deref(), Some("without: pressure"));
    assert_eq!((coverage[1].source.as_str(), coverage[1].state), ("host pressure", CoverageState::Absent));
    assert!(coverage[1].enable.as_deref().unwrap().contains("psi=1"));
    host.sample(&mut Batch::default()).unwrap();
}

/// A kernel without the module has no table, which is not a gap. What is there and cannot be read is one.
#[test]
fn a_table_of_connections_that_is_not_there_and_one_that_is_hidden() {
    let (dir, proc) = small_tree();
    let files =
        ["sys/net/netfilter/nf_conntrack_count", "net/stat/nf_conntrack"].map(|f| dir.path().join("proc").join(f));
    let counted = |batch: &Batch| batch.samples.iter().filter(|s| s.metric.contains("_conntrack_")).count();
    std::fs::write(&files[1], "entries drop\n00000001\n").unwrap();
    let (batch, result) = sample(&proc);
    assert!(result.is_err_and(|e| e.contains("nf_conntrack")));
    assert_eq!(counted(&batch), 2, "the sizes");
    std::fs::remove_dir_all(files[0].parent().unwrap()).unwrap();
    std::fs::remove_dir_all(files[1].parent().unwrap()).unwrap();
    let (batch, result) = sample(&proc);
    assert_eq!((counted(&batch), result), (0, Ok(())));
    let coverage = Host::new(proc).probe().unwrap();
    assert!(coverage.iter().all(|part| part.source != "host tracked connections"), "{coverage:?}");
}

/// Kernels before the CPU's number stood in its row: the row is that of the next online CPU.
#[test]
fn rows_without_a_number_are_those_of_the_online_cpus() {
    let (dir, proc) = small_tree();
    let folder = dir.path().join("sys/devices/system/cpu");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("online"), "0,2\n").unwrap();
    let row = |processed: &str| format!("{processed} 00000000 00000000{}\n", " 00000000".repeat(8));
    std::fs::write(dir.path().join("proc/net/softnet_stat"), row("00000001") + &row("00000002")).unwrap();
    let (batch, _) = sample(&proc);
    let of = |cpu: &str| value(&batch, "system_network_softnet_processed_total", &[("cpu_logical_number", cpu)]);
    assert_eq!((of("0"), of("1"), of("2")), (Some(1.0), None, Some(2.0)));
}

#[test]
fn unreadable_processes_are_in_the_coverage() {
    let (dir, proc) = small_tree();
    assert_eq!(Host::new(proc.clone()).probe().unwrap().len(), 1);
    for pid in ["1", "71"] {
        std::fs::remove_file(dir.path().join("proc").join(pid).join("syscall")).unwrap();
    }
    let coverage = Host::new(proc.clone()).probe().unwrap();
    assert_eq!(coverage[1].source, "host wait channels");
    assert!(coverage[1].enable.as_deref().unwrap().contains("CAP_SYS_PTRACE"));
    std::fs::remove_dir_all(dir.path().join("proc/1")).unwrap();
    assert!(Host::new(proc).probe().unwrap()[1].enable.as_deref().unwrap().contains("hidepid"));
}

#[test]
fn without_proc_the_host_can_not_be_watched() {
    let error = Host::new(Proc::at(Path::new("/nonexistent"))).probe().unwrap_err();
    assert!(matches!(error, ProbeError::Unreachable { .. }), "{error}");
}

#[test]
fn settings_of_the_small_tree() {
    let (_dir, proc) = small_tree();
    let mut batch = Batch::default();
    Host::new(proc).settings(&mut batch).unwrap();
    let setting = |name: &str| batch.settings.iter().find(|s| s.name == name).map(|s| s.value.as_str());
    assert_eq!(setting("kernel.osrelease"), Some("6.18.44"));
    assert_eq!(setting("cpu_logical_count"), Some("2"));
    assert_eq!(setting("net.core.somaxconn"), Some("4096"));
    assert_eq!(setting("transparent_hugepage.enabled"), Some("madvise"));
    assert_eq!(setting("block.vda.scheduler"), Some("none"));
    assert_eq!(setting("block.vda.read_ahead_kb"), Some("128"));
    assert_eq!(setting("block.loop0.scheduler"), None);
    assert_eq!(setting("vm.dirty_ratio"), None);
    assert_eq!(setting("memory_total_bytes"), Some("1024000000"));
    assert_eq!((setting("cgroup.path"), setting("cgroup.cpu_quota_us_per_period_us")), (Some("/"), Some("max")));
    assert_eq!(setting("mount[/].device"), Some("vda"));
    assert_eq!(setting("mount[/var/lib/my data].options"), Some("noatime,noquota,rw"));
    assert_eq!(setting("mount[/var/lib/my data/tmp].fstype"), Some("tmpfs"));
}

/// Counters of this very machine go up and its sections can be read.
#[test]
fn this_machine() {
    let proc = Proc::system();
    let mut host = Host::new(proc);
    let coverage = host.probe().unwrap();
    assert_eq!(coverage[0].source, "host");
    let (mut first, mut second) = (Batch::default(), Batch::default());
    host.sample(&mut first).unwrap();
    let busy: u64 = (0..20_000_000_u64).fold(0, |a, b| a ^ b.wrapping_mul(a | 1));
    assert_ne!(busy, 1);
    host.sample(&mut second).unwrap();
    let switches = |batch: &Batch| value(batch, "system_context_switches_total", &[]).unwrap();
    assert!(switches(&second) > switches(&first));
    assert!(value(&first, "system_threads", &[("state", "S")]).unwrap() > 0.0);
    // Every online CPU has a row, and a packet within this machine is one that a CPU took up.
    let packets = |batch: &Batch| {
        let of = batch.samples.iter().filter(|s| s.metric == "system_network_softnet_processed_total");
        of.fold((0, 0.0), |(rows, sum), s| (rows + 1, sum + s.value))
    };
    assert_eq!(packets(&first).0 as f64, value(&first, "system_cpu_logical_count", &[]).unwrap());
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..100 {
        socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
    }
    let mut third = Batch::default();
    host.sample(&mut third).unwrap();
    assert!(packets(&third).1 - packets(&second).1 >= 100.0);
    assert!(first.samples.iter().all(|s| s.window_ns > 0 && s.observed_at > 1_700_000_000_000_000_000));
}

/// Both ends of connections within this machine, with what the client has sent and nobody has read.
#[test]
fn connections_of_this_machine() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pairs: Vec<_> = (0..40)
        .map(|_| {
            let mut client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
            std::io::Write::write_all(&mut client, b"SELECT 1").unwrap();
            (client, listener.accept().unwrap())
        })
        .collect();
    let mut host = Host::new(Proc::system());
    assert!(host.probe().unwrap().iter().all(|part| part.source != "host connections"));
    let mut batch = Batch::default();
    host.sample(&mut batch).unwrap();
    let text = port.to_string();
    let of = |metric: &str, side: &str| value(&batch, metric, &[("port", &text), ("side", side)]);
    assert_eq!((of("tcp_connections", "server"), of("tcp_connections", "client")), (Some(40.0), Some(40.0)));
    assert_eq!(
        (of("tcp_connections_unread", "server"), of("tcp_connections_unread", "client")),
        (Some(40.0), Some(0.0))
    );
    assert_eq!(of("tcp_unread_bytes", "server"), Some(320.0));
    assert_eq!(value(&batch, "tcp_server_unread_connections", &[("port", &text)]), Some(40.0));
    // The standard library asks for 128, on some systems for as many as there may be.
    assert!(value(&batch, "tcp_accept_queue_limit", &[("port", &text)]).unwrap() >= 40.0);
    let round_trip =
        |stat| value(&batch, "tcp_round_trip_seconds", &[("port", &text), ("side", "client"), ("stat", stat)]);
    let [least, mean, most] = ["min", "mean", "max"].map(|stat| round_trip(stat).unwrap());
    assert!(0.0 < least && least <= mean && mean <= most, "{least} {mean} {most}");
    drop(pairs);
}
