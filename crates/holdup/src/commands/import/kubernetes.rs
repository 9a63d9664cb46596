//! `holdup import pods.json events.json`: turns the output of `kubectl get … -o json` into a
//! recording of settings, container restarts and events. holdup writes nothing before it
//! understands all files.

use std::collections::BTreeMap;
use std::path::Path;

use holdup_collect::kubernetes::objects::{Document, ObjectTracker, ReadTime};
use holdup_recording::{Batch, clock};

use super::writer::Writer;
use super::{InputFile, Report};
use crate::failure::Failure;
use crate::recorded::coverage;

/// Number of kinds of events, and of settings, that are printed.
const SHOWN: usize = 40;

/// Bytes at the beginning of a document that name its kind; further on, any JSON may say `kind`.
const START_BYTES: usize = 64;

/// Whether a file that begins like this comes from Kubernetes: `kubectl` sorts keys, and the API
/// begins with the kind.
pub(super) fn is_one(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head.get(..START_BYTES).unwrap_or(head));
    super::aws::is_json(head.as_bytes()) && (head.contains("\"apiVersion\"") || head.contains("\"kind\""))
}

/// Whether a document that begins like this holds a pod or an event.
pub(super) fn has_rows(head: &[u8]) -> bool {
    let head: String = String::from_utf8_lossy(head).chars().filter(|c| !c.is_whitespace()).collect();
    ["Pod", "Event", "PodList", "EventList"].iter().any(|kind| head.contains(&format!("\"kind\":\"{kind}\"")))
}

/// Reads files of pods and events into a recording, and reports what they contain.
pub(super) fn import(files: Vec<InputFile>, dir: &Path) -> Result<Report, Failure> {
    let mut documents = Vec::new();
    let mut names = Vec::new();
    let mut pasted_at = None;
    for file in files {
        names.push(file.name.clone());
        pasted_at = pasted_at.max(file.pasted_at);
        documents.push(read(file)?);
    }
    let all = || documents.iter();
    let latest =
        all().filter_map(|document| holdup_collect::kubernetes::objects::latest(std::slice::from_ref(document))).max();
    let latest = latest.max(pasted_at);
    // Pods do not say when they were read. A single list is not older than the other facts.
    let is_single = all().filter(|document| document.pods() > 0).count() <= 1;
    let mut tracker = ObjectTracker::for_everything();
    let mut batch = Batch::default();
    for document in all() {
        let document = std::slice::from_ref(document);
        let at = if is_single { latest } else { holdup_collect::kubernetes::objects::latest(document).or(latest) };
        batch.append(tracker.take(document, ReadTime { at: at.unwrap_or_else(clock::now_ns), window_ns: 0 }));
    }
    batch.events.sort_by_key(|event| event.observed_at);
    let summary = ClusterSummary::from_documents(&names, &documents, &batch);
    record(batch, &names.join(", "), &summary, dir)?;
    let next = vec![format!("wrote {}/events.parquet and settings.parquet; next: holdup diagnose {0}", dir.display())];
    Ok(Report { text: summary.text(dir), json: summary.json(dir), next, ..Report::default() })
}

fn read(file: InputFile) -> Result<Document, Failure> {
    let shown = file.shown.clone();
    let bytes = file.whole("ask for one namespace, or with a selector (-l)")?;
    let document = holdup_collect::kubernetes::objects::read(&bytes).map_err(|why| {
        Failure::Unusable(format!("{shown}:{}: {why}; save the output of kubectl get pods -o json again", why.line))
    })?;
    if document.pods() + document.events() == 0 {
        let others = match document.others.is_empty() {
            true => "the list is empty".to_owned(),
            false => format!("it holds {}", document.others.join(", ")),
        };
        return Err(Failure::Unusable(format!(
            "{shown}: no pod and no event in it ({others}); save the output of kubectl get pods -o json or kubectl get events -o json"
        )));
    }
    Ok(document)
}

