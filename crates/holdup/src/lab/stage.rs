//! The common part of a lab's variants: a scratch folder, ports, and the setup. `act` starts a
//! variant on it; neither leaves anything behind.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use super::cannot;
use super::command::{Launch, Step};
use super::definition::Lab;
use super::ending::Ending;
use super::placeholder::Scope;
use super::process::{Program, Running};
use crate::failure::Failure;

/// A lab after its setup: its variants can be started, one at a time.
pub struct Stage<'a> {
    pub(super) lab: &'a Lab,
    pub(super) scratch: Arc<Scratch>,
    pub(super) scope: Scope,
}

impl Lab {
    /// Installs the lab's prerequisites, creates its scratch folder, chooses its ports and runs its
    /// setup. `say` gets a short line for each stage. The output of `needs` goes to stderr.
    ///
    /// If the environment has `HOLDUP_KEEP_LAB`, the folder stays, and `say` gets its path.
    ///
    /// # Errors
    /// [`Failure::Unusable`] if something must be installed by hand; any failure of its commands;
    /// [`Failure::Interrupted`] once `stop` is set, because an installation can take minutes.
    pub fn set_up(&self, say: &dyn Fn(&str), stop: &AtomicBool) -> Result<Stage<'_>, Failure> {
        let scratch = Arc::new(Scratch::new()?);
        if scratch.keep {
            say(&format!("keeping the lab's folder: {}", scratch.path.display()));
        }
        let kit = self.folder.with_file_name("kit");
        let holdup = std::env::current_exe().map_err(cannot("find", "the holdup program"))?;
        let lab = scratch.path.join("lab");
        copy(&self.folder, &lab)?;
        let scope = Scope {
            dir: text(&scratch.path)?,
            lab: text(&lab)?,
            kit: text(&kit)?,
            holdup: text(&holdup)?,
            ports: free_ports(&self.ports)?,
            secrets: self.secrets.clone(),
            ..Scope::default()
        };
        let stage = Stage { lab: self, scratch, scope };

        for step in &self.needs {
            say("checking the lab's prerequisites");
            let what = format!("checking the prerequisites of {}", self.name);
            let log = stage.log("lab.needs");
            let program = program(&stage.scope, &what, &step.launch, "")?;
            stage.run_needs(program, step.within, &log, stop)?;
        }
        if !self.setup.is_empty() {
            say("setting up");
        }
        for step in &self.setup {
            let what = format!("setup of {}", self.name);
            run_step(&stage.scope, &stage.scratch.path, &what, step, &stage.log("lab.setup"), "", stop)?;
        }
        Ok(stage)
    }
}

impl Stage<'_> {
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.scratch.path.join(format!("{name}.log"))
    }

    /// Runs a command that may install something. The user wants to see its output; status 3 means
    /// that the user must install it by hand.
    fn run_needs(&self, program: Program, within: Duration, log: &Path, stop: &AtomicBool) -> Result<(), Failure> {
        let command = program.run.join(" ");
        let what = program.what.clone();
        let running = Running::start(program, &self.scratch.path, log, libc::SIGTERM, STEP_STOP_WITHIN)?;
        let mut shown = 0;
        let mut show = || {
            let (bytes, position) = running.log.read_from(shown);
            shown = position;
            // A closed stderr does not stop the installation.
            crate::terminal::print_error(&self.scope.redact(&String::from_utf8_lossy(&bytes)));
        };
        let ending = running.wait(within, stop, &mut show)?;
        if ending == Some(Ending::Exited(3)) {
            let text = self.scope.redact(&running.log.last_lines().join("\n"));
            let text = if text.is_empty() { format!("\"{command}\" did not say what is missing") } else { text };
            return Err(Failure::Unusable(format!("lab {} needs what is not installed here:\n{text}", self.lab.name)));
        }
        show();
        ended_well(ending, &running, what, command, within, &self.scope)
    }
}

/// How long an interrupted command may take to end by itself.
const STEP_STOP_WITHIN: Duration = Duration::from_secs(10);

