//! Incidents of a managed database, in the shapes of Amazon's own answers, from a seeded generator:
//! each is imported as a person would import it and judged without any response time.

mod answers;
mod cases;
mod instance;
mod together;

use std::collections::BTreeMap;

use holdup_diagnose::Cause;
use holdup_diagnose::verdict::{Answer, Diagnosis};
use holdup_import::aws::{Aws, Series, is_panel};
use holdup_recording::manifest::{Host, Reported};
use holdup_recording::rows::{Sample, Setting};
use holdup_recording::tables::Tables;
use holdup_recording::{Coverage, Labels, Manifest, Recording};

use self::answers::File;
use self::cases::{CASES, Case, HEALTHY};
use self::instance::Course;

/// A finding with more than this is an accusation.
const ACCUSES: f64 = 0.5;
const SEEDS: u64 = 6;

/// What `holdup import` makes of the files.
fn recorded(files: &[File], reported: Option<(i64, i64)>) -> Recording {
    let mut aws = Aws::default();
    for file in files {
        match is_panel(file.text.as_bytes()) {
            true => aws.read_panel(file.text.as_bytes(), file.name),
            false => aws.read(file.text.as_bytes(), file.name),
        }
        .unwrap_or_else(|e| panic!("{e}"));
    }
    let figures = aws.finish(None).unwrap();
    let ends = figures.series.iter().filter_map(|one| Some((one.points.first()?.0, one.points.last()?.0)));
    let of_events = figures.events.iter().map(|event| (event.observed_at, event.observed_at));
    let (from, to) = ends.chain(of_events).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0, 1));
    let mut manifest = Manifest::starting("rds", from, Host::default());
    manifest.ended_at = Some(to + 1);
    manifest.reported = reported.map(|(from, to)| Reported { from: Some(from), to: Some(to), words: None });
    let mut tables = Tables::default();
    (tables.samples.present, tables.settings.present, tables.events.present) = (true, true, true);
    let mut sources: BTreeMap<String, u64> = BTreeMap::new();
    for Series { source, metric, labels, period_ns, points } in figures.series {
        *sources.entry(source.clone()).or_default() += points.len() as u64;
        let labels = Labels::new(labels);
        tables.samples.rows.extend(points.into_iter().map(|(observed_at, value)| Sample {
            observed_at,
            window_ns: period_ns,
            source: source.clone(),
            metric: metric.clone(),
            labels: labels.clone(),
            value,
        }));
    }
    tables.samples.rows.sort_by_key(|row| row.observed_at);
    tables.events.rows = figures.events;
    tables.settings.rows = figures
        .settings
        .into_iter()
        .map(|one| Setting { observed_at: from, source: one.source, name: one.name, value: one.value })
        .collect();
    let read = |(source, reads): (String, u64)| {
        let mut coverage = Coverage::with_parts(&source, Vec::new()).remove(0);
        coverage.reads_total = reads;
        coverage
    };
    manifest.coverage = sources.into_iter().map(read).collect();
    Recording { dir: Default::default(), manifest, tables, latencies: Vec::new(), search: None, excerpt: None }
}

fn judged(files: &[File], reported: Option<(i64, i64)>) -> Diagnosis {
    holdup_diagnose::diagnose(&recorded(files, reported), None)
}

/// Whether the expected cause is the culprit, or first.
fn is_named(found: &Diagnosis, expected: &[Cause]) -> bool {
    let first = found.findings.first().map(|first| first.cause);
    found.culprit.or(first).is_some_and(|cause| expected.contains(&cause))
}

/// Another cause than the expected ones that is named with confidence.
fn accused(found: &Diagnosis, expected: &[Cause]) -> Option<(Cause, f64)> {
    let first = found.findings.first().filter(|_| found.verdict == Answer::Found)?;
    (first.confidence > ACCUSES && !expected.contains(&first.cause)).then_some((first.cause, first.confidence))
}

fn line(case: &Case, seed: u64, found: &Diagnosis) -> String {
    let findings: Vec<String> = found.findings.iter().map(|f| format!("{} {}", f.cause, f.confidence)).collect();
    format!("{:<18} {seed} {:?} {}: {}", case.name, found.verdict, findings.join(", "), found.headline)
}

#[test]
fn each_incident_is_named_and_no_healthy_database_is_accused() {
    let (mut named, mut wrong, mut lines) = (0, Vec::new(), Vec::new());
    for case in CASES {
        let mut right = 0;
        for seed in 0..SEEDS {
            let course = Course::make(case, seed);
            let found = judged(&answers::files(&course, case), Some(course.incident()));
            right += usize::from(is_named(&found, case.causes));
            wrong.extend(accused(&found, case.causes).map(|accused| (case.name, seed, accused)));
            lines.push(line(case, seed, &found));
        }
        named += usize::from(right * 2 > SEEDS as usize);
    }
    println!("{}", lines.join("\n"));
    assert!(named >= 10 && wrong.len() <= 2, "{named} of 12 named; wrong: {wrong:?}\n{}", lines.join("\n"));
    for case in HEALTHY {
        for seed in 0..SEEDS {
            let course = Course::make(case, seed);
            for reported in [None, Some(course.incident())] {
                let found = judged(&answers::files(&course, case), reported);
                assert!(accused(&found, &[]).is_none() && found.culprit.is_none(), "{}", line(case, seed, &found));
            }
        }
    }
}

#[test]
fn a_part_of_the_files_names_nothing_wrong() {
    let mut wrong = Vec::new();
    let mut judgements = 0;
    for case in CASES.iter().chain(HEALTHY) {
        for seed in 0..SEEDS / 2 {
            let course = Course::make(case, 100 + seed);
            let all = answers::files(&course, case);
            let without = |group: &str| all.iter().filter(|file| !file.name.starts_with(group)).cloned().collect();
            let mut subsets: Vec<Vec<File>> = vec![without("pi"), without("instance"), without("events")];
            let mut random = instance::Random::new(seed + 77);
            subsets.push(all.iter().filter(|_| random.unit() < 0.5).cloned().collect());
            for files in subsets.iter().filter(|files| files.iter().any(|file| file.name != "instance.json")) {
                let found = judged(files, Some(course.incident()));
                judgements += 1;
                let names: Vec<&str> = files.iter().map(|file| file.name).collect();
                wrong.extend(accused(&found, case.causes).map(|of| format!("{} {seed} {names:?} {of:?}", case.name)));
            }
        }
    }
    assert!(wrong.len() * 50 <= judgements, "{} of {judgements}:\n{}", wrong.len(), wrong.join("\n"));
}
