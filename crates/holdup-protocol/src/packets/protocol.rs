//! The protocol of a connection, and the common interface of all protocols.

pub use crate::database::Dialect as Protocol;
use crate::packets::conversation::Reader;
use crate::packets::mongodb::{Mongodb, begins_mongodb};
use crate::packets::mysql::{Mysql, is_greeting};
use crate::packets::piece::{Piece, Sinks};
use crate::packets::postgres::{Postgres, is_startup};

impl Protocol {
    /// The usual ports of all of them.
    pub const PORTS: [u16; 7] = [3306, 3307, 5432, 5433, 27_017, 27_018, 27_019];

    /// The usual ports with their protocols, after `others`.
    pub fn usual_ports(others: &[(u16, Self)]) -> Vec<(u16, Self)> {
        let usual = Self::PORTS.into_iter().filter_map(|port| Some((port, Self::by_port(port)?)));
        others.iter().copied().chain(usual).collect()
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
    /// A supported one.
    Known(Protocol, Box<dyn Reader>),
}

impl ProtocolReader {
    /// A connection of `protocol`; `opened_at` if its start was seen.
    pub fn new(protocol: Option<Protocol>, opened_at: Option<i64>) -> Self {
        let Some(protocol) = protocol else { return opened_at.map_or(Self::Foreign, Self::Unknown) };
        let reader: Box<dyn Reader> = match protocol {
            Protocol::Mysql => Box::new(Mysql::new(opened_at)),
            Protocol::Postgres => Box::new(Postgres::new(opened_at.is_some())),
            Protocol::Mongodb => Box::new(Mongodb::new(opened_at.is_some())),
        };
        Self::Known(protocol, reader)
    }

    pub fn protocol(&self) -> Option<Protocol> {
        if let Self::Known(protocol, _) = self { Some(*protocol) } else { None }
    }

    /// The reader of its protocol, if that is known.
    pub fn reader(&mut self) -> Option<&mut dyn Reader> {
        if let Self::Known(_, reader) = self { Some(&mut **reader) } else { None }
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
        if let Some(reader) = self.reader() {
            reader.take(is_client, piece, to);
        }
    }

    /// Bytes that were never captured.
    pub fn lost(&mut self, is_client: bool, at: i64, count: u32, to: &mut Sinks<'_>) {
        if let Self::Unknown(_) = self {
            *self = Self::Foreign;
        }
        if let Some(reader) = self.reader() {
            reader.lost(is_client, at, count, to);
        }
    }

    pub fn memory(&self) -> usize {
        if let Self::Known(_, reader) = self { reader.memory() } else { 0 }
    }
}
