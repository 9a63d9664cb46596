//! Which finding follows from which: roles and shares by the edges that the causes name. A finding that
//! follows from another is a symptom, one that adds to another's limit contributes, and one that follows
//! from none is a root. A pure function of findings, edges and circumstances: the order of the findings
//! does not matter.
//!
//! Nearer consequences are settled after the causes that they may follow from, so that each finds the
//! role that its own causes have.

mod circumstances;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub(crate) use self::circumstances::{ActiveEdge, Circumstances, Needed};
use crate::causes::{Cause, Contribution, Role, Source, Tier, Trait};

/// A cause leads to another if it makes up at least this share (0-1) of it: most of it would go
/// with the cause.
const BRINGS_ABOUT: f64 = 0.5;

/// Where more load is all that changed.
const LOAD: Tier = &[Source::With(Trait::Load)];

/// The limits and full disks that unchanged demands contribute to.
const DISK_LIMITS: Tier = &[Source::With(Trait::DiskLimit)];
const FULL_DISKS: Tier = &[Source::With(Trait::FullDisk)];

/// A finding, before and after it is linked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Linked {
    pub cause: Cause,
    /// Milliseconds of a mean slow request that it accounts for.
    pub explains_ms: f64,
    pub role: Role,
    /// The finding that it is a consequence of.
    pub follows_from: Option<Cause>,
    /// The finding that it adds to.
    pub adds_to: Option<Cause>,
    /// Causes that may lead to it and could not be judged: the same time may be theirs.
    pub unseen: usize,
}

impl Linked {
    pub(crate) fn new(cause: Cause, explains_ms: f64, role: Role) -> Self {
        Self { cause, explains_ms, role, follows_from: None, adds_to: None, unseen: 0 }
    }
}

/// Links `found`, in any order, and returns them in the order of the causes.
pub(crate) fn link(found: Vec<Linked>, of: &Circumstances) -> Vec<Linked> {
    let mut chain = Chain { found: found.into_iter().map(|finding| (finding.cause, finding)).collect(), of };
    chain.set_aside();
    for cause in chain.order() {
        for edge in of.edges.iter().filter(|edge| edge.consequence == cause) {
            chain.settle(edge);
        }
    }
    chain.share();
    chain.contribute();
    chain.found.into_values().collect()
}

/// The findings while they are linked.
struct Chain<'a> {
    found: BTreeMap<Cause, Linked>,
    of: &'a Circumstances,
}

