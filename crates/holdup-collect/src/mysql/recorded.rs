//! Which executions were already recorded. The regular read and the capture of slow requests read
//! the same history, and each execution should have one row.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use crate::own_thread::lock;

/// Largest number of executions remembered. The oldest are forgotten first; by then a busy server
/// has overwritten them.
const REMEMBERED_MAX: usize = 200_000;

/// How long an execution is remembered after its end, by the server's timer.
pub(super) const REMEMBERED_NS: i64 = 60_000_000_000;

/// The recorded executions of one server. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedExecutions(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// End by the server's timer, by thread and event.
    ended: HashMap<(i64, i64), i64>,
    order: VecDeque<(i64, i64)>,
}

impl RecordedExecutions {
    /// Marks one as recorded; false if it already was. `end_ns` is by the server's timer.
    pub(super) fn mark(&self, thread: i64, event: i64, end_ns: i64) -> bool {
        let mut state = lock(&self.0);
        if state.ended.insert((thread, event), end_ns).is_some() {
            return false;
        }
        state.order.push_back((thread, event));
        // The order is roughly that of their ends: forgetting one late does no harm.
        while let Some(oldest) = state.order.front().copied() {
            let is_old = state.ended.get(&oldest).is_none_or(|end| *end < end_ns - REMEMBERED_NS);
            if !is_old && state.order.len() <= REMEMBERED_MAX {
                break;
            }
            state.order.pop_front();
            state.ended.remove(&oldest);
        }
        true
    }

    /// Forgets all: the server may have restarted, with new ids.
    pub(super) fn forget(&self) {
        *lock(&self.0) = State::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_reader_takes_an_execution() {
        let recorded = RecordedExecutions::default();
        let other = recorded.clone();
        assert!(recorded.mark(1, 7, 100));
        assert!(!other.mark(1, 7, 100));
        assert!(other.mark(2, 7, 100) && other.mark(1, 8, 100));
        assert!(recorded.mark(3, 1, 200 + REMEMBERED_NS));
        assert!(recorded.mark(1, 7, 100), "by then it is overwritten: nothing is kept for ever");
        recorded.forget();
        assert!(recorded.mark(3, 1, 5));
    }

    #[test]
    fn remembered_executions_are_bounded() {
        let recorded = RecordedExecutions::default();
        for event in 0..REMEMBERED_MAX as i64 + 10 {
            assert!(recorded.mark(1, event, 0));
        }
        assert_eq!(recorded.0.lock().unwrap().ended.len(), REMEMBERED_MAX);
    }
}
