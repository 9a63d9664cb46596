//! An episode compared with normal time, for the causes: each question returns a strength from 0 to
//! 1 with its figures, or nothing if the telemetry is missing. The causes interpret the answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::trace::quantities::SENT_PER_COMMIT;
use holdup_signals::time::counters::effect::{
    BLOCK_S, CHANCE, Quantity, deviation, mean, nothing, of_sorted, percentile, plain_mean,
};
use holdup_signals::time::counters::frame::Rows;
use holdup_signals::time::counters::jitter::Jitter;

/// Healthy runs of the same system, and the answers computed from them so far.
#[derive(Debug, Default)]
pub struct Peers<'a> {
    runs: Vec<Rows<'a>>,
    known: Mutex<BTreeMap<&'static str, Arc<[Option<f64>]>>>,
    noise: Mutex<BTreeMap<&'static str, f64>>,
}

/// One in this many healthy runs counts as alike, and at least this many.
const ALIKE: usize = 8;
const ALIKE_MIN: usize = 20;

impl<'a> Peers<'a> {
    /// Healthy runs, a set of rows each.
    #[must_use]
    pub fn new(runs: Vec<Rows<'a>>) -> Self {
        Self { runs, ..Self::default() }
    }

    /// Their number.
    #[must_use]
    pub fn count(&self) -> usize {
        self.runs.len()
    }

    /// How much a quantity's log2 moves within a healthy run from block to block: the median run's
    /// standard deviation.
    fn noise(&self, quantity: &Quantity) -> f64 {
        let mut noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        *noise.entry(quantity.name).or_insert_with(|| {
            let runs: Vec<f64> = self.runs.iter().map(|run| deviation(&block_logs(quantity, run))).collect();
            percentile(&runs, 0.5).unwrap_or_default()
        })
    }

    /// The healthy runs whose transactions are most like those of `rows`, by what a transaction
    /// sends to its client, which few faults change. A mix of workloads cannot measure one of them.
    #[must_use]
    pub fn alike(&self, rows: &Rows, left_out: Option<usize>) -> Vec<usize> {
        let log = |rows: &Rows| mean(&SENT_PER_COMMIT, rows).map(f64::log2).filter(|log| log.is_finite());
        let mut runs: Vec<usize> = (0..self.runs.len()).filter(|run| Some(*run) != left_out).collect();
        if let Some(wanted) = log(rows) {
            let known = self.logs(&SENT_PER_COMMIT);
            let far = |run: &usize| known[*run].map_or(f64::INFINITY, |log| (log - wanted).abs());
            runs.sort_by(|a, b| far(a).total_cmp(&far(b)));
            runs.truncate((self.runs.len() / ALIKE).max(ALIKE_MIN));
        }
        runs
    }

    /// log2 of a quantity's mean in each run.
    fn logs(&self, quantity: &Quantity) -> Arc<[Option<f64>]> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let logs = known.entry(quantity.name).or_insert_with(|| {
            let log = |run| Some((mean(quantity, run)? + nothing(quantity)).log2()).filter(|log| log.is_finite());
            self.runs.iter().map(log).collect()
        });
        Arc::clone(logs)
    }

    /// Center and spread of a quantity's log2 over runs: the median, and half the distance between
    /// the 16th and the 84th percentile, which is one standard deviation of normal values and is
    /// robust against one odd run.
    fn normal(&self, quantity: &Quantity, runs: &[usize]) -> Option<(f64, f64)> {
        let logs = self.logs(quantity);
        let mut sorted: Vec<f64> = runs.iter().filter_map(|run| *logs.get(*run)?).collect();
        sorted.sort_by(f64::total_cmp);
        let (low, middle, high) = (of_sorted(&sorted, 0.16)?, of_sorted(&sorted, 0.5)?, of_sorted(&sorted, 0.84)?);
        (sorted.len() >= 2).then_some((middle, (high - low) / 2.0))
    }
}

/// What an episode is compared with: healthy time of the same run, other healthy runs of the same
/// system, or both.
#[derive(Debug, Clone, Default)]
pub struct Normal<'a> {
    /// Healthy rows of the same run. If there are any, they are the normal for events.
    pub own: Option<Rows<'a>>,
    /// Healthy runs of the same system: the normal for states, which neither begin nor end within a
    /// run.
    pub peers: Option<&'a Peers<'a>>,
    /// The peers that count, by index: [`Peers::alike`], without the run itself.
    pub alike: Vec<usize>,
}

impl<'a> Normal<'a> {
    /// The run's own healthy time only.
    #[must_use]
    pub fn own(rows: Rows<'a>) -> Self {
        Self { own: Some(rows), ..Self::default() }
    }
}

