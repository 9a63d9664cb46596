//! The log as CSV (`log_destination = csvlog`): columns by position, which is stable since 9.0.
//! Fields may contain line feeds; reading that starts inside a record resumes at the next line that
//! looks like an entry.

use super::{ENTRY_BYTES, Entry, Form, prefix};

/// Positions of the columns in use.
const TIME: usize = 0;
const DATABASE: usize = 2;
const PID: usize = 3;
const SEVERITY: usize = 11;
const CODE: usize = 12;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;
const STATEMENT: usize = 19;

/// Entries in the bytes read; returns their length.
pub(super) fn entries(bytes: &[u8], form: &Form, entries: &mut Vec<Entry>) -> usize {
    let mut used = 0;
    while let Some(rest) = bytes.get(used..).filter(|rest| !rest.is_empty()) {
        let line = rest.iter().position(|byte| *byte == b'\n');
        let head = String::from_utf8_lossy(rest.get(..rest.len().min(64)).unwrap_or_default());
        let begins = prefix::time(&head, form.zone_seconds)
            .filter(|(_, length)| head.get(*length..).is_some_and(|rest| rest.starts_with(',')));
        let Some((at, _)) = begins else {
            let Some(line) = line else { break };
            used += line + 1;
            continue;
        };
        let Some((fields, length)) = record(rest) else { break };
        used += length;
        let field = |index: usize| fields.get(index).map(|field| String::from_utf8_lossy(field).into_owned());
        debug_assert!(field(TIME).is_some());
        entries.push(Entry {
            at: Some(at),
            pid: field(PID).and_then(|pid| pid.parse().ok()),
            database: field(DATABASE).filter(|name| !name.is_empty()),
            severity: field(SEVERITY).unwrap_or_default(),
            code: field(CODE).filter(|code| !code.is_empty()),
            message: field(MESSAGE).unwrap_or_default(),
            detail: field(DETAIL).filter(|text| !text.is_empty()),
            statement: field(STATEMENT).filter(|text| !text.is_empty()),
        });
    }
    used
}

/// The first record's fields up to the last one in use, and the whole record's length; none if it
/// is incomplete.
fn record(bytes: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), Vec::new(), false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => {
                // A doubled quote within quotes stands for one: the second reopens.
                if !quoted && at > 0 && bytes.get(at - 1) == Some(&b'"') && !field.is_empty() {
                    field.push(b'"');
                }
                quoted = !quoted;
            }
            b',' | b'\n' if !quoted => {
                if fields.len() <= STATEMENT {
                    fields.push(std::mem::take(&mut field));
                }
                if *byte == b'\n' {
                    return Some((fields, at + 1));
                }
            }
            byte if fields.len() <= STATEMENT && field.len() < ENTRY_BYTES => field.push(*byte),
            _ => {}
        }
    }
    None
}
