//! A scenario in the making: what `docs/scenario.md` describes, as far as importers have a use for it. Texts are
//! holdup's templates already. It knows nothing of YAML.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value as Json;

use crate::target::Origin;

/// See the module.
#[derive(Debug, Default)]
pub struct Scenario {
    /// What it is called.
    pub name: String,
    /// What the file says of itself, as comments.
    pub about: Vec<String>,
    /// Where requests go.
    pub target: String,
    /// Keys of `http`.
    pub http: Vec<(&'static str, String)>,
    /// Texts with a name.
    pub vars: Vec<Var>,
    /// Environment variables that hold secrets.
    pub secrets: Vec<String>,
    /// Where rows come from.
    pub feeders: Vec<Feeder>,
    /// Header fields of every request.
    pub headers: Vec<(String, String)>,
    /// Once, before.
    pub setup: Vec<Step>,
    /// Once, after.
    pub teardown: Vec<Step>,
    /// How much, when.
    pub load: Load,
    /// What is sent.
    pub body: Body,
    /// Objectives.
    pub thresholds: Vec<String>,
}

/// What is sent.
#[derive(Debug)]
pub enum Body {
    /// Single requests by weight.
    Operations(Vec<Request>),
    /// Visits.
    Sessions(Vec<Session>),
}

impl Default for Body {
    fn default() -> Self {
        Self::Operations(Vec::new())
    }
}

/// A text with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Var {
    pub name: String,
    pub value: String,
    /// Said beside it; may be empty.
    pub comment: String,
}

/// Rows of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feeder {
    pub name: String,
    /// File with a header line.
    pub csv: String,
    /// `again`, `stop` or `fail`; nothing is the default.
    pub at_end: Option<&'static str>,
    /// Said beside it; may be empty.
    pub comment: String,
}

/// One kind of visit.
#[derive(Debug, Default)]
pub struct Session {
    pub name: String,
    pub weight: u32,
    pub steps: Vec<Step>,
}

/// One step of a visit.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Request(Box<Request>),
    /// As `think` takes it.
    Think(String),
    Repeat {
        count: String,
        counter: Option<String>,
        steps: Vec<Step>,
    },
    While {
        condition: String,
        steps: Vec<Step>,
    },
    During {
        length: String,
        steps: Vec<Step>,
    },
    ForEach {
        list: String,
        item: String,
        steps: Vec<Step>,
    },
    If {
        condition: String,
        steps: Vec<Step>,
        otherwise: Vec<Step>,
    },
    Choose(Vec<Vec<Step>>),
    InTurn(Vec<Vec<Step>>),
    Group {
        name: String,
        steps: Vec<Step>,
    },
    Set(Vec<(String, String)>),
    Feed(String),
    /// `session` or `run`.
    End(&'static str),
}

/// A request with its blanks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// What it is called; empty if its path will do.
    pub name: String,
    /// Lower case, as keys are.
    pub method: String,
    /// Path and query.
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub content: Content,
    /// Name, and the source as one text or with further keys.
    pub captures: Vec<(String, Capture)>,
    pub checks: Vec<String>,
    /// `go_on`, `end_session` or `stop`; nothing is the default.
    pub on_failure: Option<&'static str>,
    /// Said above it; may be empty.
    pub comment: String,
    /// Longest response time that is wanted.
    pub slowest: Option<Duration>,
    /// Where it is to go, if the file says so.
    pub origin: Option<Origin>,
    /// Where it stands in the file.
    pub line: usize,
}

/// What a request carries.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Content {
    #[default]
    None,
    Text(String),
    Json(Json),
    Form(Vec<(String, String)>),
    File(String),
}

/// What of a response is kept under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// `json`, `regex`, `header`, `cookie`; `status` and `body` have nothing after them.
    pub from: &'static str,
    /// What comes after it.
    pub what: String,
    /// `first` is the default.
    pub pick: Option<&'static str>,
    /// Instead of finding nothing.
    pub default: Option<String>,
}

/// How much, when.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// The rate does not wait for the service.
    Open {
        /// One after the other.
        phases: Vec<Phase>,
        /// Arrivals are sessions, not requests.
        of_sessions: bool,
        /// Arrivals are independent of each other.
        is_poisson: bool,
        /// Most in flight.
        connections: Option<u32>,
        timeout: Option<Duration>,
        /// Said above it; may be empty.
        comment: String,
    },
    /// So many users, one visit after the other.
    Closed {
        users: u32,
        /// From so many users to so many in so long, one after the other; instead of the number, if there are any.
        stages: Vec<(u32, u32, Duration)>,
        ramp_up: Option<Duration>,
        /// Visits in all.
        iterations: Option<u64>,
        duration: Option<Duration>,
        timeout: Option<Duration>,
        /// Said above it; may be empty.
        comment: String,
    },
}

/// A stretch of an open load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Phase {
    /// Arrivals per second.
    Rate(f64, Duration),
    /// From so many per second to so many.
    Ramp(f64, f64, Duration),
    Pause(Duration),
}

