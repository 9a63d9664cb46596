//! Plans of statements as `auto_explain` logs them, distinguished by their steps, with the slowest
//! of each. Leaves out conditions, because they hold values.

use std::collections::BTreeMap;

use holdup_sql::{Dialect, Lexer, TokenKind, key};

use crate::digest::course::Course;
use crate::digest::event::Position;
use crate::digest::measure::Measure;

/// Deeper nodes are left out, which no server makes. JSON nested deeper than 128 levels is not read
/// as a plan.
const DEPTH_MAX: usize = 64;

/// Most plans of one statement.
const MOST_PLANS: usize = 512;
/// Most bytes kept of a plan.
const MOST_TEXT: usize = 8 << 10;
/// Most steps kept of a plan.
const MOST_STEPS: usize = 200;

/// Executions by one plan.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Their times.
    pub times: Measure,
    /// Steps of the slowest execution, with estimates and counts.
    pub slowest: String,
    /// Its place.
    pub position: Position,
}

/// The plans of one statement, by their steps.
#[derive(Clone, Debug, Default)]
pub struct Plans {
    all: BTreeMap<String, Plan>,
    /// First and last logged execution.
    pub seen_us: Option<(i64, i64)>,
    /// The course of these executions over time, if that is kept.
    pub course: Option<Course>,
}

impl Plans {
    /// Whether none was logged.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Times of all.
    pub fn times(&self) -> Measure {
        let mut all = Measure::default();
        self.all.values().for_each(|plan| all.merge(&plan.times));
        all
    }

    /// Adds one plan.
    pub fn add(&mut self, plan: &LoggedPlan, time_us: u64, at_us: Option<i64>, position: Position) {
        let mut times = Measure::default();
        times.add(time_us);
        if let Some(at) = at_us {
            self.seen_us = Some(self.seen_us.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
            if let Some(course) = &mut self.course {
                course.add_time(at.saturating_add(i64::try_from(time_us).unwrap_or(0)), time_us);
            }
        }
        self.take(plan.shape.clone(), Plan { times, slowest: plan.steps.clone(), position });
    }

    fn take(&mut self, mut shape: String, other: Plan) {
        if self.all.len() >= MOST_PLANS && !self.all.contains_key(&shape) {
            shape = "(others)".to_owned();
        }
        let plan = self.all.entry(shape).or_default();
        let (mine, theirs) = (plan.times.max, other.times.max);
        if plan.times.count == 0 || theirs > mine || theirs == mine && other.position < plan.position {
            (plan.slowest, plan.position) = (other.slowest, other.position);
        }
        plan.times.merge(&other.times);
    }

    /// Adds another thread's plans.
    pub fn merge(&mut self, other: Self) {
        self.seen_us = match (self.seen_us, other.seen_us) {
            (Some(one), Some(two)) => Some((one.0.min(two.0), one.1.max(two.1))),
            (one, two) => one.or(two),
        };
        if let (Some(mine), Some(theirs)) = (&mut self.course, &other.course) {
            mine.merge(theirs, &Some);
        }
        for (shape, plan) in other.all {
            self.take(shape, plan);
        }
    }

    /// All plans, the most frequent first.
    pub fn reported(&self) -> impl Iterator<Item = (&str, &Plan)> {
        let mut all: Vec<(&str, &Plan)> = self.all.iter().map(|(shape, plan)| (shape.as_str(), plan)).collect();
        all.sort_by_key(|(_, plan)| std::cmp::Reverse(plan.times.count));
        all.into_iter()
    }
}

/// A plan as logged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedPlan {
    /// Its steps without numbers, which identify it.
    pub shape: String,
    /// Its steps with the server's estimates and counts.
    pub steps: String,
}

/// The statement and the plan in the text behind `plan:`; `None` if its format is not supported
/// (XML, YAML).
pub fn read(text: &[u8]) -> Option<(Vec<u8>, LoggedPlan)> {
    let text = text.trim_ascii();
    if text.first() == Some(&b'{') {
        return parse_json(text);
    }
    let rest = text.strip_prefix(b"Query Text:")?.trim_ascii_start();
    let begin = first_step(rest)?;
    let (sql, steps) = rest.split_at_checked(begin)?;
    Some((sql.trim_ascii().to_vec(), parse_text(steps)))
}

/// Start of the first line that looks like a step and is not within a literal of the statement.
fn first_step(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr(b'\n', text.get(from..)?)? + 1;
        let line = text.get(at..)?.split(|byte| *byte == b'\n').next()?;
        if is_first_step(line) && !key(text.get(..at)?, Dialect::PostgreSql).is_some_and(|key| key.open) {
            return Some(at);
        }
        from = at;
    }
}

/// Whether a line is a step with its cost, and cannot be SQL.
fn is_first_step(line: &[u8]) -> bool {
    let found = memchr::memmem::find(line, b"  (cost=").and_then(|at| line.split_at_checked(at));
    found.is_some_and(|(name, numbers)| {
        let cost = numbers.get(b"  (cost=".len()..).unwrap_or_default();
        let digits = cost.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
        !name.contains(&b'\'') && digits > 6 && numbers.trim_ascii_end().ends_with(b")")
    })
}

/// A step's name and its numbers: `->  Seq Scan on t  (cost=0.00..1.00 rows=1 width=4)`.
fn step(line: &str) -> Option<(&str, &str)> {
    let at = line.find("  (cost=").or_else(|| line.find("  (actual ")).or_else(|| line.find("  (never executed)"))?;
    Some((line.get(..at)?, line.get(at..)?))
}