/// What a change is measured against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference {
    /// Healthy time of the same run if known, else healthy runs of the same system.
    Nearest,
    /// Healthy runs of the same system if known, else healthy time of the same run.
    Peers,
}

/// A change of one quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Its usual value, in the unit of the quantity.
    pub normal: f64,
    /// Its value in the episode.
    pub episode: f64,
    /// log2 of the ratio, as measured.
    pub octaves: f64,
    /// The same minus what chance gives; 0 if chance gives as much.
    pub effect: f64,
}

/// One answer: how far it holds, from 0 to 1, and the quantities behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// 0 not at all, 1 fully.
    pub strength: f64,
    /// The figures: a quantity's name, its usual value and its value in the episode.
    pub figures: Vec<(&'static str, f64, f64)>,
}

impl Observation {
    /// The opposite.
    #[must_use]
    pub fn inverse(mut self) -> Self {
        self.strength = 1.0 - self.strength;
        self
    }
}

/// An episode beside its normal.
#[derive(Debug)]
pub struct View<'a> {
    episode: &'a Rows<'a>,
    normal: &'a Normal<'a>,
    jitter: Jitter,
    place: &'static str,
}

impl<'a> View<'a> {
    /// Compares rows of a run with normal time.
    #[must_use]
    pub const fn new(episode: &'a Rows<'a>, normal: &'a Normal<'a>, jitter: Jitter, place: &'static str) -> Self {
        Self { episode, normal, jitter, place }
    }

    /// A constant of a cause: the one written there, unless robustness is being tested.
    #[must_use]
    pub fn constant(&self, name: &str, value: f64) -> f64 {
        self.jitter.apply(&format!("{}/{name}", self.place), value)
    }

    /// The mean of a quantity in the episode.
    #[must_use]
    pub fn level(&self, quantity: &Quantity) -> Option<f64> {
        mean(quantity, self.episode)
    }

    /// How much a quantity differs from normal.
    #[must_use]
    pub fn change(&self, quantity: &Quantity, against: Reference) -> Option<Change> {
        let own = || self.against_own(quantity);
        let peers = || self.against_peers(quantity);
        match against {
            Reference::Nearest => own().or_else(peers),
            Reference::Peers => peers().or_else(own),
        }
    }

    fn against_own(&self, quantity: &Quantity) -> Option<Change> {
        let own = self.normal.own.as_ref().filter(|rows| !rows.is_empty())?;
        let (episode, own) =
            if quantity.bursts { self.with_what_is_booked_late(own) } else { (self.episode.clone(), own.clone()) };
        let (observed, normal) = (mean(quantity, &episode)?, mean(quantity, &own)?);
        // A few rows say little about their own noise: it is at least that usual within healthy
        // runs.
        let usual = self.normal.peers.map_or(0.0, |peers| peers.noise(quantity));
        let noise = deviation(&block_logs(quantity, &own)).max(usual);
        let blocks = |rows: &Rows| (rows.numbers().len().div_ceil(block_rows(rows))).max(1);
        #[expect(clippy::cast_precision_loss, reason = "counts of rows")]
        let share = (1.0 / blocks(&episode) as f64 + 1.0 / blocks(&own) as f64).sqrt();
        Some(self.changed(quantity, (normal + nothing(quantity)).log2(), observed, noise * share))
    }

