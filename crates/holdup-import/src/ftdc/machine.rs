//! The machine's part of a sample, `systemMetrics`: what mongod read from `/proc`, under the names
//! that the host's own collector gives.

use holdup_mongodb::Value;
use holdup_recording::metrics::{Metric, host};
use holdup_recording::{Labels, metrics};

use super::column::{Column, index};

/// Bytes of a sector, in which the kernel counts.
const SECTOR_BYTES: f64 = 512.0;

/// Modes of CPU time.
const MODES: [(&str, &str); 8] = [
    ("user_ms", "user"),
    ("nice_ms", "nice"),
    ("system_ms", "system"),
    ("idle_ms", "idle"),
    ("iowait_ms", "iowait"),
    ("irq_ms", "interrupt"),
    ("softirq_ms", "softirq"),
    ("steal_ms", "steal"),
];

/// Figures of a disk in each direction: field for reads and for writes, metric, factor.
const REQUESTS: [(&str, &str, Metric, f64); 4] = [
    ("reads", "writes", host::DISK_OPERATIONS, 1.0),
    ("reads_merged", "writes_merged", host::DISK_MERGED, 1.0),
    ("read_sectors", "write_sectors", host::DISK_IO_BYTES, SECTOR_BYTES),
    ("read_time_ms", "write_time_ms", host::DISK_OPERATION_TIME, 1e-3),
];

/// Figures of a whole disk.
const DISK: [(&str, Metric, f64); 3] = [
    ("io_in_progress", host::DISK_IN_FLIGHT, 1.0),
    ("io_time_ms", host::DISK_IO_TIME, 1e-3),
    ("io_queued_ms", host::DISK_WEIGHTED_IO_TIME, 1e-3),
];

/// Figures without labels: section, field, metric, factor.
const PLAIN: [(&str, &str, Metric, f64); 6] = [
    ("cpu", "ctxt", host::CONTEXT_SWITCHES, 1.0),
    ("cpu", "processes", host::PROCESS_CREATED, 1.0),
    ("cpu", "procs_running", host::PROCESSES_RUNNABLE, 1.0),
    ("memory", "MemTotal_kb", host::MEMORY_TOTAL_BYTES, 1024.0),
    ("memory", "MemAvailable_kb", host::MEMORY_AVAILABLE_BYTES, 1024.0),
    ("memory", "Dirty_kb", host::MEMORY_DIRTY_BYTES, 1024.0),
];

/// States of memory, each as a sum of fields in kB with their signs.
const MEMORY: [(&str, &[(&str, f64)]); 4] = [
    ("free", &[("MemFree_kb", 1.0)]),
    ("buffers", &[("Buffers_kb", 1.0)]),
    ("cached", &[("Cached_kb", 1.0), ("SReclaimable_kb", 1.0)]),
    (
        "used",
        &[
            ("MemTotal_kb", 1.0),
            ("MemFree_kb", -1.0),
            ("Buffers_kb", -1.0),
            ("Cached_kb", -1.0),
            ("SReclaimable_kb", -1.0),
        ],
    ),
];

/// Counters of `/proc/vmstat`.
const PAGING: [(&str, Metric, (&str, &str)); 3] = [
    ("pgmajfault", host::PAGING_FAULTS, ("type", "major")),
    ("pswpin", host::PAGING_OPERATIONS, ("direction", "in")),
    ("pswpout", host::PAGING_OPERATIONS, ("direction", "out")),
];

/// Most disks.
const DISKS_MAX: usize = 200;

/// The columns of the machine, in a sample whose numbers are indexes.
pub(super) fn columns(machine: &Value) -> Vec<Column> {
    let mut found = Vec::new();
    let mut put = |metric: Metric, labels: Labels, terms: Option<Vec<(usize, f64)>>| {
        let metric = metric.name.to_owned();
        found.extend(terms.map(|terms| Column {
            metric,
            labels,
            terms,
            is_host: true,
            is_time: false,
            is_named: true,
        }));
    };
    let one = |path: &[&str], factor: f64| Some(vec![(index(machine.at(path))?, factor)]);
    for (field, mode) in MODES {
        put(metrics::host::CPU_TIME, Labels::new([("cpu_mode", mode)]), one(&["cpu", field], 1e-3));
    }
    for (section, field, metric, factor) in PLAIN {
        put(metric, Labels::none(), one(&[section, field], factor));
    }
    for (state, fields) in MEMORY {
        let terms = fields.iter().map(|(field, sign)| Some((index(machine.at(&["memory", field]))?, 1024.0 * sign)));
        put(metrics::host::MEMORY_USAGE_BYTES, Labels::new([("state", state)]), terms.collect());
    }
    for (field, metric, label) in PAGING {
        put(metric, Labels::new([label]), one(&["vmstat", field], 1.0));
    }
    for (device, _) in machine.get("disks").map(Value::entries).unwrap_or_default().iter().take(DISKS_MAX) {
        for (read, write, metric, factor) in REQUESTS {
            for (direction, field) in [("read", read), ("write", write)] {
                let labels = Labels::new([("device", device.as_str()), ("direction", direction)]);
                put(metric, labels, one(&["disks", device, field], factor));
            }
        }
        for (field, metric, factor) in DISK {
            put(metric, Labels::new([("device", device.as_str())]), one(&["disks", device, field], factor));
        }
    }
    found
}
