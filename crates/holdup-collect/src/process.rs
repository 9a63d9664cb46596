//! `--watch pid:N`: one process, those of the same program that it forked, and all their threads:
//! their places in the kernel, their resource usage, and their waits for a CPU; its limits, its
//! cgroup, and its mounts. A process is identified by number and start time: a new process under
//! the same number is not followed.
//!
//! It never reads the command line or the environment: both may contain passwords.

mod forked;
mod settings;
mod tasks;

use std::collections::HashMap;

use holdup_recording::metrics::Metric;
use holdup_recording::{Batch, Coverage, Labels, metrics};

use crate::coverage::{Line as _, part};
use crate::host::cgroup::Cgroup;
use crate::host::mounts;
use crate::options::Options;
use crate::proc::task::{self, Stat};
use crate::proc::{Proc, Tree, keyed, page_bytes, permissions, ticks_per_second};
use crate::reading::{Out, tell};
use crate::{Collector, ProbeError, ReadError};

/// The process that all parts read.
#[derive(Clone, Debug)]
struct Target {
    proc: Proc,
    pid: u32,
}

/// Which parts of an existing process can be read, as `probe` found out.
#[derive(Clone, Copy, Debug)]
struct Readable {
    io: bool,
    descriptors: bool,
    delays: bool,
    cgroup: bool,
}

/// One process as a source.
pub struct Process {
    target: Target,
    source: String,
    /// Its start in clock ticks since boot, once it has been seen.
    start_ticks: Option<u64>,
    gone: bool,
    readable: Readable,
    forked: forked::Forked,
    /// The last value of each counter to which several processes add, by name and label.
    risen: HashMap<(&'static str, &'static str), f64>,
    tasks: tasks::Tasks,
    cgroup: Cgroup,
    buffer: Vec<u8>,
}

/// The fields of `io` in use, as what they are recorded.
const IO: [(Metric, &str, &str); 4] = [
    (metrics::process::DISK_IO_BYTES, "read", "read_bytes"),
    (metrics::process::DISK_IO_BYTES, "write", "write_bytes"),
    (metrics::process::IO_CALLS_BYTES, "read", "rchar"),
    (metrics::process::IO_CALLS_BYTES, "write", "wchar"),
];

/// The fields [`IO`] of process `pid`.
fn io_of(proc: &Proc, pid: u32, buffer: &mut Vec<u8>) -> Result<[u64; 4], ReadError> {
    let name = format!("/proc/{pid}/io");
    let counters = keyed::flat(&name, proc.read_lines(&format!("{pid}/io"), buffer)?)?;
    let mut values = [0; 4];
    for (value, (_, _, field)) in values.iter_mut().zip(IO) {
        *value = *counters.get(field).ok_or_else(|| ReadError(format!("{name}: {field} is missing")))?;
    }
    Ok(values)
}

impl Process {
    /// Process `pid` of the tree `proc`.
    pub fn new(proc: Proc, pid: u32) -> Self {
        Self {
            target: Target { proc, pid },
            source: format!("pid:{pid}"),
            start_ticks: None,
            gone: false,
            readable: Readable { io: true, descriptors: true, delays: true, cgroup: true },
            forked: forked::Forked::default(),
            risen: HashMap::new(),
            tasks: tasks::Tasks::default(),
            cgroup: Cgroup::for_process(&pid.to_string()),
            buffer: Vec::new(),
        }
    }

    /// Reads the process' `stat`, if it is still the same process.
    fn usage(&mut self, out: &mut Out) -> Result<(), ReadError> {
        let Target { proc, pid } = &self.target;
        let name = format!("{pid}/stat");
        if let Err(error) = proc.read(&name, &mut self.buffer)
            && self.buffer.is_empty()
        {
            return Err(error);
        }
        let text = task::text(&mut self.buffer);
        let stat = Stat::parse(text)?;
        // A zombie: ended, but not collected by its parent. (A main thread that ended before other
        // threads is a Z too, but those still count.)
        let ended = stat.state == 'Z' && stat.threads <= 1;
        if ended || self.start_ticks.is_some_and(|start| start != stat.start_ticks) {
            return Err(ReadError(format!("pid:{pid}: the process has ended")));
        }
        self.start_ticks = Some(stat.start_ticks);
        let used = self.forked.look(proc, *pid, text)?;
        let per_second = ticks_per_second();
        for (mode, ticks) in [("user", used.user_ticks), ("system", used.system_ticks)] {
            self.put_rising(out, metrics::process::CPU_TIME, ("cpu_mode", mode), ticks as f64 / per_second);
        }
        out.put_plain(metrics::process::MEMORY_USAGE_BYTES, used.resident_pages as f64 * page_bytes());
        self.put_rising(out, metrics::process::MAJOR_FAULTS, ("", ""), used.major_faults as f64);
        self.put_rising(out, metrics::process::MINOR_FAULTS, ("", ""), used.minor_faults as f64);
        Ok(())
    }

