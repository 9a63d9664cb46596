//! `holdup settle`: waits until a database has finished the work that an old load left, so that a
//! later measurement shows the fix alone. It reads the same data as `watch`, keeps the last seconds
//! in memory, and asks the diagnosis for the remaining work. It writes nothing.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use holdup_collect::Collector;
use holdup_collect::watch::{self, Options};
use holdup_diagnose::verdict::DebtReport;
use holdup_diagnose::{Case, debt};
use holdup_recording::manifest::{Host, Manifest};
use holdup_recording::rows::Sample;
use holdup_recording::{Batch, Recording, clock, metrics};

use super::{duration, print_json};
use crate::failure::Failure;
use crate::secret_values::value;

/// The span that is judged: a vacuum's pace shows within it.
const JUDGED_SPAN: Duration = Duration::from_secs(6);

/// The span that is kept for tables: large numbers of them are read less often, and two reads are
/// needed.
const KEPT_SPAN: Duration = Duration::from_secs(15);
const TABLES_KEPT_SPAN: Duration = Duration::from_secs(300);

/// A counter that comes with every read of tables, and only then.
const COUNTED: &str = metrics::postgresql::STAT_TABLES_N_TUP_UPD.name;
const LISTED: &str = metrics::postgresql::TABLE_SIZE_BYTES.name;

/// How long the work must stay done: after a vacuum the next table's may start, or a checkpoint.
const QUIET: Duration = Duration::from_secs(4);

/// How often it checks whether it should end.
const WAKE: Duration = Duration::from_millis(50);

/// Wait until a database finishes old work: dead rows, vacuums, a checkpoint
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup settle postgresql://holdup@127.0.0.1:5432/app
  holdup settle postgresql://holdup@127.0.0.1:5432/app --within 30m && holdup run after-the-fix.yaml

Exit codes: 0 settled, 1 not settled in time, 2 server unreadable, 130 interrupted.")]
pub struct Args {
    /// Server: postgresql://USER@HOST:PORT/DATABASE, as for --watch; or @FILE
    #[arg(value_name = "ADDRESS", value_parser = value)]
    address: String,

    /// Wait at most this long
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    within: Duration,

    /// Time between samples
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    interval: Duration,

