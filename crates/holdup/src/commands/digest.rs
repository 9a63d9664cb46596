//! `holdup digest`: ranks the statements in databases' own logs.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use holdup_logs::digest::Dialect;
use holdup_logs::digest::follow::Follow;
use holdup_logs::digest::postgres::entry::tie;
use holdup_logs::digest::report::{Order, Report};
use holdup_logs::digest::resume::State;
use holdup_logs::digest::run::{Options, Outcome, run_on};
use holdup_logs::digest::select::{Field, Filter, Select};
use holdup_logs::digest::tally::Identity;
use holdup_logs::digest::time::date_time;
use holdup_recording::duration;

use super::log_args::LogArgs;
use super::slips;
use crate::failure::Failure;
use crate::history::History;
use crate::terminal;
use crate::terminal::visible::EscapingWriter;

/// Most threads that holdup starts unasked: the reader cuts the file for them, and that keeps it
/// busy.
const MOST_THREADS: usize = 8;

/// The pause before it looks for new data again.
const IDLE: Duration = Duration::from_millis(200);

/// Rank the statements of database logs by the time they took
///
/// Reads slow query logs of MySQL, MariaDB and Percona Server and logs of PostgreSQL, plain or
/// compressed, of any size. No value of a statement is printed.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  holdup digest /var/log/mysql/slow.log
  holdup digest postgresql-*.log --since '2026-11-22 14:00:00' --limit 20
  zcat slow.log.gz | holdup digest - --json | jq '.queries[] | {fingerprint, calls, p99_us}'
  holdup digest slow.log --order Rows_examined --filter user=app --group-by fingerprint,host
  holdup digest slow.log --id pt                              with pt-query-digest's checksums
  holdup digest -f slow.log --every 1m --resume slow.state    follow the log, report each minute
  holdup digest slow.log --resume slow.state --history runs/  from cron: new and slower statements
  holdup digest db.pcap                                       statements of captured packets")]
pub struct Args {
    /// Log, plain or compressed; - is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    log: LogArgs,

    /// List this many statements; 0 lists all
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,

    /// Rank by total, calls, avg, p95, max, or an attribute such as Rows_examined
    #[arg(long, value_name = "ORDER", default_value = "total")]
    order: Order,

    /// Group by fingerprint, user, host, database or application; several with commas
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', default_value = "fingerprint", value_parser = Field::named)]
    group_by: Vec<Field>,

    /// Count only executions that match, e.g. user=app or Query_time>0.5 (seconds); repeatable
    #[arg(long, value_name = "CONDITION")]
    filter: Vec<Filter>,

    /// Count only executions that began at or after this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<i64>,

    /// Count only executions that began before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<i64>,

    /// Distinguish statements by holdup's digest, pt-query-digest's checksum, or PostgreSQL's parser (pg)
    #[arg(long, value_name = "holdup|pt|pg", default_value = "holdup", value_parser = identity)]
    id: Identity,

    /// Follow the logs as they grow and rotate; report at Ctrl-C
    #[arg(short = 'f', long)]
    follow: bool,

    /// With --follow: also report at this interval, e.g. 10s or 5m
    #[arg(long, value_name = "DURATION", requires = "follow", value_parser = duration::parse)]
    every: Option<Duration>,

    /// Resume from the position saved in STATE, and save the new one there
    #[arg(long, value_name = "STATE")]
    resume: Option<PathBuf>,

    /// Keep figures in this folder; report statements that are new or slower than before
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,

    /// Protocol of captured packets on a port other than 3306, 3307, 5432 and 5433: mysql or
    /// postgresql
    #[arg(long = "port", value_name = "PORT=PROTOCOL", value_parser = super::import::port)]
    ports: Vec<(u16, holdup_protocol::packets::Protocol)>,

    /// Use this many threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Print the report as JSON
    #[arg(long, conflicts_with_all = ["markdown", "html"])]
    json: bool,

    /// Print the report as Markdown
    #[arg(long, conflicts_with = "html")]
    markdown: bool,

    /// Print the report as an HTML file that loads nothing
    #[arg(long)]
    html: bool,
}

fn identity(text: &str) -> Result<Identity, String> {
    match text {
        "holdup" => Ok(Identity::Holdup),
        "pt" => Ok(Identity::Pt),
        "pg" => Ok(Identity::Parsed),
        _ => Err("can be holdup, pt or pg".to_owned()),
    }
}

