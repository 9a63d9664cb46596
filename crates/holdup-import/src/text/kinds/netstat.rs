//! `netstat -s` and `nstat -az`: the counters of TCP that the collector reads from `/proc/net`.

use holdup_recording::Labels;
use holdup_recording::metrics::{self, Metric};

use super::{Context, HOST, Kind, Line, number, text};

pub(super) const KIND: Kind = Kind::lines("netstat -s", recognises, read);

/// The words of `netstat -s` after the number, the name in `nstat`, and the metric.
const COUNTERS: [(&str, &str, Metric); 6] = [
    ("times the listen queue of a socket overflowed", "TcpExtListenOverflows", metrics::tcp::LISTEN_OVERFLOWS),
    ("SYNs to LISTEN sockets", "TcpExtListenDrops", metrics::tcp::LISTEN_DROPS),
    ("segments retransmi", "TcpRetransSegs", metrics::tcp::RETRANSMITTED_SEGMENTS),
    ("segments sen", "TcpOutSegs", metrics::tcp::SENT_SEGMENTS),
    ("segments received", "TcpInSegs", metrics::tcp::RECEIVED_SEGMENTS),
    ("passive connection open", "TcpPassiveOpens", metrics::tcp::PASSIVE_OPENS),
];

fn recognises(lines: &[Line]) -> bool {
    let first = text(lines, 0);
    matches!(first.trim_end(), "Ip:" | "Tcp:" | "TcpExt:" | "#kernel") || counter(first).is_some()
}

/// The metric and its value in a line.
fn counter(line: &str) -> Option<(Metric, f64)> {
    let mut words = line.split_whitespace();
    let (first, second) = (words.next()?, words.next()?);
    if let Some((_, _, metric)) = COUNTERS.iter().find(|(_, name, _)| *name == first) {
        return Some((*metric, number(second)?));
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
        let is_own = line.text.starts_with(' ') || line.text.trim_end().ends_with(':') || counter(&line.text).is_some();
        if used > 0 && !is_own && !is_nstat {
            break;
        }
        if let Some((metric, value)) = counter(&line.text) {
            context.out.gauge(at, HOST, metric.name, Labels::none(), value);
        }
        used += 1;
    }
    used
}
