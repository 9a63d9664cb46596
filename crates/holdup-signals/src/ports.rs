//! Where databases listen, and the poolers in front of them.

use std::collections::BTreeSet;

use holdup_recording::metrics;

use crate::View;

/// Ports at which a database listens: from the watched addresses, and from the packets.
pub fn database_ports(view: &View<'_>) -> BTreeSet<String> {
    let tables = &view.recording.tables;
    let of_packets = tables.exchanges.rows.iter().map(|e| e.server.as_str());
    // To an app, a pooler is the database.
    let is_database = |s: &&str| ["mysql", "postgres", "mariadb", "pgbouncer"].iter().any(|of| s.starts_with(of));
    let coverage = view.recording.manifest.coverage.iter().map(|c| c.source.as_str());
    // The first word of coverage `mysql://user@host:3306 statement history` is the address.
    let watched = coverage
        .chain(view.sources_of(metrics::mysql::SESSIONS.name))
        .chain(view.sources_of(metrics::postgresql::SESSIONS.name))
        .chain(view.sources_of(metrics::pgbouncer::WAITING_CLIENTS.name));
    let watched = watched.filter(is_database).filter_map(|s| s.split_whitespace().next());
    let spans = tables.spans.rows.iter().filter(|s| s.resource == "database").filter_map(|s| s.peer.as_deref());
    let address = |text: &str| {
        let text = text.split_once("://").map_or(text, |(_, rest)| rest);
        let text = text.split(['/', '?']).next().unwrap_or(text);
        text.rsplit_once(':').map(|(_, port)| port.to_owned())
    };
    let mut ports: BTreeSet<String> = of_packets.chain(watched).chain(spans).filter_map(address).collect();
    ports.retain(|port| port.parse::<u16>().is_ok());
    ports
}
