//! What was changed before or as requests became slow: objects of catalogs and settings. A change alone is not a
//! harm: it only explains what a cause measured.

use std::sync::Arc;

use holdup_recording::catalog::Kind;
use holdup_recording::clock;
use holdup_signals::evidence::Evidence;
use holdup_signals::time::changes::{self, Change};
use holdup_signals::{Missing, Window};

use crate::case::Case;
use crate::resources::rows_read::mentions;
use crate::strength::{FAIR, STRONG, Strength, WEAK};

/// A change that was made this long after requests became slow, nanoseconds, is not why: an episode begins
/// with a whole second.
const LATE_NS: i64 = 2_000_000_000;

/// One that was made at most this long before is at its time, nanoseconds.
const NEAR_NS: i64 = 15_000_000_000;

/// Readings at most this far apart tell the time of a change, nanoseconds.
const EXACT_NS: i64 = 5_000_000_000;

/// How statements begin that start triggers.
const WRITES: [&str; 6] = ["INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "COPY"];

/// A change that may be why.
pub struct RelevantChange {
    /// Which.
    pub change: Change,
    /// How much its time says.
    pub strength: Strength,
    /// It in a sentence, with its time, without its full stop.
    pub text: String,
    window: Window,
}

impl RelevantChange {
    /// Evidence that points at it.
    pub fn evidence(&self) -> Evidence {
        self.change.evidence(self.window, self.text.clone())
    }
}

/// The changes between the baseline window and the episode.
#[derive(Default)]
pub struct Changes(pub Vec<RelevantChange>);

impl Changes {
    /// Of `case`; none without an episode.
    pub fn for_case(case: &Case<'_>) -> Arc<Self> {
        case.measured(|case| Ok::<_, Missing>(Self::find(case))).unwrap_or_default()
    }

    fn find(case: &Case<'_>) -> Self {
        let Some(episode) = case.degradation.as_ref().map(|of| of.slow) else { return Self::default() };
        let baseline = case.baseline().map(|baseline| baseline.window);
        let mut all = Vec::new();
        // Where another recording is the baseline, all of this one came after it.
        let mut from = baseline.map_or(i64::MIN, |window| window.from);
        if let Some(against) = case.against.as_ref() {
            from = i64::MIN;
            for change in changes::between(against.healthy.recording, case.recording) {
                let text = format!("{} (changed since the baseline recording)", change.text);
                // Its row is in the baseline recording: an index that is gone has none in this one.
                let window = against.baseline.window;
                all.push(RelevantChange { change, strength: FAIR, text, window });
            }
        }
        for change in changes::within(case.recording) {
            let Some(window) = change.window else { continue };
            if window.to < from || window.from > episode.from + LATE_NS {
                continue;
            }
            let strength = if window.to >= episode.from - NEAR_NS { STRONG } else { WEAK };
            let text = format!("{} {}", change.text, when(window));
            all.push(RelevantChange { change, strength, text, window });
        }
        // What was changed back before requests became slow is as it was.
        let is_undone = |i: usize, of: &RelevantChange| {
            let later = all.iter().skip(i + 1);
            later.into_iter().any(|other| other.change.key == of.change.key && other.change.to == of.change.from)
        };
        let keep: Vec<bool> = all.iter().enumerate().map(|(i, of)| !is_undone(i, of)).collect();
        Self(all.into_iter().zip(keep).filter_map(|(of, keep)| keep.then_some(of)).collect())
    }

    /// Indexes that statements can no longer use.
    pub fn lost_indexes(&self) -> impl Iterator<Item = &RelevantChange> {
        self.0.iter().filter(|of| of.change.is_index_lost())
    }

    /// A trigger that is new, or another, on a table that `statement` writes: what it does is part of a call.
    pub fn trigger_of(&self, statement: &str) -> Option<&RelevantChange> {
        let verb = statement.split_whitespace().next().unwrap_or_default();
        if !WRITES.iter().any(|write| verb.eq_ignore_ascii_case(write)) {
            return None;
        }
        let is = |change: &Change| change.key.kind == Kind::Trigger && !change.to.is_empty();
        self.0.iter().find(|of| is(&of.change) && mentions(statement, &of.change.key.on))
    }

    /// The one that this piece of evidence tells.
    pub fn told_by(&self, piece: &Evidence) -> Option<&RelevantChange> {
        self.0.iter().find(|of| of.text == piece.text)
    }
}

/// The time of a change, by the wall clock.
fn when(window: Window) -> String {
    let time = |ns: i64| clock::rfc3339(ns).get(11..19).unwrap_or_default().to_owned();
    match window.to - window.from <= EXACT_NS {
        true => format!("(changed at {} UTC)", time(window.to)),
        false => format!("(changed between {} and {} UTC)", time(window.from), time(window.to)),
    }
}
