//! What all loops share and none changes: the bytes of every request, laid out beforehand, the
//! order of operations, and the target.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::script::document::{self, FillText};
use crate::script::fill;
use crate::script::program::{Form as ScriptForm, RequestSpec, Script};
use crate::script::{StepFailure, Template, Value};
use holdup_protocol::database::Login;
use holdup_protocol::http::{Request, http1, http2};

use super::driver::prepared::{Commands, Form, Prepared};
use super::outcome::Outcome;
use super::redirect::Origin;
use super::refusals::Refusals;
use super::tls::Tls;
use super::trace::{self, TraceSource};
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
    /// Scheme, host and port, for redirects.
    pub origin: Origin,
    /// Headers sent with every request, beside those of the operation.
    extra: Vec<(String, String)>,
    /// The high half of all trace ids, if requests carry any.
    pub trace: Option<u64>,
}

impl<'a> Plan<'a> {
    /// Lays out all requests.
    pub fn new(scenario: &'a Scenario, tls: Option<Tls>, address: Option<SocketAddr>) -> Self {
        let sessions = scenario.sessions.as_ref().map(|s| (Arc::clone(&s.script), s.first));
        let mut extra = Vec::new();
        if scenario.http.compression {
            extra.push(("accept-encoding".to_owned(), "gzip, deflate, br, zstd".to_owned()));
        }
        let trace = scenario.trace.then(trace::run_id);
        if trace.is_some() {
            extra.push((trace::FIELD.to_owned(), trace::PLACE.to_owned()));
        }
        let replayed = match &scenario.load {
            Load::Open(schedule) => schedule.replay().filter(|replay| !replay.requests.is_empty()),
            Load::Closed(_) => None,
        };
        let played = match &scenario.load {
            Load::Open(schedule) => schedule.as_recorded_mix(),
            Load::Closed(_) => None,
        };
        let mut plan = Self {
            scenario,
            requests: Vec::new(),
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
            origin: Origin { tls: scenario.target.tls, authority: scenario.target.authority() },
            extra,
            trace,
        };
        plan.requests = match (&scenario.sessions, replayed) {
            (Some(sessions), _) => sessions.script.requests.iter().map(|spec| plan.constant_request(spec)).collect(),
            (None, Some(log)) => {
                let distinct = log.requests.iter();
                distinct.map(|r| plan.operation_request(r.operation, r.method, &r.path, r.method != "HEAD")).collect()
            }
            // A recorded mix reads its statements while it is played.
            (None, None) if played.is_some() => Vec::new(),
            (None, None) => {
                let operations = scenario.operations.iter().enumerate();
                operations.map(|(i, o)| plan.operation_request(i as u32, &o.method, &o.path, true)).collect()
            }
        };
        plan
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

    /// The database that the target names; empty if it names none.
    fn database(&self) -> &str {
        self.scenario.target.sql.as_ref().and_then(|address| address.database.as_deref()).unwrap_or_default()
    }

    /// Name of a phase.
    pub fn phase(&self, index: usize) -> Option<String> {
        if let Some(name) = self.phases.get(index) {
            return Some(name.clone());
        }
        let Load::Open(schedule) = &self.scenario.load else { return None };
        Some(schedule.as_live()?.stretch(index)?.name)
    }

    /// Lays out a session's request if it never changes; otherwise it stays blank for now.
    fn constant_request(&self, spec: &RequestSpec) -> Prepared {
        let blank = || Prepared::blank(spec.operation);
        if !spec.form.is_constant() {
            return blank();
        }
        let ScriptForm::Http { method, path, headers, .. } = &spec.form else {
            return self.database_request(spec, &mut document::constant).unwrap_or_else(|_| blank());
        };
        let text = |template: &Template| template.constant().unwrap_or_default().to_owned();
        let headers: Vec<(String, String)> = headers.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        let body = spec.form.constant_body();
        self.lay_out(spec, method, &text(path), &headers, body.as_deref().map(str::as_bytes))
    }

    /// Lays out a session's request.
    pub fn lay_out(
        &self,
        spec: &RequestSpec,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: Option<&[u8]>,
    ) -> Prepared {
        if spec.needs.body && self.scenario.http.compression {
            // Checks and captures need an uncompressed body.
            let plain = ("Accept-Encoding".to_owned(), "identity".to_owned());
            let headers: Vec<_> = headers.iter().cloned().chain([plain]).collect();
            return self.put(spec.operation, method, path, &headers, body);
        }
        self.put(spec.operation, method, path, headers, body)
    }

    /// Lays out what a database executes for a session's request; `text` gives the text of a template.
    ///
    /// # Errors
    /// If a template cannot be filled in.
    pub fn database_request(&self, spec: &RequestSpec, text: &mut FillText<'_>) -> Result<Prepared, StepFailure> {
        // Only captures and checks look at columns and rows.
        let keeps_row = !(spec.captures.is_empty() && spec.checks.is_empty());
        let form = match &spec.form {
            ScriptForm::Mongodb { commands, is_transaction } => {
                let list = fill::commands(commands, self.database(), text)?;
                Form::Mongodb(Commands { list, is_transaction: *is_transaction, keeps_row })
            }
            ScriptForm::Sql { statements } => Form::Sql(fill::statements(statements, text)?, keeps_row),
            ScriptForm::Http { .. } => return Err(StepFailure::Template),
        };
        let traced = if self.trace.is_some() { form.trace_source() } else { TraceSource::No };
        Ok(Prepared { form, traced, ..Prepared::blank(spec.operation) })
    }

    fn put(
        &self,
        operation: u32,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: Option<&[u8]>,
    ) -> Prepared {
        let given = |name: &str| headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        let all = headers.iter().chain(self.extra.iter().filter(|(name, _)| !given(name)));
        let mut all: Vec<_> = all.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let scheme = if self.origin.tls { "https" } else { "http" };
        let form = |all: &[(&str, &str)]| {
            let request = Request { method, scheme, authority: &self.origin.authority, path, headers: all, body };
            match self.scenario.http.version {
                HttpVersion::Http1 => {
                    let bytes = http1::request_bytes(&request, self.scenario.http.keep_alive);
                    let head = bytes.len() - body.map_or(0, <[u8]>::len);
                    Form::Http1(bytes, head)
                }
                HttpVersion::Http2 => Form::Http2(http2::Template::new(&request)),
            }
        };
        let own = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(trace::FIELD));
        let (form, traced) = match (own, self.trace) {
            (Some((_, value)), _) => (form(&all), TraceSource::from_header(value)),
            (None, None) => (form(&all), TraceSource::No),
            (None, Some(_)) => {
                let laid_out = form(&all);
                match laid_out.trace_source() {
                    // A frame of a very long head ends within the trace id: send the request
                    // without it.
                    TraceSource::No => {
                        all.retain(|(name, _)| *name != trace::FIELD);
                        (form(&all), TraceSource::No)
                    }
                    traced => (laid_out, traced),
                }
            }
        };
        let keeps = self.sessions.is_some() && matches!(form, Form::Http2(_));
        let given = keeps.then(|| Box::new((headers.to_vec(), body.map(<[u8]>::to_vec))));
        let (method, path, has_body) = (method.to_owned(), path.to_owned(), body.is_some());
        Prepared { operation, is_head: method == "HEAD", method, path, has_body, form, traced, given }
    }

