//! `lsblk`: which partition lies on which disk. Its sizes are rounded, so they are left out.

use super::{Columns, Context, HOST, Kind, Line, rows, text};

pub(super) const KIND: Kind = Kind::lines("lsblk", recognises, read);

/// Characters that draw the tree before a name.
const TREE: [char; 6] = ['└', '├', '│', '─', '`', '|'];

fn recognises(lines: &[Line]) -> bool {
    let columns = Columns::new(text(lines, 0));
    columns.place(&["NAME"]) == Some(0) && columns.has(&["TYPE", "SIZE"])
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant();
    let columns = Columns::new(text(lines, 0));
    let mut disk = "";
    let mut used = 1;
    for line in rows(lines, recognises) {
        used += 1;
        let name = line.text.trim_start_matches(|c: char| c == ' ' || c == '-' || TREE.contains(&c));
        let row = columns.row(name);
        match (row.text(&["NAME"]), row.text(&["TYPE"])) {
            (Some(name), Some("disk" | "loop")) => disk = name,
            (Some(name), Some("part")) if !disk.is_empty() => {
                context.out.setting(at, HOST, format!("block.{name}.parent"), disk);
            }
            _ => {}
        }
    }
    used
}
