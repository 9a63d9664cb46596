//! An episode beside what is normal, as causes look at it: each question answers with a strength from 0 to 1 and the
//! figures it comes from, or not at all where the telemetry is missing. What an answer means is said by the causes.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::effect::{BLOCK_S, CHANCE, Quantity, deviation, mean, nothing, plain_mean};
use crate::frame::Rows;
use crate::jitter::Jitter;

/// Other runs of the same system in which all was well, and what they have been asked already.
#[derive(Debug, Default)]
pub struct Peers<'a> {
    runs: Vec<Rows<'a>>,
    known: Mutex<BTreeMap<&'static str, Vec<Option<f64>>>>,
}

impl<'a> Peers<'a> {
    /// Healthy runs, a set of rows each.
    #[must_use]
    pub fn new(runs: Vec<Rows<'a>>) -> Self {
        Self { runs, known: Mutex::default() }
    }

    /// Their number.
    #[must_use]
    pub fn count(&self) -> usize {
        self.runs.len()
    }

    /// Center and spread (one standard deviation between runs) of a quantity's log2, one run left out.
    fn normal(&self, quantity: &Quantity, left_out: Option<usize>) -> Option<(f64, f64)> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let logs = known.entry(quantity.name).or_insert_with(|| {
            self.runs.iter().map(|run| Some((mean(quantity, run)? + nothing(quantity)).log2())).collect()
        });
        let logs: Vec<f64> =
            logs.iter().enumerate().filter(|(run, _)| Some(*run) != left_out).filter_map(|(_, log)| *log).collect();
        (logs.len() >= 2).then(|| (plain_mean(&logs), deviation(&logs)))
    }
}

/// What an episode is compared with: the run's own healthy time, other healthy runs of the same system, or both.
#[derive(Debug, Clone, Default)]
pub struct Normal<'a> {
    /// Healthy rows of the same run. Where there are any, events are judged against them.
    pub own: Option<Rows<'a>>,
    /// Healthy runs of the same system. States that no run begins or ends are judged against them.
    pub peers: Option<&'a Peers<'a>>,
    /// Which of the peers is the run itself.
    pub left_out: Option<usize>,
}

impl<'a> Normal<'a> {
    /// The run's own healthy time only.
    #[must_use]
    pub fn own(rows: Rows<'a>) -> Self {
        Self { own: Some(rows), ..Self::default() }
    }
}

/// Against what a change is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// The run's own healthy time if it is known, else healthy runs of the same system.
    Nearest,
    /// Healthy runs of the same system if they are known, else the run's own healthy time.
    Peers,
}

/// A change of one quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// What it usually is, in the unit of the quantity.
    pub normal: f64,
    /// What it was in the episode.
    pub episode: f64,
    /// log2 of the ratio, as measured.
    pub octaves: f64,
    /// The same, less what chance gives; 0 if chance gives as much.
    pub effect: f64,
}

/// One answer: how much it holds, from 0 to 1, and the quantities it was read from.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// 0 not at all, 1 fully.
    pub strength: f64,
    /// What was looked at: the quantity's name, what it usually is and what it was.
    pub figures: Vec<(&'static str, f64, f64)>,
}

impl Reading {
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
    /// Looks at rows of a run beside what is normal.
    #[must_use]
    pub const fn new(episode: &'a Rows<'a>, normal: &'a Normal<'a>, jitter: Jitter, place: &'static str) -> Self {
        Self { episode, normal, jitter, place }
    }

    /// A constant of a cause: the one written there, unless robustness is being tried.
    #[must_use]
    pub fn constant(&self, name: &str, value: f64) -> f64 {
        self.jitter.of(&format!("{}/{name}", self.place), value)
    }

    /// The mean of a quantity in the episode.
    #[must_use]
    pub fn level(&self, quantity: &Quantity) -> Option<f64> {
        mean(quantity, self.episode)
    }

    /// How a quantity differs from normal.
    #[must_use]
    pub fn change(&self, quantity: &Quantity, against: Against) -> Option<Change> {
        let own = || self.against_own(quantity);
        let peers = || self.against_peers(quantity);
        match against {
            Against::Nearest => own().or_else(peers),
            Against::Peers => peers().or_else(own),
        }
    }

    fn against_own(&self, quantity: &Quantity) -> Option<Change> {
        let own = self.normal.own.as_ref().filter(|rows| !rows.is_empty())?;
        let (episode, normal) = (mean(quantity, self.episode)?, mean(quantity, own)?);
        let logs = block_logs(quantity, own);
        let blocks = |rows: &Rows| (rows.numbers().len().div_ceil(block_rows(rows))).max(1);
        #[expect(clippy::cast_precision_loss, reason = "counts of rows")]
        let share = (1.0 / blocks(self.episode) as f64 + 1.0 / blocks(own) as f64).sqrt();
        Some(self.changed(quantity, (normal + nothing(quantity)).log2(), episode, deviation(&logs) * share))
    }

    fn against_peers(&self, quantity: &Quantity) -> Option<Change> {
        let (center, spread) = self.normal.peers?.normal(quantity, self.normal.left_out)?;
        Some(self.changed(quantity, center, mean(quantity, self.episode)?, spread))
    }

    fn changed(&self, quantity: &Quantity, normal_log: f64, episode: f64, error: f64) -> Change {
        let octaves = (episode + nothing(quantity)).log2() - normal_log;
        let chance = self.jitter.of("chance", CHANCE) * error;
        Change {
            normal: normal_log.exp2() - nothing(quantity),
            episode,
            octaves,
            effect: octaves.signum() * (octaves.abs() - chance).max(0.0),
        }
    }

