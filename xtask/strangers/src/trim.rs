//! A recording without what no judge reads, and with the spans of a part of its traces, as an app that samples traces
//! would have sent them. Everything else stays: what is thinned out of counters or sessions would change verdicts.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use holdup_recording::rows::Span;
use holdup_recording::writer::write_table;
use holdup_recording::{Manifest, Recording};

/// Files that are left out.
const LEFT_OUT: [&str; 2] = ["report.html", "metrics.json"];

/// Traces of which spans are kept, at most.
const TRACES: usize = 800;

/// Makes the recording in `folder` smaller.
pub fn trim(folder: &Path, recording: &Recording) -> Result<()> {
    for name in LEFT_OUT {
        let path = folder.join(name);
        if path.exists() {
            fs::remove_file(&path).with_context(|| format!("failed to remove {}", path.display()))?;
        }
    }
    let spans = &recording.tables.spans.rows;
    let kept = thinned(spans);
    if kept.len() < spans.len() {
        let mut manifest: Manifest = recording.manifest.clone();
        manifest.tables.insert("spans".to_owned(), write_table::<Span>(folder, [kept])?);
        manifest.write(folder).context("failed to write the manifest")?;
    }
    Ok(())
}

/// The spans of every n-th trace, so that at most [`TRACES`] are left.
fn thinned(spans: &[Span]) -> Vec<Span> {
    let traces: BTreeSet<&str> = spans.iter().map(|span| span.trace_id.as_str()).collect();
    // Trace ids of one run count up: every n-th of them in their order is an even sample of time.
    let every = traces.len().div_ceil(TRACES).max(1);
    let kept: BTreeSet<&str> = traces.iter().copied().step_by(every).collect();
    spans.iter().filter(|span| kept.contains(span.trace_id.as_str())).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_stays_whole_or_goes_whole() {
        let span = |number: usize| Span {
            started_at: 0,
            duration_ns: 1,
            source: "otlp".to_owned(),
            service: String::new(),
            trace_id: format!("{:032x}", number / 4),
            span_id: None,
            parent_id: None,
            name: "a".to_owned(),
            kind: "server".to_owned(),
            resource: "request".to_owned(),
            system: None,
            peer: None,
            digest: None,
            digest_text: None,
            status: "ok".to_owned(),
            calls: 1,
        };
        let few: Vec<Span> = (0..40).map(span).collect();
        assert_eq!(thinned(&few), few);
        let kept = thinned(&(0..4 * (2 * TRACES + 2)).map(span).collect::<Vec<_>>());
        let traces: BTreeSet<&str> = kept.iter().map(|span| span.trace_id.as_str()).collect();
        assert!(traces.len() <= TRACES && traces.len() > TRACES / 2, "{}", traces.len());
        assert_eq!(kept.len(), 4 * traces.len());
    }
}
