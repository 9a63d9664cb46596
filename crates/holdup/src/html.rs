//! Writes the report: one self-contained HTML file. Its components are built from `web/` (see
//! `web/README.md`). Foreign text goes in as JSON and comes out as text nodes.

use std::collections::BTreeSet;
use std::path::Path;

use holdup_compare::recordings::Comparison;
use holdup_diagnose::{Diagnosis, verdict::Span};
use holdup_recording::plan::Node;
use holdup_recording::{Recording, clock, files};
use serde::Serialize;

use crate::charts::{Chart, Lane, Mark, charts, link, marks, overview};
use crate::failure::Failure;
use crate::terminal::visible::{one_line, shown_json};

const SCRIPT: &str = include_str!("../../../web/dist/report.js");
const STYLE: &str = include_str!("../../../web/dist/report.css");

/// The data of the page; its counterpart is `Report` in `web/src/model.ts`.
#[derive(Serialize)]
pub struct Report<'a> {
    holdup: &'static str,
    title: &'a str,
    runs: Vec<Run<'a>>,
    comparison: Option<&'a Comparison>,
}

#[derive(Serialize)]
struct Run<'a> {
    name: &'a str,
    started_at: String,
    duration_s: f64,
    verdict: Diagnosis,
    phases: Vec<Phase<'a>>,
    charts: Vec<Chart>,
    overview: Vec<Lane>,
    marks: Vec<Mark>,
    plans: Vec<Plan<'a>>,
}

/// A plan that a finding points at: how a server executed a statement, and when.
#[derive(Serialize)]
struct Plan<'a> {
    kind: &'a str,
    digest: &'a str,
    digest_text: &'a str,
    shape: &'a str,
    /// Number of executions with that plan shape in the recording.
    seen: usize,
    #[serde(flatten)]
    span: Span,
    /// Median duration of the executed ones.
    median_ms: Option<f64>,
    nodes: Vec<Step>,
}

/// A node of a plan, with the planner's estimate and the actual figures.
#[derive(Serialize)]
struct Step {
    depth: usize,
    name: String,
    rows_estimated: Option<f64>,
    rows_actual: Option<f64>,
    loops: Option<f64>,
}

#[derive(Serialize)]
struct Phase<'a> {
    name: &'a str,
    #[serde(flatten)]
    span: Span,
    rate_from: f64,
    rate_to: f64,
}

impl<'a> Report<'a> {
    /// A report on one or several runs, each with its name.
    pub fn new(
        title: &'a str,
        runs: &[(&'a str, &'a Recording, &'a Diagnosis)],
        comparison: Option<&'a Comparison>,
    ) -> Self {
        let runs = runs
            .iter()
            .map(|&(name, recording, verdict)| {
                let manifest = &recording.manifest;
                let seconds = |at: i64| (at - manifest.started_at) as f64 / 1e9;
                let charts = charts(recording);
                let mut verdict = verdict.clone();
                link(&mut verdict, &charts);
                let plans = plans(recording, &verdict);
                Run {
                    name,
                    started_at: clock::rfc3339(manifest.started_at),
                    duration_s: manifest.ended_at.map_or(0.0, seconds),
                    verdict,
                    phases: manifest
                        .phases
                        .iter()
                        .map(|p| Phase {
                            name: &p.name,
                            span: Span { from_s: seconds(p.from), to_s: seconds(p.to) },
                            rate_from: p.rate_from,
                            rate_to: p.rate_to,
                        })
                        .collect(),
                    overview: overview(&charts),
                    charts,
                    marks: marks(recording),
                    plans,
                }
            })
            .collect();
        Self { holdup: env!("CARGO_PKG_VERSION"), title, runs, comparison }
    }

    /// Writes the page to `path`, completely or not at all.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        files::replace(path, self.html().as_bytes())
            .map_err(|error| Failure::Unusable(format!("failed to write {}: {error}", path.display())))
    }

    fn html(&self) -> String {
        // Inside a script element only "<" could end it or open a comment; in JSON it occurs only
        // in strings.
        let json = shown_json(&serde_json::to_string(self).unwrap_or_default()).replace('<', "\\u003c");
        let title = escape(&one_line(self.title));
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src 'unsafe-inline'; img-src data:\">\
             <title>holdup: {title}</title><style>{STYLE}</style></head>\n\
             <body><noscript>The charts need the script inside this file: allow scripts, \
             or run: holdup diagnose</noscript><div id=\"app\"></div>\
             <script type=\"application/json\" id=\"holdup-report\">{json}</script>\n<script>{SCRIPT}</script></body></html>\n"
        )
    }
}