fn record(batch: Batch, title: &str, summary: &ClusterSummary, dir: &Path) -> Result<(), Failure> {
    let (from, to) = summary.span;
    let mut writer = Writer::new(title, dir);
    writer.put(from, batch)?;
    let coverage = summary.sources.iter().map(|(source, rows)| coverage(source, &[], *rows, 0));
    writer.finish((from, Some(to)), coverage.collect())
}

/// Summary of an import, for the user.
struct ClusterSummary {
    names: Vec<String>,
    pods: usize,
    events: usize,
    others: Vec<String>,
    span: (i64, i64),
    /// Rows of each source.
    sources: BTreeMap<String, u64>,
    /// How often each kind of event with each reason happened.
    happened: BTreeMap<(String, String), u64>,
    settings: BTreeMap<String, String>,
}

impl ClusterSummary {
    fn from_documents(names: &[String], documents: &[Document], batch: &Batch) -> Self {
        let times = batch.events.iter().map(|event| event.observed_at);
        let times = times.chain(batch.samples.iter().map(|sample| sample.observed_at));
        let times = || times.clone().chain(batch.settings.iter().map(|setting| setting.observed_at));
        let now = clock::now_ns();
        let mut sources = BTreeMap::new();
        let seen = batch.events.iter().map(|it| &it.source).chain(batch.samples.iter().map(|it| &it.source));
        for source in seen.chain(batch.settings.iter().map(|it| &it.source)) {
            *sources.entry(source.clone()).or_default() += 1;
        }
        let mut happened = BTreeMap::new();
        for event in &batch.events {
            let label = |name| event.labels.get(name);
            let what = label("why").or(label("reason")).unwrap_or_default().to_owned();
            let count = label("count").or(label("restarts")).and_then(|count| count.parse().ok()).unwrap_or(1);
            *happened.entry((event.kind.clone(), what)).or_default() += count;
        }
        let settings = batch.settings.iter().map(|it| (format!("{} {}", it.source, it.name), it.value.clone()));
        let mut others: Vec<String> = documents.iter().flat_map(|document| document.others.clone()).collect();
        others.sort();
        others.dedup();
        Self {
            names: names.to_vec(),
            pods: documents.iter().map(Document::pods).sum(),
            events: documents.iter().map(Document::events).sum(),
            others,
            span: (times().min().unwrap_or(now), times().max().unwrap_or(now)),
            sources,
            happened,
            settings: settings.collect(),
        }
    }

    /// The summary as text.
    fn text(&self, dir: &Path) -> String {
        let (from, to) = (clock::rfc3339(self.span.0), clock::rfc3339(self.span.1));
        let mut text = format!("{} pods, {} events from {from} to {to} -> {}\n", self.pods, self.events, dir.display());
        for name in &self.names {
            text += &format!("  {name:<24} kubectl -o json\n");
        }
        if !self.others.is_empty() {
            text += &format!("note: left out: {}\n", self.others.join(", "));
        }
        for (name, value) in self.settings.iter().take(SHOWN) {
            text += &format!("{name} = {value}\n");
        }
        if self.settings.len() > SHOWN {
            text += &format!("and {} more settings: --json has them all\n", self.settings.len() - SHOWN);
        }
        let mut happened: Vec<_> = self.happened.iter().collect();
        happened.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for ((kind, what), count) in happened.iter().take(SHOWN) {
            text += &format!("{count:>8}  {kind}  {what}\n");
        }
        text
    }

    /// The summary as JSON.
    fn json(&self, dir: &Path) -> serde_json::Value {
        let happened = self
            .happened
            .iter()
            .map(|((kind, what), count)| serde_json::json!({ "kind": kind, "what": what, "count": count }));
        serde_json::json!({
            "recording": dir.display().to_string(),
            "files": self.names,
            "pods": self.pods,
            "events": self.events,
            "left_out": self.others,
            "from": clock::rfc3339(self.span.0),
            "to": clock::rfc3339(self.span.1),
            "sources": self.sources.keys().collect::<Vec<_>>(),
            "settings": self.settings,
            "happened": happened.collect::<Vec<_>>(),
        })
    }
}
