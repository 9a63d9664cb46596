//! JMeter's test plans. In a plan, position decides which header manager, timer or assertion
//! applies to which sampler; the scenario has the result at each request. Thread groups become the
//! load.

mod assertion;
mod auth;
mod condition;
mod element;
mod expression;
mod extractor;
mod group;
mod look;
mod names;
mod piece;
mod sampler;
mod schedule;
mod threads;
mod timer;
mod variables;
mod walk;

use crate::note::{Kind, Notes};
use crate::scenario::{Body, Scenario, Session, Step};
use crate::target::{self, Origin};
use crate::{Conversion, ImportError, Options, used, xml};

use element::Element;
use group::Shape;
use names::Names;

/// Most times that a manager, timer, assertion or extractor applies to a sampler: only hostile
/// plans have more.
const MOST_APPLIED: usize = 2_000_000;

/// A plan that is being converted to a scenario.
#[derive(Default)]
struct Plan<'a> {
    file: &'a str,
    names: Names,
    notes: Notes,
    /// The target of `--base-url`.
    base: Option<(Origin, String)>,
    has_cookies: bool,
    redirects: [usize; 2],
    /// Longest response timeout of a sampler, milliseconds.
    timeout_ms: Option<f64>,
    listeners: Vec<usize>,
    applied: usize,
}

/// Reads a plan.
///
/// # Errors
///
/// If it is not a plan, or has no request that can be sent.
pub fn read(text: &str, file: &str, options: &Options) -> Result<Conversion, ImportError> {
    let root = xml::parse(text, file)?;
    let wrong = |line: usize, why: &str| ImportError::new(file, line, why);
    if root.name != "jmeterTestPlan" {
        return Err(wrong(root.line, &format!("this is not a JMeter plan: it begins with <{}>", root.name)));
    }
    let mut disabled = 0;
    let tops = element::elements(&root, &mut disabled);
    let top = tops.iter().find(|e| e.class == "TestPlan").ok_or_else(|| wrong(1, "it has no TestPlan"))?;
    let base = options.base_url.as_deref().map(target::base).transpose().map_err(|why| ImportError::new("", 0, why))?;
    let mut notes = Notes::default();
    let names = variables::gather(&tops, &mut notes);
    let mut plan = Plan { file, names, notes, base, ..Plan::default() };
    let mut scenario = Scenario { name: crate::template::label(&top.name), ..Scenario::default() };
    if scenario.name.is_empty() {
        "imported".clone_into(&mut scenario.name);
    }
    if let Some(words) = top.text("TestPlan.comments").filter(|text| !text.trim().is_empty()) {
        scenario.about.extend(words.trim().lines().map(str::to_owned));
    }
    for other in tops.iter().filter(|e| e.class != "TestPlan") {
        plan.look_at_rest(other);
    }
    plan.groups(top, options, &mut scenario)?;
    plan.finish(&mut scenario)?;
    if scenario.requests() == 0 {
        return Err(wrong(top.line, "none of its HTTP samplers can be sent; --json lists what was left out"));
    }
    Ok(Conversion { scenario, notes: plan.notes.finish(), disabled })
}

