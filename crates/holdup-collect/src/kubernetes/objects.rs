//! What Kubernetes says of pods -> rows: limits, requests and probes as settings, restarts as samples, and what happened as events. It
//! reads what the API answers and what `kubectl get pods -o json` and `kubectl get events -o json` print, which are the same objects.
//! No I/O, no clock: whoever asks the API, or opens a file, hands over its bytes and says when they were read.
//!
//! Environment variables, volumes, labels, annotations and arguments of commands are not kept: they may hold secrets.

mod document;
mod event;
mod pod;
mod probe;
mod quantity;

use std::collections::{BTreeMap, HashMap, HashSet};

use holdup_recording::Batch;

pub use document::{Document, Unread, read};

/// Longest text of a message that is kept, letters.
const TEXT_LETTERS: usize = 300;

/// Keeps account of what was said already, so that of the same objects read again only what is new becomes rows.
#[derive(Debug, Default)]
pub struct Account {
    /// What happened before this (nanoseconds since 1970) is old; none if all is wanted.
    since: Option<i64>,
    /// Only what is about pods that were seen.
    seen_pods_only: bool,
    pods: HashMap<String, pod::Known>,
    /// How often each event had happened.
    events: HashMap<String, u64>,
}

/// When objects were read.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// Middle of the reading, nanoseconds since 1970.
    pub at: i64,
    /// How long it took, nanoseconds.
    pub window_ns: i64,
}

impl Account {
    /// Of everything that objects tell, however old.
    pub fn of_everything() -> Self {
        Self::default()
    }

    /// Of what has happened since a moment (nanoseconds since 1970); with `seen_pods_only` only to pods that are handed over.
    pub fn since(at: i64, seen_pods_only: bool) -> Self {
        Self { since: Some(at), seen_pods_only, ..Self::default() }
    }

    /// What is new in `documents`, which were read at once.
    pub fn take(&mut self, documents: &[Document], read: Read) -> Batch {
        let mut batch = Batch::default();
        for pod in documents.iter().flat_map(|document| &document.pods) {
            let source = source(pod.namespace(), Some(pod.name()));
            let known = self.pods.entry(source.clone()).or_default();
            pod::rows(pod, &source, known, self.since, read, &mut batch);
        }
        let mut there = HashSet::new();
        for event in documents.iter().flat_map(|document| &document.events) {
            let source = event.source();
            if self.seen_pods_only && !self.pods.contains_key(&source) {
                continue;
            }
            let before = self.events.insert(event.id(), event.count());
            there.insert(event.id());
            event::rows(event, source, before, self.since, read, &mut batch);
        }
        // What the cluster has forgotten can't come again. Where none is listed, the list may have been refused this time.
        if self.since.is_some() && !there.is_empty() {
            self.events.retain(|id, _| there.contains(id));
        }
        batch
    }
}

/// The last moment that `documents` speak of (nanoseconds since 1970): they were made no earlier. Nothing if they tell no time.
pub fn latest(documents: &[Document]) -> Option<i64> {
    let pods = documents.iter().flat_map(|document| &document.pods).flat_map(pod::moments);
    let events = documents.iter().flat_map(|document| &document.events).flat_map(event::moments);
    pods.chain(events).max()
}

/// Name of a source in all tables.
pub fn source(namespace: &str, pod: Option<&str>) -> String {
    match pod {
        Some(pod) => format!("kubernetes:{namespace}/{pod}"),
        None => format!("kubernetes:{namespace}"),
    }
}

/// Settings of a pod by their names.
type Settings = BTreeMap<String, String>;

/// A message as it may be kept: in one line, not too long, without the queries of URLs.
fn shown(text: &str) -> String {
    let mut kept = String::new();
    let mut hides = false;
    for c in text.chars().take(TEXT_LETTERS) {
        let c = if c.is_control() { ' ' } else { c };
        // A query ends with the URL.
        hides &= !matches!(c, ' ' | '"' | '\'' | '>');
        if !hides {
            kept.push(c);
        }
        if c == '?' && !hides {
            let of_url =
                kept.rsplit([' ', '"', '\'']).next().is_some_and(|word| word.contains("://") || word.starts_with('/'));
            if of_url {
                kept.push('…');
                hides = true;
            }
        }
    }
    kept.trim_end().to_owned()
}

#[cfg(test)]
mod tests;
