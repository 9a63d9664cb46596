//! What folders take: `du -sh FOLDER…`, and tables of how large a server's log is beside its data.

use holdup_recording::Labels;
use holdup_recording::metrics::host;

use super::{Columns, Context, Kind, Line, Table, size, text};

pub(super) const KIND: Kind = Kind::lines("du", |lines| folder(text(lines, 0)).is_some(), read);

pub(super) const LOG_TABLE: Kind = Kind::table("sizes of the log", is_of_log, read_log);

/// Columns with the size of PostgreSQL's log, and of its data.
const LOG: [&str; 7] = ["pg_wal", "pg_xlog", "wal", "wal size", "wal_size", "pg_wal size", "wal dir"];
const DATA: [&str; 6] = ["base", "data", "base data", "data size", "base size", "pgdata"];

/// `1.2G  /var/lib/mysql`: bytes, if a unit is there, and the path.
fn folder(line: &str) -> Option<(f64, &str)> {
    let (amount, path) = line.trim().split_once(char::is_whitespace)?;
    let path = path.trim();
    let is_path = path.starts_with(['/', '.', '~']) || path.contains('/');
    let has_unit = amount.ends_with(['K', 'M', 'G', 'T', 'B']) && amount.starts_with(|c: char| c.is_ascii_digit());
    if !is_path || !has_unit || path.contains(char::is_whitespace) {
        return None;
    }
    Some((size(amount, 1.0, 1024.0)?, path))
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of(KIND.name);
    let folders: Vec<(f64, &str)> = lines.iter().map_while(|line| folder(&line.text)).collect();
    for (bytes, path) in &folders {
        put(at, path, *bytes, context);
    }
    folders.len()
}

fn put(at: i64, path: &str, bytes: f64, context: &mut Context) {
    context.out.host(at, host::FOLDER_BYTES, Labels::new([("path", path)]), bytes);
}

fn is_of_log(columns: &Columns<'_>) -> bool {
    columns.has_any(&LOG) && columns.len() <= 10
}

/// Bytes of a cell with its unit: `11 GB`, `**25 GB**`.
fn bytes(cell: &str) -> Option<f64> {
    let plain: String = cell.chars().filter(|c| !matches!(c, '*' | '`' | ' ' | '~')).collect();
    size(&plain, 1.0, 1024.0).filter(|_| plain.ends_with(|c: char| c.is_ascii_alphabetic()))
}

fn read_log(table: &Table, context: &mut Context) {
    let at = context.instant_of(LOG_TABLE.name);
    for row in table.rows() {
        let whose = row.cells().next().and_then(|(_, first)| first).unwrap_or_default();
        for (columns, name) in [(&LOG[..], "pg_wal"), (&DATA[..], "base")] {
            if let Some(bytes) = row.text(columns).and_then(bytes) {
                put(at, &format!("{whose}/{name}"), bytes, context);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_with_its_unit_and_a_path() {
        assert_eq!(folder("87G\t/srv/pg/data/pg_wal"), Some((87.0 * 1024.0 * 1024.0 * 1024.0, "/srv/pg/data/pg_wal")));
        assert_eq!(folder("1.5M ./base"), Some((1_572_864.0, "./base")));
        for line in ["12 /etc/passwd", "87G of the volume", "GET /cart", "2G"] {
            assert_eq!(folder(line), None, "{line}");
        }
        assert_eq!((bytes("**25 GB**"), bytes("46%"), bytes("11")), (Some(25.0 * 1_073_741_824.0), None, None));
    }
}