impl Phase {
    pub fn length(self) -> Duration {
        match self {
            Self::Rate(_, length) | Self::Ramp(_, _, length) | Self::Pause(length) => length,
        }
    }
}

impl Default for Load {
    fn default() -> Self {
        Self::Closed {
            users: 1,
            stages: Vec::new(),
            ramp_up: None,
            iterations: Some(1),
            duration: None,
            timeout: None,
            comment: String::new(),
        }
    }
}

impl Scenario {
    /// Places where a request is sent.
    pub fn requests(&self) -> usize {
        let body = match &self.body {
            Body::Operations(all) => all.len(),
            Body::Sessions(all) => all.iter().map(|s| count(&s.steps)).sum(),
        };
        body + count(&self.setup) + count(&self.teardown)
    }

    /// Drops the texts that no template uses: what they were for is the target's or the load's here.
    pub fn keep_used_vars(&mut self) {
        let vars = std::mem::take(&mut self.vars);
        let mut used = words_of_templates(&crate::write::body(self));
        loop {
            let before = used.len();
            let known: Vec<&Var> = vars.iter().filter(|var| used.contains(&var.name)).collect();
            let more: Vec<String> = known.iter().flat_map(|var| words_of_templates(&var.value)).collect();
            used.extend(more);
            if used.len() == before {
                break;
            }
        }
        self.vars = vars.into_iter().filter(|var| used.contains(&var.name)).collect();
    }

    /// Objectives of single requests as the run's.
    pub fn slowest_to_thresholds(&mut self) {
        let mut found = Vec::new();
        let Body::Sessions(all) = &self.body else { return };
        all.iter().for_each(|session| slowest(&session.steps, "", &mut found));
        for (name, limit) in found {
            let objective = format!("{name} max < {}", crate::load::length(limit)).trim_start().to_owned();
            if !self.thresholds.contains(&objective) {
                self.thresholds.push(objective);
            }
        }
    }

    /// Words that its templates use, and variables that its steps set.
    pub fn names(&self) -> (HashSet<String>, HashSet<String>) {
        let mut used = words_of_templates(&crate::write::body(self));
        let mut set = HashSet::new();
        if let Body::Sessions(all) = &self.body {
            all.iter().for_each(|session| names(&session.steps, &mut used, &mut set));
        }
        names(&self.setup, &mut used, &mut set);
        names(&self.teardown, &mut used, &mut set);
        (used, set)
    }

    /// Every request, to be changed.
    pub fn each_request(&mut self, change: &mut dyn FnMut(&mut Request)) {
        match &mut self.body {
            Body::Operations(all) => all.iter_mut().for_each(&mut *change),
            Body::Sessions(all) => all.iter_mut().for_each(|s| each(&mut s.steps, change)),
        }
        each(&mut self.setup, change);
        each(&mut self.teardown, change);
    }

    /// A header field that all requests have, most of them with the same value, is said once: `known` are the names
    /// that have a value before any request.
    pub fn hoist_headers(&mut self, known: &HashSet<String>) {
        let total = self.requests();
        if total < 2 {
            return;
        }
        // Name, how many requests have it, and its values with how many have each.
        let mut fields: Vec<(String, usize, Counts)> = Vec::new();
        self.each_request(&mut |request| {
            for (name, value) in &request.headers {
                let at = fields.iter().position(|(n, ..)| n == name).unwrap_or_else(|| {
                    fields.push((name.clone(), 0, Vec::new()));
                    fields.len() - 1
                });
                let (_, count, values) = &mut fields[at];
                *count += 1;
                let is_room = values.len() < 16;
                match values.iter_mut().find(|(v, _)| v == value) {
                    Some((_, count)) => *count += 1,
                    // A value that differs from request to request will not be the most common one.
                    None if is_room => values.push((value.clone(), 1)),
                    None => {}
                }
            }
        });
        let is_known = |value: &str| {
            words_of_templates(value)
                .iter()
                .all(|word| KNOWN.contains(&word.as_str()) || known.contains(word) || self.secrets.contains(word))
        };
        let mut shared: Vec<(String, String)> = Vec::new();
        for (name, count, values) in fields {
            let best = values
                .into_iter()
                .rev()
                .max_by_key(|(_, count)| *count)
                .filter(|(_, count)| *count * 2 >= total && *count > 1);
            if let Some((value, _)) = best.filter(|(value, _)| count == total && is_known(value)) {
                shared.push((name, value));
            }
        }
        self.each_request(&mut |request| request.headers.retain(|field| !shared.contains(field)));
        self.headers.extend(shared);
    }
}

