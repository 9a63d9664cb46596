//! A scenario in the making: what `docs/scenario.md` describes, as far as importers have a use for it. Texts are
//! holdup's templates already. It knows nothing of YAML.

use std::time::Duration;

use serde_json::Value as Json;

use crate::target::Origin;

mod passes;

pub use passes::{count, keep_requests};

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
