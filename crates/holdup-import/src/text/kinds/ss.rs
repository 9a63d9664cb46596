//! `ss -ltn`: length and limit of the accept queue of each listening port. For a listening socket
//! the column Recv-Q is its queue, Send-Q its limit.

use std::collections::BTreeMap;

use holdup_recording::{Labels, metrics};

use super::super::context::Context;
use super::super::number::number;
use super::super::out::HOST;
use super::super::paste::Line;
use super::{Kind, rows, text};

pub(super) const KIND: Kind = Kind { name: "ss -ltn", recognises, read };

fn recognises(lines: &[Line]) -> bool {
    let first = text(lines, 0);
    first.contains("State") && first.contains("Recv-Q") && first.contains("Send-Q")
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of("ss -ltn");
    let mut ports: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    let mut used = 1;
    for line in rows(lines, recognises) {
        used += 1;
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let Some(state) = words.iter().position(|word| *word == "LISTEN").filter(|place| *place <= 1) else { continue };
        let value = |after: usize| words.get(state + after).and_then(|word| number(word));
        let port = words.get(state + 3).and_then(|address| address.rsplit(':').next());
        let port = port.filter(|port| port.parse::<u16>().is_ok());
        if let (Some(queue), Some(limit), Some(port)) = (value(1), value(2), port) {
            let of_port = ports.entry(port).or_insert((0.0, 0.0));
            *of_port = (of_port.0 + queue, of_port.1 + limit);
        }
    }
    for (port, (queue, limit)) in ports {
        let labels = Labels::new([("port", port)]);
        context.out.gauge(at, HOST, metrics::tcp::ACCEPT_QUEUE_LENGTH.name, labels.clone(), queue);
        context.out.gauge(at, HOST, metrics::tcp::ACCEPT_QUEUE_LIMIT.name, labels, limit);
    }
    used
}
