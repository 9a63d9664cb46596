//! holdup itself, through the command line that everybody has.

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::install::Source;
use super::{Ask, Output, REPORT, Reported, Tool};

/// The tool.
pub const TOOL: Tool = Tool { name: "holdup", source: Source::Ours, paces: true, arguments, read };

/// In place of flags: sessions of two steps, with templates, one capture and one check.
pub const SESSIONS: &str = "@sessions";

fn arguments(ask: &Ask) -> Result<Vec<String>> {
    let demand = ask.demand;
    if ask.flags.iter().any(|flag| flag == SESSIONS) {
        let file = ask.file("sessions.yaml");
        fs::write(&file, sessions(ask)).with_context(|| format!("failed to write {file}"))?;
        let words = ["run", &file, "--no-collect", "--json", "-q", "-o", &ask.file("recording")];
        return Ok(words.map(str::to_owned).into());
    }
    let mut words = vec!["run".to_owned(), "--url".into(), ask.url.into()];
    match demand.rate {
        Some(rate) => words.extend(["--rate".into(), rate.to_string()]),
        None => words.push("--closed".into()),
    }
    words.extend(["--connections".into(), demand.connections.to_string()]);
    words.extend(["--duration".into(), format!("{}s", demand.seconds)]);
    words.extend(["--no-collect", "--json", "-q", "-o"].map(str::to_owned));
    words.push(ask.file("recording"));
    Ok(ask.with_flags(words))
}

fn sessions(ask: &Ask) -> String {
    format!(
        r"target: http://127.0.0.1:{}
load: {{users: {}, duration: {}s}}
steps:
  - name: first
    get: /first?item=${{random(1, 5000)}}
    capture: {{token: json /token}}
  - name: second
    get: /second
    headers: {{Authorization: 'Bearer ${{token}}'}}
    check: json /token == 42
",
        ask.port, ask.demand.connections, ask.demand.seconds
    )
}

fn read(output: &Output) -> Result<Reported> {
    let said: Value = serde_json::from_str(&output.stdout).context("failed to read its JSON")?;
    // The rest is its verdict, which is long.
    fs::write(output.scratch.join(REPORT), said["load"].to_string())?;
    let operations = said["load"]["operations"].as_array().context("its JSON has no load.operations")?;
    let mut reported = Reported::default();
    for operation in operations {
        reported.completed += operation["completed"].as_u64().unwrap_or_default();
        reported.errors += match &operation["errors"] {
            Value::Object(kinds) => kinds.values().filter_map(Value::as_u64).sum(),
            other => other.as_u64().unwrap_or_default(),
        };
        let response = &operation["response_ms"];
        reported.p50_ms = response["p50"].as_f64();
        reported.p99_ms = response["p99"].as_f64();
        reported.p999_ms = response["p999"].as_f64();
        reported.max_ms = response["max"].as_f64();
        reported.send_lag_p99_ms = operation["send_lag_ms"]["p99"].as_f64();
    }
    Ok(reported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_json() {
        let stdout = r#"{"load":{"operations":[{"operation":"GET /","offered":100,"completed":97,"errors":{"timeout":2,
            "reset":1},"response_ms":{"p50":1.2,"p99":1800.5,"p999":1980,"max":2000.1},
            "send_lag_ms":{"p99":0.11}}]}}"#;
        let dir = tempfile::tempdir().unwrap();
        let scratch = dir.path().to_owned();
        let output = Output { stdout: stdout.into(), scratch, ..super::super::tests_output() };
        let reported = read(&output).unwrap();
        assert_eq!((reported.completed, reported.errors), (97, 3));
        assert_eq!((reported.p99_ms, reported.send_lag_p99_ms), (Some(1800.5), Some(0.11)));
        assert!(fs::read_to_string(dir.path().join(REPORT)).unwrap().starts_with(r#"{"operations":[{"#));
    }
}
