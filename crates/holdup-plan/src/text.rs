//! Parses auto_explain's text plan into the statement and the tree. Quoted parts of conditions and
//! statements may contain line feeds and text that looks like a plan: a line counts only outside
//! quotes.

use holdup_recording::plan::Node;
use holdup_sql::{Dialect, Lexer};

use super::postgresql::{CONDITIONS, DEPTH_MAX, FILTERS};
use super::without_values;

/// Largest number of nodes read.
const NODES_MAX: usize = 2_000;

/// The statement and the plan's lines, from the text after `plan:`.
pub fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start().strip_prefix("Query Text: ")?;
    let begin = text.as_ptr() as usize;
    let mut tokens = Lexer::new(text.as_bytes(), Dialect::PostgreSql);
    // Bounds of the last examined token.
    let mut token = (0, 0);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        while token.1 <= at {
            let Some(next) = tokens.next() else { break };
            let from = next.text.as_ptr() as usize - begin;
            token = (from, from + next.text.len());
        }
        let is_within = token.0 < at && at < token.1;
        if at > 0 && !is_within && (line.starts_with("Query Parameters: ") || is_node(line)) {
            let plan = text.get(at..)?;
            return Some((text.get(..at)?, plan));
        }
        at += line.len();
    }
    None
}

/// Whether a line is the plan's first node.
fn is_node(line: &str) -> bool {
    !line.starts_with(' ') && line.contains("  (cost=") && line.contains(" width=")
}

/// The tree of the plan's lines.
pub fn tree(text: &str) -> Option<Node> {
    // Open nodes, each with its column.
    let mut open: Vec<(usize, Node)> = Vec::new();
    let mut triggers = Vec::new();
    let mut count = 0;
    for line in lines(text) {
        let column = line.len() - line.trim_start_matches(' ').len();
        let content = line.trim_start_matches(' ');
        let (is_child, content) = match content.strip_prefix("->  ") {
            Some(content) => (true, content),
            None => (false, content),
        };
        if (is_child || open.is_empty())
            && let Some(node) = node(content)
        {
            count += 1;
            if count > NODES_MAX {
                break;
            }
            close(&mut open, column);
            if open.len() < DEPTH_MAX {
                open.push((column, node));
            }
        } else if let Some(trigger) = content.strip_prefix("Trigger ") {
            triggers.extend(self::trigger(trigger));
        } else if ["InitPlan ", "SubPlan ", "CTE "].iter().any(|word| content.starts_with(word)) {
            close(&mut open, column);
        } else if let (Some((_, node)), Some((name, value))) = (open.last_mut(), content.split_once(": ")) {
            // A line at the left margin belongs to the whole plan.
            if column > 0 {
                property(node, name, value);
            }
        }
    }
    close(&mut open, 0);
    let mut root = open.pop().map(|(_, node)| node)?;
    root.children.extend(triggers);
    Some(root)
}

/// `for constraint items_cart_fk: time=96130.488 calls=7418`: what ran for each changed row, foreign keys above all.
fn trigger(text: &str) -> Option<Node> {
    let (name, figures) = text.split_once(": time=")?;
    let (total_ms, calls) = figures.split_once(" calls=")?;
    let (total_ms, calls): (f64, f64) = (total_ms.parse().ok()?, calls.trim().parse().ok()?);
    let constraint = name.strip_prefix("for constraint ");
    let name = constraint.unwrap_or(name).split_whitespace().next()?;
    Some(super::trigger(name, constraint.is_some(), total_ms, calls))
}

/// Closes the nodes at or right of `column`, except the topmost: they become children of the node
/// to their left.
fn close(open: &mut Vec<(usize, Node)>, column: usize) {
    while open.len() > 1 && open.last().is_some_and(|(at, _)| *at >= column) {
        if let (Some((_, node)), Some((_, above))) = (open.pop(), open.last_mut()) {
            above.children.push(node);
        }
    }
}

/// The lines, joined where a quote spans several.
fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut quote = None;
    for line in text.lines() {
        match lines.last_mut().filter(|_| quote.is_some()) {
            Some(last) => {
                last.push('\n');
                last.push_str(line);
            }
            None => lines.push(line.to_owned()),
        }
        for char in line.chars() {
            match quote {
                None if matches!(char, '\'' | '"') => quote = Some(char),
                // A doubled quote ends and reopens it.
                Some(open) if open == char => quote = None,
                _ => {}
            }
        }
    }
    lines
}

