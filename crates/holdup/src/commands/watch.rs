//! `holdup watch`: runs only the collectors, on a live system.

use std::time::Duration;

use super::thresholds::ThresholdArgs;
use super::{Output, Sampling, conclude, duration};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::repeat::quota;
use crate::session::{self, Session};
use crate::storing::{CasePart, StoreArgs};

/// Record a live system without putting any load on it
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup watch --watch host --watch pid:4711 --for 60s
  holdup watch --watch mysql://holdup@127.0.0.1:3306 --watch prometheus:http://127.0.0.1:9100/metrics
  holdup watch --watch postgresql://holdup@127.0.0.1:5432/shop --for 60s
  holdup watch --watch host --for 10s -o recordings/quiet --json
  holdup watch --watch host --recording-id incident-4711 -o recordings/db1
  holdup watch --watch kafka://127.0.0.1:9092 --pipeline pipeline.yaml --for 5m
  holdup watch --watch host --store clickhouse://writer@db7/holdup
  holdup watch --watch host --watch prometheus:http://127.0.0.1:8080/metrics --for 60s --threshold 'p99 < 500ms'

A source that does not answer is asked again, and recorded once it does; the others start meanwhile.
`holdup doctor` proposes sources on this machine. Set passwords in HOLDUP_MYSQL_PASSWORD,
HOLDUP_POSTGRES_PASSWORD and HOLDUP_MONGODB_PASSWORD.")]
pub struct Args {
    #[command(flatten)]
    sampling: Sampling,

    /// Record for this long [default: until Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    length: Option<Duration>,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    store: StoreArgs,
}

pub fn run(args: Args) -> Result<(), Failure> {
    if args.sampling.watch.is_empty() {
        return Err(Failure::Unusable(
            "nothing to watch: add e.g. --watch host; holdup doctor proposes a list".to_owned(),
        ));
    }
    let watched = args.sampling.watched();
    let thresholds = args.thresholds.for_sources(&watched)?;
    let id = args.sampling.recording_id.as_deref();
    let store = args.store.target()?.map(|target| target.with_part(CasePart::new(id, &session::host(), None)));
    quota::restore_if_any();
    let stop = crate::stop::stop_flag()?;
    let mut progress = Progress::new(args.output.quiet, args.length);
    let dir = args.output.dir("watch");
    let watching = args.sampling.session("watch", &watched, &dir);
    let session = Session { watch_for: args.length, thresholds, store: store.as_ref(), ..watching };
    let mut recorded = session::record(&session, &mut progress, &stop)?;
    let concluded = conclude(&recorded, args.output.json);
    recorded.store_rest(&mut progress);
    let diagnosis = concluded?;
    if recorded.interrupted {
        return Err(Failure::Interrupted);
    }
    args.thresholds.check_judged(&diagnosis)?;
    args.thresholds.check_met(&diagnosis)
}
