//! The responder and the floor hold each other to account: what one says it sent the other must have received, with a
//! stamp for each.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// Ended by its id, whatever becomes of the test.
struct Responder {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    port: u16,
}

impl Responder {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdup-bench"));
        let mut child = command.arg("responder").args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let port = line.trim().strip_prefix("listening 127.0.0.1:").unwrap().parse().unwrap();
        Self { child, stdout, port }
    }

    /// What it says when it is told to end.
    fn stop(mut self) -> serde_json::Value {
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        let mut said = String::new();
        self.stdout.read_to_string(&mut said).unwrap();
        self.child.wait().unwrap();
        serde_json::from_str(&said).unwrap()
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn floor(dir: &Path, port: u16, connections: u32) -> u64 {
    let program = dir.join("floor");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/floor.c");
    let built = Command::new("cc").args(["-O2", "-o"]).arg(&program).arg(source).status().unwrap();
    assert!(built.success());
    let words = [port.to_string(), connections.to_string(), "1".to_owned()];
    let output = Command::new(program).args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    said["completed"].as_u64().unwrap()
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

#[test]
#[holdup_witness::judged]
fn counts_and_stamps_agree() {
    let dir = tempfile::tempdir().unwrap();
    let stamps = dir.path().join("stamps");
    let responder = Responder::start(&["--cpus", "0", "--expect", "16", "--stamps", stamps.to_str().unwrap()]);
    let begun = unix_ns();
    let completed = floor(dir.path(), responder.port, 16);
    let ended = unix_ns();
    let seen = responder.stop();
    assert!(completed > 1000, "{completed}");
    assert_eq!(seen["requests"], completed);
    assert_eq!(seen["connections"], 16);
    assert_eq!(seen["connections_most"], 16);
    assert!(seen["connected_seconds"].as_f64().is_some_and(|seconds| seconds < 1.0), "{seen}");
    assert!(seen["system_seconds"].as_f64().unwrap() > 0.0, "{seen}");
    let bytes = fs::read(stamps).unwrap();
    assert_eq!(bytes.len() as u64, 8 * completed);
    let strange = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    assert_eq!(strange.filter(|stamp| !(begun..=ended).contains(stamp)).count(), 0);
}

#[test]
#[holdup_witness::judged]
fn a_stop_holds_everything_up_once() {
    let dir = tempfile::tempdir().unwrap();
    // Four connections, 1 ms each: about 4 x 1000 answers in a second without the stop, half as many with it.
    let responder =
        Responder::start(&["--service-ms", "1", "--freeze-at-s", "0.25", "--freeze-for-s", "0.5", "--cpus", "0,1"]);
    let begun = std::time::Instant::now();
    let completed = floor(dir.path(), responder.port, 4);
    let seen = responder.stop();
    assert_eq!(seen["requests"], completed);
    assert!(completed > 100 && completed < 2_500, "{completed}");
    assert!(begun.elapsed().as_secs_f64() < 10.0);
}
