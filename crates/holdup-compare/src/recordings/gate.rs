//! A gate: one build against those of its base branch, which say how much builds differ from each other.
//!
//! Two questions, one history. A build of another branch is new: it is compared with the builds at the
//! base branch's present level, as one group. A build of the base branch itself continues the history:
//! what counts is a change that lasts.

use serde::{Deserialize, Serialize};

use super::history::{History, history};
use super::outcome::{Change, Comparison, Row};
use super::{Group, Options, Run, groups, judge, words};

/// What a gate asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Whether a build of another branch is worse than the base branch.
    Change,
    /// Whether the base branch got worse and stayed so.
    Lasting,
}

/// The answer of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// Worse or mixed fails; can't tell passes, e.g. while there are too few builds; not comparable is
    /// unusable.
    pub verdict: Change,
    /// The same in a sentence.
    pub headline: String,
    /// Names of the builds at the base branch's present level that measured the same, in order.
    pub level: Vec<String>,
    /// The build against that level; none for the base branch itself, or without such builds.
    pub comparison: Option<Comparison>,
    /// The base branch's builds in order, this one last.
    pub history: History,
}

/// Judges `build` by `baselines`, the builds of the branch `base` in order of time.
pub fn gate(baselines: &[Group], base: &str, build: &Group, question: Question, options: Options) -> Gate {
    let all: Vec<Group> = baselines.iter().chain([build]).cloned().collect();
    let history = history(&all, options);
    let level = level(baselines, &history);
    let spoiled = build.runs.iter().map(|run| run.facts.spoiled.as_ref()).collect::<Option<Vec<_>>>();
    let comparison = (question == Question::Change && !level.is_empty()).then(|| against(&level, base, build, options));
    let name = &build.name;
    let (verdict, headline) = match (question, &comparison) {
        _ if spoiled.is_some() => {
            let why = spoiled.iter().flatten().next().map_or("", |why| why.as_str());
            (Change::NotComparable, format!("{name} says nothing about the service: {why}"))
        }
        _ if baselines.is_empty() => (Change::CantTell, format!("{base} has no build yet to compare {name} with")),
        _ if level.is_empty() => {
            let why = history.left_out.last().map_or("they have no figure in common", String::as_str);
            (Change::NotComparable, format!("no build of {base} measured the same as {name}: {why}"))
        }
        (Question::Change, Some(Comparison { columns, .. })) => {
            let verdict = columns.last().and_then(|column| column.verdict);
            let headline = columns.last().and_then(|column| column.headline.clone());
            (verdict.unwrap_or(Change::NotComparable), headline.unwrap_or_default())
        }
        _ => (history.verdict, format!("{base}: {}", history.headline)),
    };
    let level = level.into_iter().map(|build| build.name.clone()).collect();
    Gate { verdict, headline, level, comparison, history }
}

/// The builds since the last lasting change of a figure that counts, whose figures can be compared with
/// the newest build's.
fn level<'b>(baselines: &'b [Group], history: &History) -> Vec<&'b Group> {
    let counts = history.figures.iter().filter(|figure| figure.is_headline && figure.more_is_better.is_some());
    let known = |at: usize| move |values: &&Vec<Option<f64>>| values.get(at).is_some_and(Option::is_some);
    // A figure that no build had before cannot be asked of them.
    let values: Vec<&Vec<Option<f64>>> = counts
        .clone()
        .map(|figure| &figure.values)
        .filter(|values| (0..baselines.len()).any(|at| known(at)(values)))
        .collect();
    let begins = |name: &str| history.builds.iter().position(|build| build == name);
    let last = counts.filter_map(|figure| begins(&figure.changes.last()?.since_build)).max();
    let is_alike = |at: &usize| !values.is_empty() && values.iter().all(|values| known(*at)(values));
    (last.unwrap_or(0)..baselines.len()).filter(is_alike).map(|at| &baselines[at]).collect()
}

/// `build` against all recordings of `level`.
fn against(level: &[&Group], base: &str, build: &Group, options: Options) -> Comparison {
    let unpaired =
        |group: &Group| -> Vec<Run> { group.runs.iter().cloned().map(|run| Run { round: None, ..run }).collect() };
    let plural = if level.len() == 1 { "" } else { "s" };
    let name = format!("{base} ({} build{plural})", level.len());
    let runs = level.iter().flat_map(|build| unpaired(build)).collect();
    let pair = [Group { name, runs }, Group { name: build.name.clone(), runs: unpaired(build) }];
    let mut comparison = groups(&pair, options);
    let seen: Vec<String> =
        comparison.rows.iter_mut().filter_map(|row| seen_before(row, base).filter(|_| row.is_headline)).collect();
    let verdict = judge::overall(&comparison.rows, 1);
    let [base, build] = pair.map(|group| group.name);
    if let Some(column) = comparison.columns.last_mut().filter(|column| column.verdict.is_some()) {
        column.verdict = Some(verdict);
        let headline = words::headline(&comparison.rows, 1, &build, &base, verdict);
        column.headline = Some(std::iter::once(headline).chain(seen).collect::<Vec<_>>().join("; "));
    }
    comparison
}

