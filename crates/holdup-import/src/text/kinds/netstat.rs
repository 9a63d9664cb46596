//! `netstat -s` and `nstat -az`: the counters of TCP that the collector reads from `/proc/net`.

use holdup_recording::Labels;
use holdup_recording::metrics::{self, Metric};

use super::{Context, Kind, Line, number, text};

pub(super) const KIND: Kind = Kind::lines("netstat -s", recognises, read);

/// The words of `netstat -s` after the number, the name in `nstat`, and the metric.
const COUNTERS: [(&str, &str, Metric); 15] = [
    ("times the listen queue of a socket overflowed", "TcpExtListenOverflows", metrics::tcp::LISTEN_OVERFLOWS),
    // Of FreeBSD.
    ("listen queue overflows", "ListenQueueOverflows", metrics::tcp::LISTEN_OVERFLOWS),
    ("SYNs to LISTEN sockets", "TcpExtListenDrops", metrics::tcp::LISTEN_DROPS),
    ("segments retransmi", "TcpRetransSegs", metrics::tcp::RETRANSMITTED_SEGMENTS),
    ("segments sen", "TcpOutSegs", metrics::tcp::SENT_SEGMENTS),
    ("segments received", "TcpInSegs", metrics::tcp::RECEIVED_SEGMENTS),
    ("passive connection open", "TcpPassiveOpens", metrics::tcp::PASSIVE_OPENS),
    ("active connection", "TcpActiveOpens", metrics::tcp::ACTIVE_OPENS),
    ("other TCP timeouts", "TcpExtTCPTimeouts", metrics::tcp::RETRANSMISSION_TIMEOUTS),
    ("fast retransmits", "TcpExtTCPFastRetrans", metrics::tcp::FAST_RETRANSMITS),
    // Without words of their own, their name stands before the number.
    ("TCPSynRetrans", "TcpExtTCPSynRetrans", metrics::tcp::SYN_RETRANSMITS),
    ("TCPLostRetransmit", "TcpExtTCPLostRetransmit", metrics::tcp::LOST_RETRANSMITS),
    ("TCPLossProbes", "TcpExtTCPLossProbes", metrics::tcp::LOSS_PROBES),
    ("TCPBacklogDrop", "TcpExtTCPBacklogDrop", metrics::tcp::BACKLOG_DROPS),
    ("TCPTimeouts", "TcpExtTCPTimeouts", metrics::tcp::RETRANSMISSION_TIMEOUTS),
];

/// The metric of a counter by its name in `nstat`.
pub(super) fn metric(name: &str) -> Option<Metric> {
    COUNTERS.iter().find(|(_, known, _)| *known == name).map(|(.., metric)| *metric)
}

fn recognises(lines: &[Line]) -> bool {
    let first = text(lines, 0);
    matches!(first.trim_end(), "Ip:" | "Tcp:" | "TcpExt:" | "#kernel") || counter(first).is_some()
}

/// The metric and its value in a line.
fn counter(line: &str) -> Option<(Metric, f64)> {
    let mut words = line.split_whitespace();
    let (first, second) = (words.next()?, words.next()?);
    if let Some(metric) = metric(first) {
        return Some((metric, number(second)?));
    }
    if let Some(name) = first.strip_suffix(':').filter(|name| name.starts_with("TCP")) {
        return Some((metric(&format!("TcpExt{name}"))?, number(second)?));
    }
    let value = number(first)?;
    let rest = line.trim_start().split_once(' ')?.1;
    let found = COUNTERS.iter().find(|(words, _, _)| rest.starts_with(words));
    found.map(|(_, _, metric)| (*metric, value))
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of("netstat -s");
    let is_nstat =
        text(lines, 0).starts_with("#kernel") || text(lines, 0).starts_with("Tcp") && !text(lines, 0).contains(':');
    let mut used = 0;
    for line in lines.iter().take_while(|line| !line.is_blank()) {
        let is_own =
            line.text.starts_with([' ', '\t']) || line.text.trim_end().ends_with(':') || counter(&line.text).is_some();
        if used > 0 && !is_own && !is_nstat {
            break;
        }
        if let Some((metric, value)) = counter(&line.text) {
            context.out.total(at, metric, Labels::none(), value);
        }
        used += 1;
    }
    used
}
