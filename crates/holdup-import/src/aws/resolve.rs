//! Names series, and finds what they measure, once all files are read. Queries name the results of
//! other files, and one file may have an instance's name and another its figures.

use std::collections::{BTreeMap, BTreeSet};

use super::name::{known, known_in, named, snake};
use super::{Aws, Figures, Key, Kind, MOST_NOTES, Query, RawSeries, Series, Setting, period, shown};

type Labels = BTreeMap<String, String>;

/// The identity of a series.
struct SeriesIdentity {
    metric: String,
    labels: Labels,
    factor: f64,
    period_ns: Option<i64>,
    /// Whether a value covers the period after its time stamp rather than the one before it.
    is_stamped_at_start: bool,
}

/// A series whose points still have the file's time stamps.
struct PlacedSeries {
    one: Series,
    is_stamped_at_start: bool,
    /// Whether its period comes from few points.
    is_guess: bool,
}

/// This many points give the period, even if some between them are missing.
const FEW: usize = 5;

pub(super) fn resolve(aws: Aws, db_instance: Option<&str>) -> Figures {
    let Aws { files, raw, queries, described, resource_ids, mut notes, is_partial, mut events, parameters, .. } = aws;
    let mut unknown = Vec::new();
    let all = gather(&files, raw, |key| meaning(key, &queries, &resource_ids, &mut unknown));
    let names: BTreeSet<String> = all.keys().filter_map(|(_, labels)| labels.get("db_instance").cloned()).collect();
    let only = names.first().filter(|_| names.len() == 1).map(String::as_str);
    let instance = db_instance.or(described.only()).or(only);
    let mut nameless = 0;
    let mut twice = 0;
    let mut series = Vec::new();
    for (mut one, is_stamped_at_start) in all.into_values() {
        let has_name = one.labels.keys().any(|label| WHOSE.contains(&label.as_str()));
        // Performance Insights has an internal id for an instance. Only the user can say which
        // instance that is.
        let told = if one.labels.contains_key("db_resource") { db_instance } else { instance.filter(|_| !has_name) };
        match told {
            Some(name) => drop(one.labels.insert("db_instance".to_owned(), name.to_owned())),
            None if has_name => {}
            None => {
                nameless += 1;
                one.labels.insert("db_instance".to_owned(), "unnamed".to_owned());
            }
        }
        twice += in_order(&mut one.points);
        let is_told = one.period_ns > 0;
        if !is_told {
            let is_regular = !one.metric.starts_with("aws_os_");
            one.period_ns = if is_regular { period::regular(&one.points) } else { period::usual(&one.points) };
        }
        // Missing values helped to find the distance, and are not needed any more.
        one.points.retain(|(_, value)| value.is_finite());
        series.push(PlacedSeries { is_guess: !is_told && one.points.len() < FEW, one, is_stamped_at_start });
    }
    let mut series = centred(series);
    join(&mut series);
    if nameless > 0 {
        notes.push(format!(
            "the files do not name the instance of {nameless} series: they count as one instance, db_instance=unnamed; give its name with --db-instance NAME, or import the output of aws rds describe-db-instances, too"
        ));
    }
    let has_resource = |one: &Series| one.labels.contains_key("db_resource") && !one.labels.contains_key("db_instance");
    if series.iter().any(has_resource) {
        notes.push("Performance Insights has only its own id of the instance; give its name with --db-instance NAME, or import the output of aws rds describe-db-instances, too".to_owned());
    }
    if twice > 0 {
        notes.push(format!("{twice} points occur twice with different values; the first values are kept"));
    }
    for text in unknown.into_iter().take(MOST_NOTES) {
        notes.push(text);
    }
    let is_measured = |name: &str| series.iter().any(|one| one.labels.get("db_instance").is_some_and(|of| of == name));
    let mut settings = described.settings(&is_measured, &mut notes);
    settings.extend(parameters.into_iter().map(|(name, value)| Setting { source: "aws".to_owned(), name, value }));
    events.sort_by_key(|event| event.observed_at);
    Figures { series, settings, events, notes, is_partial }
}

/// Series by metric and labels, and whether their times are those of a period's start.
type Gathered = BTreeMap<(String, Labels), (Series, bool)>;

