//! Cgroups of both versions, as `host` and `pid:N` read them.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use holdup_collect::Collector;
use holdup_collect::cgroup::NamedCgroup;
use holdup_collect::host::Host;
use holdup_collect::proc::Proc;
use holdup_collect::process::Process;
use holdup_recording::Batch;

use crate::{small_tree, value};

fn put(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// Samples and settings together.
fn read(collector: &mut dyn Collector) -> Batch {
    let mut batch = Batch::default();
    collector.sample(&mut batch).unwrap();
    collector.settings(&mut batch).unwrap();
    batch
}

fn setting<'a>(batch: &'a Batch, name: &str) -> Option<&'a str> {
    batch.settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
}

#[test]
fn a_limited_process_on_version_2() {
    let (dir, proc) = small_tree();
    put(dir.path(), &[("sys/fs/cgroup/db/pids.current", "17\n"), ("sys/fs/cgroup/db/pids.max", "200\n")]);
    let batch = read(&mut Process::new(proc, 71));
    for (metric, labels, number) in [
        ("cgroup_cpu_periods_total", &[("cgroup", "/db")][..], 10.0),
        ("cgroup_cpu_usage_seconds_total", &[("cgroup", "/db")], 1e-6),
        ("cgroup_processes", &[("cgroup", "/db")], 17.0),
        ("cgroup_processes_limit", &[], 200.0),
        ("cgroup_cpu_throttled_periods_total", &[], 4.0),
        ("cgroup_cpu_throttled_time_seconds_total", &[], 2.5),
        ("cgroup_memory_usage_bytes", &[], 1_000_000.0),
        ("cgroup_memory_file_bytes", &[], 700_000.0),
        ("cgroup_memory_refaults_total", &[("type", "file")], 20.0),
        ("cgroup_memory_refaults_total", &[("type", "anon")], 1.0),
        ("cgroup_memory_major_faults_total", &[], 30.0),
        ("cgroup_memory_limit_hits_total", &[], 12.0),
        ("cgroup_out_of_memory_kills_total", &[], 1.0),
        ("cgroup_disk_io_bytes_total", &[("device", "vda"), ("direction", "write")], 8192.0),
        ("cgroup_disk_operations_total", &[("device", "vda"), ("direction", "read")], 1.0),
        ("cgroup_pressure_stall_seconds_total", &[("resource", "io"), ("kind", "some")], 1.5),
    ] {
        assert_eq!(value(&batch, metric, labels), Some(number), "{metric}");
    }
    for (name, text) in [
        ("cgroup.path", "/db"),
        ("cgroup.cpu_quota_us_per_period_us", "50000 100000"),
        ("cgroup.memory_limit_bytes", "1048576"),
        ("cgroup.disk_limit[vda].write_bytes_per_second", "1048576"),
        ("cgroup.disk_limit[vda].read_operations_per_second", "200"),
    ] {
        assert_eq!(setting(&batch, name), Some(text), "{name}");
    }
    assert_eq!(setting(&batch, "cgroup.disk_limit[vda].read_bytes_per_second"), None);
}

