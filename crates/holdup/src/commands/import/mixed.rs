//! A paste that holds JSON of `kubectl`, `aws`, `az` or `gcloud` between outputs of other tools. Each
//! document becomes a file of its own, named by its lines, and the rest stays text.

use std::io;

use holdup_import::LARGEST_BYTES;
use holdup_import::text::{Document, Pasted, cut_documents, is_only_commands, recognises};
use holdup_recording::clock;

use super::input::START_BYTES;
use super::{InputFile, aws, ftdc, is_capture, kubernetes, text};
use crate::failure::Failure;

/// Keys that name such documents. Without one of them near its beginning a file is not parted.
const KEYS: [&str; 4] = ["\"apiVersion\"", "\"MetricDataResults\"", "\"Datapoints\"", "\"timeseries\""];

/// The file itself, or its documents and the text around them.
pub(super) fn parted(mut file: InputFile, at: Option<i64>) -> Result<Vec<InputFile>, Failure> {
    if file.is_listed || is_capture(&file.head) || ftdc::is_one(&file.head) {
        return Ok(vec![file]);
    }
    let has_text = text::is_one(&mut file)?;
    let head = String::from_utf8_lossy(&file.head);
    let is_whole = aws::is_json(&file.head) && !has_text;
    if is_whole || !KEYS.iter().any(|key| head.contains(key)) {
        return Ok(vec![file]);
    }
    // Whether it is too large is for its own reader to say.
    file.read_to(LARGEST_BYTES + 1)?;
    let (documents, rest) = cut_documents(&file.head, is_wanted);
    if documents.is_empty() || documents.len() == 1 && rest.iter().all(u8::is_ascii_whitespace) {
        return Ok(vec![file]);
    }
    // Pods do not say when they were listed; the outputs beside them do.
    let at = at.or(file.modified_at).unwrap_or_else(clock::now_ns);
    let mut pasted = Pasted::new(None);
    pasted.read(&file.name, &rest, at);
    let pasted_at = pasted.finish().span.map(|(_, last)| last);
    let piece = |document| piece(&file, document, pasted_at);
    let mut parts: Vec<InputFile> = documents.into_iter().map(piece).collect();
    match recognises(&rest) {
        true => parts.push(InputFile { head: rest, rest: Box::new(io::empty()), ..file }),
        false if is_only_commands(&rest) => {}
        false => errln!("note: {}: the lines around the JSON were not understood", file.shown),
    }
    Ok(parts)
}

/// Whether a document belongs to a reader of whole files.
fn is_wanted(text: &str) -> bool {
    let bytes = text.as_bytes();
    kubernetes::is_one(bytes.get(..START_BYTES).unwrap_or(bytes)) && kubernetes::has_rows(bytes) || aws::is_known(bytes)
}

fn piece(file: &InputFile, document: Document, pasted_at: Option<i64>) -> InputFile {
    let Document { first_line, last_line, text } = document;
    let of = |name: &str| format!("{name}:{first_line}-{last_line}");
    InputFile {
        name: of(&file.name),
        shown: of(&file.shown),
        head: text.into_bytes(),
        rest: Box::new(io::empty()),
        is_listed: false,
        modified_at: file.modified_at,
        pasted_at,
    }
}
