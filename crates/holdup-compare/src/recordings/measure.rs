//! A figure of one recording that is compared, with how far off it may be.

use super::outcome::Section;

/// On which scale figures are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// By their ratio. What is added to both before is so small that it matters for values near 0 only.
    Ratio {
        /// In the row's unit.
        plus: f64,
    },
    /// By their difference.
    Difference,
}

/// What has to be the same for a figure to be comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// The load, a generator that was fit, and as many requests that were answered: times.
    SameAnswers,
    /// The load, and a generator that was fit: rates and errors.
    SameLoad,
    /// The operations: what it costs to serve them.
    SameOperations,
    /// Nothing: conditions, and what a search found by itself.
    Nothing,
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measure {
    pub section: Section,
    pub indicator: String,
    pub unit: String,
    pub is_headline: bool,
    pub more_is_better: Option<bool>,
    pub scale: Scale,
    pub needs: Needs,
    /// The operation it is of; none of all or of none.
    pub operation: Option<String>,
    /// The value.
    pub value: f64,
    /// Its standard error within this run, on the scale; 0 where it is exact or not known.
    pub error: f64,
    /// By how much (standard deviation on the scale) runs of the same thing differ from each other, where nothing else says.
    pub spread: f64,
    /// A smaller difference than this is none, in the unit.
    pub least: f64,
}

impl Measure {
    pub fn new(section: Section, indicator: impl Into<String>, unit: &str, value: f64) -> Self {
        Self {
            section,
            indicator: indicator.into(),
            unit: unit.to_owned(),
            is_headline: false,
            more_is_better: Some(false),
            scale: Scale::Ratio { plus: 0.0 },
            needs: Needs::SameAnswers,
            operation: None,
            value,
            error: 0.0,
            spread: 0.0,
            least: 0.0,
        }
    }

    /// The value on `scale`; none where there is no logarithm of it.
    pub fn on(&self, scale: Scale) -> Option<f64> {
        match scale {
            Scale::Difference => Some(self.value),
            Scale::Ratio { plus } => (self.value + plus > 0.0).then(|| (self.value + plus).ln()),
        }
    }

    /// Whether `other` is the same figure of another recording.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.section, &self.indicator, &self.unit) == (other.section, &other.indicator, &other.unit)
    }
}
