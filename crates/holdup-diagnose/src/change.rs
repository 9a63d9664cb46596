//! A setting that moves: from the value that was recorded to the value that suits what was
//! measured. Every fix that changes a setting is made here, so that no command goes against its own
//! sentence. A move whose beginning is not known, or that has already been made, is a [`Stay`]: its
//! fix has no command and says why. [`database`] and [`host`] know which commands a platform takes.

pub mod database;
pub mod host;
pub mod parameters;

use std::fmt;

use holdup_recording::rows::Setting;
use holdup_recording::words::{bytes, thousands};
use holdup_signals::View;
use serde::{Deserialize, Serialize};

/// Characters of a statement in a sentence.
const STATEMENT_CHARS: usize = 120;

/// A remedy for a cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fix {
    /// In words.
    pub text: String,
    /// The exact statement, setting or command, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// How to keep it across a restart or reboot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<String>,
    /// What it may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<String>,
}

impl Fix {
    /// Advice in words, and what it may cost.
    #[must_use]
    pub fn advice(text: impl Into<String>, risk: Option<&str>) -> Self {
        Self::by_command(text, None, risk)
    }

    /// The same with the command that does it, if there is one.
    #[must_use]
    pub fn by_command(text: impl Into<String>, command: Option<&str>, risk: Option<&str>) -> Self {
        Self { text: text.into(), command: command.map(str::to_owned), keep: None, risk: risk.map(str::to_owned) }
    }
}

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things, or a code.
    Count,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// MiB.
    Mebibytes,
    /// KiB.
    Kibibytes,
    /// A fraction, with at most two digits.
    Fraction,
    /// 0 is off, anything else on.
    Switch,
}

impl Unit {
    /// `value` in a sentence. Infinity is a setting that limits nothing.
    pub fn word(self, value: f64) -> String {
        match self {
            _ if value.is_infinite() => "no limit".to_owned(),
            Self::Count => thousands(value),
            Self::Milliseconds => format!("{} ms", thousands(value)),
            Self::Seconds => format!("{} s", thousands(value)),
            Self::Bytes => bytes(value),
            Self::Mebibytes => bytes(value * 1_048_576.0),
            Self::Kibibytes => bytes(value * 1024.0),
            Self::Fraction => format!("{}", holdup_recording::words::round(value, 2)),
            Self::Switch => if value > 0.0 { "on" } else { "off" }.to_owned(),
        }
    }

    /// `value` as a number that a command may have.
    fn whole(self, value: f64) -> f64 {
        if self == Self::Fraction { holdup_recording::words::round(value, 2) } else { value.round() }
    }
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To more.
    Raise,
    /// To less.
    Lower,
    /// To a value that is neither more nor less than another, such as a code.
    Set,
}

/// What a setting may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Least value.
    pub least: f64,
    /// Greatest value.
    pub most: f64,
}

/// A move that is worth making.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingChange {
    /// The setting's own name, or the name that a sentence gives it.
    pub name: String,
    /// What its values count.
    pub unit: Unit,
    /// Which way it goes.
    pub direction: Direction,
    /// The value that was recorded.
    pub from: f64,
    /// The value it should have.
    pub to: f64,
}

/// Why a setting stays as it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Stay {
    /// Its value was not recorded.
    Unknown(String),
    /// It is at the target or beyond it.
    There(String),
    /// It cannot go further.
    AtEnd(String),
}

impl SettingChange {
    /// Moves `name` from `from` in `direction` to `to`, or as far as `bounds` let it.
    pub fn new(
        direction: Direction,
        name: &str,
        unit: Unit,
        from: Option<f64>,
        to: f64,
        bounds: Bounds,
    ) -> Result<Self, Stay> {
        let Some(from) = from.filter(|from| !from.is_nan()) else { return Err(Stay::Unknown(name.to_owned())) };
        let is = |value: f64| format!("{name} is {}", unit.word(value));
        if to.is_nan() {
            return Err(Stay::There(is(from)));
        }
        let bounded = unit.whole(to.clamp(bounds.least, bounds.most));
        let moves = |to: f64| match direction {
            Direction::Raise => to > from,
            Direction::Lower => to < from,
            Direction::Set => to != from,
        };
        if !moves(bounded) {
            let stay = if moves(unit.whole(to)) { Stay::AtEnd } else { Stay::There };
            return Err(stay(is(from)));
        }
        Ok(Self { name: name.to_owned(), unit, direction, from, to: bounded })
    }

    /// `Raise NAME from A to B`.
    pub fn sentence(&self) -> String {
        let verb = match self.direction {
            _ if self.unit == Unit::Switch => return format!("Turn {} {}", self.name, self.unit.word(self.to)),
            Direction::Raise => "Raise",
            Direction::Lower => "Lower",
            Direction::Set => "Change",
        };
        format!("{verb} {} from {} to {}", self.name, self.unit.word(self.from), self.unit.word(self.to))
    }

    /// The fix that makes this change in these `steps`; `why` completes the sentence after a colon.
    pub fn fix(&self, why: &str, steps: Steps, risk: &str) -> Fix {
        fix(std::slice::from_ref(self), why, steps, risk)
    }
}

/// The fix that makes several changes at once.
pub fn fix(changes: &[SettingChange], why: &str, steps: Steps, risk: &str) -> Fix {
    let mut sentence = changes.iter().map(SettingChange::sentence).collect::<Vec<_>>().join("; ");
    sentence = format!("{sentence}: {why}.");
    sentence += &steps.note();
    let risk = [steps.effect.as_str(), risk].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    Fix { text: sentence, command: steps.command, keep: steps.keep, risk: (!risk.is_empty()).then_some(risk) }
}

impl Stay {
    /// A fix in words: `text`, and why nothing is to be set; or what to look at first.
    pub fn fix(&self, text: &str) -> Fix {
        let text = match self {
            Self::Unknown(name) => {
                format!("Look at {name} first: the recording has no value of it, so holdup proposes none.")
            }
            stay => format!("{}: {stay}.", text.trim_end_matches('.')),
        };
        Fix { text, command: None, keep: None, risk: None }
    }
}

impl fmt::Display for Stay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "the recording has no value of {name}"),
            Self::There(is) => write!(f, "{is} already"),
            Self::AtEnd(is) => write!(f, "{is}, which is as far as it goes"),
        }
    }
}

/// How a platform takes a change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps {
    /// The command; none where the platform takes none.
    pub command: Option<String>,
    /// How to keep it, or what to do instead of a command.
    pub keep: Option<String>,
    /// When it takes effect, as a sentence.
    pub effect: String,
}

impl Steps {
    /// What to do where no command does it: the terminal has to say so.
    pub fn note(&self) -> String {
        match (&self.command, &self.keep) {
            (None, Some(keep)) => format!(" No command does it here: {}.", keep.trim_end_matches('.')),
            _ => String::new(),
        }
    }
}

/// A statement as a sentence may have it.
pub fn cut(statement: &str) -> String {
    let flat = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= STATEMENT_CHARS {
        return flat;
    }
    flat.chars().take(STATEMENT_CHARS - 1).chain(['…']).collect()
}

/// The recorded settings that a view sees; none where a column is missing.
pub fn settings<'a>(view: &View<'a>) -> &'a [Setting] {
    view.recording.tables.settings.with_columns(&["source", "name", "value"]).unwrap_or_default()
}

#[cfg(test)]
mod tests;
