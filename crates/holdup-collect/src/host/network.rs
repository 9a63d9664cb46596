//! Interfaces and TCP's own error counters: `/proc/net/{dev,snmp,netstat}`, of this network namespace.

use holdup_recording::Labels;

use super::Reader;
use crate::ReadError;
use crate::proc::number;
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

/// Where a counter is: file, protocol line, the kernel's name; and our name for it.
const TCP: [(&str, &str, &str, &str); 6] = [
    ("net/snmp", "Tcp:", "RetransSegs", "tcp_retransmitted_segments_total"),
    ("net/snmp", "Tcp:", "OutSegs", "tcp_sent_segments_total"),
    ("net/snmp", "Tcp:", "ActiveOpens", "tcp_active_opens_total"),
    ("net/snmp", "Tcp:", "PassiveOpens", "tcp_passive_opens_total"),
    ("net/netstat", "TcpExt:", "ListenOverflows", "tcp_listen_overflows_total"),
    ("net/netstat", "TcpExt:", "ListenDrops", "tcp_listen_drops_total"),
];

/// Retransmits, and connections that were refused a place in an accept queue.
pub(super) fn tcp(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    for file in ["net/snmp", "net/netstat"] {
        out.begin();
        let text = reader.proc.read_lines(file, &mut reader.buffer)?;
        for (_, protocol, kernel_name, metric) in TCP.iter().filter(|(of, ..)| *of == file) {
            let value = column(text, protocol, kernel_name);
            out.put_plain(metric, number(&format!("/proc/{file}"), kernel_name, value)?);
        }
    }
    Ok(())
}

/// These files have two lines a protocol: names, then values in the same order.
fn column<'a>(text: &'a str, protocol: &str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter(|line| line.split_ascii_whitespace().next() == Some(protocol));
    let position = lines.next()?.split_ascii_whitespace().position(|field| field == name)?;
    lines.next()?.split_ascii_whitespace().nth(position)
}