/// The plans that findings of `verdict` point at, each shape once, ordered by first sight.
fn plans<'a>(recording: &'a Recording, verdict: &Diagnosis) -> Vec<Plan<'a>> {
    let evidence = verdict.findings.iter().chain(&verdict.next).flat_map(|f| &f.evidence);
    let wanted: BTreeSet<(&str, &str, &str)> = evidence
        .filter(|e| e.table == "plans")
        .filter_map(|e| Some((e.labels.get("kind")?, e.labels.get("digest")?, e.labels.get("shape")?)))
        .collect();
    let seconds = |at: i64| ((at - recording.manifest.started_at) as f64 / 1e6).round() / 1e3;
    let one = |(kind, digest, shape): (&str, &str, &str)| {
        let is_of = |p: &&holdup_recording::rows::Plan| p.kind == kind && p.digest == digest && p.shape == shape;
        let rows: Vec<_> = recording.tables.plans.rows.iter().filter(is_of).collect();
        let tree = rows.iter().find_map(|row| Node::from_json(&row.plan))?;
        let mut times_ns: Vec<i64> = rows.iter().filter_map(|row| row.duration_ns).collect();
        times_ns.sort_unstable();
        let mut nodes = Vec::new();
        steps(&tree, 0, &mut nodes);
        let first = rows.first()?;
        let ends = |pick: fn(i64, i64) -> i64| rows.iter().map(|row| row.observed_at).reduce(pick).map_or(0.0, seconds);
        Some(Plan {
            kind: &first.kind,
            digest: &first.digest,
            digest_text: &first.digest_text,
            shape: &first.shape,
            seen: rows.len(),
            span: Span { from_s: ends(i64::min), to_s: ends(i64::max) },
            median_ms: times_ns.get(times_ns.len() / 2).map(|ns| *ns as f64 / 1e6),
            nodes,
        })
    };
    let mut plans: Vec<Plan<'_>> = wanted.into_iter().filter_map(one).collect();
    plans.sort_by(|a, b| a.span.from_s.total_cmp(&b.span.from_s));
    plans
}

