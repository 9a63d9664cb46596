//! Prepares requests: what the scenario says becomes the bytes that its protocol sends. This happens
//! before the load where a request is always the same, and else when a session has filled it in.

use holdup_protocol::http::{Request, http1, http2};

use super::prepared::{Commands, Form, Prepared};
use super::redirect::Origin;
use super::trace::{self, TraceSource};
use crate::scenario::{HttpVersion, Scenario};
use crate::script::document::{self, FillText};
use crate::script::program::{Form as ScriptForm, RequestSpec};
use crate::script::{StepFailure, Template, fill};

/// See the module.
pub struct Layout<'a> {
    scenario: &'a Scenario,
    /// Scheme, host and port.
    origin: Origin,
    /// Headers sent with every request, beside those of the operation.
    extra: Vec<(String, String)>,
}

impl<'a> Layout<'a> {
    /// For the requests of `scenario`.
    pub fn new(scenario: &'a Scenario) -> Self {
        let mut extra = Vec::new();
        if scenario.http.compression {
            extra.push(("accept-encoding".to_owned(), "gzip, deflate, br, zstd".to_owned()));
        }
        if scenario.trace {
            extra.push((trace::FIELD.to_owned(), trace::PLACE.to_owned()));
        }
        let origin = Origin { tls: scenario.target.tls, authority: scenario.target.authority() };
        Self { scenario, origin, extra }
    }

    /// Lays out a session's request if it never changes; otherwise it stays blank for now.
    pub fn constant(&self, spec: &RequestSpec) -> Prepared {
        let blank = || Prepared::blank(spec.operation);
        if !spec.form.is_constant() {
            return blank();
        }
        let ScriptForm::Http { method, path, headers, .. } = &spec.form else {
            return self.database(spec, &mut document::constant).unwrap_or_else(|_| blank());
        };
        let text = |template: &Template| template.constant().unwrap_or_default().to_owned();
        let headers: Vec<(String, String)> = headers.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        let body = spec.form.constant_body();
        self.session(spec, method, &text(path), &headers, body.as_deref().map(str::as_bytes))
    }

    /// Lays out a session's request.
    pub fn session(
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
    pub fn database(&self, spec: &RequestSpec, text: &mut FillText<'_>) -> Result<Prepared, StepFailure> {
        // Only captures and checks look at columns and rows.
        let keeps_row = !(spec.captures.is_empty() && spec.checks.is_empty());
        let form = match &spec.form {
            ScriptForm::Mongodb { commands, is_transaction } => {
                let database = self.scenario.target.sql.as_ref().and_then(|address| address.database.as_deref());
                let list = fill::commands(commands, database.unwrap_or_default(), text)?;
                Form::Mongodb(Commands { list, is_transaction: *is_transaction, keeps_row })
            }
            ScriptForm::Sql { statements } => Form::Sql(fill::statements(statements, text)?, keeps_row),
            ScriptForm::Http { .. } => return Err(StepFailure::Template),
        };
        let traced = if self.scenario.trace { form.trace_source() } else { TraceSource::No };
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
        let (form, traced) = match (own, self.scenario.trace) {
            (Some((_, value)), _) => (form(&all), TraceSource::from_header(value)),
            (None, false) => (form(&all), TraceSource::No),
            (None, true) => {
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
        let keeps = self.scenario.sessions.is_some() && matches!(form, Form::Http2(_));
        let given = keeps.then(|| Box::new((headers.to_vec(), body.map(<[u8]>::to_vec))));
        let (method, path, has_body) = (method.to_owned(), path.to_owned(), body.is_some());
        Prepared { operation, is_head: method == "HEAD", method, path, has_body, form, traced, given }
    }

    /// Lays out a request of an operation with its headers, and with its body if `with_body`.
    pub fn operation(&self, operation: u32, method: &str, path: &str, with_body: bool) -> Prepared {
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
        if self.scenario.sessions.is_none() {
            return Some(self.operation(request.operation, method, &path, repeats && request.has_body));
        }
        // Headers and body of a filled-in request exist only in its bytes.
        let (headers, body) = request.parts();
        let is_of_body = |name: &str| name.eq_ignore_ascii_case("content-type");
        let headers: Vec<_> = headers.into_iter().filter(|(name, _)| repeats || !is_of_body(name)).collect();
        Some(self.put(request.operation, method, &path, &headers, body.filter(|_| repeats).as_deref()))
    }
}
