//! The exam on SAP HANA's own performance tests (SAP/performance-regression-data-set, CC-BY-4.0): 25 series over builds,
//! five of them with a regression and its place. `holdup gate`'s judge looks at each series as a CI job would: after
//! every build, at what was measured so far. It is asked both of its questions: whether the branch got worse for good,
//! and whether this build, were it a pull request, is worse than the branch.

use std::path::Path;

use anyhow::{Context as _, Result};
use holdup_compare::recordings::gate::{Question, gate};
use holdup_compare::recordings::history::LastingChange;
use holdup_compare::recordings::{Change, Group, Options, Run};
use serde_json::{Value, json};

/// A place this far (measurements) from the right one is right.
const NEAR: usize = 2;

/// A measurement of the set.
#[derive(Debug, serde::Deserialize)]
struct Row {
    #[serde(rename = "Index")]
    index: usize,
    #[serde(rename = "GHC")]
    build: String,
    #[serde(rename = "Measurement")]
    value: f64,
}

/// A line of the labels.
#[derive(Debug, serde::Deserialize)]
struct Label {
    #[serde(rename = "Type")]
    kind: String,
    #[serde(rename = "Dataset")]
    file: String,
    /// The last measurement without the regression; 0 in a series without one.
    #[serde(rename = "Change Point")]
    change: usize,
}

/// A build: the median of its measurements in a row, and the index of the last.
struct Build {
    value: f64,
    last: usize,
}

/// What the gate said about a series.
struct Answer {
    label: Label,
    looks: usize,
    /// For each look that alarmed: the last measurement it saw, and the last one before the regression it named.
    alarms: Vec<(usize, usize)>,
    /// Looks at which the build, as a pull request, would have failed.
    failed: usize,
}

impl Answer {
    fn is_near(&self, place: usize) -> bool {
        place.abs_diff(self.label.change) <= NEAR
    }

    fn has_regression(&self) -> bool {
        self.label.change > 0
    }

    /// Found: at the first alarm and at the last, at the right place.
    fn is_found(&self) -> bool {
        let ends = [self.alarms.first(), self.alarms.last()];
        self.has_regression() && ends.iter().all(|end| end.is_some_and(|(_, place)| self.is_near(*place)))
    }
}

/// Runs the exam and prints it.
pub fn run(folder: &Path, is_json: bool) -> Result<()> {
    let labels = folder.join("metadata/dataset_details.csv");
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(b';')
        .trim(csv::Trim::All)
        .from_path(&labels)
        .with_context(|| format!("failed to open {}", labels.display()))?;
    let mut answers = Vec::new();
    for label in reader.deserialize() {
        let label: Label = label.with_context(|| format!("failed to read {}", labels.display()))?;
        answers.push(answer(folder, label)?);
    }
    let found = answers.iter().filter(|answer| answer.is_found()).count();
    let false_alarms = answers.iter().filter(|a| !a.has_regression() && !a.alarms.is_empty()).count();
    let looks: usize = answers.iter().map(|answer| answer.looks).sum();
    let regressions = answers.iter().filter(|answer| answer.has_regression()).count();
    let (failed, others) =
        answers.iter().filter(|a| !a.has_regression()).fold((0, 0), |n, a| (n.0 + a.failed, n.1 + a.looks));
    if is_json {
        let series: Vec<Value> = answers.iter().map(series).collect();
        println!(
            "{:#}",
            json!({ "regressions": regressions, "found": found, "others": answers.len() - regressions,
                "false_alarms": false_alarms, "looks": looks, "failed_as_pull_request": failed, "looks_at_others": others, "series": series })
        );
        return Ok(());
    }
    for answer in &answers {
        println!("{}", line(answer));
    }
    println!("found {found} of {regressions} regressions, at their place +-{NEAR} measurements");
    println!("alarmed in {false_alarms} of {} others, at any of {looks} looks in all", answers.len() - regressions);
    println!("as pull requests {failed} of {others} builds of the others would have failed");
    Ok(())
}

fn answer(folder: &Path, label: Label) -> Result<Answer> {
    let path = folder.join("data").join(&label.file);
    let mut reader = csv::Reader::from_path(&path).with_context(|| format!("failed to open {}", path.display()))?;
    let rows: Vec<Row> =
        reader.deserialize().collect::<Result<_, _>>().with_context(|| format!("failed to read {}", path.display()))?;
    let builds: Vec<Build> = rows.chunk_by(|a, b| a.build == b.build).map(build).collect();
    let groups: Vec<Group> = builds.iter().enumerate().map(|(at, build)| group(at, build)).collect();
    let (mut alarms, mut failed) = (Vec::new(), 0);
    for seen in 1..=builds.len() {
        let (build, before) = (&groups[seen - 1], &groups[..seen - 1]);
        // Both questions have one history, which is the whole answer on the branch itself.
        let answer = gate(before, "main", build, Question::Change, Options::default());
        failed += usize::from(answer.verdict == Change::Worse);
        let is_worse = answer.history.verdict == Change::Worse;
        let changes = answer.history.figures.first().filter(|_| is_worse).map_or(&[][..], |figure| &figure.changes);
        let worse = changes.iter().rev().find(|change| change.stands && change.level > change.before);
        alarms.extend(worse.map(|worse| (builds[seen - 1].last, builds[place(worse)].last)));
    }
    Ok(Answer { label, looks: builds.len(), alarms, failed })
}

/// A build as the gate knows it, by its place.
fn group(at: usize, build: &Build) -> Group {
    let name = at.to_string();
    Group { runs: vec![Run::from_figure(&name, "duration", "ms", build.value)], name }
}

/// The place of the last build before `change`.
fn place(change: &LastingChange) -> usize {
    change.after_build.parse().unwrap_or(0)
}

fn build(rows: &[Row]) -> Build {
    let mut values: Vec<f64> = rows.iter().map(|row| row.value).collect();
    values.sort_by(f64::total_cmp);
    let middle = f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]);
    Build { value: middle, last: rows.last().map_or(0, |row| row.index) }
}

fn series(answer: &Answer) -> Value {
    json!({ "series": answer.label.file, "kind": answer.label.kind, "change": answer.label.change, "looks": answer.looks,
        "failed_as_pull_request": answer.failed,
        "alarms": answer.alarms.iter().map(|(seen, place)| json!({ "seen": seen, "place": place })).collect::<Vec<_>>() })
}

fn line(answer: &Answer) -> String {
    let said = match (answer.alarms.first(), answer.alarms.last()) {
        (Some((seen, place)), Some((_, last))) => format!(
            "{} alarms; the first at measurement {seen}: a regression after {place}; at the end: after {last}",
            answer.alarms.len()
        ),
        _ => "no alarm".to_owned(),
    };
    let truth = if answer.has_regression() { format!("after {}", answer.label.change) } else { "none".to_owned() };
    format!(
        "{}  {:<16} {truth:<10} {:>4} looks  {said}; {} pull requests would fail",
        answer.label.file, answer.label.kind, answer.looks, answer.failed
    )
}