fn parse_text(text: &[u8]) -> LoggedPlan {
    // Lines that begin within a literal of a condition are not steps, even if they look like one.
    let mut hidden: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    for token in Lexer::new(text, Dialect::PostgreSql) {
        let from = at + memchr::memmem::find(text.get(at..).unwrap_or_default(), token.text).unwrap_or(0);
        at = from + token.text.len();
        if token.kind == TokenKind::Literal && token.text.contains(&b'\n') {
            hidden.push((from, at));
        }
    }
    let (mut logged, mut at, mut count) = (LoggedPlan::default(), 0, 0);
    for line in text.split(|byte| *byte == b'\n') {
        let begin = at;
        at += line.len() + 1;
        let is_text = hidden.iter().any(|(from, to)| begin > *from && begin < *to);
        let line = String::from_utf8_lossy(line.strip_prefix(b"\t").unwrap_or(line));
        let Some((name, numbers)) = step(line.trim_end()).filter(|_| !is_text && count < MOST_STEPS) else { continue };
        count += 1;
        push(&mut logged, name, numbers);
    }
    logged
}

fn push(logged: &mut LoggedPlan, name: &str, numbers: &str) {
    // A `'` in a step can only belong to a value.
    if name.contains('\'') || logged.steps.len() + name.len() + numbers.len() > MOST_TEXT {
        return;
    }
    for (text, line) in [(&mut logged.shape, name.to_owned()), (&mut logged.steps, format!("{name}{numbers}"))] {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&line);
    }
}

fn parse_json(text: &[u8]) -> Option<(Vec<u8>, LoggedPlan)> {
    let all: serde_json::Value = serde_json::from_slice(text).ok()?;
    let sql = all.get("Query Text")?.as_str()?.as_bytes().to_vec();
    let mut logged = LoggedPlan::default();
    node(all.get("Plan")?, 0, &mut logged);
    Some((sql, logged))
}

/// A node of a plan and its children, as in the text format.
fn node(plan: &serde_json::Value, depth: usize, logged: &mut LoggedPlan) {
    let text = |name: &str| plan.get(name).and_then(serde_json::Value::as_str);
    let Some(kind) = text("Node Type").filter(|_| depth < DEPTH_MAX) else { return };
    let mut name = if depth == 0 { String::new() } else { format!("{}->  ", " ".repeat(6 * depth - 4)) };
    name.push_str(kind);
    if let Some(index) = text("Index Name") {
        name.push_str(&format!(" using {index}"));
    }
    if let Some(table) = text("Relation Name").or_else(|| text("CTE Name")).or_else(|| text("Function Name")) {
        name.push_str(&format!(" on {table}"));
    }
    let number = |name: &str| plan.get(name).and_then(serde_json::Value::as_f64);
    let mut numbers = String::new();
    if let (Some(from), Some(to), Some(rows)) = (number("Startup Cost"), number("Total Cost"), number("Plan Rows")) {
        numbers = format!("  (cost={from:.2}..{to:.2} rows={rows})");
    }
    if let (Some(time), Some(rows), Some(loops)) =
        (number("Actual Total Time"), number("Actual Rows"), number("Actual Loops"))
    {
        numbers.push_str(&format!(" (actual time={time:.3} rows={rows} loops={loops})"));
    }
    push(logged, &name, &numbers);
    for below in plan.get("Plans").and_then(serde_json::Value::as_array).into_iter().flatten() {
        node(below, depth + 1, logged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_json_is_left_out() {
        let plan = |depth: usize| {
            let (open, close) = (r#"{"Node Type":"Limit","Plans":["#.repeat(depth), "]}".repeat(depth));
            format!(r#"{{"Query Text":"select 1","Plan":{open}{close}}}"#)
        };
        assert!(parse_json(plan(100_000).as_bytes()).is_none());
        assert_eq!(parse_json(plan(40).as_bytes()).unwrap().1.shape.lines().count(), 40);
    }

    #[test]
    fn plans_have_steps_and_no_values() {
        let text = "\nQuery Text: select a from t\n\twhere b = 'CaNaRy  (cost=1'\n\tSort  (cost=1.00..2.00 rows=3 width=4) (actual time=0.1..0.2 rows=3 loops=1)\n\t  Sort Key: a\n\t  ->  Index Scan using t_b on t  (cost=0.42..8.44 rows=1 width=4)\n\t        Index Cond: (b = 'CaNaRy\n\t  ->  CaNaRy  (cost=0.00..1.00 rows=1 width=4)\n\t'::text)\n\t        Filter: (c = 4711)";
        let (sql, logged) = read(text.as_bytes()).unwrap();
        assert!(sql.starts_with(b"select a from t") && sql.ends_with(b"(cost=1'"), "{}", String::from_utf8_lossy(&sql));
        assert_eq!(logged.shape, "Sort\n  ->  Index Scan using t_b on t");
        assert!(logged.steps.contains("rows=3 loops=1") && !logged.steps.contains("CaNaRy"), "{}", logged.steps);
        let json = r#"{"Query Text": "select 'x'", "Plan": {"Node Type": "Sort", "Startup Cost": 1.0, "Total Cost": 2.0, "Plan Rows": 3, "Sort Key": ["'CaNaRy'"],
            "Plans": [{"Node Type": "Index Scan", "Index Name": "t_b", "Relation Name": "t", "Index Cond": "(b = 'CaNaRy'::text)", "Actual Total Time": 5.1, "Actual Rows": 1, "Actual Loops": 1}]}}"#;
        let (_, logged) = read(json.as_bytes()).unwrap();
        assert_eq!(logged.shape, "Sort\n  ->  Index Scan using t_b on t");
        assert!(!logged.steps.contains("CaNaRy") && logged.steps.contains("actual time=5.100"), "{}", logged.steps);
        assert_eq!(read(b"Query Text: select 1"), None);
        assert_eq!(read(b"<explain/>"), None);
    }
}
