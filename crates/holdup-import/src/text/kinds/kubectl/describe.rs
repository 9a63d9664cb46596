//! `kubectl describe pod`: limits, requests and probes of its containers, how often and why they
//! were restarted, and its events.

use holdup_recording::{Labels, metrics};

use super::super::{Columns, Context, Kind, Line, Row, clock, spaced, text};
use super::events::in_braces;
use super::happened::{self, Happened};
use super::{age_ns, bytes, millicores, probe, repeated, shown, source};

pub(in super::super) const KIND: Kind = Kind::lines("kubectl describe pod", recognises, read);

/// Lines in which a description shows that it is one of a pod.
const HEAD_LINES: usize = 80;

fn recognises(lines: &[Line]) -> bool {
    is_top(text(lines, 0), "Name:")
        && lines.iter().take(4).any(|line| is_top(&line.text, "Namespace:"))
        && lines.iter().take(HEAD_LINES).any(|line| is_top(&line.text, "Containers:"))
}

/// Whether a line that is not indented begins with a key.
fn is_top(line: &str, key: &str) -> bool {
    line.starts_with(key)
}

/// The key and the value of `  Restart Count:  4`.
fn pair(line: &str) -> (usize, &str, &str) {
    let indent = line.len() - line.trim_start().len();
    let (key, value) = line.trim().split_once(':').unwrap_or((line.trim(), ""));
    (indent, key, value.trim())
}

/// What a description says of one container.
#[derive(Default)]
struct Container {
    name: String,
    settings: Vec<(String, String)>,
    is_ready: Option<bool>,
    restarts: Option<u32>,
    now: State,
    last: State,
}

/// A state of a container: `Waiting`, `Running`, `Terminated`.
#[derive(Default)]
struct State {
    is: String,
    reason: String,
    exit_code: Option<i64>,
    finished: Option<i64>,
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let end = (1..lines.len()).find(|at| is_top(text(lines, *at), "Name:")).unwrap_or(lines.len());
    let lines = lines.get(..end).unwrap_or(lines);
    let value = |key: &str| lines.iter().find(|line| is_top(&line.text, key)).map(|line| pair(&line.text).2);
    // Several pods are described at one moment.
    let now = context.instant();
    let source = source(value("Namespace:").unwrap_or("default"), value("Name:"));
    for (name, key) in [("pod.node", "Node:"), ("pod.qos_class", "QoS Class:")] {
        // A node is followed by its address.
        let value = value(key).and_then(|value| value.split('/').next()).filter(|value| !value.is_empty());
        if let Some(value) = value {
            context.out.setting(now, &source, name, value);
        }
    }
    let mut section = "";
    let mut own: Vec<Container> = Vec::new();
    let mut below = Below::default();
    let mut used = lines.len();
    for (place, line) in lines.iter().enumerate() {
        let (indent, key, value) = pair(&line.text);
        if indent == 0 && !line.is_blank() {
            section = key;
            below = Below::default();
            if key == "Events" {
                used = events(lines, place + 1, &source, context);
                break;
            }
        } else if matches!(section, "Containers" | "Init Containers") {
            container(indent, (key, value), &mut below, &mut own);
        }
    }
    for container in own {
        container.put(now, &source, context);
    }
    used
}

/// Where in a container's description a line is.
#[derive(Default)]
struct Below {
    /// The heading that the line is below.
    heading: String,
    indent: usize,
}

fn container(indent: usize, (key, value): (&str, &str), below: &mut Below, all: &mut Vec<Container>) {
    if indent <= 2 {
        let name = key.chars().take(253).collect();
        all.push(Container { name, ..Container::default() });
        below.heading.clear();
        return;
    }
    let Some(one) = all.last_mut() else { return };
    // Lines further in belong to the heading before them.
    if below.heading.is_empty() || indent <= below.indent {
        key.clone_into(&mut below.heading);
        below.indent = indent;
        return match key {
            "State" => value.clone_into(&mut one.now.is),
            "Last State" => value.clone_into(&mut one.last.is),
            "Ready" => one.is_ready = Some(value == "True"),
            "Restart Count" => one.restarts = value.parse().ok(),
            "Image" => one.settings.push(("image".to_owned(), value.to_owned())),
            "Liveness" | "Readiness" | "Startup" => {
                let name = format!("{}_probe", key.to_ascii_lowercase());
                one.settings.extend(probe::setting(value).map(|text| (name, text)));
            }
            _ => {}
        };
    }
    let state = match below.heading.as_str() {
        "State" => &mut one.now,
        "Last State" => &mut one.last,
        "Limits" | "Requests" => {
            let which = if below.heading == "Limits" { "limit" } else { "request" };
            let setting = match key {
                "cpu" => {
                    millicores(value).map(|millicores| (format!("cpu_{which}_millicores"), millicores.to_string()))
                }
                "memory" => bytes(value).map(|bytes| (format!("memory_{which}_bytes"), bytes.to_string())),
                _ => None,
            };
            one.settings.extend(setting);
            return;
        }
        _ => return,
    };
    match key {
        "Reason" => state.reason = shown(value),
        "Exit Code" => state.exit_code = value.parse().ok(),
        "Finished" => state.finished = clock::with_offset(value),
        _ => {}
    }
}

