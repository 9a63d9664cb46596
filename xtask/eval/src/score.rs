//! Figures of an exam: confusion, top-k, macro-F1, IoU.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde_json::{Value, json};

/// How often each class was answered with each word.
#[derive(Debug, Default, Clone)]
pub struct Confusion {
    counts: BTreeMap<(String, String), usize>,
}

impl Confusion {
    /// One case.
    pub fn add(&mut self, truth: &str, answer: &str) {
        *self.counts.entry((truth.to_owned(), answer.to_owned())).or_default() += 1;
    }

    fn truths(&self) -> BTreeSet<&str> {
        self.counts.keys().map(|(truth, _)| truth.as_str()).collect()
    }

    fn count(&self, fits: impl Fn(&str, &str) -> bool) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts of cases")]
        let count = self
            .counts
            .iter()
            .filter(|((truth, answer), _)| fits(truth, answer))
            .map(|(_, count)| *count)
            .sum::<usize>() as f64;
        count
    }

    /// The mean over the classes that occur of the harmonic mean of precision and recall.
    pub fn macro_f1(&self) -> f64 {
        let truths = self.truths();
        let f1 = |class: &str| {
            let hit = self.count(|truth, answer| truth == class && answer == class);
            let (of, said) = (self.count(|truth, _| truth == class), self.count(|_, answer| answer == class));
            if hit > 0.0 { 2.0 * hit / (of + said) } else { 0.0 }
        };
        ratio(truths.iter().map(|class| f1(class)).sum(), truths.len())
    }

    /// As lines: a class, its size, and what it was answered with, most frequent first.
    pub fn lines(&self) -> Vec<String> {
        self.truths()
            .iter()
            .map(|class| {
                let mut answers: Vec<(usize, &str)> = self
                    .counts
                    .iter()
                    .filter(|((truth, _), _)| truth == class)
                    .map(|((_, answer), count)| (*count, answer.as_str()))
                    .collect();
                answers.sort_by(|a, b| b.cmp(a));
                let total: usize = answers.iter().map(|(count, _)| count).sum();
                let answers: Vec<String> = answers.iter().map(|(count, answer)| format!("{answer} {count}")).collect();
                format!("{class:<34} {total:>4}: {}", answers.join(", "))
            })
            .collect()
    }

    /// As JSON: class -> answer -> count.
    pub fn json(&self) -> Value {
        let mut classes = serde_json::Map::new();
        for ((truth, answer), count) in &self.counts {
            let row = classes.entry(truth.clone()).or_insert_with(|| json!({}));
            if let Some(row) = row.as_object_mut() {
                row.insert(answer.clone(), json!(count));
            }
        }
        Value::Object(classes)
    }
}

/// A share; 0 of nothing.
pub fn ratio(sum: f64, of: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of cases")]
    let of = of as f64;
    if of > 0.0 { sum / of } else { 0.0 }
}

/// The share of what holds.
pub fn share(what: impl IntoIterator<Item = bool>) -> f64 {
    let (mut hits, mut all) = (0.0, 0);
    for hit in what {
        hits += f64::from(u8::from(hit));
        all += 1;
    }
    ratio(hits, all)
}

/// Rows in both sets over rows in either.
pub fn iou(found: &BTreeSet<usize>, truth: &BTreeSet<usize>) -> f64 {
    ratio(f64::from(u32::try_from(found.intersection(truth).count()).unwrap_or(u32::MAX)), found.union(truth).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_of_one_class_missed_and_one_hit() {
        let mut confusion = Confusion::default();
        for (truth, answer) in [("a", "a"), ("a", "a"), ("b", "a"), ("b", "nothing")] {
            confusion.add(truth, answer);
        }
        // a: precision 2/3, recall 1; b: 0.
        assert!((confusion.macro_f1() - 0.4).abs() < 1e-9);
        assert!((iou(&(0..10).collect(), &(5..15).collect()) - 1.0 / 3.0).abs() < 1e-9);
    }
}
