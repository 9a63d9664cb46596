//! A score as text: by watcher, by layer, and how far confidence can be relied on.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use holdup_recording::watchers::Watcher;

use crate::faults::Family;
use crate::judge::{Answers, key};
use crate::score::{Expected, Score};
use crate::truth::Truth;

const COLUMNS: &str = "faults  top-1  top-3  undecided  missed  wrong  nameless  accused  Brier";

/// Scores of some draws, by watcher and layer.
#[derive(Debug, Default)]
pub struct Table {
    scores: BTreeMap<(Watcher, Family), Score>,
    /// Controls that clients felt: a machine that was busy.
    pub spoiled: usize,
}

impl Table {
    /// Adds up the answers to `draws`.
    pub fn new<'a>(draws: impl IntoIterator<Item = &'a (PathBuf, Truth)>, answers: &Answers) -> Self {
        let mut table = Self::default();
        for (_, truth) in draws {
            let Some(expected) = Expected::new(truth) else {
                table.spoiled += 1;
                continue;
            };
            let first = truth.draw.doses.first().and_then(|dose| dose.fault());
            let family = first.map_or(Family::Control, |fault| fault.family);
            for watcher in Watcher::ALL {
                if let Some(answer) = answers.get(&key(truth.draw.seed, watcher)) {
                    table.scores.entry((watcher, family)).or_default().add(&expected, answer);
                }
            }
        }
        table
    }

    fn sum(&self, watcher: Option<Watcher>, family: Option<Family>) -> Score {
        let mut sum = Score::default();
        let fits = |w: Watcher, f: Family| watcher.is_none_or(|own| own == w) && family.is_none_or(|own| own == f);
        self.scores.iter().filter(|((w, f), _)| fits(*w, *f)).for_each(|(_, score)| sum.merge(score));
        sum
    }

    /// The text, of draws called `title`.
    pub fn text(&self, title: &str) -> String {
        let mut text = format!("{title}\n\n{:<28}{COLUMNS}\n", "by watcher");
        for watcher in Watcher::ALL {
            let _ = writeln!(text, "{:<28}{}", watcher.name(), line(&self.sum(Some(watcher), None)));
        }
        // Who watches only the database can't name what happens in front of it.
        for watcher in [Watcher::Everything, Watcher::AppAndDatabase, Watcher::Database] {
            let _ = writeln!(text, "\n{:<28}{COLUMNS}", format!("{}, by layer", watcher.name()));
            for family in Family::ALL {
                let _ = writeln!(text, "{:<28}{}", family.name(), line(&self.sum(Some(watcher), Some(family))));
            }
        }
        let _ = writeln!(text, "\nconfidence             answers  right");
        for (number, (count, sure, right)) in self.sum(None, None).reliability().into_iter().enumerate() {
            let low = number as f64 / 5.0;
            let figures = if count == 0 { "-".to_owned() } else { format!("{:>4.0} %, at {sure:.2}", right * 1e2) };
            let _ = writeln!(text, "{low:.1} to {:.1}             {count:>7}  {figures}", low + 0.2);
        }
        if self.spoiled > 0 {
            let _ = writeln!(text, "\n{} controls were felt by clients and do not count.", self.spoiled);
        }
        text
    }
}

/// A line for each draw that clients felt, and one for what each watcher was answered.
pub fn each(draws: &[(PathBuf, Truth)], answers: &Answers) -> String {
    let mut text = String::new();
    for (_, truth) in draws.iter().filter(|(_, truth)| truth.symptom.is_felt()) {
        let (symptom, failed) = (&truth.symptom, truth.symptom.fault.failed_ratio * 1e2);
        let _ = writeln!(
            text,
            "{}; {:.1} ms -> {:.1} ms, {failed:.0} % failed",
            truth.draw, symptom.baseline.mean_ms, symptom.fault.mean_ms
        );
        let causes: Vec<&str> = truth.played.iter().flat_map(|played| &played.causes).map(String::as_str).collect();
        let right = if causes.is_empty() { "none yet".to_owned() } else { causes.join(", ") };
        let _ = writeln!(text, "  {:<20}{right}", "right");
        for watcher in Watcher::ALL {
            let Some(answer) = answers.get(&key(truth.draw.seed, watcher)) else { continue };
            let verdict =
                if answer.is_named { "found".to_owned() } else { format!("{:?}", answer.verdict).to_lowercase() };
            let ranking: Vec<&str> = answer.ranking.iter().take(3).map(String::as_str).collect();
            let _ = writeln!(
                text,
                "  {:<20}{verdict:<10} {:.2}  {}",
                watcher.name(),
                answer.confidence,
                ranking.join(", ")
            );
        }
    }
    text
}

fn line(score: &Score) -> String {
    let share = |count: usize, all: usize| {
        if all == 0 { "-".to_owned() } else { format!("{:.0} %", count as f64 / all as f64 * 1e2) }
    };
    let of_faults = |count| share(count, score.faults);
    let brier = score.brier().map_or_else(|| "-".to_owned(), |brier| format!("{brier:.3}"));
    format!(
        "{:>6}  {:>5}  {:>5}  {:>9}  {:>6}  {:>5}  {:>8}  {:>7}  {brier:>5}",
        score.faults,
        of_faults(score.top1),
        of_faults(score.top3),
        of_faults(score.undecided),
        of_faults(score.missed),
        of_faults(score.wrong),
        format!("{}/{}", score.nameless_wrong, score.nameless),
        format!("{}/{}", score.accused, score.quiet),
    )
}
