//! Runs scenarios: rounds in which every tool runs once, one after the other, in an order that turns from round to
//! round. So a tool and what it is held against run within minutes of each other, and none is always first.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};

use crate::host::Ticks;
use crate::lateness::{self, Arrivals};
use crate::process::{Ended, Running, interrupted};
use crate::results::{Cleaner, Results, Run, cut, raw_file};
use crate::scenarios::{Entrant, Scenario};
use crate::servers::{Kind, Programs, Server};
use crate::tools::install::Found;
use crate::tools::{self, Ask, Output};

/// Share of the machine's CPU time that others may take before a run counts as disturbed.
pub const STOLEN_MOST: f64 = 0.1;

/// How often a disturbed run is repeated.
const REPEATED_MOST: u32 = 2;

/// How much longer than its load a tool may take.
const GRACE: Duration = Duration::from_secs(60);

/// Pause before each run, for closed connections to be cleared away.
const PAUSE: Duration = Duration::from_millis(500);

/// When memory is looked at for the idle scenario.
const RESIDENT_AT_SECONDS: f64 = 10.0;

/// All raw texts together are at most this, as long as runs are not repeated.
const RAW_BYTES_MOST: usize = 120_000;

/// Most of it that a run of the first round gets: enough for all that most tools say.
const RAW_BYTES_FIRST: usize = 1_500;

/// Everything that runs have in common.
#[derive(Debug)]
pub struct Bench {
    /// The checkout.
    pub root: PathBuf,
    /// Where files of a run go, from the root; emptied for each.
    pub scratch: PathBuf,
    /// Where results go.
    pub out: PathBuf,
    /// Tools that are here.
    pub tools: BTreeMap<&'static str, Found>,
    /// Servers.
    pub programs: Programs,
}

impl Bench {
    /// Runs them all, in `rounds`, and writes what there is after every round.
    ///
    /// # Errors
    /// Ctrl-C, or nothing can be written. A tool that fails is a result.
    pub fn run(&self, scenarios: &[Scenario], rounds: u32, results: &mut Results) -> Result<()> {
        let of = |scenario: &Scenario| rounds.min(scenario.rounds_most);
        let runs = |of: &dyn Fn(&Scenario) -> u32| -> usize {
            scenarios.iter().map(|scenario| self.present(scenario).len() * of(scenario) as usize).sum()
        };
        let (first, all) = (runs(&|_| 1), runs(&of));
        let later = RAW_BYTES_MOST.saturating_sub(first * RAW_BYTES_FIRST) / (all - first).max(1);
        let later = later.min(RAW_BYTES_FIRST);
        // Scenarios that are gone through once a round, rather than rounds of one scenario after those of another:
        // a slow hour of the machine then falls on all of them.
        for round in 1..=rounds {
            for scenario in scenarios.iter().filter(|scenario| round <= of(scenario)) {
                println!("== {} ({round} of {})", scenario.name, of(scenario));
                let mut entrants = self.present(scenario);
                let first = (round - 1) as usize % entrants.len().max(1);
                entrants.rotate_left(first);
                let raw_bytes = if round == 1 { RAW_BYTES_FIRST } else { later };
                for (entrant, place) in entrants.into_iter().zip(1..) {
                    self.until_undisturbed(scenario, entrant, (round, place), raw_bytes, results)?;
                }
            }
            results.write(&self.out)?;
        }
        Ok(())
    }

