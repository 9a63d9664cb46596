//! The protocol of a connection, and the common interface of all protocols.

use crate::packets::mongodb::{Mongodb, begins_mongodb};
use crate::packets::mysql::{Mysql, is_greeting};
use crate::packets::opaque::Opaque;
use crate::packets::piece::{Piece, Sinks};
use crate::packets::postgres::{Postgres, is_startup};
use crate::packets::turn::Outcome;

/// A supported protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// MySQL, MariaDB, Percona Server.
    Mysql,
    /// PostgreSQL.
    Postgres,
    /// MongoDB, and servers that speak its protocol.
    Mongodb,
}

impl Protocol {
    /// The usual ports of all of them.
    pub const PORTS: [u16; 7] = [3306, 3307, 5432, 5433, 27_017, 27_018, 27_019];

    /// The usual ports with their protocols, after `others`.
    pub fn usual_ports(others: &[(u16, Self)]) -> Vec<(u16, Self)> {
        let usual = Self::PORTS.into_iter().filter_map(|port| Some((port, Self::by_port(port)?)));
        others.iter().copied().chain(usual).collect()
    }

    /// Its name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mysql => "mysql",
            Self::Postgres => "postgresql",
            Self::Mongodb => "mongodb",
        }
    }

    /// The protocol of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "mysql" | "mariadb" => Some(Self::Mysql),
            "postgresql" | "postgres" => Some(Self::Postgres),
            "mongodb" => Some(Self::Mongodb),
            _ => None,
        }
    }

    /// The protocol that usually listens on `port`.
    pub fn by_port(port: u16) -> Option<Self> {
        match port {
            3306 | 3307 => Some(Self::Mysql),
            5432 | 5433 => Some(Self::Postgres),
            27_017..=27_019 => Some(Self::Mongodb),
            _ => None,
        }
    }
}

/// What is known about a connection's protocol.
#[derive(Debug)]
pub(crate) enum ProtocolReader {
    /// It will be recognised by the first bytes of either side; the connection was opened at that
    /// time.
    Unknown(i64),
    /// An unsupported one.
    Foreign,
    Mysql(Box<Mysql>),
    Postgres(Box<Postgres>),
    Mongodb(Box<Mongodb>),
}

/// Runs the same code for each protocol, and other code without one.
macro_rules! each {
    ($speech:expr, $name:ident => $do:expr, $else:expr) => {
        match $speech {
            ProtocolReader::Mysql($name) => $do,
            ProtocolReader::Postgres($name) => $do,
            ProtocolReader::Mongodb($name) => $do,
            ProtocolReader::Unknown(_) | ProtocolReader::Foreign => $else,
        }
    };
}

impl ProtocolReader {
    /// A connection of `protocol`; `opened_at` if its start was seen.
    pub fn new(protocol: Option<Protocol>, opened_at: Option<i64>) -> Self {
        match (protocol, opened_at) {
            (Some(Protocol::Mysql), _) => Self::Mysql(Box::new(Mysql::new(opened_at))),
            (Some(Protocol::Postgres), _) => Self::Postgres(Box::new(Postgres::new(opened_at.is_some()))),
            (Some(Protocol::Mongodb), _) => Self::Mongodb(Box::new(Mongodb::new(opened_at.is_some()))),
            (None, Some(at)) => Self::Unknown(at),
            (None, None) => Self::Foreign,
        }
    }

    pub fn protocol(&self) -> Option<Protocol> {
        match self {
            Self::Mysql(_) => Some(Protocol::Mysql),
            Self::Postgres(_) => Some(Protocol::Postgres),
            Self::Mongodb(_) => Some(Protocol::Mongodb),
            Self::Unknown(_) | Self::Foreign => None,
        }
    }

    /// Bytes of the client or the server.
    pub fn take(&mut self, is_client: bool, piece: &Piece<'_>, to: &mut Sinks<'_>) {
        if let Self::Unknown(at) = *self {
            *self = match is_client {
                true if begins_mongodb(piece.bytes, true) => Self::new(Some(Protocol::Mongodb), Some(at)),
                true if is_startup(piece.bytes) => Self::new(Some(Protocol::Postgres), Some(at)),
                false if is_greeting(piece.bytes) => Self::new(Some(Protocol::Mysql), Some(at)),
                _ => Self::Foreign,
            };
        }
        if is_client {
            each!(self, inner => inner.client(piece, to), ());
        } else {
            each!(self, inner => inner.server(piece, to), ());
        }
    }

    /// Bytes that were never captured.
    pub fn lost(&mut self, is_client: bool, at: i64, count: u32, to: &mut Sinks<'_>) {
        if let Self::Unknown(_) = self {
            *self = Self::Foreign;
        }
        each!(self, inner => inner.lost(is_client, at, count, to), ());
    }

    /// A segment was retransmitted.
    pub fn sent_again(&mut self) {
        each!(self, inner => match inner.opaque() {
            Some(opaque) => opaque.pending.sent_again(),
            None => inner.pending().sent_again(),
        }, ());
    }

    /// Numbers the requests that were added last. Returns whether there were any.
    pub fn number(&mut self, seq_at: &dyn Fn(i64) -> Option<u32>) -> bool {
        each!(self, inner => match inner.opaque() {
            Some(opaque) => opaque.pending.number(seq_at),
            None => inner.pending().number(seq_at),
        }, false)
    }

    /// The connection, or the capture, has ended: unanswered requests end with `unanswered` at
    /// `at`.
    pub fn end(&mut self, unanswered: Outcome, at: i64, to: &mut Sinks<'_>) {
        if let Self::Mysql(mysql) = self {
            mysql.ends(to);
        }
        each!(self, inner => {
            // If responses are timed by turns, an answered request ended with its last byte;
            // otherwise it is cut off.
            let answered = if inner.ends_by_turn() { Outcome::Ok } else { unanswered };
            inner.pending().finish_all(answered, unanswered, Some(at), to.turns);
            if let Some(opaque) = inner.opaque() {
                opaque.pending.finish_all(Outcome::Ok, unanswered, Some(at), to.turns);
            }
        }, ());
    }

    /// Ends responses that end by turns, if nothing came since `since`.
    pub fn quiet(&mut self, since: i64, to: &mut Sinks<'_>) {
        each!(self, inner => {
            if let Some(Opaque { pending }) = inner.opaque() {
                if pending.is_quiet_since(since) {
                    pending.finish_all(Outcome::Ok, Outcome::Ok, None, to.turns);
                }
            } else if inner.ends_by_turn() && inner.pending().is_quiet_since(since) {
                inner.pending().finish_all(Outcome::Ok, Outcome::Ok, None, to.turns);
            }
        }, ());
    }

    pub fn memory(&self) -> usize {
        each!(self, inner => inner.memory(), 0)
    }
}
