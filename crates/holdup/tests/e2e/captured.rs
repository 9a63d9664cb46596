//! `holdup replay` of packets: what went over loopback between a load and one server another executes as often.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::mariadb::{self, CANARY};
use crate::program::{Running, finish, root, skip};
use crate::replay::{RATE, SECONDS, calls, facts, items, load, own, replay, shop};

/// tcpdump, at work.
struct Capture {
    running: Running,
    file: PathBuf,
}

/// Whether packets may be captured here; says so if not.
fn may_capture() -> bool {
    // SAFETY: geteuid takes nothing and can't fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: capturing packets takes root");
        return false;
    }
    let here = finish(Command::new("sh").arg(root().join("labs/kit/need.sh")).arg("tcpdump"), 300).code() == Some(0);
    if !here {
        skip("tcpdump is not installed; run: cargo xtask setup");
    }
    here
}

impl Capture {
    /// Of all that goes to and from the server at `address`.
    fn of(address: &str, dir: &Path) -> Self {
        let port = address.rsplit_once(':').unwrap().1.split('/').next().unwrap();
        let file = dir.join("mix.pcap");
        // The file is ours, so the account stays, too.
        let mut tcpdump = Command::new("tcpdump");
        tcpdump.args(["-i", "lo", "-s", "0", "-B", "16384", "-U", "-Z", "root", "-w"]).arg(&file);
        let running = Running::start(tcpdump.args(["tcp", "port", port]));
        let deadline = Instant::now() + Duration::from_secs(60);
        // It writes the head of the file when it listens.
        while !file.metadata().is_ok_and(|file| file.len() > 0) {
            assert!(Instant::now() < deadline, "tcpdump does not begin");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { running, file }
    }

    /// Ends it: the capture.
    fn end(self) -> PathBuf {
        // What the kernel has for it, it reads within a second.
        std::thread::sleep(Duration::from_secs(2));
        self.running.signal(libc::SIGINT);
        let done = self.running.finish(Duration::from_secs(60));
        assert!(done.stderr.contains("\n0 packets dropped by kernel"), "{}", done.stderr);
        self.file
    }
}

/// The capture holds what the server logged, and another server that gets it logs the same.
fn is_executed_as_often(capture: &Path, logged: &BTreeMap<String, u64>, new: &str, new_log: &Path, out: &Path) {
    assert!(logged.values().sum::<u64>() > u64::from(RATE * SECONDS), "{logged:?}");
    assert_eq!(&own(calls(capture)), logged, "in the packets");
    replay(capture, new, &["--writes", "--hash"], out);
    assert_eq!(&own(calls(new_log)), logged, "on the other server");
    let facts = facts(out);
    assert_eq!((&facts["format"], &facts["left_out"]), (&"pcap".into(), &serde_json::json!({})), "{facts}");
    assert_eq!((&facts["played"]["failed"], &facts["spread"]), (&0.into(), &0.into()), "{facts}");
    assert_eq!(facts["sent"], logged.values().sum::<u64>(), "{facts}");
}

#[test]
fn captured_from_mariadb() {
    if !mariadb::is_here() || !may_capture() {
        return;
    }
    let (old, new, dir) = (shop(), shop(), tempfile::tempdir().unwrap());
    let [from, to] = [&old, &new].map(|server| format!("{}/shop", server.address("app", CANARY)));
    let capture = Capture::of(&old.address("app", CANARY), dir.path());
    load(&from, RATE, dir.path());
    let logged = own(calls(&old.file("slow")));
    is_executed_as_often(&capture.end(), &logged, &to, &new.file("slow"), &dir.path().join("out"));
    let stock = "SELECT stock FROM shop.item WHERE id = 5";
    assert_eq!(old.run_and_read(stock), new.run_and_read(stock));
}

#[test]
fn captured_from_postgresql() {
    if !may_capture() {
        return;
    }
    let (Some(old), Some(new)) = (items(), items()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let [from, to] = [&old, &new].map(|server| server.address("app", "postgres"));
    let capture = Capture::of(&from, dir.path());
    load(&from, RATE, dir.path());
    let logged = own(calls(&old.log()));
    is_executed_as_often(&capture.end(), &logged, &to, &new.log(), &dir.path().join("out"));
    let stock = "SELECT stock FROM item WHERE id = 5";
    assert_eq!(old.run(stock), new.run(stock));
}
