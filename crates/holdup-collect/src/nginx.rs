//! `--watch nginx:http://HOST:PORT/PATH`: nginx' page `stub_status`. It shows how many connections
//! nginx has, how many of them are busy, and how many it dropped for want of room. It has no times:
//! those are in the access log, which `log:` follows.

use std::time::{Duration, Instant};

use holdup_recording::metrics::{Metric, nginx as metric};
use holdup_recording::{Batch, Coverage, clock};

use crate::options::Options;
use crate::prometheus::address::Address;
use crate::reading::Out;
use crate::{Collector, ProbeError, ReadError, http};

/// Time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Largest answer accepted: the page has four lines.
const BODY_BYTES_MAX: u64 = 64 << 10;

const EXAMPLE: &str = "nginx:http://127.0.0.1:8080/stub_status (in nginx' configuration: location = /stub_status { stub_status; allow 127.0.0.1; deny all; })";

/// An nginx as a source.
struct Nginx {
    source: String,
    agent: ureq::Agent,
    url: Address,
}

/// Makes the collector for `nginx:…`; [`watch::SCHEMES`](crate::watch::SCHEMES) lists it.
///
/// # Errors
/// If the rest is not the URL of a page.
pub fn make(address: &str, _options: &Options) -> Result<Box<dyn Collector>, ProbeError> {
    let bad = |why: String| ProbeError::BadAddress(format!("--watch nginx:…: {why}"));
    let url = address.strip_prefix("nginx:").unwrap_or_default();
    let url = Address::parse_like(url, EXAMPLE).map_err(bad)?;
    Ok(Box::new(Nginx { source: format!("nginx:{}", url.place), agent: http::agent(TIMEOUT, "text/plain"), url }))
}

/// The figures of the page in its order; none if it is another page.
fn figures(page: &str) -> Option<Vec<(Metric, f64)>> {
    let mut lines = page.lines();
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    let active = number(lines.next()?.strip_prefix("Active connections:")?)?;
    // Some builds add a column: the head names those that there are.
    let head = lines.next()?.strip_prefix("server ")?.split_whitespace();
    let counts: Vec<(&str, f64)> = head.zip(lines.next()?.split_whitespace().filter_map(number)).collect();
    let words: Vec<&str> = lines.next()?.split_whitespace().collect();
    let count = |name: &str| counts.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let now = |name: &str| number(words.get(words.iter().position(|word| *word == name)? + 1)?);
    Some(vec![
        (metric::ACTIVE_CONNECTIONS, active),
        (metric::READING_CONNECTIONS, now("Reading:")?),
        (metric::WRITING_CONNECTIONS, now("Writing:")?),
        (metric::WAITING_CONNECTIONS, now("Waiting:")?),
        (metric::ACCEPTED_CONNECTIONS, count("accepts")?),
        (metric::HANDLED_CONNECTIONS, count("handled")?),
        (metric::REQUESTS, count("requests")?),
    ])
}

impl Nginx {
    fn ask(&self) -> Result<Vec<(Metric, f64)>, String> {
        let answer = http::get(&self.agent, &self.url.url, self.url.authorization.as_deref(), BODY_BYTES_MAX)?;
        match answer.status {
            200 => figures(&String::from_utf8_lossy(&answer.body))
                .ok_or_else(|| format!("its answer is not the page of stub_status; expected {EXAMPLE}")),
            401 | 403 => Err(format!(
                "it answers with status {}: allow this address in that location, or use http://USER:PASSWORD@…",
                answer.status
            )),
            status => Err(format!("it answers with status {status}; expected {EXAMPLE}")),
        }
    }
}

impl Collector for Nginx {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        self.ask().map_err(|why| ProbeError::Unreachable { source_name: self.source(), why })?;
        Ok(Coverage::with_parts(&self.source, Vec::new()))
    }

    fn settings(&mut self, _batch: &mut Batch) -> Result<(), ReadError> {
        // The page has none.
        Ok(())
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut out = Out::new(batch, &self.source);
        let (begun_at, begun) = (clock::now_ns(), Instant::now());
        let figures = self.ask().map_err(ReadError)?;
        out.set_window(begun_at, begun.elapsed().as_nanos() as i64);
        for (metric, value) in figures {
            out.put_plain(metric, value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_and_others() {
        let page =
            "Active connections: 9 \nserver accepts handled requests\n 16 15 31 \nReading: 1 Writing: 2 Waiting: 6 \n";
        let values = |page: &str| figures(page).map(|all| all.iter().map(|(_, value)| *value).collect::<Vec<_>>());
        let expected = Some(vec![9.0, 1.0, 2.0, 6.0, 16.0, 15.0, 31.0]);
        assert_eq!(values(page), expected);
        let more = page.replace("handled requests", "handled times requests").replace("15 31", "15 7 31");
        assert_eq!(values(&more), expected, "columns are found by name");
        for end in 0..page.len() - 4 {
            assert_eq!(values(&page[..end]), None, "{end}");
        }
        assert_eq!(values("<html>Welcome to nginx!</html>"), None);
    }

    #[test]
    fn addresses() {
        let source = make("nginx:http://me:canary@h:81/s?token=canary", &Options::default()).unwrap().source();
        assert_eq!(source, "nginx:http://h:81/s");
        for bad in ["nginx:", "nginx:h:80", "nginx:ftp://h/s", "nginx:http://me:canary@/s"] {
            let error = make(bad, &Options::default()).err().unwrap().to_string();
            assert!(error.contains("nginx:http://") && !error.contains("canary"), "{error}");
        }
    }
}
