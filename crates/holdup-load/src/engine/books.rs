//! The records of one loop: counts, histograms of the present second, and rows. Rows are sampled so
//! that neither memory nor disk grows with the number of requests. Counts and histograms cover all
//! requests.

use std::collections::BTreeMap;

use holdup_recording::Batch;
use holdup_recording::rows::{Execution, Request};
use holdup_recording::writer::RowSink;

use super::outcome::Outcome;
use super::plan::Plan;
use super::slots::{ExecutionDetails, InFlight, NEVER};
use super::{timing, trace};
use crate::stats::{Latencies, count};

/// Share of the rows that is reserved for failures, which are rare and informative.
const FAILURES_SHARE: f64 = 0.25;

/// Exact counts of one operation.
#[derive(Clone, Default)]
pub struct Tally {
    /// Requests that were due and have ended or were given up.
    pub offered: u64,
    /// Requests by outcome.
    pub outcomes: [u64; Outcome::ALL.len()],
}

impl Tally {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        for (mine, theirs) in self.outcomes.iter_mut().zip(other.outcomes) {
            *mine += theirs;
        }
    }

    /// Requests that succeeded.
    pub fn completed(&self) -> u64 {
        self.outcomes[Outcome::Ok as usize]
    }

    /// Requests that failed, by kind.
    pub fn failures(&self) -> BTreeMap<String, u64> {
        failures(&self.outcomes).into_iter().map(|(name, n)| (name.to_owned(), n)).collect()
    }

    /// Requests that failed.
    pub fn failed(&self) -> u64 {
        Outcome::ALL.into_iter().filter(|o| o.is_failure()).map(|o| self.outcomes[o as usize]).sum()
    }
}

/// The failures among `outcomes`, by kind.
pub fn failures(outcomes: &[u64]) -> BTreeMap<&'static str, u64> {
    let counts = Outcome::ALL.into_iter().zip(outcomes).filter(|(outcome, n)| outcome.is_failure() && **n > 0);
    counts.map(|(outcome, n)| (outcome.name(), *n)).collect()
}

/// Keeps the first and then every n-th item, with the number of items each stands for.
#[derive(Clone, Copy, Default)]
struct Sampler {
    since: u64,
    has_kept: bool,
}

impl Sampler {
    fn take(&mut self, stride: u64) -> Option<i64> {
        self.since += 1;
        if self.has_kept && self.since < stride {
            return None;
        }
        self.has_kept = true;
        Some(std::mem::take(&mut self.since) as i64)
    }
}

/// Rows to keep per second of one kind of requests (successes or failures).
struct Budget {
    per_second: f64,
    seen: u64,
    kept: u64,
    stride: u64,
}

impl Budget {
    fn new(per_second: f64, rate: f64) -> Self {
        Self { per_second, seen: 0, kept: 0, stride: stride(rate, per_second) }
    }

    fn next_second(&mut self) {
        self.stride = stride(self.seen as f64, self.per_second);
        (self.seen, self.kept) = (0, 0);
    }

    fn kept_one(&mut self) {
        self.kept += 1;
        if self.kept as f64 > 2.0 * self.per_second + 1.0 {
            self.stride *= 2;
            self.kept /= 2;
        }
    }
}

fn stride(rate: f64, per_second: f64) -> u64 {
    // A little tolerance: one request more than in the second before does not change the sampling.
    (rate / per_second * 0.98).ceil().max(1.0) as u64
}

/// The record of one ended request. Times are nanoseconds of the monotonic clock, [`NEVER`] if it
/// did not get that far.
struct EndedEntry {
    operation: u32,
    phase: u32,
    status: u16,
    outcome: Outcome,
    due: i64,
    ready: i64,
    connect: i64,
    sent: i64,
    first_byte: i64,
    bytes: u64,
    at: i64,
    trace: u128,
    timing: Option<Box<[u8]>>,
    execution: Option<Box<ExecutionDetails>>,
}

