//! Where the clients of a database are.

use std::collections::BTreeSet;

use holdup_signals::database::ports::watched_database_ports;

use super::PENDING;
use crate::case::Case;

/// Whether a client of the database is known to be on another machine, or in a network of its own.
pub fn is_there(case: &Case<'_>) -> bool {
    clients(case).iter().any(|client| is_apart(client))
}

/// Whether all of the database's clients that are known are on its own machine.
pub fn is_local(case: &Case<'_>) -> bool {
    let clients = clients(case);
    !clients.is_empty() && !clients.iter().any(|client| is_apart(client))
}

fn is_apart(address: &str) -> bool {
    !["127.", "::1", "[::1]", "localhost", "/"].iter().any(|own| address.starts_with(own))
}

/// Addresses of the database's clients, as its sessions have them, and those at which they reach it.
fn clients<'r>(case: &'r Case<'_>) -> BTreeSet<&'r str> {
    let view = case.view(case.whole());
    let ports = watched_database_ports(&view);
    let peers = view.index.series(PENDING, &[]).filter_map(|((_, labels), _)| {
        labels.get("peer_port").filter(|port| ports.contains(*port)).and_then(|_| labels.get("peer"))
    });
    let sessions = &view.recording.tables.sessions.rows;
    let clients = sessions.iter().filter_map(|session| session.client.as_deref());
    peers.chain(clients).filter(|client| !client.is_empty()).collect()
}
