//! holdup: what's the holdup? This file is the table of contents; each subcommand is a file in
//! `commands/`.

#[macro_use]
mod terminal;

mod around;
mod bundle;
mod charts;
mod commands;
mod descriptors;
mod ending;
mod failure;
mod figures;
mod history;
mod html;
mod lab;
mod markdown;
mod objectives;
mod outputs;
mod progress;
mod recorded;
mod repeat;
mod replay;
mod secret;
mod secret_values;
mod session;
mod stop;
mod storing;
mod underway;

use std::ffi::OsString;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use failure::Failure;

/// musl's own allocator makes threads wait for one another.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Finds what is holding up a database-backed service: puts load on it or just watches it, accounts for
/// every millisecond of the slow requests, and names the culprit with its evidence.
#[derive(Parser)]
#[command(name = "holdup", version = VERSION, about, long_about = None, propagate_version = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Version, and the commit if it is known.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("HOLDUP_COMMIT_SHOWN"));

const EXAMPLES: &str = "\
Examples:
  holdup demo                                                 load, verdict and fix of a bundled service in a minute
  holdup run --url http://127.0.0.1:8080/ --rate 500 --duration 20s --watch host
  holdup run scenario.yaml -o recordings/first                send the scenario's load, watch, and judge
  holdup watch --watch host --watch mysql://holdup@127.0.0.1:3306 --for 60s
  holdup capacity search.yaml --vary cpu=1,2 --cgroup app     its capacity, and the gain from twice the CPU
  holdup diagnose recordings/first                            judge a recording again
  holdup compare recordings/before recordings/after           what is better, worse, or unclear
  holdup gate recordings/build --baselines baselines --branch b --commit c   fail a pull request that is slower
  holdup top mysql://holdup@127.0.0.1:3306                    the true state of a database's sessions
  holdup digest /var/log/mysql/slow.log                       rank the statements in a database's log
  holdup replay slow.log --to mysql://app@127.0.0.1:3306/shop  send a log's statements to another server
  holdup doctor                                               what holdup can see from here, and how to see the rest

Exit codes: 0 fine, 1 the answer is \"no\" (objective missed, a culprit with --fail-on-finding, worse with --fail-on),
2 unusable input or target (nothing was measured), 130 interrupted (the recording so far is kept).";

#[derive(clap::Subcommand)]
enum Command {
    Demo(commands::demo::Args),
    Run(Box<commands::run::Args>),
    Capacity(Box<commands::capacity::Args>),
    Watch(commands::watch::Args),
    Diagnose(commands::diagnose::Args),
    Compare(commands::compare::Args),
    Gate(commands::gate::Args),
    Digest(Box<commands::digest::Args>),
    Advise(commands::advise::Args),
    Replay(Box<commands::replay::Args>),
    Report(commands::report::Args),
    Top(commands::top::Args),
    Settle(commands::settle::Args),
    Doctor(commands::doctor::Args),
    Explain(commands::explain::Args),
    Bundle(commands::bundle::Args),
    Mcp(commands::mcp::Args),
    Init(commands::init::Args),
    Generate(commands::generate::Args),
    Import(commands::import::Args),
    Store(commands::store::Args),
    Lab(commands::lab::Args),
    Completion(commands::completion::Args),
    Man(commands::man::Args),
    /// The names that a completion script asks for
    #[command(hide = true)]
    Candidates(commands::completion::CandidatesArgs),
    /// The service behind the demo and the labs
    #[command(hide = true)]
    Service(holdup_lab::service::Options),
    /// The noisy neighbour of the labs
    #[command(name = "hog", hide = true)]
    NoisyNeighbour(holdup_lab::service::NoisyNeighbourOptions),
    /// The throttled disk of the labs
    #[command(hide = true)]
    Disk(commands::disk::Args),
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    secret::hide_in_process_list();
    let cli = match parsed(&arguments) {
        Ok(cli) => cli,
        Err(error) => return failure::arguments(&error, &arguments),
    };
    let result = failure::guarded(|| execute(cli.command));
    failure::exit(result, &arguments)
}

fn execute(command: Command) -> Result<(), Failure> {
    match command {
        Command::Demo(args) => commands::demo::run(args),
        Command::Run(args) => commands::run::run(*args),
        Command::Capacity(args) => commands::capacity::run(&args),
        Command::Watch(args) => commands::watch::run(args),
        Command::Diagnose(args) => commands::diagnose::run(args),
        Command::Compare(args) => commands::compare::run(args),
        Command::Gate(args) => commands::gate::run(args),
        Command::Digest(args) => commands::digest::run(*args),
        Command::Advise(args) => commands::advise::run(args),
        Command::Replay(args) => commands::replay::run(*args),
        Command::Report(args) => commands::report::run(args),
        Command::Top(args) => commands::top::run(args),
        Command::Settle(args) => commands::settle::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Bundle(args) => commands::bundle::run(args),
        Command::Mcp(args) => commands::mcp::run(&args),
        Command::Explain(args) => commands::explain::run(args),
        Command::Init(args) => commands::init::run(args),
        Command::Generate(args) => commands::generate::run(&args),
        Command::Import(args) => commands::import::run(args),
        Command::Store(args) => commands::store::run(args),
        Command::Lab(args) => commands::lab::run(args),
        Command::Completion(args) => commands::completion::run(&args, Cli::command()),
        Command::Man(args) => commands::man::run(&args, Cli::command()),
        Command::Candidates(args) => {
            commands::completion::candidates(&args);
            Ok(())
        }
        Command::Service(options) => {
            take_name("holdup-service");
            holdup_lab::service::run(options).map_err(Failure::unusable)
        }
        Command::NoisyNeighbour(options) => {
            holdup_lab::service::run_noisy_neighbour(options).map_err(Failure::unusable)
        }
        Command::Disk(options) => commands::disk::run(&options),
    }
}

/// Reads the command line. `--rate -5` is a wrong rate, not an unknown flag.
fn parsed(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let mut program = Cli::command().mut_subcommands(|command| {
        command.mut_args(|arg| {
            let is_valued = arg.get_action().takes_values() && !arg.is_positional();
            arg.allow_negative_numbers(is_valued)
        })
    });
    let matches = program.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut program))
}

/// Gives this process the name that `ps` and recordings show. One that was started as /proc/self/exe is called `exe`.
fn take_name(name: &str) {
    let _ = std::fs::write("/proc/self/comm", name);
}

#[cfg(test)]
mod deployed_tests;
