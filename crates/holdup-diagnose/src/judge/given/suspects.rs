//! The suspects of what was given: by the signs that each cause finds in it, by counters that left their
//! usual level as the cause makes them, and by limits that a provider reports as reached.

use holdup_signals::evidence::Evidence;

use crate::case::Case;
use crate::causes::{Cause, Trait};
use crate::counters::{CounterJudgement, Named};
use crate::instant::facts::Facts;
use crate::instant::{Share, Signs, Weighed};
use crate::verdict::NAMED;

/// The most (0-1) that evidence without response time can show: the same state may be usual here, and
/// harmless.
const UNTIMED: f64 = 0.8;

/// What is left (0-1) of a sign that was there as much in the time outside of the slow stretch.
const USUAL: f64 = 0.3;

/// A suspect that accounts for this share (0-1) of those that waited can be all of the harm.
const MOST: f64 = 0.5;

/// A possible cause of what the evidence shows.
pub(super) struct Suspect {
    pub cause: Cause,
    /// In words, if a pattern says more than the cause.
    pub title: Option<String>,
    /// What to do, if a pattern says more than the cause.
    pub fix: Option<&'static str>,
    /// 0-1.
    pub confidence: f64,
    pub evidence: Vec<Evidence>,
    /// How much of the harm it accounts for, if the evidence tells it.
    pub share: Option<Share>,
    /// When it began, nanoseconds since the epoch, if that is known.
    pub since: Option<i64>,
    /// The suspect that it follows from.
    pub follows_from: Option<Cause>,
    /// Whether another follows from it.
    pub leads: bool,
}

impl Suspect {
    pub(super) fn new(cause: Cause, chance: f64, evidence: Vec<Evidence>) -> Self {
        Self {
            cause,
            title: None,
            fix: None,
            confidence: chance,
            evidence,
            share: None,
            since: None,
            follows_from: None,
            leads: false,
        }
    }

    /// Whether it follows from another, or another from it: then the two are not rivals.
    pub(super) fn is_linked(&self) -> bool {
        self.follows_from.is_some() || self.leads
    }

    /// Whether something shows it that does not show `other` as well: the same evidence does not tell which
    /// of the two leads to the other.
    fn shows_more_than(&self, other: &Self) -> bool {
        self.evidence.iter().any(|own| other.evidence.iter().all(|of| of.text != own.text))
    }

    /// The same cause, seen in two ways.
    fn merge(&mut self, other: Self) {
        self.confidence = 1.0 - (1.0 - self.confidence) * (1.0 - other.confidence);
        self.evidence.extend(other.evidence);
        self.share = self.share.take().or(other.share);
        self.since = self.since.or(other.since);
        self.fix = self.fix.or(other.fix);
    }
}

impl From<Named> for Suspect {
    fn from(of: Named) -> Self {
        let since = Some(of.since);
        Self { title: Some(of.title), fix: of.fix, since, ..Self::new(of.cause, of.chance, of.evidence) }
    }
}

/// Where suspects are looked for.
pub(super) struct Search<'s, 'c, 'r> {
    pub case: &'s Case<'r>,
    pub counted: Option<&'s CounterJudgement>,
    pub facts: &'s Facts<'c>,
    pub is_instant: bool,
}

impl Search<'_, '_, '_> {
    /// The suspects, with those whose limits were reached, the likeliest first; a root before what follows from it.
    pub(super) fn suspects(&self, at_limit: Vec<Suspect>) -> Vec<Suspect> {
        let mut all: Vec<Suspect> = Vec::new();
        let counted = self.counted.map(CounterJudgement::suspects).unwrap_or_default();
        let counted = counted.into_iter().map(Suspect::from);
        for suspect in self.by_signs().into_iter().chain(counted).chain(at_limit) {
            match all.iter_mut().find(|known| known.cause == suspect.cause) {
                Some(known) => known.merge(suspect),
                None => all.push(suspect),
            }
        }
        for suspect in &mut all {
            let part = suspect.share.as_ref().map_or(1.0, |share| 0.5 + 0.5 * (share.ratio / MOST).min(1.0));
            suspect.confidence *= UNTIMED * part;
        }
        all.sort_by(|a, b| {
            let is_harm = |of: &Suspect| of.cause.is(Trait::Harm);
            let share = |of: &Suspect| of.share.as_ref().map_or(0.0, |share| share.ratio);
            (b.confidence.total_cmp(&a.confidence))
                .then(is_harm(b).cmp(&is_harm(a)))
                .then(share(b).total_cmp(&share(a)))
                .then(a.since.unwrap_or(i64::MAX).cmp(&b.since.unwrap_or(i64::MAX)))
        });
        link(&mut all);
        all
    }

    /// By their signs. Of what someone gave because something is wrong, and of one instant, all signs
    /// count; of a longer watch, where counters tell what left its usual level, only those of harm.
    fn by_signs(&self) -> Vec<Suspect> {
        let usual = self.case.usual(self.facts.view.window).map(|usual| Facts::read(self.case.view(usual)));
        let usual = usual.filter(Facts::are_any);
        let is_suspected = self.is_instant || self.case.is_reported() || self.case.against.is_some();
        let weigh = |cause: Cause, facts: &Facts<'_>| -> Option<Weighed> {
            let (mut signs, definition) = (Signs::default(), cause.definition());
            if let Some(find) = definition.signs {
                find(facts, &mut signs);
            }
            for (error, strength) in definition.errors {
                signs.extend(*strength, facts.happened.errors(error).map(|errors| errors.told()));
            }
            signs.weigh()
        };
        let suspect = |cause: &Cause| {
            let now = weigh(*cause, self.facts)?;
            let before = usual.as_ref().and_then(|usual| weigh(*cause, usual)).map_or(0.0, |before| before.chance);
            // A server that was killed before was killed all the same.
            let is_usual = if cause.is(Trait::Harm) { 0.0 } else { (before / now.chance.max(1e-9)).min(1.0) };
            let chance = now.chance * (1.0 - (1.0 - USUAL) * is_usual);
            Some(Suspect { share: now.share, ..Suspect::new(*cause, chance, now.evidence) })
        };
        let causes = Cause::ALL.iter().filter(|cause| is_suspected || cause.is(Trait::Harm));
        causes.filter_map(suspect).collect()
    }
}

/// Puts a root before what follows from it: of suspects that could each be named, the one that leads to
/// the first.
fn link(all: &mut [Suspect]) {
    let leads = |cause: Cause, to: Cause| {
        let mut adds = cause.definition().adds_to.iter().flat_map(|of| of.to).copied().flatten();
        to.may_follow_from().contains(&cause) || adds.any(|source| source.has(to))
    };
    let Some(first) = all.first() else { return };
    let is_root = |of: &Suspect| {
        let leads = leads(of.cause, first.cause) && !leads(first.cause, of.cause);
        of.cause != first.cause && of.confidence >= NAMED && leads && of.shows_more_than(first)
    };
    let root = all.iter().position(is_root).unwrap_or(0);
    all[..=root].rotate_right(1);
    let Some((root, others)) = all.split_first_mut() else { return };
    for suspect in others {
        if leads(root.cause, suspect.cause) && !suspect.cause.is(Trait::Outside) && root.shows_more_than(suspect) {
            suspect.follows_from = Some(root.cause);
            root.leads = true;
        }
    }
}
