//! `holdup run`: load, collectors, verdict.

mod repeated;

use holdup_collect::watch;
use holdup_diagnose::Diagnosis;
use holdup_load::model::Load;
use holdup_load::scenario::Scenario;

use self::repeated::RepeatArgs;
use super::output_args::OutputArgs;
use super::scenario_args::{LoadFlags, ScenarioArgs};
use super::{Output, conclude, describe};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::recorded::Recorded;
use crate::repeat::quota;
use crate::session;
use crate::session::Session;
use crate::storing::{CasePart, StoreArgs};

/// Put load on a service, record every layer, and name what holds it up
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup run scenario.yaml
  holdup run --url http://127.0.0.1:8080/search --rate 500 --duration 20s --connections 50
  holdup run --url http://127.0.0.1:8080/ --steps 50:300:50 --watch host --watch pid:4711
  holdup run --url http://127.0.0.1:8080/ --spike 50:500:10s:5s --duration 30s --poisson
  holdup run --url http://127.0.0.1:8080 --replay access.log --speed 2 --duration 10m
  holdup run --url http://127.0.0.1:8080/ --closed --connections 64 --think 200ms --duration 1m
  holdup run --url https://127.0.0.1:8443/ --rate 200 --http 2 --streams 10 --insecure -H 'Accept: text/html'
  holdup run scenario.yaml --var tenant=acme --check
  holdup run --url http://127.0.0.1:8080/ --search 50:5000 --within 3m
  holdup run --url mysql://app@127.0.0.1:3306/shop --query 'SELECT * FROM item WHERE id = ?' --param '${random(1, 5000)}' --rate 100
  holdup run --url mongodb://app@127.0.0.1/shop --query '{\"find\": \"item\", \"limit\": 1}' --rate 100
  holdup run scenario.yaml --shard 2/5 --start-at 2030-01-31T12:00:00Z
  holdup run scenario.yaml --out csv:seconds.csv --out junit:objectives.xml --metrics 127.0.0.1:9464
  holdup run scenario.yaml --out - | jq -c '[.elapsed_s, .response_ms.p99]'
  holdup run scenario.yaml --threshold 'p99 < 500ms' --fail-on-finding --json -o recordings/nightly
  holdup run scenario.yaml --store clickhouse://writer@db7/holdup
  holdup run scenario.yaml --repeat 5
  holdup run scenario.yaml --repeat 5 --interleave 'before=./deploy.sh v1' 'after=./deploy.sh v2' --ready http://127.0.0.1:8080/health

Without a source to watch, holdup watches this host if the service is on it.
Response time counts from the intended start of each request: only with --closed does the load wait for the service.
Set the password for mysql:// in HOLDUP_MYSQL_PASSWORD, for postgres:// in HOLDUP_POSTGRES_PASSWORD, for mongodb:// in
HOLDUP_MONGODB_PASSWORD.
Statements and commands are executed unchanged, even those that change data: use a database made for tests.")]
pub struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,

    /// Exit with 1 if a culprit is found
    #[arg(long)]
    fail_on_finding: bool,

    /// Check the scenario, and stop
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    store: StoreArgs,

    // From here on with headings, because clap puts everything that follows under them.
    #[command(flatten)]
    repeats: RepeatArgs,

    #[command(flatten)]
    flags: LoadFlags,

    #[command(flatten)]
    ways: OutputArgs,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let versions = args.repeats.versions()?;
    let mut ways = args.ways.outputs(args.output.json)?;
    let store = args.store.target()?;
    let scenario = args.scenario.scenario(&args.flags)?;
    if args.check {
        return check(&args, &scenario);
    }
    if let Some(versions) = versions {
        return repeated::run(&args, &scenario, &versions);
    }
    say_notes(&args, &scenario);
    quota::restore_if_any();
    let stop = crate::stop::stop_flag()?;
    let mut progress = Progress::for_scenario(&scenario, args.output.quiet);
    let dir = args.output.dir(&scenario.name);
    let planned = args.scenario.session(&scenario, &dir);
    let part = CasePart::new(planned.recording_id, &session::host(), session::shard(&scenario).as_deref());
    let store = store.map(|target| target.with_part(part));
    let session = Session { store: store.as_ref(), ..planned };
    let mut recorded = session::record_to(&mut ways, &session, &mut progress, &stop)?;
    let concluded = conclude(&recorded, args.output.json);
    recorded.store_rest(&mut progress);
    let diagnosis = concluded?;
    ways.finish(&recorded, &diagnosis).iter().for_each(|trouble| progress.warn(trouble));
    outcome(&args, &recorded, &diagnosis)
}

/// Says that the scenario is valid, and what it will send.
fn check(args: &Args, scenario: &Scenario) -> Result<(), Failure> {
    let options = watch::Options { partial: args.scenario.sampling.partial, slow: None };
    for address in &scenario.watch {
        watch::collector(address, &options).map_err(Failure::unusable)?;
    }
    let probes = scenario.probes.iter().map(|address| watch::collector(address, &options));
    let probes = probes.collect::<Result<Vec<_>, _>>().map_err(Failure::unusable)?;
    for line in describe::describe(scenario) {
        outln!("{line}");
    }
    // Sources by name, because their addresses may hold secrets.
    for probe in probes {
        outln!("health probe, not part of the load: {}", probe.source());
    }
    Ok(())
}

/// Prints which parts of a replayed log could not be replayed.
fn say_notes(args: &Args, scenario: &Scenario) {
    if let Load::Open(schedule) = &scenario.load
        && !args.output.quiet
    {
        for note in schedule.replay().iter().flat_map(|replay| &replay.notes) {
            errln!("{note}");
        }
    }
}

/// The exit status: success, or the first thing that is wrong.
fn outcome(args: &Args, recorded: &Recorded, diagnosis: &Diagnosis) -> Result<(), Failure> {
    if recorded.interrupted {
        return Err(Failure::Interrupted);
    }
    if let Some(failed) = &recorded.failed {
        return Err(Failure::No(format!("the load ended early: {failed}")));
    }
    if let Some(search) = diagnosis.search.as_ref().filter(|search| !search.is_answered()) {
        let why = search.refused.clone().unwrap_or_else(|| search.unresolved.join("; "));
        return Err(Failure::Unusable(format!("the search has no answer: {why}")));
    }
    let missed = &diagnosis.load.objectives_missed;
    if !missed.is_empty() {
        let early = diagnosis.load.aborted.as_ref().map_or_else(String::new, |text| format!("{text}; "));
        return Err(Failure::No(format!("{early}objective missed: {}", missed.join("; "))));
    }
    if args.fail_on_finding && diagnosis.is_named() {
        return Err(Failure::No(diagnosis.headline.clone()));
    }
    Ok(())
}
