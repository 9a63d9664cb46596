//! `pipeline`: the stages behind a service, in order, each with what counts its work.

use std::collections::BTreeSet;

use holdup_recording::Labels;
use holdup_recording::pipeline::{Intake, Output, Stage};

use crate::yaml::{Map, Node, YamlError};

/// The keys that name what counts the work that comes in.
const INTAKES: [&str; 3] = ["topic", "slot", "waiting"];

/// The keys that name what counts the work done.
const OUTPUTS: [&str; 4] = ["topic", "table", "index", "counter"];

/// Reads a file whose only key is `pipeline`.
///
/// # Errors
/// The first mistake, with its line and what would be right.
pub fn read(text: &str, file: &str) -> Result<Vec<Stage>, YamlError> {
    parse(Node::parse(text, file)?.map(&["pipeline"])?.need("pipeline")?)
}

/// Reads the list of stages.
///
/// # Errors
/// The first mistake, with its line and what would be right.
pub(super) fn parse(node: &Node) -> Result<Vec<Stage>, YamlError> {
    let stages = node.list().iter().map(stage).collect::<Result<Vec<_>, _>>()?;
    if stages.is_empty() {
        return Err(
            node.error("there must be at least one stage, e.g. {name: index, in: {topic: orders, group: indexer}}")
        );
    }
    let mut names = BTreeSet::new();
    for (entry, stage) in node.list().iter().zip(&stages) {
        if !names.insert(&stage.name) {
            return Err(entry.error(format!("two stages are called \"{}\"", stage.name)));
        }
    }
    Ok(stages)
}

fn stage(node: &Node) -> Result<Stage, YamlError> {
    let map = node.map(&["name", "in", "out"])?;
    let name = map.need("name")?.text()?.to_owned();
    let input = intake(map.need("in")?)?;
    let out = map.get("out").map(output).transpose()?;
    if matches!(input, Intake::Waiting { .. }) && out.is_none() {
        let why = "\"out\" is missing: the length of a queue does not tell how much is taken from it; \
                   name what counts that, e.g. out: {counter: jobs_done_total}";
        return Err(node.error(why));
    }
    Ok(Stage { name, input, out })
}

fn intake(node: &Node) -> Result<Intake, YamlError> {
    if let Some(key) = OUTPUTS.iter().find(|key| !INTAKES.contains(key) && node.has(key)) {
        let why =
            "counts the work done: write it under out; what comes in is a topic with its group, a slot, or waiting";
        return Err(node.error(format!("\"{key}\" {why}")));
    }
    let map = node.map(&["topic", "group", "slot", "waiting", "labels"])?;
    Ok(match only(&map, &INTAKES)? {
        "topic" => {
            Intake::Topic { topic: text(&map, "topic", &["group"])?, group: map.need("group")?.text()?.to_owned() }
        }
        "slot" => Intake::Slot { slot: text(&map, "slot", &[])? },
        _ => Intake::Waiting { metric: text(&map, "waiting", &["labels"])?, labels: labels(&map)? },
    })
}

fn output(node: &Node) -> Result<Output, YamlError> {
    let map = node.map(&["topic", "table", "index", "counter", "labels"])?;
    Ok(match only(&map, &OUTPUTS)? {
        "topic" => Output::Topic { topic: text(&map, "topic", &[])? },
        "table" => match text(&map, "table", &[])? {
            table if table.contains('.') => Output::Table { table },
            table => return Err(node.error(format!("table \"{table}\" has no schema; use e.g. public.{table}"))),
        },
        "index" => match text(&map, "index", &[])?.as_str() {
            "*" => Output::Index,
            name => {
                let why = "holdup reads the documents indexed of all indices together; use \"*\"";
                return Err(node.error(format!("index \"{name}\": {why}")));
            }
        },
        _ => Output::Counter { metric: text(&map, "counter", &["labels"])?, labels: labels(&map)? },
    })
}

