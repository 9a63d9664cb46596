//! The exam on DBSherlock's cases (Yoon, Niu, Mozafari: SIGMOD 2016): MySQL under TPC-C with an injected fault. The
//! episode is given, or found by holdup itself; labels only score.

mod cases;
mod columns;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use holdup_diagnose::counters::judge::patterns;
use holdup_diagnose::counters::judge::{Ranking, Suspect, judge_by};
use holdup_diagnose::trace::view::Normal;
use holdup_signals::time::counters::detect::{detect, healthy};
use holdup_signals::time::counters::jitter::Jitter;
use holdup_signals::time::counters::{Family, Frame};
use serde::Serialize;
use serde_json::{Value, json};

use self::cases::Case;
use crate::neighbor;
use crate::options::Options;
use crate::report;
use crate::score::{Confusion, iou, ratio, share};

/// Rows of a window of normal time that is judged as if it were an episode: the shortest of the set's episodes.
const WINDOW_ROWS: usize = 20;

/// What a judge reached on the set; what is not serialized is not a figure to be held against another draw's.
#[derive(Debug, Clone, Default, Serialize)]
struct Scores {
    /// Share of the single cases whose cause ranks first, episode given.
    top1: f64,
    /// Share of those in which it is among the first two.
    top2: f64,
    /// Share of the single cases in the first three.
    top3: f64,
    /// Share of the compound cases all of whose causes are among the first three, episode given.
    compound_top3: f64,
    /// As `top1`, on the episode that was found.
    detected_top1: f64,
    /// As `compound_top3`, on the episode that was found.
    detected_compound: f64,
    /// Mean of rows found and labelled over rows found or labelled.
    iou: f64,
    /// Share of all cases in which that is over 0.7.
    iou_over_07: f64,
    /// Share of windows of normal time in which a culprit was named.
    named_on_normal: f64,
    /// Number of those windows.
    #[serde(skip)]
    normal_windows: usize,
    /// Share of the single cases whose first cause carries enough to be named.
    #[serde(skip)]
    named: f64,
    /// First answers to single cases, episode given.
    #[serde(skip)]
    confusion: Confusion,
    /// The same, episode found.
    #[serde(skip)]
    detected_confusion: Confusion,
    /// Culprits that were named in normal time, a line each.
    #[serde(skip)]
    false_culprits: Vec<String>,
    /// What was missed, a line each.
    #[serde(skip)]
    missed: Vec<String>,
}

/// Runs the exam and prints it.
pub fn run(folder: &Path, options: &Options) -> Result<()> {
    let cases = cases::read(folder)?;
    report::heading(options)?;
    if let Some(name) = &options.show {
        for case in cases.iter().filter(|case| case.name.starts_with(name.as_str())) {
            show(case, options);
        }
        return Ok(());
    }
    let scores = score(&cases, &options.without, Jitter::NONE);
    let mut lines = summary(&cases, &scores);
    let mut all = json(&cases, &scores);
    report::vary(options, &mut lines, &mut all, |without, jitter| {
        let scores = score(&cases, without, jitter);
        (short(&scores), json!(scores))
    });
    report::print(options, &lines, all)
}

