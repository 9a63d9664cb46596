//! `EXPLAIN` and `EXPLAIN ANALYZE` of PostgreSQL, MySQL and MariaDB, as text, JSON, tree or table, in every
//! form that clients print; and `explain("executionStats")` of MongoDB. They become rows of `plans`.

mod documents;
mod tabular;

use holdup_plan::{mysql, postgresql as of_postgresql, row, text as of_text, tree};
use holdup_recording::plan::Node;
use holdup_recording::rows::Plan;
use holdup_sql::{Dialect, digest_text};

pub(super) use self::documents::{KIND as DOCUMENT, read_record};
pub(super) use self::tabular::KIND as TABLE;
use super::{Context, Kind, Line, footer_line, postgresql, processlist, table};
use crate::text::json::document;

pub(super) const KIND: Kind = Kind::lines("EXPLAIN", |lines| form(lines).is_some(), read);

/// Lines above the first one of a plan: a border, a header, a rule.
const ABOVE: usize = 4;

/// Lines in which a document is recognised.
const HEAD: usize = 40;

/// Most lines of a plan.
const LINES: usize = 20_000;

/// The header of a table that holds a plan, and labels of one in a record.
const HEADERS: [&str; 3] = ["QUERY PLAN", "EXPLAIN", "ANALYZE"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// PostgreSQL's text.
    Text,
    /// MySQL's tree.
    Tree,
    PostgresqlJson,
    MysqlJson,
}

/// Whether a line that looks like a prompt's (`->`) is a node of a plan.
pub(super) fn is_node(text: &str) -> bool {
    const STEPS: [&str; 17] = [
        "Limit",
        "Sort",
        "Filter",
        "Table scan",
        "Index ",
        "Covering index",
        "Single-row",
        "Nested loop",
        "Group",
        "Aggregate",
        "Stream",
        "Hash",
        "Inner hash",
        "Left hash",
        "Materialize",
        "Temporary",
        "Window",
    ];
    let inner = text.trim_start_matches([' ', '|']);
    let Some(rest) = inner.strip_prefix("->") else { return false };
    let has_figures = ["(cost=", "(actual ", "(never executed)"].iter().any(|mark| rest.contains(mark));
    has_figures || rest.starts_with("  ") || STEPS.iter().any(|step| rest.trim_start().starts_with(step))
}

/// A line of a plan without what its client drew around it.
fn bare(line: &Line) -> &str {
    let text = line.text.as_str();
    let text = text.strip_prefix("| ").map_or(text, |inner| inner.strip_suffix('|').unwrap_or(inner));
    let text = text.trim_end();
    // `psql` marks cells of several lines.
    let text = text.strip_suffix('+').or_else(|| text.strip_suffix('\u{21b5}')).map_or(text, str::trim_end);
    let label = HEADERS.iter().find_map(|name| text.trim_start().strip_prefix(name)?.strip_prefix(": "));
    label.unwrap_or(text)
}

/// Whether a line stands above a plan, and does not belong to it.
fn is_above(line: &Line) -> bool {
    table::is_drawn_line(&line.text) || HEADERS.contains(&bare(line).trim())
}

