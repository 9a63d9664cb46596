//! Whether the command was told to end, and whether a recording is being written: known to all that
//! would wait for a reader, a file or a source.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long finishing a recording may take before it can be killed.
pub const FINISH_WITHIN: Duration = Duration::from_secs(2);

/// Number of recordings that are being written.
static RECORDINGS: AtomicUsize = AtomicUsize::new(0);

/// When the command was first told to end.
static STOPPED: OnceLock<Instant> = OnceLock::new();

/// While one exists, a recording is being written.
pub struct Recording(());

impl Recording {
    pub fn begin() -> Self {
        RECORDINGS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        RECORDINGS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether a recording is being written.
pub fn is_recording() -> bool {
    RECORDINGS.load(Ordering::SeqCst) > 0
}

/// Sets the flag that ends the command.
pub fn stop(flag: &AtomicBool) {
    STOPPED.get_or_init(Instant::now);
    flag.store(true, Ordering::Relaxed);
}

/// How long ago the command was told to end; none if it was not.
pub fn since_stop() -> Option<Duration> {
    STOPPED.get().map(Instant::elapsed)
}

/// The result of a thread that may wait for a reader. None if it is still waiting when a stopped
/// command has to end.
pub fn joined<T>(thread: JoinHandle<T>) -> Option<T> {
    while !thread.is_finished() {
        if since_stop().is_some_and(|since| since >= FINISH_WITHIN * 3 / 4) {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    thread.join().ok()
}