/// Scores every case.
fn score(cases: &[Case], without: &[Family], jitter: Jitter) -> Scores {
    let mut scores = Scores::default();
    let (mut ious, mut on_normal) = (Vec::new(), Vec::new());
    let (mut ranks, mut found_ranks, mut named) = (Vec::new(), Vec::new(), Vec::new());
    let (mut compounds, mut found_compounds) = (Vec::new(), Vec::new());
    for case in cases {
        let frame = without.iter().fold(case.frame.clone(), |frame, family| frame.without(*family));
        let ranking = ranked(&frame, &case.abnormal, &case.normal, jitter);
        let episodes = detect(&frame, jitter);
        let rest = healthy(&frame, &episodes).into_iter().collect();
        let found: BTreeSet<usize> = episodes.iter().cloned().flatten().collect();
        let found_ranking =
            joined(episodes.iter().map(|phase| ranked(&frame, &phase.clone().collect(), &rest, jitter)).collect());
        ious.push(iou(&found, &case.abnormal));
        if let [cause] = case.causes[..] {
            ranks.push(rank(&ranking, cause));
            found_ranks.push(rank(&found_ranking, cause));
            named.push(ranking.named().next().is_some());
            scores.confusion.add(&case.label, first(&ranking));
            scores.detected_confusion.add(&case.label, first(&found_ranking));
        } else {
            compounds.push(case.causes.iter().all(|cause| rank(&ranking, cause) < 3));
            found_compounds.push(case.causes.iter().all(|cause| rank(&found_ranking, cause) < 3));
        }
        scores.missed.extend(missed(case, "episode given", &ranking));
        scores.missed.extend(missed(case, &format!("found, IoU {:.2}", iou(&found, &case.abnormal)), &found_ranking));
        for window in windows(case) {
            let rest = case.normal.difference(&window).copied().collect();
            let ranking = ranked(&frame, &window, &rest, jitter);
            let named = ranking.named().next();
            if let Some(culprit) = named {
                scores.false_culprits.push(format!("{} rows {:?}: {}", case.name, bounds(&window), culprit.pattern));
            }
            on_normal.push(named.is_some());
        }
    }
    let within = |ranks: &[usize], places: usize| share(ranks.iter().map(|rank| *rank < places));
    scores.top1 = within(&ranks, 1);
    scores.top2 = within(&ranks, 2);
    scores.top3 = within(&ranks, 3);
    scores.detected_top1 = within(&found_ranks, 1);
    scores.compound_top3 = share(compounds);
    scores.detected_compound = share(found_compounds);
    scores.iou = ratio(ious.iter().sum(), ious.len());
    scores.iou_over_07 = share(ious.iter().map(|iou| *iou > 0.7));
    scores.normal_windows = on_normal.len();
    scores.named_on_normal = share(on_normal);
    scores.named = share(named);
    scores
}

fn ranked(frame: &Frame, episode: &BTreeSet<usize>, normal: &BTreeSet<usize>, jitter: Jitter) -> Ranking {
    let episode = frame.pick(episode.iter().copied());
    let normal = Normal::own(frame.pick(normal.iter().copied()));
    judge_by(&patterns(), &episode, &normal, jitter)
}

/// Each cause with its highest score in any phase of an episode.
fn joined(phases: Vec<Ranking>) -> Ranking {
    let mut suspects: Vec<Suspect> = Vec::new();
    for suspect in phases.into_iter().flat_map(|ranking| ranking.suspects) {
        match suspects.iter_mut().find(|known| known.pattern == suspect.pattern) {
            Some(known) if suspect.score > known.score => *known = suspect,
            Some(_) => {}
            None => suspects.push(suspect),
        }
    }
    suspects.sort_by(|a, b| b.score.unwrap_or(f64::NEG_INFINITY).total_cmp(&a.score.unwrap_or(f64::NEG_INFINITY)));
    Ranking { suspects }
}

/// The place of a cause, from 0; behind all others where it was not judged.
fn rank(ranking: &Ranking, cause: &str) -> usize {
    ranking
        .suspects
        .iter()
        .position(|suspect| suspect.pattern == cause && suspect.score.is_some())
        .unwrap_or(usize::MAX)
}

fn first(ranking: &Ranking) -> &'static str {
    ranking.first().map_or("nothing", |suspect| suspect.pattern)
}

fn missed(case: &Case, how: &str, ranking: &Ranking) -> Option<String> {
    let places = if case.causes.len() > 1 { 3 } else { 1 };
    let right = case.causes.iter().all(|cause| rank(ranking, cause) < places);
    (!right).then(|| format!("{} ({how}): {}", case.name, report::top(ranking, 4)))
}

/// Windows of neighboring normal rows, a few unlabelled ones skipped; none spans an episode.
fn windows(case: &Case) -> Vec<BTreeSet<usize>> {
    let rows: Vec<usize> = case.normal.iter().copied().collect();
    let stretches = rows.chunk_by(|row, next| next - row <= 3);
    stretches.flat_map(|rows| rows.chunks_exact(WINDOW_ROWS)).map(|chunk| chunk.iter().copied().collect()).collect()
}

fn show(case: &Case, options: &Options) {
    let frame = options.without.iter().fold(case.frame.clone(), |frame, family| frame.without(*family));
    let found = detect(&frame, Jitter::NONE);
    println!("{}: {} in rows {:?}; found {found:?}", case.name, case.label, bounds(&case.abnormal));
    print!("{}", report::accounts(&ranked(&frame, &case.abnormal, &case.normal, Jitter::NONE), 4, &case.causes));
}