/// Parses a time such as `2026-11-22 14:00:00` or `2026-11-22`, in microseconds.
pub fn time(text: &str) -> Result<i64, String> {
    let whole = if text.len() == 10 { format!("{text} 00:00:00") } else { text.to_owned() };
    date_time(whole.as_bytes())
        .filter(|(_, length)| *length == whole.len())
        .map(|(at, _)| at)
        .ok_or_else(|| "expected a time such as 2026-11-22 14:00:00 or 2026-11-22, in the log's time zone".to_owned())
}

pub fn run(args: Args) -> Result<(), Failure> {
    slips::no_server_among(&args.files, "digest")?;
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MOST_THREADS);
    let select = Select {
        group_by: args.group_by.clone(),
        filters: args.filter.clone(),
        since_us: args.since,
        until_us: args.until,
    };
    let options = Options {
        identity: args.id,
        select,
        threads: args.threads.unwrap_or_else(cores),
        ports: args.ports.clone(),
        ..args.log.options()
    };
    let history = args.history.as_deref().map(History::open).transpose()?;
    let mut state = args.resume.as_deref().map(State::load).transpose().map_err(Failure::unusable)?;
    let outcome = if args.follow {
        follow(&args, &options, &mut state)?
    } else {
        run_on(&args.files, &options, state.as_mut()).map_err(Failure::unusable)?
    };
    let mut report = Report::from_outcome(&outcome, &args.order, if history.is_some() { 0 } else { args.limit });
    if let Some(history) = &history {
        history.compare(&mut report)?;
        report.shorten(args.limit);
    }
    print(&report, &args)?;
    // Only now: statements counted but not yet reported would be lost.
    save(&args, state.as_ref())
}

fn save(args: &Args, state: Option<&State>) -> Result<(), Failure> {
    match (&args.resume, state) {
        (Some(path), Some(state)) => state.save(path).map_err(Failure::unusable),
        _ => Ok(()),
    }
}

fn print(report: &Report, args: &Args) -> Result<(), Failure> {
    if args.json {
        return stream_json(report);
    }
    let text = match (args.markdown, args.html) {
        (true, _) => report.markdown(),
        (_, true) => report.html(),
        _ => report.text(),
    };
    terminal::print(&text);
    Ok(())
}

/// Reads logs as they grow until Ctrl-C, and returns everything read.
fn follow(args: &Args, options: &Options, state: &mut Option<State>) -> Result<Outcome, Failure> {
    let stop = crate::stop::stop_flag()?;
    let mut from = state.clone().unwrap_or_default();
    let mut following = Follow::new(&args.files, options, &from).map_err(Failure::unusable)?;
    let room = options.room();
    let empty = || options.tally(Dialect::MySql, room.as_ref());
    let (mut whole, mut part) = (empty(), empty());
    let mut begun = Instant::now();
    loop {
        // The data present at the request to stop is still read.
        let is_last = stop.load(Ordering::Relaxed);
        let has_grown = following.poll(&mut part).map_err(Failure::unusable)?;
        let is_due = args.every.is_some_and(|every| begun.elapsed() >= every);
        if is_last {
            following.finish(&mut part, &mut from);
        }
        if is_due && !is_last {
            let outcome = Outcome { files: following.files.clone(), tally: part };
            print(&Report::from_outcome(&outcome, &args.order, args.limit), args)?;
            whole.merge(outcome.tally);
            part = empty();
            begun = Instant::now();
            following.mark(&whole, &mut from);
            if state.is_some() {
                save(args, Some(&from))?;
            }
        }
        if is_last {
            whole.merge(part);
            tie(&mut whole);
            whole.settle();
            *state = state.take().map(|_| from);
            return Ok(Outcome { files: following.files, tally: whole });
        }
        if !has_grown {
            std::thread::sleep(IDLE);
        }
    }
}

/// Streams the report to stdout, because it may have tens of megabytes. A closed reader is not an
/// error.
fn stream_json(report: &Report) -> Result<(), Failure> {
    use std::io::Write as _;
    let mut out = std::io::BufWriter::with_capacity(64 << 10, EscapingWriter::new(std::io::stdout().lock()));
    match serde_json::to_writer_pretty(&mut out, report) {
        Err(error) if !error.is_io() => return Err(Failure::unusable(error)),
        _ => {}
    }
    let _ = out.write_all(b"\n").and_then(|()| out.flush());
    Ok(())
}
