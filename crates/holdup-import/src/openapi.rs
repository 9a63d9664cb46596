//! OpenAPI descriptions, version 3: every operation once, with values for its parameters and a body
//! made from examples, defaults and schemas, and its credentials as secrets.

mod operation;
mod sample;
mod security;

use crate::document::{self, Node};
use crate::note::{Kind, Notes};
use crate::scenario::{Body, Load, Phase, Scenario, Var};
use crate::secret::Secrets;
use crate::target::{self, Origin, path_part};
use crate::template::{UsedNames, label, literal};
use crate::{Conversion, ImportError, Options};

use std::time::Duration;

/// A description that is being converted to a scenario.
struct Description<'a> {
    root: &'a Node,
    notes: Notes,
    secrets: Secrets,
    used_names: UsedNames,
    vars: Vec<Var>,
    names: std::collections::HashSet<String>,
    /// Schemas that a sample is being made from: one may contain itself.
    open: Vec<&'a Node>,
}

/// Longest chain of references to references.
const LONGEST_CHAIN: usize = 32;

/// Most operations.
const MOST_OPERATIONS: usize = 10_000;

/// Reads a description in JSON or YAML.
///
/// # Errors
///
/// If its version is not 3, or no operation in it can be sent.
pub fn read(text: &str, file: &str, options: &Options) -> Result<Conversion, ImportError> {
    let root = document::any(text, file)?;
    let wrong = |line: usize, why: &str| ImportError::new(file, line, why);
    if let Some(old) = root.get("swagger") {
        return Err(wrong(old.line, "this is Swagger 2.0; convert it to OpenAPI 3 first, e.g. with swagger2openapi"));
    }
    let version = root
        .get("openapi")
        .ok_or_else(|| wrong(root.line, "this is not an OpenAPI description: \"openapi\" is missing"))?;
    if !version.as_text().is_some_and(|v| v.starts_with('3')) {
        return Err(wrong(version.line, "holdup reads only version 3 of OpenAPI"));
    }
    let mut description = Description {
        root: &root,
        notes: Notes::default(),
        secrets: Secrets::default(),
        used_names: UsedNames::default(),
        vars: Vec::new(),
        names: std::collections::HashSet::new(),
        open: Vec::new(),
    };
    let title = root.at(&["info", "title"]).and_then(Node::text).unwrap_or("api");
    let mut scenario = Scenario { name: label(title), ..Scenario::default() };
    if scenario.name.is_empty() {
        "api".clone_into(&mut scenario.name);
    }
    let prefix = description.target(&mut scenario, options).map_err(|(line, why)| wrong(line, &why))?;
    let mut operations = Vec::new();
    for (path, item) in root.get("paths").map_or(&[][..], Node::entries) {
        if path.starts_with("x-") {
            continue;
        }
        operations.extend(description.path(path, item, &prefix));
        if operations.len() > MOST_OPERATIONS {
            return Err(wrong(item.line, "it has more than 10,000 operations"));
        }
    }
    if operations.is_empty() {
        return Err(wrong(root.line, "it has no operation that can be sent"));
    }
    if let Some(node) = root.get("webhooks") {
        let why = "the service sends these requests, it does not receive them";
        description.notes.left_out("webhooks", node.line, why);
    }
    let writes = operations.iter().filter(|r| matches!(r.method.as_str(), "post" | "put" | "patch" | "delete")).count();
    if writes > 0 {
        scenario
            .about
            .push(format!("{writes} of the operations change or delete data: run it where that does no harm."));
    }
    scenario
        .about
        .push("Values are the description's examples and defaults, else made up: check that they exist.".to_owned());
    scenario.load = Load::Open {
        phases: vec![Phase::Rate(10.0, Duration::from_secs(60))],
        of_sessions: false,
        is_poisson: false,
        connections: None,
        timeout: None,
        comment: "A description has neither a load nor shares of operations: set them here and with weights."
            .to_owned(),
    };
    scenario.body = Body::Operations(operations);
    scenario.vars = description.vars;
    scenario.secrets = description.secrets.names();
    let known = scenario.vars.iter().map(|var| var.name.clone()).collect();
    scenario.hoist_headers(&known);
    Ok(Conversion { scenario, notes: description.notes.finish(), disabled: 0 })
}

impl<'a> Description<'a> {
    /// Sets the target. Returns the path that the server's address puts before all others.
    fn target(&mut self, scenario: &mut Scenario, options: &Options) -> Result<String, (usize, String)> {
        let servers = self.root.get("servers");
        let first = servers.and_then(|s| s.items().first());
        let url = first.map(server_url).unwrap_or_default();
        if let Some(base) = &options.base_url {
            let (origin, prefix) = target::base(base).map_err(|why| (0, why))?;
            scenario.target = origin.to_string();
            // If the base has no path, the path of the description's server still precedes its
            // operations.
            let own = Origin::split(&url).map_or_else(|| url.clone(), |(_, path)| path);
            let own = if own.starts_with('/') { path_part(own.trim_end_matches('/')) } else { String::new() };
            return Ok(if prefix.is_empty() { own } else { prefix });
        }
        let Some((origin, path)) = Origin::split(&url) else {
            let line = servers.map_or(self.root.line, |s| s.line);
            let what = if url.is_empty() {
                "it names no server".to_owned()
            } else {
                format!("its server \"{}\" is not a complete address", label(&url))
            };
            return Err((line, format!("{what}; give the target with --base-url http://host:port")));
        };
        scenario.target = origin.to_string();
        for other in servers.map_or(&[][..], Node::items).iter().skip(1) {
            let why = format!("a scenario has one target, {origin}");
            self.notes.add(
                Kind::LeftOut,
                format!("server {}", label(&server_url(other))),
                other.line,
                why,
                "for another one: --base-url",
            );
        }
        Ok(path_part(path.split('?').next().unwrap_or_default().trim_end_matches('/')))
    }

    /// The target of a reference, or the node itself if it is not one.
    fn resolve(&self, node: &'a Node) -> Option<&'a Node> {
        let mut node = node;
        for _ in 0..LONGEST_CHAIN {
            let Some(reference) = node.get("$ref").and_then(Node::text) else { return Some(node) };
            node = self.find(reference)?;
        }
        None
    }

    /// A place of the description: `#/components/schemas/Order`.
    fn find(&self, reference: &str) -> Option<&'a Node> {
        let mut node = self.root;
        for part in reference.strip_prefix("#/")?.split('/') {
            let part = crate::content::decoded(&part.replace('+', "%2B"))?.replace("~1", "/").replace("~0", "~");
            node = match part.parse::<usize>() {
                Ok(index) if !node.items().is_empty() => node.items().get(index)?,
                _ => node.get(&part)?,
            };
        }
        Some(node)
    }

    /// A text among `vars`.
    fn var(&mut self, wanted: &str, value: String) -> String {
        let name = self.used_names.name(wanted);
        self.vars.push(Var { name: name.clone(), value, comment: String::new() });
        name
    }
}

/// A server's address with its variables at their defaults.
fn server_url(server: &Node) -> String {
    let mut url = server.get("url").and_then(Node::text).unwrap_or_default().to_owned();
    for (name, variable) in server.get("variables").map_or(&[][..], Node::entries).iter().take(100) {
        let default = variable.get("default").and_then(Node::as_text).unwrap_or_default();
        if url.len() < 8_192 {
            url = url.replace(&format!("{{{name}}}"), &default);
        }
    }
    url
}

/// A plain value as a template.
fn plain(node: &Node) -> Option<String> {
    node.as_text().map(|text| literal(&text))
}