    /// How far a quantity rose, fully at so many octaves.
    #[must_use]
    pub fn up(&self, quantity: &Quantity, octaves: f64) -> Option<Reading> {
        self.moved(quantity, octaves, Against::Nearest, 1.0)
    }

    /// How far a quantity fell, fully at so many octaves.
    #[must_use]
    pub fn down(&self, quantity: &Quantity, octaves: f64) -> Option<Reading> {
        self.moved(quantity, octaves, Against::Nearest, -1.0)
    }

    /// How far a quantity lies over healthy runs of the same system, fully at so many octaves.
    #[must_use]
    pub fn higher(&self, quantity: &Quantity, octaves: f64) -> Option<Reading> {
        self.moved(quantity, octaves, Against::Peers, 1.0)
    }

    /// How far a quantity lies under healthy runs of the same system, fully at so many octaves.
    #[must_use]
    pub fn lower(&self, quantity: &Quantity, octaves: f64) -> Option<Reading> {
        self.moved(quantity, octaves, Against::Peers, -1.0)
    }

    /// Whether a quantity did not rise: fully if it fell or stayed, not at all from so many octaves up.
    #[must_use]
    pub fn steady(&self, quantity: &Quantity, octaves: f64) -> Option<Reading> {
        self.up(quantity, octaves).map(Reading::inverse)
    }

    /// Whether a quantity did not fall: fully if it rose or stayed, not at all from so many octaves down.
    #[must_use]
    pub fn not_down(&self, quantity: &Quantity, octaves: f64) -> Option<Reading> {
        self.down(quantity, octaves).map(Reading::inverse)
    }

    /// Whether a quantity stayed: not at all from so many octaves to either side.
    #[must_use]
    pub fn flat(&self, quantity: &Quantity, octaves: f64) -> Option<Reading> {
        let change = self.change(quantity, Against::Nearest)?;
        let full = self.constant(quantity.name, octaves);
        Some(Reading {
            strength: 1.0 - (change.effect.abs() / full).clamp(0.0, 1.0),
            figures: vec![(quantity.name, change.normal, change.episode)],
        })
    }

    /// How far a quantity lies over normal right after the episode, fully at so many octaves.
    #[must_use]
    pub fn up_after(&self, quantity: &Quantity, octaves: f64) -> Option<Reading> {
        let own = self.normal.own.as_ref()?;
        let last = *self.episode.numbers().last()?;
        let after = self.episode.frame().range(last + 1..last + 1 + block_rows(self.episode));
        if after.is_empty() {
            return None;
        }
        let own = Normal::own(own.clone());
        View { episode: &after, normal: &own, jitter: self.jitter, place: self.place }.up(quantity, octaves)
    }

    fn moved(&self, quantity: &Quantity, octaves: f64, against: Against, sign: f64) -> Option<Reading> {
        let change = self.change(quantity, against)?;
        let full = self.constant(quantity.name, octaves);
        Some(Reading {
            strength: (sign * change.effect / full).clamp(0.0, 1.0),
            figures: vec![(quantity.name, change.normal, change.episode)],
        })
    }

    /// Whether a quantity's level is high: not at all at `from`, fully at `to` (which may lie below `from`: low).
    #[must_use]
    pub fn level_from_to(&self, quantity: &Quantity, from: f64, to: f64) -> Option<Reading> {
        let level = self.level(quantity)?;
        let (from, to) = (self.constant(&format!("{} from", quantity.name), from), self.constant(quantity.name, to));
        let normal = self.change(quantity, Against::Nearest).map_or(f64::NAN, |change| change.normal);
        Some(Reading {
            strength: ((level - from) / (to - from)).clamp(0.0, 1.0),
            figures: vec![(quantity.name, normal, level)],
        })
    }
}

/// The strongest of those that are known: several ways to see one thing.
#[must_use]
pub fn any<const N: usize>(readings: [Option<Reading>; N]) -> Option<Reading> {
    joined(readings, |strengths| strengths.iter().copied().fold(0.0, f64::max))
}

/// The weakest of those that are known: things that must hold together.
#[must_use]
pub fn all<const N: usize>(readings: [Option<Reading>; N]) -> Option<Reading> {
    joined(readings, |strengths| strengths.iter().copied().fold(1.0, f64::min))
}

/// The mean of those that are known: correlated counters, which are one vote together.
#[must_use]
pub fn group<const N: usize>(readings: [Option<Reading>; N]) -> Option<Reading> {
    joined(readings, plain_mean)
}

fn joined<const N: usize>(readings: [Option<Reading>; N], join: impl Fn(&[f64]) -> f64) -> Option<Reading> {
    let known: Vec<Reading> = readings.into_iter().flatten().collect();
    if known.is_empty() {
        return None;
    }
    let strengths: Vec<f64> = known.iter().map(|reading| reading.strength).collect();
    Some(Reading {
        strength: join(&strengths),
        figures: known.into_iter().flat_map(|reading| reading.figures).collect(),
    })
}

fn block_rows(rows: &Rows) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
    let block = (BLOCK_S / rows.frame().period_s().max(0.001)).round() as usize;
    block.max(1)
}

/// log2 of a quantity in each block of neighboring rows.
fn block_logs(quantity: &Quantity, rows: &Rows) -> Vec<f64> {
    rows.numbers()
        .chunks(block_rows(rows))
        .filter_map(|chunk| mean(quantity, &rows.frame().pick(chunk.iter().copied())))
        .map(|value| (value + nothing(quantity)).log2())
        .collect()
}
