//! What a connection speaks. A driver connects (what comes before the first request), prepares (the
//! bytes of a request, which `layout` makes) and executes: bytes of a response in, ends of requests out.
//! It opens no socket, and decides neither when a request is sent nor what is counted.

mod database;
mod http1;
mod http2;

use std::sync::Arc;

use holdup_protocol::database::Login;
use holdup_protocol::http::WantedParts;
use holdup_protocol::http::http1::Parser;

use self::database::Database;
use self::http1::Http1;
use self::http2::Http2;
use super::intake::Intake;
use super::link::Link;
use super::outcome::Outcome;
use super::prepared::{Form, Prepared};
use super::slots::{InFlight, Slots};
use super::trace::Mark;
use crate::scenario::{HttpVersion, Scenario};
use crate::schedule::played::MixSettings;

/// A request being sent.
pub struct OutgoingRequest<'a> {
    /// What is sent.
    pub prepared: &'a Prepared,
    /// The trace id to put into it.
    pub mark: Option<&'a Mark>,
    /// Which parts of the response to keep.
    pub wanted: WantedParts,
}

/// See the module.
#[expect(clippy::large_enum_variant, reason = "the usual protocol has its state in the connection itself")]
pub enum Driver {
    /// HTTP/1.1.
    Http1(Http1),
    /// HTTP/2.
    Http2(Box<Http2>),
    /// SQL, or MongoDB's commands.
    Database(Box<Database>),
}

impl Driver {
    /// For the connection whose first slot is `slot`; a database's sessions use `login`, and those of a
    /// recorded mix behave as `manner` says.
    pub fn new(scenario: &Scenario, login: Option<&Arc<Login>>, manner: Option<&Arc<MixSettings>>, slot: u32) -> Self {
        match (&scenario.target.sql, login, scenario.http.version) {
            (Some(address), Some(login), _) => {
                let (address, login) = (Arc::clone(address), Arc::clone(login));
                Self::Database(Box::new(Database::new(address, login, manner.cloned(), slot)))
            }
            (_, _, HttpVersion::Http1) => Self::Http1(Http1::new(slot)),
            (_, _, HttpVersion::Http2) => Self::Http2(Box::default()),
        }
    }

    /// The version of HTTP, for the errors of TLS.
    pub fn version(&self) -> HttpVersion {
        match self {
            Self::Http1(_) | Self::Database(_) => HttpVersion::Http1,
            Self::Http2(_) => HttpVersion::Http2,
        }
    }

    /// The database, if it is one's.
    pub fn database(&mut self) -> Option<&mut Database> {
        match self {
            Self::Database(database) => Some(database),
            Self::Http1(_) | Self::Http2(_) => None,
        }
    }

    /// Whether a login follows before the first request.
    pub fn logs_in(&self) -> bool {
        matches!(self, Self::Database(_))
    }

    /// Whether TLS, where it is used, begins with the socket.
    pub fn begins_encrypted(&self) -> bool {
        match self {
            Self::Http1(_) | Self::Http2(_) => true,
            Self::Database(database) => database.session.begins_encrypted(),
        }
    }

    /// A socket is connected.
    pub fn connect(&mut self, streams: u32, wanted: WantedParts) {
        match self {
            Self::Http1(driver) => driver.is_reusable = true,
            Self::Http2(driver) => driver.connect(streams, wanted),
            Self::Database(driver) => **driver = driver.again(),
        }
    }

    /// The socket is gone.
    pub fn close(&mut self) {
        match self {
            Self::Http1(driver) => driver.close(),
            Self::Http2(driver) => driver.has_answered = false,
            Self::Database(driver) => driver.close(),
        }
    }

    /// Begins to execute the request of `slot`. Output is collected until it is sent.
    ///
    /// # Errors
    /// How the connection broke.
    pub fn execute(&mut self, slot: u32, what: &OutgoingRequest<'_>) -> Result<(), Outcome> {
        match (self, &what.prepared.form) {
            (Self::Http1(driver), Form::Http1(..)) => {
                driver.begin(what.prepared.is_head, what.wanted);
                Ok(())
            }
            (Self::Http2(driver), Form::Http2(template)) => driver.execute(slot, template, what.mark),
            (Self::Database(driver), form) => driver.execute(form, what.mark),
            _ => Err(Outcome::BadResponse),
        }
    }

