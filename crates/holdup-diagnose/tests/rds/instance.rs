//! A database over some hours, minute by minute: its load follows the time of day, with noise, and its
//! figures follow from the load. An incident changes what its mechanism changes.

use super::cases::Case;

pub const MINUTES: usize = 300;
/// 2026-11-22T08:00:00Z, seconds.
pub const START_S: i64 = 1_795_334_400;

/// A generator of random numbers with a seed (SplitMix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5bf0_3635)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About 1, with this spread.
    pub fn noise(&mut self, spread: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| self.unit()).sum();
        (1.0 + spread * (sum - 6.0)).max(0.0)
    }

    pub fn between(&mut self, from: usize, to: usize) -> usize {
        from + (self.next() % (to - from).max(1) as u64) as usize
    }

    /// The mean of 60 samples, one a second, of a number of sessions whose mean is `mean`.
    pub fn sampled(&mut self, mean: f64) -> f64 {
        let spread = (mean / 60.0).sqrt() * 2.0;
        ((mean + spread * (self.noise(1.0) - 1.0)).max(0.0) * 60.0).round() / 60.0
    }
}

/// A minute of the database.
#[derive(Clone, Debug, Default)]
pub struct Minute {
    /// How much is asked of it: 1 is usual.
    pub demand: f64,
    /// How far the incident has come, 0 to 1.
    pub in_incident: f64,
    /// Minutes since the incident began; negative before it.
    pub since: f64,
    pub cpu: f64,
    pub connections: f64,
    pub read_iops: f64,
    pub write_iops: f64,
    /// Bytes of a request.
    pub read_size: f64,
    pub write_size: f64,
    pub read_latency: f64,
    pub write_latency: f64,
    pub queue: f64,
    pub free_memory: f64,
    pub swap: f64,
    pub free_storage: f64,
    pub received: f64,
    pub sent: f64,
    pub burst_balance: f64,
    pub byte_balance: f64,
    pub io_balance: f64,
    pub replica_lag: f64,
    pub slot_lag: f64,
    pub uptime: f64,
    pub deadlocks: f64,
    pub requested_checkpoints: f64,
    /// Mean sessions by wait event.
    pub waits: Vec<(&'static str, f64)>,
    /// The part of the load of the first statement.
    pub heaviest: f64,
}

/// The whole time.
pub struct Course {
    pub seed: u64,
    pub from: usize,
    pub to: usize,
    pub minutes: Vec<Minute>,
}

const MIB: f64 = 1_048_576.0;

impl Course {
    pub fn make(case: &Case, seed: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(31).wrapping_add(case.name.len() as u64 * 1009));
        let from = random.between(120, 200);
        let to = from + random.between(25, 45);
        let phase = random.unit() * std::f64::consts::TAU;
        let scale = 0.7 + 0.6 * random.unit();
        let minutes = (0..MINUTES).map(|n| {
            let wave = 1.0 + 0.2 * (n as f64 / 120.0 + phase).sin();
            let demand = scale * wave * random.noise(0.05);
            let since = n as f64 - from as f64;
            let in_incident = if n < from || n >= to { 0.0 } else { ((since + 1.0) / 3.0).min(1.0) };
            let mut minute = Self::usual(demand, &mut random, n);
            (minute.in_incident, minute.since) = (in_incident, since);
            (case.change)(&mut minute, &mut random, (to - from) as f64);
            minute
        });
        Self { seed, from, to, minutes: minutes.collect() }
    }

    /// A minute of a db.r5.2xlarge without trouble: 8 CPUs, 64 GiB.
    fn usual(demand: f64, random: &mut Random, n: usize) -> Minute {
        let mut around = |value: f64, spread: f64| value * random.noise(spread);
        Minute {
            demand,
            cpu: around(0.12 + 0.16 * demand, 0.04).min(1.0),
            connections: around(120.0 + 40.0 * demand, 0.03).round(),
            read_iops: around(700.0 * demand, 0.10),
            write_iops: around(420.0 * demand, 0.10),
            read_size: around(13_000.0, 0.03),
            write_size: around(15_000.0, 0.03),
            read_latency: around(0.0006, 0.12),
            write_latency: around(0.0009, 0.12),
            queue: around(0.8 * demand, 0.15),
            free_memory: around(11.0e9, 0.01),
            swap: around(12.0 * MIB, 0.01),
            free_storage: 380.0e9 - 1.5e6 * n as f64 + around(4.0e6, 0.5),
            received: around(4.0e6 * demand, 0.06),
            sent: around(22.0e6 * demand, 0.06),
            burst_balance: 1.0,
            byte_balance: 0.99,
            io_balance: 0.99,
            replica_lag: around(0.02, 0.3),
            slot_lag: around(2.0e6, 0.3),
            uptime: 4.0e6 + 60.0 * n as f64,
            deadlocks: 0.0,
            requested_checkpoints: 0.0,
            waits: vec![
                ("CPU", 1.3 * demand),
                ("IO:DataFileRead", 0.45 * demand),
                ("IO:WALSync", 0.16 * demand),
                ("LWLock:WALWrite", 0.05 * demand),
                ("Lock:transactionid", 0.03 * demand),
                ("Client:ClientRead", 0.02 * demand),
            ],
            heaviest: 0.24,
            ..Minute::default()
        }
    }

    /// When users say that it was slow: the incident, not exactly.
    pub fn incident(&self) -> (i64, i64) {
        let at = |minute: usize| (START_S + 60 * minute as i64) * 1_000_000_000;
        (at(self.from + 1), at(self.to + 1))
    }
}

impl Minute {
    /// From its usual value towards `to`, as far as the incident has come.
    pub fn toward(&self, usual: f64, to: f64) -> f64 {
        usual + (to - usual) * self.in_incident
    }

    /// Adds sessions that wait for `event` while the incident lasts.
    pub fn wait(&mut self, event: &'static str, sessions: f64) {
        let sessions = sessions * self.in_incident;
        match self.waits.iter_mut().find(|(known, _)| *known == event) {
            Some((_, known)) => *known += sessions,
            None => self.waits.push((event, sessions)),
        }
    }

    pub fn load(&self) -> f64 {
        self.waits.iter().map(|(_, sessions)| sessions).sum()
    }
}
