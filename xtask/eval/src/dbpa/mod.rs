//! The exam on DBPA's runs (Huang et al.: SIGMOD 2023): MySQL with one of eight anomalies or none, beside normal runs of
//! the same hardware. Labels only score; a judge that names nobody answers `nothing`.

mod cases;
mod columns;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};
use holdup_diagnose::counters::judge::patterns;
use holdup_diagnose::counters::judge::{Ranking, judge_by};
use holdup_diagnose::trace::view::Normal;
use holdup_diagnose::trace::view::Peers;
use holdup_signals::time::counters::jitter::Jitter;
use holdup_signals::time::counters::{Family, Frame, Signal};
use serde_json::{Value, json};

use self::cases::{Case, HEAD};
use self::columns::NOTHING;
use crate::neighbor;
use crate::options::Options;
use crate::report;
use crate::score::{Confusion, share};

/// How session counts are treated: the set's normal runs all have the same, which gives some anomalies away.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sessions {
    /// As recorded.
    Recorded,
    /// Each run's multiplied by something from 1/1.3 to 1.3, the same in all of its rows.
    Jittered,
    /// Not there.
    Hidden,
}

/// By how much session counts of a run are moved.
const SESSIONS_MOVED: f64 = 1.3;

/// What a judge reached on the set in one way of looking at it.
#[derive(Debug, Clone, Default)]
struct Scores {
    macro_f1: f64,
    accuracy: f64,
    top2: f64,
    false_on_normal: f64,
    confusion: Confusion,
    missed: Vec<String>,
}

/// Runs the exam and prints it.
pub fn run(folder: &Path, options: &Options) -> Result<()> {
    let cases = cases::read(folder)?;
    if let Some(hardware) = cases
        .iter()
        .find(|case| !cases.iter().any(|normal| normal.cause == NOTHING && normal.hardware == case.hardware))
    {
        bail!("{}: there are no normal runs of hardware {:?}", folder.display(), hardware.hardware);
    }
    report::heading(options)?;
    if let Some(name) = &options.show {
        return show(&cases, name, options);
    }
    let both =
        |without: &[Family], sessions, jitter| [false, true].map(|head| score(&cases, without, sessions, head, jitter));
    let recorded = both(&options.without, Sessions::Recorded, Jitter::NONE);
    let mut all = figures(&recorded);
    let mut lines = vec![
        format!("DBPA, {} runs; every cause competes in each", cases.len()),
        format!("as recorded: {}", in_words(&recorded)),
    ];
    for (name, sessions) in [("jittered", Sessions::Jittered), ("hidden", Sessions::Hidden)] {
        let way = both(&options.without, sessions, Jitter::NONE);
        lines.push(format!("session counts {name}: {}", in_words(&way)));
        all[format!("sessions_{name}")] = figures(&way);
    }
    let (dummy, nearest) = baselines(&cases);
    lines.push(format!(
        "a dummy: macro-F1 {:.3}; 1-nearest neighbor, trained on the other runs: {:.3}, with the head {:.3}",
        dummy[0].macro_f1, nearest[0].macro_f1, nearest[1].macro_f1
    ));
    all["baselines"] = json!({"dummy": figures(&dummy), "nearest_neighbor": figures(&nearest)});
    for (title, scores) in [("against normal runs", &recorded[0]), ("with the run's own head", &recorded[1])] {
        lines.push(format!("answers {title}:"));
        lines.extend(scores.confusion.lines());
    }
    all["confusion"] = recorded[0].confusion.json();
    all["confusion_own_head"] = recorded[1].confusion.json();
    all["cases"] = json!(cases.len());
    report::vary(options, &mut lines, &mut all, |without, jitter| {
        let way = both(without, Sessions::Recorded, jitter);
        (in_words(&way), figures(&way))
    });
    lines.push(format!("missed with the run's own head: {}", recorded[1].missed.len()));
    lines.extend(recorded[1].missed.iter().take(20).cloned());
    report::print(options, &lines, all)
}

/// The frames as one way of looking sees them.
fn seen(cases: &[Case], without: &[Family], sessions: Sessions) -> Vec<Frame> {
    let counts = [Signal::SessionsConnected, Signal::SessionsRunning];
    cases
        .iter()
        .map(|case| {
            let mut frame = without.iter().fold(case.frame.clone(), |frame, family| frame.without(*family));
            for signal in counts {
                match sessions {
                    Sessions::Recorded => {}
                    Sessions::Hidden => frame = frame.without_signal(signal),
                    Sessions::Jittered => {
                        let moved = Jitter::new(0, SESSIONS_MOVED).apply(&case.name, 1.0);
                        if let Some(values) = frame.get(signal) {
                            let values = values.iter().map(|value| value * moved).collect();
                            frame.set(signal, values);
                        }
                    }
                }
            }
            frame
        })
        .collect()
}

