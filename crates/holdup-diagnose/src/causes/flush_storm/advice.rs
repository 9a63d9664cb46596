//! What to do about pages that are written in a hurry: more log, earlier writes, free pages.

use super::Age;
use crate::change;
use crate::change::database::Server;
use crate::change::parameters::{Engine, IO_CAPACITY, IO_CAPACITY_MAX, LOG_FILE_SIZE, Parameter, REDO_CAPACITY};
use crate::change::{Direction, Fix, SettingChange, Stay};
use holdup_signals::View;
use holdup_signals::host::throttle::Unit;

pub(super) fn fixes(view: &View<'_>, age: &Age, no_free_page: bool) -> Vec<Fix> {
    // Four times as much, as a power of two: the age then stays below half of the present capacity.
    let bigger = 2_f64.powf((4.0 * age.capacity).log2().ceil());
    let server = Server::find(view, Engine::MySql);
    let mut fixes = vec![larger_log(&server, bigger)];
    fixes.extend(earlier_writes(view, &server));
    if no_free_page {
        fixes.push(Fix {
            text: "Give the buffer pool more memory, or keep more pages free (innodb_lru_scan_depth).".to_owned(),
            command: None,
            keep: None,
            risk: None,
        });
    }
    fixes
}

/// A larger redo log: by its capacity where the server has that, else by the size of its files.
fn larger_log(server: &Server<'_>, bigger: f64) -> Fix {
    let by_capacity = server.number(&REDO_CAPACITY).is_some();
    let parameter = if by_capacity { &REDO_CAPACITY } else { &LOG_FILE_SIZE };
    let files = server.value("innodb_log_files_in_group").and_then(|n| n.parse::<f64>().ok()).unwrap_or(1.0).max(1.0);
    let to = if by_capacity { bigger } else { bigger / files };
    match server.change(Direction::Raise, parameter, to) {
        Ok(change) => change.fix(
            "pages are then written without hurry",
            server.steps(&[(parameter, &change)]),
            "Takes that much disk. Recovery after a crash reads more log and takes longer.",
        ),
        Err(stay) => stay.fix("The redo log cannot grow further."),
    }
}

/// Twice the writes in the background, within what the volume is known to carry.
fn earlier_writes(view: &View<'_>, server: &Server<'_>) -> Option<Fix> {
    let io = server.number(&IO_CAPACITY)?;
    let known = view.known_limits();
    let carries = known.of_unit(Unit::Operations).map(|d| d.limit).fold(f64::MAX, f64::min);
    let change = match server.change(Direction::Raise, &IO_CAPACITY, (2.0 * io).min(carries.max(1.0))) {
        Ok(change) => change,
        Err(stay) => return Some(stay.fix("Pages cannot be written earlier.")),
    };
    let most = server.change(Direction::Raise, &IO_CAPACITY_MAX, 2.0 * change.to);
    // The greatest rate goes first: the usual one may not be above it.
    let both = [(&IO_CAPACITY_MAX, most.as_ref().ok()), (&IO_CAPACITY, Some(&change))];
    let moved: Vec<(&'static Parameter, &SettingChange)> =
        both.into_iter().filter_map(|(of, change)| Some((of, change?))).collect();
    if most.is_err() && server.number(&IO_CAPACITY_MAX).is_none_or(|most| most < change.to) {
        return Some(Stay::Unknown(IO_CAPACITY_MAX.name.to_owned()).fix("Write pages earlier (innodb_io_capacity)."));
    }
    let changes: Vec<SettingChange> = moved.iter().map(|(_, change)| (*change).clone()).collect();
    let risk = "More writes all the time, including pages that soon change again: stay within what the disk can do beside its reads.";
    Some(change::fix(&changes, "pages are then written earlier", server.steps(&moved), risk))
}
