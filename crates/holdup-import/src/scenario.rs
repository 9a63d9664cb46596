//! A scenario under construction: the parts of `docs/scenario.md` that importers need. Texts are
//! already holdup's templates. It knows nothing of YAML.

use std::time::Duration;

use serde_json::Value as Json;

use crate::target::Origin;

mod passes;

pub use passes::{count, keep_requests};

/// See the module.
#[derive(Debug, Default)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// The file's own descriptions, as comments.
    pub about: Vec<String>,
    /// The target.
    pub target: String,
    /// Keys of `http`.
    pub http: Vec<(&'static str, String)>,
    /// Texts with a name.
    pub vars: Vec<Var>,
    /// Environment variables that hold secrets.
    pub secrets: Vec<String>,
    /// Sources of rows.
    pub feeders: Vec<Feeder>,
    /// Header fields of every request.
    pub headers: Vec<(String, String)>,
    /// Steps once before the load.
    pub setup: Vec<Step>,
    /// Steps once after the load.
    pub teardown: Vec<Step>,
    /// The load.
    pub load: Load,
    /// The requests.
    pub body: Body,
    /// Objectives.
    pub thresholds: Vec<String>,
}

/// The requests of a scenario.
#[derive(Debug)]
pub enum Body {
    /// Single requests by weight.
    Operations(Vec<Request>),
    /// Sessions.
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
    /// Comment beside it; may be empty.
    pub comment: String,
}

/// Rows of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feeder {
    pub name: String,
    /// File with a header line.
    pub csv: String,
    /// `again`, `stop` or `fail`; `None` is the default.
    pub at_end: Option<&'static str>,
    /// Comment beside it; may be empty.
    pub comment: String,
}

/// One kind of session.
#[derive(Debug, Default)]
pub struct Session {
    pub name: String,
    pub weight: u32,
    pub steps: Vec<Step>,
}

/// One step of a session.
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

impl Step {
    /// The lists of steps within it.
    pub fn inner(&self) -> Vec<&Vec<Self>> {
        match self {
            Self::Repeat { steps, .. }
            | Self::While { steps, .. }
            | Self::During { steps, .. }
            | Self::ForEach { steps, .. }
            | Self::Group { steps, .. } => vec![steps],
            Self::If { steps, otherwise, .. } => vec![steps, otherwise],
            Self::Choose(branches) | Self::InTurn(branches) => branches.iter().collect(),
            Self::Request(_) | Self::Think(_) | Self::Set(_) | Self::Feed(_) | Self::End(_) => Vec::new(),
        }
    }

    /// The same, to be changed.
    pub fn inner_mut(&mut self) -> Vec<&mut Vec<Self>> {
        match self {
            Self::Repeat { steps, .. }
            | Self::While { steps, .. }
            | Self::During { steps, .. }
            | Self::ForEach { steps, .. }
            | Self::Group { steps, .. } => vec![steps],
            Self::If { steps, otherwise, .. } => vec![steps, otherwise],
            Self::Choose(branches) | Self::InTurn(branches) => branches.iter_mut().collect(),
            Self::Request(_) | Self::Think(_) | Self::Set(_) | Self::Feed(_) | Self::End(_) => Vec::new(),
        }
    }
}

/// A request, with templates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Its name; empty if its path is enough.
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
    /// `go_on`, `end_session` or `stop`; `None` is the default.
    pub on_failure: Option<&'static str>,
    /// Comment above it; may be empty.
    pub comment: String,
    /// Longest response time that the plan allows.
    pub slowest: Option<Duration>,
    /// Its server, if the file names one.
    pub origin: Option<Origin>,
    /// Its line in the file.
    pub line: usize,
}

/// The contents of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Content {
    #[default]
    None,
    Text(String),
    Json(Json),
    Form(Vec<(String, String)>),
    File(String),
}

/// A value that a response gives, kept under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// `json`, `regex`, `header`, `cookie`; `status` and `body` have nothing after them.
    pub from: &'static str,
    /// The part behind it.
    pub what: String,
    /// `first` is the default.
    pub pick: Option<&'static str>,
    /// The value if nothing is found.
    pub default: Option<String>,
}

/// The load.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// The rate does not wait for the service.
    Open {
        /// Phases, one after the other.
        phases: Vec<Phase>,
        /// Arrivals are sessions, not requests.
        of_sessions: bool,
        /// Arrivals are independent of each other.
        is_poisson: bool,
        /// Most requests in flight.
        connections: Option<u32>,
        timeout: Option<Duration>,
        /// Comment above it; may be empty.
        comment: String,
    },
    /// A number of users, each with one session after the other.
    Closed {
        users: u32,
        /// Stages: from a number of users to a number of users in a time. If there are any, they
        /// replace the number.
        stages: Vec<(u32, u32, Duration)>,
        ramp_up: Option<Duration>,
        /// Total number of sessions.
        iterations: Option<u64>,
        duration: Option<Duration>,
        timeout: Option<Duration>,
        /// Comment above it; may be empty.
        comment: String,
    },
}

/// A stretch of an open load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Phase {
    /// Arrivals per second.
    Rate(f64, Duration),
    /// From a rate per second to a rate per second.
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
