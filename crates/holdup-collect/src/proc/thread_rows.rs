//! Rows of `threads`: one row for all threads of a process at the same place.

use std::collections::HashMap;

use holdup_recording::rows::Thread;

use crate::proc::census::{Census, Task};
use crate::proc::sleeping::KernelPlace;

/// The rows of a census, with `state` only those in that state, as `source` saw them at `at`.
pub(crate) fn rows(census: &Census, state: Option<char>, source: &str, at: i64) -> Vec<Thread> {
    let mut groups: HashMap<(char, &KernelPlace), (&Task, i64)> = HashMap::new();
    for task in census.tasks() {
        if let Some(letter) = task.state.filter(|letter| state.is_none_or(|only| only == *letter)) {
            groups.entry((letter, &task.place)).or_insert((task, 0)).1 += 1;
        }
    }
    let row = |((letter, place), (task, count)): ((char, &KernelPlace), (&Task, i64))| {
        // One thread's times do not describe the others.
        let times = task.times.filter(|_| count == 1);
        Thread {
            observed_at: at,
            source: source.to_owned(),
            pid: i64::from(census.pid()),
            tid: i64::from(task.tid),
            process: census.name().to_owned(),
            thread: task.name.clone(),
            state: letter.to_string(),
            wchan: place.wchan.clone(),
            syscall: place.syscall,
            cpu_ns_total: times.map(|times| times.cpu_ns),
            run_queue_ns_total: times.map(|times| times.queue_ns),
            stack: place.stack.clone(),
            path: place.path.clone(),
            count,
        }
    };
    let mut rows: Vec<Thread> = groups.into_iter().map(row).collect();
    // Large groups first, and a stable order for the same threads.
    rows.sort_unstable_by(|a, b| b.count.cmp(&a.count).then(a.tid.cmp(&b.tid)));
    rows
}

/// Rows of several processes as those of one: one row for all threads at the same place.
pub(crate) fn by_place(rows: Vec<Thread>) -> Vec<Thread> {
    let mut places: HashMap<_, usize> = HashMap::new();
    let mut merged: Vec<Thread> = Vec::new();
    for row in rows {
        let place = (row.state.clone(), row.wchan.clone(), row.syscall, row.stack.clone(), row.path.clone());
        match places.get(&place) {
            Some(&known) => {
                let all = &mut merged[known];
                all.count += row.count;
                (all.cpu_ns_total, all.run_queue_ns_total) = (None, None);
            }
            None => {
                places.insert(place, merged.len());
                merged.push(row);
            }
        }
    }
    merged.sort_by(|a, b| b.count.cmp(&a.count).then(a.tid.cmp(&b.tid)));
    merged
}
