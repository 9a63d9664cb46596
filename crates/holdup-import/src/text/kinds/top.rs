//! `top`, in batch mode or copied from the screen: load average, CPU shares, memory, and threads by
//! state if it lists threads (`-H`). A list of processes hides the other threads of each, so it
//! gives no count of threads.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use holdup_recording::{Labels, events};
use regex::Regex;

use super::ps::{Counts, Row, comm, put_threads};
use super::{Columns, Context, Kind, Line, Report, cpu_table, memory, number, size, text, uptime};

pub(super) const KIND: Kind = Kind::lines("top", recognises, read);

/// Seconds between screens, unless `-d` says otherwise.
const DELAY_S: f64 = 3.0;

/// From this share (0-1) of busy CPUs the processes' own shares tell how many CPUs there are.
const BUSY: f64 = 0.9;

/// Share (percent) of a CPU from which the kernel's freeing of memory holds others up.
const RECLAIM_PERCENT: f64 = 20.0;

/// Shares (percent) of CPU or memory from which a process is named in the recording.
const NAMED_PERCENT: f64 = 1.0;

fn recognises(lines: &[Line]) -> bool {
    let is_heading = |at: usize| text(lines, at).starts_with("top - ") && uptime::averages(text(lines, at)).is_some();
    let first = text(lines, 0);
    is_heading(0) || is_cpu(first) || is_tasks(first) || is_list(first) || is_memory(first)
}

fn is_cpu(line: &str) -> bool {
    line.trim_start().trim_start_matches('%').starts_with("Cpu") && !pairs(cpu_words(), line).is_empty()
}

fn is_tasks(line: &str) -> bool {
    (line.starts_with("Tasks:") || line.starts_with("Threads:")) && !pairs(task_words(), line).is_empty()
}

/// `MiB Mem :   7820.1 total,    123.4 free, …`; `free` has no words in its lines.
fn is_memory(line: &str) -> bool {
    let is_named = line.split_once(':').is_some_and(|(name, _)| name.trim_end().ends_with("Mem"));
    is_named && pairs(memory_words(), line).iter().any(|(name, ..)| *name == "total")
}

fn is_list(line: &str) -> bool {
    let columns = Columns::new(line);
    // `ps` can print the other columns, too.
    columns.has(&["PID", "VIRT", "S", "COMMAND"])
}

/// Numbers and the words behind them.
fn pairs<'t>(pattern: Option<&Regex>, line: &'t str) -> Vec<(&'t str, f64, &'t str)> {
    let found = pattern.into_iter().flat_map(|pattern| pattern.captures_iter(line));
    found
        .filter_map(|found| Some((found.get(2)?.as_str(), number(found.get(1)?.as_str())?, found.get(0)?.as_str())))
        .collect()
}

fn cpu_words() -> Option<&'static Regex> {
    static WORDS: OnceLock<Option<Regex>> = OnceLock::new();
    WORDS.get_or_init(|| Regex::new(r"(\d+(?:[.,]\d+)?)[ %]*(us|sy|ni|id|wa|hi|si|st)\b").ok()).as_ref()
}

fn task_words() -> Option<&'static Regex> {
    static WORDS: OnceLock<Option<Regex>> = OnceLock::new();
    WORDS.get_or_init(|| Regex::new(r"(\d+)\s*(total|running|sleeping|stopped|zombie)").ok()).as_ref()
}

fn memory_words() -> Option<&'static Regex> {
    static WORDS: OnceLock<Option<Regex>> = OnceLock::new();
    let make =
        || Regex::new(r"(\d+(?:[.,]\d+)?)[kmgtKMGT]?\+?\s*(total|free|used|buff/cache|buffers|cached|avail)").ok();
    WORDS.get_or_init(make).as_ref()
}

