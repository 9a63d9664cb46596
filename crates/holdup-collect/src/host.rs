//! `--watch host`: the Linux machine (or container) that holdup runs on: load, CPU, memory,
//! pressure, disks, its own cgroup, network and its limits, TCP queues, threads by state. It reads raw counters
//! and gauges of `/proc` and `/sys`, one section at a time. The coverage names each section that
//! the kernel does not have.
//!
//! holdup sees its own network, process and cgroup namespaces: run it where the server is.

mod allowances;
mod block;
pub(crate) mod cgroup;
mod connections;
mod cpu;
mod disks;
mod memory;
pub(crate) mod mounts;
pub(crate) mod network;
mod numa;
mod packets;
mod queues;
mod settings;
mod threads;

use cgroup::Cgroup;
use holdup_recording::{Batch, Coverage};

use crate::coverage::{Line as _, part};
use crate::options::Options;
use crate::proc::{Proc, permissions};
use crate::reading::{Out, tell};
use crate::{Collector, ProbeError, ReadError};

const SOURCE: &str = "host";

/// What every section reads with; the buffer is reused, so that a sample allocates only its rows.
struct Reader {
    proc: Proc,
    buffer: Vec<u8>,
    threads: threads::Scan,
    cgroup: Cgroup,
    allowances: allowances::Devices,
}

/// A part of the host that can be missing on its own.
struct Section {
    name: &'static str,
    read: fn(&mut Reader, &mut Out) -> Result<(), ReadError>,
    /// How to enable it when it cannot be read.
    enable: &'static str,
    on: bool,
}

/// The Linux host as a source.
pub struct Host {
    reader: Reader,
    sections: Vec<Section>,
}

impl Host {
    /// The host whose kernel files `proc` has.
    pub fn new(proc: Proc) -> Self {
        let section = |name, read, enable| Section { name, read, enable, on: true };
        let (threads, cgroup) = (threads::Scan::default(), Cgroup::for_process("self"));
        Self {
            reader: Reader { proc, buffer: Vec::new(), threads, cgroup, allowances: Default::default() },
            sections: vec![
                section("load", cpu::load, "mount proc at /proc"),
                section("cpu", cpu::time, "mount proc at /proc"),
                section("memory", memory::usage, "mount proc at /proc"),
                section("memory of nodes", numa::read, "mount sysfs at /sys"),
                section("paging", memory::paging, "mount proc at /proc"),
                section("pressure", memory::pressure, "boot with psi=1 (Linux 4.20 or later, CONFIG_PSI)"),
                section("disks", disks::read, "mount proc at /proc and sysfs at /sys"),
                section("open files", cpu::open_files, "mount proc at /proc"),
                section(
                    "cgroup",
                    cgroup_section,
                    "mount the cgroup file systems at /sys/fs/cgroup (in a container: read-only)",
                ),
                section("network", network::interfaces, "mount proc at /proc"),
                section("received packets", packets::received, "mount proc at /proc"),
                section("tracked connections", packets::tracked, "mount proc at /proc"),
                section("network allowances", allowances::read, "allow sockets (AF_INET) in the sandbox"),
                section("network queues", network::queues, "allow rtnetlink (AF_NETLINK) in the sandbox"),
                section("tcp", network::tcp, "mount proc at /proc"),
                section("sockets", queues::read, "mount proc at /proc"),
                section("threads", threads::read, "mount proc at /proc"),
            ],
        }
    }
}

/// Makes the collector for `host`; `probe` finds out which sections can be read.
pub(crate) fn make(_rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    Ok(Box::new(Host::new(Proc::system())))
}

impl Collector for Host {
    fn source(&self) -> String {
        SOURCE.to_owned()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let mut parts = Vec::new();
        let mut batch = Batch::default();
        for section in &mut self.sections {
            // Read twice, because a section that fails now stays off for the whole run: one passing
            // failure must not do that.
            let mut read = || (section.read)(&mut self.reader, &mut Out::new(&mut batch, SOURCE));
            let result = read().or_else(|_| read());
            section.on = result.is_ok();
            if let Err(error) = result {
                parts.push(part(SOURCE, section.name).absent(error.0).enable(section.enable));
            }
        }
        self.reader.threads.wake();
        if batch.samples.is_empty() {
            let why = parts.first().and_then(|p| p.why.clone()).unwrap_or_default();
            let why = format!("no section can be read ({why}); this source needs Linux with proc mounted at /proc");
            return Err(ProbeError::unreachable(SOURCE, why));
        }
        parts.extend(queues::lacking(&mut self.reader));
        parts.extend(foreign_threads(&self.reader.proc));
        Ok(Coverage::with_parts(SOURCE, parts))
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut found = settings::read(&self.reader.proc);
        found.extend(network::settings(&self.reader.proc));
        found.extend(self.reader.cgroup.settings(&self.reader.proc));
        found.extend(mounts::read(&self.reader.proc, "self"));
        if found.is_empty() {
            return Err(ReadError("no setting of the host can be read; is proc mounted at /proc?".to_owned()));
        }
        tell(batch, SOURCE, found);
        Ok(())
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut errors = Vec::new();
        for section in self.sections.iter().filter(|section| section.on) {
            if let Err(error) = (section.read)(&mut self.reader, &mut Out::new(batch, SOURCE)) {
                errors.push(error.0);
            }
        }
        ReadError::all(errors)
    }
}

/// holdup's own cgroup: in a container, the container's.
fn cgroup_section(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    reader.cgroup.sample(&reader.proc, out)
}

/// Largest number of processes tried to find out which files of other users can be read.
const PROCESSES_TRIED_MAX: usize = 64;

/// Whether other users' threads are visible, and where in the kernel they wait.
fn foreign_threads(proc: &Proc) -> Vec<Coverage> {
    let mut buffer = Vec::new();
    if proc.read("1/stat", &mut buffer).is_err() {
        let why = "other users' processes are hidden (hidepid): threads are counted for visible processes only";
        let enable = "mount -o remount,hidepid=0 /proc, or run as root";
        return vec![part(SOURCE, "threads").partial(why).enable(enable)];
    }
    let mut pids = Vec::new();
    if proc.numbers("", &mut pids).is_err() {
        return Vec::new();
    }
    pids.truncate(PROCESSES_TRIED_MAX);
    let folders: Vec<String> = pids.iter().map(u32::to_string).collect();
    let lacking = permissions::lacking(proc, &folders).into_iter();
    lacking.map(|it| part(SOURCE, it.name).partial(it.why).enable(it.enable)).collect()
}
