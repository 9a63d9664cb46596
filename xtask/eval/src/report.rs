//! How exams are printed: the rules' hash first, then figures, as text or as one JSON object.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};

use anyhow::Result;
use holdup_diagnose::counters::judge::Ranking;
use holdup_diagnose::trace::votes::Part;
use holdup_signals::time::counters::Family;
use holdup_signals::time::counters::jitter::Jitter;
use serde_json::{Value, json};

use crate::frozen;
use crate::options::Options;

/// By how much constants are moved to see whether a score hangs on them.
const JITTER: f64 = 1.3;

/// Writes to standard output; who has read enough of it, as `head` has, ends the exam.
fn say(text: &str) -> Result<()> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        written => Ok(written?),
    }
}

/// Prints which rules are about to be scored.
pub fn heading(options: &Options) -> Result<()> {
    if !options.json {
        say(&format!("rules frozen at sha256 {}", frozen::hash()?))?;
    }
    Ok(())
}

/// Prints what an exam came to.
pub fn print(options: &Options, lines: &[String], mut all: Value) -> Result<()> {
    if options.json {
        all["rules_sha256"] = json!(frozen::hash()?);
        say(&serde_json::to_string_pretty(&all)?)
    } else {
        say(&lines.join("\n"))
    }
}

/// Scores again without each family and with moved constants, where `options` ask for it: `score` says in words and figures what it
/// comes to. Adds that to lines and figures.
pub fn vary(
    options: &Options,
    lines: &mut Vec<String>,
    all: &mut Value,
    score: impl Fn(&[Family], Jitter) -> (String, Value),
) {
    if options.families {
        let mut falls = serde_json::Map::new();
        for family in Family::ALL {
            let (text, figures) = score(&[family], Jitter::NONE);
            lines.push(format!("without {:<11} {text}", family.name()));
            falls.insert(family.name().to_owned(), figures);
        }
        all["without"] = Value::Object(falls);
    }
    if let Some(draws) = options.jitter {
        let moved = (1..=draws).map(|seed| score(&options.without, Jitter::new(seed, JITTER)).1);
        lines.extend(self::moved(all, &moved.collect::<Vec<_>>()));
    }
}

/// Adds to the figures how they move with the constants, and says so in lines.
fn moved(all: &mut Value, draws: &[Value]) -> Vec<String> {
    let mut ranges = serde_json::Map::new();
    let mut lines = vec![format!("constants moved by up to {JITTER}, {} draws: lowest, mean, highest", draws.len())];
    let Some(figures) = draws.first().and_then(Value::as_object) else { return Vec::new() };
    for key in figures.keys() {
        let values: Vec<f64> = draws.iter().filter_map(|draw| draw[key].as_f64()).collect();
        let (low, high) =
            (values.iter().copied().fold(f64::INFINITY, f64::min), values.iter().copied().fold(0.0, f64::max));
        let mean = holdup_signals::time::counters::effect::plain_mean(&values);
        lines.push(format!("  {key:<20} {low:.3} {mean:.3} {high:.3}"));
        ranges.insert(key.clone(), json!({"lowest": low, "mean": mean, "highest": high}));
    }
    all["jitter"] = json!({"factor": JITTER, "draws": draws.len(), "figures": ranges});
    lines
}

/// The first causes of a ranking with their scores.
pub fn top(ranking: &Ranking, count: usize) -> String {
    let suspects = ranking.suspects.iter().take(count).map(|suspect| match suspect.score {
        Some(score) => format!("{} {score:.2}", suspect.pattern),
        None => format!("{} not judged", suspect.pattern),
    });
    suspects.collect::<Vec<_>>().join(", ")
}

/// Every vote of the first causes and of some more.
pub fn accounts(ranking: &Ranking, count: usize, more: &[&str]) -> String {
    let mut text = String::new();
    for (place, suspect) in ranking.suspects.iter().enumerate() {
        if place >= count && !more.contains(&suspect.pattern) {
            continue;
        }
        let score = suspect.score.map_or_else(|| "not judged".to_owned(), |score| format!("{score:.2}"));
        let _ = writeln!(text, "  {}. {} {score}", place + 1, suspect.pattern);
        for vote in &suspect.votes {
            let part = match vote.part {
                Part::Defines => "defines",
                Part::Supports => "supports",
                Part::Refutes => "refutes",
                Part::Gates => "gates",
            };
            let Some(reading) = &vote.reading else {
                let _ = writeln!(text, "       {part:<8} {:.1}  ?    {}", vote.weight, vote.what);
                continue;
            };
            let figures: Vec<String> =
                reading.figures.iter().map(|(name, normal, now)| format!("{name} {normal:.4} -> {now:.4}")).collect();
            let _ = writeln!(
                text,
                "       {part:<8} {:.1} {:.2}  {}: {}",
                vote.weight,
                reading.strength,
                vote.what,
                figures.join(", ")
            );
        }
    }
    text
}
