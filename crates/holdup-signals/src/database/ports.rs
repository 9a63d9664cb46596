//! Where databases listen, and the poolers in front of them.

use std::collections::BTreeSet;

use holdup_recording::metrics;

use crate::View;

/// Where ProxySQL listens for apps if its settings were not recorded.
const PROXYSQL: &str = "0.0.0.0:6033";

/// Ports at which a database listens: from the watched addresses, and from the packets. To an app, a
/// pooler is the database.
pub fn database_ports(view: &View<'_>) -> BTreeSet<String> {
    let tables = &view.recording.tables;
    let of_packets = tables.exchanges.rows.iter().map(|e| e.server.as_str());
    let spans = tables.spans.rows.iter().filter(|s| s.resource == "database").filter_map(|s| s.peer.as_deref());
    let poolers = watched(view, &[metrics::pgbouncer::WAITING_CLIENTS.name], &["pgbouncer"]);
    let mut ports = watched_database_ports(view);
    ports.extend(of_packets.chain(spans).filter_map(port).chain(poolers).chain(proxysql(view)));
    ports
}

/// Where ProxySQL listens for apps, if it was watched: that is another port than that of its source.
fn proxysql(view: &View<'_>) -> Vec<String> {
    let watched = watched(view, &[metrics::proxysql::WAITING_CLIENTS.name], &["proxysql"]);
    if watched.is_empty() {
        return Vec::new();
    }
    let interfaces = view.setting("mysql-interfaces", "").unwrap_or(PROXYSQL);
    interfaces.split(';').filter_map(port).collect()
}

/// The ports of watched databases alone: what the server says of itself belongs to connections to
/// these, not to those of a pooler in front of it.
pub fn watched_database_ports(view: &View<'_>) -> BTreeSet<String> {
    let sessions = [metrics::mysql::SESSIONS.name, metrics::postgresql::SESSIONS.name];
    watched(view, &sessions, &["mysql", "postgres", "mariadb"])
}

/// Ports of the sources of these kinds that were watched or have one of the metrics.
fn watched(view: &View<'_>, metrics: &[&str], kinds: &[&str]) -> BTreeSet<String> {
    let coverage = view.recording.manifest.coverage.iter().map(|c| c.source.as_str());
    let sources = coverage.chain(metrics.iter().flat_map(|metric| view.sources_of(metric)));
    let of_kind = sources.filter(|source| kinds.iter().any(|kind| source.starts_with(kind)));
    // The first word of coverage `mysql://user@host:3306 statement history` is the address.
    of_kind.filter_map(|source| port(source.split_whitespace().next()?)).collect()
}

/// The port of `postgresql://user@host:5432/shop` or `host:5432`.
fn port(address: &str) -> Option<String> {
    let address = address.split_once("://").map_or(address, |(_, rest)| rest);
    let address = address.split(['/', '?']).next().unwrap_or(address);
    let (_, port) = address.rsplit_once(':')?;
    port.parse::<u16>().is_ok().then(|| port.to_owned())
}
