//! The report: one HTML file with everything in it. Its components are built from `web/` (see `web/README.md`);
//! whatever came from outside goes in as JSON and comes out as text nodes.

use std::fs;
use std::path::Path;

use holdup_diagnose::compare::Comparison;
use holdup_diagnose::{Diagnosis, verdict::Span};
use holdup_recording::{Recording, clock};
use serde::Serialize;

use crate::charts::{Chart, charts, link};
use crate::failure::Failure;

const SCRIPT: &str = include_str!("../../../web/dist/report.js");
const STYLE: &str = include_str!("../../../web/dist/report.css");

/// What the page shows; `web/src/model.ts` is its other half.
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
    /// A report on one run or several, each with its name.
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
                    charts,
                }
            })
            .collect();
        Self { holdup: env!("CARGO_PKG_VERSION"), title, runs, comparison }
    }

    /// Writes the page to `path`: whole, or not at all.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let partial = path.with_extension("html.tmp");
        let written = fs::write(&partial, self.html()).and_then(|()| fs::rename(&partial, path));
        written.map_err(|error| {
            let _ = fs::remove_file(&partial);
            Failure::Unusable(format!("failed to write {}: {error}", path.display()))
        })
    }

    fn html(&self) -> String {
        // Inside a script element only "<" could end it or begin a comment; in JSON it stands in strings only.
        let json = serde_json::to_string(self).unwrap_or_default().replace('<', "\\u003c");
        let title = escape(self.title);
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src 'unsafe-inline'; img-src data:\">\
             <title>holdup: {title}</title><style>{STYLE}</style></head>\n\
             <body><noscript>This report draws its charts with the script it carries; allow scripts to see them, \
             or run: holdup diagnose</noscript><div id=\"app\"></div>\
             <script type=\"application/json\" id=\"holdup-report\">{json}</script>\n<script>{SCRIPT}</script></body></html>\n"
        )
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
