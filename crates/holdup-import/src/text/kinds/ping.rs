//! Probes of the network: `ping`'s summary, on any system, and the last hop of `mtr --report`. Routers on the
//! way answer few probes, so that their own losses say nothing.

use holdup_recording::{Labels, metrics};

use super::{Context, Kind, Line, number, text};

pub(super) const KIND: Kind = Kind::lines("ping", |lines| summary(text(lines, 0)).is_some(), read);

pub(super) const MTR: Kind = Kind::lines("mtr", |lines| is_mtr(text(lines, 0)), read_mtr);

/// Probes sent, and the share (0-1) that was lost: `100 packets transmitted, 93 received, 7% packet loss`,
/// `Packets: Sent = 4, Received = 3, Lost = 1 (25% loss)`.
fn summary(line: &str) -> Option<(f64, f64)> {
    let before = |words: &str| {
        let (head, _) = line.split_once(words)?;
        head.trim_end_matches(['%', ' ']).rsplit([' ', ',', '(']).next().and_then(number)
    };
    let lost = before("% packet loss").or_else(|| before("% loss)"))? / 100.0;
    let sent = before(" packets transmitted").or_else(|| {
        let (_, rest) = line.split_once("Sent = ")?;
        number(rest.split([',', ' ']).next()?)
    })?;
    (0.0..=1.0).contains(&lost).then_some((sent, lost))
}

fn put(at: i64, peer: &str, (sent, lost): (f64, f64), context: &mut Context) {
    let labels = || Labels::new([("peer", peer)]);
    context.out.host(at, metrics::host::NETWORK_PROBES, labels(), sent);
    context.out.host(at, metrics::host::NETWORK_PROBE_LOSS_RATIO, labels(), lost);
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of(KIND.name);
    if let Some(found) = summary(text(lines, 0)) {
        put(at, "", found, context);
    }
    // `rtt min/avg/max/mdev = …`
    if text(lines, 1).contains("min/avg/max") { 2 } else { 1 }
}

/// `HOST: web1   Loss%   Snt   Last   Avg  Best  Wrst StDev`
fn is_mtr(line: &str) -> bool {
    line.contains("Loss%") && line.contains("Snt") && line.contains("Avg")
}

fn read_mtr(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of(MTR.name);
    let hop = |line: &Line| {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let place = words.iter().position(|word| word.ends_with('%'))?;
        let lost = number(words.get(place)?)? / 100.0;
        let sent = number(words.get(place + 1)?)?;
        Some(((*words.get(place.checked_sub(1)?)?).to_owned(), (sent, lost)))
    };
    let hops: Vec<_> = lines.iter().skip(1).map_while(hop).collect();
    if let Some((peer, found)) = hops.last().filter(|(_, (_, lost))| (0.0..=1.0).contains(lost)) {
        put(at, peer, *found, context);
    }
    1 + hops.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_any_system_tells_what_was_lost() {
        for (line, expected) in [
            ("100 packets transmitted, 93 received, 7% packet loss, time 99123ms", (100.0, 0.07)),
            ("10 packets transmitted, 9 packets received, 10.0% packet loss", (10.0, 0.1)),
            ("20 packets transmitted, 18 received, +2 errors, 10% packet loss, time 19ms", (20.0, 0.1)),
            ("    Packets: Sent = 4, Received = 3, Lost = 1 (25% loss),", (4.0, 0.25)),
        ] {
            assert_eq!(summary(line), Some(expected), "{line}");
        }
        assert_eq!(summary("we see 7% packet loss"), None);
    }

    #[test]
    fn the_last_hop_of_a_route_counts() {
        let report = "HOST: web1                        Loss%   Snt   Last   Avg  Best  Wrst StDev\n  1.|-- 10.0.0.1                  80.0%    50    0.3   0.4   0.2   1.0   0.1\n  2.|-- db.example                 6.0%    50    9.3   9.4   9.2  11.0   0.1\n";
        let mut context = Context::default();
        assert_eq!(read_mtr(&super::super::super::paste::lines(report.as_bytes(), |_| false), &mut context), 3);
        let rows: Vec<(Option<&str>, f64)> =
            context.out.batch.samples.iter().map(|row| (row.labels.get("peer"), row.value)).collect();
        assert_eq!(rows, [(Some("db.example"), 50.0), (Some("db.example"), 0.06)]);
    }
}
