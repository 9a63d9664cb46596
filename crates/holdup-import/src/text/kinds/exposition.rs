//! Prometheus' text format, pasted from an exporter's page: `node_exporter`'s series become the rows of the
//! host's collector. `mysqld_exporter` names status variables as the collector of MySQL does. All others
//! keep their names.

use std::collections::BTreeMap;

use holdup_recording::Labels;
use holdup_recording::exposition::{Series, parse};
use holdup_recording::metrics::{Metric, host, postgresql, tcp};

use super::memory::Usage;
use super::processlist::SOURCE as MYSQL;
use super::{Context, HOST, Kind, Line, cpu_table, netstat, text};

pub(super) const KIND: Kind = Kind::lines("Prometheus text", recognises, read);

/// The source of other series.
const SOURCE: &str = "prometheus:paste";

/// Beginnings of the names that exporters write, which tell a line without its `# TYPE`.
const KNOWN: [&str; 5] = ["node_", "mysql_", "pg_", "haproxy_", "process_"];

type Label = Option<(&'static str, &'static str)>;

/// Counters of the host: the name behind `node_`, our metric, a label. Its own label `device` stays.
const COUNTERS: [(&str, Metric, Label); 28] = [
    ("disk_reads_completed_total", host::DISK_OPERATIONS, Some(("direction", "read"))),
    ("disk_writes_completed_total", host::DISK_OPERATIONS, Some(("direction", "write"))),
    ("disk_read_bytes_total", host::DISK_IO_BYTES, Some(("direction", "read"))),
    ("disk_written_bytes_total", host::DISK_IO_BYTES, Some(("direction", "write"))),
    ("disk_read_time_seconds_total", host::DISK_OPERATION_TIME, Some(("direction", "read"))),
    ("disk_write_time_seconds_total", host::DISK_OPERATION_TIME, Some(("direction", "write"))),
    ("disk_io_time_seconds_total", host::DISK_IO_TIME, None),
    ("disk_io_time_weighted_seconds_total", host::DISK_WEIGHTED_IO_TIME, None),
    ("network_receive_bytes_total", host::NETWORK_IO_BYTES, Some(("direction", "receive"))),
    ("network_transmit_bytes_total", host::NETWORK_IO_BYTES, Some(("direction", "transmit"))),
    ("network_receive_packets_total", host::NETWORK_PACKETS, Some(("direction", "receive"))),
    ("network_transmit_packets_total", host::NETWORK_PACKETS, Some(("direction", "transmit"))),
    ("network_receive_errs_total", host::NETWORK_ERRORS, Some(("direction", "receive"))),
    ("network_transmit_errs_total", host::NETWORK_ERRORS, Some(("direction", "transmit"))),
    ("network_receive_drop_total", host::NETWORK_DROPPED, Some(("direction", "receive"))),
    ("network_transmit_drop_total", host::NETWORK_DROPPED, Some(("direction", "transmit"))),
    ("context_switches_total", host::CONTEXT_SWITCHES, None),
    ("forks_total", host::PROCESS_CREATED, None),
    ("vmstat_pswpin", host::PAGING_OPERATIONS, Some(("direction", "in"))),
    ("vmstat_pswpout", host::PAGING_OPERATIONS, Some(("direction", "out"))),
    ("vmstat_pgmajfault", host::PAGING_FAULTS, Some(("type", "major"))),
    ("vmstat_oom_kill", host::OUT_OF_MEMORY_KILLS, None),
    ("nf_conntrack_stat_drop", host::NETWORK_CONNTRACK_DROPPED, None),
    ("nf_conntrack_stat_early_drop", host::NETWORK_CONNTRACK_EARLY_DROPPED, None),
    ("nf_conntrack_stat_insert_failed", host::NETWORK_CONNTRACK_INSERT_FAILED, None),
    ("pressure_cpu_waiting_seconds_total", host::PRESSURE, Some(("resource", "cpu"))),
    ("pressure_io_waiting_seconds_total", host::PRESSURE, Some(("resource", "io"))),
    ("pressure_memory_waiting_seconds_total", host::PRESSURE, Some(("resource", "memory"))),
];

/// Stalls of all tasks.
const FULL: [(&str, &str); 2] =
    [("pressure_io_stalled_seconds_total", "io"), ("pressure_memory_stalled_seconds_total", "memory")];

/// Gauges of the host.
const GAUGES: [(&str, Metric, Label); 10] = [
    ("load1", host::LOAD_AVERAGE_1M, None),
    ("load5", host::LOAD_AVERAGE_5M, None),
    ("load15", host::LOAD_AVERAGE_15M, None),
    ("procs_running", host::PROCESSES_RUNNABLE, None),
    ("disk_io_now", host::DISK_IN_FLIGHT, None),
    ("filefd_allocated", host::FILE_HANDLES, None),
    ("nf_conntrack_entries", host::NETWORK_CONNTRACK_COUNT, None),
    ("nf_conntrack_entries_limit", host::NETWORK_CONNTRACK_MAX, None),
    ("sockstat_TCP_tw", tcp::SOCKETS, Some(("state", "TIME-WAIT"))),
    ("processes_threads_state", host::THREADS, None),
];

/// Whether a line that begins as a prompt does is a comment of this format.
pub(in super::super) fn is_comment(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("#") && matches!(words.next(), Some("TYPE" | "HELP" | "EOF" | "UNIT"))
}

/// The series of a line.
fn series(line: &str) -> Option<Series> {
    let is_word = line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !is_word || !line.contains(' ') {
        return None;
    }
    parse(format!("{line}\n").as_bytes()).series.pop()
}

