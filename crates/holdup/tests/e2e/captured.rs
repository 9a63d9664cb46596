//! Packets between a load and a real server: `holdup replay` makes another server execute them as often, and of MongoDB
//! `holdup import`, a live source and `holdup digest` count what was sent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use holdup_recording::Recording;

use crate::mariadb::{self, CANARY};
use crate::mongodb;
use crate::program::{Running, finish, holdup, manifest, root, skip};
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
    assert_eq!(old.run(stock), new.run(stock));
}

#[test]
fn captured_from_postgresql() {
    if !may_capture() {
        return;
    }
    let (Some(old), Some(new)) = (items(), items()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let [from, to] = [&old, &new].map(|server| server.url("app", "postgres"));
    let capture = Capture::of(&from, dir.path());
    load(&from, RATE, dir.path());
    let logged = own(calls(&old.log()));
    is_executed_as_often(&capture.end(), &logged, &to, &new.log(), &dir.path().join("out"));
    let stock = "SELECT stock FROM item WHERE id = 5";
    assert_eq!(old.run(stock), new.run(stock));
}

/// Each MongoDB operation is in the packets as often as it was sent, with its trace id, and no value is.
#[test]
fn captured_from_a_server_of_mongodb_s_protocol() {
    if !may_capture() {
        return;
    }
    let Some(server) = mongodb::shop() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (file, out, imported) = (dir.path().join("shop.yaml"), dir.path().join("out"), dir.path().join("imported"));
    let live = format!("wire:{}=mongodb", server.port);
    let text = mongodb::scenario(&server).replace(
        "watch: [host]",
        &format!("watch: ['{live}', '{}']", mongodb::address(&server, holdup_testing::ferretdb::CANARY)),
    );
    std::fs::write(&file, text).unwrap();
    let capture = Capture::of(&format!("127.0.0.1:{}", server.port), dir.path());
    let run = finish(holdup(["run"]).arg(&file).arg("-o").arg(&out), 120);
    assert!(out.exists(), "{}", run.stderr);
    let pcap = capture.end();
    let port = format!("--port={}=mongodb", server.port);
    let done = finish(holdup(["import", "--json", &port]).arg(&pcap).arg("-o").arg(&imported), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert_eq!(done.json()["missing"], serde_json::json!([]));
    let totals = manifest(&out)["load"]["totals"].clone();
    let offered = |place: usize| totals[place]["offered"].as_u64().unwrap();
    for (recording, source) in [(&imported, "pcap:mix.pcap".to_owned()), (&out, format!("wire:{}", server.port))] {
        let exchanges = Recording::open(recording).unwrap().tables.exchanges.rows;
        let mut counts = BTreeMap::<(&str, &str), u64>::new();
        for row in exchanges.iter().filter(|row| row.kind == "query") {
            assert_eq!((row.source.as_str(), row.protocol.as_str()), (source.as_str(), "mongodb"), "{row:?}");
            let text = row.digest_text.as_deref().unwrap();
            *counts.entry((text, row.error.as_deref().unwrap_or(&row.outcome))).or_default() += 1;
            // What reads on from a cursor has no comment.
            assert!(row.trace_id.is_some() || text.starts_with("aggregate"), "{row:?}");
            assert!(row.first_byte_at.is_some_and(|first| first > row.request_end_at && first <= row.done_at));
        }
        let count = |text: &str, outcome: &str| counts.get(&(text, outcome)).copied().unwrap_or(0);
        assert_eq!(count("find shop.item filter { _id: ? }", "ok"), offered(0), "{counts:?}");
        let match_all = "aggregate shop.item pipeline [{ $match: { name: ? } }]";
        // 250 documents in batches of 50: the first comes with the answer, and the sixth is empty. Each belongs to its query.
        assert_eq!(count(match_all, "ok"), 6 * offered(1), "{counts:?}");
        let sell = "update shop.item q { _id: ? } u { $inc: { stock: ? } }";
        assert_eq!(count(sell, "ok"), offered(2), "{counts:?}");
        assert_eq!(count("insert shop.sale", "ok"), offered(3), "{counts:?}");
        assert_eq!(count("insert shop.item", "11000"), offered(4), "{counts:?}");
        // What the source asks of the server is left out, and so is nothing else.
        assert!(counts.keys().all(|(text, _)| !text.contains("serverStatus")), "{counts:?}");
        for kept in ["exchanges.parquet", "samples.parquet"] {
            let bytes = std::fs::read(recording.join(kept)).unwrap();
            let has = |value: &str| bytes.windows(value.len()).any(|window| window == value.as_bytes());
            assert!(!has(mongodb::VALUE) && !has(holdup_testing::ferretdb::CANARY), "{kept}");
        }
    }
    let digest = finish(holdup(["digest", "--json", &port]).arg(&pcap), 60);
    let report = digest.json();
    let queries = report["queries"].as_array().unwrap();
    let by_id = queries.iter().find(|query| query["fingerprint"] == "find shop.item filter { _id: ? }").unwrap();
    assert_eq!(by_id["calls"], offered(0), "{by_id}");
    assert!(!digest.stdout.contains(mongodb::VALUE));
}
