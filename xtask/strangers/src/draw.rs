//! From a seed to a draw: topology, load, fault and times. A pure function of the seed, so that a seed names a draw on
//! every machine; what a machine cannot play it skips, and the draw stays what it is.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::edition::Edition;
use crate::faults::{self, Fault, Setup, Values};
use crate::load::Load;
use crate::random::Random;
use crate::topology::Topology;

/// Seeds below this are for learning: their scores never count.
pub const LEARNING: u64 = 1_000;

/// How often each control is in a block of seeds: about a quarter of all draws are controls.
const CONTROL_WEIGHT: usize = 3;

/// Share (0-1) of draws of a fault that get a second one.
const COMPOUND: f64 = 0.13;

/// Tries to find a topology that fits. The rarest needs some forty on average.
const TRIES: usize = 2_000;

/// A fault of a draw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dose {
    /// Name of the fault.
    pub fault: String,
    /// From barely visible (0) to harsh (1).
    pub intensity: f64,
}

impl Dose {
    /// The fault; none if this version has none of that name.
    pub fn fault(&self) -> Option<&'static Fault> {
        faults::by_name(&self.fault)
    }

    /// Its figures.
    pub fn values(&self) -> Values {
        self.fault().map_or_else(|| Values::at(&[], 0.0), |fault| Values::at(fault.parameters, self.intensity))
    }
}

/// A draw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Draw {
    /// What names it.
    pub seed: u64,
    /// What it is played on.
    pub topology: Topology,
    /// The load, as the faults want it.
    pub load: Load,
    /// One fault, or two.
    pub doses: Vec<Dose>,
    /// When the fault begins, seconds from the start of the load.
    pub onset_s: f64,
    /// When it ends.
    pub end_s: f64,
    /// Length of the load.
    pub seconds: f64,
}

impl Draw {
    /// The draw of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed, 1);
        let mut doses = vec![Dose { fault: kind(seed).name.to_owned(), intensity: random.thousandths() }];
        let is_control = kind(seed).is_control();
        if !is_control && random.chance(COMPOUND) {
            let second = second(&mut random, kind(seed), Edition::of_seed(seed));
            doses.extend(second.map(|fault| Dose { fault: fault.name.to_owned(), intensity: random.thousandths() }));
        }
        Self::with(seed, doses)
    }

    /// The draw of `seed` with other faults: for trying out one by hand.
    pub fn with(seed: u64, doses: Vec<Dose>) -> Self {
        let fits = |topology: &Topology| doses.iter().filter_map(Dose::fault).all(|fault| (fault.fits)(topology));
        let mut random = Random::new(seed, 2);
        let edition = Edition::of_seed(seed);
        let mut topology = Topology::draw(&mut random, edition);
        for _ in 0..TRIES {
            if fits(&topology) {
                break;
            }
            topology = Topology::draw(&mut random, edition);
        }
        let load = Load::draw(&mut Random::new(seed, 3), &topology);
        let mut draw = Self { seed, topology, load, doses, onset_s: 0.0, end_s: 0.0, seconds: 0.0 };
        draw.load = draw.wishes().load;
        if topology.app.is_shop() {
            // A fault may want more than such a service carries while nothing is wrong.
            draw.load.at_most(Load::most(topology.app));
        }
        let mut random = Random::new(seed, 4);
        // In thousandths, which texts keep exactly.
        draw.onset_s = 7.5 + 1.5 * random.thousandths();
        draw.end_s = draw.onset_s + 14.0 + 2.0 * random.thousandths();
        draw.seconds = draw.end_s + 1.5 * random.thousandths();
        draw
    }

    /// The baseline: its load, and what its faults want beside it.
    pub fn setup(&self) -> Setup {
        Setup { load: self.load.clone(), ..self.wishes() }
    }

    /// What its faults want, which they say of the load as it was drawn.
    fn wishes(&self) -> Setup {
        let mut setup = Setup::new(self.load.clone());
        for dose in &self.doses {
            if let Some(fault) = dose.fault() {
                (fault.prepare)(&mut setup, &dose.values());
            }
        }
        setup
    }

    /// Whether nothing in it harms a request.
    pub fn is_control(&self) -> bool {
        self.doses.iter().filter_map(Dose::fault).all(Fault::is_control)
    }
}

impl fmt::Display for Draw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doses: Vec<String> =
            self.doses.iter().map(|dose| format!("{} {:.2}", dose.fault, dose.intensity)).collect();
        let (seed, rate) = (self.seed, self.load.rate);
        write!(f, "{seed}: {} on {} at {rate:.0}/s", doses.join(" + "), self.topology)
    }
}

/// Every fault of an edition once and every control several times: after so many seeds each kind has had its turn.
fn deck(edition: Edition) -> Vec<&'static Fault> {
    let copies = |fault: &Fault| if fault.is_control() { CONTROL_WEIGHT } else { 1 };
    faults::dealt(edition).into_iter().flat_map(|fault| std::iter::repeat_n(fault, copies(fault))).collect()
}

/// The kind of a seed: seeds that follow each other deal a shuffled deck, so that no kind is left out by chance.
fn kind(seed: u64) -> &'static Fault {
    let edition = Edition::of_seed(seed);
    let mut deck = deck(edition);
    let (first, count) = (edition.first_seed(), deck.len() as u64);
    let (block, place) = ((seed - first) / count, ((seed - first) % count) as usize);
    let mut random = Random::new(first + block, 5);
    for last in (1..deck.len()).rev() {
        deck.swap(last, random.below(last + 1));
    }
    deck[place]
}

