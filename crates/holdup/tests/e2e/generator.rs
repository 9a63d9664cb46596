//! The generator as a suspect: without enough CPU it says so, every time, and with enough it never does. And the quick
//! form of the closed model, as scripts use it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::program::{Running, finish, holdup, skip};
use crate::service::Service;
use holdup_witness::{Patience, SECOND_BY_SECOND};

/// Of a run with few or enough CPUs.
const LENGTH: Duration = Duration::from_secs(4);

/// A CPU cgroup of this test, gone with it.
pub struct Cgroup {
    dir: PathBuf,
    is_v2: bool,
}

impl Cgroup {
    /// None where this account may not make one.
    pub fn new() -> Option<Self> {
        let name = format!("holdup-test-{}", std::process::id());
        let roots = [("/sys/fs/cgroup/cpu", false), ("/sys/fs/cgroup/cpu,cpuacct", false), ("/sys/fs/cgroup", true)];
        roots.into_iter().find_map(|(root, is_v2)| {
            let dir = Path::new(root).join(&name);
            fs::create_dir(&dir).ok()?;
            let quota = if is_v2 { "cpu.max" } else { "cpu.cfs_quota_us" };
            if dir.join(quota).exists() {
                return Some(Self { dir, is_v2 });
            }
            let _ = fs::remove_dir(&dir);
            None
        })
    }

    pub fn folder(&self) -> &Path {
        &self.dir
    }

    /// The quota, as its file has it.
    pub fn quota(&self) -> String {
        let file = if self.is_v2 { "cpu.max" } else { "cpu.cfs_quota_us" };
        fs::read_to_string(self.dir.join(file)).unwrap().trim().to_owned()
    }

    /// So many milliseconds of CPU in each 100; none for no limit.
    pub fn allow(&self, quota_ms: Option<u32>) {
        let us = |ms: u32| (ms * 1_000).to_string();
        let (file, text) = if self.is_v2 {
            ("cpu.max", format!("{} 100000", quota_ms.map_or_else(|| "max".to_owned(), us)))
        } else {
            ("cpu.cfs_quota_us", quota_ms.map_or_else(|| "-1".to_owned(), us))
        };
        fs::write(self.dir.join(file), text).unwrap();
    }

    /// `command`, as a process in it.
    pub fn within(&self, command: &Command) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.dir.join("cgroup.procs"));
        shell.arg(command.get_program()).args(command.get_args());
        shell
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.dir);
    }
}

fn run(service: &Service, dir: &Path, rate: u32) -> Command {
    let url = service.url();
    let (rate, duration) = (format!("--rate={rate}"), format!("--duration={}s", LENGTH.as_secs()));
    let mut command = holdup(["run", "--url", &url, &rate, &duration, "--no-collect", "--json", "--quiet", "-o"]);
    command.arg(dir);
    command
}

#[test]
fn throttled_it_says_generator_limited_and_with_enough_cpu_it_does_not() {
    let Some(cgroup) = Cgroup::new() else {
        return skip("no CPU cgroup can be made here; that needs root and a mounted cgroup file system");
    };
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let mut number = 0;
    let mut throttled = || {
        number += 1;
        cgroup.allow(None);
        let to = dir.path().join(format!("throttled-{number}"));
        let running = Running::start(&mut cgroup.within(&run(&service, &to, 5_000)));
        // Opened when the load begins. Starting and judging would take many seconds with this quota.
        while !to.join("latency.hlog").exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
        // What it is asked for takes some 6 % of a CPU: with a third of that it cannot put the load on, however fast the CPU.
        cgroup.allow(Some(2));
        std::thread::sleep(LENGTH + Duration::from_secs(1));
        cgroup.allow(None);
        let answer = running.finish(Duration::from_secs(120)).json();
        let load = &answer["load"];
        let limited = load["validity"]["generator_limited_s"].as_f64().unwrap();
        assert!(limited >= 3.0, "{limited} s of 4 limited: {load:#}");
        assert_eq!(load["generator_limited"], true, "{load:#}");
        let reasons = load["validity"]["reasons"].to_string();
        assert!(reasons.contains("throttled"), "{reasons}");
        assert_ne!(answer["verdict"], "healthy", "{answer:#}");
    };
    (0..2).for_each(|_| throttled());
    // The same generator with enough CPU, unless the machine itself takes the CPUs away.
    let enough = Patience { limits: SECOND_BY_SECOND, misses: 1, attempts: 6, within: Duration::from_secs(60) };
    enough.judge(|attempt| {
        let load = finish(run(&service, &dir.path().join(format!("free-{attempt}")), 300), 60).json()["load"].take();
        if load["validity"]["generator_limited_s"] != 0.0 {
            return Err(format!("with a CPU of its own it called itself the limit: {load:#}"));
        }
        assert_eq!(load["generator_limited"], false);
        Ok(())
    });
}

#[test]
fn the_closed_model_is_named_and_counts_what_it_completed() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let url = service.url();
    let arguments = ["run", "--url", &url, "--closed", "--connections", "16", "--think", "20ms", "--duration", "2s"];
    let mut command = holdup(arguments);
    command.args(["--no-collect", "--json", "--quiet", "-o"]).arg(dir.path().join("closed"));
    let answer = finish(&mut command, 60).json();
    let load = &answer["load"];
    assert_eq!((&load["model"], &load["protocol"]), (&"closed".into(), &"http/1.1".into()), "{load:#}");
    let completed = load["operations"][0]["completed"].as_u64().unwrap();
    // 16 users who think for 20 ms and wait for 1 ms at least: no more than 16 * 2 s / 21 ms.
    assert!((200..=1_540).contains(&completed), "{completed} completed: {load:#}");
    assert_eq!(load["operations"][0]["errors"], 0, "{load:#}");
}
