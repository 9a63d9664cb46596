//! `holdup replay`: sends the statements of logs to another server with their timing, or to two
//! servers in rounds.

mod rounds;
mod servers;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use holdup_load::scenario::{self, Scenario};
use holdup_load::schedule::played::Rows;
use holdup_logs::digest::Dialect;
use holdup_logs::digest::format::Format;
use holdup_logs::digest::run::Options;
use holdup_logs::digest::select::{Filter, Select};
use holdup_logs::replay::mix::Rules;
use holdup_logs::replay::source::Logs;
use holdup_logs::replay::survey::Survey;
use holdup_recording::files;

use self::servers::Server;
use super::compare::carries;
use super::digest::time;
use super::log_args::LogArgs;
use super::{Output, Sampling, conclude, duration, print_json, slips};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::recorded::Recorded;
use crate::replay::{Facts, Plan, REPLAY, plan};
use crate::secret_values::{Values, values};
use crate::session::{self, Session};

/// Slowest and fastest speed, as multiples of the log's speed.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=1_000.0;

/// Replay the statements of database logs on another server, with their timing and sessions
///
/// Reads slow query logs and general logs of MySQL and MariaDB, logs of PostgreSQL and captured
/// packets, plain or compressed, of any size. holdup sends only statements that read unless
/// --writes is given, and makes the server enforce that. With two servers, an old one and a new
/// one, both play the log in turns and are compared statement by statement.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  holdup replay slow.log --to mysql://app@127.0.0.1:3306/shop
  holdup replay postgresql-*.log --to postgres://app@127.0.0.1:5432/shop --speed 2 --for 10m
  holdup replay general.log --to mysql://app@127.0.0.1:3306 --writes --database shop_copy
  holdup replay slow.log --to mysql://app@127.0.0.1:3306/shop --hash --watch mysql://holdup@127.0.0.1:3306 -o recordings/new
  holdup replay slow.log --to mysql://app@127.0.0.1:3306/shop --check         print what would be sent, and stop
  holdup replay slow.log --to mysql://app@10.0.0.5/shop --to mysql://app@10.0.0.6/shop --hash -o recordings/upgrade
  holdup replay slow.log --to 10.11=mysql://app@10.0.0.5/shop --to 11.8=mysql://app@10.0.0.6/shop --rounds 5 --carries 12

A server logs all statements with long_query_time=0 and slow_query_log=ON (MySQL, MariaDB), or with
log_min_duration_statement=0 (PostgreSQL). The log and its recording may hold data of users.
Set the password for mysql:// in HOLDUP_MYSQL_PASSWORD, for postgres:// in HOLDUP_POSTGRES_PASSWORD; for two servers with
different passwords in HOLDUP_MYSQL_PASSWORD_OLD and HOLDUP_MYSQL_PASSWORD_NEW (or their own names).")]
pub struct Args {
    /// Log, plain or compressed; give all files of a rotated set, in any order
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,

    /// Target: mysql://USER@HOST[:PORT][/DATABASE] or postgres://…; give two to compare old and new
    // Kept as text and parsed later: clap would print an address with its password in an error.
    #[arg(long, value_name = "[NAME=]DSN", required = true, value_parser = values)]
    to: Vec<Values>,

    /// Rounds that each of two servers plays [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=rounds::MOST))]
    rounds: Option<u32>,

    /// Concurrent statements that the new server carries, e.g. from a search for the knee
    #[arg(long, value_name = "N", value_parser = carries)]
    carries: Option<f64>,

    /// Seed of the order in which the two servers play
    #[arg(long, value_name = "N")]
    order_seed: Option<u64>,

    /// Speed: 2 plays twice as fast as the log
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = speed)]
    speed: f64,

    /// Also send statements that change data, lock rows, or may do so
    #[arg(long)]
    writes: bool,

    /// Hash result rows to compare the servers' answers; any ignores their order
    #[arg(long, value_name = "ordered|any", num_args = 0..=1, require_equals = true, default_missing_value = "ordered", value_parser = rows)]
    hash: Option<Rows>,

    /// Use this database for all sessions
    #[arg(long, value_name = "NAME")]
    database: Option<String>,

    /// Send at most this many statements
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// Stop after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    length: Option<Duration>,

    /// Connect at most this many sessions at once; others wait
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(scenario::MAX_CONNECTIONS)))]
    sessions: Option<u32>,

    /// Close a connection that waits longer than this for an answer
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    timeout: Duration,

    /// Send only executions that began at or after this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<i64>,

    /// Send only executions that began before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<i64>,

    /// Send only executions that match, e.g. user=app or Query_time>0.5 (seconds); repeatable
    #[arg(long, value_name = "CONDITION")]
    filter: Vec<Filter>,

    #[command(flatten)]
    log: LogArgs,

    /// Print what would be sent, and stop
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    sampling: Sampling,

    #[command(flatten)]
    output: Output,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed| SPEEDS.contains(speed));
    speed.ok_or_else(|| format!("expected a number from {} to {}", SPEEDS.start(), SPEEDS.end()))
}

fn rows(text: &str) -> Result<Rows, String> {
    match text {
        "ordered" => Ok(Rows::Hashed),
        "any" => Ok(Rows::HashedInAnyOrder),
        _ => Err("expected ordered or any".to_owned()),
    }
}