/// What is asked of each run: its rows, and what they are compared with.
fn judged(
    cases: &[Case],
    frames: &[Frame],
    head: bool,
    jitter: Jitter,
    only: impl Fn(&Case) -> bool,
) -> Vec<(usize, Ranking)> {
    let mut pools: BTreeMap<&str, (Peers, Vec<usize>)> = BTreeMap::new();
    for case in cases {
        pools.entry(case.hardware.as_str()).or_insert_with(|| {
            let members: Vec<usize> = (0..cases.len())
                .filter(|other| cases[*other].cause == NOTHING && cases[*other].hardware == case.hardware)
                .collect();
            (
                Peers::new(members.iter().map(|other| frames[*other].range(cases[*other].episode.clone())).collect()),
                members,
            )
        });
    }
    (0..cases.len())
        .filter(|case| only(&cases[*case]))
        .filter_map(|case| {
            let (peers, members) = pools.get(cases[case].hardware.as_str())?;
            let mut episode = cases[case].episode.clone();
            if head {
                episode.start = episode.start.max(HEAD.end);
            }
            let left_out = members.iter().position(|member| *member == case);
            let episode = frames[case].range(episode);
            let own = head.then(|| frames[case].range(HEAD));
            let alike = peers.alike(own.as_ref().unwrap_or(&episode), left_out);
            let normal = Normal { own, peers: Some(peers), alike };
            Some((case, judge_by(&patterns(), &episode, &normal, jitter)))
        })
        .collect()
}

fn score(cases: &[Case], without: &[Family], sessions: Sessions, head: bool, jitter: Jitter) -> Scores {
    let frames = seen(cases, without, sessions);
    let mut scores = Scores::default();
    let (mut hits, mut seconds, mut blamed) = (Vec::new(), Vec::new(), Vec::new());
    for (case, ranking) in judged(cases, &frames, head, jitter, |_| true) {
        let case = &cases[case];
        let answer = ranking.named().next().map_or(NOTHING, |suspect| suspect.pattern);
        scores.confusion.add(case.cause, answer);
        hits.push(answer == case.cause);
        if case.cause == NOTHING {
            blamed.push(answer != NOTHING);
        } else {
            seconds.push(ranking.suspects.iter().take(2).any(|suspect| suspect.pattern == case.cause));
        }
        if answer != case.cause {
            scores.missed.push(format!("{}: {}", case.name, report::top(&ranking, 4)));
        }
    }
    scores.macro_f1 = scores.confusion.macro_f1();
    scores.accuracy = share(hits);
    scores.top2 = share(seconds);
    scores.false_on_normal = share(blamed);
    scores
}

/// Answers of a judge that always gives the most frequent class, and of one that gives that of the nearest other run;
/// each without and with the run's own head.
fn baselines(cases: &[Case]) -> ([Scores; 2], [Scores; 2]) {
    let labels: Vec<Vec<&str>> = cases.iter().map(|case| vec![case.cause]).collect();
    let labels: Vec<&[&str]> = labels.iter().map(Vec::as_slice).collect();
    let features = |head: bool| -> Vec<Vec<f64>> {
        cases
            .iter()
            .map(|case| {
                let levels = neighbor::levels(&case.frame.range(case.episode.clone()));
                if !head {
                    return levels;
                }
                let before = neighbor::levels(&case.frame.range(HEAD));
                let changes = levels.iter().zip(&before).map(|(now, before)| now - before);
                levels.iter().copied().chain(changes.collect::<Vec<_>>()).collect()
            })
            .collect()
    };
    let answered = |answers: Vec<Vec<&str>>| {
        let mut scores = Scores::default();
        let mut blamed = Vec::new();
        for (case, answer) in cases.iter().zip(answers) {
            let answer = answer.first().copied().unwrap_or(NOTHING);
            scores.confusion.add(case.cause, answer);
            if case.cause == NOTHING {
                blamed.push(answer != NOTHING);
            }
        }
        scores.macro_f1 = scores.confusion.macro_f1();
        scores.false_on_normal = share(blamed);
        scores
    };
    let dummy = || answered((0..cases.len()).map(|case| neighbor::most_frequent(&labels, case)).collect());
    ([dummy(), dummy()], [false, true].map(|head| answered(neighbor::ranked(&features(head), &labels))))
}

fn show(cases: &[Case], name: &str, options: &Options) -> Result<()> {
    let frames = seen(cases, &options.without, Sessions::Recorded);
    for head in [false, true] {
        for (case, ranking) in judged(cases, &frames, head, Jitter::NONE, |case| case.name.starts_with(name)) {
            let how = if head { "with its own head" } else { "against normal runs" };
            println!("{}, {how}:", cases[case].name);
            print!("{}", report::accounts(&ranking, 3, &[cases[case].cause]));
        }
    }
    Ok(())
}

fn short(scores: &Scores) -> String {
    format!(
        "macro-F1 {:.3}, right {:.1} %, false culprits on normal runs {:.1} %",
        scores.macro_f1,
        100.0 * scores.accuracy,
        100.0 * scores.false_on_normal
    )
}

fn in_words(way: &[Scores; 2]) -> String {
    format!("against normal runs {}; with the run's own head {}", short(&way[0]), short(&way[1]))
}

fn figures(way: &[Scores; 2]) -> Value {
    json!({
        "macro_f1": way[0].macro_f1,
        "accuracy": way[0].accuracy,
        "top2": way[0].top2,
        "false_on_normal": way[0].false_on_normal,
        "macro_f1_own_head": way[1].macro_f1,
        "accuracy_own_head": way[1].accuracy,
        "top2_own_head": way[1].top2,
        "false_on_normal_own_head": way[1].false_on_normal,
    })
}
