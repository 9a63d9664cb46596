//! What searches tell about capacity: sentences, a table of carried loads, and a table of needed
//! instances; for a terminal and as Markdown.

use std::fmt::Write as _;

use holdup_compare::capacity::{CapacityReport, Plan, Setting, figure};
use holdup_diagnose::search::Interval;

use super::visible::one_line;
use super::{BOLD, DIM, wrap};

/// Between columns.
const GAP: &str = "  ";

/// A table: a head, and rows with as many cells.
struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The whole result for a terminal.
pub fn capacity(report: &CapacityReport) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "\n{BOLD}Capacity{BOLD:#}");
    for text in &report.text {
        wrap(&mut out, "  - ", text);
    }
    for table in tables(report) {
        let _ = writeln!(out);
        table.plain(&mut out);
    }
    out
}

/// The whole result as Markdown.
pub fn markdown(report: &CapacityReport) -> String {
    let mut out = String::from("## Capacity\n\n");
    for text in &report.text {
        let _ = writeln!(out, "- {}", escaped(text));
    }
    for table in tables(report) {
        table.markdown(&mut out);
    }
    out
}

fn tables(report: &CapacityReport) -> impl Iterator<Item = Table> {
    let planned = report.plan.as_ref().map(|plan| needed(report, plan));
    std::iter::once(carried(report)).chain(planned)
}

fn carried(report: &CapacityReport) -> Table {
    let axis = report.axis.clone().unwrap_or_default();
    let heads = ["searches", "knee/s", "breaks at/s", "most/s", "CPUs used", "throttled", "first limit"];
    let row = |setting: &Setting| {
        let cpu = setting.cpu.as_ref();
        vec![
            setting.value.map_or_else(String::new, figure),
            setting.runs.len().to_string(),
            between(setting.knee.as_ref()),
            between(setting.breaking_point.as_ref()),
            between(setting.capacity.as_ref()),
            cpu.and_then(|cpu| Some(format!("{:.2} of {:.2}", cpu.cpus?, cpu.of_cpus))).unwrap_or_else(none),
            cpu.and_then(|cpu| cpu.throttled_ratio).map_or_else(none, |ratio| format!("{:.0} %", 100.0 * ratio)),
            setting
                .culprit
                .clone()
                .unwrap_or_else(|| setting.bound_first.split([':', ';']).next().unwrap_or("").to_owned()),
        ]
    };
    Table {
        heads: std::iter::once(axis).chain(heads.map(str::to_owned)).collect(),
        rows: report.settings.iter().map(row).collect(),
    }
}

fn needed(report: &CapacityReport, plan: &Plan) -> Table {
    let axis = report.axis.clone().unwrap_or_default();
    let heads =
        [format!("instances for {}/s", figure(plan.rate)), "each/s".into(), "connections".into(), "limit".into()];
    let rows = plan.rows.iter().map(|row| {
        let needed = row.needed;
        let connections = row.connections_each.map(|each| each * f64::from(needed.instances));
        let connections = match (connections, row.budget) {
            (Some(all), Some(budget)) => format!("{} of {}", figure(all), figure(budget.allowed)),
            (Some(all), None) => figure(all),
            (None, _) => none(),
        };
        let binds = match row.budget {
            Some(budget) if !budget.fits => format!("connections, at {} instances", budget.instances),
            Some(_) => "the load".to_owned(),
            None => none(),
        };
        let spread = if needed.fewest == needed.most {
            String::new()
        } else {
            format!(" ({} to {})", needed.fewest, needed.most)
        };
        vec![
            row.value.map_or_else(String::new, figure),
            format!("{}{spread}", needed.instances),
            figure(row.each),
            connections,
            binds,
        ]
    });
    Table { heads: std::iter::once(axis).chain(heads).collect(), rows: rows.collect() }
}

