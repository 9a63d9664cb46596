//! How a load begins: every loop gets ready in its own thread, and none sends before the signal.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Barrier, OnceLock};
use std::thread::{self, Scope};
use std::time::Duration;

use holdup_recording::priority::give_way;

use super::run::Loop;
use super::run::player::read_ahead;
use crate::schedule::played::{Feed, Play};
use crate::sys;

/// What loops wait for.
pub(super) struct StartSignal {
    ready: Barrier,
    go: Barrier,
    /// The start by the monotonic clock, and how far the Unix epoch's clock is ahead of that,
    /// nanoseconds.
    at: OnceLock<(i64, i64)>,
}

impl StartSignal {
    pub(super) fn new(loops: usize) -> Self {
        Self { ready: Barrier::new(loops + 1), go: Barrier::new(loops + 1), at: OnceLock::new() }
    }

    /// Waits until every loop is ready, and says for how long, nanoseconds.
    pub(super) fn await_loops(&self) -> u64 {
        let began = sys::monotonic_ns();
        self.ready.wait();
        (sys::monotonic_ns() - began) as u64
    }

    /// Lets the loops begin now.
    pub(super) fn give(&self) -> (i64, i64) {
        let started = sys::monotonic_ns();
        let unix_offset = holdup_recording::clock::now_ns() - started;
        let _ = self.at.set((started, unix_offset));
        self.go.wait();
        (started, unix_offset)
    }

    /// In a loop that is ready: waits for the signal.
    fn wait(&self) -> (i64, i64) {
        self.go.wait();
        self.at.get().copied().unwrap_or_default()
    }
}

/// Starts the thread of each loop, on its CPU if it has one.
pub(super) fn start_loops<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    loops: Vec<Loop<'env>>,
    cpus: &[usize],
    signal: &'env StartSignal,
) -> io::Result<()> {
    for (index, runner) in loops.into_iter().enumerate() {
        let cpu = cpus.get(index).copied();
        thread::Builder::new().name(format!("load-{index}")).spawn_scoped(scope, move || {
            if let Some(cpu) = cpu {
                // The CPU was allowed a moment ago; if it is not any more, leave the choice to the
                // kernel.
                let _ = sys::pin_to(cpu);
            }
            runner.drive(&signal.ready, || signal.wait());
        })?;
    }
    Ok(())
}

/// Starts to read a log ahead of the loop that plays it.
pub(super) fn start_reading<'scope>(
    scope: &'scope Scope<'scope, '_>,
    feed: Feed,
    batches: SyncSender<Vec<Play>>,
) -> io::Result<()> {
    let (begun, has_begun) = mpsc::channel();
    thread::Builder::new().name("load-ahead".to_owned()).spawn_scoped(scope, move || {
        give_way();
        read_ahead(feed, &batches, begun);
    })?;
    // Statements due at once have to be read already; the channel closes when they are.
    let _ = has_begun.recv();
    Ok(())
}

/// Waits for a time of the wall clock, or a stop.
pub(super) fn wait_until(moment: Option<i64>, stop: &AtomicBool) {
    while let Some(moment) = moment
        && !stop.load(Ordering::Relaxed)
    {
        let left = moment - holdup_recording::clock::now_ns();
        if left <= 0 {
            break;
        }
        // Sleep in pieces, so that a stop or a step of the clock is noticed; only the last piece is
        // exact to the nanosecond.
        thread::sleep(Duration::from_nanos(left.min(50_000_000) as u64));
    }
}
