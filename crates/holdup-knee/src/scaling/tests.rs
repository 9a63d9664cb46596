//! Made series of known truth: what is said of them, and whether intervals hold it.

use super::*;
use crate::statistics::Random;

/// What is carried by the law with `sigma` and `kappa` at 100/s a unit.
fn truth(value: f64, sigma: f64, kappa: f64) -> f64 {
    100.0 * value / (1.0 + sigma * (value - 1.0) + kappa * value * (value - 1.0))
}

/// One search that is off by `noise` (a share) by luck, and knows it.
fn search(truth: f64, noise: f64, random: &mut Random) -> Estimate {
    let value = truth * (noise * random.normal()).exp();
    Estimate { value, low: value * (-Z * noise).exp(), high: value * (Z * noise).exp() }
}

fn series(values: &[f64], sigma: f64, kappa: f64, noise: f64, seed: u64) -> Vec<CapacityPoint> {
    let mut random = Random::new(seed);
    values
        .iter()
        .map(|&value| CapacityPoint { value, carried: search(truth(value, sigma, kappa), noise, &mut random) })
        .collect()
}

fn holds(estimate: &Estimate, truth: f64) -> bool {
    estimate.low <= truth && truth <= estimate.high
}

const SEEDS: u64 = 100;

fn count(what: impl Fn(u64) -> bool) -> usize {
    (0..SEEDS).filter(|seed| what(*seed)).count()
}

#[test]
fn twice_as_much_of_what_is_linear_is_called_so() {
    let linear = count(|seed| {
        let found = scaling(&series(&[1.0, 2.0], 0.0, 0.0, 0.02, seed)).unwrap();
        assert!(found.law.is_none(), "two values determine no law");
        found.whole == Proportion::Linear && holds(&found.from_smallest[0].carried, 2.0)
    });
    assert!(linear >= 90, "{linear}");
}

#[test]
fn a_serial_part_is_found_and_where_it_begins_to_tell() {
    // Four times as much carries 3.08 times as much.
    let less = count(|seed| {
        let found = scaling(&series(&[1.0, 2.0, 4.0], 0.1, 0.0, 0.02, seed)).unwrap();
        found.whole == Proportion::Less && holds(&found.from_smallest[1].carried, 4.0 / 1.3)
    });
    assert!(less >= 90, "{less}");
    // Two servers, and then something that does not grow.
    let stopped = count(|seed| {
        let mut random = Random::new(seed);
        let carried = [(1.0, 100.0), (2.0, 200.0), (4.0, 260.0)];
        let given = carried.map(|(value, truth)| CapacityPoint { value, carried: search(truth, 0.02, &mut random) });
        scaling(&given).unwrap().proportional_to == Some(2.0)
    });
    assert!(stopped >= 90, "{stopped}");
}

#[test]
fn intervals_of_the_law_hold_the_truth() {
    let values = [1.0, 2.0, 4.0, 8.0];
    for (sigma, kappa) in [(0.0, 0.0), (0.1, 0.0), (0.05, 0.01)] {
        let laws: Vec<ScalingLaw> =
            (0..SEEDS).map(|seed| scaling(&series(&values, sigma, kappa, 0.02, seed)).unwrap().law.unwrap()).collect();
        let of = |what: &dyn Fn(&ScalingLaw) -> bool| laws.iter().filter(|law| what(law)).count();
        let held = [
            of(&|law| holds(&law.gamma, 100.0)),
            of(&|law| holds(&law.sigma, sigma)),
            of(&|law| holds(&law.kappa, kappa)),
        ];
        assert!(held.iter().all(|held| *held >= 90), "sigma {sigma}, kappa {kappa}: {held:?} of {SEEDS}");
    }
}

#[test]
fn where_more_carries_less_is_said() {
    // Its peak is at sqrt(0.95 / 0.05), 4.4 units.
    let found = count(|seed| {
        let found = scaling(&series(&[1.0, 2.0, 4.0, 8.0], 0.05, 0.05, 0.02, seed)).unwrap();
        let peak = found.law.and_then(|law| law.peak);
        found.falls_from == Some(8.0) && peak.is_some_and(|peak| holds(&peak.concurrency, 4.359))
    });
    assert!(found >= 90, "{found}");
    let none = count(|seed| {
        let law = scaling(&series(&[1.0, 2.0, 4.0, 8.0], 0.1, 0.0, 0.02, seed)).unwrap().law.unwrap();
        law.peak.is_none()
    });
    assert!(none >= 90, "{none}");
}