/// A limit two levels up binds, and what it does is counted there.
#[test]
fn the_tightest_limit_on_the_way_up() {
    let (dir, proc) = small_tree();
    let root = dir.path();
    put(
        root,
        &[
            ("proc/71/cgroup", "0::/slice/db/inner\n"),
            ("sys/fs/cgroup/slice/cpu.max", "20000 100000\n"),
            ("sys/fs/cgroup/slice/cpu.stat", "nr_periods 100\nnr_throttled 90\nthrottled_usec 1000000\n"),
            ("sys/fs/cgroup/slice/db/cpu.max", "50000 100000\n"),
            ("sys/fs/cgroup/slice/db/cpu.stat", "nr_periods 100\nnr_throttled 0\nthrottled_usec 0\n"),
            ("sys/fs/cgroup/slice/db/memory.max", "4096\n"),
            ("sys/fs/cgroup/slice/db/memory.current", "4095\n"),
            ("sys/fs/cgroup/slice/db/memory.stat", "file 1\n"),
            ("sys/fs/cgroup/slice/db/inner/memory.max", "max\n"),
            ("sys/fs/cgroup/slice/db/inner/memory.current", "5\n"),
            ("sys/fs/cgroup/slice/db/inner/memory.stat", "file 1\n"),
            ("sys/fs/cgroup/slice/io.max", "254:0 rbps=max wbps=max riops=500 wiops=300\n"),
            ("sys/fs/cgroup/slice/io.stat", "254:0 rbytes=1 wbytes=2 rios=3 wios=4\n"),
            ("sys/fs/cgroup/slice/db/io.max", ""),
            ("sys/fs/cgroup/slice/db/inner/io.max", "254:0 rbps=max wbps=max riops=900 wiops=max\n"),
            ("sys/fs/cgroup/slice/db/inner/io.stat", ""),
        ],
    );
    let batch = read(&mut Process::new(proc, 71));
    assert_eq!(value(&batch, "cgroup_cpu_throttled_periods_total", &[("cgroup", "/slice")]), Some(90.0));
    assert_eq!(value(&batch, "cgroup_memory_usage_bytes", &[("cgroup", "/slice/db")]), Some(4095.0));
    assert_eq!(setting(&batch, "cgroup.cpu_quota_us_per_period_us"), Some("20000 100000"));
    assert_eq!(setting(&batch, "cgroup.memory_limit_bytes"), Some("4096"));
    assert_eq!(setting(&batch, "cgroup.disk_limit[vda].read_operations_per_second"), Some("500"));
    assert_eq!(setting(&batch, "cgroup.disk_limit[vda].write_operations_per_second"), Some("300"));
}

