//! What one message of the kernel says, as an event.

use regex::Captures;

/// What one message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelEvent {
    pub(super) kind: &'static str,
    pub(super) text: String,
    pub(super) labels: Vec<(&'static str, String)>,
    /// Whether a stack follows that shows where a thread hangs.
    pub(super) is_hung: bool,
}

impl KernelEvent {
    pub(super) fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

pub(super) fn event(kind: &'static str, text: String, labels: &[(&'static str, Option<&str>)]) -> KernelEvent {
    let known = labels.iter().filter_map(|(name, value)| Some((*name, (*value)?.to_owned())));
    KernelEvent { kind, text, labels: known.collect(), is_hung: false }
}

pub(super) fn part<'t>(found: &Captures<'t>, name: &str) -> Option<&'t str> {
    found.name(name).map(|part| part.as_str())
}
