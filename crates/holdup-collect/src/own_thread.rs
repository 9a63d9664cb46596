//! A collector's own thread, which reads between samples. A panic must not look like an absence of
//! data, so it is remembered.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Locks what threads share. After a panic in one the others go on: no change is left half made.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread; after a drop it runs on until it notices by itself.
pub(crate) struct OwnThread {
    handle: Option<JoinHandle<()>>,
    has_panicked: bool,
}

impl OwnThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let handle = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Self { handle: Some(handle), has_panicked: false })
    }

    /// Waits for its end.
    pub fn join(&mut self) {
        self.has_panicked |= self.handle.take().is_some_and(|handle| handle.join().is_err());
    }

    /// Whether it has ended, normally or not.
    pub fn is_finished(&self) -> bool {
        self.handle.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Whether it ended with a panic.
    pub fn has_panicked(&mut self) -> bool {
        if self.is_finished() {
            self.join();
        }
        self.has_panicked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_known_and_an_end_is_none() {
        for panics in [true, false] {
            let mut thread = OwnThread::spawn("own", move || assert!(!panics, "on purpose")).unwrap();
            while !thread.is_finished() {
                std::thread::yield_now();
            }
            assert_eq!((thread.has_panicked(), thread.has_panicked()), (panics, panics));
        }
    }
}
