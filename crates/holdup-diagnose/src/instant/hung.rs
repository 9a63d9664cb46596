//! Threads that the kernel reported to hang for minutes, and what each waited for by its stack; and
//! latches of InnoDB that stand for the disk behind them.

use holdup_recording::events;
use holdup_recording::rows::Event;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::disk_waits::{Wait, wait_of};
use holdup_signals::{Place, View};

use super::happened::Happened;

/// Parts of InnoDB's source that hold a latch while they read or write files: the buffer pool, files, the
/// log, and calls of the system.
pub(crate) const STORAGE: [&str; 4] = ["buf", "fil", "log", "os0"];

/// Threads of one process that hang.
pub(crate) struct HungTask {
    /// By the stack of one of them.
    pub wait: Wait,
    /// The kernel's report of them.
    pub evidence: Evidence,
}

/// The reported ones by process.
pub(crate) fn tasks(view: &View<'_>, happened: &Happened<'_>) -> Vec<HungTask> {
    let rows = &view.recording.tables.threads.rows;
    let task = |(process, hung): (&str, super::happened::Happening<'_>)| {
        let row = rows.iter().rev().find(|row| {
            row.process == process
                && row.state == "D"
                && row.stack.is_some()
                && happened.window.contains(row.observed_at)
        });
        let place = row.map(|row| Place {
            process: row.process.clone(),
            wchan: row.wchan.clone(),
            stack: row.stack.clone(),
            path: None,
            syscall: None,
            mean: 1.0,
        });
        let function = place.as_ref().and_then(Place::function).map_or_else(String::new, |f| format!(" in {f}"));
        let seconds = hung.most("seconds").map_or_else(|| "minutes".to_owned(), |seconds| format!("{seconds:.0} s"));
        let text = format!("{process} hung for more than {seconds}{function}, {}", hung.when());
        HungTask { wait: place.as_ref().map_or(Wait::Unknown, wait_of), evidence: hung.evidence(text) }
    };
    happened.by(events::HUNG_TASK, "process").into_iter().map(task).collect()
}

/// Whether a wait for a latch is in one of these parts of the server's source.
pub(crate) fn waits_in(event: &Event, parts: &[&str]) -> bool {
    let file = event.labels.get("place").and_then(|place| place.rsplit('/').next()).unwrap_or_default();
    parts.iter().any(|part| file.starts_with(part))
}