/// A figure that some build of the level had, too, is not worse: spikes are part of the noise. The reason, if it
/// was worse without that.
fn seen_before(row: &mut Row, branch: &str) -> Option<String> {
    let (more_is_better, [base, build]) = (row.more_is_better?, row.cells.as_mut_slice()) else { return None };
    let (value, against) = (build.value?, build.against.as_mut()?);
    let as_bad = |other: &&f64| if more_is_better { **other <= value } else { **other >= value };
    let seen = base.repeats.iter().filter(as_bad).count();
    (against.verdict == Change::Worse && seen > 0).then(|| {
        let why = format!("{seen} of {} recordings of {branch} were as bad", base.repeats.len());
        against.verdict = Change::CantTell;
        against.why = Some(why.clone());
        format!("{}: {why}", row.indicator)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds named by their place, each with one figure; less is better.
    fn builds(values: &[f64]) -> Vec<Group> {
        let build = |(at, value): (usize, &f64)| {
            let name = format!("c{at}");
            Group { runs: vec![Run::from_figure(&name, "response time p95", "ms", *value)], name }
        };
        values.iter().enumerate().map(build).collect()
    }

    fn asked(values: &[f64], question: Question) -> Gate {
        let all = builds(values);
        let (build, baselines) = all.split_last().unwrap();
        gate(baselines, "main", build, question, Options::default())
    }

    /// Noise of a few percent that never repeats.
    fn noisy(level: f64, count: usize) -> Vec<f64> {
        (0..count).map(|i| level * (1.0 + 0.06 * ((i as f64 * 0.618_034).fract() - 0.5))).collect()
    }

    #[test]
    fn a_pull_request_is_held_against_the_noise_of_its_base_branch() {
        let like = asked(&[noisy(100.0, 20), vec![102.0]].concat(), Question::Change);
        assert_eq!(like.verdict, Change::NoDifference, "{}", like.headline);
        let slow = asked(&[noisy(100.0, 20), vec![115.0]].concat(), Question::Change);
        assert_eq!(slow.verdict, Change::Worse, "{}", slow.headline);
        assert!(slow.headline.starts_with("c20 is worse than main (20 builds): "), "{}", slow.headline);
        let quick = asked(&[noisy(100.0, 20), vec![80.0]].concat(), Question::Change);
        assert_eq!(quick.verdict, Change::Better, "{}", quick.headline);
    }

    #[test]
    fn a_spike_that_the_base_branch_had_too_is_not_worse() {
        let mut values = noisy(100.0, 40);
        values[17] = 131.0;
        values.push(130.0);
        let spike = asked(&values, Question::Change);
        assert_eq!(spike.verdict, Change::CantTell, "{}", spike.headline);
        assert!(
            spike.headline.contains("response time p95: 1 of 40 recordings of main were as bad"),
            "{}",
            spike.headline
        );
        *values.last_mut().unwrap() = 140.0;
        assert_eq!(asked(&values, Question::Change).verdict, Change::Worse);
    }

    #[test]
    fn the_level_begins_at_the_last_lasting_change() {
        let values = [noisy(100.0, 20), noisy(130.0, 8), vec![131.0]].concat();
        let found = asked(&values, Question::Change);
        assert_eq!((found.verdict, found.level.len()), (Change::NoDifference, 8), "{}", found.headline);
        assert_eq!(found.level[0], "c20");
        assert!(found.history.headline.starts_with("worse since c20: "), "{}", found.history.headline);
    }

    #[test]
    fn the_base_branch_itself_fails_only_for_what_lasts() {
        let once = asked(&[noisy(100.0, 20), vec![190.0]].concat(), Question::Lasting);
        assert_eq!((once.verdict, once.comparison.is_none()), (Change::NoDifference, true), "{}", once.headline);
        let lasting = asked(&[noisy(100.0, 20), noisy(130.0, 6)].concat(), Question::Lasting);
        assert_eq!(lasting.verdict, Change::Worse);
        assert!(lasting.headline.starts_with("main: worse since c20: "), "{}", lasting.headline);
    }

    #[test]
    fn without_a_build_that_measured_the_same_nothing_is_fine() {
        let first = asked(&[100.0], Question::Change);
        assert_eq!(
            (first.verdict, first.headline.as_str()),
            (Change::CantTell, "main has no build yet to compare c0 with")
        );
        let mut all = builds(&noisy(100.0, 4));
        let mut other = all.pop().unwrap();
        other.runs = vec![Run::from_figure("c3", "knee", "requests/s", 1.0)];
        for question in [Question::Change, Question::Lasting] {
            let found = gate(&all, "main", &other, question, Options::default());
            assert_eq!(found.verdict, Change::NotComparable, "{}", found.headline);
        }
        let mut spoiled = all.pop().unwrap();
        spoiled.runs[0].facts.spoiled = Some("the generator was late".to_owned());
        let found = gate(&all, "main", &spoiled, Question::Lasting, Options::default());
        assert_eq!(found.headline, "c2 says nothing about the service: the generator was late");
    }
}
