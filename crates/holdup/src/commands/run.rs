//! `holdup run`: load, collectors, verdict.

use std::path::PathBuf;
use std::time::Duration;

use holdup_collect::watch;
use holdup_diagnose::verdict::Answer;
use holdup_load::model::Load;
use holdup_load::scenario::{self, Given, Scenario, Target};
use holdup_recording::clock;
use holdup_recording::manifest::Threshold;

use super::describe;
use super::http_args::HttpArgs;
use super::load_args::LoadArgs;
use super::output_args::OutputArgs;
use super::sql_args::SqlArgs;
use super::{Output, Sampling, conclude, duration};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::session::{self, Session};

/// Put load on a service, record what every layer says meanwhile, and name what holds it up
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
  holdup run scenario.yaml --shard 2/5 --start-at 2030-01-31T12:00:00Z
  holdup run scenario.yaml --out csv:seconds.csv --out junit:objectives.xml --metrics 127.0.0.1:9464
  holdup run scenario.yaml --out - | jq -c '[.elapsed_s, .response_ms.p99]'
  holdup run scenario.yaml --threshold 'p99 < 500ms' --fail-on-finding --json -o recordings/nightly

Without a source to watch, this host is watched if the service is on it.
Response time counts from the intended start of each request: the load never waits for the service, but with --closed.
A password for mysql:// is best given in HOLDUP_MYSQL_PASSWORD, one for postgres:// in HOLDUP_POSTGRES_PASSWORD.
Statements are executed as they are, those that change data too: as load, on a database that is there for it.")]
pub struct Args {
    /// Scenario file
    #[arg(value_name = "SCENARIO", required_unless_present = "url", conflicts_with = "url")]
    scenario: Option<PathBuf>,

    /// Value of one of the scenario's vars; repeatable
    #[arg(long = "var", value_name = "NAME=VALUE", requires = "scenario", value_parser = variable)]
    vars: Vec<(String, String)>,

    /// Where to, in place of the scenario's target
    #[arg(long, value_name = "URL", requires = "scenario")]
    target: Option<String>,

    /// Quick form: GET this URL, or execute --query on this database (mysql://USER@HOST/DATABASE, postgres://…)
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// Most requests in flight; in a closed model, its users [default: the scenario's, or 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(scenario::MAX_CONNECTIONS)))]
    connections: Option<u32>,

    /// Longest wait for a free connection, and then for the response [default: the scenario's, or 10s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,

    /// Objective, e.g. 'p99 < 500ms' or 'errors < 1%'; missed, the exit code is 1; repeatable
    #[arg(long = "threshold", value_name = "OBJECTIVE")]
    thresholds: Vec<String>,

    /// Objective that ends the run when it is missed, e.g. 'errors < 5% for 10s'; repeatable
    #[arg(long, value_name = "OBJECTIVE")]
    abort_on: Vec<String>,

