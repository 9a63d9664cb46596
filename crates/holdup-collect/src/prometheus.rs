//! `--watch prometheus:URL`: one endpoint with Prometheus' text format. Every series becomes a
//! sample under its own name and labels, verbatim; gauges, counters and buckets are all raw rows.
//! Nothing is aggregated. Only database metrics from CloudWatch exporters are renamed, to the names
//! of an import.

pub mod address;
mod cloudwatch;

use std::time::Duration;

use holdup_recording::exposition as text;
use holdup_recording::{Batch, Coverage};

use crate::coverage::{Line as _, complete};
use crate::options::Options;
use crate::page::TIMEOUT;
use crate::reading::{Out, OwnName};
use crate::{Collector, ProbeError, ReadError, http};
use address::Address;
use cloudwatch::{CloudWatch, SeriesClass};

/// Largest answer accepted.
const BODY_BYTES_MAX: u64 = 16 << 20;

/// The plain format first: OpenMetrics has the same content in more bytes.
const ACCEPT: &str = "text/plain;version=0.0.4, application/openmetrics-text;version=1.0.0;q=0.5, */*;q=0.1";

/// The usual path, for examples.
const USUAL_PATH: &str = "/metrics";

/// One endpoint as a source.
pub struct Prometheus {
    address: Address,
    agent: ureq::Agent,
    /// Whether `probe` has reported too many series: then samples do not report a gap each time.
    said_too_many: bool,
    cloudwatch: CloudWatch,
}

/// An answer.
struct Answer {
    scrape: text::Scrape,
    openmetrics: bool,
}

impl Prometheus {
    /// The endpoint at `url`; its user and password are sent as basic authentication and never
    /// shown.
    ///
    /// # Errors
    /// What is wrong with the URL, without repeating it.
    pub fn new(url: &str) -> Result<Self, String> {
        Ok(Self {
            address: Address::parse(url, USUAL_PATH)?,
            agent: http::agent(TIMEOUT, ACCEPT),
            said_too_many: false,
            cloudwatch: CloudWatch::default(),
        })
    }

    fn ask(&self) -> Result<Answer, String> {
        let (body, content_type) = get(&self.agent, &self.address, BODY_BYTES_MAX)?;
        let openmetrics = content_type.starts_with("application/openmetrics-text");
        Ok(Answer { scrape: text::parse(&body), openmetrics })
    }
}

/// Makes the collector for `prometheus:URL`.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    Ok(Box::new(Prometheus::new(rest)?))
}

impl Collector for Prometheus {
    fn source(&self) -> String {
        format!("prometheus:{}", self.address.shown)
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let unreachable = |why: String| ProbeError::unreachable(self.source(), why);
        let answer = self.ask().map_err(unreachable)?;
        if answer.scrape.series.is_empty() {
            let why = match answer.scrape.first_bad {
                Some((line, why)) => format!("its answer is not Prometheus' text format: line {line}: {why}"),
                None => "its answer contains no metric; is the path right (often /metrics)?".to_owned(),
            };
            return Err(unreachable(why));
        }
        let (left_out, most) = (answer.scrape.left_out, text::SERIES_MAX);
        self.said_too_many = left_out > 0;
        let own = complete(self.source());
        if left_out == 0 {
            return Ok(vec![own]);
        }
        let why = format!("{} series; holdup leaves out the {left_out} after the first {most}", left_out + most);
        let enable = "have the server export fewer series, or ask for a part (?name[]=…) if it can";
        Ok(vec![own.partial(why).enable(enable)])
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let source = self.source();
        let mut out = Out::new(batch, &source);
        let answer = out.read(|| self.ask()).map_err(ReadError)?;
        let at = out.at();
        for series in answer.scrape.series {
            match self.cloudwatch.classify(&series, at) {
                SeriesClass::Repeated => {}
                SeriesClass::New(figure) => {
                    out.put(figure.metric, figure.labels, figure.value);
                    if let (Some(at), Some(sample)) = (figure.at, out.batch.samples.last_mut()) {
                        sample.observed_at = at;
                    }
                }
                SeriesClass::Other => out.put(OwnName(&series.name), series.labels, series.value),
            }
        }
        if let Some((line, why)) = answer.scrape.first_bad {
            let more = answer.scrape.bad_lines - 1;
            let more = if more > 0 { format!(" (and {more} more bad lines)") } else { String::new() };
            return Err(ReadError(format!("line {line} of the answer: {why}{more}")));
        }
        if answer.openmetrics && !answer.scrape.ended {
            return Err(ReadError("the answer was cut off: OpenMetrics text without `# EOF`".to_owned()));
        }
        if answer.scrape.left_out > 0 && !self.said_too_many {
            let (left_out, most) = (answer.scrape.left_out, text::SERIES_MAX);
            return Err(ReadError(format!("{left_out} series after the first {most} were left out")));
        }
        Ok(())
    }
}

/// Body and content type of a successful answer; otherwise the reason, without the URL.
fn get(agent: &ureq::Agent, address: &Address, bytes_max: u64) -> Result<(Vec<u8>, String), String> {
    let answer = http::get(agent, &address.url, address.authorization.as_deref(), bytes_max)?;
    let status = answer.status;
    match status {
        200 => Ok((answer.body, answer.content_type)),
        401 | 403 => Err(format!("it answers with status {status}: add user and password: http://USER:PASSWORD@…")),
        300..=399 => {
            Err(format!("it answers with status {status}, a redirect, which holdup does not follow: use the final URL"))
        }
        _ => Err(format!("it answers with status {status}")),
    }
}

/// Whether `url` answers within `timeout` with at least one metric in Prometheus' text format.
pub(crate) fn answers(url: &str, timeout: Duration) -> bool {
    let Ok(address) = Address::parse(url, USUAL_PATH) else { return false };
    get(&http::agent(timeout, ACCEPT), &address, BODY_BYTES_MAX).is_ok_and(|(body, _)| {
        let scrape = text::parse(&body);
        !scrape.series.is_empty() && scrape.bad_lines == 0
    })
}
