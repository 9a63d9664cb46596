//! The floor: `floor.c`, the least that a closed-model client has to do. It is no tool; it is what tools are held
//! against.

use anyhow::{Context as _, Result, bail};

use super::install::Source;
use super::{Ask, Output, Reported, Tool};

/// The tool.
pub const TOOL: Tool = Tool {
    name: "floor",
    source: Source::C { program: "floor", text: include_str!("../floor.c") },
    paces: false,
    arguments,
    read,
};

fn arguments(ask: &Ask) -> Result<Vec<String>> {
    if !ask.url.starts_with("http://127.0.0.1:") {
        bail!("the floor speaks plain HTTP to this machine only");
    }
    let demand = ask.demand;
    Ok(vec![ask.port.to_string(), demand.connections.to_string(), demand.seconds.to_string()])
}

fn read(output: &Output) -> Result<Reported> {
    let said: serde_json::Value = serde_json::from_str(&output.stdout).context("failed to read its report")?;
    let completed = said["completed"].as_u64().context("it doesn't say how many requests it made")?;
    Ok(Reported { completed, ..Reported::default() })
}
