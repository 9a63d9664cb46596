//! A system of ten services, drawn by seed: what each one does, and what may go wrong in it.

use super::draw::Draw;

/// What goes wrong in one service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Its handlers sleep so many milliseconds longer.
    Delay(f64),
    /// What is sent to it arrives so many milliseconds later.
    Network(f64),
    /// Its work takes so many times as much CPU, and queues for its cores.
    Cpu(f64),
    /// A share of its requests fails at once, with the status of an error.
    Error(f64),
    /// The same with an exception, after its work.
    Exception(f64),
    /// The same with a return code, and no other mark.
    Code(f64),
}

/// Looks like a fault and is not one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LookAlike {
    None,
    /// So many times the load, which the cores carry.
    Load(f64),
    /// One request that takes so many milliseconds longer.
    Outlier(f64),
    /// A service restarts: its first requests are slow, for two seconds.
    Deploy,
    /// Other operations are asked for.
    Mix,
}

/// A run of the system.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    /// The faulty service, the fault, and from when to when it lasts, milliseconds.
    pub fault: Option<(usize, Fault)>,
    pub look_alike: LookAlike,
    pub seconds: f64,
    /// From when to when the fault or its look-alike lasts, milliseconds.
    pub stretch: (f64, f64),
    /// One of so many traces is kept.
    pub sampled: u64,
}

#[derive(Clone, Debug)]
pub enum Step {
    /// Milliseconds of CPU.
    Work(f64),
    /// A call of the database, milliseconds.
    Database(f64),
    /// Calls of other handlers, at once.
    Calls(Vec<Call>),
}

#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub handler: usize,
    pub timeout_ms: f64,
    pub retries: u8,
    /// Whether the caller fails with it.
    pub is_needed: bool,
}

#[derive(Clone, Debug)]
pub struct Handler {
    pub service: usize,
    pub name: String,
    pub steps: Vec<Step>,
}

/// The services and what they do.
pub struct System {
    pub names: Vec<String>,
    pub handlers: Vec<Handler>,
    /// Handlers of the service in front with their shares.
    pub operations: Vec<(usize, f64)>,
    pub cores: Vec<usize>,
    pub skew_ms: Vec<f64>,
    pub per_second: f64,
}

const NAMES: [&str; 16] = [
    "cart", "catalog", "checkout", "payment", "shipping", "stock", "price", "search", "review", "profile", "mail",
    "offer", "basket", "ledger", "route", "media",
];

pub const SERVICES: usize = 10;

impl System {
    pub fn draw(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let mut names: Vec<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
        for i in (1..names.len()).rev() {
            names.swap(i, draw.below(i + 1));
        }
        names.truncate(SERVICES - 1);
        names.insert(0, "frontend".to_owned());
        // Services call only those behind them; every one is called.
        let mut handlers: Vec<Handler> = Vec::new();
        let mut of_service: Vec<Vec<usize>> = vec![Vec::new(); SERVICES];
        for service in (0..SERVICES).rev() {
            let count = if service == 0 { 3 } else { 1 + draw.below(2) };
            for n in 0..count {
                let mut steps = steps(&mut draw, service, n, &of_service);
                // No request sets off hundreds of calls.
                while size(&steps, &handlers) > if service == 0 { 3 * MOST_CALLS } else { MOST_CALLS } {
                    let at = steps.iter().rposition(|step| matches!(step, Step::Calls(_))).unwrap_or_default();
                    steps.remove(at);
                }
                let (verb, noun) = (["Get", "List", "Put"][n], &names[service]);
                let name = if service == 0 {
                    format!("GET /{}", ["home", "item", "order"][n])
                } else {
                    format!("{verb} {noun}")
                };
                of_service[service].push(handlers.len());
                handlers.push(Handler { service, name, steps });
            }
        }
        let operations = of_service[0].iter().map(|handler| (*handler, draw.between(0.2, 1.0))).collect();
        Self {
            cores: (0..SERVICES).map(|_| 1 + draw.below(3)).collect(),
            skew_ms: (0..SERVICES).map(|_| draw.between(-2.0, 2.0)).collect(),
            per_second: draw.between(5.0, 12.0),
            names,
            handlers,
            operations,
        }
    }

    /// The mean CPU time that one request of the front needs of `service`, milliseconds: to keep the load below its cores.
    pub fn demand_ms(&self, service: usize) -> f64 {
        fn of(system: &System, handler: usize, service: usize) -> f64 {
            let handler = &system.handlers[handler];
            let of_step = |step: &Step| match step {
                Step::Work(ms) if handler.service == service => *ms * 1.1,
                Step::Calls(calls) => calls.iter().map(|call| of(system, call.handler, service)).sum(),
                _ => 0.0,
            };
            handler.steps.iter().map(of_step).sum()
        }
        let all: f64 = self.operations.iter().map(|(_, share)| share).sum();
        self.operations.iter().map(|(handler, share)| share / all * of(self, *handler, service)).sum()
    }
}

/// Calls that a handler may set off; those of the service in front three times as many.
const MOST_CALLS: usize = 7;

fn size(steps: &[Step], handlers: &[Handler]) -> usize {
    let of = |call: &Call| 1 + size(&handlers[call.handler].steps, handlers);
    let calls = steps.iter().filter_map(|step| if let Step::Calls(calls) = step { Some(calls) } else { None });
    calls.flatten().map(of).sum()
}

fn steps(draw: &mut Draw, service: usize, n: usize, of_service: &[Vec<usize>]) -> Vec<Step> {
    let mut steps = vec![Step::Work(draw.between(1.0, 6.0))];
    let call = |draw: &mut Draw, target: usize| Call {
        handler: of_service[target][draw.below(of_service[target].len())],
        timeout_ms: draw.between(800.0, 3_000.0),
        retries: u8::from(draw.part() < 0.3),
        is_needed: draw.part() < 0.8,
    };
    // The next one behind it, so that every one is called, and some others.
    let behind: Vec<usize> = (service + 1..SERVICES).collect();
    let mut targets: Vec<usize> = Vec::new();
    if n == 0 && !behind.is_empty() {
        targets.push(behind[0]);
    }
    for _ in 0..draw.below(3) {
        if !behind.is_empty() {
            targets.push(behind[draw.below(behind.len().min(5))]);
        }
    }
    if targets.len() > 1 && draw.part() < 0.4 {
        steps.push(Step::Calls(targets.iter().map(|target| call(draw, *target)).collect()));
    } else {
        for target in targets {
            steps.push(Step::Calls(vec![call(draw, target)]));
            steps.push(Step::Work(draw.between(0.3, 2.0)));
        }
    }
    if service > 2 && draw.part() < 0.5 {
        steps.push(Step::Database(draw.between(1.0, 8.0)));
    }
    steps
}
