//! Stops a process for moments.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::env::{Running, process};

/// Stops `pid` for so long, again and again: about a third of the time.
pub fn start(pid: u32, stopped_ms: f64) -> Result<Running> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let stopped = Duration::from_secs_f64(stopped_ms * 1e-3);
    let work = move || {
        while !asked.load(Ordering::Relaxed) {
            let _ = process::signal(pid, "STOP");
            thread::sleep(stopped);
            let _ = process::signal(pid, "CONT");
            thread::sleep(stopped * 2);
        }
    };
    let thread = thread::Builder::new().name("pauses".to_owned()).spawn(work).context("could not start a thread")?;
    Ok(Running::until(move || {
        stop.store(true, Ordering::Relaxed);
        let _ = thread.join();
        process::signal(pid, "CONT")
    }))
}