/// See the module.
pub struct Books {
    rows: Option<RowSink>,
    batch: Batch,
    unix_offset: i64,
    noted: Vec<EndedEntry>,
    /// By operation.
    pub tallies: Vec<Tally>,
    /// The outcomes in `tallies` at the start of the present second.
    before: Vec<[u64; Outcome::ALL.len()]>,
    latencies: Vec<Latencies>,
    /// By operation and outcome, so that a flood of one kind does not hide another.
    samplers: Vec<[Sampler; Outcome::ALL.len()]>,
    budgets: [Budget; 2],
}

impl Books {
    /// For a loop that should keep about `rows_per_second` rows and at first expects `rate`
    /// requests a second.
    pub fn new(operations: usize, rows: Option<RowSink>, rows_per_second: f64, rate: f64) -> Self {
        Self {
            rows,
            batch: Batch::default(),
            unix_offset: 0,
            noted: Vec::new(),
            tallies: vec![Tally::default(); operations],
            before: vec![[0; Outcome::ALL.len()]; operations],
            latencies: (0..operations).map(|_| Latencies::nothing()).collect(),
            samplers: vec![[Sampler::default(); Outcome::ALL.len()]; operations],
            budgets: [
                Budget::new(rows_per_second * (1.0 - FAILURES_SHARE), rate),
                Budget::new(rows_per_second * FAILURES_SHARE, 0.0),
            ],
        }
    }

    /// Whether rows are written at all.
    pub fn has_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// Sets the difference between wall clock and monotonic clock at the start.
    pub fn set_unix_offset(&mut self, offset: i64) {
        self.unix_offset = offset;
    }

    /// Wall clock minus monotonic clock at the start.
    pub fn unix_offset(&self) -> i64 {
        self.unix_offset
    }

    /// Notes a request that ended at `at`. `had_slot` is false for one that never got a slot.
    pub fn enter(&mut self, request: &mut InFlight, outcome: Outcome, at: i64, had_slot: bool) {
        self.noted.push(EndedEntry {
            operation: request.operation,
            phase: request.phase,
            status: request.status,
            outcome,
            due: request.due,
            ready: if had_slot { request.ready } else { NEVER },
            connect: request.connect,
            sent: request.sent,
            first_byte: request.first_byte,
            bytes: request.bytes,
            at,
            trace: request.trace,
            timing: request.timing.take(),
            execution: request.execution.take(),
        });
    }

    /// The row of an execution that was played.
    fn execution(execution: &ExecutionDetails, entry: &EndedEntry, unix_offset: i64) -> Execution {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        Execution {
            number: count(execution.number),
            session: count(execution.session),
            digest: execution.digest.to_string(),
            intended_at: entry.due + unix_offset,
            sent_at: (entry.sent != NEVER).then_some(entry.sent + unix_offset),
            done_at: entry.at + unix_offset,
            outcome: entry.outcome.name().to_owned(),
            error: execution.error.as_deref().map(str::to_owned),
            rows: count(execution.rows),
            affected: count(execution.affected),
            warnings: count(execution.warnings),
            rows_hash: execution.hash.map(u64::cast_signed),
            logged_ns: execution.logged_ns,
            trace_id: execution.trace_id.as_deref().map(str::to_owned),
        }
    }

    /// Records the noted requests. In a batch, because one at a time, between system calls, takes
    /// several times as long.
    pub fn settle(&mut self, plan: &Plan<'_>) {
        let mut noted = std::mem::take(&mut self.noted);
        for entry in noted.drain(..) {
            self.write_down(plan, &entry);
        }
        self.noted = noted;
    }

