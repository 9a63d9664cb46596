//! What a cause's folder says of it.

use super::bound::Bound;
use super::edges::{Contribution, Edge};
use super::{Cause, Others, Outcome};
use crate::case::Case;
use crate::change::Fix;
use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::next_command::NextCommand;
use crate::strength::Strength;
use crate::trace::Pattern;
use holdup_signals::Missing;

/// A cause, and how it is recognised.
pub struct Definition {
    /// Which cause it is.
    pub cause: Cause,
    /// Where it occurs.
    pub occurs: Occurs,
    /// What kind of cause it is.
    pub traits: &'static [Trait],
    /// The ways in which it follows from other causes, nearest first.
    pub follows_from: &'static [Edge],
    /// The limits that it loads further, nearest first.
    pub adds_to: &'static [Contribution],
    /// What `holdup explain` prints.
    pub doc: Doc,
    /// Judges a recording.
    pub judge: Judge,
    /// The most that its events can cost a request; none where its size is measured by itself.
    pub bound: Option<fn(&Case<'_>) -> Option<Bound>>,
    /// What it leaves in counters.
    pub traces: &'static [Pattern],
    /// Its signs in one instant.
    pub(crate) signs: Option<fn(&Facts<'_>, &mut Signs)>,
    /// The errors by which programs themselves name it ([`holdup_recording::events`]), and how much one of
    /// them says.
    pub errors: &'static [(&'static str, Strength)],
    /// The command that shows it, to run next.
    pub next: &'static NextCommand,
    /// Whether the facts of one instant hold what that command would show.
    pub(crate) is_answered: fn(&Facts<'_>) -> bool,
    /// What to do, by the facts of one instant; empty for the sentence of `doc`.
    pub(crate) fixes: fn(&Facts<'_>) -> Vec<Fix>,
    /// What its own signs leave open where it is the only suspect, if that is not when it began.
    pub(crate) leaves_open: Option<&'static str>,
}

impl Definition {
    /// A cause that occurs anywhere, has no trait, and neither leads to nor follows from others.
    pub(crate) const fn new(cause: Cause, doc: Doc, judge: Judge, next: &'static NextCommand) -> Self {
        Self {
            cause,
            occurs: Occurs::Anywhere,
            traits: &[],
            follows_from: &[],
            adds_to: &[],
            doc,
            judge,
            bound: None,
            traces: &[],
            signs: None,
            errors: &[],
            next,
            is_answered: |_| false,
            fixes: |_| Vec::new(),
            leaves_open: None,
        }
    }
}

/// Where a cause occurs: elsewhere it is not a suspect, whatever facts are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurs {
    /// In any service.
    Anywhere,
    /// On MySQL, MariaDB and Percona Server alone.
    OnMysql,
    /// On PostgreSQL alone.
    OnPostgresql,
    /// On MongoDB alone: without one in the recording it is not a suspect.
    OnMongodb,
    /// On Redis or Valkey alone: without one in the recording it is not a suspect.
    OnRedis,
    /// On Elasticsearch or OpenSearch alone: without one in the recording it is not a suspect.
    OnElasticsearch,
    /// In an app with a runtime.
    InRuntimes,
    /// Between a database and clients on other machines.
    BetweenMachines,
    /// Rarely, and one source of its own shows it: while that is missing, the cause lowers the
    /// confidence in no other.
    Rarely,
}

/// What kind of cause it is. Edges name kinds, so that a new cause of a kind needs no other change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trait {
    /// Outside of the service: nothing inside leads to it, and it is not the service's fault. CPUs that
    /// holdup shares with others are the exception: they make it send late.
    Outside,
    /// More load: if a resource has run out and no closer cause raises its demand, nothing is broken.
    Load,
    /// Demand on memory and disks beyond what the work needs: the root of waits for a disk.
    DiskDemand,
    /// A limit of a disk that demand can reach.
    DiskLimit,
    /// The end of a time in which a disk may do more than its limit.
    DiskBurst,
    /// A disk at full capacity.
    FullDisk,
    /// CPUs are full, or a quota of them is used up.
    FullCpu,
    /// A demand that exists all along: if a limit came down, it exceeds it but did not change.
    Standing,
    /// A size that did not change: with more load alone it is what the load meets, not the change.
    Size,
    /// Lies within the time of a single statement: a holder of a lock or of a pool's thread is held up
    /// by it too.
    WithinStatement,
    /// Makes statements themselves long, so that connections and tickets are held longer, and pools
    /// open more connections.
    LongStatement,
    /// Requests wait in line for what it names, rather than being worked on by it.
    Queue,
    /// Waits in line behind one that waits for the cause itself: of the sessions in commit only the one
    /// that writes the log waits for the disk, and the disk's own measure does not see the others.
    Line,
    /// A queue for what a request holds: it is a symptom if that is held longer.
    Pool,
    /// In front of the app and of all that it calls: it leads to nothing behind it.
    InFrontOfApp,
    /// On the way between app and database: the app holds what it has for as long as a statement takes
    /// there and back.
    OnTheWay,
    /// A machine that only makes load can have it.
    OnGenerator,
    /// Kubernetes itself names it.
    NamedByKubernetes,
    /// Work that an answer does not need: rows read in vain, statements repeated. Its level shows that,
    /// without a better time to compare with.
    Avoidable,
    /// Its presence is harm by itself, whatever requests say: a process was killed, a server began anew, a
    /// disk is full or fails, a replica is behind. It needs no response time to be named, and a baseline in
    /// which it was there as well does not clear it.
    Harm,
}

/// How a recording is judged.
pub enum Judge {
    /// From the case and its resources.
    Alone(fn(&Case<'_>) -> Result<Outcome, Missing>),
    /// Also from the outcomes of the causes that are judged alone.
    Beside(fn(&Case<'_>, &Others) -> Result<Outcome, Missing>),
}

/// What to know about a cause. All causes have the same sections.
pub struct Doc {
    /// Name in a sentence, e.g. `The connection pool is exhausted`.
    pub title: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Why it hurts.
    pub hurts: &'static str,
    /// What is needed to judge it.
    pub needs: &'static str,
    /// What it predicts.
    pub predicts: &'static str,
    /// What clears it.
    pub clears: &'static str,
    /// What else looks like it.
    pub looks_like: &'static str,
    /// How to fix it.
    pub fix: &'static str,
    /// How to prove the fix.
    pub prove: &'static str,
    /// References.
    pub references: &'static str,
}

impl Doc {
    /// Headings and texts in order.
    pub fn sections(&self) -> [(&'static str, &'static str); 9] {
        [
            ("What it is", self.what),
            ("Why it hurts", self.hurts),
            ("What is needed", self.needs),
            ("What it predicts", self.predicts),
            ("What clears it", self.clears),
            ("What else looks like this", self.looks_like),
            ("How to fix", self.fix),
            ("How to prove", self.prove),
            ("References", self.references),
        ]
    }
}