/// Version 1, the way Docker mounts it into a container.
#[test]
fn a_container_on_version_1() {
    let (dir, proc) = small_tree();
    let root = dir.path();
    std::fs::remove_dir_all(root.join("sys/fs/cgroup")).unwrap();
    let line = |id: u32, name: &str| {
        format!("{id} 31 0:{id} /docker/abc /sys/fs/cgroup/{name} ro,nosuid - cgroup cgroup rw,{name}\n")
    };
    put(
        root,
        &[
            (
                "proc/self/mountinfo",
                &(line(32, "cpu,cpuacct") + &line(33, "memory") + &line(34, "blkio") + &line(35, "pids")),
            ),
            (
                "proc/self/cgroup",
                "5:pids:/docker/abc\n4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n2:blkio:/docker/abc\n",
            ),
            ("sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", "3500000000\n"),
            ("sys/fs/cgroup/pids/pids.current", "9\n"),
            ("sys/fs/cgroup/pids/pids.max", "max\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.stat", "nr_periods 7\nnr_throttled 3\nthrottled_time 2500000000\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1073000000\n"),
            (
                "sys/fs/cgroup/memory/memory.stat",
                "cache 1\npgmajfault 2\ntotal_cache 900000\ntotal_pgmajfault 5\ntotal_workingset_refault 40\n",
            ),
            ("sys/fs/cgroup/memory/memory.failcnt", "77\n"),
            ("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
            (
                "sys/fs/cgroup/blkio/blkio.throttle.io_serviced",
                "254:0 Read 9\n254:0 Write 8\n254:0 Sync 17\nTotal 17\n",
            ),
            ("sys/fs/cgroup/blkio/blkio.throttle.io_service_bytes", "254:0 Read 4096\n254:0 Write 512\nTotal 4608\n"),
            ("sys/fs/cgroup/blkio/blkio.throttle.read_bps_device", "254:0 1048576\n"),
            ("sys/fs/cgroup/blkio/blkio.throttle.write_iops_device", "254:0 50\n8:99 1\n"),
        ],
    );
    let batch = read(&mut Host::new(proc));
    for (metric, labels, number) in [
        ("cgroup_cpu_throttled_periods_total", &[("cgroup", "/docker/abc")][..], 3.0),
        ("cgroup_cpu_usage_seconds_total", &[("cgroup", "/docker/abc")], 3.5),
        ("cgroup_processes", &[("cgroup", "/docker/abc")], 9.0),
        ("cgroup_cpu_throttled_time_seconds_total", &[], 2.5),
        ("cgroup_memory_usage_bytes", &[], 1_073_000_000.0),
        ("cgroup_memory_file_bytes", &[], 900_000.0),
        ("cgroup_memory_refaults_total", &[("type", "file")], 40.0),
        ("cgroup_memory_major_faults_total", &[], 5.0),
        ("cgroup_memory_limit_hits_total", &[], 77.0),
        ("cgroup_out_of_memory_kills_total", &[], 2.0),
        ("cgroup_disk_operations_total", &[("device", "vda"), ("direction", "read")], 9.0),
        ("cgroup_disk_io_bytes_total", &[("device", "vda"), ("direction", "write")], 512.0),
    ] {
        assert_eq!(value(&batch, metric, labels), Some(number), "{metric}");
    }
    assert_eq!(value(&batch, "cgroup_processes_limit", &[]), None);
    assert_eq!(setting(&batch, "cgroup.path"), Some("/docker/abc"));
    assert_eq!(setting(&batch, "cgroup.cpu_quota_us_per_period_us"), Some("150000 100000"));
    assert_eq!(setting(&batch, "cgroup.memory_limit_bytes"), Some("1073741824"));
    let limits: Vec<_> = batch.settings.iter().filter(|s| s.name.starts_with("cgroup.disk_limit")).collect();
    // There is no device 8:99.
    assert_eq!(limits.len(), 2, "{limits:?}");
    assert_eq!(setting(&batch, "cgroup.disk_limit[vda].write_operations_per_second"), Some("50"));
}

/// Who has a CPU group but no account of his own is with everybody else in the root of the account: that is not his time.
#[test]
fn the_time_of_everybody_is_not_its_own() {
    let (dir, proc) = small_tree();
    let root = dir.path();
    std::fs::remove_dir_all(root.join("sys/fs/cgroup")).unwrap();
    let line = |id: u32, name: &str| format!("{id} 31 0:{id} / /sys/fs/cgroup/{name} rw - cgroup cgroup rw,{name}\n");
    put(
        root,
        &[
            ("proc/self/mountinfo", &(line(32, "cpu") + &line(33, "cpuacct"))),
            ("proc/71/cgroup", "3:cpuacct:/\n2:cpu:/app/inner\n"),
            ("sys/fs/cgroup/cpu/app/cpu.cfs_quota_us", "20000\n"),
            ("sys/fs/cgroup/cpu/app/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/app/cpu.stat", "nr_periods 7\nnr_throttled 3\nthrottled_time 2500000000\n"),
            ("sys/fs/cgroup/cpu/app/inner/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"),
            ("sys/fs/cgroup/cpuacct/cpuacct.usage", "900\n"),
            ("sys/fs/cgroup/cpuacct/app/cpuacct.usage", "5000000000\n"),
            ("sys/fs/cgroup/cpuacct/app/inner/cpuacct.usage", "1000000000\n"),
        ],
    );
    let batch = read(&mut Process::new(proc.clone(), 71));
    assert_eq!(value(&batch, "cgroup_cpu_throttled_periods_total", &[("cgroup", "/app")]), Some(3.0));
    assert_eq!(value(&batch, "cgroup_cpu_usage_seconds_total", &[]), None);
    // With an account of its own, the time is that of the level with the quota.
    put(root, &[("proc/71/cgroup", "3:cpuacct:/app/inner\n2:cpu:/app/inner\n")]);
    let batch = read(&mut Process::new(proc, 71));
    assert_eq!(value(&batch, "cgroup_cpu_usage_seconds_total", &[("cgroup", "/app")]), Some(5.0));
}

fn kinds(batch: &Batch) -> Vec<&str> {
    batch.events.iter().map(|event| event.kind.as_str()).collect()
}

/// A container that ends, and another one under its name.
#[test]
fn a_cgroup_by_its_name_goes_and_comes_back() {
    let (dir, proc) = small_tree();
    let app = dir.path().join("sys/fs/cgroup/app");
    let fill = |usage: &str| {
        put(
            &app,
            &[("cpu.stat", usage), ("pids.current", "3\n"), ("cgroup.procs", "7\n8\n"), ("in/cgroup.procs", "9\n")],
        );
    };
    fill("usage_usec 4000000\nnr_periods 1\nnr_throttled 0\nthrottled_usec 0\n");
    for given in ["/app", "/sys/fs/cgroup/app/"] {
        let mut named = NamedCgroup::new(proc.clone(), given).unwrap();
        assert_eq!((named.source(), named.probe().is_ok()), (format!("cgroup:{given}"), true));
        let batch = read(&mut named);
        assert_eq!(value(&batch, "cgroup_cpu_usage_seconds_total", &[("cgroup", "/app")]), Some(4.0));
        assert_eq!(value(&batch, "cgroup_member_processes", &[("cgroup", "/app")]), Some(3.0));
        assert_eq!((setting(&batch, "cgroup.path"), batch.events.len()), (Some("/app"), 0));
    }
    let mut named = NamedCgroup::new(proc.clone(), "/app").unwrap();
    read(&mut named);
    std::fs::remove_dir_all(&app).unwrap();
    let mut batch = Batch::default();
    for _ in 0..2 {
        assert!(named.sample(&mut batch).is_err_and(|error| error.to_string() == "cgroup /app does not exist"));
    }
    assert_eq!((kinds(&batch), batch.samples.len()), (vec!["cgroup_gone"], 0));
    fill("usage_usec 1000000\nnr_periods 1\nnr_throttled 0\nthrottled_usec 0\n");
    let mut batch = Batch::default();
    named.sample(&mut batch).unwrap();
    assert_eq!(kinds(&batch), ["cgroup_back"]);
    assert!(batch.events[0].labels.get("absent_ms").is_some_and(|ms| ms.parse::<u64>().is_ok()));
    assert_eq!(value(&batch, "cgroup_cpu_usage_seconds_total", &[]), Some(1.0));
    assert!(
        NamedCgroup::new(proc.clone(), "/nobody")
            .unwrap()
            .probe()
            .is_err_and(|e| e.to_string().contains("/proc/PID/cgroup"))
    );
    assert!(["app", "", "/a/../b"].iter().all(|bad| NamedCgroup::new(proc.clone(), bad).is_err()));
}

/// The kernel's own, where cgroups may be made: what is used in it is seen, and that it went.
#[test]
fn a_cgroup_of_this_machine() {
    let name = format!("/holdup-test-named-{}", std::process::id());
    let roots = ["cpu", "cpuacct", "memory", "pids", ""].map(|it| Path::new("/sys/fs/cgroup").join(it));
    let folders: Vec<_> = roots
        .iter()
        .filter(|root| root.join("cgroup.procs").exists())
        .map(|root| root.join(name.trim_start_matches('/')))
        .filter(|folder| std::fs::create_dir(folder).is_ok())
        .collect();
    if folders.is_empty() {
        println!("skipped: no cgroup may be made here");
        return;
    }
    let enter: String = folders.iter().map(|it| format!("echo $$ > {}/cgroup.procs; ", it.display())).collect();
    // It works before it waits: no more than what it takes to be counted.
    let work = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo; read line";
    let mut worker = Command::new("sh");
    worker.args(["-c", &format!("{enter}{work}")]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut worker = worker.spawn().unwrap();
    let mut line = [0];
    std::io::Read::read_exact(worker.stdout.as_mut().unwrap(), &mut line).unwrap();
    let mut named = NamedCgroup::new(Proc::system(), &name).unwrap();
    let mut batch = Batch::default();
    let seen = named.sample(&mut batch);
    let _ = worker.kill();
    let _ = worker.wait();
    // A cgroup is busy for a moment after its last process.
    for folder in &folders {
        for _ in 0..500 {
            if std::fs::remove_dir(folder).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    let gone = named.sample(&mut batch);
    seen.unwrap();
    assert_eq!(value(&batch, "cgroup_member_processes", &[("cgroup", &name)]), Some(1.0));
    if Path::new("/sys/fs/cgroup/cpuacct/cpuacct.usage").exists()
        || Path::new("/sys/fs/cgroup/cgroup.controllers").exists()
    {
        assert!(value(&batch, "cgroup_cpu_usage_seconds_total", &[("cgroup", &name)]).is_some_and(|used| used > 0.0));
    }
    if Path::new("/sys/fs/cgroup/pids/tasks").exists() {
        assert_eq!(value(&batch, "cgroup_processes", &[("cgroup", &name)]), Some(1.0));
    }
    assert!(gone.is_err());
    assert_eq!(kinds(&batch), ["cgroup_gone"]);
}

/// Another cgroup's counters are another series, and one that is gone is a gap.
#[test]
fn a_process_that_is_moved_or_whose_cgroup_goes() {
    let (dir, proc) = small_tree();
    let mut process = Process::new(proc, 71);
    let paths = |batch: &Batch| -> Vec<String> {
        let throttled = batch.samples.iter().filter(|s| s.metric == "cgroup_cpu_throttled_periods_total");
        throttled.map(|s| s.labels.get("cgroup").unwrap_or_default().to_owned()).collect()
    };
    let mut batch = Batch::default();
    process.sample(&mut batch).unwrap();
    put(dir.path(), &[("proc/71/cgroup", "0::/\n")]);
    process.sample(&mut batch).unwrap();
    assert_eq!(paths(&batch), ["/db", "/"]);
    put(dir.path(), &[("proc/71/cgroup", "0::/gone\n")]);
    let mut batch = Batch::default();
    let error = process.sample(&mut batch).unwrap_err().to_string();
    assert!(error.contains("cgroup"), "{error}");
    assert!(paths(&batch).is_empty());
}

#[test]
fn files_that_are_cut_or_rubbish_are_gaps() {
    let (dir, proc) = small_tree();
    let mut process = Process::new(proc, 71);
    let of = |process: &mut Process| {
        let mut batch = Batch::default();
        let result = process.sample(&mut batch);
        (batch, result)
    };
    let whole = of(&mut process).0;
    let known = |s: &holdup_recording::rows::Sample| {
        whole.samples.iter().any(|w| w.metric == s.metric && w.labels == s.labels && w.value == s.value)
    };
    for file in ["cpu.stat", "memory.stat", "memory.events", "io.stat", "io.pressure"] {
        let path = dir.path().join("sys/fs/cgroup/db").join(file);
        let content = std::fs::read(&path).unwrap();
        for end in 1..content.len() {
            std::fs::write(&path, &content[..end]).unwrap();
            let (batch, result) = of(&mut process);
            assert!(result.is_err() || content[end - 1] == b'\n', "{file} cut at {end}");
            assert!(batch.samples.iter().all(known), "{file} cut at {end}");
        }
        std::fs::write(&path, "x y z\n").unwrap();
        assert!(of(&mut process).1.is_err(), "{file}");
        std::fs::remove_file(&path).unwrap();
        assert!(of(&mut process).0.samples.iter().all(known), "{file} missing");
        std::fs::write(&path, &content).unwrap();
    }
}

/// A real throttle of version 1 on a loop device of our own, where that may be set up.
#[test]
fn a_throttled_reader_on_this_machine() {
    let Some(mut bench) = Bench::new() else { return };
    let mut process = Process::new(Proc::system(), bench.reader.id());
    let mut seen = (None, None);
    for _ in 0..600 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let mut batch = Batch::default();
        if process.sample(&mut batch).is_err() || process.settings(&mut batch).is_err() {
            continue;
        }
        let labels = [("device", bench.device.as_str()), ("direction", "read")];
        let limit = format!("cgroup.disk_limit[{}].read_bytes_per_second", bench.device);
        seen = (value(&batch, "cgroup_disk_io_bytes_total", &labels), setting(&batch, &limit).map(str::to_owned));
        if seen.0.is_some_and(|bytes| bytes > 0.0) && seen.1.is_some() {
            break;
        }
        if bench.reader.try_wait().unwrap().is_some() {
            break;
        }
    }
    assert!(seen.0.is_some_and(|bytes| bytes > 0.0), "{seen:?}");
    assert_eq!(seen.1.as_deref(), Some("524288"));
}

/// A loop device, a cgroup that throttles it, and a process that reads there. All of it goes with this value.
struct Bench {
    device: String,
    cgroup: std::path::PathBuf,
    reader: Child,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Option<Self> {
        let controller = Path::new("/sys/fs/cgroup/blkio");
        if !controller.join("cgroup.procs").exists() {
            println!("skipped: no blkio controller of cgroup version 1 here");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        std::fs::write(&image, vec![0; 8 << 20]).unwrap();
        let attached = Command::new("losetup").args(["--find", "--show"]).arg(&image).output().ok();
        let Some(attached) = attached.filter(|output| output.status.success()) else {
            println!("skipped: no loop device may be attached here");
            return None;
        };
        let path = String::from_utf8(attached.stdout).unwrap().trim().to_owned();
        let device = path.trim_start_matches("/dev/").to_owned();
        let cgroup = controller.join(format!("holdup-test-{}", std::process::id()));
        let number = std::fs::read_to_string(format!("/sys/block/{device}/dev")).unwrap();
        let throttle = std::fs::create_dir(&cgroup).and_then(|()| {
            std::fs::write(cgroup.join("blkio.throttle.read_bps_device"), format!("{} 524288", number.trim()))
        });
        let script = format!(
            "echo $$ > {}/cgroup.procs && exec dd if={path} of=/dev/null bs=64k iflag=direct",
            cgroup.display()
        );
        let reader = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).spawn().unwrap();
        let bench = Self { device, cgroup, reader, _folder: folder };
        if throttle.is_err() {
            println!("skipped: no cgroup may be made here");
            return None;
        }
        Some(bench)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.reader.kill();
        let _ = self.reader.wait();
        for _ in 0..600 {
            if std::fs::remove_dir(&self.cgroup).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let _ = Command::new("losetup").args(["--detach", &format!("/dev/{}", self.device)]).status();
    }
}

/// In the root a process is counted together with all others of the machine.
#[test]
fn figures_of_the_machine_are_not_those_of_a_process() {
    let (dir, proc) = small_tree();
    put(
        dir.path(),
        &[
            ("proc/71/cgroup", "0::/\n"),
            ("sys/fs/cgroup/cgroup.subtree_control", "cpu\n"),
            ("sys/fs/cgroup/cpu.stat", "usage_usec 900000000\n"),
            ("sys/fs/cgroup/memory.stat", "file 5\n"),
        ],
    );
    let of_process = read(&mut Process::new(proc.clone(), 71));
    assert!(!of_process.samples.iter().any(|sample| sample.metric.starts_with("cgroup_")), "{:?}", of_process.samples);
    assert_eq!(setting(&of_process, "cgroup.path"), Some("/"));
    // A container's namespace calls its own cgroup the root.
    put(dir.path(), &[("sys/fs/cgroup/cgroup.type", "domain\n")]);
    let in_container = read(&mut Process::new(proc, 71));
    assert_eq!(value(&in_container, "cgroup_cpu_usage_seconds_total", &[("cgroup", "/")]), Some(900.0));
}
