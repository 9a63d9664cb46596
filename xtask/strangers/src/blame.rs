//! Which verdicts a change of the rules moved. The answers of each set of rules are kept beside the corpus.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use holdup_recording::watchers::Watcher;

use crate::judge::{Answer, Answers, key};
use crate::score::{Expected, Score};
use crate::truth::Truth;

/// Keeps the answers of the rules of `hash`, beside those that it gave to other draws.
pub fn keep(folder: &Path, hash: &str, answers: &Answers) -> Result<()> {
    let path = folder.join(format!("{hash}.json"));
    let mut all = read(&path).unwrap_or_default();
    all.extend(answers.iter().map(|(key, answer)| (key.clone(), answer.clone())));
    fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    fs::write(&path, serde_json::to_string(&all)?).with_context(|| format!("failed to write {}", path.display()))
}

fn read(path: &Path) -> Result<Answers> {
    let text = fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} holds no answers", path.display()))
}

/// The answers of the rules whose hash begins with `prefix`.
pub fn kept(folder: &Path, prefix: &str) -> Result<(String, Answers)> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|e| e.file_name().into_string().ok());
    let hashes: Vec<String> = names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect();
    let fitting: Vec<&String> = hashes.iter().filter(|hash| hash.starts_with(prefix)).collect();
    match fitting[..] {
        [hash] => Ok((hash.clone(), read(&folder.join(format!("{hash}.json")))?)),
        _ => bail!("{} sets of rules begin with {prefix}; kept are: {}", fitting.len(), hashes.join(", ")),
    }
}

/// The answers that differ, in words: those that got better, those that got worse, and others.
pub fn moved(draws: &[(PathBuf, Truth)], before: &Answers, now: &Answers) -> String {
    let mut parts = [("better", String::new(), 0), ("worse", String::new(), 0), ("neither", String::new(), 0)];
    for (_, truth) in draws {
        let Some(expected) = Expected::new(truth) else { continue };
        for watcher in Watcher::ALL {
            let key = key(truth.draw.seed, watcher);
            let (Some(was), Some(is)) = (before.get(&key), now.get(&key)) else { continue };
            if said(was) == said(is) {
                continue;
            }
            let change = worth(&expected, is) - worth(&expected, was);
            let place = if change > 0 {
                0
            } else if change < 0 {
                1
            } else {
                2
            };
            let faults: Vec<&str> = truth.played.iter().map(|played| played.fault.as_str()).collect();
            let _ = writeln!(parts[place].1, "  {key}: {}: {} -> {}", faults.join(" + "), said(was), said(is));
            parts[place].2 += 1;
        }
    }
    parts.iter().map(|(name, lines, count)| format!("{name}: {count}\n{lines}")).collect()
}

/// Right is best, silence is better than a wrong name.
fn worth(expected: &Expected<'_>, answer: &Answer) -> i32 {
    let mut score = Score::default();
    score.add(expected, answer);
    let good = score.top1 * 2 + (score.quiet - score.accused) + (score.nameless - score.nameless_wrong);
    good as i32 - (score.wrong * 2) as i32
}

fn said(answer: &Answer) -> String {
    match answer.culprit() {
        Some(cause) => format!("{cause} {:.2}", answer.confidence),
        None => format!("{:?}", answer.verdict).to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_diagnose::verdict::Answer as Verdict;

    fn answer(cause: &str, confidence: f64) -> Answer {
        let (verdict, is_named) = (Verdict::Found, true);
        Answer { verdict, is_named, confidence, ranking: vec![cause.to_owned()] }
    }

    #[test]
    fn answers_of_rules_are_kept_and_found_by_prefix() {
        let dir = tempfile::tempdir().unwrap();
        let one = |key: &str| Answers::from([(key.to_owned(), answer("cpu_saturated", 0.75))]);
        keep(dir.path(), "abc1", &one("1/host")).unwrap();
        keep(dir.path(), "abc1", &one("2/host")).unwrap();
        keep(dir.path(), "abd2", &one("1/host")).unwrap();
        assert_eq!(kept(dir.path(), "abc").unwrap().1.len(), 2);
        let error = kept(dir.path(), "ab").unwrap_err().to_string();
        assert!(error.starts_with("2 sets of rules begin with ab; kept are: "), "{error}");
    }

    #[test]
    fn silence_is_worth_more_than_a_wrong_name() {
        let locks = ["lock_contention".to_owned()];
        let expected = Expected::Cause(vec![&locks]);
        let silent = Answer { verdict: Verdict::Undecided, is_named: false, ..answer("cpu_saturated", 0.4) };
        let worths = [answer("lock_contention", 0.9), silent, answer("cpu_saturated", 0.9)];
        let worths: Vec<i32> = worths.iter().map(|answer| worth(&expected, answer)).collect();
        assert!(worths.is_sorted_by(|a, b| a > b), "{worths:?}");
    }
}
