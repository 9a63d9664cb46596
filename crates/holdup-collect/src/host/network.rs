//! Interfaces, the queues in front of them and TCP's own error counters: `/proc/net/{dev,snmp,netstat}` and rtnetlink, of this
//! network namespace. Single connections are for `queues`.

use holdup_recording::Labels;

use super::Reader;
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
            for (offset, what) in ["io_bytes", "packets", "errors", "dropped"].into_iter().enumerate() {
                let labels = Labels::of([("device", device), ("direction", direction)]);
                out.put(&format!("system_network_{what}_total"), labels, values[first + offset]);
            }
        }
    }
    Ok(())
}

/// Kind of an interface that has no queue.
const NO_QUEUE: &str = "noqueue";

/// The queue in front of every interface that has sent something through it.
pub(super) fn queues(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    if !reader.proc.is_live() {
        return Ok(());
    }
    let found = qdiscs::roots(&mut reader.buffer).map_err(|e| ReadError(format!("rtnetlink, qdiscs: {e}")))?;
    for qdisc in found.into_iter().filter(|q| q.sent_bytes > 0 && q.kind != NO_QUEUE) {
        let Some(device) = qdiscs::name(qdisc.interface) else { continue };
        let labels = Labels::of([("device", device)]);
        out.put("system_network_qdisc_backlog_bytes", labels.clone(), f64::from(qdisc.backlog_bytes));
        out.put("system_network_qdisc_dropped_total", labels.clone(), f64::from(qdisc.dropped));
        out.put("system_network_qdisc_overlimits_total", labels, f64::from(qdisc.overlimits));
    }
    Ok(())
}

/// Most interfaces whose settings are read.
const INTERFACES_MAX: usize = 200;

/// What each interface is set to: `net.DEV.speed_bits_per_second`, where its driver tells, `net.DEV.qdisc`, and
/// `net.DEV.shaper_bytes_per_second` of a token bucket.
pub(super) fn settings(proc: &Proc) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let folder = std::fs::read_dir(proc.path(Tree::Sys, "class/net"));
    let entries = folder.into_iter().flatten().flatten().take(INTERFACES_MAX);
    let mut devices: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    devices.sort();
    for device in devices {
        let megabits = proc.word(Tree::Sys, &format!("class/net/{device}/speed")).and_then(|v| v.parse::<i64>().ok());
        // -1: the driver does not know.
        if let Some(megabits) = megabits.filter(|v| *v > 0) {
            found.push((format!("net.{device}.speed_bits_per_second"), (megabits * 1_000_000).to_string()));
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

/// Where a counter is: file, protocol line, the kernel's name; and our name for it.
const TCP: [(&str, &str, &str, &str); 6] = [
    ("net/snmp", "Tcp:", "RetransSegs", "tcp_retransmitted_segments_total"),
    ("net/snmp", "Tcp:", "OutSegs", "tcp_sent_segments_total"),
    ("net/snmp", "Tcp:", "ActiveOpens", "tcp_active_opens_total"),
    ("net/snmp", "Tcp:", "PassiveOpens", "tcp_passive_opens_total"),
    ("net/netstat", "TcpExt:", "ListenOverflows", "tcp_listen_overflows_total"),
    ("net/netstat", "TcpExt:", "ListenDrops", "tcp_listen_drops_total"),
];

/// The same of counters that not every kernel has.
const TCP_LATER: [(&str, &str, &str, &str); 7] = [
    ("net/snmp", "Tcp:", "InSegs", "tcp_received_segments_total"),
    ("net/netstat", "TcpExt:", "TCPTimeouts", "tcp_retransmission_timeouts_total"),
    ("net/netstat", "TcpExt:", "TCPSynRetrans", "tcp_syn_retransmits_total"),
    ("net/netstat", "TcpExt:", "TCPLostRetransmit", "tcp_lost_retransmits_total"),
    ("net/netstat", "TcpExt:", "TCPFastRetrans", "tcp_fast_retransmits_total"),
    ("net/netstat", "TcpExt:", "TCPLossProbes", "tcp_loss_probes_total"),
    ("net/netstat", "TcpExt:", "TCPBacklogDrop", "tcp_backlog_drops_total"),
];

/// What `file` (`net/netstat`, or `71/net/netstat` for the network that a process is in) says of connections that were refused a
/// place in an accept queue.
pub(crate) fn listen(proc: &Proc, file: &str, buffer: &mut Vec<u8>, out: &mut Out) -> Result<(), ReadError> {
    let text = proc.read_lines(file, buffer)?;
    for (_, protocol, kernel_name, metric) in TCP.iter().filter(|(.., metric)| metric.starts_with("tcp_listen_")) {
        let value = column(text, protocol, kernel_name);
        out.put_plain(metric, number(&format!("/proc/{file}"), kernel_name, value)?);
    }
    Ok(())
}

/// Retransmits, timers that ended, and connections that were refused a place in an accept queue.
pub(super) fn tcp(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    for file in ["net/snmp", "net/netstat"] {
        out.begin();
        let text = reader.proc.read_lines(file, &mut reader.buffer)?;
        for (_, protocol, kernel_name, metric) in TCP.iter().filter(|(of, ..)| *of == file) {
            let value = column(text, protocol, kernel_name);
            out.put_plain(metric, number(&format!("/proc/{file}"), kernel_name, value)?);
        }
        for (_, protocol, kernel_name, metric) in TCP_LATER.iter().filter(|(of, ..)| *of == file) {
            // One that is named has a value; without one the file was cut off.
            if names(text, protocol).is_some_and(|mut names| names.any(|name| name == *kernel_name)) {
                let value = column(text, protocol, kernel_name);
                out.put_plain(metric, number(&format!("/proc/{file}"), kernel_name, value)?);
            }
        }
    }
    Ok(())
}

/// The first of a protocol's two lines.
fn names<'a>(text: &'a str, protocol: &str) -> Option<impl Iterator<Item = &'a str>> {
    let is_of = |line: &&str| line.split_ascii_whitespace().next() == Some(protocol);
    text.lines().find(is_of).map(str::split_ascii_whitespace)
}

/// These files have two lines a protocol: names, then values in the same order.
fn column<'a>(text: &'a str, protocol: &str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter(|line| line.split_ascii_whitespace().next() == Some(protocol));
    let position = lines.next()?.split_ascii_whitespace().position(|field| field == name)?;
    lines.next()?.split_ascii_whitespace().nth(position)
}