    /// Adds a counter to which several processes add. A child that ends between two reads is in neither, and then in its
    /// parent's: the sum falls for a moment, which a counter never does.
    fn put_rising(&mut self, out: &mut Out, metric: Metric, label: (&'static str, &'static str), value: f64) {
        let last = self.risen.entry((metric.name, label.1)).or_default();
        *last = last.max(value);
        let labels = if label.0.is_empty() { Labels::none() } else { Labels::new([label]) };
        out.put(metric, labels, *last);
    }

    fn descriptors(&mut self, out: &mut Out) -> Result<(), ReadError> {
        let folder = self.target.proc.path(Tree::Proc, &format!("{}/fd", self.target.pid));
        let wrap = |e: std::io::Error| ReadError(format!("{}: {e}", folder.display()));
        // Since Linux 6.2 the folder's size is their number, for every reader; before it is 0.
        let counted = if self.target.proc.is_live() { std::fs::metadata(&folder).map_err(wrap)?.len() } else { 0 };
        let mut open = counted as f64;
        if counted == 0 {
            for entry in std::fs::read_dir(&folder).map_err(wrap)? {
                entry.map_err(wrap)?;
                open += 1.0;
            }
        }
        out.put_plain(metrics::process::OPEN_FILE_DESCRIPTORS, open);
        Ok(())
    }

    /// Bytes requested from and returned by the block layer, and bytes of read and write calls from
    /// any source, such as page cache, pipes and sockets. The calls do not include reads through a
    /// mapping. The kernel adds those of a child to its parent when it collects it.
    fn io(&mut self, out: &mut Out) -> Result<(), ReadError> {
        let Target { proc, pid } = self.target.clone();
        let mut sums = io_of(&proc, pid, &mut self.buffer)?;
        for child in self.forked.children.keys() {
            // One that has ended since is in its parent's at the next read.
            let own = io_of(&proc, *child, &mut self.buffer).unwrap_or_default();
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        for ((metric, direction, _), value) in IO.into_iter().zip(sums) {
            self.put_rising(out, metric, ("direction", direction), value as f64);
        }
        Ok(())
    }

    /// Whether the watched process has ended. A failed read does not count as an end.
    fn has_ended(&mut self) -> bool {
        let Target { proc, pid } = &self.target;
        if !proc.path(Tree::Proc, &format!("{pid}/stat")).exists() {
            return true;
        }
        let _ = proc.read(&format!("{pid}/stat"), &mut self.buffer);
        Stat::parse(task::text(&mut self.buffer)).is_ok_and(|stat| {
            (stat.state == 'Z' && stat.threads <= 1) || self.start_ticks.is_some_and(|start| start != stat.start_ticks)
        })
    }
}

/// Makes the collector for `pid:N`.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    let pid = rest.parse().ok().filter(|pid| *pid > 0);
    let pid = pid.ok_or("after `pid:` comes a process number, e.g. pid:4711 (pgrep -f NAME finds it)")?;
    Ok(Box::new(Process::new(Proc::system(), pid)))
}

impl Process {
    /// Why its usage cannot be read. The number of a process that has ended may become another's, so it
    /// is not asked for again.
    fn unusable(&self, error: &ReadError) -> ProbeError {
        let source = self.source.clone();
        if self.target.proc.path(Tree::Proc, &format!("{}/stat", self.target.pid)).exists() {
            return ProbeError::unreachable(source, format!("cannot be read: {error}"));
        }
        let why = "the process does not exist here (it ended, is in another container, or is hidden by hidepid)";
        ProbeError::Gone { source_name: source, why: why.to_owned() }
    }

