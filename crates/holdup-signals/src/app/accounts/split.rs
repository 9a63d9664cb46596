//! The database part of a request, split into network, admission queue, locks and execution, and
//! the part that belongs to the app's driver.
//!
//! With packets from the server's side the split is exact: a call's time beyond its time at the
//! server's machine is network, and the time at the machine beyond execution is the wait for
//! admission. Without them, the time between the app's and the server's figures is a round trip as
//! far as one was measured. The rest belongs to the queue if a queue was seen in front of execution
//! at the time; otherwise it has no owner.

use super::calls::Call;
use super::context::Context;
use super::owner::{Amounts, Owner};
use super::waits::{AppAccount, Resource, Wait};

/// Error of the server's timer with its rounding, per call.
const TIMER_MS: f64 = 0.01;
/// Error of the kernel's packet timestamps.
const PACKET_MS: f64 = 0.05;

/// The time in database calls, as the calling side reports it.
#[derive(Clone, Copy, Debug)]
pub struct CallTime {
    /// Calls; 0 if not counted.
    pub calls: u64,
    /// Counted time of all calls, milliseconds.
    pub counted_ms: f64,
    /// Time of the calls that the database's side reported too, milliseconds.
    covered_ms: f64,
    /// Share (0-1) of the calls' time that is counted: below 1 where they overlap.
    counted_ratio: f64,
    /// Whether the calling side timed them at all.
    is_timed: bool,
}

impl CallTime {
    /// The target is the database itself: the request is the call.
    pub fn whole(ms: f64) -> Self {
        Self { calls: 1, counted_ms: ms, covered_ms: ms, counted_ratio: 1.0, is_timed: true }
    }

    /// The calling side reported nothing.
    pub fn unknown() -> Self {
        Self { calls: 0, counted_ms: 0.0, covered_ms: 0.0, counted_ratio: 1.0, is_timed: false }
    }

    /// From the app's side; `shift_ns` maps its clock to the client's.
    pub fn by_app(app: &AppAccount<'_>, calls: &[&Call<'_>], shift_ns: i64) -> Self {
        let waits: Vec<&Wait<'_>> = app.waits_for(Resource::Database).collect();
        if waits.is_empty() {
            return Self::unknown();
        }
        let count: u64 = waits.iter().map(|w| w.span.calls.max(1).unsigned_abs()).sum();
        let counted_ms: f64 = waits.iter().map(|w| w.counted_ms).sum();
        let took_ms: f64 = waits.iter().map(|w| w.ms).sum();
        let told = calls.len() as u64;
        let covered_ms = match () {
            () if told >= count => took_ms,
            () if waits.iter().any(|w| w.is_sum) => took_ms * told as f64 / count as f64,
            () => covered_ms(&waits, calls, shift_ns),
        };
        let counted_ratio = if took_ms > 0.0 { counted_ms / took_ms } else { 1.0 };
        Self { calls: count, counted_ms, covered_ms, counted_ratio, is_timed: true }
    }
}

/// Time of the waits that match `calls`: the longest call belongs to the nearest wait that is long
/// enough.
fn covered_ms(waits: &[&Wait<'_>], calls: &[&Call<'_>], shift_ns: i64) -> f64 {
    let mut left = waits.to_vec();
    let mut calls = calls.to_vec();
    calls.sort_by(|a, b| b.longest_ms().total_cmp(&a.longest_ms()));
    let mut covered_ms = 0.0;
    for call in calls {
        let fits = |w: &Wait<'_>| w.ms + PACKET_MS >= call.longest_ms();
        let distance = |w: &Wait<'_>| (w.span.started_at + shift_ns - call.started_at()).abs();
        let nearest = (0..left.len()).filter(|i| fits(left[*i])).min_by_key(|i| distance(left[*i]));
        if let Some(i) = nearest {
            covered_ms += left.swap_remove(i).ms;
        }
    }
    covered_ms
}

