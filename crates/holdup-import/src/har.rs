//! HAR files: the recording of one session by a browser or a proxy. It takes the requests to one
//! host, in their order. Pauses between them become think time. Values that responses returned and
//! later requests sent back are captured.

mod chosen;
mod request;
mod thread;

use crate::document::{self, Node};
use crate::note::Notes;
use crate::scenario::{Body, Load, Phase, Request, Scenario, Session, Step};
use crate::secret::Secrets;
use crate::template::{UsedNames, label};
use crate::{Conversion, ImportError, Options, target};

use chosen::Entry;
use std::collections::HashSet;
use std::time::Duration;

/// A recording that is being converted to a scenario.
struct Recording {
    notes: Notes,
    secrets: Secrets,
    used_names: UsedNames,
}

/// Shortest pause that counts as thinking rather than as the browser's own work, milliseconds.
const SHORTEST_PAUSE_MS: i64 = 1_000;

/// The same at the start of another page.
const SHORTEST_PAUSE_BETWEEN_PAGES_MS: i64 = 100;

/// Reads a recording.
///
/// # Errors
///
/// If it is not a HAR file, or no request in it can be sent.
pub fn read(text: &str, file: &str, options: &Options) -> Result<Conversion, ImportError> {
    let root = document::json(text, file)?;
    let wrong = |line: usize, why: String| ImportError::new(file, line, why);
    let log = root.get("log").unwrap_or(&root);
    let entries = log
        .get("entries")
        .ok_or_else(|| wrong(root.line, "this is not a HAR file: log.entries is missing".to_owned()))?;
    let base = options.base_url.as_deref().map(target::base).transpose().map_err(|why| ImportError::new("", 0, why))?;
    let mut recording =
        Recording { notes: Notes::default(), secrets: Secrets::default(), used_names: UsedNames::default() };
    let (origin, chosen) = recording.choose(entries.items(), options).map_err(|why| wrong(entries.line, why))?;
    let prefix = base.as_ref().map_or("", |(_, prefix)| prefix.as_str());
    let mut scenario = Scenario {
        name: label(&format!("{} as recorded", origin.host)),
        target: base.as_ref().map_or(&origin, |(base, _)| base).to_string(),
        about: about(log),
        ..Scenario::default()
    };
    let used = recording.threads(&chosen);
    let mut requests = Vec::new();
    for (index, entry) in chosen.iter().enumerate() {
        requests.push(recording.request(entry, index, &used, prefix));
    }
    recording.captures(&mut requests, &used);
    request::name(&mut requests);
    if chosen.iter().any(|entry| matches!(entry.status, 301 | 302 | 303 | 307 | 308)) {
        // Each redirect is a request of its own in the recording.
        scenario.http.push(("redirects", "0".to_owned()));
    }
    if chosen.iter().all(|entry| entry.is_http2) && scenario.target.starts_with("https") {
        scenario.http.push(("version", "2".to_owned()));
    }
    let steps = recording.steps(&chosen, requests, log);
    scenario.body = Body::Sessions(vec![Session { name: "session".to_owned(), weight: 1, steps }]);
    scenario.load = Load::Open {
        phases: vec![Phase::Rate(1.0, Duration::from_secs(60))],
        of_sessions: true,
        is_poisson: false,
        connections: None,
        timeout: None,
        comment: "The file is one session: set here how many sessions there are.".to_owned(),
    };
    scenario.secrets = recording.secrets.names();
    scenario.hoist_headers(&HashSet::new());
    Ok(Conversion { scenario, notes: recording.notes.finish(), disabled: 0 })
}

fn about(log: &Node) -> Vec<String> {
    let text = |path: &[&str]| log.at(path).and_then(Node::text).unwrap_or_default();
    let creator = format!("{} {}", text(&["creator", "name"]), text(&["creator", "version"]));
    if creator.trim().is_empty() { Vec::new() } else { vec![format!("Recorded by {}.", label(&creator))] }
}

impl Recording {
    /// Requests with the pauses between them, by page.
    fn steps(&mut self, chosen: &[Entry<'_>], requests: Vec<Request>, log: &Node) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let mut open: Option<(String, Vec<Step>)> = None;
        let mut page: Option<&str> = None;
        let mut end_ms: Option<i64> = None;
        let mut overlaps = 0;
        let close = |open: &mut Option<(String, Vec<Step>)>, steps: &mut Vec<Step>| {
            if let Some((name, inner)) = open.take() {
                steps.push(Step::Group { name, steps: inner });
            }
        };
        for (entry, request) in chosen.iter().zip(requests) {
            let is_new_page = entry.page != page || end_ms.is_none();
            if let (Some(start), Some(end)) = (entry.start_ms, end_ms) {
                let gap = start - end;
                overlaps += usize::from(gap < 0);
                let shortest = if is_new_page { SHORTEST_PAUSE_BETWEEN_PAGES_MS } else { SHORTEST_PAUSE_MS };
                if gap >= shortest {
                    if is_new_page {
                        close(&mut open, &mut steps);
                    }
                    let pause = Duration::from_millis((gap as u64 + 50) / 100 * 100);
                    let think = Step::Think(crate::load::length(pause));
                    open.as_mut().map_or(&mut steps, |(_, inner)| inner).push(think);
                }
            }
            if is_new_page {
                close(&mut open, &mut steps);
                page = entry.page;
                open = page.and_then(|id| page_name(log, id)).map(|name| (name, Vec::new()));
            }
            open.as_mut().map_or(&mut steps, |(_, inner)| inner).push(Step::Request(Box::new(request)));
            if let Some(start) = entry.start_ms {
                let end = start.saturating_add(entry.took_ms);
                end_ms = Some(end_ms.map_or(end, |known| known.max(end)));
            }
        }
        close(&mut open, &mut steps);
        if overlaps > 0 {
            let why = format!("{overlaps} began during another one; the scenario sends them one after the other");
            self.notes.changed("requests", 0, why);
        }
        steps
    }
}

/// The name of a page: its title, or the path of an address.
fn page_name(log: &Node, id: &str) -> Option<String> {
    let page = log.get("pages")?.items().iter().find(|page| page.get("id").and_then(Node::text) == Some(id))?;
    let title = page.get("title").and_then(Node::text).filter(|t| !t.trim().is_empty()).unwrap_or(id);
    let name = match target::Origin::split(title) {
        Some((_, path)) => path.split('?').next().unwrap_or("/").to_owned(),
        None => title.to_owned(),
    };
    let name = label(&name);
    (!name.is_empty()).then_some(name)
}