    /// The episode with the rows right after it, and normal time without those. A statement's reads
    /// are counted when it ends, by itself or cut short by the episode's end. Normal is the time
    /// before, if there is enough of it.
    fn with_what_is_booked_late(&self, own: &Rows<'a>) -> (Rows<'a>, Rows<'a>) {
        let frame = self.episode.frame();
        let numbers = self.episode.numbers();
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
            return (self.episode.clone(), own.clone());
        };
        let late = last + 1..last + 1 + block_rows(self.episode);
        let numbers = self.without_what_others_booked(own);
        let rest: Vec<usize> = own.numbers().iter().copied().filter(|row| !late.contains(row)).collect();
        let before: Vec<usize> = rest.iter().copied().filter(|row| row < first).collect();
        let enough = before.len() >= 2 * block_rows(own);
        (frame.pick(numbers.iter().copied().chain(late)), own.frame().pick(if enough { before } else { rest }))
    }

    /// The episode without the rows right after abnormal time, if it has enough others: what those
    /// rows count belongs to the episode before.
    fn without_what_others_booked(&self, own: &Rows<'a>) -> &[usize] {
        let (numbers, block) = (self.episode.numbers(), block_rows(self.episode));
        let is_normal = |row: &usize| own.numbers().contains(row);
        let follows = |first: &usize| {
            let before = first.saturating_sub(block)..*first;
            before.filter(|row| !is_normal(row)).count() > block / 2
        };
        let has_enough = numbers.len() > 2 * block;
        if has_enough && numbers.first().is_some_and(follows) { &numbers[block..] } else { numbers }
    }

    fn against_peers(&self, quantity: &Quantity) -> Option<Change> {
        let (center, spread) = self.normal.peers?.normal(quantity, &self.normal.alike)?;
        Some(self.changed(quantity, center, mean(quantity, self.episode)?, spread))
    }

    fn changed(&self, quantity: &Quantity, normal_log: f64, episode: f64, error: f64) -> Change {
        let octaves = (episode + nothing(quantity)).log2() - normal_log;
        let chance = self.jitter.apply("chance", CHANCE) * error;
        Change {
            normal: normal_log.exp2() - nothing(quantity),
            episode,
            octaves,
            effect: octaves.signum() * (octaves.abs() - chance).max(0.0),
        }
    }

    /// How far a quantity rose, fully at `octaves`.
    #[must_use]
    pub fn up(&self, quantity: &Quantity, octaves: f64) -> Option<Observation> {
        self.moved(quantity, octaves, Reference::Nearest, 1.0)
    }

    /// How far a quantity rose: not at all at `from` octaves, fully at `to`.
    #[must_use]
    pub fn up_from_to(&self, quantity: &Quantity, from: f64, to: f64) -> Option<Observation> {
        let change = self.change(quantity, Reference::Nearest)?;
        Some(self.between(quantity, change, from, to))
    }

    /// How far a quantity rose with the episode, against healthy time of the same run only: an
    /// event, not a state. Not at all at `from` octaves, fully at `to`.
    #[must_use]
    pub fn began(&self, quantity: &Quantity, from: f64, to: f64) -> Option<Observation> {
        let change = self.against_own(quantity)?;
        Some(self.between(quantity, change, from, to))
    }

    /// How far a quantity exceeds healthy runs of the same system: not at all at `from` octaves,
    /// fully at `to`.
    #[must_use]
    pub fn higher_from_to(&self, quantity: &Quantity, from: f64, to: f64) -> Option<Observation> {
        let change = self.change(quantity, Reference::Peers)?;
        Some(self.between(quantity, change, from, to))
    }

    fn between(&self, quantity: &Quantity, change: Change, from: f64, to: f64) -> Observation {
        let (from, to) = (self.constant(&format!("{} from", quantity.name), from), self.constant(quantity.name, to));
        Observation {
            strength: ((change.effect - from) / (to - from).max(f64::EPSILON)).clamp(0.0, 1.0),
            figures: vec![(quantity.name, change.normal, change.episode)],
        }
    }

    /// How far a quantity fell, fully at `octaves`.
    #[must_use]
    pub fn down(&self, quantity: &Quantity, octaves: f64) -> Option<Observation> {
        self.moved(quantity, octaves, Reference::Nearest, -1.0)
    }

    /// How far a quantity exceeds healthy runs of the same system, fully at `octaves`.
    #[must_use]
    pub fn higher(&self, quantity: &Quantity, octaves: f64) -> Option<Observation> {
        self.moved(quantity, octaves, Reference::Peers, 1.0)
    }

    /// How far a quantity falls short of healthy runs of the same system, fully at `octaves`.
    #[must_use]
    pub fn lower(&self, quantity: &Quantity, octaves: f64) -> Option<Observation> {
        self.moved(quantity, octaves, Reference::Peers, -1.0)
    }

    /// Whether a quantity did not rise: fully if it fell or stayed, not at all from `octaves` up.
    #[must_use]
    pub fn steady(&self, quantity: &Quantity, octaves: f64) -> Option<Observation> {
        self.up(quantity, octaves).map(Observation::inverse)
    }

    /// Whether a quantity did not fall: fully if it rose or stayed, not at all from `octaves` down.
    #[must_use]
    pub fn not_down(&self, quantity: &Quantity, octaves: f64) -> Option<Observation> {
        self.down(quantity, octaves).map(Observation::inverse)
    }

    /// Whether a quantity stayed: not at all from `octaves` to either side.
    #[must_use]
    pub fn flat(&self, quantity: &Quantity, octaves: f64) -> Option<Observation> {
        let change = self.change(quantity, Reference::Nearest)?;
        let full = self.constant(quantity.name, octaves);
        Some(Observation {
            strength: 1.0 - (change.effect.abs() / full).clamp(0.0, 1.0),
            figures: vec![(quantity.name, change.normal, change.episode)],
        })
    }

    /// How far a quantity exceeds its value before the episode, in the episode or right after it,
    /// fully at `octaves`. What an episode held back or left behind makes the time after it
    /// unusable as normal.
    #[must_use]
    pub fn up_since_before(&self, quantity: &Quantity, octaves: f64) -> Option<Observation> {
        let own = self.normal.own.as_ref()?;
        let (first, last) = (*self.episode.numbers().first()?, *self.episode.numbers().last()?);
        let frame = self.episode.frame();
        let before = frame.pick(own.numbers().iter().copied().filter(|row| *row < first));
        if before.numbers().len() < 2 * block_rows(&before) {
            return None;
        }
        let before = Normal::own(before);
        let over = |rows: &Rows| {
            View { episode: rows, normal: &before, jitter: self.jitter, place: self.place }.up(quantity, octaves)
        };
        let after = frame.range(last + 1..last + 1 + block_rows(self.episode));
        any([over(self.episode), over(&after)])
    }

    fn moved(&self, quantity: &Quantity, octaves: f64, against: Reference, sign: f64) -> Option<Observation> {
        let change = self.change(quantity, against)?;
        let full = self.constant(quantity.name, octaves);
        Some(Observation {
            strength: (sign * change.effect / full).clamp(0.0, 1.0),
            figures: vec![(quantity.name, change.normal, change.episode)],
        })
    }

    /// Whether a quantity was high in normal time: not at all at `from`, fully at `to` (below `from`
    /// for a low one).
    #[must_use]
    pub fn normal_from_to(&self, quantity: &Quantity, from: f64, to: f64) -> Option<Observation> {
        let change = self.change(quantity, Reference::Nearest)?;
        let (from, to) = (self.constant(&format!("{} from", quantity.name), from), self.constant(quantity.name, to));
        Some(Observation {
            strength: ((change.normal - from) / (to - from)).clamp(0.0, 1.0),
            figures: vec![(quantity.name, change.normal, change.episode)],
        })
    }

    /// Whether a quantity's level is high: not at all at `from`, fully at `to` (below `from` for a
    /// low level).
    #[must_use]
    pub fn level_from_to(&self, quantity: &Quantity, from: f64, to: f64) -> Option<Observation> {
        let level = self.level(quantity)?;
        let (from, to) = (self.constant(&format!("{} from", quantity.name), from), self.constant(quantity.name, to));
        let normal = self.change(quantity, Reference::Nearest).map_or(f64::NAN, |change| change.normal);
        Some(Observation {
            strength: ((level - from) / (to - from)).clamp(0.0, 1.0),
            figures: vec![(quantity.name, normal, level)],
        })
    }
}