/// Every word within a template in `text`.
fn words_of_templates(text: &str) -> HashSet<String> {
    let inner = text.split("${").skip(1).map(|rest| rest.split('}').next().unwrap_or(rest));
    let words = inner.flat_map(|t| t.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')));
    words.filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

/// How often each of some texts was met.
type Counts = Vec<(String, usize)>;

/// Words of a header's template that need no value of a session.
const KNOWN: [&str; 2] = ["secret", "base64"];

/// How many requests `steps` holds.
pub fn count(steps: &[Step]) -> usize {
    steps
        .iter()
        .map(|step| match step {
            Step::Request(_) => 1,
            Step::Repeat { steps, .. }
            | Step::While { steps, .. }
            | Step::During { steps, .. }
            | Step::ForEach { steps, .. }
            | Step::Group { steps, .. } => count(steps),
            Step::If { steps, otherwise, .. } => count(steps) + count(otherwise),
            Step::Choose(branches) | Step::InTurn(branches) => branches.iter().map(|b| count(b)).sum(),
            Step::Think(_) | Step::Set(_) | Step::Feed(_) | Step::End(_) => 0,
        })
        .sum()
}

/// Every request in `steps`, to be changed.
pub fn each(steps: &mut [Step], change: &mut dyn FnMut(&mut Request)) {
    for step in steps {
        match step {
            Step::Request(request) => change(request),
            Step::Repeat { steps, .. }
            | Step::While { steps, .. }
            | Step::During { steps, .. }
            | Step::ForEach { steps, .. }
            | Step::Group { steps, .. } => each(steps, change),
            Step::If { steps, otherwise, .. } => {
                each(steps, change);
                each(otherwise, change);
            }
            Step::Choose(branches) | Step::InTurn(branches) => branches.iter_mut().for_each(|b| each(b, change)),
            Step::Think(_) | Step::Set(_) | Step::Feed(_) | Step::End(_) => {}
        }
    }
}

/// Takes out the requests that `keep` refuses with the thought before them, and what is empty then.
pub fn keep_requests(steps: &mut Vec<Step>, keep: &mut dyn FnMut(&mut Request) -> bool) {
    for mut step in std::mem::take(steps) {
        let stays = match &mut step {
            Step::Request(request) => {
                let stays = keep(request);
                if !stays && matches!(steps.last(), Some(Step::Think(_))) {
                    steps.pop();
                }
                stays
            }
            Step::Repeat { steps, .. }
            | Step::While { steps, .. }
            | Step::During { steps, .. }
            | Step::ForEach { steps, .. }
            | Step::Group { steps, .. } => {
                keep_requests(steps, keep);
                !steps.is_empty()
            }
            Step::If { steps, otherwise, .. } => {
                keep_requests(steps, keep);
                keep_requests(otherwise, keep);
                !steps.is_empty()
            }
            Step::Choose(branches) | Step::InTurn(branches) => {
                branches.iter_mut().for_each(|branch| keep_requests(branch, keep));
                branches.retain(|branch| !branch.is_empty());
                !branches.is_empty()
            }
            Step::Think(_) | Step::Set(_) | Step::Feed(_) | Step::End(_) => true,
        };
        if stays {
            steps.push(step);
        }
    }
}

fn names(steps: &[Step], used: &mut HashSet<String>, set: &mut HashSet<String>) {
    for step in steps {
        match step {
            Step::Request(request) => set.extend(request.captures.iter().map(|(name, _)| name.clone())),
            Step::Set(values) => set.extend(values.iter().map(|(name, _)| name.clone())),
            Step::Repeat { counter, steps, .. } => {
                set.extend(counter.clone());
                names(steps, used, set);
            }
            Step::ForEach { list, item, steps } => {
                used.insert(list.clone());
                set.insert(item.clone());
                names(steps, used, set);
            }
            Step::While { steps, .. } | Step::During { steps, .. } | Step::Group { steps, .. } => {
                names(steps, used, set)
            }
            Step::If { steps, otherwise, .. } => {
                names(steps, used, set);
                names(otherwise, used, set);
            }
            Step::Choose(branches) | Step::InTurn(branches) => branches.iter().for_each(|b| names(b, used, set)),
            Step::Think(_) | Step::Feed(_) | Step::End(_) => {}
        }
    }
}

/// Requests with a longest response time, by their names with their groups.
fn slowest(steps: &[Step], group: &str, found: &mut Vec<(String, Duration)>) {
    for step in steps {
        match step {
            Step::Request(request) => {
                let name = if request.name.is_empty() { String::new() } else { format!("{group}{}", request.name) };
                found.extend(request.slowest.map(|limit| (name, limit)));
            }
            Step::Group { name, steps } => slowest(steps, &format!("{group}{name}/"), found),
            Step::Repeat { steps, .. }
            | Step::ForEach { steps, .. }
            | Step::While { steps, .. }
            | Step::During { steps, .. } => {
                slowest(steps, group, found);
            }
            Step::If { steps, otherwise, .. } => {
                slowest(steps, group, found);
                slowest(otherwise, group, found);
            }
            Step::Choose(branches) | Step::InTurn(branches) => branches.iter().for_each(|b| slowest(b, group, found)),
            Step::Set(_) | Step::Think(_) | Step::Feed(_) | Step::End(_) => {}
        }
    }
}
