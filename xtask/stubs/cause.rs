//! One sentence: what is so if this is the cause.

use holdup_signals::Missing;

use super::{Cause, Definition, Doc, Judge, Outcome};
use crate::case::Case;
use crate::next_command::NextCommand;

// Its traits, what it follows from and adds to, its traces in counters and its signs in one instant go here as they
// are known: see `Definition`.
pub const DEFINITION: Definition = Definition { ..Definition::new(Cause::DiskFull, DOC, Judge::Alone(judge), &NEXT) };

const DOC: Doc = Doc {
    title: "",
    what: "",
    hurts: "",
    needs: "",
    predicts: "",
    clears: "",
    looks_like: "",
    fix: "",
    prove: "",
    references: "",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere("", 1, "");

fn judge(_case: &Case<'_>) -> Result<Outcome, Missing> {
    Err(Missing::new("this cause is not judged yet", "a later holdup"))
}
