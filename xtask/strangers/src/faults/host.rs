//! The host: CPU, memory, disk, and the limits of processes.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{Family, Fault, Parameter};
use crate::env::disk::Limits;
use crate::env::groups::Group;
use crate::env::{Running, process};
use crate::load::Operation;
use crate::topology::{App, Data, Engine, Storage};

/// What these faults have in common.
const BASE: Fault = Fault { family: Family::Host, ..Fault::BASE };

/// In the order in which they are dealt: seeds were played with it.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "cpu_neighbor",
        mechanism: "Other programs on the machine compute, and the service's threads wait for a CPU.",
        causes: &["cpu_saturated"],
        parameters: &[Parameter::new("processes", 1.0, 16.0)],
        start: |env, values| env.processes(values.get("processes"), &["sh", "-c", "while :; do :; done"]),
        ..BASE
    },
    Fault {
        name: "process_churn",
        mechanism: "Something on the machine starts programs all the time, which takes the CPUs in pieces that no process shows.",
        causes: &["cpu_saturated"],
        parameters: &[Parameter::new("loops", 1.0, 10.0)],
        start: |env, values| env.processes(values.get("loops"), &["sh", "-c", "while :; do /bin/true; done"]),
        ..BASE
    },
    Fault {
        name: "app_cpu_quota",
        mechanism: "The app's container gets less CPU than it uses, and is stopped for the rest of each period.",
        causes: &["cpu_throttled"],
        parameters: &[Parameter::new("cpus", 0.35, 0.06)],
        fits: |topology| topology.app != App::None,
        prepare: |setup, _| setup.load.at_least(60.0),
        start: |env, values| quota(env.app()?.group.as_ref(), values.get("cpus")),
        ..BASE
    },
    Fault {
        name: "database_cpu_quota",
        mechanism: "The database's container gets less CPU than it uses, and is stopped for the rest of each period.",
        causes: &["cpu_throttled"],
        parameters: &[Parameter::new("cpus", 0.35, 0.05)],
        prepare: |setup, _| setup.load.at_least(100.0),
        start: |env, values| quota(env.database.group.as_ref(), values.get("cpus")),
        ..BASE
    },
    Fault {
        name: "database_memory",
        mechanism: "The database's container gets less memory, and pages that it had in the kernel's cache are read again and again.",
        causes: &["memory_pressure", "working_set_exceeds_memory"],
        parameters: &[Parameter::new("megabytes", 40.0, 4.0)],
        fits: |topology| topology.engine == Engine::Postgresql && topology.storage == Storage::Throttled,
        prepare: |setup, _| {
            setup.load.at_most(150.0);
            setup.load.connections = setup.load.connections.min(20);
            setup.load.ensure(Operation::Document, 0.4);
        },
        start: |env, values| {
            let group = env.database.group.clone().context("no cgroup holds the database here")?;
            group.squeeze((values.get("megabytes") * 1e6) as u64)?;
            Ok(Running::until(move || group.set_memory(None)))
        },
        ..BASE
    },
    Fault {
        name: "disk_throughput",
        mechanism: "The disk does fewer bytes a second than reads and writes of the database ask for.",
        causes: &["throughput_ceiling"],
        parameters: &[Parameter::new("megabytes_per_second", 2.0, 0.15)],
        fits: |topology| topology.data == Data::OutOfCache,
        prepare: |setup, _| {
            setup.load.at_least(200.0);
            setup.load.at_most(300.0);
            setup.load.ensure(Operation::Document, 0.5);
        },
        start: |env, values| {
            let slow = Limits { megabytes: Some(values.get("megabytes_per_second")), ..Limits::NONE };
            env.disk.limit_until(slow, env.disk_limits)
        },
        ..BASE
    },
    Fault {
        name: "disk_operations",
        mechanism: "The disk does fewer operations a second than the database asks for.",
        causes: &["iops_ceiling"],
        parameters: &[Parameter::new("operations_per_second", 80.0, 8.0)],
        fits: |topology| topology.data == Data::OutOfCache,
        prepare: |setup, _| {
            setup.load.at_least(120.0);
            setup.load.at_most(150.0);
            setup.load.ensure(Operation::Document, 0.4);
        },
        start: |env, values| {
            let slow = Limits { operations: Some(values.get("operations_per_second")), ..Limits::NONE };
            env.disk.limit_until(slow, env.disk_limits)
        },
        ..BASE
    },
    Fault {
        name: "disk_neighbor",
        mechanism: "Another program reads and writes on the database's disk as fast as it can.",
        // The program is `dd`, which copies: to name it as what uses up the disk is as right.
        causes: &["disk_saturated", "throughput_ceiling", "iops_ceiling", "backup_or_bulk_load"],
        parameters: &[Parameter::new("writers", 1.0, 8.0)],
        fits: |topology| topology.storage == Storage::Throttled && topology.data == Data::OutOfCache,
        start: |env, values| {
            let folder = env.disk.folder.display();
            let copy = format!(
                "while :; do dd if=/dev/zero of={folder}/neighbor.$$ bs=64k count=200 oflag=direct; rm -f {folder}/neighbor.$$; done"
            );
            let remove = format!("rm -f {folder}/neighbor.*");
            let clean = Running::until(move || process::run("sh", &["-c", &remove]).map(drop));
            Ok(clean.and(env.processes(values.get("writers"), &["sh", "-c", &copy])?))
        },
        ..BASE
    },
    Fault {
        name: "descriptor_limit",
        mechanism: "The app may open fewer files than it has connections to serve, and new connections wait or fail.",
        causes: &["file_descriptor_limit"],
        parameters: &[Parameter::new("left", 6.0, 1.0)],
        fits: |topology| topology.app != App::None,
        prepare: |setup, _| {
            setup.load.at_least(60.0);
            setup.load_factor = Some(3.0);
        },
        start: |env, values| {
            let pid = env.app()?.pid;
            let folder = format!("/proc/{pid}/fd");
            let open = fs::read_dir(&folder).with_context(|| format!("failed to read {folder}"))?.count();
            let limit = move |files: usize| {
                process::run("prlimit", &["--pid", &pid.to_string(), &format!("--nofile={files}:")])
            };
            limit(open + values.get("left").round() as usize)?;
            Ok(Running::until(move || limit(1_024).map(drop)))
        },
        ..BASE
    },
    Fault {
        name: "app_pauses",
        mechanism: "The app's process is stopped for moments, as a debugger, a snapshot or a paused container does.",
        causes: &["process_stopped"],
        parameters: &[Parameter::new("stopped_ms", 60.0, 900.0)],
        fits: |topology| topology.app != App::None,
        start: |env, values| pauses(env.app()?.pid, values.get("stopped_ms")),
        ..BASE
    },
    Fault {
        name: "database_pauses",
        mechanism: "The database's process is stopped for moments, as a snapshot of its machine does.",
        causes: &["process_stopped"],
        parameters: &[Parameter::new("stopped_ms", 60.0, 900.0)],
        fits: |topology| topology.engine.is_mysql(),
        start: |env, values| pauses(env.database.pid, values.get("stopped_ms")),
        ..BASE
    },
];

/// Leaves `group` so many CPUs until the fault ends.
fn quota(group: Option<&Arc<Group>>, cpus: f64) -> Result<Running> {
    let group = Arc::clone(group.context("no cgroup with a CPU controller can be made here; run as root")?);
    group.set_cpus(Some(cpus))?;
    Ok(Running::until(move || group.set_cpus(None)))
}

/// Stops `pid` for so long, again and again: about a third of the time.
fn pauses(pid: u32, stopped_ms: f64) -> Result<Running> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let stopped = Duration::from_secs_f64(stopped_ms * 1e-3);
    let work = move || {
        while !asked.load(Ordering::Relaxed) {
            let _ = process::signal(pid, "STOP");
            thread::sleep(stopped);
            let _ = process::signal(pid, "CONT");
            thread::sleep(stopped * 2);
        }
    };
    let thread = thread::Builder::new().name("pauses".to_owned()).spawn(work).context("could not start a thread")?;
    Ok(Running::until(move || {
        stop.store(true, Ordering::Relaxed);
        let _ = thread.join();
        process::signal(pid, "CONT")
    }))
}