/// The head of one screen.
#[derive(Default)]
struct Head {
    averages: Option<[f64; 3]>,
    /// CPU shares by mode, summed over the lines; and the number of CPUs that have a line.
    shares: BTreeMap<&'static str, f64>,
    cpu_lines: f64,
    tasks: BTreeMap<String, f64>,
    is_threads: bool,
    memory: BTreeMap<String, f64>,
    swap: BTreeMap<String, f64>,
}

impl Head {
    /// Takes a line of the head; false if it is another line.
    fn take(&mut self, line: &str) -> bool {
        if is_cpu(line) {
            for (name, value, _) in pairs(cpu_words(), line) {
                *self.shares.entry(cpu_table::mode(name).unwrap_or("steal")).or_default() += value;
                self.cpu_lines += f64::from(u8::from(name == "us"));
            }
            return true;
        }
        if is_tasks(line) {
            self.is_threads = line.starts_with("Threads:");
            self.tasks = pairs(task_words(), line).into_iter().map(|(name, n, _)| (name.to_owned(), n)).collect();
            return true;
        }
        let Some((name, values)) = line.split_once(':') else { return false };
        let unit = match name.split_whitespace().next() {
            Some("MiB") => 1_048_576.0,
            Some("GiB") => 1_073_741_824.0,
            Some("TiB") => 1_099_511_627_776.0,
            _ => 1024.0,
        };
        let into = match name.split_whitespace().last() {
            Some("Mem") => &mut self.memory,
            Some("Swap") => &mut self.swap,
            _ => return false,
        };
        for (name, _, whole) in pairs(memory_words(), values) {
            let value = whole.trim_end_matches(|c: char| c != '+' && !c.is_ascii_digit() && !"kmgtKMGT".contains(c));
            let digits = whole.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(whole.len());
            let suffix = whole.get(digits..=digits).filter(|suffix| "kmgtKMGT".contains(suffix)).unwrap_or("");
            let is_suffix = value.len() > digits
                && whole.get(digits + 1..).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
            let number = whole.get(..digits).unwrap_or_default();
            let text = if is_suffix { format!("{number}{suffix}") } else { number.to_owned() };
            if let Some(bytes) = size(&text, unit, 1024.0) {
                into.insert(name.to_owned(), bytes);
            }
        }
        true
    }

    fn put(&self, report: Report, context: &mut Context) {
        if let Some(averages) = self.averages {
            uptime::put(averages, report.at, context);
        }
        if self.cpu_lines >= 1.0 {
            let shares: Vec<(&str, f64)> =
                self.shares.iter().map(|(mode, sum)| (*mode, sum / self.cpu_lines)).collect();
            context.out.cpu("top", report, &shares);
            if self.cpu_lines > 1.0 {
                context.out.learn_cpus(self.cpu_lines);
            }
        }
        let of = |name: &str| self.memory.get(name).copied();
        // Before procps 3.3 the page cache is shown at the end of the line on swap.
        let cached = of("buff/cache").or_else(|| self.swap.get("cached").copied()).or_else(|| of("cached"));
        let usage = memory::Usage {
            total: of("total"),
            free: of("free"),
            buffers: of("buffers"),
            cached,
            available: of("avail").or_else(|| self.swap.get("avail").copied()),
            swap_total: self.swap.get("total").copied(),
            swap_free: self.swap.get("free").copied(),
        };
        usage.put(report.at, context);
    }
}