    /// Whether its connections are not in the lists of this process, which cover only the reader's own
    /// network namespace.
    fn is_in_another_network(&self) -> bool {
        let Target { proc, pid } = &self.target;
        let network = |of: &str| std::fs::read_link(proc.path(Tree::Proc, &format!("{of}/ns/net"))).ok();
        network("self").zip(network(&pid.to_string())).is_some_and(|(own, its)| own != its)
    }
}

impl Collector for Process {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let mut batch = Batch::default();
        let source = self.source.clone();
        if let Err(error) = self.usage(&mut Out::new(&mut batch, &source)) {
            return Err(self.unusable(&error));
        }
        let ptrace = "run holdup as the process' user or as root, or give it CAP_SYS_PTRACE: \
             setcap cap_sys_ptrace+ep \"$(command -v holdup)\"; a container with --cap-add SYS_PTRACE";
        let mut parts = Vec::new();
        let mut missing = |name: &str, why: String, enable: &str| {
            parts.push(part(&source, name).absent(why).enable(enable));
        };
        if let Err(error) = self.io(&mut Out::new(&mut batch, &source)) {
            self.readable.io = false;
            missing("disk I/O", error.0, ptrace);
        }
        if let Err(error) = self.descriptors(&mut Out::new(&mut batch, &source)) {
            self.readable.descriptors = false;
            missing("file descriptors", error.0, ptrace);
        }
        let Target { proc, pid } = &self.target;
        if let Err(error) = self.cgroup.sample(proc, &mut Out::new(&mut batch, &source)) {
            self.readable.cgroup = false;
            missing(
                "cgroup",
                error.0,
                "mount the cgroup file systems at /sys/fs/cgroup; for a container's process run holdup on its host",
            );
        }
        if mounts::read(proc, &pid.to_string()).is_empty() {
            missing(
                "mounts",
                format!("cannot read /proc/{pid}/mountinfo: the host's mounts stand for the process' own"),
                ptrace,
            );
        }
        let folder = format!("{pid}/task/{pid}");
        for it in permissions::lacking(proc, std::slice::from_ref(&folder)) {
            missing(it.name, it.why.to_owned(), it.enable);
        }
        if proc.word(Tree::Proc, &format!("{folder}/schedstat")).is_none() {
            let why = "this kernel does not report how long threads wait for a CPU".to_owned();
            missing("run queue", why, "use a kernel with CONFIG_SCHED_INFO");
        }
        // Before Linux 5.14 this switch does not exist, and accounting is on unless booted with
        // `nodelayacct`.
        if proc.word(Tree::Proc, "sys/kernel/task_delayacct").is_some_and(|on| on == "0") {
            self.readable.delays = false;
            let why = "delay accounting is off: waits for block I/O are not counted".to_owned();
            missing("block I/O delay", why, "sysctl kernel.task_delayacct=1, before the process starts");
        }
        if self.is_in_another_network() {
            let why = "it runs in a separate network namespace: connections, round trips and queues of `host` are not those of this \
                       process";
            let enable = format!("run holdup in its network namespace: nsenter -t {pid} -n holdup …");
            missing("network", why.to_owned(), &enable);
        }
        Ok(Coverage::with_parts(&self.source, parts))
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        if self.has_ended() {
            return Err(ReadError(format!("{}: the process has ended", self.source)));
        }
        let Target { proc, pid } = &self.target;
        let mut found = settings::read(proc, *pid, self.start_ticks);
        found.extend(self.cgroup.settings(proc));
        found.extend(mounts::read(proc, &pid.to_string()));
        tell(batch, &self.source, found);
        Ok(())
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let source = self.source.clone();
        let mut out = Out::new(batch, &source);
        if let Err(error) = self.usage(&mut out) {
            if self.has_ended() && !self.gone {
                self.gone = true;
                let pid = self.target.pid;
                let labels = Labels::new([("pid", pid.to_string())]);
                out.say("process_gone", format!("process {pid} has ended"), labels);
            }
            return Err(error);
        }
        let mut errors = Vec::new();
        out.begin();
        errors.extend(self.tasks.read(&self.target, &mut self.forked, self.readable.delays, &mut out).err());
        if self.readable.descriptors {
            out.begin();
            errors.extend(self.descriptors(&mut out).err());
        }
        if self.readable.io {
            out.begin();
            errors.extend(self.io(&mut out).err());
        }
        if self.readable.cgroup {
            errors.extend(self.cgroup.sample(&self.target.proc, &mut out).err());
        }
        ReadError::all(errors.into_iter().map(|error| error.0).collect())
    }
}
