//! Plateau detection against 1,000 series whose answers are known, each simulated: a demand, perhaps a limit, a backlog that
//! is carried over, workers who ask for no more than they can wait for. What the detector sees is what a recording has: parts of
//! a sum with samples missing, and a queue.
//!
//! To see precision and recall: `cargo xtask test -p holdup-diagnose plateaus --no-capture`

use holdup_signals::Window;
use holdup_signals::time::plateau::{QueuedRate, ceilings, falls, sum};

use crate::chance::Chance;

/// Series of each kind; there are twenty kinds.
const EACH: usize = 50;

/// A level that is found has to be as near as this (0-1) to the true one.
const NEAR: f64 = 0.03;

/// What was done and queued in each interval.
type Simulated = Vec<(f64, f64)>;

/// A system that serves `demand(i)` a second up to `limit(i)`; an operation alone takes `wait` seconds. `keeps` is the most
/// that wait or are being served: who waits asks for nothing else.
fn simulate(
    chance: &mut Chance,
    intervals: usize,
    mut demand: impl FnMut(&mut Chance, usize) -> f64,
    limit: impl Fn(usize) -> f64,
    (wait, keeps): (f64, f64),
) -> Simulated {
    let (jitter, wobble) = (chance.between(0.003, 0.02), chance.between(0.03, 0.08));
    let mut backlog = 0.0;
    (0..intervals)
        .map(|i| {
            let most = limit(i) * (1.0 + jitter * chance.noise());
            let asked = demand(chance, i).max(0.0) + backlog;
            let done = asked.min(most);
            let left = (asked - done).min((keeps - done * wait).max(0.0));
            let waiting = f64::midpoint(backlog, left);
            backlog = left;
            (done, done * wait * (1.0 + wobble * chance.noise()) + waiting)
        })
        .collect()
}

/// A demand that goes up and down by itself: noise with a memory.
fn ragged(mean: f64, deviation: f64) -> impl FnMut(&mut Chance, usize) -> f64 {
    let mut state: f64 = 0.0;
    move |chance, _| {
        state = 0.7 * state + 0.71 * chance.noise();
        mean * (deviation * state).exp()
    }
}

fn daily(i: usize, period: f64, least: f64, most: f64) -> f64 {
    least + (most - least) * (0.5 - 0.5 * (std::f64::consts::TAU * i as f64 / period).cos())
}

/// The same as the detector gets it: split into parts by shares that wander, with samples of parts missing, then added up.
fn seen(chance: &mut Chance, simulated: &Simulated, parts: usize, missing: f64) -> Vec<QueuedRate> {
    let mut weights: Vec<f64> = (0..parts).map(|_| chance.between(0.5, 2.0)).collect();
    let mut series = vec![Vec::new(); parts];
    for (i, (done, _)) in simulated.iter().enumerate() {
        weights.iter_mut().for_each(|w| *w = (*w * (0.5 * chance.noise()).exp()).clamp(0.05, 20.0));
        let all: f64 = weights.iter().sum();
        for (part, weight) in series.iter_mut().zip(&weights) {
            if chance.next() >= missing {
                part.push((i as i64, done * weight / all));
            }
        }
    }
    let at = |i: i64| Window { from: i * 1_000_000_000, to: (i + 1) * 1_000_000_000 };
    sum(&series)
        .into_iter()
        .map(|(i, done)| QueuedRate { window: at(i), done, queued: simulated[i as usize].1 })
        .collect()
}

/// A series and what is to be found in it: ceilings in time order, and the interval of the fall if there is one.
struct Known {
    series: Vec<QueuedRate>,
    bound: Option<f64>,
    levels: Vec<f64>,
    falls_at: Option<usize>,
}

const KINDS: [&str; 20] = [
    "capped: all the time",
    "capped: quiet in between",
    "capped: by day",
    "capped: stalls",
    "capped: four devices",
    "capped: parts drift",
    "capped: many samples missing",
    "capped: one episode",
    "burst, then baseline",
    "burst, then baseline, samples missing",
    "free: ragged",
    "free: ragged, large waits",
    "free: slow drift",
    "free: by day",
    "free: idle",
    "free: steady, several in service",
    "free: batches",
    "free: slow for a while",
    "free: its CPU is the limit",
    "CPU at its bound",
];

