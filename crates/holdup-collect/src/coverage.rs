//! Lines of the coverage: what a part of a source delivers, why not more, and the command that would
//! change that.

use holdup_recording::{Coverage, CoverageState};

/// The line of `source` itself, or of one of its parts: complete, unless changed afterwards.
pub(crate) fn complete(source: impl Into<String>) -> Coverage {
    Coverage {
        source: source.into(),
        state: CoverageState::Complete,
        why: None,
        enable: None,
        cpu_ratio: None,
        reads_total: 0,
        gaps_total: 0,
    }
}

/// The line of the part `name` of `source`.
pub(crate) fn part(source: &str, name: &str) -> Coverage {
    complete(format!("{source} {name}"))
}

/// What a line says.
pub(crate) trait Line: Sized {
    /// Nothing is delivered.
    fn absent(self, why: impl Into<String>) -> Self;

    /// Not all is delivered.
    fn partial(self, why: impl Into<String>) -> Self;

    /// Something worth knowing, whatever is delivered.
    fn note(self, why: impl Into<String>) -> Self;

    /// The command, setting or grant that would enable the rest.
    fn enable(self, how: impl Into<String>) -> Self;
}

impl Line for Coverage {
    fn absent(self, why: impl Into<String>) -> Self {
        Self { state: CoverageState::Absent, ..self.note(why) }
    }

    fn partial(self, why: impl Into<String>) -> Self {
        Self { state: CoverageState::Partial, ..self.note(why) }
    }

    fn note(self, why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..self }
    }

    fn enable(self, how: impl Into<String>) -> Self {
        Self { enable: Some(how.into()), ..self }
    }
}
