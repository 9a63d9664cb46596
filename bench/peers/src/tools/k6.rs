//! k6: a script in JavaScript. A rate is its constant-arrival-rate executor, with no more virtual users than there
//! are to be connections unless the entrant says otherwise (`-e USERS=2000`).

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::install::Source;
use super::{Ask, Output, Reported, Tool};

/// The tool.
pub const TOOL: Tool = Tool {
    name: "k6",
    source: Source::Go { module: "go.k6.io/k6", version: "latest", program: "k6" },
    paces: true,
    arguments,
    read,
};

/// What it runs. Bodies are thrown away, as its manual advises for load; the summary goes to stdout as JSON.
const SCRIPT: &str = "\
import http from 'k6/http';
const users = Number(__ENV.USERS), rate = Number(__ENV.RATE), duration = __ENV.SECONDS + 's';
const closed = { executor: 'constant-vus', vus: users, duration };
const open = { executor: 'constant-arrival-rate', rate, timeUnit: '1s', duration, preAllocatedVUs: users, maxVUs: users };
export const options = {
  discardResponseBodies: true,
  summaryTrendStats: ['med', 'p(99)', 'p(99.9)', 'max'],
  scenarios: { load: rate > 0 ? open : closed },
};
export default function () { http.get(__ENV.URL); }
export function handleSummary(data) {
  const value = (metric, name) => (data.metrics[metric] ? data.metrics[metric].values[name] : undefined);
  const time = (name) => value('http_req_duration', name);
  return {
    stdout: JSON.stringify({
      requests: value('http_reqs', 'count'), failed: value('http_req_failed', 'passes'),
      dropped: value('dropped_iterations', 'count'),
      p50: time('med'), p99: time('p(99)'), p999: time('p(99.9)'), max: time('max'),
    }) + '\\n',
  };
}
";

fn arguments(ask: &Ask) -> Result<Vec<String>> {
    let demand = ask.demand;
    fs::write(ask.scratch.join("script.js"), SCRIPT)?;
    let mut words = vec!["run".to_owned(), "--quiet".into(), "--no-usage-report".into()];
    let given = [
        format!("URL={}", ask.url),
        format!("USERS={}", demand.connections),
        format!("RATE={}", demand.rate.unwrap_or_default()),
        format!("SECONDS={}", demand.seconds),
    ];
    words.extend(given.into_iter().flat_map(|variable| ["-e".to_owned(), variable]));
    let mut words = ask.with_flags(words);
    words.push(ask.file("script.js"));
    Ok(words)
}

fn read(output: &Output) -> Result<Reported> {
    let line = output.stdout.lines().find(|line| line.starts_with('{')).context("it printed no summary")?;
    let said: Value = serde_json::from_str(line).context("failed to read its summary")?;
    let count = |name: &str| said[name].as_f64().map_or(0, |count| count as u64);
    Ok(Reported {
        completed: count("requests").saturating_sub(count("failed")),
        errors: count("failed"),
        dropped: count("dropped"),
        p50_ms: said["p50"].as_f64(),
        p99_ms: said["p99"].as_f64(),
        p999_ms: said["p999"].as_f64(),
        max_ms: said["max"].as_f64(),
        send_lag_p99_ms: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_summary() {
        let stdout = "\n{\"requests\":9679,\"failed\":1,\"dropped\":321,\"p50\":1.1,\"p99\":6.5,\"max\":2000.5}\n";
        let output = Output { stdout: stdout.into(), ..super::super::tests_output() };
        let reported = read(&output).unwrap();
        assert_eq!((reported.completed, reported.errors, reported.dropped), (9678, 1, 321));
        assert_eq!((reported.p99_ms, reported.p999_ms), (Some(6.5), None));
    }
}
