//! What sessions do, compiled so that a session is a place in a list and a few numbers: nested
//! steps become jumps.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::script::document::DocumentValue;
use crate::script::encoding::{Encoding, put_encoded};
use crate::script::{Capture, Condition, Drawer, Feeder, Names, Needs, Random, Slot, Template, Value};

/// Everything that the sessions of a scenario share.
#[derive(Debug, Default)]
pub struct Script {
    /// Names that its templates use.
    pub names: Arc<Names>,
    /// Sources of rows, by the index from [`Names::feeder`].
    pub sources: Vec<Source>,
    /// Every request (or statement) of every flow.
    pub requests: Vec<RequestSpec>,
    /// The flows of sessions, with their weights.
    pub flows: Vec<Flow>,
    /// Initial values of variables, by slot: those that the setup left. Empty if it has not been
    /// set.
    pub initial: OnceLock<Vec<Value>>,
    /// How often all sessions together have passed each `in_turn`.
    pub turns: Vec<AtomicU64>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The whole run should end: see [`Self::end_run`].
    is_over: AtomicBool,
    why_over: Mutex<Option<EndReason>>,
}

/// Why a run ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndReason {
    /// In words.
    pub text: String,
    /// Whether it is a failure.
    pub is_failure: bool,
}

impl Script {
    /// A script without flows.
    pub fn new(names: Arc<Names>, sources: Vec<Source>, seed: u64) -> Self {
        Self { names, sources, seed, ..Self::default() }
    }

    /// Asks the run to end; the first reason counts.
    pub fn end_run(&self, text: String, is_failure: bool) {
        self.why_over.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(EndReason { text, is_failure });
        self.is_over.store(true, Ordering::Release);
    }

    /// Whether the run should end.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Takes the reason for ending, and clears it, so that what follows, such as teardown, can run.
    pub fn take_end_reason(&self) -> Option<EndReason> {
        self.is_over.store(false, Ordering::Release);
        self.why_over.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A feeder and how its rows are drawn.
pub struct Source {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub feeder: Feeder,
    /// Chooses the next row.
    pub drawer: Drawer,
    /// Draws so far, of all loops of this process.
    pub drawn: AtomicU64,
}

impl std::fmt::Debug for Source {
    /// Rows are left out: they may be accounts.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("name", &self.name).field("rows", &self.feeder.len()).finish_non_exhaustive()
    }
}

/// The steps of one kind of session.
#[derive(Debug, Default)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Weight among the flows.
    pub weight: u32,
    /// Its steps.
    pub ops: Vec<Op>,
    /// Counters that its loops need.
    pub counters: u32,
}

/// A request with its templates.
#[derive(Debug)]
pub struct RequestSpec {
    /// Index of its operation.
    pub operation: u32,
    /// Name of its operation.
    pub name: String,
    /// What is sent.
    pub form: Form,
    /// Values to capture from the response.
    pub captures: Vec<(Slot, Capture)>,
    /// Conditions on the response.
    pub checks: Vec<Condition>,
    /// A check judges the status: otherwise only a status below 400 passes.
    pub judges_status: bool,
    /// The parts of the response that checks and captures need.
    pub needs: Needs,
    /// What happens when it fails.
    pub on_failure: OnFailure,
    /// Feeders from which it needs a row.
    pub feeders: Vec<u32>,
}

/// What is sent, by protocol.
#[derive(Debug)]
pub enum Form {
    /// An HTTP request.
    Http {
        /// `GET`, `POST`, …
        method: String,
        /// Path and query.
        path: Template,
        /// Further header fields.
        headers: Vec<(String, Template)>,
        /// Body.
        body: Option<Vec<Piece>>,
    },
    /// Statements, one after the other on one connection.
    Sql {
        /// In their order.
        statements: Vec<Statement>,
    },
    /// Commands of MongoDB, one after the other on one connection.
    Mongodb {
        /// In their order.
        commands: Vec<Command>,
        /// All of them in one transaction.
        is_transaction: bool,
    },
}

/// A command with its templates.
#[derive(Debug)]
pub struct Command {
    /// The database that it goes to, if not the target's.
    pub database: Option<String>,
    /// Its name.
    pub name: String,
    /// See [`holdup_protocol::database::mongodb::Command`].
    pub batch: Option<i32>,
    /// It has a comment of its own.
    pub has_comment: bool,
    /// Its values.
    pub document: DocumentValue,
}

/// A piece of a body.
#[derive(Debug)]
pub struct Piece {
    /// Template of its text.
    pub template: Template,
    /// Encoding of its text.
    pub encoding: Encoding,
}

