//! oha: closed, or a rate with `-q`; counts from the intended start only with `--latency-correction`.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::install::Source;
use super::{Ask, Output, Reported, Tool};

/// The tool.
pub const TOOL: Tool = Tool { name: "oha", source: Source::Cargo { name: "oha" }, paces: true, arguments, read };

fn arguments(ask: &Ask) -> Result<Vec<String>> {
    let demand = ask.demand;
    let mut words = vec!["-z".to_owned(), format!("{}s", demand.seconds), "-c".into(), demand.connections.to_string()];
    if let Some(rate) = demand.rate {
        words.extend(["-q".into(), rate.to_string()]);
    }
    words.extend(["--no-tui", "--output-format", "json"].map(str::to_owned));
    let mut words = ask.with_flags(words);
    words.push(ask.url.to_owned());
    Ok(words)
}

fn read(output: &Output) -> Result<Reported> {
    let said: Value = serde_json::from_str(&output.stdout).context("failed to read its JSON")?;
    let sum =
        |kinds: &Value| -> u64 { kinds.as_object().map_or(0, |kinds| kinds.values().filter_map(Value::as_u64).sum()) };
    // What was under way when the time was over is no failure.
    let aborted = said["errorDistribution"]["aborted due to deadline"].as_u64().unwrap_or_default();
    let ms = |value: &Value| value.as_f64().map(|seconds| seconds * 1e3);
    Ok(Reported {
        completed: said["statusCodeDistribution"]["200"].as_u64().context("it reports no answers with 200")?,
        errors: sum(&said["errorDistribution"]) - aborted,
        p50_ms: ms(&said["latencyPercentiles"]["p50"]),
        p99_ms: ms(&said["latencyPercentiles"]["p99"]),
        p999_ms: ms(&said["latencyPercentiles"]["p99.9"]),
        max_ms: ms(&said["summary"]["slowest"]),
        ..Reported::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_json() {
        let stdout = r#"{"summary":{"slowest":2.0},"latencyPercentiles":{"p50":0.0011,"p99":1.8,"p99.9":1.98},
            "statusCodeDistribution":{"200":9990},"errorDistribution":{"aborted due to deadline":8,"reset":1}}"#;
        let output = Output { stdout: stdout.into(), ..super::super::tests_output() };
        let reported = read(&output).unwrap();
        assert_eq!((reported.completed, reported.errors), (9990, 1));
        assert_eq!((reported.p50_ms, reported.p999_ms, reported.max_ms), (Some(1.1), Some(1980.0), Some(2000.0)));
    }
}
