//! Runs one variant of a lab. It starts the variant's processes in order, each when the previous
//! one is ready, and stops them in reverse order however the act ends. It does not restart a
//! process that dies, but reports it when asked.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use holdup_collect::ProbeError;
use holdup_collect::watch::{Options, collector};

use super::definition::{Process, Variant};
use super::placeholder::Scope;
use super::process::{POLL, Running};
use super::ready::Watcher;
use super::stage::{Scratch, Stage, not_started, program, run_step};
use crate::failure::Failure;

/// A variant whose processes run. Dropping it stops them.
pub struct Act {
    /// The scenario's text with all placeholders filled in.
    pub scenario: String,
    /// The file it was read from; line numbers are the same.
    pub scenario_file: PathBuf,
    /// Sources to watch, as for `--watch`, with the lab's passwords. Sources of processes that this
    /// variant does not start are left out.
    pub watch: Vec<String>,
    /// In the order of their start.
    running: Vec<Running>,
    scope: Scope,
    /// Their folder; it may outlive the stage.
    _scratch: Arc<Scratch>,
}

/// Whether this account may read a source. One that fails for another reason counts as allowed, and
/// the recording says why it failed.
fn is_allowed(address: &str) -> bool {
    let probed = collector(address, &Options::default()).and_then(|mut source| source.probe());
    !matches!(probed, Err(ProbeError::Denied { .. }))
}

impl Stage<'_> {
    /// Starts a variant and waits until it is ready. `say` gets a line for each process.
    ///
    /// Call it from the main thread, or from one that lives at least as long as the [`Act`]. The
    /// kernel ends the processes when the *thread* that started them ends, so that they cannot
    /// outlive a killed holdup.
    ///
    /// # Errors
    /// If the variant does not exist; if a process cannot be started, dies, or is not ready in
    /// time; if one of its commands fails; [`Failure::Interrupted`] once `stop` is set. All
    /// started processes have been stopped by then.
    pub fn start(&self, variant: &str, say: &dyn Fn(&str), stop: &AtomicBool) -> Result<Act, Failure> {
        let variant = self.lab.variant(variant)?;
        let scenario = variant.scenario.as_ref().unwrap_or(&self.lab.scenario);
        self.check_ports()?;
        let mut act = Act {
            scenario: String::new(),
            scenario_file: scenario.path.clone(),
            watch: Vec::new(),
            running: Vec::new(),
            scope: self.scope.clone(),
            _scratch: Arc::clone(&self.scratch),
        };
        for name in &variant.start {
            if let Some(process) = self.lab.process(name) {
                self.start_one(&mut act, process, variant, say, stop)?;
            }
        }
        act.scenario =
            act.scope.fill(&scenario.text).map_err(|process| not_started(&variant.name, "the scenario", process))?;
        let filled = |addresses: &[String]| -> Vec<String> {
            addresses.iter().filter_map(|address| act.scope.fill(address).ok()).collect()
        };
        let allowed = filled(&self.lab.watch_if_allowed).into_iter().filter(|address| is_allowed(address));
        let own = filled(&variant.watch);
        act.watch = filled(&self.lab.watch).into_iter().chain(own).chain(allowed).collect();
        Ok(act)
    }

    /// Starts what writes down the outputs of standard tools beside a started variant. Returns the
    /// file that will hold them, which goes with the [`Act`].
    ///
    /// # Errors
    /// If the lab has no such process; else as for [`Stage::start`].
    pub fn start_by_hand(
        &self,
        act: &mut Act,
        variant: &str,
        say: &dyn Fn(&str),
        stop: &AtomicBool,
    ) -> Result<PathBuf, Failure> {
        let variant = self.lab.variant(variant)?;
        let (process, paste) = self.lab.tools()?;
        self.start_one(act, process, variant, say, stop)?;
        let filled = act.scope.fill(paste);
        Ok(PathBuf::from(filled.map_err(|process| not_started(&variant.name, "the paste", process))?))
    }

    fn start_one(
        &self,
        act: &mut Act,
        process: &Process,
        variant: &Variant,
        say: &dyn Fn(&str),
        stop: &AtomicBool,
    ) -> Result<(), Failure> {
        if stop.load(Ordering::SeqCst) {
            return Err(Failure::Interrupted);
        }
        let name = &process.name;
        let mut launch = process.launch.clone();
        launch.run.extend(variant.arguments.get(name).cloned().unwrap_or_default());
        launch.env.extend(variant.env.get(name).cloned().unwrap_or_default());

        say(&format!("starting {name}"));
        let began = Instant::now();
        let program = program(&act.scope, name, &launch, &variant.name)?;
        let dir = &self.scratch.path;
        let running = Running::start(program, dir, &self.log(name), process.stop_signal, process.stop_within)?;
        act.scope.pids.insert(name.clone(), running.pid());
        act.running.push(running);
        act.wait_until_ready(process, &variant.name, stop)?;
        say(&format!("{name} is ready after {:.1} s", began.elapsed().as_secs_f64()));

        for step in &process.then {
            let what = format!("preparing {name}");
            say(&what);
            run_step(&act.scope, dir, &what, step, &self.log(&format!("{name}.then")), &variant.name, stop)?;
        }
        Ok(())
    }

    /// A program that has taken a port since it was chosen would look as if our own process were
    /// ready.
    fn check_ports(&self) -> Result<(), Failure> {
        for (name, port) in &self.scope.ports {
            if TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_err() {
                return Err(Failure::Unusable(format!(
                    "port.{name}: another program has taken port {port} of 127.0.0.1 meanwhile; run the lab again"
                )));
            }
        }
        Ok(())
    }
}

impl Act {
    /// Waits for the process that was started last.
    fn wait_until_ready(&self, process: &Process, variant: &str, stop: &AtomicBool) -> Result<(), Failure> {
        let (Some(ready), Some(running)) = (&process.ready, self.running.last()) else { return Ok(()) };
        let mut watcher = Watcher::new(ready, &self.scope, &running.log)
            .map_err(|other| not_started(variant, &process.name, other))?;
        let log = || running.log.quote(|line| self.scope.redact(line));
        let deadline = Instant::now() + process.ready_within;
        loop {
            if stop.load(Ordering::SeqCst) {
                return Err(Failure::Interrupted);
            }
            if let Some(ending) = running.ending() {
                return Err(Failure::Unusable(format!("{} {ending} before it was ready{}", process.name, log())));
            }
            if watcher.is_ready() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let (name, within, lacks) = (&process.name, process.ready_within, watcher.words());
                return Err(Failure::Unusable(format!(
                    "{name} was not ready within {within:?}: it still lacks {lacks}{}",
                    log()
                )));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Describes a process that has ended, with the last line it wrote; none while all run.
    pub fn dead(&self) -> Option<String> {
        self.running.iter().find_map(|running| {
            let ending = running.ending()?;
            let last = running.log.last_lines().pop();
            let last = last.map(|line| format!("; its last line: {}", self.scope.redact(&line))).unwrap_or_default();
            Some(format!("{} {ending}{last}", running.what))
        })
    }

    /// Stops its processes, the last started first, and waits for their end.
    pub fn stop(mut self) {
        self.stop_all();
    }

    fn stop_all(&mut self) {
        while let Some(mut running) = self.running.pop() {
            running.stop();
        }
    }
}

impl Drop for Act {
    fn drop(&mut self) {
        self.stop_all();
    }
}
