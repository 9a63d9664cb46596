//! How causes lead to one another, as each says it of itself: a mechanism, and the magnitude that must
//! agree. [`crate::link`] holds them against the findings.

use super::{Cause, Trait};
use crate::case::Case;

/// One way in which a cause follows from others.
pub struct Edge {
    /// What may lead to it, nearest tier first; within a tier, what explains most is nearest.
    pub from: &'static [Tier],
    /// How much of a request's time the other must make up half of.
    pub magnitude: Magnitude,
    /// Whether this cause's time comes on top of the other's, in front of it, rather than being the
    /// same time seen again.
    pub is_added: bool,
}

impl Edge {
    /// What it follows from is the same time, seen at another place.
    pub(crate) const fn same_time(from: &'static [Tier]) -> Self {
        Self { from, magnitude: Magnitude::Own(|_| true), is_added: false }
    }

    /// It stands in front of what is held for the time that `held` measures.
    pub(crate) const fn in_front(from: &'static [Tier], held: fn(&Case<'_>) -> Option<f64>) -> Self {
        Self { from, magnitude: Magnitude::Measured(held), is_added: true }
    }

    /// What may lead to it, nearest first, each once.
    pub fn causes(&self) -> Vec<Cause> {
        Cause::distinct(self.from.iter().flat_map(|tier| members(tier)))
    }
}

/// Causes that are equally near.
pub type Tier = &'static [Source];

/// One cause, or all of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// This cause.
    Of(Cause),
    /// Every cause with this trait.
    With(Trait),
    /// Every cause of the service except those in front of the app.
    AnyBehindApp,
}

impl Source {
    /// Whether it stands for `cause`.
    pub fn has(self, cause: Cause) -> bool {
        match self {
            Self::Of(of) => of == cause,
            Self::With(of) => cause.is(of),
            Self::AnyBehindApp => !cause.is(Trait::Outside) && !cause.is(Trait::InFrontOfApp),
        }
    }
}

/// The causes of a tier that it names, by themselves or by their kind, in order.
fn members(tier: Tier) -> impl Iterator<Item = Cause> {
    let named = |source: &&Source| **source != Source::AnyBehindApp;
    tier.iter().filter(named).flat_map(|source| Cause::ALL.iter().copied().filter(|cause| source.has(*cause)))
}

/// Milliseconds of a request of which the other cause must make up half: most of it would go with
/// that.
pub enum Magnitude {
    /// What the finding itself explains, where this holds of the case.
    Own(fn(&Case<'_>) -> bool),
    /// A part (0-1) of that: all of the delay is booked to it, whatever part the other has.
    PartOfOwn(f64),
    /// What a resource measured; none if unknown.
    Measured(fn(&Case<'_>) -> Option<f64>),
}

/// A limit or a demand that a cause loads further: it contributes, unless it began with the episode
/// and makes up most of the growth.
pub struct Contribution {
    /// What it adds to, nearest tier first; within a tier, what explains most is nearest.
    pub to: &'static [Tier],
    /// Share (0-1) of its own time that this must explain.
    pub least: f64,
}
