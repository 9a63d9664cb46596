//! A command that ends with us: a SIGTERM or SIGHUP for this process is passed on to it, so that no test, lab or server works on
//! behind a pass that was ended. A terminal's Ctrl-C reaches the command by itself.

use std::collections::BTreeSet;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::{io, thread};

use anyhow::{Context as _, Result, bail};
use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// The commands that run, and whether this process was asked to end.
#[derive(Default)]
struct Running {
    pids: BTreeSet<u32>,
    was_asked: bool,
}

static RUNNING: Mutex<Running> = Mutex::new(Running { pids: BTreeSet::new(), was_asked: false });

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes signals on from now on; without a command they end this process as they do by default.
fn pass_on() -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        for signal in signals.forever() {
            let mut running = running();
            running.was_asked = true;
            if running.pids.is_empty() {
                let _ = emulate_default_handler(signal);
            }
            for pid in &running.pids {
                // One that has just ended can't be reached any more.
                let _ = Command::new("kill").args(["-TERM", &pid.to_string()]).status();
            }
        }
    });
    Ok(())
}

/// Runs `command` to its end. What it prints is in the result only where the caller took it off our own output.
///
/// # Errors
/// If it can't be started, or this process was asked to end meanwhile.
pub fn run(command: &mut Command) -> Result<Output> {
    static ONCE: Once = Once::new();
    let mut caught = Ok(());
    ONCE.call_once(|| caught = pass_on());
    caught.context("signals can't be caught")?;
    let child = {
        let mut running = running();
        if running.was_asked {
            bail!("asked to end; {command:?} was not begun");
        }
        let child = command.spawn().with_context(|| format!("could not run {command:?}"))?;
        running.pids.insert(child.id());
        child
    };
    let pid = child.id();
    let output = child.wait_with_output();
    let mut running = running();
    running.pids.remove(&pid);
    if running.was_asked {
        bail!("asked to end; {command:?} was ended");
    }
    output.with_context(|| format!("could not run {command:?}"))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::path::PathBuf;
    use std::process::Stdio;
    use std::time::{Duration, Instant};

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
