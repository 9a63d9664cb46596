//! A pool with a fixed number of connections and a first-come-first-served checkout. The request
//! that has waited longest receives the next connection directly, so that no other request
//! overtakes it. The pool neither opens nor repairs connections.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A pool of `C`.
pub struct Pool<C> {
    size: usize,
    state: Mutex<State<C>>,
}

struct State<C> {
    idle: Vec<C>,
    waiting: VecDeque<Arc<Waiter<C>>>,
}

/// A place in the queue.
struct Waiter<C> {
    handed: Mutex<Option<C>>,
    arrived: Condvar,
}

/// The pool's state at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolState {
    /// Connections in total.
    pub size: usize,
    /// Idle connections.
    pub idle: usize,
    /// Requests that wait for one.
    pub pending: usize,
}

impl<C> Pool<C> {
    /// Makes a pool of these connections.
    pub fn new(connections: Vec<C>) -> Self {
        Self { size: connections.len(), state: Mutex::new(State { idle: connections, waiting: VecDeque::new() }) }
    }

    /// Waits for a connection, at most `timeout` (no limit without one). `None` means that it took
    /// too long. The connection must be returned with [`Pool::give_back`].
    pub fn checkout(&self, timeout: Option<Duration>) -> Option<C> {
        let begun = Instant::now();
        let place = {
            let mut state = lock(&self.state);
            // While a request waits, no connection is idle: `give_back` hands it on.
            if let Some(connection) = state.idle.pop() {
                return Some(connection);
            }
            let place = Arc::new(Waiter { handed: Mutex::new(None), arrived: Condvar::new() });
            state.waiting.push_back(Arc::clone(&place));
            place
        };
        let mut handed = lock(&place.handed);
        loop {
            if let Some(connection) = handed.take() {
                return Some(connection);
            }
            match timeout {
                None => handed = place.arrived.wait(handed).unwrap_or_else(PoisonError::into_inner),
                Some(timeout) => {
                    let left = timeout.saturating_sub(begun.elapsed());
                    if left.is_zero() {
                        break;
                    }
                    handed = place.arrived.wait_timeout(handed, left).unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
        drop(handed);
        // The lock order is state, then place. Once out of the queue, this request cannot receive a
        // connection any more, but it may have received one between the last look and here.
        lock(&self.state).waiting.retain(|other| !Arc::ptr_eq(other, &place));
        lock(&place.handed).take()
    }

    /// The state now.
    pub fn snapshot(&self) -> PoolState {
        let state = lock(&self.state);
        PoolState { size: self.size, idle: state.idle.len(), pending: state.waiting.len() }
    }

    /// Hands a connection to the request that has waited longest, or makes it idle.
    pub fn give_back(&self, connection: C) {
        let mut state = lock(&self.state);
        match state.waiting.pop_front() {
            Some(place) => {
                *lock(&place.handed) = Some(connection);
                place.arrived.notify_one();
            }
            None => state.idle.push(connection),
        }
    }
}

/// A lock whose holder panicked still guards whole data here: every critical section is a single
/// move.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn the_longest_waiting_is_served_first() {
        let pool = Arc::new(Pool::new(vec![1]));
        let held = pool.checkout(None).expect("idle");
        let (order, served) = mpsc::channel();
        let mut threads = Vec::new();
        for number in 0..5 {
            let (pool_of_thread, order) = (Arc::clone(&pool), order.clone());
            threads.push(thread::spawn(move || {
                let connection = pool_of_thread.checkout(None).expect("no timeout");
                let _ = order.send(number);
                pool_of_thread.give_back(connection);
            }));
            while pool.snapshot().pending != number + 1 {
                thread::yield_now();
            }
        }
        assert_eq!(pool.snapshot(), PoolState { size: 1, idle: 0, pending: 5 });
        pool.give_back(held);
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(served.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(pool.snapshot(), PoolState { size: 1, idle: 1, pending: 0 });
    }

    #[test]
    fn a_request_that_gives_up_leaves_the_queue() {
        let pool = Pool::new(vec![1]);
        let held = pool.checkout(None).expect("idle");
        let begun = Instant::now();
        assert!(pool.checkout(Some(Duration::from_millis(30))).is_none());
        assert!(begun.elapsed() >= Duration::from_millis(30));
        assert_eq!(pool.snapshot().pending, 0);
        pool.give_back(held);
        assert_eq!(pool.snapshot().idle, 1);
    }
}
