//! What readers share: the time of the present output, the command that made it, and the reports of
//! the tool that runs.

use std::collections::BTreeSet;

use holdup_recording::Labels;
use holdup_recording::metrics;

use super::clock::{DAY_NS, is_half, time_of_day};
use super::command::{self, Counted};
use super::number::number;
use super::out::{HOST, Out, Report};

/// The reports of one tool since its command.
struct Run {
    kind: &'static str,
    count: usize,
    at: i64,
    interval_ns: i64,
}

/// The state of reading.
#[derive(Default)]
pub(super) struct Context {
    pub(super) out: Out,
    /// Lines of the present block, by place, that its reader did not understand.
    pub(super) unread: Vec<usize>,
    file: String,
    now: i64,
    /// Midnight of the day in a banner.
    day: Option<i64>,
    /// A time stamp that no report has used yet.
    stamp: Option<i64>,
    command: String,
    /// Ports on which the host listens, as far as outputs show.
    pub(super) listening: BTreeSet<u16>,
    /// When the host booted, if an output shows it.
    pub(super) boot: Option<i64>,
    run: Option<Run>,
    /// The kinds that already gave rows of this instant.
    instants: BTreeSet<&'static str>,
    /// Whether a header that tools print before their report since boot was just read.
    is_since_boot: bool,
}

impl Context {
    pub(super) fn begin_file(&mut self, file: &str, at: i64) {
        file.clone_into(&mut self.file);
        self.now = at;
        // Left behind by a reader that panicked in the file before.
        self.unread.clear();
        self.stamp = None;
        self.day = None;
        self.run = None;
        self.is_since_boot = false;
        self.command.clear();
        self.instants.clear();
    }

    /// Takes the present file for the whole output of a tool, from its start.
    pub(super) fn begin_output(&mut self) {
        self.is_since_boot = true;
    }

    pub(super) fn begin_command(&mut self, command: &str) {
        command.clone_into(&mut self.command);
        self.instants.clear();
        self.run = None;
        self.is_since_boot = false;
    }

    /// Takes a time stamp with a date.
    pub(super) fn set_time(&mut self, at: i64) {
        self.now = at;
        self.stamp = Some(at);
        self.instants.clear();
    }

    /// Takes a time of day, on the day of the present output or the next.
    pub(super) fn set_time_of_day(&mut self, since_midnight: i64) {
        let mut at = self.midnight().saturating_add(since_midnight);
        // A file's own time is later than its output; a step over midnight is a new day.
        if self.stamp.is_some() || self.run.is_some() {
            if at < self.now.saturating_sub(DAY_NS / 2) {
                at = at.saturating_add(DAY_NS);
            }
        } else if at > self.now.saturating_add(DAY_NS / 2) {
            at = at.saturating_sub(DAY_NS);
        }
        self.out.note("times without a zone were read as UTC");
        self.set_time(at);
    }

    /// Takes the day of a banner.
    pub(super) fn set_day(&mut self, midnight: i64) {
        self.now = midnight.saturating_add(self.now.rem_euclid(DAY_NS));
        self.day = Some(midnight);
    }

    /// Midnight of the last banner's day, or of the present output's.
    pub(super) fn day(&self) -> i64 {
        self.day.unwrap_or_else(|| self.midnight())
    }

    fn midnight(&self) -> i64 {
        self.now.saturating_sub(self.now.rem_euclid(DAY_NS))
    }

    /// Takes a line that is a time of day alone.
    pub(super) fn takes_time(&mut self, text: &str) -> bool {
        let words: Vec<&str> = text.split_whitespace().collect();
        let time = match words.as_slice() {
            [time] => time_of_day(time, None),
            [time, half] if is_half(half) => time_of_day(time, Some(half)),
            _ => None,
        };
        if let Some(time) = time {
            self.set_time_of_day(time);
        }
        time.is_some()
    }

