//! wrk: closed model only, one thread here because it has one core.

use anyhow::{Context as _, Result};

use super::install::Source;
use super::text::{duration_after, number_after, number_before};
use super::{Ask, Output, Reported, Tool};

/// The tool.
pub const TOOL: Tool =
    Tool { name: "wrk", source: Source::Debian { package: "wrk", program: "wrk" }, paces: false, arguments, read };

fn arguments(ask: &Ask) -> Result<Vec<String>> {
    let demand = ask.demand;
    let load = ["-t1".to_owned(), format!("-c{}", demand.connections), format!("-d{}s", demand.seconds)];
    let mut words = ask.with_flags(load);
    words.extend(["--latency".to_owned(), ask.url.to_owned()]);
    Ok(words)
}

fn read(output: &Output) -> Result<Reported> {
    let text = &output.stdout;
    let completed = number_before(text, " requests in ").context("it doesn't say how many requests it made")?;
    let errors: f64 = ["connect ", "read ", "write ", "timeout "]
        .into_iter()
        .filter_map(|kind| number_after(text.split_once("Socket errors:")?.1, kind))
        .sum();
    // Latency's line of the thread statistics: average, deviation, maximum.
    let max_ms = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("Latency "))
        .and_then(|line| super::text::duration_ms(line.split_whitespace().nth(2)?));
    let spread = text.split_once("Latency Distribution").map_or("", |(_, tail)| tail);
    Ok(Reported {
        completed: completed as u64,
        errors: errors as u64,
        p50_ms: duration_after(spread, "50%"),
        p99_ms: duration_after(spread, "99%"),
        max_ms,
        ..Reported::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_report() {
        let stdout = "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     1.02ms  300.00us   21.50ms   \
             87.10%\n    Req/Sec    62.1k     1.9k    66.0k    75.00%\n  Latency Distribution\n     50%  990.00us\n     \
             99%    1.71ms\n  371000 requests in 6.00s, 40.00MB read\n  Socket errors: connect 0, read 3, write 0, \
             timeout 4\n";
        let output = Output { stdout: stdout.into(), ..super::super::tests_output() };
        let expected = Reported {
            completed: 371_000,
            errors: 7,
            p50_ms: Some(0.99),
            p99_ms: Some(1.71),
            max_ms: Some(21.5),
            ..Reported::default()
        };
        assert_eq!(read(&output).unwrap(), expected);
    }
}