/// Joins what several answers have of one series.
fn gather(files: &[String], raw: Vec<RawSeries>, mut meaning: impl FnMut(&Key) -> SeriesIdentity) -> Gathered {
    let mut all = Gathered::new();
    for RawSeries { key, file, mut points } in raw {
        if points.is_empty() {
            continue;
        }
        let meaning = meaning(&key);
        let file = files.get(file).map_or("", String::as_str);
        let source = match key.kind {
            Kind::Data | Kind::Statistics => format!("cloudwatch:{file}"),
            Kind::Os => format!("enhanced_monitoring:{file}"),
            Kind::Insights => format!("performance_insights:{file}"),
            Kind::Panel => format!("cloudwatch:{file}"),
        };
        let SeriesIdentity { metric, labels, factor, period_ns, is_stamped_at_start } = meaning;
        let (series, _) = all.entry((metric.clone(), labels.clone())).or_insert_with(|| {
            let period_ns = period_ns.unwrap_or(0);
            (Series { source, metric, labels, period_ns, points: Vec::new() }, is_stamped_at_start)
        });
        points.iter_mut().for_each(|(_, value)| *value *= factor);
        series.points.append(&mut points);
    }
    all
}

/// Labels that identify what a series measures.
const WHOSE: [&str; 5] = ["db_instance", "db_cluster", "instance_id", "volume_id", "db_resource"];

/// Sorts points by time and keeps one per moment. Returns how many others had a different value. A
/// missing value does not count.
fn in_order(points: &mut Vec<(i64, f64)>) -> usize {
    points.sort_by_key(|(at, _)| *at);
    let mut others = 0;
    points.dedup_by(|later, first| {
        let is_same = later.0 == first.0;
        if is_same && first.1.is_nan() {
            first.1 = later.1;
        } else if is_same && !later.1.is_nan() {
            others += usize::from(later.1 != first.1);
        }
        is_same
    });
    others
}

/// Series with points, each point moved to the middle of its period. A few points with gaps between
/// them suggest too long a period. Such series take the period of the other series in their file,
/// so that reads and writes of one moment stay together.
fn centred(all: Vec<PlacedSeries>) -> Vec<Series> {
    let mut shortest: BTreeMap<String, i64> = BTreeMap::new();
    for PlacedSeries { one, .. } in all.iter().filter(|placed| placed.one.period_ns > 0) {
        let known = shortest.entry(one.source.clone()).or_insert(one.period_ns);
        *known = one.period_ns.min(*known);
    }
    let mut series = Vec::new();
    for PlacedSeries { mut one, is_stamped_at_start, is_guess } in all {
        let shortest = shortest.get(&one.source).copied().unwrap_or(0);
        if is_guess && shortest > 0 && one.period_ns % shortest == 0 {
            one.period_ns = shortest;
        }
        let half = one.period_ns / 2;
        for (at, _) in &mut one.points {
            *at = if is_stamped_at_start { at.saturating_add(half) } else { at.saturating_sub(half) };
        }
        series.extend(Some(one).filter(|one| !one.points.is_empty()));
    }
    series
}

/// Joins series that turned out to be the same once their instance was known.
fn join(series: &mut Vec<Series>) {
    series.sort_by(|a, b| (&a.metric, &a.labels).cmp(&(&b.metric, &b.labels)));
    series.dedup_by(|later, first| {
        let is_same = later.metric == first.metric && later.labels == first.labels;
        if is_same {
            first.points.append(&mut later.points);
            in_order(&mut first.points);
        }
        is_same
    });
}