/// Reads one screen.
fn read(lines: &[Line], context: &mut Context) -> usize {
    let mut head = Head::default();
    let mut used = 0;
    if text(lines, 0).starts_with("top - ") {
        head.averages = uptime::averages(text(lines, 0));
        if let Some(time) = uptime::time(text(lines, 0)) {
            context.set_time_of_day(time);
        }
        used = 1;
    }
    while head.take(text(lines, used)) {
        used += 1;
    }
    if context.reports("top") == 0 && context.has_flag('b') {
        context.out.note("top: before procps 3.3 the first screen of top -b shows CPU shares since boot; use -n 2");
    }
    let report = context.report("top", DELAY_S);
    head.put(report, context);
    let blanks = lines.iter().skip(used).take_while(|line| line.is_blank()).count();
    if !is_list(text(lines, used + blanks)) {
        return used;
    }
    used += blanks;
    let columns = Columns::new(text(lines, used)).with_words(&["COMMAND"]);
    used += 1;
    let (mut rows, mut used_percent, mut least_percent) = (Vec::new(), 0.0, f64::INFINITY);
    for (place, line) in lines.iter().enumerate().skip(used) {
        if line.is_blank() || line.text.starts_with("top - ") {
            break;
        }
        let values = columns.row(&line.text);
        let (Some(pid), Some(state)) = (values.number(&["PID"]), values.text(&["S"])) else {
            context.unread.push(place);
            used = place + 1;
            continue;
        };
        let shares = [values.number(&["%CPU"]), values.number(&["%MEM"])];
        let command = values.text(&["COMMAND"]).unwrap_or_default().trim_start_matches(['`', '-', '|', '+', ' ']);
        // With -c it shows arguments, which may hold secrets.
        let command = comm(command);
        if let Some(share) = shares[0] {
            used_percent += share;
            least_percent = least_percent.min(share);
        }
        if let Some(share) = shares[0].filter(|share| command.starts_with("kswapd") && *share >= RECLAIM_PERCENT) {
            let text = format!("{command}, which frees memory, used {share:.0} % of a CPU");
            context.out.event(report.at, events::ERROR, text, Labels::new([("error", events::RECLAIMING)]));
        }
        let is_large = shares.iter().flatten().any(|share| *share >= NAMED_PERCENT);
        if is_large && !head.is_threads && !command.is_empty() {
            context.out.setting(report.at, &format!("pid:{pid}"), "comm", command);
        }
        rows.push(Row { pid: pid as i64, tid: pid as i64, name: command, state, wchan: None, count: 1 });
        used = place + 1;
    }
    // A list that goes down to idle processes has all that use CPUs.
    if least_percent < NAMED_PERCENT {
        learn_cpus(&head, used_percent, context);
    }
    put_list(&head, &rows, report.at, context);
    used
}

/// The number of CPUs by what processes use of one CPU each, beside the share of all that is busy.
fn learn_cpus(head: &Head, used_percent: f64, context: &mut Context) {
    const OFF: f64 = 0.2;
    let share = |mode: &str| head.shares.get(mode).copied().unwrap_or(0.0) / 100.0;
    let busy = 1.0 - share("idle") - share("iowait") - share("steal");
    let cpus = used_percent / 100.0 / busy;
    let is_known = context.out.cpus.is_some() || head.cpu_lines < 1.0 || head.cpu_lines > 1.0;
    if is_known || busy < BUSY || cpus < 1.0 - OFF || (cpus - cpus.round()).abs() > OFF {
        return;
    }
    context.out.note(format!("top: the processes' own shares show {:.0} CPUs", cpus.round()));
    context.out.learn_cpus(cpus.round());
}

fn put_list(head: &Head, rows: &[Row<'_>], at: i64, context: &mut Context) {
    if !head.is_threads {
        context.out.note("top: it lists processes, so threads by state are unknown: add -H, or paste ps -eLo");
        return;
    }
    let of = |name: &str| head.tasks.get(name).copied().unwrap_or(0.0);
    if of("total") > rows.len() as f64 {
        let shown = rows.len();
        context.out.note(format!("top: the screen shows {shown} of {} threads; others may be in state D", of("total")));
    }
    put_threads(rows, at, context, Counts::Nothing);
    let blocked = rows.iter().filter(|row| row.state.starts_with('D')).count() as f64;
    let states = [
        ('R', of("running")),
        ('S', (of("sleeping") - blocked).max(0.0)),
        ('D', blocked),
        ('T', of("stopped")),
        ('Z', of("zombie")),
    ];
    context.threads(at, &states);
}
