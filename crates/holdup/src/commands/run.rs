//! `holdup run`: load, collectors, verdict.

use std::path::PathBuf;
use std::time::Duration;

use holdup_collect::watch;
use holdup_diagnose::verdict::Answer;
use holdup_load::model::Load;
use holdup_load::scenario::{self, Operation, Scenario, Target};
use holdup_load::schedule::Schedule;

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
  holdup run scenario.yaml --threshold 'p99 < 500ms' --fail-on-finding --json -o recordings/nightly

Without a source to watch, this host is watched if the service is on it.
Response time counts from the intended start of each request: the load never waits for the service.
A password for mysql:// is best given in HOLDUP_MYSQL_PASSWORD.")]
pub struct Args {
    /// Scenario file
    #[arg(value_name = "SCENARIO", required_unless_present = "url", conflicts_with = "url")]
    scenario: Option<PathBuf>,

    /// Quick form: GET this URL
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// Requests per second
    #[arg(long, value_name = "N", requires = "url", value_parser = rate)]
    rate: Option<f64>,

    /// Rates in steps, each --duration long: FROM:TO:STEP
    #[arg(long, value_name = "FROM:TO:STEP", requires = "url", conflicts_with_all = ["rate", "ramp"])]
    steps: Option<String>,

    /// A rate that changes evenly over --duration: FROM:TO
    #[arg(long, value_name = "FROM:TO", requires = "url", conflicts_with = "rate")]
    ramp: Option<String>,

    /// How long (of each step, with --steps)
    #[arg(long, value_name = "DURATION", default_value = "10s", requires = "url", value_parser = duration)]
    duration: Duration,

    /// Most requests in flight [default: the scenario's, or 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(scenario::MAX_CONNECTIONS)))]
    connections: Option<u32>,

    /// Longest wait for a free connection, and then for the response [default: the scenario's, or 10s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,

    /// Objective, e.g. 'p99 < 500ms' or 'errors < 1%'; missed, the exit code is 1; repeatable
    #[arg(long = "threshold", value_name = "OBJECTIVE")]
    thresholds: Vec<String>,

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
}

fn rate(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "requests per second, e.g. 500".to_owned())?;
    if value > 0.0 && value <= scenario::MAX_RATE {
        Ok(value)
    } else {
        Err(format!("above 0 and at most {}", scenario::MAX_RATE))
    }
}

pub fn run(args: Args) -> Result<(), Failure> {
    let mut scenario = match &args.scenario {
        Some(path) => {
            let file = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|e| Failure::Unusable(format!("{file}: {e}")))?;
            Scenario::parse(&text, &file).map_err(Failure::unusable)?
        }
        None => quick(&args)?,
    };
    scenario.connections = args.connections.unwrap_or(scenario.connections);
    scenario.timeout = args.timeout.unwrap_or(scenario.timeout);
    for text in &args.thresholds {
        let threshold = scenario::parse_threshold(text, &scenario.operations);
        scenario.thresholds.push(threshold.map_err(|why| Failure::Unusable(format!("--threshold: {why}")))?);
    }
    scenario.watch.extend(args.sampling.watch.iter().cloned());
    if args.no_collect {
        scenario.watch.clear();
    } else if scenario.watch.is_empty() && scenario.target.is_local() {
        // A service on this machine: its CPUs and disks are suspects that cost nothing to look at.
        scenario.watch.push("host".to_owned());
    }
    if args.check {
        for address in &scenario.watch {
            watch::collector(address, &watch::Options { partial: args.sampling.partial }).map_err(Failure::unusable)?;
        }
        let names: Vec<&str> = scenario.operations.iter().map(|o| o.name.as_str()).collect();
        let length = scenario.load.length().as_secs_f64();
        let much = match &scenario.load {
            Load::Open(schedule) => format!("{} requests", schedule.total()),
            Load::Closed(closed) => format!("{} users", closed.users),
        };
        outln!("fine: {much} over {length:.0} s ({})", names.join(", "));
        return Ok(());
    }
    let stop = session::stop_flag()?;
    let mut progress = Progress::new(args.output.quiet, Some(scenario.load.length()));
    let dir = args.output.dir(&scenario.name);
    let session = Session {
        name: &scenario.name,
        scenario: Some(&scenario),
        watch_for: None,
        watch: &scenario.watch,
        interval: args.sampling.interval,
        dir: &dir,
        partial: args.sampling.partial,
    };
    let recorded = session::record(&session, &mut progress, &stop)?;
    let diagnosis = conclude(&recorded, args.output.json)?;
    if recorded.interrupted {
        return Err(Failure::Interrupted);
    }
    let missed = &diagnosis.load.objectives_missed;
    if !missed.is_empty() {
        return Err(Failure::No(format!("objective missed: {}", missed.join("; "))));
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
    let (target, path) = Target::parse(url).map_err(bad)?;
    scenario::check_path(&path).map_err(bad)?;
    let schedule = match (args.rate, &args.steps, &args.ramp) {
        (Some(rate), ..) => Schedule::constant(rate, args.duration),
        (_, Some(steps), _) => match *rates(steps, 3, "--steps FROM:TO:STEP")? {
            [from, to, step] if (to - from).abs() / step <= 10_000.0 => Schedule::steps(from, to, step, args.duration),
            _ => return Err(Failure::Unusable("--steps: more than 10,000 steps".to_owned())),
        },
        (_, _, Some(ramp)) => match *rates(ramp, 2, "--ramp FROM:TO")? {
            [from, to] => Schedule::ramp(from, to, args.duration),
            _ => unreachable!("rates() gave two"),
        },
        _ => return Err(Failure::Unusable("say how much: --rate 500, --steps 50:300:50 or --ramp 10:500".to_owned())),
    };
    if args.duration.is_zero() {
        return Err(Failure::Unusable("--duration must be longer than 0s".to_owned()));
    }
    let operation = Operation {
        name: scenario::without_query(&path).to_owned(),
        method: "GET".to_owned(),
        path,
        headers: Vec::new(),
        body: None,
        weight: 1,
    };
    Ok(Scenario::new("run", target, Load::Open(schedule), vec![operation]))
}

fn rates(text: &str, count: usize, form: &str) -> Result<Vec<f64>, Failure> {
    let values: Result<Vec<f64>, String> = text.split(':').map(rate).collect();
    match values {
        Ok(values) if values.len() == count => Ok(values),
        Ok(_) => Err(Failure::Unusable(format!("\"{text}\": expected {form}"))),
        Err(why) => Err(Failure::Unusable(format!("\"{text}\": expected {form}: {why}"))),
    }
}