fn meaning(
    key: &Key,
    queries: &BTreeMap<String, Option<Query>>,
    resource_ids: &BTreeMap<String, String>,
    unknown: &mut Vec<String>,
) -> SeriesIdentity {
    let own_period = Some(key.period_ns).filter(|ns| *ns > 0);
    let plain = |metric: String, labels: Labels| SeriesIdentity {
        metric,
        labels,
        factor: 1.0,
        period_ns: own_period,
        is_stamped_at_start: false,
    };
    let mut labels: Labels = key.labels.iter().cloned().collect();
    match key.kind {
        Kind::Os => plain(key.name.clone(), labels),
        Kind::Insights => {
            if !key.stat.is_empty() {
                labels.insert("stat".to_owned(), key.stat.clone());
            }
            match resource_ids.get(&key.label) {
                Some(name) => drop(labels.insert("db_instance".to_owned(), name.clone())),
                None if !key.label.is_empty() => drop(labels.insert("db_resource".to_owned(), key.label.clone())),
                None => {}
            }
            plain(key.name.clone(), labels)
        }
        Kind::Statistics => of_cloudwatch(&key.name, &key.unit, &key.stat, labels, None),
        Kind::Panel => {
            let (metric, stat, instance) = by_label("", &key.name, unknown);
            let stat = if key.stat.is_empty() { stat } else { key.stat.clone() };
            if !labels.contains_key("db_instance") {
                labels.extend(instance.map(|name| ("db_instance".to_owned(), name)));
            }
            of_cloudwatch(&metric, &key.unit, &stat, labels, own_period)
        }
        Kind::Data => match queries.get(&key.name) {
            Some(Some(query)) => {
                labels.extend(query.dimensions.iter().map(|(name, value)| (dimension(name), value.clone())));
                let period_ns = Some(query.period_ns).filter(|ns| *ns > 0);
                of_cloudwatch(&query.metric, "", &query.stat, labels, period_ns)
            }
            _ => {
                let (metric, stat, instance) = by_label(&key.name, &key.label, unknown);
                labels.extend(instance.map(|name| ("db_instance".to_owned(), name)));
                of_cloudwatch(&metric, "", &stat, labels, None)
            }
        },
    }
}

fn of_cloudwatch(metric: &str, unit: &str, stat: &str, mut labels: Labels, period_ns: Option<i64>) -> SeriesIdentity {
    let ours = named(metric, unit, stat);
    if !matches!(stat, "" | "Average" | "SampleCount") {
        labels.insert("stat".to_owned(), stat.to_owned());
    }
    SeriesIdentity { metric: ours.metric, labels, factor: ours.factor, period_ns, is_stamped_at_start: true }
}

fn dimension(name: &str) -> String {
    match name {
        "DBInstanceIdentifier" => "db_instance".to_owned(),
        "DBClusterIdentifier" => "db_cluster".to_owned(),
        _ => snake(name),
    }
}

/// Metric, statistic and instance of a result, from its label, else from its id. The label is the
/// metric's name, or contains it and what distinguishes it (`AWS/RDS orders-db ReadIOPS`), or is
/// free text.
fn by_label(id: &str, label: &str, unknown: &mut Vec<String>) -> (String, String, Option<String>) {
    const STATS: [&str; 5] = ["Average", "Maximum", "Minimum", "Sum", "SampleCount"];
    let words: Vec<&str> =
        label.split(|c: char| c.is_whitespace() || matches!(c, ':' | ',' | '|' | '(' | ')')).collect();
    let is_percentile =
        |word: &str| word.strip_prefix('p').is_some_and(|rest| !rest.is_empty() && rest.parse::<f64>().is_ok());
    let stat = words.iter().find(|word| STATS.contains(word) || is_percentile(word)).copied();

    let (metric, in_word) = words.iter().find_map(|word| known_in(word)).unzip();
    let stat = in_word.flatten().or(stat).unwrap_or_default();
    let rest: Vec<&str> = words
        .iter()
        .filter(|word| {
            !word.is_empty()
                && !STATS.contains(word)
                && !is_percentile(word)
                && !word.starts_with("AWS/")
                && known_in(word).is_none()
        })
        .copied()
        .collect();
    let instance = match rest.as_slice() {
        // The remaining word may be anything, so it counts as an instance only if it could be one's
        // name.
        [one] if is_instance(one) => Some((*one).to_owned()),
        _ => None,
    };
    if let Some(metric) = metric {
        return (metric.to_owned(), stat.to_owned(), instance);
    }
    if let Some(metric) = known(id) {
        return (metric.to_owned(), stat.to_owned(), instance);
    }
    let name = if label.is_empty() { id } else { label };
    let name = if stat.is_empty() { name.to_owned() } else { name.replacen(stat, "", 1) };
    unknown.push(format!(
        "{} names no known metric: kept as aws_{}, unit unknown{}",
        if id.is_empty() { shown(label) } else { format!("{} ({})", shown(id), shown(label)) },
        snake(&name),
        if id.is_empty() { "" } else { "; import the file of --metric-data-queries, too" },
    ));
    (name, stat.to_owned(), None)
}

/// Whether RDS would accept this name for an instance: small letters, digits and hyphens, a letter
/// first.
fn is_instance(word: &str) -> bool {
    word.len() <= 63
        && word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}
