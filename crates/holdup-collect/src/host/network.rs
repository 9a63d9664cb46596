//! Interfaces, the queues in front of them, and TCP's error counters:
//! `/proc/net/{dev,snmp,netstat}` and rtnetlink, within this network namespace. Single connections
//! are read in `queues`.

use holdup_recording::metrics::Metric;
use holdup_recording::{Labels, metrics};

use super::Reader;
use super::block::entries;
use crate::ReadError;
use crate::proc::{Proc, Tree, number, qdiscs};
use crate::reading::Out;

/// Traffic of every interface that has carried a packet.
pub(super) fn interfaces(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    const FILE: &str = "/proc/net/dev";
    let text = reader.proc.read_lines("net/dev", &mut reader.buffer)?;
    for line in text.lines().skip(2) {
        let (device, counters) =
            line.rsplit_once(':').ok_or_else(|| ReadError(format!("{FILE}: a line without `:`")))?;
        let device = device.trim();
        // Received: bytes, packets, errors, dropped, and four more; then sent, in the same order.
        let mut values = [0.0; 12];
        let mut fields = counters.split_ascii_whitespace();
        for (position, value) in values.iter_mut().enumerate() {
            *value = number(FILE, &format!("field {} of {device}", position + 1), fields.next())?;
        }
        if values[1] == 0.0 && values[9] == 0.0 {
            continue;
        }
        for (direction, first) in [("receive", 0), ("transmit", 8)] {
            for (offset, metric) in INTERFACE.into_iter().enumerate() {
                let labels = Labels::new([("device", device), ("direction", direction)]);
                out.put(metric, labels, values[first + offset]);
            }
        }
    }
    Ok(())
}

/// Metrics of what an interface received, and then of what it sent, in the order of the file.
const INTERFACE: [Metric; 4] = [
    metrics::host::NETWORK_IO_BYTES,
    metrics::host::NETWORK_PACKETS,
    metrics::host::NETWORK_ERRORS,
    metrics::host::NETWORK_DROPPED,
];

/// The queue kind of an interface without a queue.
const NO_QUEUE: &str = "noqueue";

/// The queue of every interface that has sent something through it.
pub(super) fn queues(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    if !reader.proc.is_live() {
        return Ok(());
    }
    let found = qdiscs::roots(&mut reader.buffer).map_err(|e| ReadError(format!("rtnetlink, qdiscs: {e}")))?;
    for qdisc in found.into_iter().filter(|q| q.sent_bytes > 0 && q.kind != NO_QUEUE) {
        let Some(device) = qdiscs::name(qdisc.interface) else { continue };
        let labels = Labels::new([("device", device)]);
        out.put(metrics::host::NETWORK_QDISC_BACKLOG_BYTES, labels.clone(), f64::from(qdisc.backlog_bytes));
        out.put(metrics::host::NETWORK_QDISC_DROPPED, labels.clone(), f64::from(qdisc.dropped));
        out.put(metrics::host::NETWORK_QDISC_OVERLIMITS, labels, f64::from(qdisc.overlimits));
    }
    Ok(())
}

/// Largest number of interfaces whose settings are read.
const INTERFACES_MAX: usize = 200;

/// Settings of each interface: `net.DEV.speed_bits_per_second` if its driver reports it,
/// `net.DEV.driver` of hardware, `net.DEV.qdisc`, and `net.DEV.shaper_bytes_per_second` of a token bucket.
pub(super) fn settings(proc: &Proc) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for device in entries(&proc.path(Tree::Sys, "class/net")).into_iter().take(INTERFACES_MAX) {
        let megabits = proc.word(Tree::Sys, &format!("class/net/{device}/speed")).and_then(|v| v.parse::<i64>().ok());
        // -1: the driver does not know.
        if let Some(megabits) = megabits.filter(|v| *v > 0) {
            found.push((format!("net.{device}.speed_bits_per_second"), (megabits * 1_000_000).to_string()));
        }
        let driver = std::fs::read_link(proc.path(Tree::Sys, &format!("class/net/{device}/device/driver"))).ok();
        if let Some(name) = driver.as_deref().and_then(|link| link.file_name()) {
            found.push((format!("net.{device}.driver"), name.to_string_lossy().into_owned()));
        }
    }
    if !proc.is_live() {
        return found;
    }
    for qdisc in qdiscs::roots(&mut Vec::new()).unwrap_or_default().into_iter().take(INTERFACES_MAX) {
        let Some(device) = qdiscs::name(qdisc.interface) else { continue };
        if let Some(rate) = qdisc.rate_bytes_per_second {
            found.push((format!("net.{device}.shaper_bytes_per_second"), rate.to_string()));
        }
        found.push((format!("net.{device}.qdisc"), qdisc.kind));
    }
    found
}