fn recognises(lines: &[Line]) -> bool {
    let first = text(lines, 0);
    is_comment(first) || is_own(first)
}

/// Whether a line is a series by itself: it has labels, or a name as exporters choose them.
fn is_own(line: &str) -> bool {
    const ENDS: [&str; 6] = ["_total", "_seconds", "_bytes", "_count", "_sum", "_ratio"];
    let name = line.split([' ', '{']).next().unwrap_or_default();
    let is_named = KNOWN.iter().any(|prefix| line.starts_with(prefix))
        || name.contains('_') && ENDS.iter().any(|end| name.ends_with(end))
        || line.get(name.len()..).is_some_and(|rest| rest.starts_with('{') && rest.contains("=\""));
    is_named && series(line).is_some()
}

/// What several series together say.
#[derive(Default)]
struct Sums {
    /// CPU seconds by mode, and the CPUs.
    cpu: BTreeMap<&'static str, f64>,
    cpus: BTreeMap<String, ()>,
    memory: BTreeMap<String, f64>,
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of("Prometheus text");
    let (mut sums, mut used) = (Sums::default(), 0);
    for (place, line) in lines.iter().enumerate() {
        match series(&line.text) {
            Some(series) if series.value.is_finite() => put(series, at, &mut sums, context),
            Some(_) => {}
            None if is_comment(&line.text) => {}
            // An empty line parts the series of one answer.
            None if line.is_blank() => continue,
            None => break,
        }
        used = place + 1;
    }
    for (mode, seconds) in &sums.cpu {
        context.out.total(at, host::CPU_TIME, Labels::new([("cpu_mode", *mode)]), *seconds);
    }
    context.out.learn_cpus(sums.cpus.len() as f64);
    let of = |name: &str| sums.memory.get(name).copied();
    let usage = Usage {
        total: of("MemTotal"),
        free: of("MemFree"),
        buffers: of("Buffers"),
        cached: of("Cached").map(|cached| cached + of("SReclaimable").unwrap_or(0.0)),
        available: of("MemAvailable"),
        swap_total: of("SwapTotal"),
        swap_free: of("SwapFree"),
    };
    usage.put(at, context);
    used.max(1)
}

fn put(series: Series, at: i64, sums: &mut Sums, context: &mut Context) {
    let Series { name, labels, value, .. } = series;
    if let Some(name) = name.strip_prefix("node_") {
        if put_host(name, &labels, value, at, sums, context) {
            return;
        }
    } else if name.starts_with("mysql_global_status_") {
        context.out.gauge(at, MYSQL, &name, labels, value);
        return;
    } else if let Some(variable) = name.strip_prefix("mysql_global_variables_") {
        context.out.setting(at, MYSQL, variable, value.to_string());
        return;
    } else if name == "pg_stat_activity_count" {
        let state = labels.get("state").unwrap_or_default().to_owned();
        let labels = Labels::new([("state", state), ("backend_type", "client backend".to_owned())]);
        context.out.gauge(at, super::postgresql::SOURCE, postgresql::ACTIVITY_SESSIONS.name, labels, value);
        return;
    }
    context.out.gauge(at, SOURCE, &name, labels, value);
}

/// Adds a series of `node_exporter`; false if the collector has no such figure.
fn put_host(name: &str, labels: &Labels, value: f64, at: i64, sums: &mut Sums, context: &mut Context) -> bool {
    let own = |label: Label| {
        let device = labels.get("device").map(|device| ("device", device));
        let state = labels.get("state").map(|state| ("state", state));
        Labels::new(device.into_iter().chain(state).chain(label))
    };
    if let Some(mode) = labels.get("mode").filter(|_| name == "cpu_seconds_total") {
        if let Some(mode) = cpu_table::mode(mode) {
            *sums.cpu.entry(mode).or_default() += value;
        }
        sums.cpus.insert(labels.get("cpu").unwrap_or_default().to_owned(), ());
        return true;
    }
    if let Some(name) = name.strip_prefix("memory_").and_then(|rest| rest.strip_suffix("_bytes")) {
        sums.memory.insert(name.to_owned(), value);
        return true;
    }
    if let Some((_, metric, label)) = GAUGES.iter().find(|(known, ..)| *known == name) {
        context.out.host(at, *metric, own(*label), value);
        return true;
    }
    if let Some((_, resource)) = FULL.iter().find(|(known, _)| *known == name) {
        context.out.total(at, host::PRESSURE, Labels::new([("resource", *resource), ("kind", "full")]), value);
        return true;
    }
    if let Some((_, metric, label)) = COUNTERS.iter().find(|(known, ..)| *known == name) {
        let labels = own(*label);
        let labels = if metric.name == host::PRESSURE.name { labels.with("kind", "some") } else { labels };
        context.out.total(at, *metric, labels, value);
        return true;
    }
    let of_tcp = name.strip_prefix("netstat_").map(|rest| rest.replace('_', ""));
    if let Some(metric) = of_tcp.and_then(|name| netstat::metric(&name)) {
        context.out.total(at, metric, Labels::none(), value);
        return true;
    }
    put_mount(name, labels, value, at, context)
}

/// Adds size and free bytes of a file system.
fn put_mount(name: &str, labels: &Labels, value: f64, at: i64, context: &mut Context) -> bool {
    let fact = match name {
        "filesystem_size_bytes" => "size_bytes",
        "filesystem_avail_bytes" => "free_bytes",
        _ => return false,
    };
    let mount = labels.get("mountpoint").filter(|mount| mount.starts_with('/'));
    if let Some(mount) = mount {
        context.out.setting(at, HOST, format!("mount[{mount}].{fact}"), value.to_string());
    }
    mount.is_some()
}