/// The one of `kinds` that is given.
fn only<'k>(map: &Map<'_>, kinds: &[&'k str]) -> Result<&'k str, YamlError> {
    match kinds.iter().filter(|kind| map.get(kind).is_some()).collect::<Vec<_>>()[..] {
        [kind] => Ok(*kind),
        [] => Err(map.node().error(format!("say what counts it: {}", kinds.join(", ")))),
        [one, other, ..] => Err(map.node().error(format!("\"{one}\" and \"{other}\" exclude each other; keep one"))),
    }
}

/// The value of `key`, which `with` may accompany and no other key.
fn text(map: &Map<'_>, key: &str, with: &[&str]) -> Result<String, YamlError> {
    for other in ["group", "labels"].into_iter().filter(|other| !with.contains(other)) {
        if let Some(node) = map.get(other) {
            return Err(node.error(format!("does not go with \"{key}\"; remove it")));
        }
    }
    match map.need(key)?.text()? {
        "" => Err(map.need(key)?.error("must not be empty")),
        text => Ok(text.to_owned()),
    }
}

fn labels(map: &Map<'_>) -> Result<Labels, YamlError> {
    let Some(node) = map.get("labels") else { return Ok(Labels::none()) };
    let pairs = node.entries()?.iter().map(|(name, value)| Ok((name.clone(), value.text()?.to_owned())));
    Ok(Labels::new(pairs.collect::<Result<Vec<_>, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stages: &str) -> Result<Vec<Stage>, String> {
        read(&format!("pipeline:\n{stages}"), "p.yaml").map_err(|error| error.to_string())
    }

    #[test]
    fn stages_are_read_in_order_with_what_counts_their_work() {
        let stages = of("- {name: apply, in: {topic: changes, group: apply}, out: {table: public.article}}\n\
             - {name: send, in: {slot: cdc}}\n\
             - {name: index, in: {waiting: jobs, labels: {queue: index}}, out: {index: '*'}}\n")
        .unwrap();
        assert_eq!(stages.iter().map(|stage| stage.name.as_str()).collect::<Vec<_>>(), ["apply", "send", "index"]);
        assert_eq!(stages[0].input, Intake::Topic { topic: "changes".into(), group: "apply".into() });
        assert_eq!(stages[0].out, Some(Output::Table { table: "public.article".into() }));
        assert_eq!(
            stages[2].input,
            Intake::Waiting { metric: "jobs".into(), labels: Labels::new([("queue", "index")]) }
        );
        assert_eq!(stages[2].out, Some(Output::Index));
        let other = of(
            "- {name: a, in: {slot: s}, out: {topic: t}}\n- {name: b, in: {topic: t, group: g}, out: {counter: c}}\n",
        );
        assert_eq!(other.unwrap()[1].out, Some(Output::Counter { metric: "c".into(), labels: Labels::none() }));
    }

    #[test]
    fn the_example_is_read() {
        let text = include_str!("../../../../examples/data/pipeline.yaml");
        assert_eq!(read(text, "pipeline.yaml").map(|stages| stages.len()), Ok(2));
    }

    #[test]
    fn mistakes_name_line_value_and_way_out() {
        for (stages, said) in [
            ("", "p.yaml:1: \"pipeline\" is missing"),
            ("- {in: {slot: s}}\n", "p.yaml:2: pipeline[0]: \"name\" is missing"),
            (
                "- {name: a, in: {slot: s}}\n- {name: a, in: {slot: t}}\n",
                "p.yaml:3: pipeline[1]: two stages are called \"a\"",
            ),
            ("- {name: a, in: {topic: t}}\n", "p.yaml:2: pipeline[0].in: \"group\" is missing"),
            (
                "- {name: a, in: {topik: t}}\n",
                "p.yaml:2: unknown key \"topik\" in pipeline[0].in; did you mean \"topic\"?",
            ),
            ("- {name: a, in: {group: g}}\n", "p.yaml:2: pipeline[0].in: say what counts it: topic, slot, waiting"),
            (
                "- {name: a, in: {topic: t, slot: s}}\n",
                "p.yaml:2: pipeline[0].in: \"topic\" and \"slot\" exclude each other; keep one",
            ),
            (
                "- {name: a, in: {table: x.y}}\n",
                "p.yaml:2: pipeline[0].in: \"table\" counts the work done: write it under out; what comes in is a topic with its group, a slot, or waiting",
            ),
            (
                "- {name: a, in: {waiting: jobs}}\n",
                "p.yaml:2: pipeline[0]: \"out\" is missing: the length of a queue does not tell how much is taken from it; name what counts that, e.g. out: {counter: jobs_done_total}",
            ),
            (
                "- {name: a, in: {slot: s}, out: {table: article}}\n",
                "p.yaml:2: pipeline[0].out: table \"article\" has no schema; use e.g. public.article",
            ),
            (
                "- {name: a, in: {slot: s}, out: {index: orders}}\n",
                "p.yaml:2: pipeline[0].out: index \"orders\": holdup reads the documents indexed of all indices together; use \"*\"",
            ),
            (
                "- {name: a, in: {slot: s, group: g}}\n",
                "p.yaml:2: pipeline[0].in.group: does not go with \"slot\"; remove it",
            ),
        ] {
            assert_eq!(of(stages).unwrap_err(), said);
        }
    }
}
