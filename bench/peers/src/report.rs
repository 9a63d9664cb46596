//! The report, as Markdown: what was measured where, the marks, and a table for each scenario with the winner, whoever
//! that is.

mod tables;

use std::fmt::Write as _;

use crate::marks::{self, Mark};
use crate::results::Results;
use crate::runner::STOLEN_MOST;

/// All of it.
pub fn markdown(results: &Results) -> String {
    let mut text = String::new();
    let _ = write_all(&mut text, results);
    text
}

/// The marks in a few lines, for the terminal.
pub fn summary(results: &Results) -> String {
    let marks = marks::all(results);
    let lines = marks.iter().filter(|mark| mark.measured.is_some());
    lines.map(|mark| format!("   {:<4} {}: {}", verdict(mark), mark.asked, shown(mark))).collect::<Vec<_>>().join("\n")
}

fn write_all(text: &mut String, results: &Results) -> std::fmt::Result {
    let host = &results.host;
    writeln!(text, "# holdup beside its peers: {}, {}\n", results.date, host.short())?;
    writeln!(
        text,
        "{}, {} cores, Linux {}, {:.0} GB, {}. Server and tool have a core each; tools take turns within a round, and \
         ratios are taken within a round. Medians, with least and most of all rounds. How to read it: \
         [bench/README.md](../../README.md); every single run: results.json; what the tools printed: raw/.\n",
        host.cpu_model,
        host.cores,
        host.kernel,
        host.memory_bytes as f64 / 1e9,
        host.system
    )?;
    for caveat in &results.caveats {
        writeln!(text, "**Caution: {caveat}.**\n")?;
    }
    let disturbed = results.runs.iter().filter(|run| run.disturbed).count();
    if disturbed > 0 {
        writeln!(
            text,
            "{disturbed} of {} runs were disturbed (more than {:.0} % of the machine's CPU time stolen) and repeated; \
             figures are of the last attempt of each round.\n",
            results.runs.len(),
            STOLEN_MOST * 100.0
        )?;
    }
    writeln!(text, "## Marks\n\n| mark | measured | met |\n|---|---|---|")?;
    for mark in marks::all(results) {
        writeln!(text, "| {} | {} | {} |", mark.asked, shown(&mark), verdict(&mark))?;
    }
    for about in &results.scenarios {
        writeln!(text, "\n## {}\n\n{}.\n", about.name, capitalised(&about.about))?;
        tables::write(text, results, about)?;
    }
    writeln!(text, "\n## Versions\n")?;
    for (name, version) in &results.versions {
        writeln!(text, "- {name}: {version}")?;
    }
    for (name, why) in &results.absent {
        writeln!(text, "- {name}: not here: {why}")?;
    }
    Ok(())
}

fn shown(mark: &Mark) -> &str {
    mark.measured.as_deref().unwrap_or("not measured")
}

fn verdict(mark: &Mark) -> &'static str {
    match mark.met {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "-",
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{About, Run};
    use crate::tools::Reported;

    fn run(entrant: &str, cpu_seconds: f64) -> Run {
        let reported = Reported { completed: 100_000, ..Reported::default() };
        let (scenario, entrant) = ("closed-responder".to_owned(), entrant.to_owned());
        Run { scenario, entrant, round: 1, user_seconds: cpu_seconds, wall_seconds: 2.0, reported, ..Run::default() }
    }

    #[test]
    fn a_peer_that_wins_is_named() {
        let about = About {
            name: "closed-responder".into(),
            group: "closed".into(),
            about: "closed model".into(),
            base: "floor".into(),
            ..About::default()
        };
        let mut results = Results { scenarios: vec![about], ..Results::default() };
        results.runs = vec![run("floor", 0.7), run("holdup", 0.84), run("wrk", 0.8)];
        results.absent.insert("k6".into(), "no Go".into());
        let text = markdown(&results);
        assert!(text.contains("| holdup | 8.40 | 1.200 |"), "{text}");
        assert!(text.contains("Least CPU time a request: wrk, 8.00 us; holdup 8.40 us"), "{text}");
        assert!(text.contains("at most 1.10 x the floor's | 1.200 | NO |"), "{text}");
        assert!(text.contains("k6: not here: no Go"), "{text}");
    }
}
