//! Processes of the bench: each ends when the bench does, however that ends.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Runs a command, writes its process id to a file, and sends it a signal when standard input ends: so it does not
/// outlive the process that holds the other end. What does not end within 40 s is killed.
const GUARD: &str = r#"signal=$1; file=$2; shift 2
"$@" </dev/null & pid=$!
echo $pid >"$file.new"; mv "$file.new" "$file"
read -r _
kill -s "$signal" $pid
tenths=400
while kill -0 $pid 2>/dev/null && [ $tenths -gt 0 ]; do tenths=$((tenths - 1)); sleep 0.1; done
kill -s KILL $pid 2>/dev/null
wait $pid"#;

/// A process that runs until this value goes.
pub struct Guarded {
    shell: Child,
    stdin: Option<ChildStdin>,
    /// Its process id.
    pub pid: u32,
}

impl Guarded {
    /// Starts `words` with `env`; `signal` ends it. Its output goes to `DIR/NAME.log`.
    pub fn start(dir: &Path, name: &str, signal: &str, words: &[String], env: &[(&str, String)]) -> Result<Self> {
        let file = dir.join(format!("{name}.pid"));
        let _ = fs::remove_file(&file);
        let mut shell = Command::new("sh");
        shell.args(["-c", GUARD, "sh", signal]).arg(&file).args(words);
        shell.envs(env.iter().map(|(key, value)| (*key, value.as_str())));
        let mut shell = spawn(shell, dir, name)?;
        let stdin = shell.stdin.take();
        let mut guarded = Self { shell, stdin, pid: 0 };
        until(name, Duration::from_secs(10), || file.exists())?;
        let text = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
        guarded.pid = text.trim().parse().with_context(|| format!("{} holds no process id", file.display()))?;
        Ok(guarded)
    }

    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        Path::new(&format!("/proc/{}", self.pid)).exists()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.shell.wait();
    }
}

/// Starts a command with its standard input open and its output in `DIR/NAME.log`, in a process group of its own: Ctrl-C
/// is for the bench alone.
pub fn spawn(mut command: Command, dir: &Path, name: &str) -> Result<Child> {
    let path = dir.join(format!("{name}.log"));
    let log = File::create(&path).with_context(|| format!("failed to create {}", path.display()))?;
    command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log).process_group(0);
    let shown = command.get_program().to_string_lossy().into_owned();
    command.spawn().with_context(|| format!("could not start {shown}"))
}

/// Runs a command to its end with `input`; its output, or what it said.
pub fn ask(command: &mut Command, input: &str) -> Result<String> {
    let shown = format!("{} {:?}", command.get_program().to_string_lossy(), command.get_args().last());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().with_context(|| format!("could not start {shown}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).with_context(|| format!("{shown} takes no input"))?;
    }
    let output = child.wait_with_output().with_context(|| format!("could not wait for {shown}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{shown} ended with {}: {}", output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs a command that has to succeed.
pub fn run(program: &str, arguments: &[&str]) -> Result<String> {
    ask(Command::new(program).args(arguments), "")
}

/// Waits for something to become so.
pub fn until(what: &str, within: Duration, mut is_so: impl FnMut() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() > within {
            bail!("{what} was not ready within {} s; its log says why", within.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// A port that was free a moment ago.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0").context("no free port on loopback")?.local_addr()?.port())
}

/// The server program of that name. Debian keeps it where not every path leads.
pub fn server(name: &str) -> String {
    let path = format!("/usr/sbin/{name}");
    if Path::new(&path).exists() { path } else { name.to_owned() }
}

/// Sends a signal to a process of the bench.
pub fn signal(pid: u32, name: &str) -> Result<()> {
    run("kill", &["-s", name, &pid.to_string()]).map(drop)
}

/// Names in `folder` that begin with `prefix` and go on with the id of a process that is gone.
pub fn leftovers(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_left = |name: &str| {
        let pid: String = name.strip_prefix(prefix)?.chars().take_while(char::is_ascii_digit).collect();
        Some(!pid.is_empty() && !Path::new(&format!("/proc/{pid}")).exists())
    };
    entries
        .filter(|entry| entry.file_name().to_str().and_then(is_left) == Some(true))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guarded_process_ends_with_its_guard() {
        let dir = tempfile::tempdir().unwrap();
        let words = ["sleep", "60"].map(str::to_owned);
        let guarded = Guarded::start(dir.path(), "sleeper", "TERM", &words, &[]).unwrap();
        let pid = guarded.pid;
        assert!(guarded.is_running());
        drop(guarded);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn only_what_ended_processes_left_is_found() {
        let dir = tempfile::tempdir().unwrap();
        // Above the largest process id of Linux (2^22), so no process has it.
        for name in ["bench-4194305-app".to_owned(), format!("bench-{}", std::process::id()), "bench-x".to_owned()] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let left = leftovers(dir.path(), "bench-");
        assert_eq!(left, [dir.path().join("bench-4194305-app")]);
    }
}
