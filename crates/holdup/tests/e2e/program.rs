//! Starts holdup, waits for it with a limit. Which tests have the machine to themselves stands in `.config/nextest.toml`.

use std::borrow::BorrowMut;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub use holdup_testing::{free_port, root, send, skip};

/// The program under test, with nothing of the caller's that would change what it does.
pub fn holdup<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdup"));
    for database in ["MYSQL", "POSTGRES", "MONGODB", "CLICKHOUSE"] {
        command.env_remove(format!("HOLDUP_{database}_PASSWORD"));
    }
    command.args(arguments).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// For whatever only has to end some time: a machine that stalls takes its time.
const PATIENCE: Duration = Duration::from_secs(240);

/// What a program left behind.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Its standard output as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("not JSON ({e}): {}\n{}", self.stdout, self.stderr))
    }
}

/// A program that runs. It is killed if the test ends before it does.
pub struct Running {
    child: Child,
    readers: Vec<std::thread::JoinHandle<String>>,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let readers = vec![reader(child.stdout.take()), reader(child.stderr.take())];
        Self { child, readers }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: i32) {
        send(self.pid(), signal);
    }

    /// Waits, for `limit` or some minutes.
    pub fn finish(self, limit: Duration) -> Finished {
        self.finish_unless(limit, || false).unwrap()
    }

    /// The same, but it is killed, and leaves nothing behind, once `is_given_up`.
    pub fn finish_unless(mut self, limit: Duration, is_given_up: impl Fn() -> bool) -> Option<Finished> {
        let limit = limit.max(PATIENCE);
        let deadline = Instant::now() + limit;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "still running after {limit:?}");
            if is_given_up() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut texts = self.readers.drain(..).map(|reader| reader.join().unwrap());
        let (stdout, stderr) = (texts.next().unwrap(), texts.next().unwrap());
        Some(Finished { status, stdout, stderr })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn reader(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.unwrap().read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Runs it to its end, for `seconds` or some minutes.
pub fn finish(mut command: impl BorrowMut<Command>, seconds: u64) -> Finished {
    Running::start(command.borrow_mut()).finish(Duration::from_secs(seconds))
}

/// A recording's manifest.
pub fn manifest(recording: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(recording.join("manifest.json")).unwrap()).unwrap()
}

/// Causes in the list `key` of a verdict.
pub fn causes<'a>(verdict: &'a serde_json::Value, key: &str) -> Vec<&'a str> {
    verdict[key].as_array().unwrap().iter().filter_map(|entry| entry["cause"].as_str()).collect()
}