#[test]
fn what_is_not_on_the_law_is_said() {
    let met = count(|seed| {
        let law = scaling(&series(&[1.0, 2.0, 4.0, 8.0], 0.1, 0.0, 0.02, seed)).unwrap().law.unwrap();
        law.is_met == Some(true)
    });
    assert!(met >= 90, "{met}");
    // In proportion, and then nothing more at all.
    let exact = |(value, carried): (f64, f64)| CapacityPoint {
        value,
        carried: Estimate { value: carried, low: 0.98 * carried, high: 1.02 * carried },
    };
    let flat = [(1.0, 100.0), (2.0, 200.0), (4.0, 400.0), (8.0, 400.0), (16.0, 400.0)].map(exact);
    assert_eq!(scaling(&flat).unwrap().law.unwrap().is_met, Some(false));
    assert_eq!(scaling(&flat[..3]).unwrap().law.unwrap().is_met, None);
}

#[test]
fn repeats_narrow_what_is_known_and_disagreement_widens_it() {
    let held = count(|seed| {
        let mut random = Random::new(seed);
        let runs: Vec<Estimate> = (0..4).map(|_| search(100.0, 0.05, &mut random)).collect();
        let all = pooled(&runs).unwrap();
        holds(&all, 100.0)
    });
    assert!(held >= 90, "{held}");
    let mut random = Random::new(1);
    let runs: Vec<Estimate> = (0..4).map(|_| search(100.0, 0.05, &mut random)).collect();
    let one = pooled(&runs[..1]).unwrap();
    let all = pooled(&runs).unwrap();
    assert_eq!(one, runs[0]);
    let widths = (one.high - one.low, all.high - all.low);
    assert!(widths.1 < 0.7 * widths.0, "{widths:?}");
    let sure = |value: f64| Estimate { value, low: 0.99 * value, high: 1.01 * value };
    let apart = pooled(&[sure(80.0), sure(120.0)]).unwrap();
    assert!(apart.low < 82.0 && apart.high > 118.0, "{apart:?}");
    assert_eq!(pooled(&[]), None);
}

#[test]
fn quotas_of_less_than_one_are_units_of_the_smallest() {
    let values = [0.5, 1.0, 2.0];
    let given: Vec<CapacityPoint> = values
        .iter()
        .map(|&value| {
            let carried = truth(2.0 * value, 0.1, 0.0);
            CapacityPoint { value, carried: Estimate { value: carried, low: 0.99 * carried, high: 1.01 * carried } }
        })
        .collect();
    let law = scaling(&given).unwrap().law.unwrap();
    assert!(law.unit == 0.5 && holds(&law.sigma, 0.1), "{law:?}");
    assert!(
        (crate::statistics::scalability::carried(&[law.gamma.value, law.sigma.value, law.kappa.value], 2.0 / law.unit)
            / truth(4.0, 0.1, 0.0)
            - 1.0)
            .abs()
            < 0.01
    );
}

#[test]
fn what_is_not_known_is_not_called_linear() {
    let wide = |value: f64, carried: f64| CapacityPoint {
        value,
        carried: Estimate { value: carried, low: 0.6 * carried, high: 1.5 * carried },
    };
    assert_eq!(scaling(&[wide(1.0, 100.0), wide(2.0, 180.0)]).unwrap().whole, Proportion::Unclear);
    assert_eq!(scaling(&[wide(1.0, 100.0)]), None);
}

#[test]
fn instances_round_up_and_budgets_down() {
    let knee = Estimate { value: 100.0, low: 90.0, high: 125.0 };
    assert_eq!(instances(300.0, &knee, 0.0), InstanceCount { instances: 3, fewest: 3, most: 4 });
    assert_eq!(instances(300.0, &knee, 0.3), InstanceCount { instances: 5, fewest: 4, most: 5 });
    assert_eq!(instances(1.0, &knee, 0.3).instances, 1);
    let fits = budget(3, 10.0, 100.0);
    assert_eq!((fits.connections, fits.instances, fits.fits), (30.0, 10, true));
    let over = budget(12, 10.0, 100.0);
    assert!(!over.fits && over.connections == 120.0 && over.instances == 10);
}
