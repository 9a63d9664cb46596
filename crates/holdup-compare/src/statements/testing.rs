//! Simulated replays of a mix on two servers, for tests: the true changes are known.

use holdup_recording::Recording;
use holdup_recording::manifest::{Host, Manifest};
use holdup_recording::rows::Execution;
use holdup_recording::tables::Tables;

/// A random number generator that is the same on every machine.
pub(super) struct Luck(u64);

impl Luck {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// From 0 to 1.
    pub fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Around 0, with a standard deviation of 1: the sum of twelve uniform numbers.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// A mix of `digests` statements, each executed `calls` times a round.
pub(super) struct Mix {
    pub digests: usize,
    pub calls: usize,
    pub rounds: usize,
    /// Multiples of the new server's times, by digest.
    pub slower: Vec<(usize, f64)>,
    /// A multiple of all of its times.
    pub all: f64,
    /// How often a request runs a digest.
    pub loops: Vec<(usize, usize)>,
    pub seed: u64,
}

impl Mix {
    fn rows(&self, round: usize, is_new: bool) -> Vec<Execution> {
        // The log decides the statements and when they are due; each server decides how long they
        // take.
        let mut log = Luck::new(self.seed);
        let mut took = Luck::new(self.seed + 1_000 * (round as u64 + 1) + u64::from(is_new));
        let of = |list: &[(usize, f64)], digest| list.iter().find(|(of, _)| *of == digest).map_or(1.0, |(_, v)| *v);
        let mut rows = Vec::new();
        // The machine's effect on each second.
        let moods: Vec<f64> = (0..60).map(|_| 1.0 + 0.4 * took.uniform().powi(4)).collect();
        let total = self.digests * self.calls;
        for number in 0..total {
            let digest = (log.uniform() * self.digests as f64) as usize;
            let at = number as f64 / total as f64 * 60.0;
            let own = 1.0 + digest as f64 / 100.0;
            let slower = if is_new { of(&self.slower, digest) * self.all } else { 1.0 };
            let mood = moods[(at as usize).min(59)];
            // One in thirty waits for something.
            let tail = if took.uniform() < 0.03 { 3.0 + 10.0 * took.uniform() } else { 1.0 };
            let ms = own * slower * mood * tail * (0.25 * took.normal()).exp();
            let per_request = self.loops.iter().find(|(of, _)| *of == digest).map_or(1, |(_, n)| *n);
            rows.push(Execution {
                number: number as i64,
                session: (number % 7) as i64,
                digest: format!("d{digest:04}"),
                intended_at: (at * 1e9) as i64,
                sent_at: Some((at * 1e9) as i64),
                done_at: (at * 1e9 + ms * 1e6) as i64,
                outcome: "ok".to_owned(),
                error: None,
                rows: 1,
                affected: 0,
                warnings: 0,
                rows_hash: Some(number as i64),
                logged_ns: None,
                trace_id: (per_request > 1).then(|| format!("{digest}-{}", rows.len() / (self.digests * per_request))),
            });
        }
        rows
    }

    pub fn recordings(&self, is_new: bool) -> Vec<Recording> {
        (0..self.rounds).map(|round| recorded(self.rows(round, is_new))).collect()
    }
}

pub(super) fn recorded(executions: Vec<Execution>) -> Recording {
    let mut tables = Tables::default();
    tables.executions.rows = executions;
    let manifest = Manifest::starting("replay", 0, Host::default());
    Recording { dir: "made/up".into(), manifest, tables, latencies: Vec::new(), search: None, excerpt: None }
}