    /// Sends as much of a request as the socket takes; `scratch` is working memory.
    ///
    /// # Errors
    /// How the connection broke.
    pub fn send(&mut self, link: &mut Link, what: &OutgoingRequest<'_>, scratch: &mut Vec<u8>) -> Result<(), Outcome> {
        match (self, &what.prepared.form) {
            (Self::Http1(driver), Form::Http1(bytes, _)) => driver.send(link, bytes, what.mark, scratch),
            (driver, _) => driver.flush(link),
        }
    }

    /// Sends as much of the collected output as the socket takes.
    ///
    /// # Errors
    /// How the connection broke.
    pub fn flush(&mut self, link: &mut Link) -> Result<(), Outcome> {
        match self {
            Self::Http1(_) => link.push_out(),
            Self::Http2(driver) => link.send(&mut driver.session),
            Self::Database(driver) => link.send(&mut driver.session),
        }
        .map(drop)
    }

    /// Whether something is left to send.
    pub fn has_output(&self) -> bool {
        match self {
            Self::Http1(driver) => !driver.is_written,
            Self::Http2(driver) => !driver.session.output().is_empty(),
            Self::Database(driver) => !driver.session.output().is_empty(),
        }
    }

    /// Takes bytes of the server, decrypted. True if they ended the login.
    ///
    /// # Errors
    /// How the connection broke.
    pub fn take(
        &mut self,
        bytes: &[u8],
        stamp: Option<i64>,
        slots: &mut Slots,
        intake: &mut Intake<'_>,
    ) -> Result<bool, Outcome> {
        match self {
            Self::Http1(driver) => driver.take(bytes, stamp, slots, intake).map(|()| false),
            Self::Http2(driver) => driver.take(bytes, stamp, slots, intake).map(|()| false),
            Self::Database(driver) => driver.take(bytes, stamp, slots, intake),
        }
    }

    /// The server closed the connection. Whether that is the regular end of a response.
    pub fn peer_closed(&mut self, slots: &mut Slots, intake: &mut Intake<'_>) -> bool {
        match self {
            Self::Http1(driver) => driver.peer_closed(slots, intake),
            Self::Http2(_) | Self::Database(_) => false,
        }
    }

    /// Gives up the request of `slot` and keeps the connection, if the protocol allows that.
    pub fn cancel(&mut self, slot: u32) -> bool {
        match self {
            Self::Http1(_) | Self::Database(_) => false,
            Self::Http2(driver) => {
                driver.session.cancel(slot);
                true
            }
        }
    }

    /// Whether further requests can be sent.
    pub fn is_reusable(&self) -> bool {
        match self {
            Self::Http1(driver) => driver.is_reusable,
            // A session without room although no stream is open accepts no more: the server has
            // announced that it closes.
            Self::Http2(driver) => driver.session.room() > 0 || driver.session.open_streams() > 0,
            Self::Database(_) => true,
        }
    }

    /// How many more requests can be sent now.
    pub fn room(&self) -> u32 {
        match self {
            Self::Http1(_) | Self::Database(_) => 1,
            Self::Http2(driver) => driver.session.room(),
        }
    }

    /// Whether a request that was on the connection when it broke may be sent again on another. The
    /// connection must have answered a request before, so that the server most likely closed it as
    /// idle, and no byte of a response may have come. RFC 9110, section 9.2.2, allows it for
    /// requests that change nothing, and for those that were never sent.
    pub fn may_repeat(&self, request: &InFlight, method: &str) -> bool {
        let (has_answered, is_untouched, is_unsent) = match self {
            Self::Http1(driver) => (driver.has_answered, !driver.is_answering, driver.is_unsent()),
            Self::Http2(driver) => (driver.has_answered, request.status == 0, request.is_waiting),
            // The statement may have run before the connection broke.
            Self::Database(_) => return false,
        };
        has_answered && is_untouched && (is_unsent || matches!(method, "GET" | "HEAD"))
    }

    /// The parser of HTTP/1, which holds the kept parts of the last response.
    pub fn parser(&self) -> Option<&Parser> {
        match self {
            Self::Http1(driver) => Some(&driver.parser),
            Self::Http2(_) | Self::Database(_) => None,
        }
    }
}
