//! `holdup digest`: what databases' own logs say was executed, ranked.

use std::path::PathBuf;

use holdup_digest::Dialect;
use holdup_digest::format::Format;
use holdup_digest::report::{Order, Report};
use holdup_digest::run::{Options, run as read};
use holdup_digest::select::{Field, Filter, Select};
use holdup_digest::tally::Identity;
use holdup_digest::time::date_time;

use super::print_json;
use crate::failure::Failure;
use crate::terminal;

/// Most threads that are used without being asked for: this one cuts, and is soon busy with that.
const MOST_THREADS: usize = 8;

/// Rank the statements of database logs by the time they took
///
/// Slow query logs of MySQL, MariaDB and Percona Server and logs of PostgreSQL, plain or packed, whatever their size. Nothing
/// that may be a value of a statement is printed.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  holdup digest /var/log/mysql/slow.log
  holdup digest postgresql-*.log --since '2026-11-22 14:00:00' --limit 20
  zcat slow.log.gz | holdup digest - --json | jq '.queries[] | {fingerprint, calls, p99_us}'
  holdup digest slow.log --order Rows_examined --filter user=app --group-by fingerprint,host
  holdup digest slow.log --id pt                              named as pt-query-digest names them")]
pub struct Args {
    /// Log, plain or packed; - is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// What kind of log it is, if that can't be told from its first lines
    #[arg(long = "type", value_name = "TYPE", value_parser = Format::named)]
    format: Option<Format>,

    /// PostgreSQL's log_line_prefix, if it can't be made out
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,

    /// How MySQL's statements are written: ansi_quotes, no_backslash_escapes, or both with a comma
    #[arg(long, value_name = "MODES", value_parser = sql_mode)]
    sql_mode: Option<Dialect>,

    /// How many statements are listed; 0 lists all
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,

    /// By what they are ranked: total, calls, avg, p95, max, or the sum of an attribute such as Rows_examined
    #[arg(long, value_name = "ORDER", default_value = "total")]
    order: Order,

    /// What groups executions: fingerprint, user, host, database, application; several with commas
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', default_value = "fingerprint", value_parser = Field::named)]
    group_by: Vec<Field>,

    /// Count only executions of which this holds, e.g. user=app or Query_time>0.5 (seconds); repeatable
    #[arg(long, value_name = "CONDITION")]
    filter: Vec<Filter>,

    /// Count only what began at or after this time of the log
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<i64>,

    /// Count only what began before this time of the log
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<i64>,

    /// By what statements are told apart: holdup's digest, pt-query-digest's checksum, or (pg) as PostgreSQL's parser would
    #[arg(long, value_name = "holdup|pt|pg", default_value = "holdup", value_parser = identity)]
    id: Identity,

    /// Threads that read [default: as many as there are cores]
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

/// The dialect of a server with these modes; what else it has makes no difference here.
fn sql_mode(text: &str) -> Result<Dialect, String> {
    let has = |name: &str| text.split(',').any(|mode| mode.trim().eq_ignore_ascii_case(name));
    match (has("ansi_quotes") || has("ansi"), has("no_backslash_escapes")) {
        (true, true) => Ok(Dialect::MySqlAnsiQuotesNoBackslashEscapes),
        (true, false) => Ok(Dialect::MySqlAnsiQuotes),
        (false, true) => Ok(Dialect::MySqlNoBackslashEscapes),
        (false, false) => Ok(Dialect::MySql),
    }
}

fn identity(text: &str) -> Result<Identity, String> {
    match text {
        "holdup" => Ok(Identity::Holdup),
        "pt" => Ok(Identity::Pt),
        "pg" => Ok(Identity::Parsed),
        _ => Err("can be holdup, pt or pg".to_owned()),
    }
}

/// A time such as `2026-11-22 14:00:00` or `2026-11-22`, microseconds.
fn time(text: &str) -> Result<i64, String> {
    let whole = if text.len() == 10 { format!("{text} 00:00:00") } else { text.to_owned() };
    date_time(whole.as_bytes())
        .filter(|(_, length)| *length == whole.len())
        .map(|(at, _)| at)
        .ok_or_else(|| "a time is 2026-11-22 14:00:00 or 2026-11-22, as the log has it".to_owned())
}

pub fn run(args: Args) -> Result<(), Failure> {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MOST_THREADS);
    let select = Select { group_by: args.group_by, filters: args.filter, since_us: args.since, until_us: args.until };
    let options = Options {
        format: args.format,
        dialect: args.sql_mode,
        identity: args.id,
        select,
        prefix: args.prefix,
        threads: args.threads.unwrap_or_else(cores),
    };
    let outcome = read(&args.files, &options).map_err(Failure::unusable)?;
    let report = Report::of(&outcome, &args.order, args.limit);
    if args.json {
        return print_json(&report);
    }
    let text = match (args.markdown, args.html) {
        (true, _) => report.markdown(),
        (_, true) => report.html(),
        _ => report.text(),
    };
    terminal::print(&text);
    Ok(())
}
