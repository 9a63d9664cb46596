//! Resource usage of each process of the server: threads by state, CPU, waits for a CPU, memory,
//! descriptors. Threads are read in the way of `pid:N` and `host`; if one of them watches the same
//! process, it is read once for both.

use std::collections::BTreeMap;

use holdup_recording::{Labels, metrics};

use super::changes::role;
use super::processes::Processes;
use super::workers;
use crate::ReadError;
use crate::proc::census::Census;
use crate::proc::memory::Memory;
use crate::proc::open_files::Files;
use crate::proc::shared_census::{self, SharedCensus};
use crate::proc::task::{self, Stat};
use crate::proc::{Proc, page_bytes, ticks_per_second};
use crate::reading::Out;

/// States that are reported even when no thread is in them.
const STATES: &str = "RSD";

/// State between samples.
pub(super) struct Figures {
    proc: Proc,
    censuses: BTreeMap<u32, SharedCensus>,
    files: Files,
    memory: Memory,
    buffer: Vec<u8>,
}

impl Figures {
    pub(super) fn new(proc: &Proc) -> Self {
        Self {
            proc: proc.clone(),
            censuses: BTreeMap::new(),
            files: Files::new(proc),
            memory: Memory::default(),
            buffer: Vec::new(),
        }
    }

    /// Adds the usage of all members. One that has ended meanwhile is left out.
    pub(super) fn put(&mut self, processes: &Processes, out: &mut Out) -> Result<(), ReadError> {
        self.censuses.retain(|pid, _| processes.members.contains_key(pid));
        let mut failed = None;
        for (pid, member) in &processes.members {
            let labels = vec![("pid", pid.to_string()), ("role", role(processes.is_parent(*pid)).to_owned())];
            out.begin();
            if !self.usage(*pid, &labels, out) {
                continue;
            }
            out.put(
                metrics::server::OPEN_FILE_DESCRIPTORS,
                Labels::new(labels.clone()),
                member.held.descriptors as f64,
            );
            out.put(metrics::server::SOCKETS, Labels::new(labels.clone()), member.held.sockets() as f64);
            let census = self.censuses.entry(*pid).or_insert_with(|| shared_census::join(&self.proc, *pid));
            let looked = census.look(&mut self.files, &mut self.memory, |census| threads(census, &labels, out));
            failed = failed.or(looked.err());
        }
        failed.map_or(Ok(()), Err)
    }

    fn usage(&mut self, pid: u32, labels: &[(&'static str, String)], out: &mut Out) -> bool {
        let _ = self.proc.read(&format!("{pid}/stat"), &mut self.buffer);
        let Ok(stat) = Stat::parse(task::text(&mut self.buffer)) else { return false };
        for (mode, ticks) in [("user", stat.user_ticks), ("system", stat.system_ticks)] {
            let labels = labels.iter().cloned().chain([("cpu_mode", mode.to_owned())]);
            let seconds = ticks as f64 / ticks_per_second();
            out.put(metrics::server::THREAD_CPU_TIME, Labels::new(labels.collect::<Vec<_>>()), seconds);
        }
        let bytes = stat.resident_pages as f64 * page_bytes();
        out.put(metrics::server::MEMORY_USAGE_BYTES, Labels::new(labels.to_vec()), bytes);
        true
    }
}

fn threads(census: &Census, labels: &[(&'static str, String)], out: &mut Out) {
    if census.tasks().is_empty() {
        return;
    }
    if let Some(look) = census.last_look() {
        out.set_window(look.begun_at, look.window_ns);
    }
    let mut states: BTreeMap<char, u32> = STATES.chars().map(|letter| (letter, 0)).collect();
    for letter in census.tasks().iter().filter_map(|task| task.state) {
        *states.entry(letter).or_default() += 1;
    }
    for (letter, count) in states {
        let labels = labels.iter().cloned().chain([("state", letter.to_string())]);
        out.put(metrics::server::THREADS, Labels::new(labels.collect::<Vec<_>>()), f64::from(count));
    }
    if let Some(count) = workers::count(census.tasks().iter().map(|task| task.name.as_str())) {
        out.put(metrics::server::WORKER_THREADS, Labels::new(labels.to_vec()), count as f64);
    }
    if census.tasks().iter().any(|task| task.times.is_some()) {
        let seconds = census.sums().queue_ns as f64 / 1e9;
        out.put(metrics::server::RUN_QUEUE_WAIT, Labels::new(labels.to_vec()), seconds);
    }
}
