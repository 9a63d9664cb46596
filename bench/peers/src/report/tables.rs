//! One table for each group of scenarios, and a line that names the winner.

use std::fmt::{self, Write as _};

use crate::figures::{Spread, over_rounds, ratio};
use crate::lateness::frozen_quantile_ms;
use crate::results::{About, Results, Run};

/// A column: its heading, its figure, its decimals.
type Column = (&'static str, fn(&Run) -> Option<f64>, usize);

const CPU: Column = ("CPU us a request", Run::cpu_us, 2);
const SERVER_CPU: Column = ("server's CPU us", Run::server_cpu_us, 1);
const MEMORY: Column = ("memory MB", |run| Some(run.resident_most_bytes as f64 / 1e6), 1);
const ANSWERS: Column = ("answers/s", |run| Some(run.answers_per_second), 0);
const TOOK: Column = ("took s", |run| Some(run.wall_seconds), 1);
const ERRORS: Column = ("errors", |run| Some(run.reported.errors as f64), 0);
const P50: Column = ("says p50 ms", |run| run.reported.p50_ms, 2);
const P99: Column = ("says p99 ms", |run| run.reported.p99_ms, 2);
const MAX: Column = ("says max ms", |run| run.reported.max_ms, 1);

const CLOSED: &[Column] = &[ANSWERS, TOOK, P50, P99, MAX, SERVER_CPU, MEMORY, ERRORS];

const OPEN: &[Column] = &[
    ("late p50 ms", |run| Some(run.arrivals.as_ref()?.late_p50_ms), 3),
    ("late p99 ms", |run| Some(run.arrivals.as_ref()?.late_p99_ms), 3),
    ("late max ms", |run| Some(run.arrivals.as_ref()?.late_max_ms), 1),
    ("own lag p99 ms", |run| run.reported.send_lag_p99_ms, 3),
    ("short gaps %", |run| Some(run.arrivals.as_ref()?.short_gaps_ratio * 100.0), 1),
    ("variation of gaps", |run| Some(run.arrivals.as_ref()?.gaps_variation), 2),
    ("most in 1 ms", |run| Some(run.arrivals.as_ref()?.burst_most as f64), 0),
    ANSWERS,
    TOOK,
    P50,
    P99,
    SERVER_CPU,
    MEMORY,
    ("dropped", |run| Some(run.reported.dropped as f64), 0),
    ERRORS,
];

const FREEZE: &[Column] = &[
    P50,
    P99,
    ("says p99.9 ms", |run| run.reported.p999_ms, 2),
    MAX,
    ("answers", |run| Some(run.reported.completed as f64), 0),
    ("dropped", |run| Some(run.reported.dropped as f64), 0),
    ERRORS,
    MEMORY,
];

const IDLE: &[Column] = &[
    ("connected s", |run| run.seen.as_ref()?.connected_seconds, 3),
    ("memory MB at 10 s", |run| Some(run.resident_10s_bytes? as f64 / 1e6), 1),
    ("at the end", |run| Some(run.resident_last_bytes? as f64 / 1e6), 1),
    ("at most", |run| Some(run.resident_most_bytes as f64 / 1e6), 1),
    ("answers", |run| Some(run.reported.completed as f64), 0),
    ("late p99 ms", |run| Some(run.arrivals.as_ref()?.late_p99_ms), 3),
    CPU,
    P99,
    ERRORS,
];

/// Difference of a tool's count from the server's that is said.
const UNSAID_MOST: f64 = 0.02;

/// The table of a scenario, the runs that failed, and who won.
pub fn write(text: &mut String, results: &Results, about: &About) -> fmt::Result {
    let (columns, compared): (&[Column], Option<Column>) = match about.group.as_str() {
        "open" => (OPEN, Some(CPU)),
        "freeze" => (FREEZE, None),
        "idle" => (IDLE, None),
        "cores" => (CLOSED, Some(ANSWERS)),
        _ => (CLOSED, Some(CPU)),
    };
    let mut heading = vec!["tool".to_owned()];
    if let Some((name, ..)) = compared {
        heading.extend([name.to_owned(), format!("x {}", about.base)]);
    }
    // What is compared stands first, and once.
    let columns: Vec<&Column> =
        columns.iter().filter(|column| compared.is_none_or(|compared| compared.0 != column.0)).collect();
    heading.extend(columns.iter().map(|column| column.0.to_owned()));
    writeln!(text, "| {} |\n|{}", heading.join(" | "), "---|".repeat(heading.len()))?;
    if about.group == "freeze" {
        writeln!(text, "{}", arithmetic(about, heading.len()))?;
    }
    for entrant in results.entrants(&about.name) {
        let mut cells = vec![entrant.to_owned()];
        if let Some((_, figure, decimals)) = compared {
            cells.push(show(over_rounds(results, &about.name, entrant, figure), decimals));
            cells.push(show(ratio(results, &about.name, (entrant, &about.base), figure), 3));
        }
        for (_, figure, decimals) in &columns {
            cells.push(show(over_rounds(results, &about.name, entrant, figure), *decimals));
        }
        writeln!(text, "| {} |", cells.join(" | "))?;
    }
    failures(text, results, about)?;
    winner(text, results, about)
}

fn show(spread: Option<Spread>, decimals: usize) -> String {
    spread.map_or_else(|| "-".to_owned(), |spread| spread.show(decimals))
}

/// What the freeze must look like.
fn arithmetic(about: &About, columns: usize) -> String {
    let stop = about.stop_seconds.unwrap_or_default();
    let of = |quantile| frozen_quantile_ms(quantile, about.seconds.into(), stop);
    let show = |ms: Option<f64>| ms.map_or("-".to_owned(), |ms| format!("{ms:.0}"));
    let cells = ["*by arithmetic*".to_owned(), "1.2".to_owned(), show(of(0.99)), show(of(0.999)), show(of(1.0))];
    let rest = columns - cells.len();
    format!("| {} |{}", cells.join(" | "), " |".repeat(rest))
}

/// What went wrong, or doesn't add up.
fn failures(text: &mut String, results: &Results, about: &About) -> fmt::Result {
    let mut lines: Vec<String> = Vec::new();
    for run in results.runs.iter().filter(|run| run.scenario == about.name) {
        if let Some(why) = &run.failed {
            let line = format!("{}: failed: {}", run.entrant, why.lines().next().unwrap_or_default());
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    for entrant in results.entrants(&about.name) {
        let Some(unsaid) = over_rounds(results, &about.name, entrant, Run::unsaid_ratio) else { continue };
        if unsaid.median.abs() > UNSAID_MOST {
            let percent = unsaid.median * 100.0;
            lines.push(format!("{entrant}: the server saw {percent:+.1} % requests beside those that it counts"));
        }
    }
    if !lines.is_empty() {
        writeln!(text)?;
    }
    lines.iter().try_for_each(|line| writeln!(text, "- {line}"))
}

/// The entrant with the least of a figure, and holdup's where that is another.
fn winner(text: &mut String, results: &Results, about: &About) -> fmt::Result {
    let least = |text: &mut String, what: &str, unit: &str, decimals: usize, figure: fn(&Run) -> Option<f64>| {
        let medians = || {
            let entrants = results.entrants(&about.name).into_iter().filter(|entrant| *entrant != "floor");
            entrants.filter_map(|entrant| Some((entrant, over_rounds(results, &about.name, entrant, figure)?.median)))
        };
        let by_figure = |a: &(&str, f64), b: &(&str, f64)| a.1.total_cmp(&b.1);
        let Some((best, median)) = medians().min_by(by_figure) else { return Ok(()) };
        write!(text, "\n{what}: {best}, {median:.decimals$} {unit}")?;
        let ours = medians().filter(|(entrant, _)| entrant.starts_with("holdup")).min_by(by_figure);
        match ours {
            Some((ours, figure)) if ours != best => {
                writeln!(text, "; {ours} {figure:.decimals$} {unit} ({:.2} x).", figure / median)
            }
            _ => writeln!(text, "."),
        }
    };
    match about.group.as_str() {
        "open" => {
            least(text, "Least CPU time a request", "us", 2, Run::cpu_us)?;
            least(text, "Least lateness (p99)", "ms", 3, |run| Some(run.arrivals.as_ref()?.late_p99_ms))
        }
        "freeze" | "cores" => Ok(()),
        "idle" => {
            least(text, "Least memory", "MB", 1, |run| Some(run.resident_most_bytes as f64 / 1e6))?;
            least(text, "Soonest connected", "s", 3, |run| run.seen.as_ref()?.connected_seconds)
        }
        _ => least(text, "Least CPU time a request", "us", 2, Run::cpu_us),
    }
}