fn make(kind: usize, chance: &mut Chance) -> Known {
    let n = chance.between(120.0, 400.0) as usize;
    let scale = 10f64.powf(chance.between(1.5, 5.0));
    let level = scale * chance.between(1.0, 3.0);
    // A few operations in service when it is at its level, or far less than one.
    let wait = 10f64.powf(chance.between(-1.0, 0.7)) / level;
    let full = (wait, level * wait * chance.between(3.0, 20.0) + chance.between(10.0, 80.0));
    let none = |_: usize| f64::INFINITY;
    let (mut missing, mut parts, mut levels, mut bound, mut falls_at) = (0.0, 2, vec![level], None, None);
    if chance.next() < 0.3 {
        missing = chance.between(0.02, 0.1);
    }
    // Queues are in operations, so the backlog is, too: rates are of the same unit here.
    let simulated = match kind {
        0 => simulate(chance, n, ragged(1.6 * level, 0.2), |_| level, full),
        1 => {
            let (on, off) = (chance.between(12.0, 40.0), chance.between(4.0, 30.0));
            let busy = move |i: usize| (i as f64 % (on + off)) < on;
            let mut more = ragged(1.5 * level, 0.2);
            let mut less = ragged(0.35 * level, 0.4);
            simulate(chance, n, |c, i| if busy(i) { more(c, i) } else { less(c, i) }, |_| level, full)
        }
        2 => {
            let (period, most) = (chance.between(80.0, 200.0), chance.between(1.3, 2.0));
            let mut around = ragged(1.0, 0.1);
            simulate(chance, n, |c, i| around(c, i) * daily(i, period, 0.2 * level, most * level), |_| level, full)
        }
        3 => {
            let short: Vec<bool> = (0..n).map(|_| chance.next() < 0.2).collect();
            let limit = |i: usize| if short[i] { 0.6 * level } else { level };
            simulate(chance, n, ragged(1.6 * level, 0.2), limit, full)
        }
        4 => {
            parts = 4;
            simulate(chance, n, ragged(1.4 * level, 0.3), |_| level, full)
        }
        5 => simulate(chance, n, |_, i| level * (1.2 + 0.6 * i as f64 / n as f64), |_| level, full),
        6 => {
            missing = chance.between(0.1, 0.25);
            simulate(chance, n, ragged(1.6 * level, 0.2), |_| level, full)
        }
        7 => {
            let (from, long) = (n as f64 * chance.between(0.2, 0.4), chance.between(20.0, 50.0));
            let inside = move |i: usize| (from..from + long).contains(&(i as f64));
            let mut more = ragged(1.7 * level, 0.2);
            let mut less = ragged(0.4 * level, 0.35);
            simulate(chance, n, |c, i| if inside(i) { more(c, i) } else { less(c, i) }, |_| level, full)
        }
        8 | 9 => {
            if kind == 9 {
                missing = chance.between(0.05, 0.15);
            }
            let at = (n as f64 * chance.between(0.2, 0.7)) as usize;
            let burst = level * chance.between(1.5, 3.0);
            (levels, falls_at) = (vec![burst, level], Some(at));
            simulate(chance, n, ragged(1.6 * burst, 0.2), |i| if i < at { burst } else { level }, full)
        }
        10 => simulate(chance, n, ragged(level, chance_deviation(kind)), none, (wait, 0.0)),
        11 => simulate(chance, n, ragged(level, chance_deviation(kind)), none, (20.0 * wait, 0.0)),
        12 => {
            let (by, mut around) = (chance.between(-0.5, 0.8), ragged(1.0, 0.01));
            simulate(chance, n, |c, i| level * around(c, i) * (1.0 + by * i as f64 / n as f64), none, (5.0 * wait, 0.0))
        }
        13 => {
            let (period, mut around) = (chance.between(80.0, 300.0), ragged(1.0, 0.02));
            let demand = |c: &mut Chance, i: usize| around(c, i) * daily(i, period, 0.2 * level, level);
            simulate(chance, n, demand, none, (5.0 * wait, 0.0))
        }
        14 => simulate(chance, n, ragged(level, 0.01), none, (0.3 / level, 0.0)),
        15 => {
            let in_service = chance.between(1.5, 6.0);
            let varies = chance.between(0.02, 0.06);
            simulate(chance, n, |c, _| level * (1.0 + varies * c.noise()), none, (in_service / level, 0.0))
        }
        16 => {
            let (period, in_service) = (chance.between(20.0, 80.0), chance.between(1.5, 6.0));
            let varies = chance.between(0.02, 0.05);
            let batch = move |i: usize| if ((i as f64 / period) as usize).is_multiple_of(2) { 1.0 } else { 0.3 };
            let demand = |c: &mut Chance, i: usize| level * batch(i) * (1.0 + varies * c.noise());
            simulate(chance, n, demand, none, (in_service / level, 0.0))
        }
        17 => {
            // A steady load that is met, on a disk that takes longer for a third of the time.
            let slower = chance.between(5.0, 20.0);
            let mut made = simulate(chance, n, |c, _| level * (1.0 + 0.02 * c.noise()), none, (0.5 / level, 0.0));
            made[n / 3..2 * n / 3].iter_mut().for_each(|(_, queued)| *queued *= slower);
            made
        }
        18 => simulate(chance, n, ragged(2.0 * level, 0.2), |_| level, (0.5 / level, 0.0)),
        _ => {
            bound = Some(1.0);
            let cpus = chance.between(2.0, 32.0);
            let mut demand = ragged(1.5, 0.3);
            let mut made = simulate(chance, n, |c, i| demand(c, i), |_| 0.985, (0.02, 3.0));
            made.iter_mut().for_each(|(done, queued)| (*done, *queued) = (done.min(1.0), *queued * cpus));
            parts = 2;
            made
        }
    };
    if kind >= 10 {
        levels = Vec::new();
    }
    let series = seen(chance, &simulated, parts, missing);
    Known { series, bound, levels, falls_at }
}

