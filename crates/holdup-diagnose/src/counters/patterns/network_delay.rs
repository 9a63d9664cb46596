//! The network between clients and the server delays what they say: congestion, loss, a slow link.
//!
//! Bytes both ways, the server's work and what it writes fall together while the machine goes idle: nothing reaches it.
//! It is refuted by whatever goes on inside while clients hear nothing: page writes, scans, log, answers that grow.

use super::quantities::{COMMITS, IDLE, LOG, PAGES, RECEIVED, REQUESTS, SCANNED, SENT, SERVER_CPU};
use super::{Doc, Pattern};
use crate::counters::judge::Account;
use crate::counters::view::{View, all, any, group};

pub const PATTERN: Pattern = Pattern {
    name: "network_delay",
    cause: "network_delay",
    title: "the network between clients and the server is slow",
    fix: Some(
        "Measure the path from where the clients are (holdup watch --watch host there: retransmissions, and the time a connection takes), look for a changed route, a full link or a bad port. Fewer statements a transaction make a service need less of the network.",
    ),
    doc: Some(Doc {
        what: "What clients send reaches the server late, and its answers them: loss, congestion, a slow link, a path through another region.",
        hurts: "A transaction of many statements pays the delay for each of them, and holds its rows meanwhile. The server itself goes idle.",
        looks_like: "Clients that ask for less (then nobody waits), a lock over the whole server (then pages go on being written), row locks (the delay makes waits for them longer, too).",
        references: "Linux kernel documentation: /proc/net/snmp, ip-sysctl (tcp_retries); ss(8).",
    }),
    account,
};

fn account(seen: &View) -> Account {
    Account::new()
        .defines(3.0, "bytes both ways fall together", all([seen.down(&RECEIVED, 1.0), seen.down(&SENT, 1.0)]))
        .supports(
            2.0,
            "the server has less to do",
            group([seen.down(&SERVER_CPU, 1.0), seen.down(&REQUESTS, 1.0), seen.down(&COMMITS, 1.0)]),
        )
        .supports(2.0, "it writes fewer pages", seen.down(&PAGES, 1.0))
        .supports(1.0, "the machine goes idle", seen.up(&IDLE, 0.5))
        .refutes(
            2.0,
            "something goes on inside",
            any([seen.up(&SCANNED, 2.0), seen.up(&LOG, 1.0), seen.up(&SENT, 1.0), seen.up(&PAGES, 1.0)]),
        )
        .refutes(1.0, "the CPU has less idle time", seen.down(&IDLE, 1.0))
}
