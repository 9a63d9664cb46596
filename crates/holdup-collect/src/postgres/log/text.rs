//! The log as text: entries begin with the prefix, further lines of a message begin with a tab, which the server puts there,
//! so that no text can make itself an entry.

use super::{ENTRY_BYTES, Entry, Form};

/// Entries of what was read; how many bytes they are. The last one may go on, unless it `is_over`.
pub(super) fn entries(bytes: &[u8], is_over: bool, form: &Form, entries: &mut Vec<Entry>) -> usize {
    let (mut at, mut used) = (0, 0);
    let mut open: Option<Entry> = None;
    // Whether further lines belong to the message, not to a detail of it.
    let mut takes_lines = false;
    while let Some(length) = bytes.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n')) {
        let line = bytes.get(at..at + length).unwrap_or_default();
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        if let Some(further) = line.strip_prefix('\t') {
            if let Some(entry) = open.as_mut().filter(|entry| takes_lines && entry.message.len() < ENTRY_BYTES) {
                entry.message.push('\n');
                entry.message.push_str(further);
            }
        } else if let Some(head) = form.prefix.head(&line, form.zone_seconds) {
            takes_lines = !head.goes_on();
            if takes_lines {
                used = at;
                entries.extend(open.replace(Entry {
                    at: head.at,
                    pid: head.pid,
                    database: head.database.map(str::to_owned),
                    severity: head.severity.to_owned(),
                    message: head.message.to_owned(),
                }));
            }
        } else {
            // Somebody else's output, e.g. of an archive command.
            takes_lines = false;
        }
        at += length + 1;
    }
    if open.is_none() || is_over {
        entries.extend(open);
        used = at;
    }
    used
}