fn form(lines: &[Line]) -> Option<Form> {
    let skip = lines.iter().take(ABOVE).take_while(|line| is_above(line)).count();
    let first = bare(lines.get(skip)?);
    let content = first.trim_start();
    let is_postgresql = content.contains("  (cost=") && content.contains("..") && content.contains(" rows=")
        || content.contains("  (actual ") && content.contains(" loops=") && !content.starts_with("->");
    if is_postgresql && !content.starts_with("->") {
        return Some(Form::Text);
    }
    if content.starts_with("-> ") && !content.starts_with("->  ") && is_node(content) {
        return Some(Form::Tree);
    }
    if !content.starts_with(['{', '[']) {
        return None;
    }
    let has = |word: &str| lines.iter().skip(skip).take(HEAD).any(|line| line.text.contains(word));
    match () {
        () if has("\"Node Type\"") && has("\"Plan\"") => Some(Form::PostgresqlJson),
        () if has("\"query_block\"") => Some(Form::MysqlJson),
        () => None,
    }
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let Some(form) = form(lines) else { return 1 };
    let skip = lines.iter().take(ABOVE).take_while(|line| is_above(line)).count();
    let ends = |line: &Line| line.is_blank() || footer_line(&line.text) || table::is_drawn_line(&line.text);
    let is_json = matches!(form, Form::PostgresqlJson | Form::MysqlJson);
    let below = lines.get(skip..).unwrap_or_default();
    let mut count = below.iter().take(LINES).take_while(|line| !ends(line)).count();
    let all: Vec<&str> = below.iter().take(LINES).map(bare).collect();
    let joined = all.join("\n");
    let text = if is_json {
        let Some(text) = document(joined.trim_start()) else {
            context.out.note("EXPLAIN: the plan ends before its last bracket, and was not read");
            context.unread.extend(0..skip + count.max(1));
            return skip + count.max(1);
        };
        let begin = joined.len() - joined.trim_start().len();
        count = joined[..begin + text.len()].matches('\n').count() + 1;
        text
    } else {
        joined.get(..all.iter().take(count).map(|line| line.len() + 1).sum::<usize>()).unwrap_or(&joined)
    };
    let mut used = skip + count;
    used += lines.iter().skip(used).take(2).take_while(|line| table::is_drawn_line(&line.text)).count();
    let blanks = lines.iter().skip(used).take_while(|line| line.is_blank()).count();
    if lines.get(used + blanks).is_some_and(|line| footer_line(&line.text)) {
        used += blanks + 1;
    }
    let tree = match form {
        Form::Text => of_text::tree(&unindented(text)),
        Form::Tree => tree::tree(text),
        Form::PostgresqlJson => of_postgresql::tree(text),
        Form::MysqlJson => mysql::tree(text),
    };
    match tree {
        Some(tree) => put(&tree, matches!(form, Form::Text | Form::PostgresqlJson), duration_ms(text), context),
        None => context.unread.extend(0..used),
    }
    used
}

/// The text without what all of its lines are indented by: `psql` puts a blank before each.
fn unindented(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let least = text.lines().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    text.lines().map(|line| line.get(least..).unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// `Execution Time: 12.3 ms`, `Total runtime: 12.3 ms`, `"Execution Time": 12.3`
fn duration_ms(text: &str) -> Option<f64> {
    let names = ["Execution Time", "Execution time", "Total runtime", "Total Runtime"];
    let behind = names.iter().find_map(|name| Some(text.split_once(name)?.1))?;
    let number = behind.trim_start_matches(['"', ':', ' ']);
    number.split([' ', ',', '\n', '}']).next()?.parse().ok().filter(|ms: &f64| ms.is_finite() && *ms >= 0.0)
}

/// The statement that the plan is for, if it stands above: behind `EXPLAIN` and its options.
fn explained(context: &Context, dialect: Dialect) -> String {
    let command = context.words().collect::<Vec<_>>().join(" ");
    let lower = command.to_ascii_lowercase();
    let begin = ["explain", "analyze", "desc "].iter().filter_map(|word| lower.find(word)).min();
    let verbs = ["select", "insert", "update", "delete", "with", "replace", "merge"];
    let statement = begin.and_then(|begin| {
        let is_word = |at: &usize| !lower[..*at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let at = verbs
            .iter()
            .filter_map(|verb| lower[begin..].match_indices(verb).map(|(at, _)| begin + at).find(is_word))
            .min();
        command.get(at?..)
    });
    let text =
        statement.unwrap_or_default().trim_end().trim_end_matches(['G', 'g']).trim_end_matches(['\\', ';', '"', '\'']);
    digest_text(
        if statement.is_some_and(|all| all.trim_end().ends_with("\\G")) { text } else { statement.unwrap_or_default() },
        dialect,
    )
}

/// Adds the row of a plan.
fn put(tree: &Node, is_postgresql: bool, duration_ms: Option<f64>, context: &mut Context) {
    let (source, dialect) = match is_postgresql {
        true => (postgresql::SOURCE, Dialect::PostgreSql),
        false => (processlist::SOURCE, Dialect::MySql),
    };
    let text = explained(context, dialect);
    put_of(tree, source, (text, duration_ms.or(tree.time_ms)), context);
}

fn put_of(tree: &Node, source: &str, (text, duration_ms): (String, Option<f64>), context: &mut Context) {
    let was_run = tree.all().iter().any(|node| node.rows_actual.is_some() || node.time_ms.is_some());
    let kind = if was_run { "analyze" } else { "explain" };
    if text.is_empty() {
        context.out.note("EXPLAIN: no statement stands above a plan, so the plan belongs to none");
    }
    let observed_at = context.instant();
    let duration_ns = duration_ms.filter(|_| was_run).map(|ms| (ms * 1e6) as i64);
    let source = source.to_owned();
    context.out.batch.plans.push(Plan { observed_at, source, duration_ns, ..row(kind, tree, text) });
}
