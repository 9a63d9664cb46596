//! Another tool's load: wrk, whose users think between two requests.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use anyhow::{Context as _, Result};

use super::cases::Case;
use crate::env::process;
use crate::statements;

/// Users think so long on average, milliseconds.
const THINK_MS: f64 = 500.0;

/// Starts wrk for so many seconds; its output goes to `wrk.log` in `dir`.
pub fn start(case: &Case, url: &str, seconds: u64, dir: &Path) -> Result<Child> {
    let path = dir.join("wrk.lua");
    fs::write(&path, script(case)).with_context(|| format!("failed to write {}", path.display()))?;
    // As many users as send the case's rate where nothing is slow.
    let users = (case.rate * THINK_MS * 1e-3).ceil();
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "wrk", "-t1", &format!("-c{users}"), &format!("-d{seconds}s")]);
    command.args(["--timeout", "10s", "--latency", "-s"]).arg(path).arg(url);
    process::spawn(command, dir, "wrk")
}

/// The median that wrk printed, milliseconds.
pub fn median_ms(dir: &Path) -> Result<f64> {
    let path = dir.join("wrk.log");
    let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    median_of(&text).with_context(|| format!("wrk printed no median: {text}"))
}

fn median_of(text: &str) -> Option<f64> {
    let figure = text.lines().find_map(|line| line.trim().strip_prefix("50%"))?.trim();
    // The longer unit first: a figure in "ms" ends in "s", too.
    let units = [("us", 1e-3), ("ms", 1.0), ("s", 1e3), ("m", 6e4)];
    units.iter().find_map(|(unit, ms)| Some(figure.strip_suffix(unit)?.parse::<f64>().ok()? * ms))
}

fn script(case: &Case) -> String {
    let total: u32 = case.mix.iter().map(|(_, weight)| weight).sum();
    let (mut upto, mut paths) = (0, String::new());
    for (operation, weight) in case.mix {
        upto += weight;
        let (name, largest) = (operation.name(), statements::largest_id(*operation));
        let _ = writeln!(paths, "  {{upto = {upto}, name = '/{name}?id=', largest = {largest}}},");
    }
    format!(
        "local paths = {{\n{paths}}}\nmath.randomseed(7)\n\
         function request()\n  local at = math.random({total})\n  for _, path in ipairs(paths) do\n    \
         if at <= path.upto then return wrk.format('GET', path.name .. math.random(path.largest)) end\n  end\nend\n\
         function delay()\n  return math.floor(-{THINK_MS} * math.log(1 - math.random()))\nend\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_read_in_any_unit() {
        let text = |figure: &str| format!("  Latency Distribution\n     50%  {figure}\n     75%   9.00s\n");
        for (figure, ms) in [("812.00us", 0.812), ("31.40ms", 31.4), ("1.25s", 1_250.0), ("1.5m", 90_000.0)] {
            assert!((median_of(&text(figure)).unwrap() - ms).abs() < 1e-9, "{figure}");
        }
        assert_eq!(median_of("Socket errors: connect 8"), None);
    }
}
