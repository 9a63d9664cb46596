//! A command that ends with us: a SIGTERM or SIGHUP for this process is passed on to it, so that no test, lab or server works on
//! behind a pass that was ended. A terminal's Ctrl-C reaches the command by itself.

use std::process::{Child, Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use std::{io, thread};

use anyhow::{Context as _, Result, bail};
use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::flag;

/// Time between two looks at the signals.
const EVERY: Duration = Duration::from_millis(20);

/// What the signals do: without a command they end this process as they do by default.
struct Signals {
    is_alone: Arc<AtomicBool>,
    was_asked: Arc<AtomicBool>,
    commands: Mutex<usize>,
}

impl Signals {
    fn registered() -> io::Result<Self> {
        let signals =
            Self { is_alone: Arc::new(AtomicBool::new(true)), was_asked: Arc::default(), commands: Mutex::default() };
        for signal in [SIGTERM, SIGHUP] {
            flag::register_conditional_default(signal, Arc::clone(&signals.is_alone))?;
            flag::register(signal, Arc::clone(&signals.was_asked))?;
        }
        Ok(signals)
    }

    fn begin(&self) {
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        *commands += 1;
        self.is_alone.store(false, Ordering::SeqCst);
    }

    fn end(&self) {
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        *commands -= 1;
        self.is_alone.store(*commands == 0, Ordering::SeqCst);
    }

    /// What `child` printed until its end.
    fn wait(&self, child: Child) -> io::Result<Output> {
        let pid = child.id().to_string();
        thread::scope(|scope| {
            let end = scope.spawn(|| child.wait_with_output());
            let mut was_passed_on = false;
            while !end.is_finished() {
                if !was_passed_on && self.was_asked.load(Ordering::SeqCst) {
                    was_passed_on = true;
                    // One that has just ended can't be reached any more.
                    let _ = Command::new("kill").args(["-TERM", &pid]).status();
                }
                thread::sleep(EVERY);
            }
            end.join().unwrap_or_else(|_| Err(io::Error::other("the thread that waits for it panicked")))
        })
    }
}

/// Runs `command` to its end. What it prints is in the result only where the caller took it off our own output.
///
/// # Errors
/// If it can't be started, or this process was asked to end meanwhile.
pub fn run(command: &mut Command) -> Result<Output> {
    static SIGNALS: OnceLock<io::Result<Signals>> = OnceLock::new();
    let Ok(signals) = SIGNALS.get_or_init(Signals::registered) else { bail!("signals can't be caught") };
    signals.begin();
    let output = command.spawn().and_then(|child| signals.wait(child));
    signals.end();
    if signals.was_asked.load(Ordering::SeqCst) {
        bail!("asked to end; {command:?} was ended");
    }
    output.with_context(|| format!("could not run {command:?}"))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::path::PathBuf;
    use std::process::Stdio;
    use std::time::Instant;

    use super::*;

    const ROLE: &str = "HOLDUP_TEST_ASKED_TO_END";

    /// In a process of its own, because a signal is for all of a process.
    #[test]
    fn what_was_started_ends_with_us() {
        if std::env::var_os(ROLE).is_some() {
            let ended = run(Command::new("sh").args(["-c", "echo pid $$; exec sleep 60"]));
            assert!(ended.is_err_and(|error| error.to_string().starts_with("asked to end")));
            println!("ended as it should");
            return;
        }
        let mut test = Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", "child::tests::what_was_started_ends_with_us", "--nocapture"]).env(ROLE, "1");
        let begun = Instant::now();
        let mut process = test.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let pid = lines.find_map(|line| line.split_once("pid ").map(|(_, pid)| pid.to_owned())).unwrap();
        assert!(Command::new("kill").args(["-TERM", &process.id().to_string()]).status().unwrap().success());
        assert!(lines.any(|line| line.contains("ended as it should")));
        assert!(process.wait().unwrap().success());
        assert!(!PathBuf::from(format!("/proc/{pid}")).exists() && begun.elapsed() < Duration::from_secs(50));
    }
}
