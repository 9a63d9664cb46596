//! The cgroup of one process, version 1 or 2: its limits and the time they cost (CPU quota, memory
//! limit, throttled disk), and its usage. For `host` it is holdup's own cgroup, which in a
//! container is the container's; for `pid:N` that process's; for `cgroup:PATH` the one with that
//! name.
//!
//! Counters are read at the level whose limit binds: a quota of a parent throttles there, and the
//! process's own level shows none of it. Without a limit, the process's own level is read. The
//! label `cgroup` names the level. No cgroup outside the process's own ancestry is read.

mod limits;

use std::collections::HashMap;

use holdup_recording::metrics::Metric;
use holdup_recording::quota::{self, CpuQuota};
use holdup_recording::{Labels, metrics};

use crate::ReadError;
use crate::proc::cgroups::{Hierarchies, Level, Place};
use crate::proc::devices::Devices;
use crate::proc::{Proc, keyed};
use crate::reading::Out;

/// Follows the cgroup of one process.
pub(crate) struct Cgroup {
    subject: Subject,
    /// The text of `/proc/PID/cgroup` when the places were resolved, or its equivalent for a named
    /// cgroup.
    membership: String,
    levels: ControllerLevels,
    devices: Devices,
    buffer: Vec<u8>,
}

/// Which cgroup to read.
enum Subject {
    /// That of `self`, or of a process number.
    Process(String),
    /// The cgroup with this name, whichever processes are in it.
    Named(String, Hierarchies),
}

/// One level of a hierarchy, of either version.
#[derive(Clone, Debug)]
struct VersionedLevel {
    is_v2: bool,
    level: Level,
}

/// Where the files of each controller are.
#[derive(Default)]
struct ControllerLevels {
    cpu: Option<VersionedLevel>,
    /// Only in version 1, where CPU time is counted by a separate controller.
    cpu_usage: Option<Level>,
    processes: Option<Level>,
    memory: Option<VersionedLevel>,
    disk: Option<VersionedLevel>,
    /// Only in version 2, whichever controllers are on.
    pressure: Option<Level>,
    settings: Vec<(String, String)>,
    /// Whether a controller counts the process only with the whole machine.
    is_shared: bool,
}

impl ControllerLevels {
    /// The same without levels that hold the whole machine: their figures are not a process's.
    fn without_machine(mut self) -> Self {
        let Self { cpu, cpu_usage, processes, memory, disk, pressure, .. } = &mut self;
        let mut is_shared = false;
        for of_version in [cpu, memory, disk] {
            is_shared |= of_version.take_if(|at| at.level.is_machine()).is_some();
        }
        for level in [cpu_usage, processes, pressure] {
            is_shared |= level.take_if(|level| level.is_machine()).is_some();
        }
        Self { is_shared, ..self }
    }
}

impl Cgroup {
    /// The cgroup of process `who`: a number, or `self`.
    pub(crate) fn for_process(who: &str) -> Self {
        Self::about(Subject::Process(who.to_owned()))
    }

    /// The cgroup with this name, as `/proc/PID/cgroup` writes it.
    pub(crate) fn named(name: &str, hierarchies: Hierarchies) -> Self {
        Self::about(Subject::Named(name.to_owned(), hierarchies))
    }

    fn about(subject: Subject) -> Self {
        Self {
            subject,
            membership: String::new(),
            levels: ControllerLevels::default(),
            devices: Devices::default(),
            buffer: Vec::new(),
        }
    }

    /// The current membership.
    fn membership_now(&mut self, proc: &Proc) -> Result<String, ReadError> {
        match &self.subject {
            Subject::Process(who) => proc.read_lines(&format!("{who}/cgroup"), &mut self.buffer).map(str::to_owned),
            Subject::Named(name, hierarchies) => match hierarchies.membership_text(name) {
                text if text.is_empty() => Err(ReadError(format!("cgroup {name} does not exist"))),
                text => Ok(text),
            },
        }
    }

