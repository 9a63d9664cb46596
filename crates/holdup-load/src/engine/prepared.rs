//! Requests, ready to be sent: the bytes of each in its protocol, laid out beforehand, or as late as
//! a session knows them.

use holdup_protocol::database::Statement;
use holdup_protocol::database::mongodb::Command;
use holdup_protocol::http::http2;

use super::trace::{self, TraceSource};

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
    pub given: Option<Box<Parts>>,
}

/// Header fields and body of a request.
pub type Parts = (Vec<(String, String)>, Option<Vec<u8>>);

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

    /// The same with a `Cookie` header.
    #[must_use]
    pub fn with_cookies(&self, cookies: &str) -> Self {
        let form = match &self.form {
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
        Self { method: self.method.clone(), path: self.path.clone(), form, given: self.given.clone(), ..*self }
    }

    /// The given header fields, and the body.
    pub fn parts(&self) -> Parts {
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
    pub fn trace_source(&self) -> TraceSource {
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
