//! Which executions were already recorded. The regular read and the capture of slow requests read
//! the same history, and each execution should have one row.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Largest number of executions remembered. The oldest are forgotten first; by then a busy server
/// has overwritten them.
const REMEMBERED_MAX: usize = 200_000;

/// How long an execution is remembered after its end, by the server's timer.
pub(super) const REMEMBERED_NS: i64 = 60_000_000_000;

/// The recorded executions of one server. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// End by the server's timer, by thread and event.
    ended: HashMap<(i64, i64), i64>,
    order: VecDeque<(i64, i64)>,
}

impl Taken {
    /// Marks one as recorded; false if it already was. `end_ns` is by the server's timer.
    pub(super) fn take(&self, thread: i64, event: i64, end_ns: i64) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.ended.insert((thread, event), end_ns).is_some() {
            return false;
        }
        known.order.push_back((thread, event));
        // The order is roughly that of their ends: forgetting one late does no harm.
        while let Some(oldest) = known.order.front().copied() {
            let is_old = known.ended.get(&oldest).is_none_or(|end| *end < end_ns - REMEMBERED_NS);
            if !is_old && known.order.len() <= REMEMBERED_MAX {
                break;
            }
            known.order.pop_front();
            known.ended.remove(&oldest);
        }
        true
    }

    /// Forgets all: the server may have restarted, with new ids.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Known::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_is_taken_once_by_whoever_comes_first() {
        let taken = Taken::default();
        let other = taken.clone();
        assert!(taken.take(1, 7, 100));
        assert!(!other.take(1, 7, 100));
        assert!(other.take(2, 7, 100) && other.take(1, 8, 100));
        assert!(taken.take(3, 1, 200 + REMEMBERED_NS));
        assert!(taken.take(1, 7, 100), "by then it is overwritten: nothing is kept for ever");
        taken.forget();
        assert!(taken.take(3, 1, 5));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let taken = Taken::default();
        for event in 0..REMEMBERED_MAX as i64 + 10 {
            assert!(taken.take(1, event, 0));
        }
        assert_eq!(taken.0.lock().unwrap().ended.len(), REMEMBERED_MAX);
    }
}
