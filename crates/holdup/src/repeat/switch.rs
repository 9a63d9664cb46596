//! Switches versions by a command of the user, and waits until the new one can be measured.
//! Processes that the command starts are left alone, and its output goes to a file beside the
//! recordings.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdup_load::scenario::Target;
use holdup_load::yaml::parse_duration;
use holdup_recording::folder::Folder;
use holdup_recording::{files, secret};

use crate::failure::Failure;
use crate::lab::{accepts, answers_200};
use crate::secret_values::value;

/// File beside the recordings with the commands' output.
pub const LOG: &str = "switch.log";

/// Interval between checks of a command or of readiness.
const POLL: Duration = Duration::from_millis(50);

/// Lines of a command's output that an error quotes.
const QUOTED_LINES: usize = 5;

/// How versions are switched.
#[derive(clap::Args)]
pub struct SwitchArgs {
    /// Sign that a version is ready: http://… answers 200, or tcp://HOST:PORT accepts [default: the
    /// target accepts connections]
    #[arg(long, value_name = "URL", value_parser = ready)]
    ready: Option<Ready>,

    /// Pause between readiness and the load
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    settle: Duration,

    /// Longest time for the command, and then for readiness
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_duration)]
    switch_within: Duration,
}

/// The sign that a version is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ready {
    /// This URL answers 200.
    Http(String),
    /// This `HOST:PORT` accepts connections.
    Tcp(String),
}

fn ready(text: &str) -> Result<Ready, String> {
    let wrong = "expected http://HOST:PORT/PATH, which answers 200 when ready, or tcp://HOST:PORT";
    let text = value(text)?;
    match text.split_once("://") {
        Some(("http", rest)) if !rest.is_empty() => Ok(Ready::Http(text.clone())),
        Some(("tcp", rest)) if rest.contains(':') => Ok(Ready::Tcp(rest.to_owned())),
        _ => Err(wrong.to_owned()),
    }
}

impl Ready {
    fn is_ready(&self) -> bool {
        match self {
            Self::Http(url) => answers_200(url),
            Self::Tcp(address) => accepts(address),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Http(url) => format!("{} did not answer 200", secret::redact_value(url)),
            Self::Tcp(address) => format!("{address} did not accept connections"),
        }
    }
}

impl SwitchArgs {
    /// Switches to `what` by `command`, if there is one, and waits until `target` can be measured.
    /// The command's output is appended to [`LOG`] in `dir`.
    ///
    /// # Errors
    /// If the command fails or takes too long, or the version does not become ready; the message
    /// quotes the end of the output.
    pub fn switch(
        &self,
        what: &str,
        command: Option<&str>,
        target: &Target,
        dir: &Folder,
        stop: &AtomicBool,
    ) -> Result<(), Failure> {
        let log = dir.place().join(LOG);
        let begun = log.metadata().map_or(0, |file| file.len());
        if let Some(command) = command {
            self.run(what, command, (&log, &dir.path().join(LOG)), begun, stop)?;
        }
        let of_target = || Ready::Tcp(format!("{}:{}", bracketed(&target.host), target.port));
        let ready = self.ready.clone().unwrap_or_else(of_target);
        let deadline = Instant::now() + self.switch_within;
        while !ready.is_ready() {
            if Instant::now() >= deadline {
                let (within, end) = (seconds(self.switch_within), quote(&log, begun));
                let words = ready.words();
                return Err(Failure::Unusable(format!(
                    "{what} is not ready: {words} within {within} (--switch-within){end}"
                )));
            }
            pause(POLL, stop)?;
        }
        pause(self.settle, stop)
    }

    fn run(
        &self,
        what: &str,
        command: &str,
        (log, shown): (&Path, &Path),
        begun: u64,
        stop: &AtomicBool,
    ) -> Result<(), Failure> {
        let failed = |why: String| Failure::Unusable(format!("the command for {what} {why}"));
        let file = files::append(log);
        let file = file.and_then(|file| Ok((file.try_clone()?, file)));
        let (errors, output) =
            file.map_err(|error| failed(format!("has no file for its output: {}: {error}", shown.display())))?;
        let mut shell = Command::new("sh");
        // Its own process group: Ctrl-C is for holdup, not for the servers that the command has
        // started.
        shell.arg("-c").arg(command).process_group(0).stdin(Stdio::null()).stdout(output).stderr(errors);
        crate::descriptors::as_before(&mut shell);
        let mut child = shell.spawn().map_err(|error| failed(format!("could not be started: {error}")))?;
        match wait(&mut child, self.switch_within, stop)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(failed(format!("failed: {status}{}", quote(log, begun)))),
            None => {
                let within = seconds(self.switch_within);
                let hint = "start a server in the background, e.g. with `&` or `docker compose up -d`";
                Err(failed(format!("was still running after {within} (--switch-within); {hint}{}", quote(log, begun))))
            }
        }
    }
}

/// Waits for the end of the command; after `within`, kills it and returns none.
fn wait(child: &mut Child, within: Duration, stop: &AtomicBool) -> Result<Option<ExitStatus>, Failure> {
    let deadline = Instant::now() + within;
    loop {
        if let Some(status) = child.try_wait().map_err(Failure::unusable)? {
            return Ok(Some(status));
        }
        let is_stopped = stop.load(Ordering::Relaxed);
        if is_stopped || Instant::now() >= deadline {
            // SAFETY: kill touches no memory; the leader of the group is not reaped, so the number
            // is still its own.
            unsafe { libc::kill(-child.id().cast_signed(), libc::SIGKILL) };
            let _ = child.wait();
            return if is_stopped { Err(Failure::Interrupted) } else { Ok(None) };
        }
        std::thread::sleep(POLL);
    }
}

/// Waits for `length`.
///
/// # Errors
/// If it is stopped meanwhile.
fn pause(length: Duration, stop: &AtomicBool) -> Result<(), Failure> {
    let until = Instant::now() + length;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(POLL));
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

fn seconds(length: Duration) -> String {
    format!("{:.0} s", length.as_secs_f64())
}

/// The end of a command's output since `begun`, without what looks like a secret.
fn quote(log: &Path, begun: u64) -> String {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut bytes = Vec::new();
    let read = File::open(log).and_then(|mut file| {
        file.seek(SeekFrom::Start(begun))?;
        file.read_to_end(&mut bytes)
    });
    let text = secret::redact(&String::from_utf8_lossy(&bytes));
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if read.is_err() || lines.is_empty() {
        return "; it wrote nothing".to_owned();
    }
    let end = lines[lines.len().saturating_sub(QUOTED_LINES)..].join("\n    ");
    format!("; the end of its output (all of it is in {}):\n    {end}", log.display())
}