/// Lists `node` and all nodes below it, from the top. Plans read from a file may be as deep as its
/// JSON could be.
fn steps(node: &Node, depth: usize, into: &mut Vec<Step>) {
    let (rows_estimated, rows_actual, loops) = (node.rows_estimated, node.rows_actual, node.loops);
    into.push(Step { depth, name: node.name(), rows_estimated, rows_actual, loops });
    for child in &node.children {
        steps(child, depth + 1, into);
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use holdup_diagnose::Cause;
    use holdup_diagnose::verdict::{Evidence, Finding, Role};
    use holdup_recording::Batch;
    use holdup_recording::manifest::Host;
    use holdup_recording::rows::{Plan as Row, Sample};
    use holdup_recording::{Labels, Manifest, Recorder, RunState};
    use holdup_signals::Window;

    use super::*;

    const HOSTILE: &str = "</script><img src=x onerror=alert(1)><!--";

    fn finding(evidence: Vec<Evidence>) -> Finding {
        Finding {
            cause: Cause::DiskFull,
            title: HOSTILE.to_owned(),
            role: Role::Root,
            follows_from: None,
            adds_to: None,
            hosts: Vec::new(),
            confidence: 0.9,
            explains_ms: 1.0,
            explains_ratio: 1.0,
            share: None,
            evidence,
            fixes: Vec::new(),
            prove: String::new(),
        }
    }

    /// Shows the plans that evidence points at, of three recorded shapes; and no text ends the script.
    #[test]
    fn a_finding_brings_its_plans_and_what_others_wrote_stays_text() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = Manifest::starting(HOSTILE, 0, Host::default());
        let recorder = Recorder::create(dir.path(), &manifest).unwrap();
        let row = |at_s: i64, shape: &str, kind: &str, duration_ns| Row {
            observed_at: at_s * 1_000_000_000,
            kind: "auto_explain".to_owned(),
            digest: "d".to_owned(),
            digest_text: HOSTILE.to_owned(),
            shape: shape.to_owned(),
            plan: Node {
                kind: kind.to_owned(),
                children: vec![Node { relation: Some(HOSTILE.to_owned()), rows_actual: Some(3.0), ..Node::default() }],
                ..Node::default()
            }
            .to_json(),
            duration_ns,
            source: String::new(),
            session_id: None,
            database: None,
            cost: None,
            rows_estimated: None,
            rows_actual: None,
            trace_id: None,
        };
        let plans = vec![
            row(7, "is", "Seq Scan", Some(9_000_000)),
            row(1, "was", "Index Scan", Some(1_000_000)),
            row(3, "was", "Index Scan", Some(3_000_000)),
            row(2, "was", "Index Scan", Some(2_000_000)),
            row(5, "other", "Result", None),
        ];
        let dead = |at_s: i64, table: &str, value| Sample {
            observed_at: at_s * 1_000_000_000,
            window_ns: 0,
            source: "db".to_owned(),
            metric: "postgresql_stat_tables_n_dead_tup".to_owned(),
            labels: Labels::new([("table", table), ("toast_of", HOSTILE)]),
            value,
        };
        let samples = vec![dead(1, "few", 9.0), dead(1, "many", 5.0), dead(2, "many", 500.0)];
        recorder.sink().push(Batch { plans, samples, ..Batch::default() });
        recorder.finish(manifest, RunState::Complete).unwrap();
        let recording = Recording::open(dir.path()).unwrap();

        let pointing = |shape: &str| {
            let labels = Labels::new([("kind", "auto_explain"), ("digest", "d"), ("shape", shape)]);
            Evidence::new("plans", "shape", labels, Window { from: 0, to: 9_000_000_000 }, "", "", HOSTILE)
        };
        let mut verdict = holdup_diagnose::diagnose(&recording, None);
        // Twice the same, and one that is not in the recording.
        verdict.findings = vec![finding(["is", "was", "was", "gone"].map(pointing).into())];
        let shown = super::plans(&recording, &verdict);
        let said: Vec<_> = shown.iter().map(|p| (p.shape, p.seen, p.span.from_s, p.span.to_s, p.median_ms)).collect();
        assert_eq!(said, [("was", 3, 1.0, 3.0, Some(2.0)), ("is", 1, 7.0, 7.0, Some(9.0))]);
        let nodes: Vec<_> = shown[1].nodes.iter().map(|n| (n.depth, n.name.clone(), n.rows_actual)).collect();
        assert_eq!(nodes, [(0, "Seq Scan".to_owned(), None), (1, format!(" {HOSTILE}"), Some(3.0))]);

        let page = Report::new(HOSTILE, &[(HOSTILE, &recording, &verdict)], None).html();
        assert_eq!((page.matches("</script").count(), page.matches("<img").count()), (2, 0));
        let json = page.split("id=\"holdup-report\">").nth(1).and_then(|rest| rest.split("</script>").next()).unwrap();
        let read: serde_json::Value = serde_json::from_str(json).unwrap();
        let run = &read["runs"][0];
        assert_eq!((&run["name"], &run["plans"][0]["digest_text"]), (&HOSTILE.into(), &HOSTILE.into()));
        let evidence = &run["verdict"]["findings"][0]["evidence"][0];
        assert_eq!(evidence["chart"], "plans", "executions of two shapes are drawn");
        let charts = run["charts"].as_array().unwrap();
        let dead = charts.iter().find(|c| c["id"] == "dead_rows").unwrap();
        let drawn: Vec<_> = dead["series"].as_array().unwrap().iter().map(|s| (&s["name"], &s["y"])).collect();
        let rows = serde_json::json!([5.0, 500.0]);
        assert_eq!(drawn, [(&format!("TOAST of {HOSTILE}").into(), &rows)], "few dead rows are not worth a line");
    }
}