fn property(node: &mut Node, name: &str, value: &str) {
    let text = || Some(without_values(value, Dialect::PostgreSql));
    if CONDITIONS.contains(&name) && node.condition.is_none() {
        node.condition = text();
    } else if FILTERS.contains(&name) && node.filter.is_none() {
        node.filter = text();
    } else if matches!(name, "Rows Removed by Filter" | "Rows Removed by Join Filter") {
        node.rows_removed = node.rows_removed.or(value.trim().parse().ok());
    } else if node.spilled_bytes.is_none() {
        // `Sort Method: external merge  Disk: 2048kB`, `Batches: 5  Memory Usage: 4145kB  Disk Usage: 2048kB`
        let disk = value.split_once("Disk: ").or_else(|| value.split_once("Disk Usage: "));
        let kb = disk.and_then(|(_, rest)| rest.split("kB").next()?.trim().parse::<f64>().ok());
        node.spilled_bytes = kb.filter(|kb| *kb > 0.0).map(|kb| kb * 1024.0);
    }
}

/// Parses a node's line: `Index Scan using t_pkey on public.t x  (cost=0.15..8.17 rows=1 width=4)
/// (actual time=… rows=1 loops=1)`.
fn node(line: &str) -> Option<Node> {
    let (head, figures) = line.split_once("  (cost=")?;
    // The end may be cut.
    let (planned, actual) = figures.split_once(')').unwrap_or((figures, ""));
    let words = words(head);
    let place = |name: &str| words.iter().position(|word| word == name);
    let (using, on) = (place("using"), place("on"));
    let end = using.or(on).unwrap_or(words.len());
    let kind = words.get(..end)?.join(" ");
    let is_plain = kind.chars().all(|char| char.is_ascii_alphabetic() || matches!(char, ' ' | '(' | ')' | '-' | '_'));
    if kind.is_empty() || kind.len() > 80 || !is_plain {
        return None;
    }
    let (kind, join) = join(kind);
    let index = using.and_then(|at| words.get(at + 1)).map(|word| name(word).1);
    let (schema, mut relation) = on.and_then(|at| words.get(at + 1)).map_or((None, None), |word| {
        let (schema, table) = name(word);
        (schema, Some(table))
    });
    let index = if kind.ends_with("Bitmap Index Scan") { relation.take() } else { index };
    let number = |text: &str, name: &str| -> Option<f64> {
        let behind = text.split_once(name)?.1;
        let digits = behind.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(behind.len());
        behind.get(..digits)?.parse().ok()
    };
    let loops = if actual.contains("(never executed)") { Some(0.0) } else { number(actual, "loops=") };
    Some(Node {
        kind,
        join,
        relation,
        schema,
        index,
        cost: planned.split_once("..").and_then(|(_, behind)| behind.split(' ').next()?.parse().ok()),
        rows_estimated: number(planned, " rows="),
        rows_actual: number(actual, " rows=").or_else(|| number(actual, "(actual rows=")),
        loops,
        time_ms: actual
            .split_once("actual time=")
            .and_then(|(_, behind)| behind.split_once("..")?.1.split(' ').next()?.parse().ok()),
        ..Node::default()
    })
}

/// Splits `Hash Left Join` into `Hash Join` and the kind of join.
fn join(kind: String) -> (String, Option<String>) {
    for way in ["Hash", "Merge", "Nested Loop"] {
        let (before, rest) = match kind.split_once(way) {
            Some((before, rest)) if before.is_empty() || before == "Parallel " => (before, rest),
            _ => continue,
        };
        if let Some(join) = rest.strip_suffix(" Join").map(str::trim).filter(|join| !join.is_empty()) {
            let end = if way == "Nested Loop" { "" } else { " Join" };
            return (format!("{before}{way}{end}"), Some(join.to_owned()));
        }
    }
    (kind, None)
}

