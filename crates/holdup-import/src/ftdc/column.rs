//! A metric as a sum of a sample's figures.

use holdup_mongodb::Value;
use holdup_recording::Labels;

/// A metric, as a sum of figures.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    pub(super) metric: String,
    pub(super) labels: Labels,
    /// Indexes of figures, with their factors.
    pub(super) terms: Vec<(usize, f64)>,
    pub(super) is_host: bool,
    /// Whether its values are instants.
    pub(super) is_time: bool,
    /// Whether it has a constant, and so every sample of it counts.
    pub(super) is_named: bool,
}

/// The index that a number stands for.
pub(super) fn index(value: Option<&Value>) -> Option<usize> {
    let number = match value? {
        Value::Number(number) => *number as i64,
        Value::Time(number) => *number,
        _ => return None,
    };
    usize::try_from(number - 1).ok()
}
