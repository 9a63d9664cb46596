//! What sysstat shows: `sar` in columns, `sadf -j` in fields of almost the same names.

use holdup_recording::Labels;
use holdup_recording::metrics::{host, tcp};

use super::figure::{self, Figure, KIB, PERCENT, PLAIN, SECTORS, figure};
use super::{Context, Report, uptime};

const READ: Option<(&str, &str)> = Some(("direction", "read"));
const WRITE: Option<(&str, &str)> = Some(("direction", "write"));
const RECEIVED: Option<(&str, &str)> = Some(("direction", "receive"));
const SENT: Option<(&str, &str)> = Some(("direction", "transmit"));

/// What the host has at an instant.
const GAUGES: [Figure; 7] = [
    figure(&["runq-sz"], PLAIN, host::PROCESSES_RUNNABLE, None),
    figure(&["kbmemfree", "memfree"], KIB, host::MEMORY_USAGE_BYTES, Some(("state", "free"))),
    figure(&["kbbuffers", "buffers"], KIB, host::MEMORY_USAGE_BYTES, Some(("state", "buffers"))),
    figure(&["kbcached", "cached"], KIB, host::MEMORY_USAGE_BYTES, Some(("state", "cached"))),
    figure(&["kbavail", "avail"], KIB, host::MEMORY_AVAILABLE_BYTES, None),
    figure(&["kbswpused", "swpused"], KIB, host::PAGING_USAGE_BYTES, Some(("state", "used"))),
    figure(&["kbswpfree", "swpfree"], KIB, host::PAGING_USAGE_BYTES, Some(("state", "free"))),
];

/// What the host does in a second.
const RATES: [Figure; 10] = [
    figure(&["pswpin/s", "pswpin"], PLAIN, host::PAGING_OPERATIONS, Some(("direction", "in"))),
    figure(&["pswpout/s", "pswpout"], PLAIN, host::PAGING_OPERATIONS, Some(("direction", "out"))),
    figure(&["majflt/s", "majflt"], PLAIN, host::PAGING_FAULTS, Some(("type", "major"))),
    figure(&["cswch/s", "cswch"], PLAIN, host::CONTEXT_SWITCHES, None),
    figure(&["proc/s", "proc"], PLAIN, host::PROCESS_CREATED, None),
    figure(&["active/s"], PLAIN, tcp::ACTIVE_OPENS, None),
    figure(&["passive/s"], PLAIN, tcp::PASSIVE_OPENS, None),
    figure(&["iseg/s"], PLAIN, tcp::RECEIVED_SEGMENTS, None),
    figure(&["oseg/s"], PLAIN, tcp::SENT_SEGMENTS, None),
    figure(&["retrans/s"], PLAIN, tcp::RETRANSMITTED_SEGMENTS, None),
];

/// A disk has one wait for reads and writes together, and sizes but no counts by direction. Sizes
/// are in KiB since 12, before that in sectors.
pub(super) const DISK: [Figure; 6] = [
    figure(&["rkB/s", "rkB"], KIB, host::DISK_IO_BYTES, READ),
    figure(&["wkB/s", "wkB"], KIB, host::DISK_IO_BYTES, WRITE),
    figure(&["rd_sec/s", "rd_sec"], SECTORS, host::DISK_IO_BYTES, READ),
    figure(&["wr_sec/s", "wr_sec"], SECTORS, host::DISK_IO_BYTES, WRITE),
    figure(&["%util", "util-percent", "util"], PERCENT, host::DISK_IO_TIME, None),
    figure(&["aqu-sz", "avgqu-sz"], PLAIN, host::DISK_WEIGHTED_IO_TIME, None),
];

pub(super) const INTERFACE: [Figure; 10] = [
    figure(&["rxpck/s", "rxpck"], PLAIN, host::NETWORK_PACKETS, RECEIVED),
    figure(&["txpck/s", "txpck"], PLAIN, host::NETWORK_PACKETS, SENT),
    figure(&["rxkB/s", "rxkB"], KIB, host::NETWORK_IO_BYTES, RECEIVED),
    figure(&["txkB/s", "txkB"], KIB, host::NETWORK_IO_BYTES, SENT),
    figure(&["rxbyt/s"], PLAIN, host::NETWORK_IO_BYTES, RECEIVED),
    figure(&["txbyt/s"], PLAIN, host::NETWORK_IO_BYTES, SENT),
    figure(&["rxerr/s", "rxerr"], PLAIN, host::NETWORK_ERRORS, RECEIVED),
    figure(&["txerr/s", "txerr"], PLAIN, host::NETWORK_ERRORS, SENT),
    figure(&["rxdrop/s", "rxdrop"], PLAIN, host::NETWORK_DROPPED, RECEIVED),
    figure(&["txdrop/s", "txdrop"], PLAIN, host::NETWORK_DROPPED, SENT),
];

/// The number below the first of some names.
pub(super) type Number<'n> = dyn Fn(&[&str]) -> Option<f64> + 'n;

/// Adds what a row or an entry says of the host.
pub(super) fn put_host(kind: &'static str, report: Report, context: &mut Context, number: &Number<'_>) {
    let averages = ["ldavg-1", "ldavg-5", "ldavg-15"].map(|name| number(&[name]));
    if let [Some(one), Some(five), Some(fifteen)] = averages {
        uptime::put([one, five, fifteen], report.at, context);
    }
    figure::gauges(&GAUGES, report.at, context, &|figure| figure.of(number));
    figure::rates(&RATES, (kind, report), &Labels::none(), context, &|figure| figure.of(number));
}

/// Adds what it says of a disk or an interface.
pub(super) fn put_device(
    figures: &[Figure],
    device: &str,
    of: (&'static str, Report),
    context: &mut Context,
    number: &Number<'_>,
) {
    figure::rates(figures, of, &Labels::new([("device", device)]), context, &|figure| figure.of(number));
}
