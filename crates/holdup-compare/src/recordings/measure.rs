//! A figure of one recording for the comparison, with its uncertainty.

use std::ops::RangeInclusive;

use super::outcome::Section;

/// The scale on which figures are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// By their ratio. Both get an offset so small that it matters only for values near 0.
    Ratio {
        /// The offset, in the row's unit.
        plus: f64,
    },
    /// By their difference.
    Difference,
}

/// What must be the same for a figure to be comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precondition {
    /// The load, a generator that kept up, and as many answered requests: times.
    SameAnswers,
    /// The load, and a generator that kept up: rates and errors.
    SameLoad,
    /// The operations: the cost of serving them.
    SameOperations,
    /// Nothing: conditions, and results of a search.
    Nothing,
}

/// The same percentile with requests that got no answer counted as slower than any answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WithUnanswered {
    /// In the measure's unit.
    pub value: f64,
    /// Like [`Measure::error`].
    pub error: f64,
    /// Whether it is one without an answer: then `value` is the least that it can be.
    pub is_least: bool,
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
    pub needs: Precondition,
    /// Its operation; none for all operations or for none.
    pub operation: Option<String>,
    /// The value.
    pub value: f64,
    /// Its standard error within this run, on the scale; 0 if exact or unknown.
    pub error: f64,
    /// Assumed spread between runs of the same thing (standard deviation on the scale).
    pub spread: f64,
    /// A smaller difference does not count, in the unit.
    pub least: f64,
    /// For percentiles of times.
    pub with_unanswered: Option<WithUnanswered>,
    /// Whether `value` is the least that it can be.
    pub is_least: bool,
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
            needs: Precondition::SameAnswers,
            operation: None,
            value,
            error: 0.0,
            spread: 0.0,
            least: 0.0,
            with_unanswered: None,
            is_least: false,
        }
    }

    /// The same with unanswered requests counted; others stay as they are.
    pub fn counting_unanswered(&self) -> Self {
        let Some(with) = self.with_unanswered else { return self.clone() };
        let WithUnanswered { value, error, is_least } = with;
        Self { value, error, is_least, needs: Precondition::SameLoad, ..self.clone() }
    }

    /// Values that it can have: times, rates and counts are not negative, and a share (0-1) has an end.
    pub fn bounds(&self) -> RangeInclusive<f64> {
        match self.scale {
            Scale::Ratio { .. } => 0.0..=f64::INFINITY,
            Scale::Difference if self.unit == "ratio" => 0.0..=1.0,
            Scale::Difference => f64::NEG_INFINITY..=f64::INFINITY,
        }
    }

    /// The value on `scale`; none if it has no logarithm.
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
