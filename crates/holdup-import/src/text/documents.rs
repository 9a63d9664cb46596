//! JSON documents between pasted outputs: `kubectl get pods -o json` behind a prompt, with `uptime`
//! below. Readers of such documents take whole files, so each is cut out, and its lines are left
//! empty in the text that remains. Numbers of lines stay.

use super::json::document;
use super::{kinds, paste};

/// Places that look like the start of a document, as far as they are tried.
const TRIED_MAX: usize = 64;

/// A document that was cut out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its first line, from 1.
    pub first_line: usize,
    /// Its last line.
    pub last_line: usize,
    /// Its text without colours.
    pub text: String,
}

/// Cuts the documents out of `bytes` that `is_wanted` holds for. Returns them, and what remains.
pub fn cut_documents(bytes: &[u8], is_wanted: impl Fn(&str) -> bool) -> (Vec<Document>, Vec<u8>) {
    let lines = paste::lines(bytes, kinds::is_heading);
    // Where each line begins in the whole.
    let (mut whole, mut starts) = (String::with_capacity(bytes.len()), Vec::with_capacity(lines.len()));
    for line in &lines {
        starts.push(whole.len());
        if !line.is_command {
            whole.push_str(&line.text);
        }
        whole.push('\n');
    }
    let (mut found, mut tried, mut next) = (Vec::new(), 0, 0);
    while let Some((line, &start)) = lines.get(next).zip(starts.get(next)).filter(|_| tried < TRIED_MAX) {
        next += 1;
        if line.is_command || !line.text.trim_start().starts_with(['{', '[']) {
            continue;
        }
        tried += 1;
        let Some(text) = whole.get(start..).and_then(document).filter(|text| is_wanted(text)) else { continue };
        let end = start + text.len();
        next = starts.partition_point(|start| *start < end);
        let last_line = lines.get(next - 1).map_or(line.number, |last| last.number);
        found.push(Document { first_line: line.number, last_line, text: text.to_owned() });
    }
    let rest = without(bytes, &found);
    (found, rest)
}

/// Whether the text has nothing but empty lines and commands behind prompts.
pub fn is_only_commands(bytes: &[u8]) -> bool {
    paste::lines(bytes, kinds::is_heading).iter().all(|line| line.is_command || line.is_blank())
}

/// `bytes` with the lines of documents left empty.
fn without(bytes: &[u8], documents: &[Document]) -> Vec<u8> {
    let (mut rest, mut kept, mut number) = (bytes, Vec::with_capacity(bytes.len()), 1);
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        if !documents.iter().any(|one| (one.first_line..=one.last_line).contains(&number)) {
            kept.extend_from_slice(line);
        }
        kept.push(b'\n');
        number += 1;
        rest = after.strip_prefix(b"\r\n").or_else(|| after.get(1..)).unwrap_or_default();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED: &str = "ann@ops:~$ kubectl get pods -o json\n{\n  \"kind\": \"List\",\n  \"items\": [\n  {\"a\": 1}\n  ]\n}\nann@ops:~$ uptime\n 10:11:12 up 3 days\n{\"other\": 1}\n";

    #[test]
    fn a_document_between_outputs_is_cut_out_and_lines_stay() {
        let is_wanted = |text: &str| text.contains("\"kind\"");
        for text in [MIXED.to_owned(), MIXED.replace('\n', "\r\n"), MIXED.replace("{\n", "\u{1b}[0m{\u{1b}[K\n")] {
            let (found, rest) = cut_documents(text.as_bytes(), is_wanted);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!((found[0].first_line, found[0].last_line), (2, 7));
            assert!(serde_json::from_str::<serde_json::Value>(&found[0].text).is_ok(), "{}", found[0].text);
            let rest = String::from_utf8(rest).unwrap();
            assert_eq!(rest.lines().count(), 10);
            assert!(rest.contains("uptime") && rest.contains("other") && !rest.contains("kind"), "{rest}");
        }
    }

    #[test]
    fn a_cut_document_and_text_without_one_stay() {
        let cut = &MIXED[..60];
        assert_eq!(cut_documents(cut.as_bytes(), |_| true).0, []);
        let (found, rest) = cut_documents(b"a\n\nb\n", |_| true);
        assert_eq!((found.len(), rest.as_slice()), (0, &b"a\n\nb\n"[..]));
        assert!(is_only_commands(b"$ kubectl get pods -o json\n\n") && !is_only_commands(b"x\n"));
        assert_eq!(cut_documents("{\n".repeat(10_000).as_bytes(), |_| true).0, []);
    }
}
