//! The flags that write a run's results to further places beside its recording.

use crate::failure::Failure;
use crate::outputs::Outputs;
use crate::secret_values::{Values, values};
use crate::terminal;

#[derive(clap::Args)]
#[command(next_help_heading = "Where to, beside the recording")]
pub struct OutputArgs {
    /// Also write each second, or the result, to [FORMAT:]WHERE; repeatable
    ///
    /// csv:FILE has a row per second and operation. json:FILE has JSON lines, one per second, and a
    /// summary. prometheus:URL is sent by remote write. junit:FILE has a test case per objective.
    /// hlog:FILE is a copy of latency.hlog. Without FORMAT, the file's extension or the URL
    /// decides, and - alone means json:-. If FILE is -, stdout carries that output, and progress
    /// and verdict go to stderr. Examples: --out csv:seconds.csv, --out junit:objectives.xml, --out
    /// prometheus:http://127.0.0.1:9090/api/v1/write
    // Kept as text and parsed later: clap would print a URL with its password in an error.
    #[arg(long, value_name = "[FORMAT:]WHERE", value_parser = values)]
    out: Vec<Values>,

    /// Serve the same series to Prometheus at http://ADDR/metrics while it runs, e.g. 127.0.0.1:9464
    ///
    /// A port alone is bound to loopback; 0.0.0.0:9464 can be reached from other machines.
    #[arg(long, value_name = "ADDR")]
    metrics: Option<String>,
}

impl OutputArgs {
    /// The outputs, not opened yet. If one of them is stdout, text for stdout goes to stderr from
    /// now on.
    ///
    /// # Errors
    /// If one is not a valid output, or two outputs (the verdict as JSON among them) share a place.
    pub fn outputs(&self, json: bool) -> Result<Outputs, Failure> {
        let outputs = Outputs::parse(&Values::list(&self.out), self.metrics.as_deref())?;
        if outputs.take_stdout() {
            if json {
                return Err(Failure::Unusable(
                    "--json and --out … - both want stdout; give the output a file, e.g. --out json:seconds.jsonl"
                        .to_owned(),
                ));
            }
            terminal::print_on_stderr();
        }
        Ok(outputs)
    }
}
