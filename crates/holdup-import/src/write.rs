//! Writes a scenario as YAML, with keys in reading order, and with the notes as comments at the
//! top.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Source;
use crate::load::length;
use crate::note::{Kind, Note};
use crate::scenario::{Body, Capture, Content, Feeder, Load, Phase, Request, Scenario, Step, Var};
use crate::yaml::{self, Yaml};

/// Deepest JSON body that is written as YAML; deeper parts are texts.
const JSON_DEPTH: usize = 32;

/// The whole file.
pub fn write(scenario: &Scenario, notes: &[Note], file: &str, source: Source, disabled: usize) -> String {
    let mut out = String::new();
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    yaml::comment(&mut out, &format!("Imported from {name} ({}) by: holdup import scenario", source.words()), 0);
    scenario.about.iter().for_each(|line| yaml::comment(&mut out, line, 0));
    if disabled > 0 {
        let (count, were) = if disabled == 1 {
            ("1 disabled element".to_owned(), "was")
        } else {
            (format!("{disabled} disabled elements"), "were")
        };
        yaml::comment(&mut out, &format!("{count} {were} left out."), 0);
    }
    remarks(&mut out, notes);
    out.push('\n');
    out.push_str(&body(scenario));
    out
}

/// The file without the comments above its keys.
pub fn body(scenario: &Scenario) -> String {
    yaml::document(&top(scenario))
}

/// The notes; those that say the same of several places are merged.
fn remarks(out: &mut String, notes: &[Note]) {
    let headings = [
        (Kind::Secret, "To be set as environment variables:"),
        (Kind::LeftOut, "Not carried over:"),
        (Kind::Changed, "Carried over with differences:"),
    ];
    for (kind, heading) in headings {
        let mut groups: Vec<(&Note, Vec<usize>)> = Vec::new();
        let mut known: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
        for note in notes.iter().filter(|note| note.kind == kind) {
            let at = *known.entry((&note.element, &note.why, &note.advice)).or_insert(groups.len());
            if at == groups.len() {
                groups.push((note, Vec::new()));
            }
            groups[at].1.push(note.line);
        }
        if groups.is_empty() {
            continue;
        }
        out.push_str("#\n");
        yaml::comment(out, heading, 0);
        for (note, lines) in groups {
            let advice = if note.advice.is_empty() { String::new() } else { format!("; {}", note.advice) };
            let said = format!("- {}{}: {}{advice}", note.element, places(&lines), note.why);
            let mut rest = said.replace(['\n', '\r'], " ");
            let mut indent = "";
            while !rest.is_empty() {
                let cut = cut(&rest, 114 - indent.len());
                let tail = rest.split_off(cut);
                yaml::comment(out, &format!("{indent}{}", rest.trim()), 0);
                rest = tail.trim_start().to_owned();
                indent = "  ";
            }
        }
    }
}

/// Place to break a line of at most `width` characters: behind a word, if it has any.
fn cut(text: &str, width: usize) -> usize {
    let Some((end, _)) = text.char_indices().nth(width) else { return text.len() };
    match text[..end].rfind(' ') {
        Some(at) if at > 0 => at,
        _ => end,
    }
}

fn places(lines: &[usize]) -> String {
    let known: Vec<String> = lines.iter().filter(|line| **line > 0).map(usize::to_string).collect();
    match known.len() {
        0 => String::new(),
        1 => format!(" (line {})", known[0]),
        n if n > 20 => format!(" (lines {}, ... {n} places)", known[..20].join(", ")),
        _ => format!(" (lines {})", known.join(", ")),
    }
}

