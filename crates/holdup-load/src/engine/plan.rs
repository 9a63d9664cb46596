//! What all loops share and none changes: the bytes of every request, laid out beforehand, the
//! order of operations, and the target.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::script::fill::{self, FilledStatement};
use crate::script::program::{RequestSpec, Script};
use crate::script::{Template, Value};
use holdup_protocol::database::mongodb::Command;
use holdup_protocol::database::{Login, Statement};
use holdup_protocol::http::{Request, http1, http2};

use super::outcome::Outcome;
use super::redirect::Origin;
use super::refusals::Refusals;
use super::tls::Tls;
use super::trace::{self, TraceSource};
use super::turns::Turns;
use crate::model::Load;
use crate::scenario::{HttpVersion, Scenario};
use crate::schedule::played::{MixSettings, OrderDelay};

/// One request, ready to be sent.
pub struct Prepared {
    /// Index of its operation.
    pub operation: u32,
    /// `HEAD` is answered without a body.
    pub is_head: bool,
    /// Method, for redirects.
    pub method: String,
    /// Path and query, for redirects and cookies.
    pub path: String,
    /// It has a body, which a redirect may repeat.
    pub has_body: bool,
    /// Its bytes.
    pub form: Form,
    /// Where its trace id comes from.
    pub traced: TraceSource,
    /// Header fields and body of a session's request, where its bytes do not show them: HTTP/2.
    given: Option<Box<Parts>>,
}

/// Header fields and body of a request.
type Parts = (Vec<(String, String)>, Option<Vec<u8>>);

impl Prepared {
    /// Without bytes to send.
    pub fn blank(operation: u32) -> Self {
        Self {
            operation,
            is_head: false,
            method: String::new(),
            path: String::new(),
            has_body: false,
            form: Form::Http1(Vec::new(), 0),
            traced: TraceSource::No,
            given: None,
        }
    }

    /// Statements as they are.
    pub fn statements(operation: u32, statements: Vec<Statement>) -> Self {
        Self { form: Form::Sql(statements, false), ..Self::blank(operation) }
    }

    /// The given header fields, and the body.
    fn parts(&self) -> Parts {
        match &self.form {
            Form::Http1(bytes, end) => {
                let head = String::from_utf8_lossy(&bytes[..*end]);
                let fields = head.lines().skip(1).filter_map(|line| line.split_once(": "));
                let own = fields.filter(|(name, value)| {
                    !["host", "content-length", "cookie"].contains(&name.to_ascii_lowercase().as_str())
                        && *value != trace::PLACE
                });
                let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
                (own.collect(), self.has_body.then(|| bytes[*end..].to_vec()))
            }
            Form::Http2(_) | Form::Sql(..) | Form::Mongodb(_) => self.given.as_deref().cloned().unwrap_or_default(),
        }
    }
}

/// The bytes of a request in its protocol.
pub enum Form {
    /// Head and body, and the length of the head in bytes.
    Http1(Vec<u8>, usize),
    /// Frames without the stream's number.
    Http2(http2::Template),
    /// Statements, and whether to keep their first rows.
    Sql(Vec<Statement>, bool),
    /// Commands of MongoDB.
    Mongodb(Commands),
}

/// Commands, and how they are executed.
#[derive(Clone)]
pub struct Commands {
    /// In their order.
    pub list: Vec<Command>,
    /// All of them in one transaction.
    pub is_transaction: bool,
    /// Keep their first rows.
    pub keeps_row: bool,
}

