//! Puts changes of catalogs and settings beside the causes that they belong to: as evidence, as the fix that
//! undoes them, and as the beginning of the headline. A change alone finds no cause.

mod settings;

use holdup_recording::catalog::Kind;
use holdup_recording::words::bytes;
use holdup_signals::evidence::Evidence;

use crate::case::Case;
use crate::cause::Cause;
use crate::causes::{CauseFinding, Outcome, Outcomes, capital};
use crate::change::Fix;
use crate::change::database::{Home, Server};
use crate::resources::changes::{Changes, RelevantChange};
use crate::resources::rows_read::mentions;

/// Kinds of objects and the causes that a change of one belongs to, if the cause's evidence names the
/// object's table.
const OBJECTS: [(Kind, &[Cause]); 3] = [
    (Kind::Column, &[Cause::PlanChanged, Cause::MissingIndex, Cause::StatementRegression, Cause::ToastRewrite]),
    (Kind::Trigger, &[Cause::StatementRegression]),
    (Kind::View, &[Cause::PlanChanged, Cause::StatementRegression]),
];

/// Causes to which a lost index belongs, and to which a new one does.
const LOST_INDEX: [Cause; 2] = [Cause::MissingIndex, Cause::PlanChanged];
const NEW_INDEX: [Cause; 1] = [Cause::TooManyIndexes];

/// Adds the changes of `case` to the causes that were found.
pub(crate) fn told(case: &Case<'_>, mut outcomes: Outcomes) -> Outcomes {
    let changes = Changes::for_case(case);
    if changes.0.is_empty() {
        return outcomes;
    }
    for (cause, outcome) in &mut outcomes {
        if let Ok(Outcome::Found(found) | Outcome::Fails(found, _)) = outcome {
            // Each is put in front, the latest first.
            let own: Vec<_> = changes.0.iter().filter(|of| belongs(of, *cause, found)).collect();
            own.into_iter().for_each(|of| add(case, of, found));
        }
    }
    outcomes
}

/// The change that leads the sentence on a finding, as a sentence of its own; empty without one.
pub(crate) fn lead(case: &Case<'_>, evidence: &[Evidence]) -> String {
    let changes = Changes::for_case(case);
    let first = evidence.iter().find_map(|piece| changes.told_by(piece));
    first.map_or_else(String::new, |of| format!("{}. ", capital(&of.text)))
}

fn belongs(of: &RelevantChange, cause: Cause, found: &CauseFinding) -> bool {
    let change = &of.change;
    let is_told = found.evidence.iter().any(|piece| piece.text == of.text);
    let object = if change.key.on.is_empty() { &change.key.name } else { &change.key.on };
    let names_it = || found.evidence.iter().any(|piece| mentions(&piece.text, object));
    let fits = match change.key.kind {
        Kind::Setting => settings::belongs(&change.key.name, (&change.from, &change.to), cause),
        Kind::Index if change.is_index_lost() => LOST_INDEX.contains(&cause) && names_it(),
        Kind::Index => change.is_index_new() && NEW_INDEX.contains(&cause) && names_it(),
        kind => OBJECTS.iter().any(|(of, causes)| *of == kind && causes.contains(&cause)) && names_it(),
    };
    fits && !is_told
}

fn add(case: &Case<'_>, of: &RelevantChange, found: &mut CauseFinding) {
    found.evidence.insert(0, of.evidence());
    found.weights.insert(0, of.strength);
    if of.change.key.kind != Kind::Setting || !settings::keeps_data(&of.change.key.name) {
        found.fixes.insert(0, back(case, of));
    }
}

/// The fix that undoes a change.
fn back(case: &Case<'_>, of: &RelevantChange) -> Fix {
    const RISK: &str = "Find out first who changed it, and why.";
    let change = &of.change;
    let word = |value: &str| match value.parse::<f64>() {
        Ok(number) if change.key.name.ends_with("_bytes") => bytes(number),
        _ => value.to_owned(),
    };
    let text = match change.key.kind {
        Kind::Setting => {
            format!("Set {} back: {} before, {} now.", change.key.name, word(&change.from), word(&change.to))
        }
        _ => format!("Undo this change: {}.", change.text),
    };
    // A cloud's server takes settings from elsewhere.
    let server = Server::at(&case.slow(), &change.source);
    let is_taken = change.key.kind != Kind::Setting || server.home() == Home::Own;
    Fix::by_command(text, change.restore.as_deref().filter(|_| is_taken), Some(RISK))
}

#[cfg(test)]
mod tests;