    /// Lays out a request of an operation with its headers, and with its body if `with_body`.
    pub fn operation_request(&self, operation: u32, method: &str, path: &str, with_body: bool) -> Prepared {
        let own = &self.scenario.operations[operation as usize];
        let body = own.body.as_deref().filter(|_| with_body).map(str::as_bytes);
        self.put(operation, method, path, &own.headers, body)
    }

    /// The request that follows the redirect of `request`, given `status` and `location`; none if
    /// it is not a redirect to follow. RFC 9110, section 15.4: 307 and 308 repeat the request, the
    /// others use GET.
    pub fn redirected(&self, request: &Prepared, status: u16, location: &[u8]) -> Option<Prepared> {
        if !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let path = self.origin.resolve(&request.path, std::str::from_utf8(location).ok()?)?;
        let repeats = matches!(status, 307 | 308);
        let method = if repeats || request.is_head { request.method.as_str() } else { "GET" };
        if self.sessions.is_none() {
            return Some(self.operation_request(request.operation, method, &path, repeats && request.has_body));
        }
        // Headers and body of a filled-in request exist only in its bytes.
        let (headers, body) = request.parts();
        let is_of_body = |name: &str| name.eq_ignore_ascii_case("content-type");
        let headers: Vec<_> = headers.into_iter().filter(|(name, _)| repeats || !is_of_body(name)).collect();
        Some(self.put(request.operation, method, &path, &headers, body.filter(|_| repeats).as_deref()))
    }
}
