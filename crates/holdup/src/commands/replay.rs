//! `holdup replay`: what logs say was executed, on another server, as it was.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdup_digest::Dialect;
use holdup_digest::format::Format;
use holdup_digest::run::Options;
use holdup_digest::select::{Filter, Select};
use holdup_load::scenario::{self, Target};
use holdup_load::schedule::played::Rows;
use holdup_replay::mix::Rules;
use holdup_replay::source::Logs;
use holdup_replay::survey::Survey;

use super::digest::{sql_mode, time};
use super::{Output, Sampling, conclude, duration, print_json};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::replay::{Facts, Plan, REPLAY, plan};
use crate::session::{self, Session};

/// Fastest and slowest, as times of the log's speed.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=1_000.0;

/// Execute what database logs say was executed on another server: when it was, by as many sessions, in their order
///
/// Slow query logs and general logs of MySQL and MariaDB, logs of PostgreSQL, captured packets, plain or packed, whatever their size. Only what
/// reads is sent unless --writes is given, and the server is told so, too.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  holdup replay slow.log --to mysql://app@127.0.0.1:3306/shop
  holdup replay postgresql-*.log --to postgres://app@127.0.0.1:5432/shop --speed 2 --for 10m
  holdup replay general.log --to mysql://app@127.0.0.1:3306 --writes --database shop_copy
  holdup replay slow.log --to mysql://app@127.0.0.1:3306/shop --hash --watch mysql://holdup@127.0.0.1:3306 -o recordings/new
  holdup replay slow.log --to mysql://app@127.0.0.1:3306/shop --check         say what would be sent, and stop

A server logs all it executes with long_query_time=0 and slow_query_log=ON (MySQL, MariaDB), or with
log_min_duration_statement=0 (PostgreSQL). The log and what is recorded of it may hold what users typed.
A password for mysql:// is best given in HOLDUP_MYSQL_PASSWORD, one for postgres:// in HOLDUP_POSTGRES_PASSWORD.")]
pub struct Args {
    /// Log, plain or packed; of a rotated set all, in any order
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,

    /// Where to: mysql://USER@HOST[:PORT][/DATABASE] or postgres://…
    #[arg(long, value_name = "DSN")]
    to: String,

    /// So many times as fast as it was
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = speed)]
    speed: f64,

    /// Also send what changes data, locks rows, or is not known to only read
    #[arg(long)]
    writes: bool,

    /// Hash each execution's rows, so that two servers' answers can be compared; any: whatever their order
    #[arg(long, value_name = "ordered|any", num_args = 0..=1, require_equals = true, default_missing_value = "ordered", value_parser = rows)]
    hash: Option<Rows>,

    /// The database of all sessions, whatever the log says
    #[arg(long, value_name = "NAME")]
    database: Option<String>,

    /// Send so many statements at most
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// End after so long
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    length: Option<Duration>,

    /// Connect so many sessions at once at most; further ones wait
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(scenario::MAX_CONNECTIONS)))]
    sessions: Option<u32>,

    /// Longest wait for an answer; the connection is closed then
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    timeout: Duration,

    /// Only what began at or after this time of the log
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<i64>,

    /// Only what began before this time of the log
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<i64>,

    /// Only executions of which this holds, e.g. user=app or Query_time>0.5 (seconds); repeatable
    #[arg(long, value_name = "CONDITION")]
    filter: Vec<Filter>,

    /// What kind of log it is, if that can't be told from its first lines
    #[arg(long = "type", value_name = "TYPE", value_parser = Format::named)]
    format: Option<Format>,

    /// PostgreSQL's log_line_prefix, if it can't be made out
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,

    /// How MySQL's statements are written: ansi_quotes, no_backslash_escapes, or both with a comma
    #[arg(long, value_name = "MODES", value_parser = sql_mode)]
    sql_mode: Option<Dialect>,

    /// Say what would be sent, and stop
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    sampling: Sampling,

    #[command(flatten)]
    output: Output,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed| SPEEDS.contains(speed));
    speed.ok_or_else(|| format!("a number from {} to {}", SPEEDS.start(), SPEEDS.end()))
}

