//! `ps`: threads by state and by the kernel function they sleep in, if it lists threads (`-T`,
//! `-L`, `-m`). A list of processes shows only the state of each main thread, so it names processes
//! in uninterruptible sleep but gives no count of threads.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::rows::Thread;

use super::{Columns, Context, HOST, Kind, Line, command, pg_titles, rows as table_rows, text};

pub(super) const KIND: Kind = Kind::lines("ps", recognises, read);

const STATES: [&str; 3] = ["STAT", "S", "STATE"];
const COMMANDS: [&str; 4] = ["COMMAND", "CMD", "COMM", "ARGS"];
const THREADS: [&str; 3] = ["LWP", "SPID", "TID"];

/// Columns that a list without states has, two of them at least.
const PLAIN: [&str; 8] = ["PPID", "STIME", "TTY", "TIME", "%CPU", "%MEM", "RSS", "ELAPSED"];

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
    /// How many of them there are.
    pub(super) count: i64,
}

/// Which counts of threads by state a list gives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    /// Those of all states: a state without a row has none.
    All,
    /// Those of states with a row.
    Seen,
    /// At least as many threads are in uninterruptible sleep.
    Blocked,
    /// None.
    Nothing,
}

fn recognises(lines: &[Line]) -> bool {
    let columns = Columns::new(text(lines, 0));
    let is_counted = columns.place(&["COUNT"]) == Some(0) && columns.len() > 1 && !columns.has(&["SOCKETS"]);
    let is_known = |name: &&&str| columns.has(&[**name]);
    // Without states, only a table of `ps` alone: other tools list processes, too.
    let is_plain = columns.has_any(&COMMANDS) && PLAIN.iter().filter(is_known).count() >= 2;
    let has_states = columns.has_any(&STATES) && (columns.has_any(&COMMANDS) || columns.has(&["WCHAN"]));
    (columns.has(&["PID"]) && (has_states || is_plain) || is_counted) && columns.len() < 60
}

/// What a list of `ps` has.
#[derive(Default)]
struct List<'t> {
    rows: Vec<Row<'t>>,
    /// Names of processes that use a CPU.
    names: BTreeMap<i64, &'t str>,
    /// Command lines that are titles of sessions.
    titles: Vec<(i64, &'t str)>,
    has_threads: bool,
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of("ps");
    let columns = Columns::new(text(lines, 0)).with_words(&COMMANDS);
    let stages = context.stages();
    // A stage may have selected the state, and left the column out.
    let selected = command::selected_state(&stages).map(String::from);
    let mut list = List { has_threads: columns.has_any(&THREADS), ..List::default() };
    let mut used = 1;
    for (place, line) in (1..).zip(table_rows(lines, recognises)) {
        used = place + 1;
        let values = columns.row(&line.text);
        if !take(&values, selected.as_deref(), columns.has_any(&STATES), &mut list) {
            context.unread.push(place);
        }
    }
    for (pid, name) in list.names.iter().filter(|(_, name)| !name.is_empty()) {
        context.out.setting(at, &format!("pid:{pid}"), "comm", *name);
    }
    for (pid, title) in &list.titles {
        context.out.batch.sessions.extend(pg_titles::session(title, *pid, at));
    }
    let pids: BTreeSet<i64> = list.rows.iter().map(|row| row.pid).collect();
    let is_repeated = pids.len() < list.rows.len() && !columns.has(&["COUNT"]);
    let lists_threads = list.has_threads || command::lists_threads(&stages) || is_repeated;
    let counts = match (lists_threads, command::is_filtered(&stages)) {
        (true, false) => Counts::All,
        // What was cut away is not known.
        (true, true) => Counts::Seen,
        (false, _) => Counts::Blocked,
    };
    if !lists_threads {
        list.rows.retain(|row| row.state.starts_with('D'));
        context.out.note("ps: it lists processes, so threads by state are unknown: add -T (ps -eTo …)");
    }
    put_threads(&list.rows, at, context, counts);
    used
}

/// Takes a row; false if it is not one.
fn take<'t>(values: &super::Row<'_, 't>, selected: Option<&'t str>, has_states: bool, list: &mut List<'t>) -> bool {
    let count = values.number(&["COUNT"]);
    // With `-m` a process has a line of its own, and its threads have no pid.
    let pid = values.number(&["PID"]).or(count.map(|_| 0.0));
    let Some(pid) = pid.map(|pid| pid as i64) else { return false };
    let command = values.text(&COMMANDS).unwrap_or_default();
    let name = program(command);
    if name == "postgres" {
        list.titles.push((pid, command));
    }
    if values.number(&["%CPU", "PCPU", "C"]).is_some_and(|share| share >= 1.0) && pid > 0 {
        list.names.entry(pid).or_insert(name);
    }
    let own = values.text(&STATES);
    let Some(state) = own.filter(|state| is_state(state)).or(selected.filter(|_| !has_states)) else {
        // `uniq -c` counts the header, too.
        return !has_states || count.is_some() && own.is_some_and(|own| STATES.contains(&own));
    };
    let tid = values.number(&THREADS).map_or(pid, |tid| tid as i64);
    let wchan = values.text(&["WCHAN"]).filter(|word| !matches!(*word, "-" | "0" | "?" | "*"));
    list.rows.push(Row { pid, tid, name, state, wchan, count: count.unwrap_or(1.0) as i64 });
    true
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
    // The tree of `f`.
    let command = command.trim_start_matches(['\\', '_', '|', ' ']);
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

/// Adds rows for running threads and those in uninterruptible sleep, and counts by state.
pub(super) fn put_threads(rows: &[Row<'_>], at: i64, context: &mut Context, counts: Counts) {
    let mut places: BTreeMap<Place<'_>, (i64, i64)> = BTreeMap::new();
    let mut states: BTreeMap<char, f64> = ['R', 'S', 'D', 'T', 'Z'].into_iter().map(|state| (state, 0.0)).collect();
    for row in rows {
        let Some(state) = row.state.chars().next() else { continue };
        *states.entry(state).or_default() += row.count as f64;
        if matches!(state, 'R' | 'D') {
            let place = places.entry((row.pid, row.name, state, row.wchan)).or_insert((row.tid, 0));
            place.1 += row.count;
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
    let is_known = |(state, count): &(char, f64)| match counts {
        Counts::All => true,
        Counts::Seen => *count > 0.0,
        Counts::Blocked => *count > 0.0 && *state == 'D',
        Counts::Nothing => false,
    };
    let states: Vec<(char, f64)> = states.into_iter().filter(is_known).collect();
    context.threads(at, &states);
}