/// The mix to play, on either server.
struct Mix {
    logs: Logs,
    rules: Rules,
    survey: Survey,
    facts: Facts,
}

impl Args {
    /// Reads the logs for the first time.
    fn mix(&self, servers: &[Server]) -> Result<Mix, Failure> {
        let options = Options {
            format: self.log.format,
            dialect: self.log.sql_mode,
            prefix: self.log.prefix.clone(),
            select: Select {
                filters: self.filter.clone(),
                since_us: self.since,
                until_us: self.until,
                ..Select::default()
            },
            ..Options::default()
        };
        let logs = Logs::open(&self.logs, options).map_err(Failure::unusable)?;
        let dialect =
            self.log.sql_mode.filter(|_| logs.format.dialect() == Dialect::MySql).unwrap_or(logs.format.dialect());
        // Packets may come from either kind of server, and show from which.
        let is_any = logs.format == Format::Packets;
        let dialect = if is_any && servers.iter().any(Server::is_postgres) { Dialect::PostgreSql } else { dialect };
        let is_other = |server: &&Server| server.is_postgres() != (dialect == Dialect::PostgreSql);
        if let Some(server) = servers.iter().find(is_other) {
            let of = if dialect == Dialect::PostgreSql { "PostgreSQL" } else { "MySQL or MariaDB" };
            return Err(Failure::Unusable(format!(
                "--to: the log comes from {of} and {} is another kind of server, where its statements may mean something else",
                server.target.url()
            )));
        }
        let rules = Rules {
            dialect,
            writes: self.writes,
            database: self.database.as_deref().map(Arc::from),
            limit: self.limit,
            length_us: self.length.map(|length| (length.as_secs_f64() * self.speed * 1e6) as i64),
        };
        let survey = Survey::read(&logs, &rules, self.speed, self.log.max_memory);
        let names = logs.paths().iter().map(|path| path.display().to_string()).collect();
        let facts = Facts::new(&survey, names, logs.format.name(), self.speed, self.writes);
        if survey.sent == 0 {
            facts.lines().iter().for_each(|line| errln!("{line}"));
            return Err(Failure::Unusable(
                "the logs hold no statement to send: check --filter, --since, --until and --writes".to_owned(),
            ));
        }
        Ok(Mix { logs, rules, survey, facts })
    }

    /// The load that plays the mix on `server`, one of `all`. It can be played once.
    fn scenario(&self, mix: &mut Mix, server: &Server, all: &[Server]) -> Result<Scenario, Failure> {
        let Mix { logs, rules, survey, facts } = mix;
        let mut scenario = plan(Plan {
            logs,
            rules,
            survey,
            target: server.target.clone(),
            speed: self.speed,
            sessions: self.sessions,
            rows: self.hash.unwrap_or_default(),
        });
        facts.connections = scenario.connections;
        scenario.timeout = self.timeout;
        scenario.watch = server.watched(&self.sampling.watched(), all)?;
        if self.sampling.watch.is_empty() && scenario.target.is_local() {
            scenario.watch.push("host".to_owned());
        }
        Ok(scenario)
    }

    fn session<'a>(&'a self, scenario: &'a Scenario, dir: &'a Path) -> Session<'a> {
        Session { scenario: Some(scenario), ..self.sampling.session("replay", &scenario.watch, dir) }
    }

    /// Plays it into `dir`, and reports the outcome.
    fn play(
        &self,
        facts: &Facts,
        scenario: &Scenario,
        dir: &Path,
        progress: &mut Progress,
        stop: &AtomicBool,
    ) -> Result<Recorded, Failure> {
        let recorded = session::record(&self.session(scenario, dir), progress, stop)?;
        let mut facts = facts.clone();
        facts.played = recorded.played;
        let path = recorded.folder.place().join(REPLAY);
        let text = serde_json::to_string_pretty(&facts).map_err(Failure::unusable)?;
        files::replace(&path, text.as_bytes())
            .map_err(|why| Failure::Unusable(format!("{}: {why}", dir.join(REPLAY).display())))?;
        for line in facts.played.iter().flat_map(crate::replay::PlayedFacts::lines) {
            progress.say(&line);
        }
        Ok(recorded)
    }
}

pub fn run(args: Args) -> Result<(), Failure> {
    slips::no_server_among(&args.logs, "replay")?;
    let servers = servers::read(&Values::list(&args.to))?;
    let mut mix = args.mix(&servers)?;
    let [server] = servers.as_slice() else { return rounds::run(&args, &mut mix, &servers) };
    rounds::refuse(&args)?;
    let scenario = args.scenario(&mut mix, server, &servers)?;
    if args.check {
        return check(&args, &mix.facts);
    }
    let stop = crate::stop::stop_flag()?;
    let mut progress = Progress::for_scenario(&scenario, args.output.quiet);
    mix.facts.lines().iter().for_each(|line| progress.say(line));
    let dir = args.output.dir("replay");
    let recorded = args.play(&mix.facts, &scenario, &dir, &mut progress, &stop)?;
    conclude(&recorded, args.output.json)?;
    if recorded.interrupted {
        return Err(Failure::Interrupted);
    }
    Ok(())
}

/// Prints what would be sent.
fn check(args: &Args, facts: &Facts) -> Result<(), Failure> {
    if args.output.json {
        return print_json(facts);
    }
    facts.lines().iter().for_each(|line| outln!("{line}"));
    Ok(())
}
