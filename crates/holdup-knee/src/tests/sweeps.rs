//! Hundreds of searches of services whose knee is known. The large ones are for release builds by hand.

use super::*;

/// One kind of service.
pub(crate) struct Kind {
    pub name: String,
    pub service: Service,
    pub arrivals: Arrivals,
    pub config: Config,
    pub knee: f64,
}

/// What a sweep over seeds showed.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    pub searches: usize,
    pub named: usize,
    pub within: usize,
    pub covered: usize,
    pub stable: usize,
    pub recovered: usize,
    pub error_median: f64,
    pub bias: f64,
    pub width: f64,
    pub elapsed_mean: f64,
    pub elapsed_most: f64,
    pub worst: (f64, u64),
    /// Means of: base, capacity (relative errors), a, k (logarithms against theory), variation of service.
    pub parts: [f64; 5],
}

pub(crate) fn sweep(kind: &Kind, seeds: std::ops::Range<u64>) -> Sweep {
    let mut all = Sweep::default();
    let mut errors = Vec::new();
    for seed in seeds {
        let world = World::new(kind.service, kind.arrivals, seed * 7919 + 1);
        let (finding, steps, elapsed) = world.search(&kind.config);
        let analysis = crate::judge::Analysis::from_steps(&steps, &kind.config);
        if let Some(fit) = &analysis.fit {
            let curve = fit.curve;
            let workers = kind.service.workers as f64;
            all.parts[0] += curve.base_ns * 1e-9 / kind.service.seconds - 1.0;
            all.parts[1] += curve.capacity / kind.service.capacity() - 1.0;
            all.parts[2] += (curve.a * workers).ln();
            all.parts[3] += (curve.k / ((2.0 * (workers + 1.0)).sqrt() - 1.0)).ln();
            all.parts[4] += analysis.variation.service;
        }
        assert!(elapsed <= kind.config.budget.as_secs_f64(), "{elapsed} s with seed {seed}");
        all.searches += 1;
        all.elapsed_mean += elapsed;
        all.elapsed_most = all.elapsed_most.max(elapsed);
        all.stable += usize::from(finding.is_stable);
        all.recovered += usize::from(finding.hysteresis.is_some_and(|hysteresis| hysteresis.recovered));
        let Some(knee) = finding.knee else { continue };
        all.named += 1;
        let error = knee.value / kind.knee - 1.0;
        all.within += usize::from(error.abs() <= 0.1);
        all.covered += usize::from(knee.low <= kind.knee && kind.knee <= knee.high);
        all.width += 0.5 * (knee.high - knee.low) / knee.value;
        all.bias += error;
        errors.push(error.abs());
        if error.abs() > all.worst.0.abs() {
            all.worst = (error, seed);
        }
    }
    all.error_median = crate::statistics::median(&errors);
    all.elapsed_mean /= all.searches as f64;
    all.width /= all.named.max(1) as f64;
    all.parts = all.parts.map(|part| part / all.searches as f64);
    all.bias /= all.named.max(1) as f64;
    all
}

/// Knee over capacity as computed by `print_truths`.
pub(crate) fn known_ratio(arrivals: Arrivals, length: Length, workers: usize) -> f64 {
    let at = [1, 2, 4, 8, 16, 32].iter().position(|known| *known == workers).expect("a known number of workers");
    match (arrivals, length) {
        (Arrivals::Even, Length::Constant) => 1.0,
        (Arrivals::Poisson, Length::Constant) => TRUTH_MD[at],
        (Arrivals::Even, Length::Exponential) => TRUTH_DM[at],
        (Arrivals::Poisson, Length::Exponential) => TRUTH_MM[at],
    }
}

const TRUTH_MD: [f64; 6] = [0.5853, 0.6625, 0.7372, 0.8014, 0.8530, 0.8932];
const TRUTH_DM: [f64; 6] = [0.5701, 0.6655, 0.7467, 0.8121, 0.8632, 0.9009];
const TRUTH_MM: [f64; 6] = [0.5000, 0.5773, 0.6647, 0.7445, 0.8102, 0.8613];

pub(crate) fn kind(arrivals: Arrivals, length: Length, workers: usize, capacity: f64) -> Kind {
    let service = Service::new(workers, workers as f64 / capacity, length);
    Kind {
        name: format!("{arrivals:?} {length:?} c={workers} {capacity}/s"),
        service,
        arrivals,
        config: Config {
            from: 10.0_f64.min(capacity / 3.0),
            most: 40_000.0,
            arrivals_variation: f64::from(u8::from(arrivals == Arrivals::Poisson)),
            ..Config::default()
        },
        knee: capacity * known_ratio(arrivals, length, workers),
    }
}

pub(crate) const STALLS: Stalls = Stalls { per_second: 0.15, shortest: 0.05, longest: 0.3 };

fn print(kind: &Kind, seeds: std::ops::Range<u64>) {
    let all = sweep(kind, seeds);
    println!(
        "{:44} n {:3} named {:3} in10% {:3} cover {:3} stable {:3} recov {:3} | err {:.3} bias {:+.3} width {:.3} | {:3.0} s, most {:3.0} s | worst {:+.2} seed {} | {:+.2?}",
        kind.name,
        all.searches,
        all.named,
        all.within,
        all.covered,
        all.stable,
        all.recovered,
        all.error_median,
        all.bias,
        all.width,
        all.elapsed_mean,
        all.elapsed_most,
        all.worst.0,
        all.worst.1,
        all.parts
    );
}

fn seeds() -> std::ops::Range<u64> {
    0..std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(40)
}

