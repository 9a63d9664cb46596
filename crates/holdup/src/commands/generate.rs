//! `holdup generate`: fills a table or a collection with rows that a schema describes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdup_generate::{CONNECTIONS_MAX, Done, GenerateError, Generator, Options, Schema};
use holdup_load::scenario::Target;
use holdup_load::scenario::http::Trust;
use holdup_recording::files;
use holdup_recording::words::count;

use super::LARGEST_BYTES;
use crate::failure::Failure;
use crate::secret_values::value;

/// How often progress is said.
const SAID_EVERY: Duration = Duration::from_secs(1);

/// How often the end is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// Rows that --check shows.
const SHOWN: u64 = 3;

/// Fill a table or collection with rows that a schema describes
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup generate orders.yaml --to mongodb://app@127.0.0.1/shop --rows 20000000
  holdup generate orders.yaml --to postgres://app@127.0.0.1/shop --seed 7
  holdup generate orders.yaml --to mysql://app@127.0.0.1/shop --connections 8
  holdup generate orders.yaml --check

A schema:
  collection: orders                  or table: orders
  ids: objectid                       a collection's keys; numbers without it
  rows: 1000000
  fields:
    customer: {zipf: {of: 5000, exponent: 1.1}}
    state: {choice: {paid: 90, open: 10}}
    total: {uniform: 0.50..499.99}
    at: {date: 2024-01-01..2026-01-01}
    items: {array: {length: 1..5, of: {nested: {sku: {text: 8}, pieces: {uniform: 1..9}}}}}

Row N is a function of schema, seed and N. A run that was killed goes on with the same command.
It writes into an empty table, or one whose rows are its own. docs/generate.md has more.

Exit codes: 0 all rows are there, 2 unusable schema or server, 130 interrupted (the same command goes on).")]
pub struct Args {
    /// Schema file
    #[arg(value_name = "SCHEMA")]
    file: PathBuf,

    /// Database: mongodb://HOST/DATABASE, mysql://USER@HOST/DATABASE, postgres://…; or @FILE
    #[arg(long, value_name = "ADDRESS", value_parser = value, required_unless_present = "check")]
    to: Option<String>,

    /// Number of rows, in place of the schema's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 53))]
    rows: Option<u64>,

    /// Seed of all values, in place of the schema's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Connections that insert
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=i64::from(CONNECTIONS_MAX)))]
    connections: u32,

    /// Insert behind the rows that are there, whosever they are
    #[arg(long)]
    add: bool,

    /// Check the schema, show its first rows as JSON, and stop
    #[arg(long)]
    check: bool,

    /// Trust the certificates of this PEM file instead of the machine's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    tls_ca: Option<PathBuf>,

    /// Accept any certificate
    #[arg(long)]
    insecure: bool,

    /// Show no progress on stderr
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let name = args.file.display();
    let text =
        files::read_text(&args.file, LARGEST_BYTES).map_err(|why| Failure::Unusable(format!("{name}: {why}")))?;
    let schema = Schema::read(&text, &name.to_string(), args.rows, args.seed).map_err(Failure::unusable)?;
    if args.check {
        schema.sample(SHOWN).for_each(|row| outln!("{row}"));
        return Ok(());
    }
    let address = args.to.as_deref().unwrap_or_default();
    if !Target::is_database(address) {
        let expected =
            "--to: expected mongodb://HOST/DATABASE, mysql://USER@HOST/DATABASE or postgres://USER@HOST/DATABASE";
        return Err(Failure::Unusable(expected.to_owned()));
    }
    let target = Target::database(address).map_err(|why| Failure::Unusable(format!("--to: {why}")))?;
    let trust = Trust { insecure: args.insecure, ca: args.tls_ca.clone() };
    let stop = crate::stop::stop_flag()?;
    let options = Options { connections: args.connections, adds: args.add };
    let generator = Generator::new(&schema, target, trust, options);
    let begun = Instant::now();
    let done = watched(&generator, &schema, &stop, args.quiet).map_err(Failure::unusable)?;
    let seconds = begun.elapsed().as_secs_f64();
    let of = if done.found > 0 { format!("; {} were there", count(done.found)) } else { String::new() };
    let rate = count((done.inserted as f64 / seconds.max(1e-3)) as u64);
    outln!("{}: inserted {} rows in {seconds:.1} s, {rate}/s{of}", schema.table, count(done.inserted));
    if done.is_complete {
        return Ok(());
    }
    errln!("interrupted; the same command goes on from here");
    Err(Failure::Interrupted)
}

