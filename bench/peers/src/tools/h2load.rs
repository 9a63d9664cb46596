//! h2load, nghttp2's load generator: closed model; HTTP/2, or HTTP/1.1 with `--h1`.

use anyhow::{Context as _, Result};

use super::install::Source;
use super::text::number_before;
use super::{Ask, Output, Reported, Tool};

/// The tool.
pub const TOOL: Tool = Tool {
    name: "h2load",
    source: Source::Debian { package: "nghttp2-client", program: "h2load" },
    paces: false,
    arguments,
    read,
};

fn arguments(ask: &Ask) -> Result<Vec<String>> {
    let demand = ask.demand;
    let (connections, seconds) = (demand.connections.to_string(), demand.seconds.to_string());
    let mut words = ask.with_flags(["-t", "1", "-c", &connections, "-D", &seconds]);
    words.push(ask.url.to_owned());
    Ok(words)
}

fn read(output: &Output) -> Result<Reported> {
    let text = &output.stdout;
    let completed = number_before(text, " succeeded").context("it doesn't say how many requests succeeded")?;
    let line = text.lines().find_map(|line| line.strip_prefix("time for request:"));
    let mut times = line.unwrap_or_default().split_whitespace().map(super::text::duration_ms);
    Ok(Reported {
        completed: completed as u64,
        errors: number_before(text, " failed").unwrap_or_default() as u64,
        max_ms: times.nth(1).flatten(),
        ..Reported::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_report() {
        let stdout = "finished in 2.00s, 31000.50 req/s, 3.00MB/s\nrequests: 62001 total, 62065 started, 62001 done, \
             62000 succeeded, 1 failed, 1 errored, 0 timeout\ntime for request:      150us     12.50ms       1.02ms       \
             300us    80.00%\n";
        let output = Output { stdout: stdout.into(), ..super::super::tests_output() };
        let reported = read(&output).unwrap();
        assert_eq!((reported.completed, reported.errors, reported.max_ms), (62_000, 1, Some(12.5)));
    }
}