fn bounds(rows: &BTreeSet<usize>) -> Option<(usize, usize)> {
    Some((*rows.first()?, *rows.last()?))
}

fn short(scores: &Scores) -> String {
    format!(
        "top-1 {:.1} %, top-2 {:.1} %, compound {:.1} %; found: top-1 {:.1} %, compound {:.1} %, IoU {:.2}; named on normal {:.1} %",
        100.0 * scores.top1,
        100.0 * scores.top2,
        100.0 * scores.compound_top3,
        100.0 * scores.detected_top1,
        100.0 * scores.detected_compound,
        scores.iou,
        100.0 * scores.named_on_normal
    )
}

fn summary(cases: &[Case], scores: &Scores) -> Vec<String> {
    let mut lines = vec![format!("DBSherlock, {} cases; every cause competes in each", cases.len()), short(scores)];
    lines.push(format!(
        "top-3 {:.1} %; IoU over 0.7 in {:.0} %; {:.1} % of single cases are named; {} windows of normal time",
        100.0 * scores.top3,
        100.0 * scores.iou_over_07,
        100.0 * scores.named,
        scores.normal_windows
    ));
    let (dummy, neighbor) = baselines(cases);
    lines.push(format!("a dummy: {}", baseline_text(&dummy)));
    lines.push(format!("1-nearest neighbor, trained on the other cases: {}", baseline_text(&neighbor)));
    lines.push("first answers, episode given:".to_owned());
    lines.extend(scores.confusion.lines());
    lines.push("first answers, episode found:".to_owned());
    lines.extend(scores.detected_confusion.lines());
    lines.push(format!("missed: {}", scores.missed.len()));
    lines.extend(scores.missed.iter().cloned());
    lines.push(format!("named on normal time: {}", scores.false_culprits.len()));
    lines.extend(scores.false_culprits.iter().cloned());
    lines
}

fn baseline_text(scores: &Value) -> String {
    let percent = |key: &str| 100.0 * scores[key].as_f64().unwrap_or_default();
    format!(
        "top-1 {:.1} %, top-2 {:.1} %, compound {:.1} %",
        percent("top1"),
        percent("top2"),
        percent("compound_top3")
    )
}

/// The same figures of a judge that always gives the most frequent causes, and of one that gives those of the nearest
/// other cases.
fn baselines(cases: &[Case]) -> (Value, Value) {
    let features: Vec<Vec<f64>> =
        cases.iter().map(|case| neighbor::features(&case.frame, &case.abnormal, &case.normal)).collect();
    let labels: Vec<&[&str]> = cases.iter().map(|case| case.causes.as_slice()).collect();
    let nearest: Vec<Vec<&str>> = neighbor::ranked(&features, &labels);
    let dummy: Vec<Vec<&str>> = (0..cases.len()).map(|case| neighbor::most_frequent(&labels, case)).collect();
    (placed(cases, &dummy), placed(cases, &nearest))
}

fn placed(cases: &[Case], answers: &[Vec<&str>]) -> Value {
    let place = |answer: &[&str], cause: &str| answer.iter().position(|said| *said == cause).unwrap_or(usize::MAX);
    let of = |is_single: bool| cases.iter().zip(answers).filter(move |(case, _)| (case.causes.len() == 1) == is_single);
    let among = |case: &Case, answer: &[&str], places| case.causes.iter().all(|cause| place(answer, cause) < places);
    let single = |places: usize| share(of(true).map(|(case, answer)| among(case, answer, places)));
    let compound = share(of(false).map(|(case, answer)| among(case, answer, 3)));
    json!({"top1": single(1), "top2": single(2), "compound_top3": compound})
}

fn json(cases: &[Case], scores: &Scores) -> Value {
    let (dummy, neighbor) = baselines(cases);
    let mut all = json!(scores);
    all["cases"] = json!(cases.len());
    all["normal_windows"] = json!(scores.normal_windows);
    all["named"] = json!(scores.named);
    all["confusion"] = scores.confusion.json();
    all["detected_confusion"] = scores.detected_confusion.json();
    all["missed"] = json!(scores.missed);
    all["baselines"] = json!({"dummy": dummy, "nearest_neighbor": neighbor});
    all
}
