//! The loads of a fleet: one, or shards of one load (`holdup run --shard k/n`), each made by another
//! process. Their counts add up, and their histograms are merged where percentiles are computed.
//! What is missing is never averaged away: [`Fleet::shards`] says which shard is not there, which
//! began late and which ended early.

use std::collections::BTreeMap;

use super::Fleet;
use super::part::Part;
use crate::Recording;
use crate::manifest::{LoadFacts, Manifest, Phase, RunState, Totals};

/// A shard that begins so much later than the first is late, nanoseconds: processes that wait for
/// one time wake within some milliseconds of each other.
const LATE_NS: i64 = 100_000_000;

/// A shard that ends so much before its schedule ended early, nanoseconds.
const EARLY_NS: i64 = 1_000_000_000;

/// Metrics of the generator begin so.
const LOAD_PREFIX: &str = "holdup_load_";

/// The share of a load that one recording made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shard {
    number: u32,
    of: u32,
}

impl Shard {
    fn parse(load: &LoadFacts) -> Option<Self> {
        let (number, of) = load.shard.as_deref()?.split_once('/')?;
        Some(Self { number: number.parse().ok()?, of: of.parse().ok()? })
    }
}

/// Shards of one load, and what is wrong with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shards {
    /// How many there should be.
    pub of: u32,
    /// Each with its host.
    pub there: Vec<(u32, String)>,
    /// Those that no recording is of.
    pub missing: Vec<u32>,
    /// What is to be said of single ones, in words.
    pub notes: Vec<String>,
}

/// Two loads that are not shards of one, by their numbers, and why; none if all are.
pub(super) fn conflict(manifests: &[Manifest]) -> Option<(usize, usize, &'static str)> {
    let loads = manifests.iter().enumerate().filter_map(|(number, of)| Some((number, of, of.load.as_ref()?)));
    let loads: Vec<(usize, &Manifest, &LoadFacts)> = loads.collect();
    let ((first, of_first, load), others) = loads.split_first()?;
    let length = |manifest: &Manifest| manifest.phases.iter().map(|phase| phase.to - phase.from).sum::<i64>();
    let mut known = vec![Shard::parse(load)];
    for (other, manifest, of_other) in others {
        let shard = Shard::parse(of_other);
        let why = match (known[0], shard) {
            (None, _) | (_, None) => "not both are shards",
            (Some(a), Some(b)) if a.of != b.of => "their numbers of shards differ",
            _ if known.contains(&shard) => "they are the same shard",
            _ if load.operations != of_other.operations => "their operations differ",
            _ if length(of_first) != length(manifest) => "their schedules differ",
            _ => "",
        };
        if !why.is_empty() {
            return Some((*first, *other, why));
        }
        known.push(shard);
    }
    None
}

/// The load of all `recordings` together, its phases and its scenario. Loops of several generators
/// differ by their host.
pub(super) fn joined(recordings: &mut [Recording], parts: &[Part]) -> (Option<LoadFacts>, Vec<Phase>, Option<String>) {
    let loads = recordings.iter().filter(|recording| recording.manifest.load.is_some()).count();
    let mut all: Option<(LoadFacts, Vec<Phase>, Option<String>)> = None;
    let mut shards = Vec::new();
    for (recording, part) in recordings.iter_mut().zip(parts) {
        let Some(load) = recording.manifest.load.take() else { continue };
        if loads > 1 {
            name_loops(recording, &part.host);
            shards.extend(Shard::parse(&load));
        }
        let manifest = &mut recording.manifest;
        let (phases, scenario) = (std::mem::take(&mut manifest.phases), manifest.scenario.take());
        match &mut all {
            None => all = Some((load, phases, scenario)),
            Some((known, of_known, _)) => {
                add(known, load);
                for (phase, other) in of_known.iter_mut().zip(phases) {
                    (phase.from, phase.to) = (phase.from.min(other.from), phase.to.max(other.to));
                }
            }
        }
    }
    let Some((mut load, phases, scenario)) = all else { return (None, Vec::new(), None) };
    if loads > 1 {
        load.shard = share(&shards);
        // Each generator knew its own seconds only.
        load.objectives.clear();
    }
    (Some(load), phases, scenario)
}

