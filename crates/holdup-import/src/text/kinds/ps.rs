//! `ps`: threads by state and by the kernel function they sleep in, if it lists threads (`-T`,
//! `-L`, `-m`). A list of processes shows only the state of each main thread, so it names processes
//! in uninterruptible sleep but gives no count of threads.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::rows::Thread;

use super::{Columns, Context, HOST, Kind, Line, rows as table_rows, text};

pub(super) const KIND: Kind = Kind::lines("ps", recognises, read);

const STATES: [&str; 3] = ["STAT", "S", "STATE"];
const COMMANDS: [&str; 4] = ["COMMAND", "CMD", "COMM", "ARGS"];
const THREADS: [&str; 3] = ["LWP", "SPID", "TID"];

/// Bytes of a name in the kernel.
const COMM_BYTES: usize = 15;

/// Process, name, state and kernel function.
type Place<'t> = (i64, &'t str, char, Option<&'t str>);

/// A thread, or a process if only processes are listed.
pub(super) struct Row<'t> {
    pub(super) pid: i64,
    pub(super) tid: i64,
    pub(super) name: &'t str,
    pub(super) state: &'t str,
    pub(super) wchan: Option<&'t str>,
}

fn recognises(lines: &[Line]) -> bool {
    let columns = Columns::new(text(lines, 0));
    columns.has(&["PID"]) && columns.has_any(&STATES) && columns.has_any(&COMMANDS) && columns.len() < 60
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of("ps");
    let columns = Columns::new(text(lines, 0)).with_words(&COMMANDS);
    let mut rows = Vec::new();
    let mut used = 1;
    let mut fallback = BTreeMap::new();
    for (place, line) in (1..).zip(table_rows(lines, recognises)) {
        used = place + 1;
        let values = columns.row(&line.text);
        // With `-m` a process has a line of its own, and its threads have no pid.
        let (pid, state) = (values.number(&["PID"]), values.text(&STATES));
        let Some((pid, state)) = pid.zip(state.filter(|state| is_state(state))) else {
            context.unread.push(place);
            continue;
        };
        let command = values.text(&COMMANDS).unwrap_or_default();
        let name = program(command);
        let tid = values.number(&THREADS).unwrap_or(pid);
        let wchan = values.text(&["WCHAN"]).filter(|word| !matches!(*word, "-" | "0" | "?" | "*"));
        if values.number(&["%CPU", "PCPU", "C"]).is_some_and(|share| share >= 1.0) {
            fallback.entry(pid as i64).or_insert(name);
        }
        rows.push(Row { pid: pid as i64, tid: tid as i64, name, state, wchan });
    }
    for (pid, name) in fallback.into_iter().filter(|(_, name)| !name.is_empty()) {
        context.out.setting(at, &format!("pid:{pid}"), "comm", name);
    }
    let flags = ['T', 'L', 'm', 'H'].into_iter().any(|flag| context.has_flag(flag));
    let pids: BTreeSet<i64> = rows.iter().map(|row| row.pid).collect();
    let is_threads = columns.has_any(&THREADS) || flags && is_ps(context) || pids.len() < rows.len();
    if is_threads {
        put_threads(&rows, at, context, true);
    } else {
        let blocked: Vec<Row<'_>> = rows.into_iter().filter(|row| row.state.starts_with('D')).collect();
        put_threads(&blocked, at, context, false);
        context.out.note("ps: it lists processes, so threads by state are unknown: add -T (ps -eTo …)");
    }
    used
}

fn is_ps(context: &Context) -> bool {
    context.words().any(|word| word.rsplit('/').next() == Some("ps"))
}

/// `Ssl`, `D`, `R+`: a state's letter and flags.
fn is_state(text: &str) -> bool {
    text.len() <= 8
        && text.starts_with(|c| "RSDTtZIXWPx".contains(c))
        && text.bytes().skip(1).all(|byte| b"<NLsl+".contains(&byte))
}

/// The program's name in a command line, without its folder and its arguments, which may hold
/// secrets.
fn program(command: &str) -> &str {
    if command.starts_with('[') {
        return command.trim_start_matches('[').split(']').next().unwrap_or_default();
    }
    let first = command.split_whitespace().next().unwrap_or_default();
    let name = first.rsplit('/').next().unwrap_or(first);
    name.trim_end_matches(':')
}

/// A process' name as a tool shows it. Longer texts and those with options are command lines: of
/// them only the program is kept.
pub(super) fn comm(shown: &str) -> &str {
    let shown = shown.trim_start_matches("|__").trim();
    if shown.len() > COMM_BYTES || shown.starts_with('/') || shown.contains(" -") { program(shown) } else { shown }
}

/// Adds rows for running threads and those in uninterruptible sleep, and all counts by state if
/// `counts`.
pub(super) fn put_threads(rows: &[Row<'_>], at: i64, context: &mut Context, counts: bool) {
    let mut places: BTreeMap<Place<'_>, (i64, i64)> = BTreeMap::new();
    let mut states: BTreeMap<char, f64> = ['R', 'S', 'D', 'T', 'Z'].into_iter().map(|state| (state, 0.0)).collect();
    for row in rows {
        let Some(state) = row.state.chars().next() else { continue };
        *states.entry(state).or_default() += 1.0;
        if matches!(state, 'R' | 'D') {
            let place = places.entry((row.pid, row.name, state, row.wchan)).or_insert((row.tid, 0));
            place.1 += 1;
        }
    }
    for ((pid, name, state, wchan), (tid, count)) in places {
        context.out.batch.threads.push(Thread {
            observed_at: at,
            source: HOST.to_owned(),
            pid,
            tid,
            process: name.to_owned(),
            thread: name.to_owned(),
            state: state.to_string(),
            wchan: wchan.map(str::to_owned),
            count,
            ..Thread::default()
        });
    }
    if counts {
        let states: Vec<(char, f64)> = states.into_iter().collect();
        context.threads(at, &states);
    }
}