fn rows(text: &str) -> Result<Rows, String> {
    match text {
        "ordered" => Ok(Rows::Hashed),
        "any" => Ok(Rows::HashedInAnyOrder),
        _ => Err("can be ordered or any".to_owned()),
    }
}

pub fn run(args: Args) -> Result<(), Failure> {
    let bad = |why: String| Failure::Unusable(format!("--to: {why}"));
    if !Target::is_database(&args.to) {
        return Err(bad("statements go to a database: mysql://USER@HOST[:PORT][/DATABASE] or postgres://…".to_owned()));
    }
    let target = Target::database(&args.to).map_err(bad)?;
    let options = Options {
        format: args.format,
        dialect: args.sql_mode,
        prefix: args.prefix.clone(),
        select: Select {
            filters: args.filter.clone(),
            since_us: args.since,
            until_us: args.until,
            ..Select::default()
        },
        ..Options::default()
    };
    let logs = Logs::open(&args.logs, options).map_err(Failure::unusable)?;
    let is_postgres = target.url().starts_with("postgres");
    let dialect = args.sql_mode.filter(|_| logs.format.dialect() == Dialect::MySql).unwrap_or(logs.format.dialect());
    // Packets may be of either, and say which.
    let dialect = if logs.format == Format::Packets && is_postgres { Dialect::PostgreSql } else { dialect };
    if is_postgres != (dialect == Dialect::PostgreSql) {
        let of = if dialect == Dialect::PostgreSql { "PostgreSQL" } else { "MySQL or MariaDB" };
        return Err(bad(format!(
            "the log is of {of}, and {} is none: what it says would be wrong there",
            target.url()
        )));
    }
    let rules = Rules {
        dialect,
        writes: args.writes,
        database: args.database.as_deref().map(Arc::from),
        limit: args.limit,
        length_us: args.length.map(|length| (length.as_secs_f64() * args.speed * 1e6) as i64),
    };
    let survey = Survey::of(&logs, &rules, args.speed);
    let names = logs.paths().iter().map(|path| path.display().to_string()).collect();
    let mut facts = Facts::new(&survey, names, logs.format.name(), args.speed, args.writes);
    if survey.sent == 0 {
        facts.lines().iter().for_each(|line| errln!("{line}"));
        return Err(Failure::Unusable("there is nothing to send".to_owned()));
    }
    let hash = args.hash.unwrap_or_default();
    let of = Plan {
        logs: &logs,
        rules: &rules,
        survey: &survey,
        target,
        speed: args.speed,
        sessions: args.sessions,
        rows: hash,
    };
    let mut scenario = plan(of);
    facts.connections = scenario.connections;
    if args.check {
        if args.output.json {
            return print_json(&facts);
        }
        facts.lines().iter().for_each(|line| outln!("{line}"));
        return Ok(());
    }
    scenario.timeout = args.timeout;
    scenario.watch.clone_from(&args.sampling.watch);
    if scenario.watch.is_empty() && scenario.target.is_local() {
        scenario.watch.push("host".to_owned());
    }
    let stop = session::stop_flag()?;
    let mut progress = Progress::of(&scenario, args.output.quiet);
    facts.lines().iter().for_each(|line| progress.say(line));
    let dir = args.output.dir("replay");
    let session = Session {
        name: "replay",
        scenario: Some(&scenario),
        watch_for: None,
        watch: &scenario.watch,
        interval: args.sampling.interval,
        dir: &dir,
        partial: args.sampling.partial,
        slow: args.sampling.slow.0,
    };
    let recorded = session::record(&session, &mut progress, &stop)?;
    facts.played = recorded.played;
    let text = serde_json::to_string_pretty(&facts).map_err(Failure::unusable)?;
    std::fs::write(dir.join(REPLAY), text)
        .map_err(|why| Failure::Unusable(format!("{}: {why}", dir.join(REPLAY).display())))?;
    for line in facts.played.iter().flat_map(crate::replay::PlayedFacts::lines) {
        progress.say(&line);
    }
    conclude(&recorded, args.output.json)?;
    if recorded.interrupted {
        return Err(Failure::Interrupted);
    }
    Ok(())
}