    /// Nothing that begins earlier than this ends the run [default: 0s]
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "abort_on")]
    abort_after: Option<Duration>,

    #[command(flatten)]
    sampling: Sampling,

    /// Watch nothing, whatever the scenario says
    #[arg(long, conflicts_with = "watch")]
    no_collect: bool,

    /// Exit with 1 if a culprit is found
    #[arg(long)]
    fail_on_finding: bool,

    /// Read the scenario, say whether it is right, and stop
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    output: Output,

    // Last, because clap puts everything that follows under their headings.
    #[command(flatten)]
    load: LoadArgs,

    #[command(flatten)]
    http: HttpArgs,

    #[command(flatten)]
    sql: SqlArgs,

    #[command(flatten)]
    ways: OutputArgs,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let mut ways = args.ways.outputs(args.output.json)?;
    let given = Given {
        vars: args.vars.iter().cloned().collect(),
        target: args.target.clone(),
        // Two runs are two sets of users: what they make up, such as keys, must differ.
        luck: clock::now_ns().unsigned_abs() ^ u64::from(std::process::id()),
        share: args.load.share(),
    };
    let mut scenario = match &args.scenario {
        Some(path) => {
            let file = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|e| Failure::Unusable(format!("{file}: {e}")))?;
            Scenario::read(&text, &file, &given).map_err(Failure::unusable)?
        }
        None => quick(&args)?,
    };
    if let Some(connections) = args.connections {
        scenario.connections = connections;
        if let Load::Closed(closed) = &mut scenario.load {
            closed.users = connections;
        }
    }
    args.load.apply(&mut scenario)?;
    scenario.timeout = args.timeout.unwrap_or(scenario.timeout);
    for text in &args.thresholds {
        let threshold = scenario::parse_threshold(text, &scenario.operations);
        scenario.thresholds.push(threshold.map_err(|why| Failure::Unusable(format!("--threshold: {why}")))?);
    }
    for text in &args.abort_on {
        let threshold = scenario::parse_threshold(text, &scenario.operations)
            .map_err(|why| Failure::Unusable(format!("--abort-on: {why}")))?;
        let abort_after_ns = args.abort_after.unwrap_or_default().as_nanos() as i64;
        scenario.thresholds.push(Threshold { abort: true, abort_after_ns, ..threshold });
    }
    scenario.watch.extend(args.sampling.watch.iter().cloned());
    if args.no_collect {
        scenario.watch.clear();
    } else if scenario.watch.is_empty() && scenario.target.is_local() {
        // A service on this machine: its CPUs and disks are suspects that cost nothing to look at.
        scenario.watch.push("host".to_owned());
    }
    let is_alone = scenario.watch.is_empty();
    args.http.apply(&mut scenario, is_alone)?;
    if args.check {
        let options = watch::Options { partial: args.sampling.partial, slow: None };
        for address in &scenario.watch {
            watch::collector(address, &options).map_err(Failure::unusable)?;
        }
        for line in describe::describe(&scenario) {
            outln!("{line}");
        }
        return Ok(());
    }
    if let Load::Open(schedule) = &scenario.load
        && !args.output.quiet
    {
        for note in schedule.replay().iter().flat_map(|replay| &replay.notes) {
            errln!("{note}");
        }
    }
    let stop = session::stop_flag()?;
    let mut progress = Progress::of(&scenario, args.output.quiet);
    let dir = args.output.dir(&scenario.name);
    let session = Session {
        name: &scenario.name,
        scenario: Some(&scenario),
        watch_for: None,
        watch: &scenario.watch,
        interval: args.sampling.interval,
        dir: &dir,
        partial: args.sampling.partial,
        slow: args.sampling.slow.0,
    };
    let recorded = session::record_to(&mut ways, &session, &mut progress, &stop)?;
    let diagnosis = conclude(&recorded, args.output.json)?;
    ways.finish(&recorded, &diagnosis).iter().for_each(|trouble| progress.warn(trouble));
    if recorded.interrupted {
        return Err(Failure::Interrupted);
    }
    if let Some(failed) = recorded.failed {
        return Err(Failure::No(format!("the load ended early: {failed}")));
    }
    if let Some(search) = diagnosis.search.as_ref().filter(|search| !search.is_answered()) {
        let why = search.refused.clone().unwrap_or_else(|| search.unresolved.join("; "));
        return Err(Failure::Unusable(format!("the search has no answer: {why}")));
    }
    let missed = &diagnosis.load.objectives_missed;
    if !missed.is_empty() {
        let early = diagnosis.load.aborted.map_or_else(String::new, |text| format!("{text}; "));
        return Err(Failure::No(format!("{early}objective missed: {}", missed.join("; "))));
    }
    if args.fail_on_finding && diagnosis.verdict == Answer::Found {
        return Err(Failure::No(diagnosis.headline));
    }
    Ok(())
}

/// The scenario of the quick form.
fn quick(args: &Args) -> Result<Scenario, Failure> {
    let url = args.url.as_deref().unwrap_or_default();
    let bad = |why: String| Failure::Unusable(format!("--url: {why}"));
    if Target::is_database(url) {
        return args.sql.scenario(Target::database(url).map_err(bad)?, &args.load, args.connections);
    }
    args.sql.check_none()?;
    let (target, path) = Target::parse(url).map_err(bad)?;
    scenario::check_path(&path).map_err(bad)?;
    let mut demand = args.load.demand(args.connections)?;
    if args.load.is_replay() {
        if path != "/" {
            return Err(bad(format!("with --replay the paths are the log's; use {}", target.url())));
        }
        let given = args.http.operation(path);
        demand.operations.iter_mut().for_each(|operation| operation.headers.clone_from(&given.headers));
    } else {
        demand.operations.push(args.http.operation(path));
    }
    let text = format!("target: {}\n{}", target.url(), demand.text);
    let search = demand.search;
    Ok(Scenario { text: Some(text), search, ..Scenario::new("run", target, demand.load, demand.operations) })
}

/// `NAME=VALUE`.
fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("say NAME=VALUE, e.g. tenant=acme")?;
    Ok((name.to_owned(), value.to_owned()))
}
