//! Labels of a sample: a small sorted set of name/value pairs, stored as JSON text that DuckDB's
//! `labels->>'device'` and pandas' `json.loads` can read.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Name/value pairs in name order. Equal sets have equal text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// No labels.
    pub fn none() -> Self {
        Self::default()
    }

    /// Labels from pairs, e.g. `Labels::new([("device", "sda")])`. A later pair replaces an earlier one.
    pub fn new<K: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        Self(pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
    }

    /// The value of `name`, if present.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Whether every pair of `wanted` is present.
    pub fn contains(&self, wanted: &[(&str, &str)]) -> bool {
        wanted.iter().all(|(k, v)| self.get(k) == Some(v))
    }

    /// Pairs in name order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// The same labels with one pair added or replaced.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(&self.0).unwrap_or_default())
    }
}

impl From<&str> for Labels {
    /// Parses the JSON text of a stored label set; any other text yields an empty set.
    fn from(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }
}