    /// Writes the counters into `out`.
    ///
    /// # Errors
    /// If the process's cgroup cannot be found, if none of its files can be read, or if a file is
    /// malformed.
    pub(crate) fn sample(&mut self, proc: &Proc, out: &mut Out) -> Result<(), ReadError> {
        let text = self.membership_now(proc)?;
        if text != self.membership {
            self.membership = text;
            self.locate(proc);
        }
        let before = out.batch.samples.len();
        let Self { levels, devices, buffer, .. } = self;
        let mut failed = Vec::new();
        failed.extend(levels.cpu.as_ref().and_then(|at| cpu(at, buffer, out).err()));
        failed.extend(levels.cpu_usage.as_ref().and_then(|level| cpu_usage(level, buffer, out).err()));
        failed.extend(levels.processes.as_ref().and_then(|level| processes(level, buffer, out).err()));
        failed.extend(levels.memory.as_ref().and_then(|at| memory(at, buffer, out).err()));
        failed.extend(levels.disk.as_ref().and_then(|at| disk(at, proc, devices, buffer, out).err()));
        failed.extend(levels.pressure.as_ref().and_then(|level| pressure(level, buffer, out).err()));
        if let Some(error) = failed.into_iter().next() {
            return Err(error);
        }
        if out.batch.samples.len() == before && !self.levels.is_shared {
            let of = match &self.subject {
                Subject::Process(who) => format!("/proc/{who}/cgroup"),
                Subject::Named(name, _) => name.clone(),
            };
            return Err(ReadError(format!(
                "{of}: no file of this cgroup can be read; are the cgroup file systems mounted at /sys/fs/cgroup?"
            )));
        }
        Ok(())
    }

    /// Names and values of the current settings; empty if the process's cgroup cannot be found.
    pub(crate) fn settings(&mut self, proc: &Proc) -> Vec<(String, String)> {
        match self.membership_now(proc) {
            Ok(text) => self.membership = text,
            Err(_) => return Vec::new(),
        }
        self.locate(proc);
        self.levels.settings.clone()
    }

    fn locate(&mut self, proc: &Proc) {
        let Self { subject, membership, devices, .. } = self;
        let (who, hierarchies) = match subject {
            Subject::Process(who) => (who.as_str(), &Hierarchies::read(proc)),
            Subject::Named(_, hierarchies) => ("", &*hierarchies),
        };
        let place = |controller| hierarchies.place(who, membership, controller);
        let (cpu, memory, unified) = (place("cpu"), place("memory"), hierarchies.unified(who, membership));
        // Version 2 calls it `io`; version 1 never uses that name.
        let disk = place("blkio");
        let (cpu_time, pids) = (place("cpuacct"), place("pids"));
        let mut settings = Vec::new();
        let own = [&memory, &cpu, &disk, &unified].into_iter().flatten().next();
        let Some(own) = own else {
            self.levels = ControllerLevels::default();
            return;
        };
        settings.push(("cgroup.path".to_owned(), own.levels[0].path.clone()));
        settings.push(("cgroup.version".to_owned(), if own.is_v2 { "2" } else { "1" }.to_owned()));
        let quota = cpu.as_ref().and_then(limits::cpu);
        let bytes = memory.as_ref().and_then(limits::memory);
        let high = memory.as_ref().and_then(limits::memory_high);
        let (disk_limits, disk_level) =
            disk.as_ref().map(|place| limits::disk(place, proc, devices)).unwrap_or_default();
        let or_max = |value: Option<String>| value.unwrap_or_else(|| "max".to_owned());
        if cpu.is_some() {
            let value = or_max(quota.as_ref().map(|limit| limit.value.to_string()));
            settings.push((quota::SETTING.to_owned(), value));
        }
        if memory.is_some() {
            let value = or_max(bytes.as_ref().map(|limit| limit.value.to_string()));
            settings.push(("cgroup.memory_limit_bytes".to_owned(), value));
        }
        if let Some(high) = high {
            settings.push(("cgroup.memory_high_bytes".to_owned(), high.value.to_string()));
        }
        for ((device, kind), limit) in disk_limits {
            settings.push((format!("cgroup.disk_limit[{device}].{kind}"), limit.to_string()));
        }
        // When version 1 has the controllers, every process is in version 2's root: its pressure is
        // the host's.
        let all_v2 = own.is_v2;
        let is_used = |place: &Place| all_v2 || place.levels[0].path != "/";
        let cpu_usage = cpu_time.filter(|it| !it.is_v2).and_then(|it| usage_level(&it, cpu.as_ref(), quota.as_ref()));
        let processes = pids.and_then(|place| {
            let limit = limits::processes(&place).map(|limit| limit.level);
            at(&place, limit, &["pids.current"])
        });
        self.levels = ControllerLevels {
            cpu_usage,
            processes: processes.map(|at| at.level),
            cpu: cpu.and_then(|place| at(&place, quota.map(|limit| limit.level), &["cpu.stat"])),
            memory: memory.and_then(|place| at(&place, bytes.map(|limit| limit.level), &MEMORY_FILES)),
            disk: disk.and_then(|place| at(&place, disk_level, &DISK_FILES)),
            pressure: unified.filter(is_used).and_then(|place| at(&place, None, &["cpu.pressure"])).map(|at| at.level),
            settings,
            is_shared: false,
        };
        // holdup's own stand for the machine's where they are that.
        if matches!(&self.subject, Subject::Process(who) if who != "self") {
            self.levels = std::mem::take(&mut self.levels).without_machine();
        }
    }
}