    fn write_down(&mut self, plan: &Plan<'_>, request: &EndedEntry) {
        let (operation, outcome, at) = (request.operation as usize, request.outcome, request.at);
        let tally = &mut self.tallies[operation];
        tally.offered += 1;
        tally.outcomes[outcome as usize] += 1;
        // A failure that comes back at once is counted as an error, never as a fast response.
        if outcome.is_latency() {
            let latencies = &mut self.latencies[operation];
            if latencies.is_nothing() {
                *latencies = Latencies::new();
            }
            count(&mut latencies.response, at - request.due);
            if request.sent != NEVER {
                count(&mut latencies.service, at - request.sent);
                count(&mut latencies.send_lag, request.sent - request.ready - request.connect);
            }
        }
        if self.rows.is_none() {
            return;
        }
        if let Some(execution) = &request.execution {
            self.batch.executions.push(Self::execution(execution, request, self.unix_offset));
        }
        let budget = &mut self.budgets[usize::from(outcome.is_failure())];
        budget.seen += 1;
        let sampler = &mut self.samplers[operation][outcome as usize];
        let Some(weight) = sampler.take(budget.stride) else { return };
        budget.kept_one();
        let unix = |t: i64| t + self.unix_offset;
        let moment = |t: i64| (t != NEVER).then_some(unix(t));
        self.batch.requests.push(Request {
            operation: plan.operations[operation].clone(),
            phase: plan.phase(request.phase as usize).unwrap_or_default(),
            intended_at: unix(request.due),
            ready_at: moment(request.ready),
            sent_at: moment(request.sent),
            first_byte_at: moment(request.first_byte),
            done_at: unix(at),
            outcome: outcome.name().to_owned(),
            status: (request.status > 0).then_some(i32::from(request.status)),
            response_bytes: request.bytes as i64,
            connect_ns: request.connect,
            trace_id: trace::text(request.trace),
            weight,
        });
        if let (Some(said), Some(trace_id)) = (&request.timing, trace::text(request.trace)) {
            let is_well = outcome == Outcome::Ok;
            self.batch.spans.extend(timing::spans(said, &trace_id, unix(request.sent), is_well));
        }
    }

    /// Hands the rows to their writer.
    pub fn hand_over(&mut self) {
        if let Some(rows) = &self.rows {
            rows.push(std::mem::take(&mut self.batch));
        }
    }

    /// Returns the latencies and outcomes of the second that ends, by operation, and begins a new
    /// second.
    pub fn next_second(&mut self) -> Vec<Latencies> {
        for budget in &mut self.budgets {
            budget.next_second();
        }
        let books = self.latencies.iter_mut().zip(&self.tallies).zip(&mut self.before);
        books
            .map(|((latencies, tally), before)| {
                let before = std::mem::replace(before, tally.outcomes);
                let outcomes = tally.outcomes.iter().zip(before).map(|(now, then)| now - then).collect();
                Latencies { outcomes, ..std::mem::replace(latencies, Latencies::nothing()) }
            })
            .collect()
    }

    /// Requests that succeeded, and requests that failed.
    pub fn ended(&self) -> (u64, u64) {
        self.tallies.iter().fold((0, 0), |(well, ill), t| (well + t.completed(), ill + t.failed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_for_all_requests_and_their_number_is_bounded() {
        let mut budget = Budget::new(100.0, 0.0);
        let mut sampler = Sampler::default();
        for second in 0..10 {
            let (mut kept, mut stood_for) = (0, 0);
            let rate = if second < 5 { 20_000 } else { 90 };
            for _ in 0..rate {
                budget.seen += 1;
                if let Some(weight) = sampler.take(budget.stride) {
                    budget.kept_one();
                    kept += 1;
                    stood_for += weight;
                }
            }
            budget.next_second();
            // The first second finds its stride by doubling it.
            assert!(kept <= 1_500 && (second == 0 || kept <= 120), "{kept} rows in second {second}");
            assert!((stood_for - rate).abs() <= 512, "{stood_for} of {rate}");
            assert!(second < 6 || kept == 90, "at low rates every request is a row");
        }
    }
}
