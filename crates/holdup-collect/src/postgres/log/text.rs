//! The log as text: entries start with the prefix; continuation lines of a message start with a tab
//! that the server adds, so no text can fake an entry.

use super::{ENTRY_BYTES, Entry, Form};

/// What a continuation line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Message,
    Detail,
    Statement,
    /// A part that is not kept.
    Nothing,
}

impl Part {
    fn field(self, entry: &mut Entry) -> Option<&mut String> {
        match self {
            Self::Message => Some(&mut entry.message),
            Self::Detail => entry.detail.as_mut(),
            Self::Statement => entry.statement.as_mut(),
            Self::Nothing => None,
        }
    }
}

/// Entries in the bytes read; returns their length. The last one may continue, unless it `is_over`.
pub(super) fn entries(bytes: &[u8], is_over: bool, form: &Form, entries: &mut Vec<Entry>) -> usize {
    let (mut at, mut used) = (0, 0);
    let mut open: Option<Entry> = None;
    // The part that continuation lines belong to.
    let mut part = Part::Nothing;
    while let Some(length) = bytes.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n')) {
        let line = bytes.get(at..at + length).unwrap_or_default();
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        if let Some(further) = line.strip_prefix('\t') {
            if let Some(text) =
                open.as_mut().and_then(|entry| part.field(entry)).filter(|text| text.len() < ENTRY_BYTES)
            {
                text.push('\n');
                text.push_str(further);
            }
        } else if let Some(head) = form.prefix.head(&line, form.zone_seconds) {
            part = match head.severity {
                "DETAIL" => Part::Detail,
                "STATEMENT" => Part::Statement,
                _ if head.goes_on() => Part::Nothing,
                _ => Part::Message,
            };
            if let (Part::Detail | Part::Statement, Some(entry)) = (part, &mut open) {
                let text = head.message.to_owned();
                *(if part == Part::Detail { &mut entry.detail } else { &mut entry.statement }) = Some(text);
            }
            if part == Part::Message {
                used = at;
                entries.extend(open.replace(Entry {
                    at: head.at,
                    pid: head.pid,
                    database: head.database.map(str::to_owned),
                    severity: head.severity.to_owned(),
                    code: head.code.map(str::to_owned),
                    message: head.message.to_owned(),
                    detail: None,
                    statement: None,
                }));
            }
        } else {
            // Output of another program, e.g. of an archive command.
            part = Part::Nothing;
        }
        at += length + 1;
    }
    if open.is_none() || is_over {
        entries.extend(open);
        used = at;
    }
    used
}
