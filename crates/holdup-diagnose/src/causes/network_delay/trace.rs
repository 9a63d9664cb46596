//! The network between clients and the server is slow: congestion, loss, a slow link.
//!
//! Bytes both ways, the server's work and its writes fall together while the machine goes idle:
//! nothing reaches it. Whatever continues inside while clients hear nothing refutes it: page
//! writes, scans, log, growing answers.

use crate::trace::Pattern;
use crate::trace::quantities::{COMMITS, IDLE, LOG, PAGES, RECEIVED, REQUESTS, SCANNED, SENT, SERVER_CPU};
use crate::trace::view::{View, all, any, group};
use crate::trace::votes::Votes;

pub const PATTERN: Pattern = Pattern {
    name: "network_delay",
    title: "the network between clients and the server is slow",
    fix: Some(
        "Measure the path from the clients' side (holdup watch --watch host there: retransmissions, and connect times), look for a changed route, a full link or a bad port. With fewer statements per transaction, a service depends less on the network.",
    ),
    account,
};

fn account(seen: &View) -> Votes {
    Votes::new()
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
            "work continues inside the server",
            any([seen.up(&SCANNED, 2.0), seen.up(&LOG, 1.0), seen.up(&SENT, 1.0), seen.up(&PAGES, 1.0)]),
        )
        .refutes(1.0, "the CPU has less idle time", seen.down(&IDLE, 1.0))
}