    /// The words of the command whose output is read.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.command.split_whitespace()
    }

    /// Whether the command has this flag, alone or among others (`-xm`).
    pub(super) fn has_flag(&self, flag: char) -> bool {
        let is_short = |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.len() > 1;
        self.words().filter(is_short).any(|word| word.contains(flag))
    }

    /// The interval of `tool INTERVAL`, or of `-d INTERVAL`, seconds.
    fn interval_s(&self, tool: &str) -> Option<f64> {
        let name = tool.split_whitespace().next().unwrap_or(tool);
        let mut words = self.words().skip_while(|word| word.rsplit('/').next() != Some(name)).skip(1);
        let first = if tool == "top" {
            words.skip_while(|word| *word != "-d").nth(1).and_then(number)
        } else {
            words.find_map(number)
        };
        first.filter(|seconds| *seconds > 0.0 && *seconds < 1e6)
    }

    /// The next report of a tool that repeats itself: its time and its interval.
    pub(super) fn report(&mut self, kind: &'static str, default_s: f64) -> Report {
        let said = self.interval_s(kind);
        let interval_ns = (said.unwrap_or(default_s) * 1e9) as i64;
        let stamp = self.stamp.take();
        let before = self.run.as_ref().filter(|run| run.kind == kind).map(|run| (run.count, run.at));
        let (count, at, interval_ns) = match (before, stamp) {
            (Some((count, last)), Some(at)) if at > last => (count, at, at.saturating_sub(last)),
            (Some((count, last)), _) => {
                if said.is_none() && kind != "top" {
                    let steps = "reports without time stamps were taken to be";
                    self.out.note(format!("{kind}: {steps} {default_s} s apart, since no prompt shows the interval"));
                }
                (count, last.saturating_add(interval_ns), interval_ns)
            }
            (None, stamp) => (0, stamp.unwrap_or(self.now), interval_ns),
        };
        if stamp.is_none() && before.is_none() {
            self.say_assumed_time();
        }
        self.run = Some(Run { kind, count: count + 1, at, interval_ns });
        self.is_since_boot = false;
        self.now = at;
        Report { at, interval_ns, is_since_boot: false }
    }

    /// The last report of this tool once more: several tables may show one interval.
    pub(super) fn again(&mut self, kind: &'static str) -> Report {
        match self.run.as_ref().filter(|run| run.kind == kind) {
            Some(run) => Report { at: run.at, interval_ns: run.interval_ns, is_since_boot: false },
            None => self.report(kind, 1.0),
        }
    }

    /// The time of the present output, or the file's.
    pub(super) fn now(&self) -> i64 {
        self.now
    }

    /// Whether a time stamp or a report gave the present time.
    pub(super) fn is_stamped(&self) -> bool {
        self.stamp.is_some() || self.run.is_some()
    }

    /// The time of the last time stamp, if there was one.
    pub(super) fn instant_if_stamped(&self) -> Option<i64> {
        self.is_stamped().then_some(self.now)
    }

    /// The time of an output that is read once.
    pub(super) fn instant(&mut self) -> i64 {
        match self.stamp {
            Some(at) => at,
            None => {
                self.say_assumed_time();
                self.now
            }
        }
    }

    /// The time of an output that may be repeated without time stamps, e.g. in a loop: each one is
    /// a second later, or as much as `-i` says.
    pub(super) fn instant_of(&mut self, kind: &'static str) -> i64 {
        if !self.instants.insert(kind) {
            let said = self.words().find_map(|word| number(word.strip_prefix("-i")?));
            let step_s = said.filter(|seconds| *seconds > 0.0 && *seconds < 1e6).unwrap_or(1.0);
            self.now = self.now.saturating_add((step_s * 1e9) as i64);
            self.stamp = self.stamp.map(|_| self.now);
            self.instants = BTreeSet::from([kind]);
            self.out.note(format!("{kind}: outputs without time stamps were taken to be {step_s} s apart"));
        }
        self.instant()
    }

    fn say_assumed_time(&mut self) {
        if self.stamp.is_none() && self.run.is_none() {
            let file = &self.file;
            self.out.note(format!("{file}: outputs without a time stamp got the time before them, or the file's"));
        }
    }

    /// Number of reports of this tool since its command or its banner.
    pub(super) fn reports(&self, kind: &'static str) -> usize {
        self.run.as_ref().filter(|run| run.kind == kind).map_or(0, |run| run.count)
    }

    /// A banner of sysstat: the next report may cover the time since boot.
    pub(super) fn begin_banner(&mut self) {
        self.is_since_boot = true;
        self.run = None;
    }

    /// Whether the next report of `kind` covers the time since boot: the first below a banner or a
    /// command.
    pub(super) fn is_since_boot(&self, kind: &'static str) -> bool {
        let name = kind.split_whitespace().next().unwrap_or(kind);
        let is_own = self.words().any(|word| word.rsplit('/').next() == Some(name));
        self.reports(kind) == 0 && (self.is_since_boot || is_own) && !self.has_flag('y')
    }

    /// Takes the answer of `uptime -s`.
    pub(super) fn takes_boot(&mut self, stamp: i64) -> bool {
        let is_asked = self.words().any(|word| word == "uptime") && self.has_flag('s');
        if is_asked {
            self.boot = Some(stamp);
        }
        is_asked
    }

    /// The stages of the command whose output is read.
    pub(super) fn stages(&self) -> Vec<Vec<String>> {
        command::stages(&self.command)
    }

    /// Takes the answer of a command that counts lines.
    fn takes_count(&mut self, text: &str) -> bool {
        let is_counting =
            self.command.contains("wc ") || self.command.contains("grep -") || self.command.ends_with("wc");
        let Some((counted, surplus)) = command::counted(&self.stages()).filter(|_| is_counting) else { return false };
        let Some(count) = number(text).filter(|count| *count >= 0.0 && count.fract() == 0.0) else { return false };
        let at = self.instant_of("count");
        let count = (count - surplus).max(0.0);
        match counted {
            Counted::Threads { is_threads: true, state: Some(state) } => self.threads(at, &[(state, count)]),
            Counted::Threads { .. } => {
                self.out.note("ps | wc -l: it counts processes, so threads by state are unknown: add -T");
            }
            Counted::Sockets { state } => {
                self.out.host(at, metrics::tcp::SOCKETS, Labels::new([("state", state)]), count);
            }
            Counted::Files { folder, is_temporary } => {
                let metric =
                    if is_temporary { metrics::host::TEMPORARY_TABLE_FILES } else { metrics::host::FOLDER_ENTRIES };
                self.out.host(at, metric, Labels::new([("path", folder)]), count);
            }
            Counted::Descriptors { pid } => {
                let metric = metrics::process::OPEN_FILE_DESCRIPTORS.name;
                self.out.gauge(at, &format!("pid:{pid}"), metric, Labels::none(), count);
            }
        }
        true
    }

    /// Takes an answer of one line that only its command explains.
    pub(super) fn takes_answer(&mut self, text: &str) -> bool {
        let text = text.trim();
        if self.takes_count(text) {
            return true;
        }
        let (last, command) = (self.command.split_whitespace().last().unwrap_or_default(), self.command.as_str());
        let at = self.now;
        if self.words().any(|word| word == "nproc") || command.contains("_NPROCESSORS_ONLN") {
            return number(text).is_some_and(|cpus| {
                self.out.learn_cpus(cpus);
                true
            });
        }
        if command.contains("blockdev") && command.contains("--getra") {
            let device = last.trim_start_matches("/dev/").to_owned();
            let Some(sectors) = number(text) else { return false };
            self.out.setting(at, HOST, format!("block.{device}.read_ahead_kb"), (sectors / 2.0).to_string());
            return true;
        }
        let path = last.trim_start_matches("/sys/block/");
        if let Some((device, file)) = path.split_once("/queue/").filter(|_| last.starts_with("/sys/block/")) {
            let name = format!("block.{device}.{file}");
            self.out.setting(at, HOST, name, chosen(text));
            return true;
        }
        if let Some(name) = last.strip_prefix("/sys/kernel/mm/transparent_hugepage/") {
            let name = format!("transparent_hugepage.{name}");
            self.out.setting(at, HOST, name, chosen(text));
            return true;
        }
        if let Some(name) = last.strip_prefix("/proc/sys/") {
            let name = name.replace('/', ".");
            self.kernel_setting(at, &name, &text.split_whitespace().collect::<Vec<_>>().join(" "));
            return true;
        }
        false
    }

    /// A setting of the kernel by its name in `sysctl`; some names are counts.
    pub(super) fn kernel_setting(&mut self, at: i64, name: &str, value: &str) {
        let count = match name.rsplit('.').next() {
            Some("nf_conntrack_count" | "ip_conntrack_count") => Some(metrics::host::NETWORK_CONNTRACK_COUNT),
            Some("nf_conntrack_max" | "ip_conntrack_max") => Some(metrics::host::NETWORK_CONNTRACK_MAX),
            _ => None,
        };
        if let Some((metric, value)) = count.zip(number(value)) {
            self.out.host(at, metric, Labels::none(), value);
        }
        self.out.setting(at, HOST, name, value);
    }

    /// Threads of the host by state.
    pub(super) fn threads(&mut self, at: i64, counts: &[(char, f64)]) {
        for (state, count) in counts {
            let labels = Labels::new([("state", state.to_string())]);
            self.out.host(at, metrics::host::THREADS, labels, *count);
        }
    }

    /// A place in the rows so far.
    pub(super) fn mark(&self) -> (usize, i64) {
        (self.out.count(), self.now)
    }

    /// Number and span of the rows since a mark.
    pub(super) fn since(&self, (count, from): (usize, i64)) -> (usize, Option<(i64, i64)>) {
        let rows = self.out.count() - count;
        let from = if self.reports_any() { from.min(self.now) } else { self.now };
        (rows, (rows > 0).then_some((from, self.now)))
    }

    fn reports_any(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.count > 1)
    }
}

/// The word in brackets of a list of choices, or the text itself.
fn chosen(words: &str) -> &str {
    words.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(words, |(word, _)| word)
}