fn top(scenario: &Scenario) -> Vec<(String, Yaml)> {
    let mut top = vec![entry("name", Yaml::text(&scenario.name)), entry("target", Yaml::text(&scenario.target))];
    if !scenario.http.is_empty() {
        let keys = scenario.http.iter().map(|(k, v)| entry(k, Yaml::plain(v)));
        top.push(entry("http", Yaml::Map(keys.collect()).short()));
    }
    if !scenario.vars.is_empty() {
        top.push(entry("vars", vars(&scenario.vars)));
    }
    if !scenario.secrets.is_empty() {
        let names = scenario.secrets.iter().map(Yaml::text);
        top.push(entry("secrets", Yaml::List(names.collect()).short()));
    }
    if !scenario.feeders.is_empty() {
        top.push(entry("feeders", feeders(&scenario.feeders)));
    }
    if !scenario.headers.is_empty() {
        top.push(entry("headers", Yaml::texts(&scenario.headers)));
    }
    if !scenario.setup.is_empty() {
        top.push(entry("setup", steps(&scenario.setup)));
    }
    if !scenario.teardown.is_empty() {
        top.push(entry("teardown", steps(&scenario.teardown)));
    }
    remark(&mut top, load_comment(&scenario.load));
    top.push(entry("load", load(&scenario.load, matches!(scenario.body, Body::Sessions(_)))));
    top.push(match &scenario.body {
        Body::Operations(all) => {
            let all = all.iter().map(|r| {
                let mut keys = Vec::new();
                remark(&mut keys, &r.comment);
                request(r, &mut keys);
                Yaml::Map(keys)
            });
            entry("operations", Yaml::List(all.collect()))
        }
        Body::Sessions(all) => match &all[..] {
            [one] => entry("steps", steps(&one.steps)),
            _ => {
                let all = all.iter().map(|session| {
                    let mut keys = vec![entry("name", Yaml::text(&session.name))];
                    if session.weight != 1 {
                        keys.push(entry("weight", Yaml::plain(session.weight)));
                    }
                    keys.push(entry("steps", steps(&session.steps)));
                    Yaml::Map(keys)
                });
                entry("sessions", Yaml::List(all.collect()))
            }
        },
    });
    if !scenario.thresholds.is_empty() {
        top.push(entry("thresholds", Yaml::List(scenario.thresholds.iter().map(Yaml::text).collect())));
    }
    top
}

fn entry(key: &str, value: Yaml) -> (String, Yaml) {
    (key.to_owned(), value)
}

fn remark(entries: &mut Vec<(String, Yaml)>, text: &str) {
    if !text.is_empty() {
        entries.push((format!("#{text}"), Yaml::plain("")));
    }
}

fn load_comment(load: &Load) -> &str {
    match load {
        Load::Open { comment, .. } | Load::Closed { comment, .. } => comment,
    }
}