impl Table {
    fn plain(&self, out: &mut String) {
        let width = |at: usize| {
            let cells = self.rows.iter().chain([&self.heads]).map(|row| row[at].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        let line = |cells: &[String]| {
            let padded = cells.iter().zip(&widths).map(|(cell, width)| {
                let clean = one_line(cell);
                format!("{GAP}{clean:<width$}")
            });
            padded.collect::<String>().trim_end().to_owned()
        };
        let _ = writeln!(out, "{DIM}{}{DIM:#}", line(&self.heads));
        for row in &self.rows {
            let _ = writeln!(out, "{}", line(row));
        }
    }

    fn markdown(&self, out: &mut String) {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
            format!("| {} |", cells.join(" | "))
        };
        let _ = writeln!(out, "\n{}\n|{}", line(&self.heads), "---|".repeat(self.heads.len()));
        for row in &self.rows {
            let _ = writeln!(out, "{}", line(row));
        }
    }
}

/// `197 (163 to 202)`.
fn between(interval: Option<&Interval>) -> String {
    interval.map_or_else(none, |i| format!("{} ({} to {})", figure(i.value), figure(i.low), figure(i.high)))
}

fn none() -> String {
    "-".to_owned()
}

/// Escapes foreign text for Markdown.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        if matches!(c, '|' | '<' | '>' | '`' | '*' | '_' | '[' | ']' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use holdup_compare::capacity::{Connections, CpuUse, Demand, Load, Run, judge};

    use super::*;

    fn report() -> CapacityReport {
        let run = |value: f64, knee: f64| {
            let interval = |value: f64| Interval { value, low: 0.98 * value, high: 1.02 * value };
            Run {
                value: Some(value),
                round: 1,
                path: String::new(),
                knee: Some(interval(knee)),
                breaking_point: None,
                capacity: Some(interval(knee)),
                no_knee: None,
                culprit: Some("cpu_throttled".to_owned()),
                cpu: Some(CpuUse {
                    source: "cgroup:/a".to_owned(),
                    cpus: Some(value),
                    of_cpus: value,
                    ratio: Some(1.0),
                    is_quota: true,
                    throttled_ratio: Some(1.0),
                }),
                connections: Some(Connections { count: 10.0, known_by: "its pool".to_owned() }),
                connection_budget: None,
            }
        };
        let demand = Demand {
            load: Load::Rate(300.0),
            headroom: 0.0,
            connections_per_instance: None,
            connection_budget: Some(30.0),
        };
        judge(Some("cpu"), vec![run(0.5, 50.0), run(1.0, 100.0)], Some(&demand))
    }

    #[test]
    fn tables_have_what_is_carried_and_what_a_load_takes() {
        let text = anstream::adapter::strip_str(&super::super::visible::sent(&capacity(&report()))).to_string();
        let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("  cpu ")).collect();
        assert_eq!(
            rows,
            [
                "  cpu  searches  knee/s           breaks at/s  most/s           CPUs used     throttled  first limit",
                "  0.5  1         50 (49 to 51)    -            50 (49 to 51)    0.50 of 0.50  100 %      cpu_throttled",
                "  1    1         100 (98 to 102)  -            100 (98 to 102)  1.00 of 1.00  100 %      cpu_throttled",
                "",
                "  cpu  instances for 300/s  each/s  connections  limit",
                "  0.5  6 (6 to 7)           50      60 of 30     connections, at 3 instances",
                "  1    3 (3 to 4)           100     30 of 30     the load",
            ]
        );
    }

    #[test]
    fn markdown_has_the_same_and_stays_text() {
        let mut report = report();
        report.axis = Some("a|b".to_owned());
        let text = markdown(&report);
        assert!(
            text.contains("| a\\|b | searches | knee/s |") && text.contains("| 0.5 | 1 | 50 (49 to 51) |"),
            "{text}"
        );
        assert!(text.contains("cpu\\_throttled"), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with('|')).count(), 8, "{text}");
    }
}
