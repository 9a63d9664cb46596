//! `holdup watch`: collectors only, on a live system.

use std::path::PathBuf;
use std::time::Duration;

use super::{conclude, duration};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::session::{self, Session};

/// Record a live system without putting any load on it
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup watch --watch host --watch pid:4711 --for 60s
  holdup watch --watch mysql://holdup@127.0.0.1:3306 --watch prometheus:http://127.0.0.1:9100/metrics
  holdup watch --watch host --for 10s -o recordings/quiet --json

`holdup doctor` proposes what to watch on this machine.")]
pub struct Args {
    /// Source: host, pid:N, mysql://…, prometheus:URL; repeatable
    #[arg(long, value_name = "SOURCE", required = true)]
    watch: Vec<String>,

    /// How long [default: until Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    length: Option<Duration>,

    /// Time between samples
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    interval: Duration,

    /// Go on with sources that can be read only in part for want of a grant
    #[arg(long)]
    partial: bool,

    /// Directory for the recording [default: recordings/watch-TIME]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Print the verdict as JSON
    #[arg(long)]
    json: bool,

    /// No progress on stderr
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let stop = session::stop_flag()?;
    let mut progress = Progress::new(args.quiet, args.length);
    let dir = args.output.unwrap_or_else(|| session::default_dir("watch"));
    let session = Session {
        name: "watch",
        scenario: None,
        watch_for: args.length,
        watch: &args.watch,
        interval: args.interval,
        dir: &dir,
        partial: args.partial,
    };
    let recorded = session::record(&session, &mut progress, &stop)?;
    conclude(&recorded.recording, args.json, &mut progress)?;
    if recorded.interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}