/// A statement with its templates.
#[derive(Debug)]
pub struct Statement {
    /// Its text.
    pub text: Template,
    /// Its parameters.
    pub parameters: Vec<Template>,
    /// It is prepared once per connection.
    pub is_prepared: bool,
}

impl Form {
    /// Whether every request is the same.
    pub fn is_constant(&self) -> bool {
        let fixed = |template: &Template| template.constant().is_some();
        match self {
            Self::Http { path, headers, body, .. } => {
                fixed(path)
                    && headers.iter().all(|(_, value)| fixed(value))
                    && body.iter().flatten().all(|piece| fixed(&piece.template))
            }
            Self::Sql { statements } => statements.iter().all(|s| fixed(&s.text) && s.parameters.iter().all(fixed)),
            Self::Mongodb { commands, .. } => commands.iter().all(|command| command.document.is_constant()),
        }
    }
}

impl Form {
    /// Its body, if that has no templates.
    pub fn constant_body(&self) -> Option<String> {
        let Self::Http { body: Some(pieces), .. } = self else { return None };
        let mut out = Vec::new();
        for piece in pieces {
            put_encoded(piece.encoding, piece.template.constant()?.as_bytes(), &mut out).ok()?;
        }
        String::from_utf8(out).ok()
    }
}

/// What happens when a request fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The next step.
    #[default]
    GoOn,
    /// The session ends.
    EndSession,
    /// The run ends.
    Stop,
}

/// How long a user thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Think {
    /// This long.
    Fixed(Duration),
    /// Between the two, evenly distributed.
    Uniform(Duration, Duration),
    /// This long on average, exponentially distributed, like independent decisions.
    Exponential(Duration),
}

impl Think {
    /// Draws one think time, nanoseconds.
    pub fn draw(self, random: &mut Random) -> i64 {
        let ns = |d: Duration| d.as_nanos() as i64;
        match self {
            Self::Fixed(length) => ns(length),
            Self::Uniform(from, to) => {
                ns(from) + random.below(ns(to).saturating_sub(ns(from)).max(0) as u64 + 1) as i64
            }
            // The inverse of the distribution function 1 - exp(-x / mean).
            Self::Exponential(mean) => (-(1.0 - random.unit()).ln() * ns(mean) as f64) as i64,
        }
    }
}

/// How often a loop repeats.
#[derive(Debug)]
pub enum Times {
    /// This often.
    Fixed(u64),
    /// As often as the template says when the loop is entered.
    Said(Template),
}

/// One step. Places are indices into [`Flow::ops`].
#[derive(Debug)]
pub enum Op {
    /// Sends [`Script::requests`]`[.0]` and waits for the response.
    Request(u32),
    /// Waits.
    Think(Think),
    /// Waits until this long after the session was last here.
    Pace {
        /// Holds that time.
        counter: u32,
        /// How long.
        length: Duration,
    },
    /// Puts a value into a variable.
    Set(Slot, Template),
    /// Draws the next row.
    Feed(u32),
    /// Goes to a place.
    Jump(u32),
    /// Goes to a place if a condition does not hold.
    Unless(Condition, u32),
    /// Resets a counter to 0.
    Reset(u32),
    /// Goes on if the loop has another round, else to `exit`.
    Repeat {
        /// Rounds so far.
        counter: u32,
        /// Total rounds; kept in the next counter.
        times: Times,
        /// The variable that holds the number of the round.
        shown_as: Option<Slot>,
        /// The place after the loop.
        exit: u32,
    },
    /// Goes on for so long since the loop was entered, else to `exit`.
    During {
        /// Holds that time.
        counter: u32,
        /// How long.
        length: Duration,
        /// The place after the loop.
        exit: u32,
    },
    /// Goes on with the list's next item, or to `exit` after the last.
    Each {
        /// Items so far.
        counter: u32,
        /// The list.
        list: Slot,
        /// The variable for the item.
        item: Slot,
        /// The place after the loop.
        exit: u32,
    },
    /// If a request fails from here to [`Op::Tried`], the session comes back here.
    Try {
        /// Attempts so far.
        counter: u32,
        /// Most attempts.
        most: u64,
        /// The place to go to after the last attempt failed.
        exit: u32,
    },
    /// The end of an attempt that succeeded.
    Tried,
    /// Goes to one of these places at random: cumulative shares, and the places.
    Choose(Vec<u32>, Vec<u32>),
    /// Goes to the next of these places each time.
    InTurn(u32, Vec<u32>),
    /// The session ends.
    End,
    /// The run ends.
    EndRun,
}
