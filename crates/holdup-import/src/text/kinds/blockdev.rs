//! `blockdev --report`: readahead (in sectors of 512 bytes) and size of each device.

use super::{Columns, Context, HOST, Kind, Line, rows, text};

pub(super) const KIND: Kind = Kind::lines("blockdev --report", recognises, read);

fn recognises(lines: &[Line]) -> bool {
    let columns = Columns::new(text(lines, 0));
    columns.has(&["RO", "RA", "SSZ", "Device"])
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant();
    let columns = Columns::new(text(lines, 0));
    let mut used = 1;
    for line in rows(lines, recognises) {
        let row = columns.row(&line.text);
        let Some((sectors, device)) = row.number(&["RA"]).zip(row.text(&["Device"])) else { break };
        let device = device.trim_start_matches("/dev/");
        context.out.setting(at, HOST, format!("block.{device}.read_ahead_kb"), (sectors / 2.0).to_string());
        if let Some(bytes) = row.number(&["Size"]) {
            context.out.setting(at, HOST, format!("block.{device}.size_bytes"), bytes.to_string());
        }
        if let Some(parent) = disk(device) {
            context.out.setting(at, HOST, format!("block.{device}.parent"), parent);
        }
        used += 1;
    }
    used
}

/// The disk of a partition, by their names.
fn disk(device: &str) -> Option<&str> {
    let letters = device.trim_end_matches(|c: char| c.is_ascii_digit());
    if letters.len() == device.len() {
        return None;
    }
    if device.starts_with("nvme") || device.starts_with("mmcblk") {
        return letters.strip_suffix('p').filter(|disk| disk.ends_with(|c: char| c.is_ascii_digit()));
    }
    ["sd", "vd", "xvd", "hd"].iter().any(|prefix| device.starts_with(prefix)).then_some(letters)
}
