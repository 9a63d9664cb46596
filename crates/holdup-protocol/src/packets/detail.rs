//! An exchange with its full content, literals and names: for readers of statements, who have to
//! hide what must not be kept.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::packets::protocol::Protocol;
use crate::packets::turn::{ClientIdentity, Kind, ResponseInfo, Turn};

/// MySQL's status: a table was read without a good index.
const NO_GOOD_INDEX: u16 = 0x10;
/// MySQL's status: a table was read without any.
const NO_INDEX: u16 = 0x20;

/// One exchange. Times are nanoseconds since the Unix epoch.
#[derive(Clone, Debug)]
pub struct Detail {
    /// Address of the client.
    pub client: SocketAddr,
    /// Address of the server.
    pub server: SocketAddr,
    /// Their protocol.
    pub protocol: Option<Protocol>,
    /// The server's number of the connection, if its greeting was seen.
    pub session_id: Option<i64>,
    /// `query`, `prepare`, `execute`, `login`, `other`, or `opaque`: encrypted or compressed.
    pub kind: &'static str,
    /// The server's name of a command that is not a statement, e.g. `Ping`.
    pub command: &'static str,
    /// The statement as it was sent, up to 64 KiB.
    pub sql: Option<Arc<[u8]>>,
    /// Parameter values: `$1 = 'a', $2 = NULL`; empty if there were none, or if they cannot be
    /// read.
    pub parameters: Vec<u8>,
    /// When the first byte of the request was seen.
    pub request_at: i64,
    /// When its last byte was seen.
    pub request_end_at: i64,
    /// When it ended.
    pub done_at: i64,
    /// `ok`, `error`, `closed`, `unfinished` or `lost`.
    pub outcome: &'static str,
    /// The server's error code.
    pub error: Option<Arc<str>>,
    info: ResponseInfo,
    identity: Arc<ClientIdentity>,
}

impl Detail {
    pub(crate) fn from_turn(
        client: SocketAddr,
        server: SocketAddr,
        protocol: Option<Protocol>,
        outcome: &'static str,
        turn: Turn,
    ) -> Self {
        let is_statement = matches!(turn.kind, Kind::Query | Kind::Prepare | Kind::Execute);
        Self {
            client,
            server,
            protocol,
            session_id: turn.session_id,
            kind: turn.kind.name(),
            command: if is_statement { "" } else { turn.command },
            sql: turn.sent.sql,
            parameters: turn.parameters,
            request_at: turn.request_at,
            request_end_at: turn.request_end_at,
            done_at: turn.done_at,
            outcome,
            error: turn.error,
            info: turn.info,
            identity: turn.identity,
        }
    }

    /// Account; empty if its login was not seen.
    pub fn user(&self) -> &[u8] {
        &self.identity.user
    }

    /// Database; empty if unknown.
    pub fn database(&self) -> &[u8] {
        &self.identity.database
    }

    /// Rows that were sent.
    pub fn rows(&self) -> u64 {
        self.info.rows
    }

    /// Rows that were changed.
    pub fn affected(&self) -> u64 {
        self.info.affected
    }

    /// Warnings.
    pub fn warnings(&self) -> u64 {
        u64::from(self.info.warnings)
    }

    /// Whether MySQL reported that a table was read without any index, and without a good one.
    pub fn without_index(&self) -> [bool; 2] {
        [self.info.status & NO_INDEX != 0, self.info.status & NO_GOOD_INDEX != 0]
    }
}