#[test]
#[ignore = "minutes: for release builds by hand; figures are in the journal"]
fn queues() {
    use {Arrivals::*, Length::*};
    for (arrivals, length) in [(Even, Constant), (Poisson, Constant), (Even, Exponential), (Poisson, Exponential)] {
        for (workers, capacity) in [
            (1, 1_000.0),
            (4, 100.0),
            (8, 2_000.0),
            (1, 30.0),
            (32, 32.0),
            (16, 200.0),
            (1, 4.0),
            (2, 2.0),
            (4, 20_000.0),
        ] {
            print(&kind(arrivals, length, workers, capacity), seeds());
        }
    }
}

#[test]
#[ignore = "minutes: for release builds by hand; figures are in the journal"]
fn disturbed_queues() {
    use {Arrivals::*, Length::*};
    for (arrivals, length) in [(Even, Constant), (Poisson, Constant), (Even, Exponential), (Poisson, Exponential)] {
        for (workers, capacity) in [(1, 1_000.0), (4, 100.0), (8, 2_000.0), (16, 200.0)] {
            let plain = kind(arrivals, length, workers, capacity);
            let with = |name: &str, service: Service| Kind {
                name: format!("{} {name}", plain.name),
                service,
                config: plain.config.clone(),
                ..plain
            };
            print(&with("stalls", Service { stalls: Some(STALLS), ..plain.service }), seeds());
            print(&with("bounded", Service { most_in_system: workers + 100, ..plain.service }), seeds());
            print(&with("1 % errors", Service { error_ratio: 0.01, ..plain.service }), seeds());
            print(&with("0.5 % never", Service { never_ratio: 0.005, ..plain.service }), seeds());
            let slow = Metastable { in_system: workers + 60, factor: 2.0, idle: 0.25 };
            print(&with("metastable", Service { metastable: Some(slow), ..plain.service }), seeds());
        }
    }
}

#[test]
#[ignore = "minutes: for release builds by hand; figures are in the journal"]
fn other_services() {
    use {Arrivals::Even, Length::Constant};
    for (alpha, beta, gamma) in [(0.02, 0.0005, 50.0), (0.05, 0.002, 200.0), (0.0, 0.001, 20.0)] {
        // With even arrivals and constant work only: for others the truth is not known in closed form.
        let (arrivals, length) = (Even, Constant);
        let mut kind = kind(arrivals, length, 1, gamma);
        kind.service.usl = Some((alpha, beta));
        // Deterministic: X(N) = rate; elasticity 1 is where d ln X / d ln N = 1/2.
        let slope = |n: f64| (1.0 - alpha - beta * n * n) / (1.0 + alpha * (n - 1.0) + beta * n * (n - 1.0));
        let (mut low, mut high) = (1.0, 1e4);
        for _ in 0..60 {
            let n: f64 = 0.5 * (low + high);
            if slope(n) > 0.5 { low = n } else { high = n }
        }
        kind.knee = kind.service.usl_rate(low);
        kind.name = format!("USL {alpha} {beta} {gamma} {arrivals:?} knee {:.0}", kind.knee);
        print(&kind, seeds());
        kind.service.most_in_system = 200;
        kind.name = format!("{} at most 200", kind.name);
        print(&kind, seeds());
    }
}

#[test]
#[ignore = "prints one search: KIND (a,l,workers,capacity) and SEED"]
fn one() {
    let text = std::env::var("KIND").unwrap_or_else(|_| "p,c,1,30".to_owned());
    let parts: Vec<&str> = text.split(',').collect();
    let arrivals = if parts[0] == "p" { Arrivals::Poisson } else { Arrivals::Even };
    let length = if parts[1] == "c" { Length::Constant } else { Length::Exponential };
    let kind = kind(arrivals, length, parts[2].parse().unwrap(), parts[3].parse().unwrap());
    let mut service = kind.service;
    match parts.get(4) {
        Some(&"stalls") => service.stalls = Some(STALLS),
        Some(&"usl") => {
            service.usl = Some((0.05, 0.002));
            service.most_in_system = 200;
        }
        Some(&"bounded") => service.most_in_system = service.workers + 100,
        Some(&"errors") => service.error_ratio = 0.01,
        Some(&"never") => service.never_ratio = 0.005,
        Some(&"metastable") => {
            service.metastable = Some(Metastable { in_system: service.workers + 60, factor: 2.0, idle: 0.25 })
        }
        _ => {}
    }
    let seed: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let (finding, steps, elapsed) = World::new(service, arrivals, seed * 7919 + 1).search(&kind.config);
    for (point, step) in finding.points.iter().zip(&steps) {
        println!(
            "{:6.1}-{:6.1} {:8} {:9.2} got {:9.2} R {:9.3} ms N {:7.1} growth {:+.3} err {:.3} {:?}",
            step.from.as_secs_f64(),
            step.to.as_secs_f64(),
            step.purpose.name(),
            point.offered,
            point.achieved,
            point.response_ns.unwrap_or(0.0) / 1e6,
            point.in_system,
            point.growth,
            point.error_ratio,
            point.held
        );
    }
    let analysis = crate::judge::Analysis::from_steps(&steps, &kind.config);
    println!(
        "truth {} variation {:?} fit {:?} hold {:?} over {:?}",
        kind.knee, analysis.variation, analysis.fit, analysis.hold, analysis.over
    );
    println!("knee {:?} capacity {:?} breaking {:?}", finding.knee, finding.capacity, finding.breaking_point);
    println!(
        "{:?} {:?} {:?} stable {} {elapsed:.0} s",
        finding.hysteresis, finding.refused, finding.unresolved, finding.is_stable
    );
    println!("{:?}", finding.usl);
}
