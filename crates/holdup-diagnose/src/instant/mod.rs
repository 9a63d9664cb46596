//! What one instant shows, where no time before it is known: the facts that were pasted or read once,
//! and the signs of causes in them. It judges nothing: each cause finds its own signs, and
//! [`crate::judge`] weighs them.

mod accept_queue;
pub(crate) mod app_pools;
pub(crate) mod cloud;
pub(crate) mod counts;
#[cfg(test)]
mod counts_tests;
#[cfg(test)]
mod databases_tests;
mod documents;
pub(crate) mod facts;
pub(crate) mod flush_times;
pub(crate) mod happened;
#[cfg(test)]
mod happened_tests;
pub(crate) mod hung;
pub(crate) mod load;
pub(crate) mod machine;
#[cfg(test)]
mod pasted_tests;
pub(crate) mod plans;
pub(crate) mod pods;
#[cfg(test)]
mod pods_tests;
pub(crate) mod quotas;
mod reads;
pub(crate) mod sessions;
pub(crate) mod stacks;
pub(crate) mod statements;
#[cfg(test)]
mod statements_tests;

use holdup_signals::evidence::Evidence;
use holdup_signals::host::threads::Place;

use crate::strength::Strength;

/// As many threads or sessions in one state stand out.
pub(crate) const MANY: f64 = 4.0;

/// Share (0-1) of the active sessions that makes a state the one that matters.
pub(crate) const MOST: f64 = 0.5;

/// A share (0-1) of the active sessions that is more than chance.
pub(crate) const SOME: f64 = 0.1;

/// A read of at least this share (0-1) of readahead's window is one by readahead.
pub(crate) const OF_WINDOW: f64 = 0.5;

/// The signs of one cause.
#[derive(Default)]
pub(crate) struct Signs {
    all: Vec<(Strength, f64, Evidence)>,
    share: Option<Share>,
}

/// How much of the harm a cause accounts for, by what waits or by a server's own timing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Share {
    /// 0-1.
    pub ratio: f64,
    /// Its whole, in words: `of 48 active sessions`, `of the database's load`.
    pub of: String,
}

/// The signs of one cause, weighed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weighed {
    /// The chance (0-1) that not all of them mislead. Signs of one cause from several sources add up.
    pub chance: f64,
    /// What shows them, the strongest first.
    pub evidence: Vec<Evidence>,
    /// The share of the harm, if the facts tell it.
    pub share: Option<Share>,
}

/// One sign: what shows it, and which share of the harm it tells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sign {
    pub evidence: Evidence,
    pub share: Option<Share>,
    /// Share (0-1) of the instants at which it was there.
    pub seen: f64,
}

impl From<Evidence> for Sign {
    fn from(evidence: Evidence) -> Self {
        Self { evidence, share: None, seen: 1.0 }
    }
}

impl Signs {
    /// Of several shares the largest counts, because they may cover the same waiters.
    pub(crate) fn add(&mut self, strength: Strength, sign: impl Into<Sign>) {
        let Sign { evidence, share, seen } = sign.into();
        self.all.push((strength, seen, evidence));
        let share = share.filter(|share| share.ratio.is_finite());
        let is_known = |share: &Share| self.share.as_ref().is_some_and(|known| known.ratio >= share.ratio);
        if let Some(share) = share.filter(|share| !is_known(share)) {
            self.share = Some(Share { ratio: share.ratio.clamp(0.0, 1.0), ..share });
        }
    }

    pub(crate) fn extend(&mut self, strength: Strength, sign: Option<impl Into<Sign>>) {
        if let Some(sign) = sign {
            self.add(strength, sign);
        }
    }

    /// A sign that shows how much of the harm the cause accounts for.
    pub(crate) fn accounting(&mut self, strength: Strength, evidence: Evidence, share: Share) {
        self.add(strength, Sign { share: Some(share), ..evidence.into() });
    }

    /// Whether it has no sign so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of them together; none without a sign. What was there for a part of the time proves a part, in
    /// however many places.
    pub(crate) fn weigh(mut self) -> Option<Weighed> {
        let missed = |is_lasting: bool| -> f64 {
            let of = self.all.iter().filter(|(_, seen, _)| (*seen >= 1.0) == is_lasting);
            of.map(|(strength, ..)| 1.0 - strength.chance()).product()
        };
        let seen = self.all.iter().map(|(_, seen, _)| *seen).fold(1.0, f64::min);
        let missed = missed(true) * (1.0 - seen * (1.0 - missed(false)));
        self.all.sort_by(|a, b| b.0.chance().total_cmp(&a.0.chance()));
        let mut evidence: Vec<Evidence> = self.all.into_iter().map(|(.., evidence)| evidence).collect();
        evidence.dedup_by(|a, b| a.text == b.text);
        (!evidence.is_empty()).then_some(Weighed { chance: 1.0 - missed, evidence, share: self.share })
    }
}

/// Whether threads in `place` make or remove files of a directory.
pub(crate) fn is_removal(place: &Place) -> bool {
    ["unlinkat", "do_unlinkat", "filename_create", "path_openat", "open_last_lookups"].iter().any(|f| place.passes(f))
}

/// Whether PostgreSQL's wait event is one for reads or writes of a file.
pub(crate) fn is_read_wait(state: &str) -> bool {
    state.starts_with("IO:") || state.starts_with("IO/")
}

/// Whether PostgreSQL's wait event is one for its log: `WALWrite`'s holder writes and syncs it, the
/// others wait until it is on the disk (PostgreSQL documentation, "Wait Events").
pub(crate) fn is_log_wait(state: &str) -> bool {
    // Since PostgreSQL 17 they are called WalWrite and WalSync.
    let state = state.to_ascii_lowercase();
    state.ends_with("walwrite") || state.ends_with("walsync")
}
