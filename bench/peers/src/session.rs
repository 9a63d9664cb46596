//! One command's worth: what to run is picked, tools are seen to, runs are made, the report is written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::results::{About, Results};
use crate::runner::Bench;
use crate::scenarios::{self, GROUPS, SERVER_CPU, Scenario, Size};
use crate::servers::{Kind, Programs};
use crate::tools::{self, install};
use crate::{host, process, report, system};

/// Files that a tool opens beside its connections, at most.
const FILES_BESIDE: u64 = 200;

/// What to run.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Rounds; in each, every tool runs once
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// One short round, to see that everything works; its figures mean nothing
    #[arg(long)]
    quick: bool,
    /// Only these groups of scenarios
    #[arg(long, value_delimiter = ',', value_parser = GROUPS)]
    only: Vec<String>,
    /// Only these tools
    #[arg(long, value_delimiter = ',')]
    tools: Vec<String>,
    /// Length of the idle scenario in seconds (600 shows whether memory stays flat)
    #[arg(long)]
    idle_seconds: Option<u32>,
    /// Folder for the results [default: bench/runs/DATE-HOST, with --quick target/bench/quick]
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Runs it, from the root of the checkout.
///
/// # Errors
/// Unknown tools, nothing to run, an interrupt, files that can't be written.
pub fn run(options: &Options) -> Result<()> {
    process::catch_interrupts();
    let root = std::env::current_dir()?;
    if !root.join("bench/peers/Cargo.toml").exists() {
        bail!("start it from the root of the checkout (cargo xtask bench does)");
    }
    if let Some(unknown) = options.tools.iter().find(|name| tools::named(name).is_none()) {
        let names: Vec<&str> = tools::ALL.iter().map(|tool| tool.name).collect();
        bail!("no tool is called {unknown}; there are {}", names.join(", "));
    }
    let host = host::Host::read();
    if host.cores < 2 {
        bail!("a server and a tool need a core each; this machine has one");
    }
    let mut results = Results { date: host::today(), caveats: caveats(options), ..Results::default() };
    let mut scenarios = picked(options);
    let mut bench = Bench {
        scratch: PathBuf::from(format!("target/bench/scratch-{}", std::process::id())),
        out: out(&root, options, &host),
        tools: BTreeMap::new(),
        programs: Programs { responder: own_path(&root)?, nginx: Err("not asked for".to_owned()) },
        root,
    };
    see_to(&mut bench, &mut scenarios, &mut results);
    if scenarios.is_empty() {
        bail!("nothing is left to run");
    }
    let files = system::raise_open_files();
    scenarios.retain(|scenario| {
        let enough = files > u64::from(scenario.demand.connections) + FILES_BESIDE;
        if !enough {
            let why = format!("the limit on open files is {files}; raise it with ulimit -n");
            absent(&mut results, &scenario.name, &why);
        }
        enough
    });
    results.host = host;
    results.scenarios = scenarios.iter().map(about).collect();
    let raw = bench.out.join("raw");
    fs::create_dir_all(&raw).with_context(|| format!("failed to make {}", raw.display()))?;

    // What it takes to watch a tool is the server's core's, not the tool's.
    system::pin_thread(SERVER_CPU)?;
    let rounds = if options.quick { 1 } else { options.rounds };
    println!("   {} scenarios, about {} minutes", scenarios.len(), minutes(&scenarios, rounds));
    let done = bench.run(&scenarios, rounds, &mut results);
    let _ = fs::remove_dir_all(bench.root.join(&bench.scratch));
    if results.runs.is_empty() {
        // Only folders that are empty are taken away.
        let _ = fs::remove_dir(&raw).and_then(|()| fs::remove_dir(&bench.out));
        return done;
    }
    // What was measured before an interrupt is kept.
    results.write(&bench.out)?;
    report(&bench.out)?;
    done
}

/// Makes the report of the results in `folder`, and prints its marks.
///
/// # Errors
/// No results there, or they can't be read.
pub fn report(folder: &Path) -> Result<()> {
    let results = Results::read(folder)?;
    let path = folder.join("report.md");
    fs::write(&path, report::markdown(&results)).with_context(|| format!("failed to write {}", path.display()))?;
    println!("{}", report::summary(&results));
    println!("report: {}", path.display());
    Ok(())
}

