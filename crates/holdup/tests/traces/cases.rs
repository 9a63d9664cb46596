//! Labelled faults and healthy stretches, by seed.

use super::draw::Draw;
use super::run::{Asked, Kind, Run, SpanFacts};
use super::system::{Fault, LookAlike, Plan, SERVICES, System};

/// What a plan did, beside the same run without it.
#[derive(Debug, Default)]
pub struct Shown {
    pub kept: usize,
    pub met: usize,
    pub failed: usize,
    pub mean_ms: f64,
    pub baseline_ms: f64,
    /// Kept spans of the faulty service that failed in the stretch.
    pub failed_inside: usize,
}

impl Shown {
    pub fn of(run: &Run<'_>, plan: &Plan) -> Self {
        let (asked, (from, to)) = (&run.asked, plan.stretch);
        let is_faulty = |span: &&SpanFacts| {
            plan.fault.is_some_and(|(service, _)| service == span.service)
                && span.kind == Kind::Server
                && span.failed.is_some()
                && (from * 1e3..to * 1e3).contains(&(span.from_us as f64))
        };
        let kept: Vec<&Asked> = asked.iter().filter(|asked| asked.is_kept).collect();
        let within = |asked: &&&Asked| (from..to).contains(&asked.at_ms);
        let mean = |all: &[&Asked]| all.iter().map(|asked| asked.took_ms).sum::<f64>() / all.len().max(1) as f64;
        let now: Vec<&Asked> = kept.iter().filter(within).copied().collect();
        let before: Vec<&Asked> = kept.iter().filter(|asked| asked.at_ms < from).copied().collect();
        Self {
            kept: now.len(),
            met: now.iter().filter(|asked| asked.is_met).count(),
            failed: now.iter().filter(|asked| asked.has_failed).count(),
            mean_ms: mean(&now),
            baseline_ms: mean(&before),
            failed_inside: run.spans.iter().filter(is_faulty).count(),
        }
    }

    /// Whether spans show it inside, although hardly a request of the front is slow or fails.
    pub fn is_shown_inside(&self) -> bool {
        self.failed_inside >= 20
    }

    /// Whether spans show it: it met some requests, and these took clearly longer or failed.
    pub fn is_shown(&self) -> bool {
        let is_slow = self.mean_ms > 1.2 * self.baseline_ms && self.mean_ms > self.baseline_ms + 5.0;
        self.met >= 20 && (is_slow || self.failed as f64 >= 0.05 * self.kept as f64)
    }
}

/// A labelled fault, by seed.
pub fn fault(seed: u64) -> (System, Plan) {
    let system = System::draw(seed);
    let mut draw = Draw::new(seed ^ 0x77);
    // One that is asked for now and then.
    let asked: Vec<usize> = (0..SERVICES).filter(|service| system.demand_ms(*service) > 0.5).collect();
    let service = asked[draw.below(asked.len())];
    let kinds = [
        Fault::Delay(draw.between(40.0, 300.0)),
        Fault::Cpu(draw.between(6.0, 20.0)),
        Fault::Error(draw.between(0.3, 1.0)),
        Fault::Exception(draw.between(0.3, 1.0)),
        Fault::Code(draw.between(0.3, 1.0)),
        Fault::Network(draw.between(30.0, 200.0)),
    ];
    let mut kind = kinds[(seed % kinds.len() as u64) as usize];
    if service == 0 && matches!(kind, Fault::Network(_)) {
        kind = kinds[0];
    }
    let from = draw.between(80.0, 150.0) * 1e3;
    let stretch = (from, from + draw.between(45.0, 80.0) * 1e3);
    let sampled = [1, 1, 2, 3][draw.below(4)];
    let plan =
        Plan { seed, fault: Some((service, kind)), look_alike: LookAlike::None, seconds: 240.0, stretch, sampled };
    (system, plan)
}

/// A healthy stretch, by seed.
pub fn healthy(seed: u64) -> (System, Plan) {
    let mut system = System::draw(seed ^ 0x5555);
    let mut draw = Draw::new(seed ^ 0x99);
    // More load than usual is still carried.
    let most = (0..SERVICES).map(|s| system.demand_ms(s) / system.cores[s] as f64).fold(0.0, f64::max);
    system.per_second = system.per_second.min(0.3 / most * 1e3);
    let all = [
        LookAlike::None,
        LookAlike::Load(draw.between(1.4, 1.9)),
        LookAlike::Outlier(5_000.0),
        LookAlike::Deploy,
        LookAlike::Mix,
    ];
    let look_alike = all[(seed % all.len() as u64) as usize];
    let from = draw.between(80.0, 150.0) * 1e3;
    let sampled = [1, 1, 2, 3][draw.below(4)];
    let plan = Plan { seed, fault: None, look_alike, seconds: 240.0, stretch: (from, from + 60_000.0), sampled };
    (system, plan)
}
