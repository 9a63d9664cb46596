//! Episodes against recordings whose answers are known: several stretches of 8 to 100 times the latency or none at all, under noise that
//! is wide, has a memory, spikes for a second or two, or goes up and down with the day; and clients who wait, so that nothing at all
//! is due in the worst seconds.
//!
//! To see precision and recall: `cargo xtask test -p holdup-diagnose episodes --no-capture`

use holdup_diagnose::ClientView;
use holdup_recording::rows::Request;
use holdup_signals::Window;
use holdup_signals::time::episodes::{Episode, find};

use crate::chance::Chance;

/// Recordings of each kind.
const EACH: usize = 25;

const S: i64 = 1_000_000_000;

/// An episode is found if it and a true one overlap for this share (0-1) of both together.
const OVERLAP: f64 = 0.7;

/// What noise is like.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Requests differ by chance.
    Plain,
    /// Seconds differ by as much as requests.
    Wide,
    /// Seconds are like their neighbours.
    Memory,
    /// One second in twenty is ten times as slow.
    Spikes,
    /// A slow wave of a factor of two and a half from its foot to its top.
    Daily,
    /// Eight clients who wait for their answers: when those take seconds, nothing is due in between.
    Closed,
}

const KINDS: [Kind; 6] = [Kind::Plain, Kind::Wide, Kind::Memory, Kind::Spikes, Kind::Daily, Kind::Closed];

/// True episodes: apart from one another and from the ends, as from and to in seconds, with how many times slower.
fn truth(chance: &mut Chance, seconds: i64, count: i64) -> Vec<(i64, i64, f64)> {
    let slot = seconds / count.max(1);
    (0..count)
        .map(|i| {
            let length = chance.between(0.12, 0.5) * slot as f64;
            let from = i * slot + (chance.between(0.2, 0.45) * slot as f64) as i64;
            (from, from + (length as i64).max(15), 8.0 * 12.5_f64.powf(chance.next()))
        })
        .collect()
}

/// Requests of `seconds` seconds of that kind.
fn requests(chance: &mut Chance, kind: Kind, seconds: i64, truth: &[(i64, i64, f64)]) -> Vec<Request> {
    let base = chance.between(2.0, 40.0);
    let times = |s: i64| truth.iter().find(|(from, to, _)| *from <= s && s < *to).map_or(1.0, |(.., by)| *by);
    let mut state = 0.0_f64;
    let level: Vec<f64> = (0..seconds)
        .map(|s| {
            state = 0.9 * state + 0.436 * chance.noise();
            let of_second = match kind {
                Kind::Wide => (0.4 * chance.noise()).exp(),
                Kind::Memory => (0.35 * state).exp(),
                Kind::Spikes if chance.next() < 0.05 => 10.0,
                Kind::Daily => (0.46 * (s as f64 * std::f64::consts::TAU / seconds as f64).sin()).exp(),
                _ => (0.1 * chance.noise()).exp(),
            };
            base * of_second * times(s)
        })
        .collect();
    let mut rows = Vec::new();
    let mut put = |at: i64, ms: f64| {
        let done_at = at + (ms * 1e6) as i64;
        rows.push(Request { intended_at: at, done_at, outcome: "ok".into(), weight: 1, ..Request::default() });
        done_at
    };
    if kind == Kind::Closed {
        for client in 0..8 {
            let mut at = client * S / 8;
            while at < seconds * S {
                let ms = 30.0 * level[(at / S) as usize] * (0.3 * chance.noise()).exp();
                at = put(at, ms) + S / 4;
            }
        }
        rows.sort_by_key(|r| r.intended_at);
        return rows;
    }
    for k in 0..seconds * 8 {
        let at = k * S / 8;
        put(at, level[(at / S) as usize] * (0.5 * chance.noise()).exp());
    }
    rows
}

/// Overlap of two windows over both together.
fn overlap(a: Window, b: Window) -> f64 {
    let both = (a.to.min(b.to) - a.from.max(b.from)).max(0) as f64;
    both / ((a.to.max(b.to) - a.from.min(b.from)) as f64)
}

#[test]
fn episodes_are_found_and_noise_is_none() {
    let mut chance = Chance(7);
    let (mut right, mut wrong, mut missed) = (0, 0, 0);
    for kind in KINDS {
        let (mut of_kind, mut true_ones, mut found_ones, mut overlaps) = (0, 0, 0, 0.0);
        for i in 0..EACH {
            let seconds = chance.between(300.0, 900.0) as i64;
            // A third of the recordings has none.
            let count = if i % 3 == 0 { 0 } else { 1 + (i % 4) as i64 };
            let truth = truth(&mut chance, seconds, count);
            let rows = requests(&mut chance, kind, seconds, &truth);
            let found: Vec<Episode> = find(&ClientView::from_requests(&rows).seconds);
            let mut hits = 0;
            for (from, to, _) in &truth {
                let is = Window { from: from * S, to: to * S };
                let best = found.iter().map(|e| overlap(e.window, is)).fold(0.0, f64::max);
                if best >= OVERLAP {
                    hits += 1;
                    overlaps += best;
                }
            }
            (of_kind, true_ones, found_ones) = (of_kind + hits, true_ones + truth.len(), found_ones + found.len());
        }
        println!(
            "{kind:?}: {of_kind} of {true_ones} episodes found, {} more that are none; mean overlap {:.2}",
            found_ones - of_kind,
            overlaps / f64::from(of_kind as u32).max(1.0)
        );
        right += of_kind;
        wrong += found_ones - of_kind;
        missed += true_ones - of_kind;
    }
    let (precision, recall) = (right as f64 / (right + wrong) as f64, right as f64 / (right + missed) as f64);
    println!("precision {precision:.3}, recall {recall:.3} over {} recordings", EACH * KINDS.len());
    assert!(precision >= 0.97 && recall >= 0.97, "precision {precision}, recall {recall}");
}
