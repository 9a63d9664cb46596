//! What every fault has to keep.

use std::collections::BTreeSet;

use super::*;
use crate::draw::Draw;
use crate::random::Random;

#[test]
fn there_are_faults_of_every_layer() {
    let all = all();
    let names: BTreeSet<&str> = all.iter().map(|fault| fault.name).collect();
    assert_eq!(names.len(), all.len());
    let faults = all.iter().filter(|fault| !fault.is_control()).count();
    assert!(faults >= 45, "{faults}");
    for family in Family::ALL {
        assert!(all.iter().filter(|fault| fault.family == family).count() >= 3, "{family:?}");
    }
}

#[test]
fn each_says_what_it_is() {
    let slugs: BTreeSet<&str> = holdup_diagnose::explain::pages().iter().map(|page| page.cause.slug()).collect();
    for fault in all() {
        assert!(fault.mechanism.ends_with('.') && fault.mechanism.len() > 12, "{}", fault.name);
        assert!(!fault.is_control() || fault.causes.is_empty(), "{}", fault.name);
        for cause in fault.causes {
            assert!(slugs.contains(cause), "{}: holdup explains no {cause}", fault.name);
        }
    }
}

/// A figure that is asked for and not declared is not a number, which would only be seen when it is played.
#[test]
fn each_parameter_is_declared_and_grows_with_intensity() {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/faults")).unwrap();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.unwrap().path()).ok());
    let sources: String = texts.collect();
    for fault in all() {
        let begin = sources.find(&format!("name: \"{}\",", fault.name)).unwrap();
        let source = sources[begin..].split("name: \"").nth(1).unwrap();
        for asked in source.split("values.get(\"").skip(1) {
            let name = asked.split('"').next().unwrap();
            assert!(fault.parameters.iter().any(|own| own.name == name), "{}: {name}", fault.name);
        }
        for parameter in fault.parameters {
            let at = |intensity| Values::at(fault.parameters, intensity).get(parameter.name);
            assert!((at(0.0) - parameter.mild).abs() < 1e-9 && (at(1.0) - parameter.harsh).abs() < 1e-6);
            assert!(parameter.mild > 0.0 && parameter.harsh > 0.0, "{}", fault.name);
        }
    }
}

/// A fault that fits no topology would be drawn and never played.
#[test]
fn each_fits_a_topology_that_is_drawn() {
    for edition in Edition::ALL {
        let topologies: Vec<Topology> =
            (0..2_000).map(|seed| Topology::draw(&mut Random::new(seed, 2), edition)).collect();
        for fault in dealt(edition) {
            let fitting = topologies.iter().filter(|topology| (fault.fits)(topology)).count();
            assert!(fitting >= 20, "{}: {fitting}", fault.name);
            for seed in edition.first_seed()..edition.first_seed() + 5 {
                let dose = crate::draw::Dose { fault: fault.name.to_owned(), intensity: 1.0 };
                assert!((fault.fits)(&Draw::with(seed, vec![dose]).topology), "{}", fault.name);
            }
        }
    }
}
