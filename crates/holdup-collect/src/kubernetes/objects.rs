//! Turns Kubernetes objects about pods into rows: limits, requests and probes as settings, restarts
//! as samples, and changes as events. It reads the API's answers and the output of `kubectl get
//! pods -o json` and `kubectl get events -o json`, which hold the same objects. It does no I/O and
//! reads no clock: the caller hands over bytes and the time of reading.
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

/// Longest message text kept, in characters.
const TEXT_LETTERS: usize = 300;

/// Remembers what was already reported, so that objects read again yield only new rows.
#[derive(Debug, Default)]
pub struct ObjectTracker {
    /// Anything before this (nanoseconds since 1970) is old; none to report everything.
    since: Option<i64>,
    /// Only report pods that were seen.
    seen_pods_only: bool,
    pods: HashMap<String, pod::ReportedPod>,
    /// The count of each event so far.
    events: HashMap<String, u64>,
}

/// The window in which objects were read.
#[derive(Clone, Copy, Debug)]
pub struct ReadTime {
    /// Middle of the read, nanoseconds since 1970.
    pub at: i64,
    /// Its length, nanoseconds.
    pub window_ns: i64,
}

impl ObjectTracker {
    /// Reports everything in the objects, however old.
    pub fn for_everything() -> Self {
        Self::default()
    }

    /// Reports only what happened since `at` (nanoseconds since 1970); with `seen_pods_only` only
    /// for pods handed over.
    pub fn since(at: i64, seen_pods_only: bool) -> Self {
        Self { since: Some(at), seen_pods_only, ..Self::default() }
    }

    /// The rows that are new in `documents`, which were read together.
    pub fn take(&mut self, documents: &[Document], read: ReadTime) -> Batch {
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
        // Events that the cluster has forgotten cannot return. An empty list may mean that this
        // request was refused.
        if self.since.is_some() && !there.is_empty() {
            self.events.retain(|id, _| there.contains(id));
        }
        batch
    }
}

/// The latest time in `documents` (nanoseconds since 1970): they were written no earlier. None if
/// they contain no time.
pub fn latest(documents: &[Document]) -> Option<i64> {
    let pods = documents.iter().flat_map(|document| &document.pods).flat_map(pod::moments);
    let events = documents.iter().flat_map(|document| &document.events).flat_map(event::moments);
    pods.chain(events).max()
}

/// The source's name in all tables.
pub fn source(namespace: &str, pod: Option<&str>) -> String {
    match pod {
        Some(pod) => format!("kubernetes:{namespace}/{pod}"),
        None => format!("kubernetes:{namespace}"),
    }
}

/// A pod's settings by name.
type Settings = BTreeMap<String, String>;

/// A message as it may be kept: on one line, shortened, without the queries of URLs.
fn shown(text: &str) -> String {
    let mut kept = String::new();
    let mut hides = false;
    for c in text.chars().take(TEXT_LETTERS) {
        let c = if c.is_control() { ' ' } else { c };
        // A query ends where the URL ends.
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