    /// Show no progress on stderr
    #[arg(short, long)]
    quiet: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The result.
#[derive(serde::Serialize)]
struct SettleResult {
    settled: bool,
    waited_s: f64,
    /// The remaining work.
    debt: Option<DebtReport>,
}

pub fn run(args: Args) -> Result<(), Failure> {
    if !args.address.starts_with("postgres") {
        // The argument may hold a password, so the error does not repeat it.
        let way_out = "settle works with PostgreSQL only: holdup settle postgresql://USER@HOST:PORT/DATABASE";
        return Err(Failure::Unusable(way_out.to_owned()));
    }
    let stop = crate::stop::stop_flag()?;
    let mut server = watch::collector(&args.address, &Options::default()).map_err(Failure::unusable)?;
    server.probe().map_err(Failure::unusable)?;
    let mut kept = Batch::default();
    server.settings(&mut kept).map_err(Failure::unusable)?;

    let begun = Instant::now();
    let mut quiet_since: Option<Instant> = None;
    let mut said = String::new();
    loop {
        let looked = Instant::now();
        let owed = remaining_work(server.as_mut(), &mut kept);
        match &owed {
            Ok(None) => {
                quiet_since.get_or_insert(looked);
            }
            Ok(Some(debt)) => {
                quiet_since = None;
                let text = format!("not settled: {}", debt.text.split(": what a fix").next().unwrap_or_default());
                // One line for each table and kind of work, not for each new figure.
                let without_figures: String = text.chars().filter(|letter| !letter.is_ascii_digit()).collect();
                if !args.quiet && without_figures != said {
                    errln!("{text}");
                    said = without_figures;
                }
            }
            Err(why) => {
                quiet_since = None;
                if !args.quiet && said != *why {
                    errln!("{why}; trying again");
                    said.clone_from(why);
                }
            }
        }
        let waited = begun.elapsed();
        if quiet_since.is_some_and(|since| since.elapsed() >= QUIET) {
            return report(&args, waited, None);
        }
        if waited >= args.within {
            return match owed {
                Ok(debt) => report(&args, waited, Some(debt)),
                Err(why) => Err(Failure::Unusable(why)),
            };
        }
        while looked.elapsed() < args.interval {
            if stop.load(Ordering::Relaxed) {
                return Err(Failure::Interrupted);
            }
            std::thread::sleep(WAKE.min(args.interval.saturating_sub(looked.elapsed())));
        }
    }
}

/// The remaining work by the last seconds' samples, to which one more sample is added.
fn remaining_work(server: &mut dyn Collector, kept: &mut Batch) -> Result<Option<DebtReport>, String> {
    server.sample(kept).map_err(|error| error.to_string())?;
    let now = clock::now_ns();
    let (oldest, oldest_of_tables) = (earlier(now, KEPT_SPAN), earlier(now, TABLES_KEPT_SPAN));
    let is_of_tables =
        |row: &Sample| row.metric.starts_with(metrics::postgresql::STAT_TABLES.prefix) || row.metric == LISTED;
    kept.samples.retain(|row| row.observed_at >= if is_of_tables(row) { oldest_of_tables } else { oldest });
    kept.sessions.retain(|row| row.observed_at >= oldest);
    kept.events.retain(|row| row.observed_at >= oldest);
    let from = judged_since(&kept.samples, now)?;
    // The diagnosis of remaining work does not use statements and plans.
    (kept.statements, kept.plans) = (Vec::new(), Vec::new());
    let mut recording = Recording {
        dir: Default::default(),
        manifest: Manifest::starting("settle", from, Host::default()),
        tables: Default::default(),
        latencies: Vec::new(),
        search: None,
        excerpt: None,
    };
    recording.manifest.ended_at = Some(now);
    let tables = &mut recording.tables;
    (tables.samples.rows, tables.samples.present) = (kept.samples.clone(), true);
    (tables.sessions.rows, tables.sessions.present) = (kept.sessions.clone(), true);
    (tables.events.rows, tables.events.present) = (kept.events.clone(), true);
    (tables.settings.rows, tables.settings.present) = (kept.settings.clone(), true);
    Ok(debt(&Case::new(&recording, None)))
}

fn earlier(now: i64, time: Duration) -> i64 {
    now - i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// The time from which samples are judged, such that two reads of the tables lie after it. A table
/// read only once may still have work left.
fn judged_since(samples: &[Sample], now: i64) -> Result<i64, String> {
    let reads: BTreeSet<i64> = samples.iter().filter(|row| row.metric == COUNTED).map(|row| row.observed_at).collect();
    match reads.iter().rev().nth(1) {
        Some(last_but_one) => Ok(earlier(now, JUDGED_SPAN).min(*last_but_one)),
        None if samples.iter().any(|row| row.metric == LISTED) => Err("tables have not been read twice yet".to_owned()),
        None => Ok(earlier(now, JUDGED_SPAN)),
    }
}

fn report(args: &Args, waited: Duration, owed: Option<Option<DebtReport>>) -> Result<(), Failure> {
    let settled = owed.is_none();
    let debt = owed.flatten();
    let text = debt.as_ref().map_or_else(|| "old work kept coming back".to_owned(), |debt| debt.text.clone());
    if args.json {
        print_json(&SettleResult { settled, waited_s: (waited.as_secs_f64() * 10.0).round() / 10.0, debt })?;
    } else if settled {
        outln!("settled after {:.0} s", waited.as_secs_f64());
    }
    if settled { Ok(()) } else { Err(Failure::No(format!("not settled within {:.0} s: {text}", waited.as_secs_f64()))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_are_read_seldom_are_waited_for() {
        const S: i64 = 1_000_000_000;
        let read =
            |at: i64, metric: &str| Sample { observed_at: at * S, metric: metric.to_owned(), ..Sample::default() };
        assert_eq!(judged_since(&[], 100 * S), Ok(94 * S), "there are none");
        let mut samples = vec![read(80, LISTED), read(85, COUNTED)];
        assert!(judged_since(&samples, 100 * S).is_err());
        samples.push(read(99, COUNTED));
        assert_eq!(judged_since(&samples, 100 * S), Ok(85 * S));
        samples.extend([read(97, COUNTED), read(98, COUNTED)]);
        assert_eq!(judged_since(&samples, 100 * S), Ok(94 * S));
    }
}
