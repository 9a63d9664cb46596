//! A census that two sources share: `pid:N` examines every thread of its process, and `host` every
//! thread of all processes. If both run, each may use what the other has just read.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::ReadError;
use crate::own_thread::lock;
use crate::proc::census::{BUDGET, Census};
use crate::proc::memory::Memory;
use crate::proc::open_files::{Files, open_max};
use crate::proc::{Proc, Tree};

/// Largest age of another source's look for reuse. Sources sample at the same instants.
const AGE_MAX: Duration = Duration::from_millis(100);

/// The processes that `pid:N` sources of this program watch, by tree and number.
static ALL: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

type Entry = (PathBuf, u32, Weak<Mutex<State>>);

struct State {
    census: Census,
    looks: u64,
}

/// One source's share in a census.
#[derive(Clone)]
pub(crate) struct SharedCensus {
    state: Arc<Mutex<State>>,
    /// The last look that this source used: it uses none twice.
    used: u64,
}

/// The census of one process, found or created.
pub(crate) fn join(proc: &Proc, pid: u32) -> SharedCensus {
    let root = proc.path(Tree::Proc, "");
    let mut all = lock(&ALL);
    all.retain(|(_, _, state)| state.strong_count() > 0);
    let known =
        all.iter().find(|(at, number, _)| *number == pid && *at == root).and_then(|(_, _, state)| state.upgrade());
    let state = known.unwrap_or_else(|| {
        let state = Arc::new(Mutex::new(State { census: Census::new(pid), looks: 0 }));
        all.push((root, pid, Arc::downgrade(&state)));
        state
    });
    SharedCensus { state, used: 0 }
}

/// Updates `known`: the processes with their own `pid:N`, by number.
pub(crate) fn update(proc: &Proc, known: &mut HashMap<u32, SharedCensus>) {
    let root = proc.path(Tree::Proc, "");
    let mut now = HashMap::new();
    for (_, pid, state) in lock(&ALL).iter().filter(|(at, _, _)| *at == root) {
        if let Some(state) = state.upgrade() {
            let used = known.get(pid).filter(|known| Arc::ptr_eq(&known.state, &state)).map_or(0, |known| known.used);
            now.insert(*pid, SharedCensus { state, used });
        }
    }
    *known = now;
}

impl SharedCensus {
    /// The threads as they are now, or were a moment ago.
    ///
    /// # Errors
    /// Those of [`Census::look`].
    pub(crate) fn look<T>(
        &mut self,
        files: &mut Files,
        memory: &mut Memory,
        then: impl FnOnce(&Census) -> T,
    ) -> Result<T, ReadError> {
        let mut state = lock(&self.state);
        let fresh = state.census.last_look().is_some_and(|look| look.age() < AGE_MAX);
        if self.used == state.looks || !fresh {
            state.looks += 1;
            let room = std::mem::replace(&mut files.room, open_max(&files.proc).saturating_sub(state.census.open()));
            let result = state.census.look(files, memory, &mut BUDGET.clone());
            files.room = room;
            self.used = state.looks;
            result?;
        }
        self.used = state.looks;
        Ok(then(&state.census))
    }
}
