//! The flags that say where a run goes beside its recording.

use super::given::{Values, values};
use crate::failure::Failure;
use crate::outputs::Outputs;
use crate::terminal;

#[derive(clap::Args)]
#[command(next_help_heading = "Where to, beside the recording")]
pub struct OutputArgs {
    /// Write the load's seconds, or the result, to csv:FILE, json:FILE (- is stdout), prometheus:URL, junit:FILE or
    /// hlog:FILE too; repeatable
    ///
    /// csv: a row a second and operation. json: JSON lines, one a second, and a summary. prometheus: remote write.
    /// junit: a test case an objective. hlog: a copy of latency.hlog. Without FORMAT the file's extension or the URL
    /// says it, and - alone is json:-. With a FILE of - stdout is that output's: progress and verdict go to stderr.
    /// For example --out csv:seconds.csv, --out junit:objectives.xml, --out
    /// prometheus:http://127.0.0.1:9090/api/v1/write
    // Taken as text, and read later: clap would repeat a URL with its password in an error.
    #[arg(long, value_name = "[FORMAT:]WHERE", value_parser = values)]
    out: Vec<Values>,

    /// Serve the same series to Prometheus at http://ADDR/metrics while it runs, e.g. 127.0.0.1:9464
    ///
    /// A port alone is one of loopback; 0.0.0.0:9464 is for all who can reach this machine.
    #[arg(long, value_name = "ADDR")]
    metrics: Option<String>,
}

impl OutputArgs {
    /// The outputs, none of them opened. From now on what would be printed on stdout goes to stderr if one of them is
    /// stdout.
    ///
    /// # Errors
    /// If one is no output, or two want the same place, the verdict as JSON among them.
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