const MEMORY_FILES: [&str; 3] = ["memory.current", "memory.usage_in_bytes", "memory.stat"];
const DISK_FILES: [&str; 2] = ["io.stat", "blkio.throttle.io_serviced"];

/// The level of `place` with the limit; without a limit, the nearest level that has one of `files`,
/// because version 2 can switch a controller off for lower levels.
fn at(place: &Place, limited: Option<usize>, files: &[&str]) -> Option<VersionedLevel> {
    let has_file = |level: &&Level| files.iter().any(|file| level.folder.join(file).is_file());
    let level = match limited {
        Some(limited) => place.levels.get(limited),
        None => place.levels.iter().find(has_file),
    };
    level.map(|level| VersionedLevel { is_v2: place.is_v2, level: level.clone() })
}

/// Version 1's level for CPU time: the level named like the quota's, else the process's own. A
/// process with its own CPU group but without an accounting group is counted in the accounting root
/// together with all others: that time is not its own.
fn usage_level(time: &Place, cpu: Option<&Place>, quota: Option<&limits::Tightest<CpuQuota>>) -> Option<Level> {
    let own = &time.levels[0];
    let Some(cpu) = cpu else { return Some(own.clone()) };
    let of_quota = quota.and_then(|quota| cpu.levels.get(quota.level));
    let same = of_quota.and_then(|wanted| time.levels.iter().find(|level| level.path == wanted.path));
    if same.is_none() && own.path == "/" && cpu.levels[0].path != "/" {
        return None;
    }
    Some(same.unwrap_or(own).clone())
}

fn labels(level: &Level, more: &[(&str, &str)]) -> Labels {
    more.iter().fold(Labels::new([("cgroup", &*level.path)]), |labels, (name, value)| labels.with(name, *value))
}

fn cpu(VersionedLevel { is_v2, level }: &VersionedLevel, buffer: &mut Vec<u8>, out: &mut Out) -> Result<(), ReadError> {
    out.begin();
    let counters = keyed::flat("cpu.stat", level.read("cpu.stat", buffer)?)?;
    // Version 1 counts nanoseconds.
    let (throttled, unit) = if *is_v2 { ("throttled_usec", 1e6) } else { ("throttled_time", 1e9) };
    let of = |name: &str, unit: f64| counters.get(name).map(|value| *value as f64 / unit);
    out.put_known(
        &labels(level, &[]),
        [
            // Version 2 only; version 1 has a separate accounting controller.
            (metrics::cgroup::CPU_USAGE, of("usage_usec", 1e6)),
            (metrics::cgroup::CPU_PERIODS, of("nr_periods", 1.0)),
            (metrics::cgroup::CPU_THROTTLED_PERIODS, of("nr_throttled", 1.0)),
            (metrics::cgroup::CPU_THROTTLED_TIME, of(throttled, unit)),
        ],
    );
    Ok(())
}

/// Version 1's CPU accounting, in nanoseconds.
fn cpu_usage(level: &Level, buffer: &mut Vec<u8>, out: &mut Out) -> Result<(), ReadError> {
    out.begin();
    let used_ns = whole(level, "cpuacct.usage", buffer)?;
    out.put(metrics::cgroup::CPU_USAGE, labels(level, &[]), used_ns as f64 / 1e9);
    Ok(())
}

/// The number that the pids controller counts, which is threads.
fn processes(level: &Level, buffer: &mut Vec<u8>, out: &mut Out) -> Result<(), ReadError> {
    out.begin();
    let count = whole(level, "pids.current", buffer)?;
    out.put(metrics::cgroup::PROCESSES, labels(level, &[]), count as f64);
    // `max` means unlimited.
    if let Some(limit) = level.word("pids.max").and_then(|text| text.parse::<u64>().ok()) {
        out.put(metrics::cgroup::PROCESSES_LIMIT, labels(level, &[]), limit as f64);
    }
    Ok(())
}

/// A file that holds one number.
fn whole(level: &Level, file: &str, buffer: &mut Vec<u8>) -> Result<u64, ReadError> {
    let text = level.read(file, buffer)?;
    let number = text.strip_suffix('\n').and_then(|text| text.parse().ok());
    number.ok_or_else(|| ReadError(format!("{file}: \"{}\" is not a number", text.trim_end())))
}

