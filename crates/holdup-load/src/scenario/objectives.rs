//! The `thresholds` of a scenario: objectives as texts, or with what missing one does to the run.

use holdup_recording::manifest::Threshold;
use holdup_recording::objective;

use crate::yaml::{Node, YamlError};

/// Reads a list of objectives (or a single one) of a scenario with these `operations`: each a text,
/// e.g. `p99 < 500ms for 30s`, or `{objective: TEXT, abort: true, after: 20s}`.
///
/// # Errors
/// The first mistake, with its line and what would be right.
pub(super) fn parse(node: Option<&Node>, operations: &[String]) -> Result<Vec<Threshold>, YamlError> {
    node.map_or(&[][..], Node::list).iter().map(|node| one(node, operations)).collect()
}

fn one(node: &Node, operations: &[String]) -> Result<Threshold, YamlError> {
    let read = |node: &Node| objective::parse(node.text()?, operations).map_err(|why| node.error(why));
    if node.text().is_ok() {
        return read(node);
    }
    let map = node.map(&["objective", "abort", "after"])?;
    let abort = match map.get("abort").map(|n| (n, n.text())) {
        None => false,
        Some((_, Ok("true"))) => true,
        Some((_, Ok("false"))) => false,
        Some((node, _)) => return Err(node.error("expected true or false")),
    };
    let after = map.get("after");
    if let Some(after) = after.filter(|_| !abort) {
        return Err(after.error("needs abort: true, because it says from when a missed objective ends the run"));
    }
    let abort_after_ns = after.map_or(Ok(0), |n| n.duration().map(|d| d.as_nanos() as i64))?;
    Ok(Threshold { abort, abort_after_ns, ..read(map.need("objective")?)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Threshold>, YamlError> {
        let root = Node::parse(text, "s.yaml").unwrap();
        let operations = ["search".to_owned(), "checkout/pay".to_owned()];
        parse(root.map(&["thresholds"]).unwrap().get("thresholds"), &operations)
    }

    #[test]
    fn texts_and_what_they_do_to_the_run() {
        let read = read(
            "thresholds:\n- search p99.9 < 1s\n- {objective: errors < 5% for 10s, abort: true, after: 20s}\n- {objective: checkout/ rate > 5}\n",
        )
        .unwrap();
        assert_eq!(read.iter().map(|t| t.abort).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!((read[1].window_ns, read[1].abort_after_ns), (Some(10_000_000_000), 20_000_000_000));
        assert!(read[2].is_group);
        assert_eq!(super::parse(None, &[]).unwrap(), []);
    }

    #[test]
    fn errors_name_the_line_and_the_way_out() {
        for (text, expected) in [
            (
                "thresholds:\n- p99 < 1s\n- {objectiv: p99 < 1s}\n",
                "s.yaml:3: unknown key \"objectiv\" in thresholds[1]; did you mean \"objective\"?",
            ),
            ("thresholds: [{abort: true}]\n", "s.yaml:1: thresholds[0]: \"objective\" is missing"),
            (
                "thresholds: [{objective: p99 < 1s, abort: maybe}]\n",
                "s.yaml:1: thresholds[0].abort: expected true or false",
            ),
            (
                "thresholds: [{objective: p99 < 1s, after: 5s}]\n",
                "s.yaml:1: thresholds[0].after: needs abort: true, because it says from when a missed objective ends the run",
            ),
            (
                "thresholds: [{objective: buy p99 < 1s}]\n",
                "s.yaml:1: thresholds[0].objective: no operation is called \"buy\"; known: search, checkout/pay",
            ),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), expected);
        }
    }
}