/// A rate, as short as possible without a relevant loss.
fn rate(per_second: f64) -> String {
    let text = format!("{per_second:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn load(load: &Load, has_sessions: bool) -> Yaml {
    let span = |d: Duration| Yaml::plain(length(d));
    let mut keys = Vec::new();
    match load {
        Load::Open { phases, of_sessions, is_poisson, connections, timeout, .. } => {
            match &phases[..] {
                [Phase::Rate(per_second, duration)] => {
                    keys.push(entry("rate", Yaml::plain(rate(*per_second))));
                    keys.push(entry("duration", span(*duration)));
                }
                _ => match as_steps(phases) {
                    Some((from, to, step, every)) => {
                        let steps =
                            [("from", rate(from)), ("to", rate(to)), ("step", rate(step)), ("every", length(every))];
                        let steps = steps.iter().map(|(k, v)| entry(k, Yaml::plain(v)));
                        keys.push(entry("steps", Yaml::Map(steps.collect()).short()));
                    }
                    None => keys.push(entry("phases", Yaml::List(phases.iter().map(|p| phase(*p)).collect()))),
                },
            }
            if has_sessions {
                keys.push(entry("of", Yaml::text(if *of_sessions { "sessions" } else { "requests" })));
            }
            if *is_poisson {
                keys.push(entry("arrivals", Yaml::text("poisson")));
            }
            keys.extend(connections.map(|n| entry("connections", Yaml::plain(n))));
            keys.extend(timeout.map(|d| entry("timeout", span(d))));
        }
        Load::Closed { users, stages, ramp_up, iterations, duration, timeout, .. } => {
            keys.push(entry("users", if stages.is_empty() { Yaml::plain(users) } else { staged(stages) }));
            keys.extend(ramp_up.map(|d| entry("ramp_up", span(d))));
            keys.extend(iterations.map(|n| entry("iterations", Yaml::plain(n))));
            keys.extend(duration.map(|d| entry("duration", span(d))));
            keys.extend(timeout.map(|d| entry("timeout", span(d))));
        }
    }
    Yaml::Map(keys)
}

fn staged(stages: &[(u32, u32, Duration)]) -> Yaml {
    let stage = |(from, to, d): &(u32, u32, Duration)| {
        let ramp = Yaml::Map(vec![entry("from", Yaml::plain(from)), entry("to", Yaml::plain(to))]).short();
        let what = if from == to { entry("users", Yaml::plain(from)) } else { entry("ramp", ramp) };
        Yaml::Map(vec![what, entry("for", Yaml::plain(length(*d)))]).short()
    };
    Yaml::List(stages.iter().map(stage).collect())
}

/// Equal stretches whose rates rise or fall by the same amount are steps.
fn as_steps(phases: &[Phase]) -> Option<(f64, f64, f64, Duration)> {
    let rates: Vec<(f64, Duration)> = phases
        .iter()
        .map(|phase| if let Phase::Rate(r, d) = phase { Some((*r, *d)) } else { None })
        .collect::<Option<_>>()?;
    let [(from, every), (second, _), ..] = rates[..] else { return None };
    let step = second - from;
    let last = rates.last()?.0;
    let is_even = rates.windows(2).all(|pair| ((pair[1].0 - pair[0].0) - step).abs() < 1e-6 && pair[1].1 == every);
    (is_even && step.abs() > 1e-6 && rates.len() > 2).then_some((from, last, step.abs(), every))
}

fn phase(phase: Phase) -> Yaml {
    let keys = match phase {
        Phase::Rate(r, d) => vec![entry("rate", Yaml::plain(rate(r))), entry("for", Yaml::plain(length(d)))],
        Phase::Ramp(from, to, d) => {
            let ramp = vec![entry("from", Yaml::plain(rate(from))), entry("to", Yaml::plain(rate(to)))];
            vec![entry("ramp", Yaml::Map(ramp).short()), entry("for", Yaml::plain(length(d)))]
        }
        Phase::Pause(d) => vec![entry("pause", Yaml::plain(length(d)))],
    };
    Yaml::Map(keys).short()
}

fn vars(vars: &[Var]) -> Yaml {
    let mut keys = Vec::new();
    for var in vars {
        remark(&mut keys, &var.comment);
        // A text all the same, but one that YAML reads as text without quotes.
        let is_number = !var.value.is_empty() && var.value.bytes().all(|b| b.is_ascii_digit());
        keys.push(entry(&var.name, if is_number { Yaml::plain(&var.value) } else { Yaml::text(&var.value) }));
    }
    Yaml::Map(keys)
}

fn feeders(feeders: &[Feeder]) -> Yaml {
    let mut all = Vec::new();
    for feeder in feeders {
        remark(&mut all, &feeder.comment);
        let mut keys = vec![entry("csv", Yaml::text(&feeder.csv))];
        keys.extend(feeder.at_end.map(|end| entry("at_end", Yaml::text(end))));
        all.push(entry(&feeder.name, Yaml::Map(keys).short()));
    }
    Yaml::Map(all)
}

fn steps(all: &[Step]) -> Yaml {
    Yaml::List(all.iter().map(step).collect())
}

fn step(step: &Step) -> Yaml {
    let with = |key: &str, value: Yaml, inner: &[Step]| vec![entry(key, value), entry("steps", steps(inner))];
    let branches = |all: &[Vec<Step>], weighted: bool| {
        let branch = |inner: &Vec<Step>| {
            let weight = weighted.then(|| entry("weight", Yaml::plain(1)));
            Yaml::Map(weight.into_iter().chain([entry("steps", steps(inner))]).collect())
        };
        Yaml::List(all.iter().map(branch).collect())
    };
    Yaml::Map(match step {
        Step::Request(r) => {
            let mut keys = Vec::new();
            remark(&mut keys, &r.comment);
            request(r, &mut keys);
            keys
        }
        Step::Think(text) => return Yaml::Map(vec![entry("think", Yaml::plain(text))]),
        Step::Repeat { count, counter, steps: inner } => {
            let count = if count.bytes().all(|b| b.is_ascii_digit()) { Yaml::plain(count) } else { Yaml::text(count) };
            let mut keys = vec![entry("repeat", count)];
            keys.extend(counter.iter().map(|name| entry("as", Yaml::text(name))));
            keys.push(entry("steps", steps(inner)));
            keys
        }
        Step::While { condition, steps: inner } => with("while", Yaml::text(condition), inner),
        Step::During { length, steps: inner } => with("during", Yaml::plain(length), inner),
        Step::ForEach { list, item, steps: inner } => {
            vec![entry("for_each", Yaml::text(list)), entry("as", Yaml::text(item)), entry("steps", steps(inner))]
        }
        Step::If { condition, steps: inner, otherwise } => {
            let mut keys = with("if", Yaml::text(condition), inner);
            if !otherwise.is_empty() {
                keys.push(entry("else", steps(otherwise)));
            }
            keys
        }
        Step::Choose(all) => vec![entry("choose", branches(all, true))],
        Step::InTurn(all) => vec![entry("in_turn", branches(all, false))],
        Step::Group { name, steps: inner } => with("group", Yaml::text(name), inner),
        Step::Set(values) => vec![entry("set", Yaml::texts(values).short())],
        Step::Feed(name) => vec![entry("feed", Yaml::text(name))],
        Step::End(what) => vec![entry("end", Yaml::text(*what))],
    })
}

fn request(r: &Request, keys: &mut Vec<(String, Yaml)>) {
    if !r.name.is_empty() {
        keys.push(entry("name", Yaml::text(&r.name)));
    }
    keys.push(entry(&r.method, Yaml::text(&r.path)));
    if !r.headers.is_empty() {
        keys.push(entry("headers", Yaml::texts(&r.headers).short()));
    }
    match &r.content {
        Content::None => {}
        Content::Text(text) => keys.push(entry("body", Yaml::text(text))),
        Content::Json(value) => keys.push(entry("json", Yaml::json(value, JSON_DEPTH))),
        Content::Form(fields) => keys.push(entry("form", Yaml::texts(fields).short())),
        Content::File(path) => keys.push(entry("body_file", Yaml::text(path))),
    }
    if !r.captures.is_empty() {
        let captures = r.captures.iter().map(|(name, capture)| entry(name, captured(capture)));
        keys.push(entry("capture", Yaml::Map(captures.collect()).short()));
    }
    if !r.checks.is_empty() {
        keys.push(entry("check", Yaml::List(r.checks.iter().map(Yaml::text).collect()).short()));
    }
    keys.extend(r.on_failure.map(|what| entry("on_failure", Yaml::text(what))));
}

fn captured(capture: &Capture) -> Yaml {
    if capture.pick.is_none() && capture.default.is_none() {
        return Yaml::text(format!("{} {}", capture.from, capture.what).trim_end());
    }
    let mut keys = vec![entry(capture.from, Yaml::text(&capture.what))];
    keys.extend(capture.pick.map(|pick| entry("pick", Yaml::text(pick))));
    keys.extend(capture.default.iter().map(|text| entry("default", Yaml::text(text))));
    Yaml::Map(keys).short()
}
