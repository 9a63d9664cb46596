//! vegeta: a rate, with as many connections as that takes unless it is capped. It writes a file of results, which a
//! second command, that isn't measured, makes a report of.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::install::Source;
use super::{Ask, Output, REPORT, Reported, Tool};

/// The tool.
pub const TOOL: Tool = Tool {
    name: "vegeta",
    source: Source::Go { module: "github.com/tsenart/vegeta/v12", version: "latest", program: "vegeta" },
    paces: true,
    arguments,
    read,
};

fn arguments(ask: &Ask) -> Result<Vec<String>> {
    let demand = ask.demand;
    fs::write(ask.scratch.join("targets"), format!("GET {}\n", ask.url))?;
    let duration = format!("-duration={}s", demand.seconds);
    let mut words = vec!["attack".to_owned(), format!("-targets={}", ask.file("targets")), duration];
    match demand.rate {
        Some(rate) => words.push(format!("-rate={rate}/1s")),
        // As many as its workers can make: that is a closed model.
        None => words.extend(["-rate=0".to_owned(), format!("-max-workers={}", demand.connections)]),
    }
    words.push(format!("-output={}", ask.file("results")));
    Ok(ask.with_flags(words))
}

fn read(output: &Output) -> Result<Reported> {
    let results = output.scratch.join("results");
    let mut report = Command::new(&output.program);
    report.args(["report", "-type=json"]).arg(results);
    let made = report.output().context("failed to start vegeta report")?;
    fs::write(output.scratch.join(REPORT), &made.stdout)?;
    reported(&made.stdout)
}

fn reported(json: &[u8]) -> Result<Reported> {
    let said: Value = serde_json::from_slice(json).context("failed to read its report")?;
    let completed = said["status_codes"]["200"].as_u64().context("it reports no answers with 200")?;
    let ms = |name: &str| said["latencies"][name].as_f64().map(|ns| ns / 1e6);
    Ok(Reported {
        completed,
        errors: said["requests"].as_u64().unwrap_or(completed).saturating_sub(completed),
        p50_ms: ms("50th"),
        p99_ms: ms("99th"),
        max_ms: ms("max"),
        ..Reported::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_json() {
        let json = br#"{"latencies":{"50th":1100000,"99th":1800000000,"max":2000000000},"requests":10000,
            "status_codes":{"200":9998,"0":2}}"#;
        let reported = reported(json).unwrap();
        assert_eq!((reported.completed, reported.errors), (9998, 2));
        assert_eq!((reported.p50_ms, reported.p99_ms, reported.max_ms), (Some(1.1), Some(1800.0), Some(2000.0)));
    }
}
