//! What all connections share: the intake, and counts of what is open.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::intake::Intake;

/// State shared by all connections.
#[derive(Debug)]
pub struct Shared {
    /// The destination of bodies.
    pub intake: Intake,
    /// Bytes of bodies being received.
    pub pending: AtomicUsize,
    /// Open connections.
    pub connections: AtomicUsize,
    /// Whether an answer has panicked. The runtime only ends that connection or call, without a
    /// report.
    pub has_panicked: AtomicBool,
}

impl Shared {
    /// Before the first connection, for bodies that go to `intake`.
    pub fn new(intake: Intake) -> Self {
        Self {
            intake,
            pending: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            has_panicked: AtomicBool::new(false),
        }
    }
}

/// Notes a panic of the answer that owns it.
pub struct Guard(Arc<Shared>);

impl Guard {
    /// For the answer that owns it.
    pub fn new(shared: &Arc<Shared>) -> Self {
        Self(Arc::clone(shared))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.has_panicked.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bounds;

    /// The runtime says nothing of it: the collector asks.
    #[test]
    fn an_answer_that_panics_is_known() {
        let shared = Arc::new(Shared::new(Intake::new("otlp", Bounds::default())));
        for panics in [false, true] {
            let guard = Guard::new(&shared);
            let answer = std::thread::spawn(move || {
                let _guard = guard;
                assert!(!panics, "on purpose");
            });
            assert_eq!(answer.join().is_err(), panics);
            assert_eq!(shared.has_panicked.load(Ordering::Relaxed), panics);
        }
    }
}