impl Form {
    /// Where the trace id goes, if there is a place for one.
    fn trace_source(&self) -> TraceSource {
        let at = match self {
            // It is among the last fields of the head.
            Self::Http1(bytes, head) => {
                let mut windows = bytes[..*head].windows(trace::LENGTH);
                windows.rposition(|w| w == trace::PLACE.as_bytes())
            }
            Self::Http2(template) => http2::Template::place_of(template, trace::PLACE.as_bytes()),
            Self::Sql(statements, _) if statements.iter().any(|s| !s.is_prepared) => return TraceSource::InStatements,
            Self::Mongodb(commands) if commands.list.iter().any(Command::takes_comment) => {
                return TraceSource::InStatements;
            }
            Self::Sql(..) | Self::Mongodb(_) => None,
        };
        at.map_or(TraceSource::No, TraceSource::At)
    }
}

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

    /// The account of a recorded mix's sessions, in `database` if given.
    pub fn login(&self, database: Option<&str>) -> Option<Arc<Login>> {
        let address = self.scenario.target.sql.as_ref()?;
        let database = database.map(str::to_owned).or_else(|| address.database.clone());
        let mut login = Login::new(address.user.clone(), address.password.clone(), database);
        login.settings = self.manner.as_ref().map(|manner| manner.settings.clone()).unwrap_or_default();
        Some(Arc::new(login))
    }

    /// The database that the target names; empty if it names none.
    pub fn database(&self) -> &str {
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
        if !spec.form.is_constant() {
            return Prepared::blank(spec.operation);
        }
        let crate::script::program::Form::Http { method, path, headers, .. } = &spec.form else {
            return self.put_constant(spec);
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

    fn put_constant(&self, spec: &RequestSpec) -> Prepared {
        match spec.form {
            crate::script::program::Form::Mongodb { .. } => {
                self.put_commands(spec, fill::constant_commands(&spec.form, self.database()))
            }
            _ => self.put_statements(spec, fill::constant_statements(&spec.form)),
        }
    }

    /// Lays out a session's commands.
    pub fn put_commands(&self, spec: &RequestSpec, list: Vec<Command>) -> Prepared {
        let is_transaction = matches!(spec.form, crate::script::program::Form::Mongodb { is_transaction: true, .. });
        let keeps_row = !(spec.captures.is_empty() && spec.checks.is_empty());
        let form = Form::Mongodb(Commands { list, is_transaction, keeps_row });
        let traced = if self.trace.is_some() { form.trace_source() } else { TraceSource::No };
        Prepared { form, traced, ..Prepared::blank(spec.operation) }
    }

    /// Lays out a session's statements.
    pub fn put_statements(&self, spec: &RequestSpec, filled: Vec<FilledStatement>) -> Prepared {
        let bound = |p: Vec<u8>| Some(p);
        let statements = filled.into_iter().map(|s| Statement {
            text: s.text,
            is_prepared: s.is_prepared,
            parameters: s.parameters.into_iter().map(bound).collect(),
        });
        // Only captures and checks look at columns and rows.
        let form = Form::Sql(statements.collect(), !(spec.captures.is_empty() && spec.checks.is_empty()));
        let traced = if self.trace.is_some() { form.trace_source() } else { TraceSource::No };
        Prepared { form, traced, ..Prepared::blank(spec.operation) }
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

    /// `request` with a `Cookie` header.
    pub fn with_cookies(request: &Prepared, cookies: &str) -> Prepared {
        let form = match &request.form {
            Form::Http1(bytes, end) => {
                let (head, rest) = bytes.split_at(end.saturating_sub(2));
                let with = [head, b"Cookie: ", cookies.as_bytes(), b"\r\n", rest].concat();
                let end = end + with.len() - bytes.len();
                Form::Http1(with, end)
            }
            // Additions come after the trace id, whose place stays the same: frames are cut as
            // before.
            Form::Http2(template) => Form::Http2(template.with_extra(&[("cookie", cookies)])),
            Form::Sql(statements, keeps) => Form::Sql(statements.clone(), *keeps),
            Form::Mongodb(commands) => Form::Mongodb(commands.clone()),
        };
        Prepared {
            method: request.method.clone(),
            path: request.path.clone(),
            form,
            given: request.given.clone(),
            ..*request
        }
    }
}
