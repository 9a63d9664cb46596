//! What all loops share and none changes: the bytes of every request, laid out beforehand, the
//! order of operations, and the target.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::script::Value;
use crate::script::program::Script;
use holdup_protocol::database::Login;

use super::layout::Layout;
use super::outcome::Outcome;
use super::prepared::Prepared;
use super::refusals::Refusals;
use super::tls::Tls;
use super::trace;
use super::turns::Turns;
use crate::model::Load;
use crate::scenario::{HttpVersion, Scenario};
use crate::schedule::played::{MixSettings, OrderDelay};

/// See the module.
pub struct Plan<'a> {
    /// What to do.
    pub scenario: &'a Scenario,
    /// Distinct requests: one per operation, or one per distinct line of a replayed log.
    pub requests: Vec<Prepared>,
    /// Operations' names.
    pub operations: Vec<String>,
    /// Which of them are part of the load.
    pub measured: Vec<bool>,
    /// Names of phases; empty if the schedule is made while it is played.
    phases: Vec<String>,
    /// The order of operations, or of sessions' flows.
    pub turns: Turns,
    /// The sessions' script, and the first of the flows that take turns.
    pub sessions: Option<(Arc<Script>, u32)>,
    /// The present activity of a search, in words.
    pub doing: Mutex<String>,
    /// The variables of the last session of a setup.
    pub left: Mutex<Option<Vec<Value>>>,
    /// How the sessions of a recorded mix behave, if it is one.
    pub manner: Option<Arc<MixSettings>>,
    /// How far the log's own order delayed a recorded mix.
    pub bound: Mutex<Option<OrderDelay>>,
    /// Texts of the database's refusals.
    pub refusals: Mutex<Refusals>,
    /// TLS, if the target speaks it.
    pub tls: Option<Tls>,
    /// The target's address; none while its name does not resolve.
    pub address: RwLock<Option<SocketAddr>>,
    /// How requests are prepared.
    pub layout: Layout<'a>,
    /// The high half of all trace ids, if requests carry any.
    pub trace: Option<u64>,
}

impl<'a> Plan<'a> {
    /// Lays out all requests.
    pub fn new(scenario: &'a Scenario, tls: Option<Tls>, address: Option<SocketAddr>) -> Self {
        let sessions = scenario.sessions.as_ref().map(|s| (Arc::clone(&s.script), s.first));
        let layout = Layout::new(scenario);
        let replayed = match &scenario.load {
            Load::Open(schedule) => schedule.replay().filter(|replay| !replay.requests.is_empty()),
            Load::Closed(_) => None,
        };
        let played = match &scenario.load {
            Load::Open(schedule) => schedule.as_recorded_mix(),
            Load::Closed(_) => None,
        };
        let requests = match (&scenario.sessions, replayed) {
            (Some(sessions), _) => sessions.script.requests.iter().map(|spec| layout.constant(spec)).collect(),
            (None, Some(log)) => {
                let distinct = log.requests.iter();
                distinct.map(|r| layout.operation(r.operation, r.method, &r.path, r.method != "HEAD")).collect()
            }
            // A recorded mix reads its statements while it is played.
            (None, None) if played.is_some() => Vec::new(),
            (None, None) => {
                let operations = scenario.operations.iter().enumerate();
                operations.map(|(i, o)| layout.operation(i as u32, &o.method, &o.path, true)).collect()
            }
        };
        Self {
            scenario,
            requests,
            operations: scenario.operations.iter().map(|o| o.name.clone()).collect(),
            measured: scenario.measured(),
            phases: scenario.load.phase_names(),
            turns: Turns::new(scenario),
            sessions,
            doing: Mutex::new(String::new()),
            left: Mutex::new(None),
            manner: played.map(|played| Arc::new(played.manner().clone())),
            bound: Mutex::default(),
            refusals: Mutex::default(),
            tls,
            address: RwLock::new(address),
            layout,
            trace: scenario.trace.then(trace::run_id),
        }
    }

    /// The database's first refusal of each operation and outcome, with their names.
    pub fn first_refusals(&self) -> Vec<(String, &'static str, String)> {
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let named = |((index, outcome), said): (&(u32, Outcome), &String)| {
            (self.operations[*index as usize].clone(), outcome.name(), said.clone())
        };
        refusals.iter().map(named).collect()
    }

    /// The request to send: `instead`, or the prepared one of this index.
    pub fn request<'r>(&'r self, instead: Option<&'r Prepared>, index: u32) -> Option<&'r Prepared> {
        instead.or_else(|| self.requests.get(index as usize))
    }

    /// Whether a connection carries several requests at a time.
    pub fn is_http2(&self) -> bool {
        self.scenario.http.version == HttpVersion::Http2
    }

    /// Whether statements or commands are sent.
    pub fn is_database(&self) -> bool {
        self.scenario.target.sql.is_some()
    }

    /// The account of a recorded mix's sessions, in `database` if given.
    pub fn login(&self, database: Option<&str>) -> Option<Arc<Login>> {
        let address = self.scenario.target.sql.as_ref()?;
        let database = database.map(str::to_owned).or_else(|| address.database.clone());
        let mut login = Login::new(address.user.clone(), address.password.clone(), database);
        login.settings = self.manner.as_ref().map(|manner| manner.settings.clone()).unwrap_or_default();
        Some(Arc::new(login))
    }

    /// Name of a phase.
    pub fn phase(&self, index: usize) -> Option<String> {
        if let Some(name) = self.phases.get(index) {
            return Some(name.clone());
        }
        let Load::Open(schedule) = &self.scenario.load else { return None };
        Some(schedule.as_live()?.stretch(index)?.name)
    }
}
