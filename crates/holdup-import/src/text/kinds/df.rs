//! `df`: size, free bytes and device of each mount, in the unit that its header shows, and with `-i`
//! its inodes.

use super::{Context, HOST, Kind, Line, rows, size, text};

pub(super) const KIND: Kind = Kind::lines("df", recognises, read);

fn recognises(lines: &[Line]) -> bool {
    let words: Vec<&str> = text(lines, 0).split_whitespace().collect();
    let is_known = words.iter().any(|word| block_bytes(word).is_some() || *word == "Inodes");
    words.len() >= 5
        && is_known
        && text(lines, 1).contains('%') | text(lines, 2).contains('%')
        && !words.contains(&"PID")
        && words.iter().any(|word| word.ends_with('%') || matches!(*word, "Capacity" | "Kapazität" | "Capacité"))
}

/// Bytes of the unit in the header, in any language.
fn block_bytes(word: &str) -> Option<f64> {
    match word {
        "Size" | "Größe" | "Taille" | "Tamaño" | "1B-blocks" => Some(1.0),
        "1K-blocks" | "1024-blocks" => Some(1024.0),
        "1M-blocks" => Some(1_048_576.0),
        "1G-blocks" => Some(1_073_741_824.0),
        "512-blocks" => Some(512.0),
        // `1K-Blöcke`, `blocs de 1K`, `bloques de 1K`.
        _ if word.starts_with("1K") => Some(1024.0),
        _ => None,
    }
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant();
    let is_of_inodes = text(lines, 0).split_whitespace().any(|word| word == "Inodes");
    let unit = text(lines, 0).split_whitespace().find_map(block_bytes).or(is_of_inodes.then_some(1.0));
    let facts = if is_of_inodes { ["inodes", "free_inodes"] } else { ["size_bytes", "free_bytes"] };
    // macOS shows both: its inodes, and their percentage, stand behind the bytes.
    let has_both = text(lines, 0).split_whitespace().any(|word| word.eq_ignore_ascii_case("%iused"));
    let base = if context.has_flag('H') { 1000.0 } else { 1024.0 };
    let (mut used, mut name) = (1, String::new());
    for (place, line) in (1..).zip(rows(lines, recognises)) {
        // A long device stands on a line of its own.
        let whole = format!("{name} {}", line.text);
        let words: Vec<&str> = whole.split_whitespace().collect();
        let is_share = |word: &&str| word.ends_with('%') && word.len() <= 4 || *word == "-";
        let last = words.iter().rposition(is_share);
        let percent = if has_both { words.iter().position(is_share) } else { last };
        let Some(percent) = percent.filter(|percent| *percent >= 4) else {
            if words.len() == 1 {
                name.clone_from(&line.text);
                used = place + 1;
                continue;
            }
            break;
        };
        used = place + 1;
        name.clear();
        let mount = words.get(last.unwrap_or(percent) + 1..).unwrap_or_default().join(" ");
        let value = |back: usize| size(words.get(percent - back)?, unit?, base);
        let Some((total, free)) = value(3).zip(value(1)).filter(|_| mount.starts_with('/')) else { continue };
        let device = words.first().copied().unwrap_or_default().trim_start_matches("/dev/");
        // Some file systems make inodes as they need them, and count none.
        if is_of_inodes && total <= 0.0 {
            continue;
        }
        let [all, rest] = facts;
        for (fact, value) in [(all, total.to_string()), (rest, free.to_string()), ("device", device.to_owned())] {
            context.out.setting(at, HOST, format!("mount[{mount}].{fact}"), value);
        }
    }
    used
}