/// How far a free demand of that kind goes up and down.
fn chance_deviation(kind: usize) -> f64 {
    if kind == 10 { 0.35 } else { 0.15 }
}

/// Whether what is found is what there is.
fn is_right(known: &Known, found: &[f64], fell_at: Option<i64>) -> bool {
    let levels =
        known.levels.len() == found.len() && known.levels.iter().zip(found).all(|(a, b)| (a - b).abs() <= NEAR * a);
    // Two samples of slack: those of the series that are there.
    let fall = known.falls_at.is_none_or(|at| {
        let instants: Vec<i64> = known.series.iter().map(|i| i.window.from / 1_000_000_000).collect();
        let index = |t: i64| instants.partition_point(|i| *i < t);
        fell_at.is_some_and(|t| index(t / 1_000_000_000).abs_diff(index(at as i64)) <= 2)
    });
    levels && fall
}

#[test]
fn ceilings_are_found_and_nothing_else() {
    let mut chance = Chance(7);
    let (mut right, mut wrong, mut missed) = (0, 0, 0);
    for (kind, name) in KINDS.iter().enumerate() {
        let mut failed = 0;
        for _ in 0..EACH {
            let known = make(kind, &mut chance);
            let all = ceilings(&known.series, known.bound);
            let own = all.iter().filter(|c| c.is_own_bound).count();
            // A CPU that is at its bound has to be seen, as what it is.
            let expects_own = known.bound.is_some();
            let hidden: Vec<_> = all.iter().filter(|c| !c.is_own_bound).cloned().collect();
            let levels: Vec<f64> = hidden.iter().map(|c| c.level).collect();
            let fell_at = falls(&hidden).first().map(|f| f.at);
            let is_right = is_right(&known, &levels, fell_at) && (own > 0) == expects_own;
            failed += usize::from(!is_right);
            let (is, says) = (!known.levels.is_empty() || expects_own, !all.is_empty());
            right += usize::from(is && is_right);
            wrong += usize::from(says && !is_right);
            missed += usize::from(is && !is_right);
            if !is_right && std::env::var_os("HOLDUP_PLATEAUS").is_some() {
                println!("{name}: {:?}, found {:?}, fell {fell_at:?}", known.levels, all);
            }
        }
        println!("{name:<40} {failed} of {EACH} wrong");
    }
    let precision = right as f64 / (right + wrong) as f64;
    let recall = right as f64 / (right + missed) as f64;
    println!("{} series: precision {precision:.4}, recall {recall:.4}", EACH * KINDS.len());
    assert!(precision >= 0.98 && recall >= 0.98, "precision {precision}, recall {recall}");
}
