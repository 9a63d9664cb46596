//! `holdup capacity`: searches for the knee at several values of one setting. From these it tells
//! how capacity grows and how many instances a load takes.

mod args;
mod searches;

use std::path::PathBuf;

use holdup_compare::capacity::{CapacityReport, judge};

use self::args::{DemandArgs, Vary};
use super::scenario_args::{LoadFlags, ScenarioArgs};
use super::{Output, print_json};
use crate::failure::Failure;
use crate::repeat::quota;
use crate::repeat::switch::SwitchArgs;
use crate::terminal;

/// Find what a service carries, what binds first, and how many instances a load takes
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup capacity search.yaml --for-rate 300
  holdup capacity --url http://127.0.0.1:8080/ --search 10:2000 --for-rate 3x --headroom 30%
  holdup capacity search.yaml --vary cpu=0.5,1,2 --cgroup /sys/fs/cgroup/app
  holdup capacity search.yaml --vary cpu=1,2,4 --with 'docker update --cpus {cpu} app'
  holdup capacity search.yaml --vary workers=2,4,8 --with './restart.sh --workers {workers}' --ready http://127.0.0.1:8080/health
  holdup capacity search.yaml --vary cpu=1,2 --cgroup app --repeat 3 --for-rate 500 --connections-per-instance 10 --connection-budget 100
  holdup capacity --from recordings/capacity-20301231T120000Z --for-rate 900 --markdown
  holdup capacity --restore

The scenario's load is a search (load: {search: knee}, or --search). Searches run at each value, in random order.
Exit codes: 0 each value has a knee; 1 the instances' connections exceed the budget; 2 no knee at some value,
or nothing could be measured; 130 interrupted (holdup keeps and judges the recordings so far).")]
pub struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,

    #[command(flatten)]
    output: Output,

    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,

    /// Variable and its values
    #[arg(long, value_name = "NAME=VALUE,…", value_parser = args::vary, help_heading = "What is varied")]
    vary: Option<Vary>,

    /// Shell command that sets a value; {NAME} stands for it
    #[arg(long, value_name = "COMMAND", requires = "vary", help_heading = "What is varied")]
    with: Option<String>,

    /// Set the values as CPU quota of this cgroup (folder or name), restored at the end
    #[arg(long, value_name = "CGROUP", requires = "vary", conflicts_with = "with", help_heading = "What is varied")]
    cgroup: Option<PathBuf>,

    /// Searches at each value
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100), help_heading = "What is varied")]
    repeat: u32,

    /// Seed of the order in which values are measured
    #[arg(long, value_name = "N", help_heading = "What is varied")]
    order_seed: Option<u64>,

    /// Judge earlier recordings again, without load
    #[arg(long, value_name = "RECORDING", num_args = 1.., conflicts_with_all = ["file", "url", "vary", "output"], help_heading = "What is varied")]
    from: Vec<PathBuf>,

    /// Restore CPU quotas that a killed holdup left changed, and stop
    #[arg(long, exclusive = true, help_heading = "What is varied")]
    restore: bool,

    #[command(flatten)]
    switch: SwitchArgs,

    #[command(flatten)]
    demanded: DemandArgs,

    // Last, because clap puts everything that follows under their headings.
    #[command(flatten)]
    flags: LoadFlags,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if args.restore {
        return quota::restore();
    }
    quota::restore_if_any();
    let (axis, runs, ended) = if args.from.is_empty() { searches::play(args)? } else { searches::again(&args.from)? };
    if runs.is_empty() {
        return ended;
    }
    let demand = args.demanded.demand();
    let report = judge(axis.as_deref(), runs, demand.as_ref());
    if args.output.json {
        print_json(&report)?;
    } else if args.markdown {
        terminal::print(&terminal::capacity::markdown(&report));
    } else {
        terminal::print(&terminal::capacity::capacity(&report));
    }
    ended.and_then(|()| outcome(&report))
}

/// The exit status: success, or the first thing that is wrong.
fn outcome(report: &CapacityReport) -> Result<(), Failure> {
    if let Some(setting) = report.settings.iter().find(|setting| setting.knee.is_none()) {
        let at = setting.value.map_or_else(String::new, |value| format!(" at {}", report.name(Some(value))));
        let why = setting.no_knee.as_deref().unwrap_or("no search was made");
        return Err(Failure::Unusable(format!("the search{at} has no knee: {why}")));
    }
    match &report.plan {
        Some(plan) if !plan.fits() => {
            Err(Failure::No("the instances for this load open more connections than the budget allows".to_owned()))
        }
        _ => Ok(()),
    }
}