/// Splits the time in calls. `queued` says whether a queue was seen at the time, `locked_ms` how
/// long at least one of its sessions was seen waiting for a lock.
pub fn split(asked: CallTime, calls: &[&Call<'_>], queued: bool, locked_ms: f64, around: &Context) -> Amounts {
    let mut inside = Amounts::default();
    let mut executions_ms = 0.0;
    for call in calls {
        let (execution_ms, served_ms) = (call.execution_ms(), call.served_ms());
        match (execution_ms, served_ms) {
            (Some(executed), Some(served)) => match call.before_execution_ms() {
                Some(admission) => {
                    inside.add(Owner::AdmissionQueue, admission, PACKET_MS + TIMER_MS);
                    inside.add(Owner::Execution, served - admission, TIMER_MS);
                    executions_ms += served - admission;
                }
                // Part of it may be the wait for a request in front, on the same connection.
                None => {
                    let executed = executed.min(served);
                    inside.add(Owner::Execution, executed, TIMER_MS);
                    inside.add(Owner::Database, served - executed, PACKET_MS);
                    executions_ms += executed;
                }
            },
            (Some(executed), None) => {
                inside.add(Owner::Execution, executed, TIMER_MS);
                executions_ms += executed;
            }
            (None, Some(served)) => inside.add(Owner::Database, served, PACKET_MS),
            (None, None) => inside.add(Owner::Database, call.called_ms().unwrap_or(0.0), PACKET_MS),
        }
    }
    let locks = calls.iter().filter_map(|c| c.execution).map(|s| around.locked_ms(s));
    let (locked, error) = locks.fold((0.0, 0.0), |(ms, error), lock| (ms + lock.0, error + lock.1));
    let locked = locked.max(locked_ms).min(executions_ms);
    inside.add(Owner::Execution, -locked, error);
    inside.add(Owner::LockWait, locked, error);

    let called_ms: Option<f64> = calls.iter().map(|c| c.called_ms()).sum();
    let called_ms = called_ms.filter(|_| !calls.is_empty());
    let timed_ms = if asked.is_timed { asked.covered_ms } else { called_ms.unwrap_or_else(|| inside.sum()) };
    // No call takes longer inside than outside: the excess belongs to statements beside the calls
    // that the app reported.
    let fit = if inside.sum() > timed_ms && asked.is_timed { timed_ms / inside.sum().max(1e-9) } else { 1.0 };
    let mut amounts = Amounts::default();
    amounts.add_all(&inside, fit);
    let driver_ms = called_ms.filter(|_| asked.is_timed).map_or(0.0, |called| (timed_ms - called).max(0.0));
    amounts.add(Owner::AppOther, driver_ms, PACKET_MS);
    let between_ms = (timed_ms - driver_ms - inside.sum() * fit).max(0.0);
    if calls.is_empty() {
        amounts.add(Owner::Database, between_ms, 0.0);
    } else {
        let trips = calls.len().max(asked.calls as usize) as f64;
        let trips_ms = around.round_trip_ms.map_or(0.0, |ms| ms * trips).min(between_ms);
        if calls.iter().all(|c| c.served_ms().is_some()) {
            let error = if called_ms.is_some() { PACKET_MS } else { between_ms - trips_ms };
            amounts.add(Owner::DatabaseNetwork, between_ms, error);
        } else {
            amounts.add(Owner::DatabaseNetwork, trips_ms, 0.0);
            let owner = queued.then_some(Owner::AdmissionQueue);
            if let Some(owner) = owner {
                amounts.add(owner, between_ms - trips_ms, trips_ms + TIMER_MS * trips);
            }
        }
    }
    let mut counted = Amounts::default();
    counted.add_all(&amounts, asked.counted_ratio);
    // Calls that only the calling side reported.
    counted.add(Owner::Database, (asked.counted_ms - asked.covered_ms * asked.counted_ratio).max(0.0), 0.0);
    counted
}
