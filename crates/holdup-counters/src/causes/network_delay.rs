//! The network between clients and the server delays what they say: congestion, loss, a slow link.
//!
//! Bytes both ways, the server's work and what it writes fall together while the machine goes idle: nothing reaches it.
//! It is refuted by whatever goes on inside while clients hear nothing: page writes, scans, log, answers that grow.

use super::Cause;
use super::quantities::{COMMITS, IDLE, LOG, PAGES, RECEIVED, REQUESTS, SCANNED, SENT, SERVER_CPU};
use crate::judge::Account;
use crate::view::{View, all, any, group};

pub const CAUSE: Cause =
    Cause { slug: "network_delay", title: "the network between clients and the server is slow", account };

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
}