impl Plan<'_> {
    /// Notes an element that is not carried over.
    fn left_out(&mut self, element: &Element<'_>, why: &str, advice: &str) {
        self.notes.add(Kind::LeftOut, element.title(), element.line, why, advice);
    }

    /// Notes an element that behaves differently here.
    fn changed(&mut self, element: &Element<'_>, why: impl Into<String>, advice: impl Into<String>) {
        self.notes.add(Kind::Changed, element.title(), element.line, why, advice);
    }

    fn wrong(&self, line: usize, why: impl Into<String>) -> ImportError {
        ImportError::new(self.file, line, why)
    }

    /// Converts the thread groups: sessions, the steps before and after them, the load.
    fn groups(&mut self, top: &Element<'_>, options: &Options, scenario: &mut Scenario) -> Result<(), ImportError> {
        let mut shapes: Vec<Shape> = Vec::new();
        let mut seen = Vec::new();
        for child in &top.children {
            match child.class.as_str() {
                "SetupThreadGroup" => scenario.setup.extend(self.once(top, child)?),
                "PostThreadGroup" => scenario.teardown.extend(self.once(top, child)?),
                "TestFragmentController" => {
                    self.left_out(child, "a fragment runs only where a controller includes it", "")
                }
                class if group::is_group(class) => {
                    seen.push(child.name.clone());
                    match &options.thread_group {
                        Some(wanted) if *wanted != child.name => {
                            self.left_out(child, "another thread group was selected", "");
                        }
                        _ => shapes.push(self.group(top, child)?),
                    }
                }
                _ => self.look_at(child),
            }
        }
        if shapes.is_empty() && scenario.setup.is_empty() {
            let why = match &options.thread_group {
                Some(wanted) => {
                    format!("no thread group is called \"{wanted}\"; its thread groups: {}", seen.join(", "))
                }
                None => "it has no enabled thread group".to_owned(),
            };
            return Err(self.wrong(top.line, why));
        }
        let (load, sessions) = self.join(shapes);
        scenario.load = load;
        scenario.body = Body::Sessions(sessions);
        Ok(())
    }

    /// The target, and settings that all requests share.
    fn finish(&mut self, scenario: &mut Scenario) -> Result<(), ImportError> {
        self.one_target(scenario)?;
        if !self.has_cookies {
            // Sessions keep cookies unless the plan says otherwise.
            scenario.http.push(("cookies", "false".to_owned()));
        }
        let [stays, follows] = self.redirects;
        if follows == 0 {
            scenario.http.push(("redirects", "0".to_owned()));
        } else if stays > 0 {
            let why = format!("{stays} samplers do not follow redirects, {follows} do; in the scenario all do");
            self.notes.changed("HTTP samplers", 0, why);
        }
        if !self.listeners.is_empty() {
            let mut lines = std::mem::take(&mut self.listeners);
            lines.sort_unstable();
            for line in lines {
                self.notes.left_out("listeners", line, "holdup records these figures by itself");
            }
        }
        scenario.feeders = std::mem::take(&mut self.names.feeders);
        let mut known: std::collections::HashSet<String> =
            self.names.set_once.iter().map(|(name, _)| name.clone()).collect();
        self.set_once(scenario);
        self.fill_in(scenario);
        scenario.vars = std::mem::take(&mut self.names.vars);
        scenario.secrets = std::mem::take(&mut self.names.secrets).names();
        // Only constant texts: others may hold a value that a session finds.
        let texts = scenario.vars.iter().filter(|var| !var.value.contains("${") || var.value.starts_with("${secret."));
        known.extend(texts.map(|var| var.name.clone()));
        scenario.hoist_headers(&known);
        used::keep_vars(scenario);
        scenario.slowest_to_thresholds();
        Ok(())
    }

    /// Values that JMeter computes once, before anything runs: in the set-up if the plan has one,
    /// else when a session begins.
    fn set_once(&mut self, scenario: &mut Scenario) {
        let values = std::mem::take(&mut self.names.set_once);
        if values.is_empty() {
            return;
        }
        if crate::scenario::count(&scenario.setup) > 0 {
            return scenario.setup.insert(0, Step::Set(values));
        }
        let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
        let why = "each session computes them anew; JMeter computes them once";
        self.notes.changed(format!("variables {}", names.join(", ")), 0, why);
        if let Body::Sessions(sessions) = &mut scenario.body {
            sessions.iter_mut().for_each(|session| session.steps.insert(0, Step::Set(values.clone())));
        }
    }

    /// Variables that are used, but whose source was left out: texts among `vars` that can get a
    /// value.
    fn fill_in(&mut self, scenario: &mut Scenario) {
        let (used, set) = used::names(scenario);
        let mut lists = Vec::new();
        for (name, own, is_list) in self.names.variables() {
            let is_text = self.names.vars.iter().any(|var| var.name == own);
            if is_text || set.contains(&own) || !used.contains(&own) {
                continue;
            }
            let why = "it is used, but nothing in the scenario sets it";
            self.notes.add(
                Kind::LeftOut,
                format!("variable \"{name}\""),
                0,
                why,
                "capture it, or give it a value in vars or with --var",
            );
            let value = crate::template::literal(&format!("${{{own}}}"));
            if is_list {
                lists.push((own, value));
            } else {
                let comment = "nothing in the scenario sets it".to_owned();
                self.names.vars.push(crate::scenario::Var { name: own, value, comment });
            }
        }
        if let (false, Body::Sessions(sessions)) = (lists.is_empty(), &mut scenario.body) {
            sessions.iter_mut().for_each(|session| session.steps.insert(0, Step::Set(lists.clone())));
        }
    }

    /// Chooses the target of most requests, and removes requests to others.
    fn one_target(&mut self, scenario: &mut Scenario) -> Result<(), ImportError> {
        let mut counts: Vec<(Option<Origin>, usize)> = Vec::new();
        scenario.each_request(&mut |request| match counts.iter_mut().find(|(origin, _)| *origin == request.origin) {
            Some((_, count)) => *count += 1,
            None => counts.push((request.origin.clone(), 1)),
        });
        let best = counts.iter().filter(|(origin, _)| origin.is_some()).rev().max_by_key(|(_, count)| *count);
        let main = best.and_then(|(origin, _)| origin.clone());
        let (target, prefix) = match (&self.base, &main) {
            (Some((base, prefix)), _) => (base.clone(), prefix.clone()),
            (None, Some(main)) => (main.clone(), String::new()),
            (None, None) => {
                let why = "no HTTP sampler names its server; give it with --base-url http://host:port";
                return Err(self.wrong(0, why));
            }
        };
        scenario.target = target.to_string();
        let mut gone: Vec<(String, usize, Origin)> = Vec::new();
        let mut keep = |request: &mut crate::scenario::Request| match &request.origin {
            Some(origin) if Some(origin) != main.as_ref() && *origin != target => {
                gone.push((request.name.clone(), request.line, origin.clone()));
                false
            }
            _ => {
                request.path = if request.path == "/" && !prefix.is_empty() {
                    prefix.clone()
                } else {
                    format!("{prefix}{}", request.path)
                };
                true
            }
        };
        let Body::Sessions(sessions) = &mut scenario.body else { return Ok(()) };
        let lists = sessions.iter_mut().map(|session| &mut session.steps);
        for steps in lists.chain([&mut scenario.setup, &mut scenario.teardown]) {
            crate::scenario::keep_requests(steps, &mut keep);
        }
        sessions.retain(|session: &Session| crate::scenario::count(&session.steps) > 0);
        for (name, line, origin) in gone {
            let why = format!("it goes to {origin}, and a scenario has one target, {}", scenario.target);
            self.notes.add(Kind::LeftOut, format!("request \"{name}\""), line, why, "import it as a separate scenario");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan with nothing in it, for tests of its parts.
    pub(super) fn plan() -> Plan<'static> {
        Plan { file: "f", ..Plan::default() }
    }
}