impl Container {
    fn put(&self, now: i64, source: &str, context: &mut Context) {
        let name = self.name.as_str();
        for (what, value) in &self.settings {
            context.out.setting(now, source, format!("container.{name}.{what}"), value);
        }
        let labels = || Labels::new([("container", name)]);
        if let Some(restarts) = self.restarts {
            context.out.gauge(now, source, metrics::kubernetes::RESTARTS.name, labels(), f64::from(restarts));
        }
        if let Some(is_ready) = self.is_ready {
            let ready = if is_ready { 1.0 } else { 0.0 };
            context.out.gauge(now, source, metrics::kubernetes::READY.name, labels(), ready);
        }
        if self.last.is == "Terminated" {
            let State { reason, exit_code, finished, .. } = &self.last;
            let reason = if reason.is_empty() { "unknown" } else { reason };
            let code = exit_code.map_or_else(String::new, |code| format!(", exit code {code}"));
            let text = format!("container {name} ended and was restarted: {reason}{code}");
            let mut labels = labels().with("reason", reason).with("restarts", "1");
            if let Some(code) = exit_code {
                labels = labels.with("exit_code", code.to_string());
            }
            // Shells and runtimes exit with 128 plus the number of the signal.
            if let Some(signal) = exit_code.filter(|code| (129..=192).contains(code)).map(|code| code - 128) {
                labels = labels.with("signal", signal.to_string());
            }
            happened::put(context, finished.unwrap_or(now), source, "container_restarted", text, labels);
        }
        let waits = &self.now.reason;
        if self.now.is == "Waiting" && !matches!(waits.as_str(), "" | "ContainerCreating" | "PodInitializing") {
            let text = format!("container {name} waits: {waits}");
            happened::put(context, now, source, "kubernetes", text, labels().with("reason", waits.as_str()));
        }
    }
}

/// Reads the table of events whose header is line `from`; returns the line behind it.
fn events(lines: &[Line], from: usize, source: &str, context: &mut Context) -> usize {
    let (header, now) = (spaced(text(lines, from)), context.now());
    let columns = Columns::above_cells(&header);
    if !text(lines, from).starts_with(' ') || !columns.has(&["Reason", "Message"]) {
        return from;
    }
    let is_row = |line: &&Line| line.text.starts_with(' ');
    let rows = lines.iter().skip(from + 1).take_while(is_row).count();
    for (place, line) in lines.iter().enumerate().skip(from + 1).take(rows) {
        if line.text.trim_start().starts_with("--") {
            continue;
        }
        let spaced = spaced(&line.text);
        match columns.cells(&spaced).and_then(|row| event(&row, source, now)) {
            Some(happened) => happened.put(context),
            None => context.unread.push(place),
        }
    }
    from + 1 + rows
}

/// One line of the table of events.
fn event<'r>(row: &Row<'_, 'r>, source: &str, now: i64) -> Option<Happened<'r>> {
    let (last, over, count) = repeated(row.text(&["Age", "LastSeen"])?)?;
    let first = row.text(&["FirstSeen"]).and_then(age_ns).or(over);
    Some(Happened {
        source: source.to_owned(),
        first: first.map(|age| now.saturating_sub(age)),
        last: now.saturating_sub(last),
        count: row.text(&["Count"]).and_then(|count| count.parse().ok()).unwrap_or(count),
        reason: row.text(&["Reason"])?,
        message: row.text(&["Message"]).unwrap_or_default(),
        severity: row.text(&["Type"]).unwrap_or_default(),
        container: row.text(&["SubObjectPath", "SubobjectPath"]).and_then(in_braces),
        object: None,
    })
}