fn memory(
    VersionedLevel { is_v2, level }: &VersionedLevel,
    buffer: &mut Vec<u8>,
    out: &mut Out,
) -> Result<(), ReadError> {
    out.begin();
    let usage = level.word(if *is_v2 { "memory.current" } else { "memory.usage_in_bytes" });
    // The root of version 2 lacks this file.
    if let Some(bytes) = usage.and_then(|text| text.parse::<u64>().ok()) {
        out.put(metrics::cgroup::MEMORY_USAGE_BYTES, labels(level, &[]), bytes as f64);
    }
    out.begin();
    let stat = keyed::flat("memory.stat", level.read("memory.stat", buffer)?)?;
    // Version 1 counts the cgroup alone, and with all below it as `total_`. Before Linux 5.9 there
    // was one kind of refault.
    let of = |name: &str| {
        let found = if *is_v2 { stat.get(name) } else { stat.get(format!("total_{name}").as_str()) };
        found.map(|value| *value as f64)
    };
    out.put_known(
        &labels(level, &[]),
        [
            (metrics::cgroup::MEMORY_FILE_BYTES, of(if *is_v2 { "file" } else { "cache" })),
            (metrics::cgroup::MEMORY_MAJOR_FAULTS, of("pgmajfault")),
        ],
    );
    let file = of("workingset_refault_file").or_else(|| of("workingset_refault"));
    for (kind, value) in [("file", file), ("anon", of("workingset_refault_anon"))] {
        out.put_known(&labels(level, &[("type", kind)]), [(metrics::cgroup::MEMORY_REFAULTS, value)]);
    }
    out.begin();
    // A kernel may lack the file; an existing one must be complete.
    let file = if *is_v2 { "memory.events" } else { "memory.oom_control" };
    let events = match level.read(file, buffer) {
        Ok(text) => keyed::flat(file, text)?,
        Err(error) if level.folder.join(file).exists() => return Err(error),
        Err(_) => HashMap::new(),
    };
    let kills = events.get("oom_kill").copied();
    let hits = if *is_v2 {
        events.get("max").copied()
    } else {
        level.word("memory.failcnt").and_then(|text| text.parse().ok())
    };
    out.put_known(
        &labels(level, &[]),
        [
            (metrics::cgroup::MEMORY_LIMIT_HITS, hits.map(|count: u64| count as f64)),
            (metrics::cgroup::OUT_OF_MEMORY_KILLS, kills.map(|count| count as f64)),
        ],
    );
    Ok(())
}

fn disk(
    VersionedLevel { is_v2, level }: &VersionedLevel,
    proc: &Proc,
    devices: &mut Devices,
    buffer: &mut Vec<u8>,
    out: &mut Out,
) -> Result<(), ReadError> {
    let mut put = |out: &mut Out, metric: Metric, number: &str, direction: &str, value: u64| {
        // A device that was removed since has no name any more.
        if let Some(device) = devices.name(proc, number) {
            out.put(metric, labels(level, &[("device", device), ("direction", direction)]), value as f64);
        }
    };
    const BYTES: Metric = metrics::cgroup::DISK_IO_BYTES;
    const OPERATIONS: Metric = metrics::cgroup::DISK_OPERATIONS;
    if *is_v2 {
        out.begin();
        let keys = [
            ("rbytes", BYTES, "read"),
            ("wbytes", BYTES, "write"),
            ("rios", OPERATIONS, "read"),
            ("wios", OPERATIONS, "write"),
        ];
        for (number, pairs) in keyed::nested("io.stat", level.read("io.stat", buffer)?)? {
            for (key, value) in pairs {
                if let Some((_, metric, direction)) = keys.iter().find(|(name, ..)| *name == key) {
                    put(out, *metric, number, direction, value);
                }
            }
        }
        return Ok(());
    }
    for (metric, file) in [(BYTES, "blkio.throttle.io_service_bytes"), (OPERATIONS, "blkio.throttle.io_serviced")] {
        out.begin();
        for (number, word, value) in keyed::blkio(file, level.read(file, buffer)?)? {
            match word {
                "Read" => put(out, metric, number, "read", value),
                "Write" => put(out, metric, number, "write", value),
                _ => {}
            }
        }
    }
    Ok(())
}

fn pressure(level: &Level, buffer: &mut Vec<u8>, out: &mut Out) -> Result<(), ReadError> {
    for resource in ["cpu", "memory", "io"] {
        out.begin();
        let file = format!("{resource}.pressure");
        // With PSI switched off the file exists but cannot be read.
        let Ok(text) = level.read(&file, buffer) else { continue };
        for (kind, total_us) in keyed::pressure(&file, text)? {
            let labels = labels(level, &[("resource", resource), ("kind", kind)]);
            out.put(metrics::cgroup::PRESSURE_STALL, labels, total_us as f64 / 1e6);
        }
    }
    Ok(())
}
