//! `holdup settle`: wait until a database has worked off what an old load left, so that a fix is measured and not the time before it.
//! It reads what `watch` reads, keeps the last seconds in memory, and asks the diagnosis what is still owed. Nothing is written.

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

use super::given::value;
use super::{duration, print_json};
use crate::failure::Failure;

/// What is looked at of what was read: a vacuum's pace shows within it.
const LOOKED_AT: Duration = Duration::from_secs(6);

/// What is kept, and of tables: of many they are read more seldom, and two reads have to be there.
const KEPT: Duration = Duration::from_secs(15);
const TABLES_KEPT: Duration = Duration::from_secs(300);

/// Read with every look at tables, and now and then.
const COUNTED: &str = metrics::postgresql::STAT_TABLES_N_TUP_UPD.name;
const LISTED: &str = metrics::postgresql::TABLE_SIZE_BYTES.name;

/// How long nothing must be owed: a vacuum that has just ended is followed by the next table's, or by a checkpoint.
const CALM: Duration = Duration::from_secs(4);

/// How often it looks whether it is to end.
const WAKE: Duration = Duration::from_millis(50);

/// Wait until a database finished old work: dead rows, vacuums, a checkpoint
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup settle postgresql://holdup@127.0.0.1:5432/app
  holdup settle postgresql://holdup@127.0.0.1:5432/app --within 30m && holdup run after-the-fix.yaml

Exit codes: 0 it is settled, 1 it was not within that time, 2 it can't be read, 130 interrupted.")]
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

/// What it came to.
#[derive(serde::Serialize)]
struct Settled {
    settled: bool,
    waited_s: f64,
    /// What is still owed.
    debt: Option<DebtReport>,
}

pub fn run(args: Args) -> Result<(), Failure> {
    if !args.address.starts_with("postgres") {
        // What was given may hold a password.
        let way_out = "settle knows PostgreSQL's debts: holdup settle postgresql://USER@HOST:PORT/DATABASE";
        return Err(Failure::Unusable(way_out.to_owned()));
    }
    let stop = crate::stop::stop_flag()?;
    let mut server = watch::collector(&args.address, &Options::default()).map_err(Failure::unusable)?;
    server.probe().map_err(Failure::unusable)?;
    let mut kept = Batch::default();
    server.settings(&mut kept).map_err(Failure::unusable)?;

    let begun = Instant::now();
    let mut calm_since: Option<Instant> = None;
    let mut said = String::new();
    loop {
        let looked = Instant::now();
        let owed = look(server.as_mut(), &mut kept);
        match &owed {
            Ok(None) => {
                calm_since.get_or_insert(looked);
            }
            Ok(Some(debt)) => {
                calm_since = None;
                let text = format!("not settled: {}", debt.text.split(": what a fix").next().unwrap_or_default());
                // A line for each table and kind of work, not for each figure of it.
                let without_figures: String = text.chars().filter(|letter| !letter.is_ascii_digit()).collect();
                if !args.quiet && without_figures != said {
                    errln!("{text}");
                    said = without_figures;
                }
            }
            Err(why) => {
                calm_since = None;
                if !args.quiet && said != *why {
                    errln!("{why}; trying again");
                    said.clone_from(why);
                }
            }
        }
        let waited = begun.elapsed();
        if calm_since.is_some_and(|since| since.elapsed() >= CALM) {
            return tell(&args, waited, None);
        }
        if waited >= args.within {
            return match owed {
                Ok(debt) => tell(&args, waited, Some(debt)),
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

/// What is owed by the last seconds' account, which grows by one look.
fn look(server: &mut dyn Collector, kept: &mut Batch) -> Result<Option<DebtReport>, String> {
    server.sample(kept).map_err(|error| error.to_string())?;
    let now = clock::now_ns();
    let (oldest, oldest_of_tables) = (before(now, KEPT), before(now, TABLES_KEPT));
    let is_of_tables =
        |row: &Sample| row.metric.starts_with(metrics::postgresql::STAT_TABLES.prefix) || row.metric == LISTED;
    kept.samples.retain(|row| row.observed_at >= if is_of_tables(row) { oldest_of_tables } else { oldest });
    kept.sessions.retain(|row| row.observed_at >= oldest);
    kept.events.retain(|row| row.observed_at >= oldest);
    let from = begin(&kept.samples, now)?;
    // Of the rest nothing is asked.
    (kept.statements, kept.plans) = (Vec::new(), Vec::new());
    let mut recording = Recording {
        dir: Default::default(),
        manifest: Manifest::starting("settle", from, Host::default()),
        tables: Default::default(),
        latencies: Vec::new(),
        search: None,
    };
    recording.manifest.ended_at = Some(now);
    let tables = &mut recording.tables;
    (tables.samples.rows, tables.samples.present) = (kept.samples.clone(), true);
    (tables.sessions.rows, tables.sessions.present) = (kept.sessions.clone(), true);
    (tables.events.rows, tables.events.present) = (kept.events.clone(), true);
    (tables.settings.rows, tables.settings.present) = (kept.settings.clone(), true);
    Ok(debt(&Case::new(&recording, None)))
}

fn before(now: i64, time: Duration) -> i64 {
    now - i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// From when on it is looked at: so that two reads of the tables are in it. What was not read twice is no table without a debt.
fn begin(samples: &[Sample], now: i64) -> Result<i64, String> {
    let reads: BTreeSet<i64> = samples.iter().filter(|row| row.metric == COUNTED).map(|row| row.observed_at).collect();
    match reads.iter().rev().nth(1) {
        Some(last_but_one) => Ok(before(now, LOOKED_AT).min(*last_but_one)),
        None if samples.iter().any(|row| row.metric == LISTED) => Err("tables were not read twice yet".to_owned()),
        None => Ok(before(now, LOOKED_AT)),
    }
}

fn tell(args: &Args, waited: Duration, owed: Option<Option<DebtReport>>) -> Result<(), Failure> {
    let settled = owed.is_none();
    let debt = owed.flatten();
    let text = debt.as_ref().map_or_else(|| "it was not calm for long enough".to_owned(), |debt| debt.text.clone());
    if args.json {
        print_json(&Settled { settled, waited_s: (waited.as_secs_f64() * 10.0).round() / 10.0, debt })?;
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
        assert_eq!(begin(&[], 100 * S), Ok(94 * S), "there are none");
        let mut samples = vec![read(80, LISTED), read(85, COUNTED)];
        assert!(begin(&samples, 100 * S).is_err());
        samples.push(read(99, COUNTED));
        assert_eq!(begin(&samples, 100 * S), Ok(85 * S));
        samples.extend([read(97, COUNTED), read(98, COUNTED)]);
        assert_eq!(begin(&samples, 100 * S), Ok(94 * S));
    }
}