/// Runs a command to its end. `who` names the part that refers to a process that is not started, if
/// any.
pub(super) fn run_step(
    scope: &Scope,
    dir: &Path,
    what: &str,
    step: &Step,
    log: &Path,
    variant: &str,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let program = program(scope, what, &step.launch, variant)?;
    let command = program.run.join(" ");
    let running = Running::start(program, dir, log, libc::SIGTERM, STEP_STOP_WITHIN)?;
    let ending = running.wait(step.within, stop, || ())?;
    ended_well(ending, &running, what.to_owned(), command, step.within, scope)
}

fn ended_well(
    ending: Option<Ending>,
    running: &Running,
    what: String,
    command: String,
    within: Duration,
    scope: &Scope,
) -> Result<(), Failure> {
    let log = || running.log.quote(|line| scope.redact(line));
    match ending {
        Some(Ending::Exited(0)) => Ok(()),
        Some(ending) => Err(Failure::Unusable(format!("{what} failed: \"{command}\" {ending}{}", log()))),
        None => {
            Err(Failure::Unusable(format!("{what} took longer than {within:?} and was ended: \"{command}\"{}", log())))
        }
    }
}

/// Fills in the placeholders of a launch.
pub(super) fn program(scope: &Scope, what: &str, launch: &Launch, variant: &str) -> Result<Program, Failure> {
    let fill = |text: &String| scope.fill(text).map_err(|process| not_started(variant, what, process));
    Ok(Program {
        what: what.to_owned(),
        run: launch.run.iter().map(fill).collect::<Result<_, _>>()?,
        env: launch
            .env
            .iter()
            .map(|(name, value)| fill(value).map(|value| (name.clone(), value)))
            .collect::<Result<_, _>>()?,
        stdin: launch.stdin.as_ref().map(fill).transpose()?.map(PathBuf::from),
    })
}

/// The failure of a part that refers to a process, or a file of one, that is not there yet.
pub(super) fn not_started(variant: &str, what: &str, process: String) -> Failure {
    Failure::Unusable(format!("variant {variant}: {what} refers to {{pid.{process}}}, which is not started before it"))
}

fn text(path: &Path) -> Result<String, Failure> {
    let not_text = || std::io::Error::new(std::io::ErrorKind::InvalidInput, "its name is not UTF-8");
    path.to_str().map(str::to_owned).ok_or_else(|| cannot("use", path)(not_text()))
}

/// Copies a lab's folder to where every user may read it. A server runs under another account,
/// which may not be able to enter the folder of the clone.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    std::fs::DirBuilder::new().create(to).map_err(cannot("make", to))?;
    let allow = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(cannot("open to all", path))
    };
    allow(to, 0o755)?;
    for entry in std::fs::read_dir(from).map_err(cannot("read", from))? {
        let entry = entry.map_err(cannot("read", from))?;
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &place)?;
        } else {
            std::fs::copy(&path, &place).map_err(cannot("copy", &path))?;
            allow(&place, 0o644)?;
        }
    }
    Ok(())
}

fn free_ports(names: &[String]) -> Result<BTreeMap<String, u16>, Failure> {
    let failed = |error| Failure::Unusable(format!("failed to find free ports on 127.0.0.1: {error}"));
    names.iter().map(|name| Ok((name.clone(), holdup_lab::ports::free().map_err(failed)?))).collect()
}

/// A private folder, removed with its contents when its last user is dropped.
pub(super) struct Scratch {
    pub path: PathBuf,
    keep: bool,
}

/// A socket's path may have 107 bytes, and a lab needs most of them behind `{dir}`.
const LONGEST_ROOT_BYTES: usize = 48;

impl Scratch {
    fn new() -> Result<Self, Failure> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut root = std::env::temp_dir();
        if root.as_os_str().len() > LONGEST_ROOT_BYTES && Path::new("/tmp").is_dir() {
            root = PathBuf::from("/tmp");
        }
        let keep = std::env::var_os("HOLDUP_KEEP_LAB").is_some_and(|v| !v.is_empty());
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = root.join(format!("holdup-{}-{count}", std::process::id()));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path, keep }),
                // Left by an earlier process with the same number; never reused, whatever its
                // origin.
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(cannot("make", path)(e)),
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep {
            // The rest stays in the system's temporary folder.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