impl Chain<'_> {
    /// The findings, consequences after the causes that they may follow from; of several the one that a
    /// request meets first.
    fn order(&self) -> Vec<Cause> {
        let mut left: Vec<Cause> = self.found.keys().copied().collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            let waits = |cause: &Cause| left.iter().any(|other| other != cause && self.may_lead_to(*other, *cause));
            let next = left.iter().position(|cause| !waits(cause)).unwrap_or(0);
            order.push(left.remove(next));
        }
        order
    }

    fn may_lead_to(&self, cause: Cause, consequence: Cause) -> bool {
        let edges = consequence.definition().follows_from.iter();
        self.can_lead(cause) && edges.flat_map(|edge| edge.from).copied().flatten().any(|source| source.has(cause))
    }

    /// Whether it can lead to what lies behind the app: not if it is how a queue in front of the app looks
    /// from outside. Packets that a full accept queue drops were lost there.
    fn can_lead(&self, cause: Cause) -> bool {
        let is_in_front = |source: Source| self.found.keys().any(|of| of.is(Trait::InFrontOfApp) && source.has(*of));
        let names_front = || {
            let edges = cause.definition().follows_from.iter();
            let named = edges.flat_map(|edge| edge.from).copied().flatten().copied();
            named.filter(|source| *source != Source::AnyBehindApp).any(is_in_front)
        };
        cause.is(Trait::InFrontOfApp) || !names_front()
    }

    /// A statement that grew hurts by what it makes the server do, if that is known: queues follow from
    /// that, and the statement adds to it.
    fn set_aside(&mut self) {
        let aside: Vec<Cause> = self
            .contributions()
            .filter(|(cause, of)| of.least > 0.0 && self.adds_to(*cause, of).is_some())
            .map(|(cause, _)| cause)
            .collect();
        aside.into_iter().for_each(|cause| self.at(cause).role = Role::Contributor);
    }

    fn settle(&mut self, edge: &ActiveEdge) {
        let cause = edge.consequence;
        let is_limit = cause.is(Trait::DiskLimit);
        let finding = &self.found[&cause];
        // A limit that came down under an unchanged demand does not follow from that demand, but may from the
        // end of a burst. Neither does a disk that got slow. And a nearer edge may have settled it.
        let is_of_burst = edge.edge.from.iter().all(|tier| *tier == [Source::With(Trait::DiskBurst)]);
        let is_unasked = is_limit && self.of.came_down && !is_of_burst;
        let is_slow = cause.is(Trait::FullDisk) && self.of.got_slow;
        if is_unasked || is_slow || finding.follows_from.is_some() {
            return;
        }
        let waited_ms = finding.explains_ms;
        let magnitude_ms = match edge.needed {
            Needed::Own(part) => part * waited_ms.min(self.of.excess_ms),
            Needed::Measured(ms) => ms,
        };
        let least = BRINGS_ABOUT * magnitude_ms;
        let tips = || self.contributor(cause, 0.0, &self.of.tips).filter(|_| is_limit);
        let changed = self.contributor(cause, least, &self.of.began).or_else(tips);
        let Some(root) = changed.or_else(|| self.nearest(edge, least)) else {
            // A cause's time that comes before the finding's own was measured, and bounds what there is.
            let unseen = |edge: &ActiveEdge| {
                let may_lead = edge.edge.causes().into_iter();
                may_lead.filter(|cause| self.of.not_judged.contains(cause)).count()
            };
            let unseen = if edge.edge.is_added { 0 } else { unseen(edge) };
            self.at(cause).unseen += unseen;
            if cause.is(Trait::Pool) && self.found[&cause].role == Role::Symptom {
                self.spread(cause, magnitude_ms);
            }
            return;
        };
        let finding = self.at(cause);
        (finding.follows_from, finding.role) = (Some(root), Role::Symptom);
        let is_line = cause.is(Trait::Line) || self.of.tips.contains(&root) && is_limit;
        let mut at = Some(root).filter(|_| edge.edge.is_added || is_line);
        while let Some(cause) = at {
            // What leads to the cause has that much on top of it, or as much as all in line wait.
            let finding = self.at(cause);
            let own_ms = finding.explains_ms;
            finding.explains_ms = if edge.edge.is_added { own_ms + waited_ms } else { own_ms.max(waited_ms) };
            at = finding.follows_from;
        }
    }

    /// What leads to the consequence of `edge`, by at least `least` milliseconds. More load leads to it only
    /// if nothing else changed; unchanged sizes then do not.
    fn nearest(&self, edge: &ActiveEdge, least: f64) -> Option<Cause> {
        // All of the delay is enough for a load, whatever the resource that it meets is held for.
        let in_tier = |tier: Tier| {
            let least = if tier == LOAD { 0.0 } else { least };
            let strongest = self.strongest(edge.consequence, &|cause| self.is_in(cause, tier), least);
            strongest.filter(|cause| !cause.is(Trait::Load) || self.is_all(*cause))
        };
        let nearest = edge.edge.from.iter().find_map(|tier| in_tier(tier))?;
        let load = edge.edge.from.contains(&LOAD).then(|| in_tier(LOAD)).flatten();
        load.filter(|_| nearest.is(Trait::Size)).or(Some(nearest))
    }

    /// Whether the finding of `cause` belongs to `tier`. What only adds to a queue, by its own judgement, is
    /// not what brings it about.
    fn is_in(&self, cause: Cause, tier: Tier) -> bool {
        let belongs = |source: &Source| {
            source.has(cause) && (*source != Source::AnyBehindApp || self.found[&cause].role != Role::Contributor)
        };
        tier.iter().any(belongs)
    }

    /// The finding among those that `is` holds for that explains most, if that is at least `least`
    /// milliseconds. A root and its symptom are the same time: the root gets it.
    fn strongest(&self, consequence: Cause, is: &dyn Fn(Cause) -> bool, least: f64) -> Option<Cause> {
        let most = |may_be_symptom: bool| {
            let others = self.found.values().filter(|f| f.cause != consequence && self.can_lead(f.cause));
            let among = others.filter(|f| is(f.cause) && (may_be_symptom || f.role != Role::Symptom));
            let most = among.max_by(|a, b| a.explains_ms.total_cmp(&b.explains_ms));
            most.filter(|f| f.explains_ms >= least).map(|f| f.cause)
        };
        most(false).or_else(|| most(true))
    }

    /// Of the causes `among`, a contributor to `consequence` that explains at least `least` milliseconds:
    /// then it is what changed.
    fn contributor(&self, consequence: Cause, least: f64, among: &[Cause]) -> Option<Cause> {
        let adds = |cause: Cause| {
            let to = cause.definition().adds_to.iter().flat_map(|contribution| contribution.to).copied().flatten();
            among.contains(&cause) && to.copied().any(|source| source.has(consequence))
        };
        self.strongest(consequence, &adds, least)
    }

    /// A queue whose holders are held longer by several causes, none of which makes up most of it: each
    /// has its part of the queue, as of the `grown_ms` for which they are held longer.
    fn spread(&mut self, queue: Cause, grown_ms: f64) {
        let factor = 1.0 + self.found[&queue].explains_ms / grown_ms.max(1e-9);
        for (cause, finding) in &mut self.found {
            let is_behind = *cause != queue && Source::AnyBehindApp.has(*cause);
            if is_behind && finding.explains_ms < grown_ms {
                finding.explains_ms *= factor;
            }
        }
    }

    /// What each finding accounts for in the end, at most what there is to explain.
    fn share(&mut self) {
        let leads = |cause: Cause| self.found.values().any(|f| f.follows_from == Some(cause));
        // The resource that ran out is the root, and does not share the time.
        let loads: Vec<Cause> =
            self.found.keys().copied().filter(|cause| cause.is(Trait::Load) && leads(*cause)).collect();
        loads.into_iter().for_each(|cause| self.at(cause).role = Role::Root);
        self.add_up();
        let inside_service = self.of.excess_ms - self.of.client_queue_ms;
        let has_generator = self.found.contains_key(&Cause::LoadGeneratorLimit);
        let waits_outside = !has_generator && self.of.client_queue_ms > 0.0 && inside_service > 0.0;
        let factor = if waits_outside { 1.0 + self.of.client_queue_ms / inside_service } else { 1.0 };
        for finding in self.found.values_mut() {
            finding.explains_ms = (finding.explains_ms * factor).min(self.of.excess_ms);
        }
    }

    /// A thread waits for a CPU or for a disk, never for both at a time: what leads to both waits explains
    /// their sum.
    fn add_up(&mut self) {
        let led_to = |root: Cause, waits: Trait| {
            let led =
                self.found.values().filter(|f| f.cause != root && f.cause.is(waits) && self.root(f.cause) == root);
            led.map(|f| f.explains_ms).fold(0.0, f64::max)
        };
        let sums: Vec<(Cause, f64)> = self
            .found
            .keys()
            .map(|cause| (*cause, led_to(*cause, Trait::FullCpu), led_to(*cause, Trait::FullDisk)))
            .filter(|(_, cpu_ms, disk_ms)| *cpu_ms > 0.0 && *disk_ms > 0.0)
            .map(|(cause, cpu_ms, disk_ms)| (cause, cpu_ms + disk_ms))
            .collect();
        for (cause, sum) in sums {
            let finding = self.at(cause);
            finding.explains_ms = finding.explains_ms.max(sum);
        }
    }

    /// The root of the finding of `cause`.
    fn root(&self, cause: Cause) -> Cause {
        self.found[&cause].follows_from.map_or(cause, |above| self.root(above))
    }

    /// Makes contributors of the findings that only add to others.
    fn contribute(&mut self) {
        let leads = |chain: &Self, cause| chain.found.values().any(|f| f.follows_from == Some(cause));
        let all: Vec<(Cause, &'static Contribution)> = self.contributions().collect();
        for (cause, contribution) in all {
            if leads(self, cause) {
                continue;
            }
            if let Some(to) = self.adds_to(cause, contribution) {
                self.add_to(cause, to);
            }
        }
        // It existed before: not the change, if a limit came down or load grew.
        let is_spike =
            self.found.values().any(|f| f.cause.is(Trait::Load) && f.role == Role::Root && self.is_all(f.cause));
        let existed: Vec<(Trait, Tier)> = [
            (Trait::Standing, DISK_LIMITS, self.of.came_down),
            (Trait::Standing, FULL_DISKS, self.of.got_slow),
            (Trait::Size, FULL_DISKS, is_spike),
        ]
        .into_iter()
        .filter_map(|(kind, limits, is)| is.then_some((kind, limits)))
        .collect();
        for (kind, limits) in existed {
            let roots = self.found.values().filter(|f| f.cause.is(kind) && f.role == Role::Root);
            for cause in roots.map(|f| f.cause).collect::<Vec<_>>() {
                if let Some(to) = self.strongest(cause, &|other| self.is_in(other, limits), 0.0) {
                    self.add_to(cause, to);
                }
            }
        }
    }

    /// What the finding of `cause` adds to by `contribution`: the nearest that explains enough of it.
    fn adds_to(&self, cause: Cause, contribution: &Contribution) -> Option<Cause> {
        let least = contribution.least * self.found[&cause].explains_ms;
        let tiers = contribution.to.iter();
        tiers.copied().find_map(|tier| self.strongest(cause, &|other| self.is_in(other, tier), least))
    }

    /// The contributions that the found causes name.
    fn contributions(&self) -> impl Iterator<Item = (Cause, &'static Contribution)> {
        let named = |cause: Cause| cause.definition().adds_to.iter().map(move |contribution| (cause, contribution));
        self.found.keys().copied().flat_map(named)
    }

    fn add_to(&mut self, cause: Cause, to: Cause) {
        let finding = self.at(cause);
        (finding.adds_to, finding.role) = (Some(to), Role::Contributor);
    }

    /// Whether a load is the only change: at the old rate the whole delay would be gone.
    fn is_all(&self, load: Cause) -> bool {
        self.found[&load].explains_ms >= self.of.excess_ms
    }

    fn at(&mut self, cause: Cause) -> &mut Linked {
        self.found.entry(cause).or_insert_with(|| Linked::new(cause, 0.0, Role::Root))
    }
}