/// Words between blanks; a quoted name is one word.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for char in text.chars() {
        quoted ^= char == '"';
        if char == ' ' && !quoted {
            words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
        } else {
            word.push(char);
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

/// Schema and name, without quotes.
fn name(word: &str) -> (Option<String>, String) {
    let mut quoted = false;
    let dot = word.char_indices().find(|(_, char)| {
        quoted ^= *char == '"';
        *char == '.' && !quoted
    });
    let bare = |part: &str| {
        let inner = part.strip_prefix('"').and_then(|part| part.strip_suffix('"'));
        inner.map_or_else(|| part.to_owned(), |inner| inner.replace("\"\"", "\""))
    };
    match dot.and_then(|(at, _)| Some((word.get(..at)?, word.get(at + 1..)?))) {
        Some((schema, table)) => (Some(bare(schema)), bare(table)),
        None => (None, bare(word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "Query Text: SELECT 'x  (cost=1..2 rows=1 width=1)\nSeq Scan on canary  (cost=0.00..1.00 rows=1 width=1)' -- (cost=
FROM t;
Query Parameters: $1 = 'canary
Seq Scan on canary  (cost=0.00..1.00 rows=1 width=1)'
Limit  (cost=0.15..8.17 rows=1 width=4) (actual time=0.010..0.020 rows=1 loops=1)
  Output: 'canary'
  InitPlan 1 (returns $0)
    ->  Index Only Scan Backward using \"My Idx\" on public.\"my table\" x  (cost=0.15..8.17 rows=9 width=4) (never executed)
          Index Cond: (id > 4711)
  ->  Nested Loop Left Join  (cost=0.15..8.17 rows=1 width=4) (actual time=0.010..0.011 rows=1 loops=1)
        Join Filter: (a.b = c.d)
        ->  Parallel Seq Scan on t  (cost=0.00..1693.00 rows=1 width=4) (actual time=5.010..9.011 rows=1 loops=3)
              Filter: ((note)::text = 'it''s a
  ->  Seq Scan on canary  (cost=0.00..1.00 rows=1 width=1)'::text)
              Rows Removed by Filter: 33333
        ->  Bitmap Heap Scan on u  (cost=4.18..12.64 rows=4 width=4) (actual rows=2 loops=1)
              Recheck Cond: (a = 5)
              ->  Bitmap Index Scan on u_a  (cost=0.00..4.18 rows=4 width=0)
                    Index Cond: (a = 5)
        SubPlan 2
          ->  Aggregate  (cost=1.00..2.00 rows=1 width=8)
Settings: work_mem = '4711kB'";

    #[test]
    fn quoted_text_does_not_make_a_node() {
        let (sql, plan) = split(PLAN).unwrap();
        assert!(sql.ends_with("FROM t;\n") && sql.contains("canary"));
        let tree = tree(plan).unwrap();
        let structure = "Limit(Index Only Scan Backward my table by My Idx, Nested Loop Left(Parallel Seq Scan t, \
             Bitmap Heap Scan u(Bitmap Index Scan by u_a), Aggregate))";
        assert_eq!(tree.structure(), structure);
        assert_eq!((tree.rows_actual, tree.time_ms, tree.cost), (Some(1.0), Some(0.02), Some(8.17)));
        let never = &tree.children[0];
        assert_eq!((never.rows_actual, never.loops, never.schema.as_deref()), (None, Some(0.0), Some("public")));
        let scan = &tree.children[1].children[0];
        assert_eq!(scan.filter.as_deref(), Some("((note)::text = ?)"));
        assert_eq!((scan.rows_removed, scan.rows_estimated, scan.loops), (Some(33_333.0), Some(1.0), Some(3.0)));
        assert_eq!(tree.children[1].children[1].rows_actual, Some(2.0));
        let json = tree.to_json();
        assert!(!json.contains("canary") && !json.contains("4711"), "{json}");
    }

    #[test]
    fn names_of_joins() {
        for (text, kind, of) in [
            ("Hash Join", "Hash Join", None),
            ("Parallel Hash Left Join", "Parallel Hash Join", Some("Left")),
            ("Merge Full Join", "Merge Join", Some("Full")),
            ("Nested Loop", "Nested Loop", None),
            ("Nested Loop Semi Join", "Nested Loop", Some("Semi")),
            ("HashAggregate", "HashAggregate", None),
            ("Merge Append", "Merge Append", None),
        ] {
            assert_eq!(join(text.to_owned()), (kind.to_owned(), of.map(str::to_owned)), "{text}");
        }
        assert_eq!(split("Query Text: SELECT 'open\nSeq Scan on t  (cost=0.00..1.00 rows=1 width=1)"), None);
        assert_eq!(tree("nothing"), None);
    }
}