/// The shards in words; none if they are the whole load.
fn share(shards: &[Shard]) -> Option<String> {
    let of = shards.first()?.of;
    let mut numbers: Vec<u32> = shards.iter().map(|shard| shard.number).collect();
    numbers.sort_unstable();
    let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
    (numbers.len() < of as usize).then(|| format!("{}/{of}", texts.join("+")))
}

/// Adds the counts of `other`.
fn add(load: &mut LoadFacts, other: LoadFacts) {
    load.connections = load.connections.saturating_add(other.connections);
    load.loops += other.loops;
    load.wake_quantum_ns = load.wake_quantum_ns.max(other.wake_quantum_ns);
    // The busiest generator is the one that may be too busy.
    load.generator_cpu_ratio =
        [load.generator_cpu_ratio, other.generator_cpu_ratio].into_iter().flatten().reduce(f64::max);
    load.aborted = load.aborted.take().or(other.aborted);
    let mut totals: BTreeMap<String, Totals> =
        std::mem::take(&mut load.totals).into_iter().map(|of| (of.operation.clone(), of)).collect();
    for more in other.totals {
        let of = totals
            .entry(more.operation.clone())
            .or_insert_with(|| Totals { operation: more.operation.clone(), ..Totals::default() });
        (of.offered, of.completed) = (of.offered + more.offered, of.completed + more.completed);
        more.errors.into_iter().for_each(|(kind, count)| *of.errors.entry(kind).or_default() += count);
    }
    load.totals = load.operations.iter().filter_map(|name| totals.remove(name)).collect();
}

/// Puts the host before the labels of loops.
fn name_loops(recording: &mut Recording, host: &str) {
    let Some(condensed) = &mut recording.tables.condensed else { return };
    let series = &mut std::sync::Arc::make_mut(condensed).series.by_metric;
    for (_, of_metric) in series.iter_mut().filter(|(metric, _)| metric.starts_with(LOAD_PREFIX)) {
        let named = std::mem::take(of_metric).into_iter().map(|((source, labels), points)| {
            let label = labels.get("loop").map(|number| format!("{host} {number}"));
            let labels = match label {
                Some(label) => labels.with("loop", label),
                None => labels,
            };
            ((source, labels), points)
        });
        *of_metric = named.collect();
    }
}

impl Fleet {
    /// The shards of the load; none if one recording made all of it.
    pub fn shards(&self) -> Option<Shards> {
        let made = self.parts.iter().filter_map(|part| Some((part, Shard::parse(part.load.as_ref()?)?)));
        let made: Vec<(&Part, Shard)> = made.collect();
        let of = made.first()?.1.of;
        let there: Vec<(u32, String)> = made.iter().map(|(part, shard)| (shard.number, part.host.clone())).collect();
        let missing = (1..=of).filter(|number| there.iter().all(|(known, _)| known != number)).collect();
        let begun = |part: &Part| part.scheduled.as_ref().map(|of| part.moved(of.start));
        let first = made.iter().filter_map(|(part, _)| begun(part)).min();
        let mut notes = Vec::new();
        for (part, shard) in &made {
            let name = format!("shard {}/{of} on {}", shard.number, part.host);
            let late = begun(part).zip(first).map(|(at, first)| at.saturating_sub(first)).filter(|ns| *ns > LATE_NS);
            notes.extend(late.map(|ns| format!("{name} began {:.1} s after the first", ns as f64 / 1e9)));
            notes.extend(early(part).map(|why| format!("{name} {why}")));
        }
        Some(Shards { of, there, missing, notes })
    }
}

/// How the load of `part` ended early, in words.
fn early(part: &Part) -> Option<String> {
    let aborted = part.load.as_ref().and_then(|load| load.aborted.as_ref());
    match (aborted, part.state) {
        (Some(aborted), _) => Some(format!("ended early, because of {}", aborted.text)),
        (None, RunState::Running) => Some("did not end: its holdup still runs or died".to_owned()),
        (None, RunState::Interrupted) => Some(match part.early_ns().filter(|ns| *ns > EARLY_NS) {
            Some(ns) => format!("was stopped {:.0} s before its schedule ended", ns as f64 / 1e9),
            None => "was interrupted".to_owned(),
        }),
        (None, RunState::Complete) => None,
    }
}
