//! Chooses requests of a recording: those to one host, without files that a browser loads by
//! itself.

use std::collections::BTreeMap;

use super::Recording;
use crate::Options;
use crate::document::Node;
use crate::moment;
use crate::note::Kind;
use crate::target::Origin;

/// A chosen request.
#[derive(Debug)]
pub struct Entry<'a> {
    pub node: &'a Node,
    pub request: &'a Node,
    pub line: usize,
    /// Lower case.
    pub method: String,
    pub path: String,
    pub status: i64,
    pub page: Option<&'a str>,
    pub start_ms: Option<i64>,
    pub took_ms: i64,
    pub is_http2: bool,
}

const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// Ends of paths of files that do not change between sessions.
const STATIC_ENDS: [&str; 22] = [
    ".css", ".js", ".mjs", ".map", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".ico", ".woff",
    ".woff2", ".ttf", ".otf", ".eot", ".mp4", ".webm", ".mp3", ".wasm", ".bmp",
];

impl Recording {
    /// The host, and its requests in order of their start.
    pub(super) fn choose<'a>(
        &mut self,
        entries: &'a [Node],
        options: &Options,
    ) -> Result<(Origin, Vec<Entry<'a>>), String> {
        let mut hosts: BTreeMap<Origin, (usize, usize)> = BTreeMap::new();
        let mut all = Vec::new();
        for node in entries {
            let Some(request) = node.get("request") else {
                self.notes.left_out("entry", node.line, "it contains no request");
                continue;
            };
            let url = request.get("url").and_then(Node::text).unwrap_or_default();
            let Some((origin, path)) = Origin::split(url) else {
                let scheme: String = url.split(':').next().unwrap_or_default().chars().take(20).collect();
                self.notes.left_out(format!("{scheme}: address"), node.line, "only http and https can be sent");
                continue;
            };
            let count = hosts.entry(origin.clone()).or_insert((0, node.line));
            count.0 += usize::from(options.static_files || !is_static(node, &path));
            all.push((origin, path, node, request));
        }
        if all.is_empty() {
            return Err("it contains no request that can be sent".to_owned());
        }
        let main = match &options.host {
            Some(wanted) => {
                let wanted = wanted.to_ascii_lowercase();
                let is_it = |origin: &&Origin| {
                    let port = origin.port.map_or(String::new(), |port| format!(":{port}"));
                    origin.host == wanted || format!("{}{port}", origin.host) == wanted || origin.to_string() == wanted
                };
                hosts
                    .iter()
                    .filter(|(origin, _)| is_it(origin))
                    .max_by_key(|(_, (count, _))| *count)
                    .map(|(origin, _)| origin.clone())
            }
            None => hosts.iter().rev().max_by_key(|(_, (count, _))| *count).map(|(origin, _)| origin.clone()),
        };
        let known: Vec<String> = hosts.keys().take(20).map(ToString::to_string).collect();
        let main = main.ok_or_else(|| format!("no request goes to that host; its hosts: {}", known.join(", ")))?;
        let mut chosen = self.take(&main, all, options);
        for (origin, (_, line)) in hosts.iter().filter(|(origin, _)| **origin != main) {
            let why = format!("a scenario has one target, {main}");
            self.notes.add(
                Kind::LeftOut,
                format!("requests to {origin}"),
                *line,
                why,
                format!("for a separate scenario: --host {}", origin.host),
            );
        }
        if chosen.is_empty() {
            return Err(format!("no request to {main} remains; --static also takes images, scripts and styles"));
        }
        chosen.sort_by_key(|entry| entry.start_ms.unwrap_or(i64::MIN));
        Ok((main, chosen))
    }

    fn take<'a>(
        &mut self,
        main: &Origin,
        all: Vec<(Origin, String, &'a Node, &'a Node)>,
        options: &Options,
    ) -> Vec<Entry<'a>> {
        let mut chosen = Vec::new();
        let (mut left, mut first) = (0, 0);
        for (origin, path, node, request) in all {
            if origin != *main {
                continue;
            }
            if !options.static_files && is_static(node, &path) {
                left += 1;
                first = if first == 0 { node.line } else { first };
                continue;
            }
            let method = request.get("method").and_then(Node::text).unwrap_or("GET").to_ascii_lowercase();
            let title = format!("{} {}", method.to_uppercase(), path.split('?').next().unwrap_or("/"));
            if !METHODS.contains(&method.as_str()) {
                self.notes.left_out(title, node.line, "scenarios do not have its method");
                continue;
            }
            let status =
                node.at(&["response", "status"]).and_then(Node::as_text).and_then(|s| s.parse().ok()).unwrap_or(-1);
            if status == 0 {
                self.notes.left_out(title, node.line, "it was blocked or given up, so it has no response");
                continue;
            }
            if status == 101 {
                self.notes.left_out(title, node.line, "holdup does not speak WebSocket");
                continue;
            }
            let number = |key: &str| node.get(key).and_then(Node::as_text).and_then(|t| t.parse::<f64>().ok());
            let version = request.get("httpVersion").and_then(Node::text).unwrap_or_default().to_ascii_lowercase();
            chosen.push(Entry {
                node,
                request,
                line: node.line,
                method,
                path,
                status,
                page: node.get("pageref").and_then(Node::text),
                start_ms: node.get("startedDateTime").and_then(Node::text).and_then(moment::unix_ms),
                took_ms: number("time").filter(|t| (0.0..1e9).contains(t)).unwrap_or(0.0) as i64,
                is_http2: matches!(version.as_str(), "h2" | "http/2" | "http/2.0"),
            });
        }
        if left > 0 {
            let why = format!("images, styles, scripts and fonts, which browsers keep in their cache: {left} in all");
            self.notes.add(Kind::LeftOut, "static files", first, why, "take them with --static");
        }
        chosen
    }
}

/// Whether it is a file that does not change between sessions.
fn is_static(node: &Node, path: &str) -> bool {
    if let Some(kind) = node.get("_resourceType").and_then(Node::text) {
        match kind {
            "stylesheet" | "script" | "image" | "font" | "media" | "manifest" => return true,
            "document" | "xhr" | "fetch" => return false,
            _ => {}
        }
    }
    let path = path.split('?').next().unwrap_or_default().to_ascii_lowercase();
    if STATIC_ENDS.iter().any(|end| path.ends_with(end)) {
        return true;
    }
    let kind = node.at(&["response", "content", "mimeType"]).and_then(Node::text).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    ["image/", "font/", "audio/", "video/"].iter().any(|start| kind.starts_with(start))
        || matches!(
            kind,
            "text/css" | "text/javascript" | "application/javascript" | "application/x-javascript" | "application/wasm"
        )
}
