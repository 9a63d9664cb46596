//! Counters of network interfaces since boot: `netstat -i`, `ip -s link`, `ifconfig`. The tables of routes
//! beside them (`netstat -r`, `route -n`) hold no figure.

use holdup_recording::Labels;
use holdup_recording::metrics::{Metric, host};

use super::{Columns, Context, Kind, Line, number, text, until_blank};

pub(super) const KIND: Kind = Kind::lines("netstat -i", recognises, read);

pub(super) const IP_LINK: Kind = Kind::lines("ip -s link", |lines| interface(text(lines, 0)).is_some(), read_links);

pub(super) const ROUTES: Kind = Kind::lines(
    "routes",
    |lines| text(lines, 0).starts_with("Kernel IP") || is_route_header(text(lines, 0)),
    |lines, _| until_blank(lines).max(1),
);

/// Columns of `netstat -i`: name, metric, direction.
const COLUMNS: [(&str, Metric, &str); 6] = [
    ("RX-OK", host::NETWORK_PACKETS, "receive"),
    ("RX-ERR", host::NETWORK_ERRORS, "receive"),
    ("RX-DRP", host::NETWORK_DROPPED, "receive"),
    ("TX-OK", host::NETWORK_PACKETS, "transmit"),
    ("TX-ERR", host::NETWORK_ERRORS, "transmit"),
    ("TX-DRP", host::NETWORK_DROPPED, "transmit"),
];

/// Names in the lines of `ip` and `ifconfig`.
const NAMES: [(&str, Metric); 4] = [
    ("bytes", host::NETWORK_IO_BYTES),
    ("packets", host::NETWORK_PACKETS),
    ("errors", host::NETWORK_ERRORS),
    ("dropped", host::NETWORK_DROPPED),
];

fn is_route_header(line: &str) -> bool {
    Columns::new(line).has(&["Destination", "Gateway", "Genmask", "Iface"])
}

fn is_title(line: &str) -> bool {
    line.starts_with("Kernel Interface table")
}

fn recognises(lines: &[Line]) -> bool {
    let head = text(lines, usize::from(is_title(text(lines, 0))));
    Columns::new(head).has(&["Iface", "MTU", "RX-OK", "TX-OK"])
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of("netstat -i");
    let above = usize::from(is_title(text(lines, 0)));
    let columns = Columns::new(text(lines, above));
    let mut used = above + 1;
    for line in lines.iter().skip(used).take_while(|line| !line.is_blank()) {
        let row = columns.row(&line.text);
        // An alias has the words `no statistics available`.
        let Some(device) = row.text(&["Iface"]).filter(|_| row.number(&["MTU"]).is_some()) else { break };
        for (column, metric, direction) in COLUMNS {
            if let Some(value) = row.number(&[column]) {
                put(device, direction, metric, value, at, context);
            }
        }
        used += 1;
    }
    used
}

fn put(device: &str, direction: &str, metric: Metric, value: f64, at: i64, context: &mut Context) {
    context.out.total(at, metric, Labels::new([("device", device), ("direction", direction)]), value);
}

/// `2: eth0: <BROADCAST,UP> mtu 1500 …`, `eth0: flags=4163<UP>  mtu 1500`, `eth0      Link encap:Ethernet`
fn interface(line: &str) -> Option<&str> {
    let (first, rest) = line.split_once(' ')?;
    let is_ip = first.strip_suffix(':').is_some_and(|place| place.parse::<u32>().is_ok()) && rest.contains(" mtu ");
    let name = match () {
        () if is_ip => rest.split_once(": <")?.0,
        () if rest.starts_with("flags=") => first.strip_suffix(':')?,
        () if rest.trim_start().starts_with("Link encap:") => first,
        () => return None,
    };
    Some(name.split('@').next().unwrap_or(name))
}

fn read_links(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of("ip -s link");
    let mut device = "";
    let mut place = 0;
    while let Some(line) = lines.get(place) {
        let own = line.text.as_str();
        if let Some(name) = interface(own) {
            device = name;
        } else if !own.starts_with([' ', '\t']) && !line.is_blank() {
            break;
        }
        let own = own.trim_start();
        let direction = match own.get(..2) {
            Some("RX") => "receive",
            Some("TX") => "transmit",
            _ => "",
        };
        if !direction.is_empty() {
            place += usize::from(put_line(device, direction, own, text(lines, place + 1), at, context));
        }
        place += 1;
    }
    place
}

/// Adds what a line of `RX` or `TX` shows; whether the line below it has its values.
fn put_line(device: &str, direction: &str, line: &str, below: &str, at: i64, context: &mut Context) -> bool {
    let rest = line.get(2..).unwrap_or_default();
    if let Some(header) = rest.strip_prefix(':').filter(|_| rest.contains("bytes")) {
        let columns = Columns::new(header);
        let row = columns.row(below);
        let is_values = below.split_whitespace().all(|word| number(word).is_some()) && row.len() >= 2;
        for (name, metric) in NAMES.iter().filter(|_| is_values) {
            if let Some(value) = row.number(&[*name]) {
                put(device, direction, *metric, value, at, context);
            }
        }
        return is_values;
    }
    // `RX packets 12  bytes 34 (34.0 B)`, `RX packets:12 errors:0 dropped:0`
    let words: Vec<&str> = rest.split([' ', ':']).filter(|word| !word.is_empty()).collect();
    for pair in words.windows(2) {
        let [name, value] = pair else { continue };
        if let Some(((_, metric), value)) = NAMES.iter().find(|(known, _)| known == name).zip(number(value)) {
            put(device, direction, *metric, value, at, context);
        }
    }
    false
}