/// Runs it in a thread of its own, and says how far it is.
fn watched(
    generator: &Generator<'_>,
    schema: &Schema,
    stop: &AtomicBool,
    is_quiet: bool,
) -> Result<Done, GenerateError> {
    std::thread::scope(|scope| {
        let run = scope.spawn(|| generator.run(stop));
        let begun = Instant::now();
        let (mut said, mut rate) = (begun, Rate::default());
        while !run.is_finished() {
            std::thread::sleep(LOOK);
            let rows = generator.rows.load(Ordering::Relaxed);
            let rate = rate.at(rows, Instant::now());
            if is_quiet || said.elapsed() < SAID_EVERY {
                continue;
            }
            said = Instant::now();
            errln!("{}", progress(schema, rows, rate));
        }
        run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Rows per second of this run: those that an earlier run left are there at once, when holdup has found them.
#[derive(Default)]
struct Rate(Option<(u64, Instant)>);

impl Rate {
    fn at(&mut self, rows: u64, now: Instant) -> f64 {
        if rows == 0 {
            return 0.0;
        }
        let (from, since) = *self.0.get_or_insert((rows, now));
        rows.saturating_sub(from) as f64 / now.duration_since(since).as_secs_f64().max(1e-3)
    }
}

/// `orders: 1,234,000 of 20,000,000 rows (6 %), 85,000/s, 3m 40s left`. Behind the last row the server counts.
fn progress(schema: &Schema, rows: u64, rate: f64) -> String {
    if rows >= schema.rows {
        return format!("{}: all {} rows are there; the server counts them", schema.table, count(rows));
    }
    let share = rows as f64 / schema.rows as f64 * 100.0;
    let left = schema.rows.saturating_sub(rows) as f64 / rate;
    let left = if left.is_finite() { format!(", {} left", duration(left as u64)) } else { String::new() };
    let (rows, of, rate) = (count(rows), count(schema.rows), count(rate.max(0.0) as u64));
    format!("{}: {rows} of {of} rows ({share:.0} %), {rate}/s{left}", schema.table)
}

fn duration(seconds: u64) -> String {
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m {seconds}s"),
        (hours, minutes, _) => format!("{hours}h {minutes}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_an_earlier_run_are_not_this_ones_rate() {
        let (begun, mut rate) = (Instant::now(), Rate::default());
        let after = |seconds| begun + std::time::Duration::from_secs(seconds);
        assert!(rate.at(0, begun) == 0.0 && rate.at(16_000_000, after(9)) == 0.0);
        assert!((rate.at(16_300_000, after(12)) - 100_000.0).abs() < 1e-6);
    }

    #[test]
    fn progress_has_rate_and_time_left() {
        let text = "table: t\nrows: 20000000\nfields: {a: uuid}\n";
        let schema = Schema::read(text, "s.yaml", None, None).unwrap();
        let said = progress(&schema, 1_234_000, 85_000.0);
        assert_eq!(said, "t: 1,234,000 of 20,000,000 rows (6 %), 85,000/s, 3m 40s left");
        assert_eq!(progress(&schema, 0, 0.0), "t: 0 of 20,000,000 rows (0 %), 0/s");
        assert_eq!(progress(&schema, 20_000_000, 9.0), "t: all 20,000,000 rows are there; the server counts them");
        assert_eq!(duration(7_300), "2h 1m");
    }
}