/// A fault of another layer that can be played together with `first`.
fn second(random: &mut Random, first: &Fault, edition: Edition) -> Option<&'static Fault> {
    let kinds = faults::dealt(edition);
    for _ in 0..TRIES {
        let fault = kinds[random.below(kinds.len())];
        if fault.is_control() || fault.family == first.family {
            continue;
        }
        let topology = Topology::draw(random, edition);
        if (fault.fits)(&topology) && (first.fits)(&topology) {
            return Some(fault);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{App, Between, Engine, Front, Instruments};
    use sha2::{Digest as _, Sha256};
    use std::collections::BTreeSet;

    #[test]
    fn a_draw_is_a_pure_function_of_its_seed() {
        for seed in [0, 7, 1_234] {
            assert_eq!(Draw::new(seed), Draw::new(seed));
        }
        assert_ne!(Draw::new(1), Draw::new(2));
        let text = serde_json::to_string(&Draw::new(3)).unwrap();
        assert_eq!(serde_json::from_str::<Draw>(&text).unwrap().doses, Draw::new(3).doses);
    }

    #[test]
    fn a_block_of_seeds_has_every_kind() {
        let block = |edition| deck(edition).len() as u64;
        let first = (Edition::First, block(Edition::First));
        let (later, from) = ((Edition::Proxies, block(Edition::Proxies)), Edition::Proxies.first_seed());
        let (last, shops) = ((Edition::Shops, block(Edition::Shops)), Edition::Shops.first_seed());
        let starts = [(first, 0), (first, 10 * first.1), (later, from), (later, from + 2 * later.1), (last, shops)];
        for ((edition, block), start) in starts {
            let draws: Vec<Draw> = (start..start + block).map(Draw::new).collect();
            let kinds: BTreeSet<&str> = draws.iter().map(|draw| draw.doses[0].fault.as_str()).collect();
            assert_eq!(kinds.len(), faults::dealt(edition).len());
            let controls = draws.iter().filter(|draw| draw.is_control()).count() as f64;
            assert!((0.2..0.32).contains(&(controls / draws.len() as f64)), "{controls}");
        }
        let compounds = (0..1_000).map(Draw::new).filter(|draw| draw.doses.len() == 2).count();
        assert!((60..130).contains(&compounds), "{compounds}");
    }

    /// A corpus names its draws by seed: what was played must be what its seed draws today.
    #[test]
    fn seeds_that_were_played_keep_their_draws() {
        let hash = |seeds: std::ops::Range<u64>| {
            let mut hash = Sha256::new();
            seeds.for_each(|seed| hash.update(serde_json::to_string(&Draw::new(seed)).unwrap()));
            hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(hash(0..Edition::Proxies.first_seed()), "dfaf36915a0442b8");
        assert_eq!(hash(Edition::Proxies.first_seed()..Edition::Shops.first_seed()), "b9d2f2bd22e42320");
    }

    #[test]
    fn later_seeds_have_poolers_and_proxies() {
        let from = Edition::Proxies.first_seed();
        let draws: Vec<Draw> = (from..from + 1_200).map(Draw::new).collect();
        let count = |is_so: fn(&Topology) -> bool| draws.iter().filter(|draw| is_so(&draw.topology)).count();
        for between in [Between::PoolerTransaction, Between::PoolerSession, Between::Link] {
            let count = draws.iter().filter(|draw| draw.topology.between == between).count();
            assert!(count >= 40, "{between:?}: {count}");
        }
        assert!(count(|t| t.front == Front::Haproxy) >= 60 && count(|t| t.front == Front::Nginx) >= 40);
        assert_eq!(count(|t| t.between.is_pooler() && t.engine != Engine::Postgresql), 0);
        assert_eq!(count(|t| t.front != Front::Nothing && t.app == App::None), 0);
        assert!((0..from).all(|seed| Draw::new(seed).topology.front == Front::Nothing));
    }

    #[test]
    fn the_last_seeds_have_shops_that_tell_nothing() {
        let from = Edition::Shops.first_seed();
        assert!((0..from).all(|seed| !Draw::new(seed).topology.app.is_shop()));
        let draws: Vec<Draw> = (from..from + 300).map(Draw::new).collect();
        for shop in [App::Flask, App::Express, App::Spring] {
            let with: Vec<&Topology> = draws.iter().map(|draw| &draw.topology).filter(|t| t.app == shop).collect();
            assert!(with.len() >= 20, "{shop:?}: {}", with.len());
            let is_silent = |t: &&Topology| t.engine == Engine::Postgresql && t.instruments == Instruments::None;
            assert!(with.iter().all(is_silent) && with.iter().all(|t| !t.between.is_pooler()), "{shop:?}");
        }
    }

    #[test]
    fn every_draw_can_be_played() {
        for draw in (0..2_000).map(Draw::new) {
            for fault in draw.doses.iter().filter_map(Dose::fault) {
                assert!((fault.fits)(&draw.topology), "{draw}");
            }
            assert!(draw.onset_s >= 7.5 && draw.seconds <= 27.0 && draw.end_s - draw.onset_s >= 14.0, "{draw}");
            assert!((10.0..=2_100.0).contains(&draw.load.rate) && !draw.load.mix.is_empty(), "{draw}");
            assert!((0.0..1.0).contains(&draw.doses[0].intensity));
        }
    }
}
