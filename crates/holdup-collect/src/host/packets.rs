//! Where the kernel itself drops packets: a CPU's backlog of received ones, and the table of
//! tracked connections of this network namespace. The queues for sending are read in `network`.

use holdup_recording::Labels;
use holdup_recording::metrics::host as metric;

use super::Reader;
use super::cpu::{CPUS_MAX, of_cpu};
use crate::ReadError;
use crate::proc::{Tree, conntrack, cpus, number, softnet};
use crate::reading::Out;

/// Packets that each CPU received, dropped and left over, and its soft interrupts for them.
pub(super) fn received(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    let rows = softnet::softnet(reader.proc.read_lines("net/softnet_stat", &mut reader.buffer)?)?;
    let are_numbered = rows.iter().all(|row| row.cpu.is_some());
    let online = if are_numbered { Vec::new() } else { cpus::online(&reader.proc, CPUS_MAX) };
    for (position, row) in rows.iter().take(CPUS_MAX).enumerate() {
        let cpu = row.cpu.unwrap_or_else(|| online.get(position).map_or(position, |cpu| *cpu) as u32);
        for (metric, value) in [
            (metric::NETWORK_SOFTNET_PROCESSED, row.processed),
            (metric::NETWORK_SOFTNET_DROPPED, row.dropped),
            (metric::NETWORK_SOFTNET_SQUEEZED, row.squeezed),
        ] {
            out.put(metric, of_cpu(cpu), f64::from(value));
        }
    }
    out.begin();
    let counts = softnet::receive_softirqs(reader.proc.read_lines("softirqs", &mut reader.buffer)?)?;
    for (cpu, count) in counts.into_iter().take(CPUS_MAX) {
        out.put(metric::NETWORK_RECEIVE_SOFTIRQS, of_cpu(cpu), count as f64);
    }
    Ok(())
}

/// Connections in the table, its size, and what it refused. A kernel without the module
/// `nf_conntrack` has no table, so nothing is missing.
pub(super) fn tracked(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    const SIZES: [&str; 2] = ["sys/net/netfilter/nf_conntrack_count", "sys/net/netfilter/nf_conntrack_max"];
    const REFUSED: &str = "net/stat/nf_conntrack";
    let is_absent = |name: &str| matches!(reader.proc.path(Tree::Proc, name).try_exists(), Ok(false));
    for (file, metric) in SIZES.into_iter().zip([metric::NETWORK_CONNTRACK_COUNT, metric::NETWORK_CONNTRACK_MAX]) {
        if is_absent(file) {
            continue;
        }
        let text = reader.proc.read_lines(file, &mut reader.buffer)?;
        out.put_plain(metric, number::<u64>(&format!("/proc/{file}"), "the number", Some(text.trim()))? as f64);
    }
    // Its file of counters can be left out of a kernel that has the table.
    if is_absent(REFUSED) {
        return Ok(());
    }
    out.begin();
    // No room for a connection, one forgotten to make room, and two packets of one at once.
    let wanted = ["drop", "early_drop", "insert_failed"];
    let found = conntrack::counters(reader.proc.read_lines(REFUSED, &mut reader.buffer)?, &wanted)?;
    let metrics = [
        metric::NETWORK_CONNTRACK_DROPPED,
        metric::NETWORK_CONNTRACK_EARLY_DROPPED,
        metric::NETWORK_CONNTRACK_INSERT_FAILED,
    ];
    let counts = found.into_iter().map(|count| count.map(|count| count as f64));
    out.put_known(&Labels::none(), metrics.into_iter().zip(counts));
    Ok(())
}