fn caveats(options: &Options) -> Vec<String> {
    let mut caveats = Vec::new();
    if options.quick {
        caveats.push("made with --quick: one short round, to see that everything works; no measurement".to_owned());
    }
    if cfg!(debug_assertions) {
        caveats.push("the responder is a debug build: it is slow, and CPU time and lateness mean nothing".to_owned());
    }
    if let Ok(path) = std::env::var(install::HOLDUP_VARIABLE) {
        let name = if path.contains("debug") { "a debug build" } else { "not the release build of this checkout" };
        caveats.push(format!("holdup is {name} ({} is set)", install::HOLDUP_VARIABLE));
    }
    caveats
}

fn picked(options: &Options) -> Vec<Scenario> {
    let size = Size { quick: options.quick, idle_seconds: options.idle_seconds };
    let mut scenarios = scenarios::all(size);
    scenarios.retain(|scenario| options.only.is_empty() || options.only.iter().any(|name| name == scenario.group));
    for scenario in &mut scenarios {
        let wanted = |tool: &str| options.tools.is_empty() || options.tools.iter().any(|name| name == tool);
        scenario.entrants.retain(|entrant| wanted(entrant.tool));
    }
    scenarios.retain(|scenario| !scenario.entrants.is_empty());
    scenarios
}

/// Gets what the scenarios need. What is not to be had is noted, and they go on without it.
fn see_to(bench: &mut Bench, scenarios: &mut Vec<Scenario>, results: &mut Results) {
    for tool in tools::ALL {
        if !scenarios.iter().flat_map(|scenario| &scenario.entrants).any(|entrant| entrant.tool == tool.name) {
            continue;
        }
        match install::see_to(&bench.root, tool) {
            Ok(found) => {
                results.versions.insert(tool.name.to_owned(), found.version.clone());
                bench.tools.insert(tool.name, found);
            }
            Err(error) => absent(results, tool.name, &format!("{error:#}")),
        }
    }
    if scenarios.iter().any(|scenario| matches!(scenario.server, Kind::Nginx { .. })) {
        match install::nginx(&bench.root) {
            Ok(found) => {
                results.versions.insert("nginx".to_owned(), found.version);
                bench.programs.nginx = Ok(found.program);
            }
            Err(error) => {
                absent(results, "nginx", &format!("{error:#}"));
                scenarios.retain(|scenario| !matches!(scenario.server, Kind::Nginx { .. }));
            }
        }
    }
    results.absent.insert("wrk2".to_owned(), "no registry that may be used here has it".to_owned());
}

fn absent(results: &mut Results, name: &str, why: &str) {
    println!("   {name} is not here: {why}");
    results.absent.insert(name.to_owned(), why.to_owned());
}

/// The folder for results: one of its own unless the user names one.
fn out(root: &Path, options: &Options, host: &host::Host) -> PathBuf {
    if let Some(out) = &options.out {
        return root.join(out);
    }
    if options.quick {
        let folder = root.join("target/bench/quick");
        let _ = fs::remove_dir_all(&folder);
        return folder;
    }
    let name = format!("{}-{}", host::today(), host.short());
    let names = std::iter::once(name.clone()).chain((2..).map(|n| format!("{name}-{n}")));
    let mut folders = names.map(|name| root.join("bench/runs").join(name));
    folders.find(|folder| !folder.exists()).unwrap_or_else(|| root.join("bench/runs").join(name))
}

/// This program, from the root of the checkout if it is in it.
fn own_path(root: &Path) -> Result<String> {
    let path = std::env::current_exe().context("failed to find this program")?;
    Ok(path.strip_prefix(root).unwrap_or(&path).display().to_string())
}

fn about(scenario: &Scenario) -> About {
    About {
        name: scenario.name.clone(),
        group: scenario.group.to_owned(),
        about: scenario.about.clone(),
        base: scenario.base.to_owned(),
        seconds: scenario.demand.seconds,
        rate: scenario.demand.rate,
        connections: scenario.demand.connections,
        stop_seconds: scenario.stop_seconds,
    }
}

/// How long it takes if nothing is repeated: each run's load, and a second around it.
fn minutes(scenarios: &[Scenario], rounds: u32) -> u32 {
    let seconds = |scenario: &Scenario| {
        rounds.min(scenario.rounds_most) * scenario.entrants.len() as u32 * (scenario.demand.seconds + 1)
    };
    scenarios.iter().map(seconds).sum::<u32>().div_ceil(60)
}
