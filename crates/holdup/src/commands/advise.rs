//! `holdup advise`: which index or replica would relieve the heaviest statements of a log.

use std::path::PathBuf;

use holdup_collect::ReadError;
use holdup_collect::catalog::Catalog;
use holdup_logs::advice::replica::Replica;
use holdup_logs::advice::report::{Trial, touched_tables};
use holdup_logs::advice::{Advice, Dialect, Report, StatementCost, Table, advise};
use holdup_logs::digest::format::Format;
use holdup_logs::digest::report::{Order, Report as Digest};
use holdup_logs::digest::run::{Options, run as read};

use super::log_args::LogArgs;
use super::{print_json, slips};
use crate::failure::Failure;
use crate::secret_values::value;
use crate::terminal;
use crate::terminal::visible::one_line;

/// Advise an index or a replica for the heaviest statements of a log
///
/// Statements are read without their values. With --on, holdup also asks the server for its tables
/// and indexes. If the server has the extension hypopg, holdup asks how it would plan a statement
/// with the proposed index. No statement is executed.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup advise /var/log/mysql/slow.log --on mysql://holdup@127.0.0.1:3306
  holdup advise postgresql-*.log --on postgresql://holdup@127.0.0.1:5432/shop --limit 20
  holdup advise slow.log --fresh orders --fresh accounts      tables that must be read from the primary
  holdup advise slow.log --json | jq '.advice[] | {id, indexes}'

The account needs to connect and, on MySQL and MariaDB, SELECT on the tables.")]
pub struct Args {
    /// Log, as for holdup digest
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Server that wrote the log: mysql://USER@HOST:PORT or postgresql://USER@HOST:PORT/DATABASE
    #[arg(long, value_name = "ADDRESS", value_parser = value)]
    on: Option<String>,

    #[command(flatten)]
    log: LogArgs,

    /// Advise on this many statements
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,

    /// Table that must be fresh, so never read from a replica; repeatable
    #[arg(long, value_name = "TABLE")]
    fresh: Vec<String>,

    /// Print the advice as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<(), Failure> {
    slips::no_server_among(&args.files, "advise")?;
    // Report a wrong address before reading a large log.
    let catalog = args.on.as_deref().map(Catalog::connect).transpose().map_err(|error| {
        let said = error.to_string();
        Failure::Unusable(if said.contains("--watch") {
            said.replace("--watch", "--on")
        } else {
            format!("--on: {said}")
        })
    })?;
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let options = Options { threads, ..args.log.options() };
    let outcome = read(&args.files, &options).map_err(Failure::unusable)?;
    let digest = Digest::from_outcome(&outcome, &Order::TotalTime, 0);
    let dialect = dialect(&outcome.files.iter().map(|file| file.format).collect::<Vec<_>>())?;
    let all = heavy(&digest);
    let tables = match &catalog {
        Some(catalog) => read_tables(catalog, &touched_tables(&all, args.limit, dialect)).map_err(Failure::unusable)?,
        None => Vec::new(),
    };
    let cannot = match &catalog {
        Some(catalog) => catalog.cannot_try().map_err(Failure::unusable)?,
        None => Some("tables and indexes are unknown: name the server with --on ADDRESS".to_owned()),
    };
    let mut lost = None;
    let what = (args.limit, args.fresh.as_slice(), tables.as_slice());
    let all = (all.as_slice(), digest.rest.as_ref());
    let mut report = advise(all, digest.seconds, dialect, what, |touches, candidate| {
        let catalog = catalog.as_ref().filter(|_| cannot.is_none() && lost.is_none())?;
        match catalog.try_index((&touches.text, touches.values), &candidate.table, &candidate.columns) {
            Ok(trial) => {
                trial.map(|t| Trial { cost_before: t.cost_before, cost_after: t.cost_after, is_used: t.is_used })
            }
            Err(ReadError(why)) => {
                lost = Some(why);
                None
            }
        }
    });
    report.not_tried = lost.or(cannot);
    if args.json {
        return print_json(&report);
    }
    terminal::print(&text(&report));
    Ok(())
}