    fn present<'a>(&self, scenario: &'a Scenario) -> Vec<&'a Entrant> {
        scenario.entrants.iter().filter(|entrant| self.tools.contains_key(entrant.tool)).collect()
    }

    fn until_undisturbed(
        &self,
        scenario: &Scenario,
        entrant: &Entrant,
        (round, place): (u32, u32),
        raw_bytes: usize,
        results: &mut Results,
    ) -> Result<()> {
        for attempt in 1..=1 + REPEATED_MOST {
            let mut run = Run {
                scenario: scenario.name.clone(),
                entrant: entrant.label.clone(),
                round,
                place,
                attempt,
                ..Run::default()
            };
            std::thread::sleep(PAUSE);
            let before = Ticks::now();
            let raw = self.once(scenario, entrant, &mut run);
            run.stolen_ratio = (before.stolen_ratio(Ticks::now()) * 1e4).round() / 1e4;
            run.disturbed = run.stolen_ratio > STOLEN_MOST;
            if interrupted() {
                bail!("interrupted");
            }
            let raw = raw.unwrap_or_else(|error| {
                run.failed = Some(Cleaner::new(&self.root).clean(&format!("{error:#}")));
                self.said()
            });
            self.keep_raw(&run, &raw, raw_bytes)?;
            println!("   {}", line(&run));
            let disturbed = run.disturbed;
            if round > 1 || attempt > 1 {
                run.server_command.clear();
            }
            results.runs.push(run);
            if !disturbed {
                break;
            }
        }
        Ok(())
    }

    /// One run. Returns what the tool printed.
    fn once(&self, scenario: &Scenario, entrant: &Entrant, run: &mut Run) -> Result<String> {
        let scratch = self.root.join(&self.scratch);
        if scratch.exists() {
            fs::remove_dir_all(&scratch)?;
        }
        fs::create_dir_all(&scratch)?;
        let tool = tools::named(entrant.tool).context("no such tool")?;
        let found = self.tools.get(entrant.tool).context("the tool is not here")?;
        let stamps = self.scratch.join("stamps");
        let (server_cpus, tool_cpus) = &entrant.cpus;
        let kind = with_stamps(scenario, &stamps);
        let server = Server::start(&kind, &self.programs, &self.root, &self.scratch, server_cpus)?;
        run.server_command = server.command.join(" ");

        let (url, port, demand) = (server.url.as_str(), server.port, scenario.demand);
        let ask = Ask { demand, url, port, flags: &entrant.flags, scratch: &self.scratch };
        let cores = tool_cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let mut command: Vec<String> = vec!["taskset".into(), "-c".into(), cores, found.program.clone()];
        command.extend((tool.arguments)(&ask)?);
        run.command = Cleaner::new(&self.root).clean(&command.join(" "));
        let (stdout, stderr) = (scratch.join("tool.out"), scratch.join("tool.err"));
        let running = Running::start(&command, &self.root, &stdout, &stderr)?;
        let ended = running.wait(Duration::from_secs(demand.seconds.into()) + GRACE)?;
        let stopped = server.stop()?;

        take(run, &ended);
        run.server_cpu_seconds = ((stopped.cpu.user_seconds + stopped.cpu.system_seconds) * 1e6).round() / 1e6;
        run.seen = stopped.seen;
        let output = Output {
            stdout: fs::read_to_string(&stdout).unwrap_or_default(),
            scratch: self.scratch.clone(),
            program: found.program.clone(),
        };
        run.reported = (tool.read)(&output).map_err(|error| {
            let said = fs::read_to_string(&stderr).unwrap_or_default();
            let said = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it gave no reason");
            match ended.code {
                Some(0) => error.context("its report can't be read"),
                Some(code) => anyhow!("it ended with exit code {code}: {said}"),
                None => anyhow!("a signal ended it: {said}"),
            }
        })?;
        let is_open = demand.rate.is_some() && tool.paces;
        let seconds = if is_open { run.wall_seconds } else { demand.seconds.into() };
        run.answers_per_second = (run.reported.completed as f64 / seconds * 10.0).round() / 10.0;
        if scenario.is_stamped() && tool.paces {
            run.arrivals = arrivals(&self.root.join(stamps), demand.rate)?;
        }
        Ok(self.said())
    }

    /// What is kept of what the tool of the last run said.
    fn said(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.root.join(&self.scratch).join(name)).unwrap_or_default();
        let report = read(tools::REPORT);
        let (stdout, stderr) = (if report.is_empty() { read("tool.out") } else { report }, read("tool.err"));
        if stderr.trim().is_empty() { stdout } else { format!("{stdout}\n[stderr]\n{stderr}") }
    }

    fn keep_raw(&self, run: &Run, raw: &str, bytes: usize) -> Result<()> {
        let path = raw_file(&self.out, &run.scenario, &run.entrant);
        let mut file = File::options().create(true).append(true).open(&path)?;
        let text = cut(&Cleaner::new(&self.root).clean(raw), bytes);
        writeln!(file, "--- round {} attempt {}\n{text}", run.round, run.attempt)?;
        Ok(())
    }
}

fn with_stamps(scenario: &Scenario, file: &Path) -> Kind {
    let mut kind = scenario.server.clone();
    if let Kind::Responder(arguments) = &mut kind
        && scenario.is_stamped()
    {
        arguments.extend(["--stamps".to_owned(), file.display().to_string()]);
    }
    kind
}

fn take(run: &mut Run, ended: &Ended) {
    run.wall_seconds = (ended.wall_seconds * 1e4).round() / 1e4;
    run.user_seconds = ended.cpu.user_seconds;
    run.system_seconds = ended.cpu.system_seconds;
    run.resident_most_bytes = ended.resident_most_bytes;
    let at = ended.resident.iter().find(|(seconds, _)| *seconds >= RESIDENT_AT_SECONDS);
    run.resident_10s_bytes = at.map(|(_, bytes)| *bytes);
    run.resident_last_bytes = ended.resident.last().map(|(_, bytes)| *bytes);
}

fn arrivals(file: &Path, rate: Option<u32>) -> Result<Option<Arrivals>> {
    let bytes = fs::read(file).context("the responder left no stamps")?;
    let words = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok());
    let mut stamps: Vec<u64> = words.map(u64::from_le_bytes).collect();
    Ok(rate.and_then(|rate| lateness::fit(&mut stamps, rate.into(), lateness::WARM_UP_NS)))
}

/// A run in one line, for whoever waits.
fn line(run: &Run) -> String {
    let mut line = format!("{:<28}", run.entrant);
    if let Some(why) = &run.failed {
        return format!("{line} failed: {why}");
    }
    let (completed, rate) = (run.reported.completed, run.answers_per_second);
    line += &format!("{completed:>9} answers {rate:>8.0}/s {:>7.2} us each", run.cpu_us().unwrap_or(0.0));
    if let Some(p99_ms) = run.reported.p99_ms {
        line += &format!("  p99 {p99_ms:.2} ms");
    }
    if let Some(arrivals) = &run.arrivals {
        line += &format!("  late p50 {:.3} p99 {:.3} ms", arrivals.late_p50_ms, arrivals.late_p99_ms);
    }
    line += &format!("  {:.1} MB", run.resident_most_bytes as f64 / 1e6);
    if run.disturbed {
        line += &format!("  disturbed: {:.0} % stolen", run.stolen_ratio * 100.0);
    }
    line
}