/// Where each counter is: file, protocol line, the kernel's name; then our name for it.
const TCP: [(&str, &str, &str, Metric); 6] = [
    ("net/snmp", "Tcp:", "RetransSegs", metrics::tcp::RETRANSMITTED_SEGMENTS),
    ("net/snmp", "Tcp:", "OutSegs", metrics::tcp::SENT_SEGMENTS),
    ("net/snmp", "Tcp:", "ActiveOpens", metrics::tcp::ACTIVE_OPENS),
    ("net/snmp", "Tcp:", "PassiveOpens", metrics::tcp::PASSIVE_OPENS),
    ("net/netstat", "TcpExt:", "ListenOverflows", metrics::tcp::LISTEN_OVERFLOWS),
    ("net/netstat", "TcpExt:", "ListenDrops", metrics::tcp::LISTEN_DROPS),
];

/// The same for counters that some kernels lack.
const TCP_LATER: [(&str, &str, &str, Metric); 7] = [
    ("net/snmp", "Tcp:", "InSegs", metrics::tcp::RECEIVED_SEGMENTS),
    ("net/netstat", "TcpExt:", "TCPTimeouts", metrics::tcp::RETRANSMISSION_TIMEOUTS),
    ("net/netstat", "TcpExt:", "TCPSynRetrans", metrics::tcp::SYN_RETRANSMITS),
    ("net/netstat", "TcpExt:", "TCPLostRetransmit", metrics::tcp::LOST_RETRANSMITS),
    ("net/netstat", "TcpExt:", "TCPFastRetrans", metrics::tcp::FAST_RETRANSMITS),
    ("net/netstat", "TcpExt:", "TCPLossProbes", metrics::tcp::LOSS_PROBES),
    ("net/netstat", "TcpExt:", "TCPBacklogDrop", metrics::tcp::BACKLOG_DROPS),
];

/// Connections that were refused a place in an accept queue, from `file` (`net/netstat`, or
/// `71/net/netstat` for the network namespace of a process).
pub(crate) fn listen(proc: &Proc, file: &str, buffer: &mut Vec<u8>, out: &mut Out) -> Result<(), ReadError> {
    let text = proc.read_lines(file, buffer)?;
    for (_, protocol, kernel_name, metric) in
        TCP.iter().filter(|(.., metric)| [metrics::tcp::LISTEN_OVERFLOWS, metrics::tcp::LISTEN_DROPS].contains(metric))
    {
        let value = column(text, protocol, kernel_name);
        out.put_plain(metric, number(&format!("/proc/{file}"), kernel_name, value)?);
    }
    Ok(())
}

/// Retransmissions, expired timers, and connections that were refused a place in an accept queue.
pub(super) fn tcp(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    for file in ["net/snmp", "net/netstat"] {
        out.begin();
        let text = reader.proc.read_lines(file, &mut reader.buffer)?;
        for (_, protocol, kernel_name, metric) in TCP.iter().filter(|(of, ..)| *of == file) {
            let value = column(text, protocol, kernel_name);
            out.put_plain(metric, number(&format!("/proc/{file}"), kernel_name, value)?);
        }
        for (_, protocol, kernel_name, metric) in TCP_LATER.iter().filter(|(of, ..)| *of == file) {
            // A named counter has a value; without one the file was cut off.
            if names(text, protocol).is_some_and(|mut names| names.any(|name| name == *kernel_name)) {
                let value = column(text, protocol, kernel_name);
                out.put_plain(metric, number(&format!("/proc/{file}"), kernel_name, value)?);
            }
        }
    }
    Ok(())
}

/// The names in the first of a protocol's two lines.
fn names<'a>(text: &'a str, protocol: &str) -> Option<impl Iterator<Item = &'a str>> {
    let is_of = |line: &&str| line.split_ascii_whitespace().next() == Some(protocol);
    text.lines().find(is_of).map(str::split_ascii_whitespace)
}

/// The value of `name`. These files have two lines per protocol: names, then values in the same
/// order.
fn column<'a>(text: &'a str, protocol: &str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter(|line| line.split_ascii_whitespace().next() == Some(protocol));
    let position = lines.next()?.split_ascii_whitespace().position(|field| field == name)?;
    lines.next()?.split_ascii_whitespace().nth(position)
}