/// The SQL dialect that all logs share.
fn dialect(formats: &[Format]) -> Result<Dialect, Failure> {
    let is_mysql = |format: &Format| matches!(format, Format::SlowLog | Format::GeneralLog);
    match (formats.iter().any(is_mysql), formats.iter().all(is_mysql)) {
        (true, false) => Err(Failure::Unusable(
            "these are logs of both MySQL and PostgreSQL: give the logs of one server at a time".to_owned(),
        )),
        (is_any, _) => Ok(if is_any { Dialect::MySql } else { Dialect::PostgreSql }),
    }
}

fn heavy(digest: &Digest) -> Vec<StatementCost> {
    let of = |query: &holdup_logs::digest::report::Query| {
        let sum = |name: &str| query.attributes.get(name).map(|figures| figures.sum);
        StatementCost {
            id: query.id.clone(),
            text: query.fingerprint.clone(),
            calls: query.calls,
            total_us: query.total_us,
            rows: sum("Rows_examined").zip(sum("Rows_sent")),
        }
    };
    digest.queries.iter().map(of).collect()
}

fn read_tables(catalog: &Catalog, names: &[String]) -> Result<Vec<Table>, ReadError> {
    names.iter().filter_map(|name| catalog.table(name).transpose()).collect()
}

/// Removes control characters, which would act on the terminal.
fn plain(text: &str) -> String {
    one_line(text).into_owned()
}

fn percent(ratio: f64) -> String {
    format!("{:.1} %", ratio * 100.0)
}

fn text(report: &Report) -> String {
    let mut lines = Vec::new();
    for (i, advice) in report.advice.iter().enumerate() {
        lines.push(format!(
            "{}. {} of the time, {} calls  {}",
            i + 1,
            percent(advice.share_ratio),
            advice.calls,
            advice.id
        ));
        lines.push(format!("   {}", plain(&advice.text)));
        lines.extend(about(advice).into_iter().map(|line| format!("   - {line}")));
        lines.push(String::new());
    }
    lines.push("What a replica could serve".to_owned());
    let parts = [
        (report.replica_never_stale_ratio, "reads of tables that this log never writes: a replica may serve them"),
        (report.replica_stale_ratio, "reads of tables that are also written: as stale as the replica's lag"),
        (report.stays_ratio, "must stay on the primary"),
    ];
    lines.extend(parts.map(|(ratio, what)| format!("   {:>7}  {what}", percent(ratio))));
    if let Some(rest) = &report.rest {
        let what = "were not looked at: they did not fit in memory (--max-memory), and may write any table";
        lines.push(format!("   {:>7}  {what}", percent(report.rest_ratio)));
        lines.push(format!("            {}", rest.words(report.advice.len())));
    }
    lines.push(
        "   These logs do not show whether a session reads its own writes: such reads must stay, too.".to_owned(),
    );
    if let Some(why) = &report.not_tried {
        lines.push(format!("\nIndexes were not tried: {why}."));
    }
    lines.join("\n") + "\n"
}

/// The advice on one statement, the most certain first.
fn about(advice: &Advice) -> Vec<String> {
    let mut said = Vec::new();
    if !advice.is_read {
        return vec!["no advice: its text is cut or in an unknown form".to_owned()];
    }
    if let Some(examined) = advice.examined_per_sent.filter(|ratio| *ratio >= 10.0) {
        said.push(format!("it examined {examined:.0} rows for each row it sent"));
    }
    for proposal in &advice.indexes {
        let (statement, why) = (plain(&proposal.statement), plain(&proposal.candidate.why));
        said.push(match &proposal.trial {
            Some(trial) if trial.is_used => format!(
                "{statement};  the planner would use it: cost {:.0} instead of {:.0}, {} less ({why})",
                trial.cost_after,
                trial.cost_before,
                percent(1.0 - trial.cost_after / trial.cost_before.max(1e-9))
            ),
            Some(_) => format!("{statement};  tried: the planner would not use it"),
            None => format!("{statement};  may help: {why}; not tried"),
        });
    }
    said.push(match &advice.replica {
        Replica::No { why } => format!("must stay on the primary: {why}"),
        Replica::Could { writes_per_second } if writes_per_second.is_empty() => {
            "a replica may serve it: this log never writes its tables".to_owned()
        }
        Replica::Could { writes_per_second } => {
            let rates = writes_per_second.iter().map(|(table, rate)| format!("{} {rate:.3}/s", plain(table)));
            format!(
                "a replica may serve it if stale rows do no harm; writes meanwhile: {}",
                rates.collect::<Vec<_>>().join(", ")
            )
        }
    });
    said
}
