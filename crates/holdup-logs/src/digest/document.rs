//! A report as a document: Markdown for tickets and wikis, HTML as one file that loads nothing.
//! Both have the same content: the table, then each statement with its figures. Text from a log is
//! never markup there.

use std::fmt::Write as _;

use holdup_recording::words::count;

use crate::digest::duration::time;
use crate::digest::report::{Query, Report};
use crate::digest::text::{COLUMNS, UNKNOWN, clean, figure, row};

/// The sentences about the whole report.
fn summary(report: &Report) -> Vec<String> {
    let mut lines = vec![format!(
        "{} executions of {} statements, {} in total",
        count(report.calls),
        count(report.distinct as u128),
        time(report.total_us)
    )];
    if let (Some(first), Some(last)) = (&report.first_seen, &report.last_seen) {
        lines.push(format!("{first} to {last}"));
    }
    for file in &report.files {
        lines.push(format!("{} ({}, {} bytes)", file.path, file.format, count(file.bytes)));
    }
    for problem in &report.problems {
        lines.push(format!("{} {}, first at {}", count(problem.count), problem.what, problem.places.join("; ")));
    }
    lines
}

/// The text on one line, without control characters that would act on a terminal.
fn one_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text as Markdown, with every character escaped that could be markup.
fn escaped_markdown(text: &str) -> String {
    one_line(text).chars().fold(String::new(), |mut out, letter| {
        if letter.is_ascii_punctuation()
            && !matches!(letter, '.' | ',' | ':' | ';' | '?' | '%' | '=' | '/' | '\'' | '"' | '@')
        {
            out.push('\\');
        }
        out.push(letter);
        out
    })
}

fn escaped_html(text: &str) -> String {
    let mut out = String::new();
    for letter in one_line(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}

impl Report {
    /// The report as Markdown.
    pub fn markdown(&self) -> String {
        let mut out = "# Statements by time\n\n".to_owned();
        for line in summary(self) {
            let _ = writeln!(out, "- {}", escaped_markdown(&line));
        }
        let _ = writeln!(out, "\n| {} | statement |\n|{}", COLUMNS.join(" | "), "---|".repeat(COLUMNS.len() + 1));
        for query in &self.queries {
            let (cells, statement) = row(query);
            let cells: Vec<String> = cells.iter().map(|cell| escaped_markdown(cell)).collect();
            let _ = writeln!(out, "| {} | {} |", cells.join(" | "), escaped_markdown(&statement));
        }
        if self.not_listed > 0 {
            let _ = writeln!(out, "\n{} more statements are not listed.", self.not_listed);
        }
        if let Some(rest) = &self.rest {
            let _ = writeln!(out, "\n{}.", escaped_markdown(&rest.words(self.queries.len())));
        }
        out
    }

    /// The report as an HTML file.
    pub fn html(&self) -> String {
        let mut out = String::from(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Statements by time</title>\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <style>body{font:14px/1.4 system-ui,sans-serif;margin:2em;max-width:100em}table{border-collapse:collapse;width:100%}\
             td,th{padding:.3em .7em;border-bottom:1px solid #ccc;text-align:right;vertical-align:top;white-space:nowrap}\
             td:last-child,th:last-child{text-align:left;white-space:normal;font-family:ui-monospace,monospace;word-break:break-word}\
             details table{width:auto;margin:.5em 0}@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}td,th{border-color:#444}}</style>\n\
             <h1>Statements by time</h1>\n<ul>\n",
        );
        for line in summary(self) {
            let _ = writeln!(out, "<li>{}</li>", escaped_html(&line));
        }
        out.push_str("</ul>\n<table>\n<tr>");
        for column in COLUMNS {
            let _ = write!(out, "<th>{column}</th>");
        }
        out.push_str("<th>statement</th></tr>\n");
        for query in &self.queries {
            let (cells, statement) = row(query);
            out.push_str("<tr>");
            for cell in &cells {
                let _ = write!(out, "<td>{}</td>", escaped_html(cell));
            }
            let _ = writeln!(
                out,
                "<td><details><summary>{}</summary>{}</details></td></tr>",
                escaped_html(&statement),
                figures(query)
            );
        }
        out.push_str("</table>\n");
        if self.not_listed > 0 {
            let _ = writeln!(out, "<p>{} more statements are not listed.</p>", self.not_listed);
        }
        if let Some(rest) = &self.rest {
            let _ = writeln!(out, "<p>{}.</p>", escaped_html(&rest.words(self.queries.len())));
        }
        out
    }
}

/// The attributes of a query as a table.
fn figures(query: &Query) -> String {
    let mut out =
        String::from("<table><tr><th>attribute</th><th>sum</th><th>min</th><th>p95</th><th>p99</th><th>max</th></tr>");
    for (name, figures) in query.attributes.iter().filter(|(_, figures)| figures.sum > 0) {
        let show = |value: u128| figure(figures.unit, value);
        let rest = [figures.min, figures.p95, figures.p99, figures.max];
        let rest = rest.map(|value| value.map_or(UNKNOWN.to_owned(), |value| show(value.into())));
        let cells: Vec<String> = std::iter::once(show(figures.sum)).chain(rest).collect();
        let _ = write!(out, "<tr><td>{}</td><td>{}</td></tr>", escaped_html(name), cells.join("</td><td>"));
    }
    out + "</table>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_log_holds_is_no_markup() {
        assert_eq!(escaped_html("a<b>&\"'\n\u{1b}"), "a&lt;b&gt;&amp;&quot;&#39;");
        assert_eq!(
            escaped_markdown("a|b `c` <d> *e* [f](g) _h_"),
            "a\\|b \\`c\\` \\<d\\> \\*e\\* \\[f\\]\\(g\\) \\_h\\_"
        );
    }
}
