//! Selects from `pg_replication_slots`: which slots have no reader, and how much write-ahead log each
//! keeps, by a column that says so, by the server's own position, or at least by how far the slot is
//! behind the others.

use holdup_recording::Labels;
use holdup_recording::metrics::postgresql;

use super::pg_units::position;
use super::postgresql::SOURCE;
use super::{Columns, Context, Kind, Row, Table, number, size};

pub(super) const KIND: Kind = Kind::table("pg_replication_slots", recognises, read);

/// The server's own position, by the function that gives it.
const HERE: [&str; 4] =
    ["pg_current_wal_lsn", "pg_current_wal_insert_lsn", "pg_current_xlog_location", "pg_last_wal_receive_lsn"];

/// Positions of a slot.
const POSITIONS: [&str; 2] = ["restart_lsn", "confirmed_flush_lsn"];

/// Columns that are known to say something else.
const OTHERS: [&str; 12] = [
    "datoid",
    "active_pid",
    "xmin",
    "catalog_xmin",
    "safe_wal_size",
    "slot_name",
    "plugin",
    "slot_type",
    "database",
    "wal_status",
    "active",
    "temporary",
];

fn recognises(columns: &Columns<'_>) -> bool {
    columns.has_any(&["slot_name"])
        && columns.has_any(&["active", "restart_lsn", "wal_status", "active_pid", "slot_type"])
}

fn read(table: &Table, context: &mut Context) {
    let at = context.instant_of(KIND.name);
    // Only the server itself, or a reader that follows, is at the end of the log.
    let positions = table.rows().flat_map(|row| {
        let of_slot = if is_active(&row) == Some(true) { &POSITIONS[..] } else { &[] };
        let places = HERE.iter().chain(of_slot).filter_map(|name| row.text(&[name]).and_then(position));
        places.collect::<Vec<_>>()
    });
    let furthest = positions.reduce(f64::max);
    for row in table.rows() {
        let Some(name) = row.text(&["slot_name"]) else { continue };
        let active = is_active(&row);
        let mut labels = Labels::new([("slot", name)]);
        if let Some(active) = active {
            let is_active = f64::from(u8::from(active));
            context.out.gauge(at, SOURCE, postgresql::REPLICATION_SLOT_ACTIVE.name, labels.clone(), is_active);
        }
        if let Some(active) = active {
            labels = labels.with("active", if active { "1" } else { "0" });
        }
        let status = row.text(&["wal_status"]);
        if let Some(status) = status {
            labels = labels.with("wal_status", status);
        }
        let by_position =
            || furthest.zip(row.text(&POSITIONS[..1]).and_then(position)).map(|(furthest, from)| furthest - from);
        // A slot whose log is gone keeps none.
        let lost = (status == Some("lost")).then_some(0.0);
        if let Some(kept) = stated(&row).or_else(by_position).or(lost) {
            context.out.gauge(at, SOURCE, postgresql::REPLICATION_SLOT_RETAINED_BYTES.name, labels.clone(), kept);
        }
        if let Some(safe) = row.number(&["safe_wal_size"]) {
            context.out.gauge(at, SOURCE, postgresql::REPLICATION_SLOT_SAFE_WAL_SIZE.name, labels, safe);
        }
    }
}

/// Whether the slot has a reader, if the row says so.
fn is_active(row: &Row<'_, '_>) -> Option<bool> {
    match row.text(&["active"]) {
        Some(active) => Some(active.starts_with('t')),
        None => row.has_any(&["active_pid"]).then(|| row.text(&["active_pid"]).is_some()),
    }
}

/// The bytes that the select worked out, whatever it called them: `pg_size_pretty` writes the unit, and
/// a plain number is one of bytes if its column's name speaks of log or lag.
fn stated(row: &Row<'_, '_>) -> Option<f64> {
    row.cells().filter(|(name, _)| !OTHERS.contains(name)).find_map(|(name, cell)| {
        let cell = cell?.trim();
        let (value, unit) = cell.split_once(' ').unwrap_or((cell, ""));
        if matches!(unit, "bytes" | "kB" | "MB" | "GB" | "TB") {
            return size(&format!("{value}{}", unit.replace("bytes", "B")), 1.0, 1024.0);
        }
        let words = ["byte", "retain", "lag", "diff", "behind", "held", "kept", "holds"];
        let is_bytes = unit.is_empty() && words.iter().any(|word| name.to_lowercase().contains(word));
        is_bytes.then(|| number(cell)).flatten()
    })
}
