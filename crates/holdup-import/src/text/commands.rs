//! The commands of a paste and the statements without a prompt above their results. What a statement
//! asks for tells what the columns below it show.

use super::paste::Line;
use super::table::{Select, footer_line, is_drawn_line, select};

/// Most lines of a statement.
const LINES: usize = 60;

/// How a statement begins that shows something.
const BEGINS: [&str; 6] = ["select ", "show ", "explain ", "analyze ", "table ", "with "];

/// A command, and what it says of the table below it.
pub(super) struct Command {
    /// Its first line.
    pub(super) first: usize,
    /// Its last line.
    pub(super) last: usize,
    /// All its lines, joined by blanks.
    pub(super) text: String,
    /// The statement in it, if it is one.
    pub(super) select: Option<Select>,
}

/// The commands in order.
pub(super) fn commands(lines: &[Line]) -> Vec<Command> {
    let mut all: Vec<Command> = Vec::new();
    let mut next = 0;
    while let Some(line) = lines.get(next) {
        let first = next;
        next += 1;
        let is_begun = line.is_command || is_bare(lines, first, all.last());
        if !is_begun {
            continue;
        }
        let mut last = first;
        while lines.get(last + 1).is_some_and(|line| line.is_command && line.is_continued) {
            last += 1;
        }
        let is_statement = begins(&line.text);
        if is_statement && !lines.get(last).is_some_and(|line| is_ended(&line.text)) {
            last = end(lines, last + 1).unwrap_or(last);
        }
        let parts: Vec<&str> =
            lines.get(first..=last).unwrap_or_default().iter().map(|line| line.text.trim()).collect();
        let text = parts.join(" ");
        let select = select(&text);
        all.push(Command { first, last, text, select });
        next = last + 1;
    }
    all
}

fn begins(text: &str) -> bool {
    let text = text.trim_start();
    BEGINS.iter().any(|word| text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)))
        || ["select", "explain", "with"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn is_ended(text: &str) -> bool {
    let text = text.trim_end();
    [";", "\\G", "\\g", "\\gx"].iter().any(|end| text.ends_with(end))
}

/// The line that ends a statement which goes on here.
fn end(lines: &[Line], from: usize) -> Option<usize> {
    let rest = lines.get(from..)?.iter().take(LINES);
    let is_other =
        |line: &Line| line.is_command || line.is_blank() || line.text.starts_with('|') || is_drawn_line(&line.text);
    let below = rest.take_while(|line| !is_other(line)).position(|line| is_ended(&line.text));
    below.map(|below| from + below)
}

/// Whether a statement without a prompt begins here: nothing that it could belong to stands above.
fn is_bare(lines: &[Line], at: usize, before: Option<&Command>) -> bool {
    let Some(line) = lines.get(at).filter(|line| begins(&line.text) && !line.text.contains('\t')) else { return false };
    let is_free = match at.checked_sub(1).and_then(|above| lines.get(above)) {
        Some(above) => {
            above.is_blank() || footer_line(&above.text) || before.is_some_and(|before| before.last + 1 == at)
        }
        None => true,
    };
    let is_above = |line: &Line| line.text.starts_with('|') || is_drawn_line(&line.text);
    is_free && (is_ended(&line.text) || end(lines, at + 1).is_some() || lines.get(at + 1).is_some_and(is_above))
}
