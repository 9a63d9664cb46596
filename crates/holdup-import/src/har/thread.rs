//! Finds texts that a response returned and later requests send back, such as tokens. They differ
//! between sessions, so the scenario captures them.

use std::collections::HashMap;

use serde_json::Value as Json;

use super::Recording;
use super::chosen::Entry;
use crate::document::Node;
use crate::json_path;
use crate::scenario::{Capture, Request};

/// Shorter texts are equal by chance.
const SHORTEST: usize = 8;

/// Longer texts are not tokens.
const LONGEST: usize = 8_192;

/// Largest body that is searched, bytes.
const LARGEST_BYTES: usize = 2 << 20;

/// Most texts that are stored.
const MOST: usize = 200_000;

/// A text of a response.
#[derive(Debug)]
struct ResponseText {
    /// Index of the response's request.
    by: usize,
    pointer: String,
    /// Name of the variable, once a request has sent the text back.
    name: Option<String>,
}

/// Texts that responses returned.
#[derive(Debug, Default)]
pub struct Threads {
    known: std::cell::RefCell<HashMap<String, ResponseText>>,
}

impl Threads {
    /// The variable that holds `text`, if a response before request `index` returned it.
    pub fn variable(&self, text: &str, index: usize, recording: &mut Recording) -> Option<String> {
        let mut known = self.known.borrow_mut();
        let found = known.get_mut(text).filter(|known| known.by < index)?;
        let part = found.pointer.rsplit('/').find(|p| !p.bytes().all(|b| b.is_ascii_digit())).unwrap_or("value");
        Some(found.name.get_or_insert_with(|| recording.used_names.name(part)).clone())
    }
}

impl Recording {
    /// Searches the JSON of all responses.
    pub(super) fn threads(&mut self, chosen: &[Entry<'_>]) -> Threads {
        let threads = Threads::default();
        {
            let mut known = threads.known.borrow_mut();
            for (by, entry) in chosen.iter().enumerate() {
                let Some(content) = entry.node.at(&["response", "content"]) else { continue };
                let text = content.get("text").and_then(Node::text).unwrap_or_default();
                let is_plain = content.get("encoding").is_none();
                let is_json = text.trim_start().starts_with(['{', '[']);
                if is_plain
                    && is_json
                    && text.len() <= LARGEST_BYTES
                    && let Ok(json) = serde_json::from_str::<Json>(text)
                {
                    texts(&json, &mut String::new(), by, &mut known);
                }
            }
        }
        threads
    }

    /// Puts captures at the responses whose texts were sent back.
    pub(super) fn captures(&mut self, requests: &mut [Request], threads: &Threads) {
        let known = threads.known.borrow();
        let mut used: Vec<(&ResponseText, &String)> =
            known.values().filter_map(|g| Some((g, g.name.as_ref()?))).collect();
        used.sort_by_key(|(known, name)| (known.by, *name));
        for (known, name) in used {
            let capture = Capture { from: "json", what: known.pointer.clone(), pick: None, default: None };
            if let Some(request) = requests.get_mut(known.by) {
                request.captures.push((name.clone(), capture));
            }
        }
    }
}

fn texts(json: &Json, pointer: &mut String, by: usize, into: &mut HashMap<String, ResponseText>) {
    if into.len() >= MOST {
        return;
    }
    let length = pointer.len();
    match json {
        Json::String(text) if (SHORTEST..=LONGEST).contains(&text.len()) && !text.contains(char::is_whitespace) => {
            into.entry(text.clone()).or_insert_with(|| ResponseText { by, pointer: pointer.clone(), name: None });
        }
        Json::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                json_path::part(pointer, &index.to_string());
                texts(item, pointer, by, into);
                pointer.truncate(length);
            }
        }
        Json::Object(fields) => {
            for (name, value) in fields {
                // A whole part of `*` would stand for every element.
                if name == "*" {
                    continue;
                }
                json_path::part(pointer, name);
                texts(value, pointer, by, into);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}
