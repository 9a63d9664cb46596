//! Differences between the file and the scenario: which element, where, why, and what to do about
//! it.

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;

/// The fate of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It is not in the scenario.
    LeftOut,
    /// It is in the scenario, but behaves differently.
    Changed,
    /// A value that the user gives when the scenario runs, because it does not belong in a file.
    Secret,
}

impl Kind {
    /// The word in headings.
    pub fn words(self) -> &'static str {
        match self {
            Self::LeftOut => "left out",
            Self::Changed => "changed",
            Self::Secret => "secret",
        }
    }
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Note {
    /// Its fate.
    pub kind: Kind,
    /// Its kind and its name: `JSR223PreProcessor "sign"`.
    pub element: String,
    /// Its line in the file, from 1; 0 for the whole file.
    pub line: usize,
    /// Why.
    pub why: String,
    /// What the user can do about it; may be empty.
    pub advice: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        write!(f, "{}: {}: {}", self.kind.words(), self.element, self.why)?;
        if self.advice.is_empty() { Ok(()) } else { write!(f, "; {}", self.advice) }
    }
}

/// Notes that are being collected.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    all: Vec<Note>,
    /// The walk meets an assertion of a whole plan at each of its samplers.
    known: HashSet<Note>,
}

/// Most notes that are kept. A file with more was probably taken for the wrong kind, and the last
/// note says so.
const MOST: usize = 10_000;

impl Notes {
    /// Adds an element that is not in the scenario, without advice.
    pub(crate) fn left_out(&mut self, element: impl Into<String>, line: usize, why: impl Into<String>) {
        self.add(Kind::LeftOut, element, line, why, "");
    }

    /// Adds one that behaves differently there, without advice.
    pub(crate) fn changed(&mut self, element: impl Into<String>, line: usize, why: impl Into<String>) {
        self.add(Kind::Changed, element, line, why, "");
    }

    pub(crate) fn add(
        &mut self,
        kind: Kind,
        element: impl Into<String>,
        line: usize,
        why: impl Into<String>,
        advice: impl Into<String>,
    ) {
        let note = Note { kind, element: element.into(), line, why: why.into(), advice: advice.into() };
        if self.all.len() > MOST || self.known.contains(&note) {
            return;
        }
        if self.all.len() == MOST {
            let why = format!("there are more than {MOST} notes; the rest is not listed");
            let note = Note { kind: Kind::LeftOut, element: "notes".to_owned(), line: 0, why, advice: String::new() };
            return self.all.push(note);
        }
        self.known.insert(note.clone());
        self.all.push(note);
    }

    /// The notes in the order of the file, each once.
    pub(crate) fn finish(mut self) -> Vec<Note> {
        self.all.sort_by_key(|note| note.line);
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_a_sentence_in_the_order_of_the_file_and_only_once() {
        let mut notes = Notes::default();
        notes.add(Kind::Changed, "b", 7, "why", "");
        notes.add(Kind::LeftOut, "a \"x\"", 3, "scripts are not run", "use a template");
        notes.add(Kind::Changed, "b", 7, "why", "");
        let said: Vec<String> = notes.finish().iter().map(Note::to_string).collect();
        assert_eq!(said, ["line 3: left out: a \"x\": scripts are not run; use a template", "line 7: changed: b: why"]);
    }

    #[test]
    fn are_bounded() {
        let mut notes = Notes::default();
        (0..20_000).for_each(|line| notes.add(Kind::LeftOut, "x", line, "y", ""));
        assert_eq!(notes.finish().len(), MOST + 1);
    }
}
