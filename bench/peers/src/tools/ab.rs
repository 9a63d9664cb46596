//! ApacheBench: closed model only, whole milliseconds.

use anyhow::{Context as _, Result};

use super::install::Source;
use super::text::number_after;
use super::{Ask, Output, Reported, Tool};

/// More requests than any run makes: the time limit is to end it. It lays out memory for as many.
const REQUESTS_MOST: &str = "5000000";

/// The tool.
pub const TOOL: Tool = Tool {
    name: "ab",
    source: Source::Debian { package: "apache2-utils", program: "ab" },
    paces: false,
    arguments,
    read,
};

fn arguments(ask: &Ask) -> Result<Vec<String>> {
    let demand = ask.demand;
    let (seconds, connections) = (demand.seconds.to_string(), demand.connections.to_string());
    // -t sets a number of requests of its own, so -n comes after it.
    let load = ["-k", "-q", "-t", &seconds, "-n", REQUESTS_MOST, "-c", &connections];
    let mut words = ask.with_flags(load);
    words.push(format!("{}/", ask.url.trim_end_matches('/')));
    Ok(words)
}

fn read(output: &Output) -> Result<Reported> {
    let text = &output.stdout;
    let completed = number_after(text, "Complete requests:").context("it doesn't say how many requests it made")?;
    let spread = text.split_once("Percentage of the requests").map_or("", |(_, tail)| tail);
    Ok(Reported {
        completed: completed as u64,
        errors: number_after(text, "Failed requests:").unwrap_or_default() as u64,
        p50_ms: number_after(spread, "50%"),
        p99_ms: number_after(spread, "99%"),
        max_ms: number_after(spread, "100%"),
        ..Reported::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_report() {
        let stdout = "Complete requests:      290123\nFailed requests:        2\n\nPercentage of the requests served \
             within a certain time (ms)\n  50%      1\n  99%      2\n 100%   2004 (longest request)\n";
        let output = Output { stdout: stdout.into(), ..super::super::tests_output() };
        let reported = read(&output).unwrap();
        assert_eq!((reported.completed, reported.errors), (290_123, 2));
        assert_eq!((reported.p50_ms, reported.p99_ms, reported.max_ms), (Some(1.0), Some(2.0), Some(2004.0)));
    }
}