/// The strongest known answer: several ways to see one thing.
#[must_use]
pub fn any<const N: usize>(readings: [Option<Observation>; N]) -> Option<Observation> {
    joined(readings, |strengths| strengths.iter().copied().fold(0.0, f64::max))
}

/// The weakest answer, for things that must hold together; unknown if one of them is.
#[must_use]
pub fn all<const N: usize>(readings: [Option<Observation>; N]) -> Option<Observation> {
    if readings.iter().any(Option::is_none) {
        return None;
    }
    joined(readings, |strengths| strengths.iter().copied().fold(1.0, f64::min))
}

/// The mean of the known answers: correlated counters count as one vote together.
#[must_use]
pub fn group<const N: usize>(readings: [Option<Observation>; N]) -> Option<Observation> {
    joined(readings, plain_mean)
}

fn joined<const N: usize>(readings: [Option<Observation>; N], join: impl Fn(&[f64]) -> f64) -> Option<Observation> {
    let known: Vec<Observation> = readings.into_iter().flatten().collect();
    if known.is_empty() {
        return None;
    }
    let strengths: Vec<f64> = known.iter().map(|reading| reading.strength).collect();
    Some(Observation {
        strength: join(&strengths),
        figures: known.into_iter().flat_map(|reading| reading.figures).collect(),
    })
}

fn block_rows(rows: &Rows) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
    let block = (BLOCK_S / rows.frame().period_s().max(0.001)).round() as usize;
    block.max(1)
}

/// log2 of a quantity in each block of adjacent rows.
fn block_logs(quantity: &Quantity, rows: &Rows) -> Vec<f64> {
    rows.numbers()
        .chunks(block_rows(rows))
        .filter_map(|chunk| mean(quantity, &rows.frame().pick(chunk.iter().copied())))
        .map(|value| (value + nothing(quantity)).log2())
        .collect()
}
