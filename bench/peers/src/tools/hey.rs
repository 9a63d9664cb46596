//! hey: a closed model whose workers each wait for a tick when a rate is asked for.

use anyhow::{Context as _, Result};

use super::install::Source;
use super::text::{number_after, number_before};
use super::{Ask, Output, Reported, Tool};

/// The tool.
pub const TOOL: Tool =
    Tool { name: "hey", source: Source::Debian { package: "hey", program: "hey" }, paces: true, arguments, read };

fn arguments(ask: &Ask) -> Result<Vec<String>> {
    let demand = ask.demand;
    let mut words = vec!["-z".to_owned(), format!("{}s", demand.seconds), "-c".into(), demand.connections.to_string()];
    if let Some(rate) = demand.rate {
        // Its rate is that of one worker.
        words.extend(["-q".into(), format!("{}", f64::from(rate) / f64::from(demand.connections))]);
    }
    let mut words = ask.with_flags(words);
    words.push(ask.url.to_owned());
    Ok(words)
}

fn read(output: &Output) -> Result<Reported> {
    let text = &output.stdout;
    let completed =
        number_after(text, "[200]").or_else(|| number_before(text, " responses")).context("it reports no answers")?;
    // One line `[COUNT] TEXT` for each kind of error.
    let errors = text.split_once("Error distribution:").map_or(0, |(_, tail)| {
        let counts =
            tail.lines().filter_map(|line| line.trim().strip_prefix('[')?.split(']').next()?.parse::<u64>().ok());
        counts.sum()
    });
    let ms = |label: &str| number_after(text, label).map(|seconds| seconds * 1e3);
    Ok(Reported {
        completed: completed as u64,
        errors,
        p50_ms: ms("50% in "),
        p99_ms: ms("99% in "),
        max_ms: ms("Slowest:"),
        ..Reported::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_report() {
        let stdout = "  Slowest:\t2.0010 secs\n  50% in 0.0013 secs\n  99% in 0.0044 secs\n\nStatus code \
             distribution:\n  [200]\t9950 responses\n\nError distribution:\n  [3]\tGet: EOF\n  [2]\tGet: reset\n";
        let output = Output { stdout: stdout.into(), ..super::super::tests_output() };
        let reported = read(&output).unwrap();
        assert_eq!((reported.completed, reported.errors), (9950, 5));
        assert_eq!((reported.p50_ms, reported.p99_ms, reported.max_ms), (Some(1.3), Some(4.4), Some(2001.0)));
    }
}
